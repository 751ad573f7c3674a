package javascript

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "run the real Node and write what it prints")

// TestAsNode runs programs and compares what they print with what the real Node printed.
func TestAsNode(t *testing.T) {
	files, err := filepath.Glob("testdata/node/*.*js")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no programs", err)
	}
	for _, file := range files {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			golden := file + ".out"
			if *update {
				cmd := exec.Command("node", file)
				cmd.Stdin = strings.NewReader("first\nsecond\nlast")
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, os.Stderr
				if err := cmd.Run(); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			got := execute(t, world{args: []string{"node", "/work/" + name}, files: map[string]string{"/work/" + name: string(text)}, stdin: "first\nsecond\nlast"})
			if got.out != string(want) || got.code != 0 {
				t.Errorf("exit %d, %s\n-want +got\n%s", got.code, got.err, cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got.out, "\n")))
			}
		})
	}
}
