package python_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
)

// TestPrograms runs the programs of testdata/programs and compares what they print with what CPython 3.13.5 of Debian prints for them,
// which these files hold. The first line is the command; the word CODE in it stands for the section of that name. A backslash before the
// end of a section means that no newline is there.
func TestPrograms(t *testing.T) {
	paths, err := filepath.Glob("testdata/programs/*.txt")
	if err != nil || len(paths) < 100 {
		t.Fatalf("there are %d programs: %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			a := txtar.Parse(b)
			w := &world{env: []string{"HOME=/proj"}, files: map[string]string{}}
			want := map[string]string{"exit": "0\n"}
			code := ""
			for _, f := range a.Files {
				text := string(bytes.TrimSuffix(f.Data, []byte("\\\n")))
				switch f.Name {
				case "CODE":
					code = strings.TrimSuffix(text, "\n")
				case "stdin":
					w.stdin = text
				case "stdout", "stderr", "exit":
					want[f.Name] = text
				default:
					w.files[f.Name] = text
				}
			}
			args := strings.Fields(string(a.Comment))[1:]
			for i := range args {
				if args[i] == "CODE" {
					args[i] = code
				}
			}
			w.python(t, args...)
			got := map[string]string{"stdout": w.stdout.String(), "stderr": w.stderr.String(), "exit": strconv.Itoa(w.status.Exit()) + "\n"}
			for _, name := range []string{"stdout", "stderr", "exit"} {
				if got[name] != want[name] {
					t.Errorf("%s:\n%s\nwant\n%s", name, got[name], want[name])
				}
			}
			if w.stopped != nil {
				t.Errorf("it was stopped: %v", w.stopped)
			}
		})
	}
}
