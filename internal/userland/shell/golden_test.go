package shell_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the transcripts again by what the machine's bash and coreutils print")

// TestTranscripts compares what scripts print with what bash and GNU's coreutils print. In the archives x.sh is a script, x.out is what
// the real ones print, their errors included, and x.ours is what the virtual shell prints instead where it differs on purpose.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				rewrite(t, file, archive)
			}
			want := map[string]string{}
			for _, f := range archive.Files {
				want[f.Name] = string(f.Data)
			}
			for _, f := range archive.Files {
				name, ok := strings.CutSuffix(f.Name, ".sh")
				if !ok {
					continue
				}
				t.Run(name, func(t *testing.T) {
					expected, differs := want[name+".ours"]
					if !differs {
						expected = want[name+".out"]
					}
					x := newExecution(t)
					got := x.run(t, strings.TrimSuffix(string(f.Data), "\n"))
					if got != expected {
						t.Errorf("script:\n%s\n%s", f.Data, diff.Diff("want", []byte(expected), "got", []byte(got)))
					}
				})
			}
		})
	}
}

// rewrite runs the scripts of an archive by the real bash.
func rewrite(t *testing.T, file string, archive *txtar.Archive) {
	var files []txtar.File
	ours := map[string]txtar.File{}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".ours"); ok {
			ours[name] = f
		}
	}
	for _, f := range archive.Files {
		name, ok := strings.CutSuffix(f.Name, ".sh")
		if !ok {
			continue
		}
		files = append(files, f, txtar.File{Name: name + ".out", Data: []byte(real(t, strings.TrimSuffix(string(f.Data), "\n")))})
		if o, ok := ours[name]; ok {
			files = append(files, o)
		}
	}
	archive.Files = files
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Fatal(err)
	}
}

// real returns what the machine's bash prints for a script in an empty folder.
func real(t *testing.T, script string) string {
	dir := t.TempDir()
	cmd := exec.Command("/bin/bash", "-c", script)
	cmd.Args[0] = "bash"
	cmd.Dir = dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/root", "LC_ALL=C.UTF-8", "TZ=UTC"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	code := cmd.ProcessState.ExitCode()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = 128 + int(status.Signal())
	}
	return transcript(strings.ReplaceAll(out.String(), dir, "/w"), code)
}

// transcript is what a script has printed and how it has ended.
func transcript(out string, code int) string {
	if out != "" && !strings.HasSuffix(out, "\n") {
		out += "\\\n"
	}
	if code != 0 {
		out += fmt.Sprintf("[%d]\n", code)
	}
	return out
}
