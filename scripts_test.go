package agentbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// functionOf finds the functions of a script of bash.
var functionOf = regexp.MustCompile(`(?m)^([a-z_]+)\(\) *\{`)

// TestNoScriptHidesAFailure holds scripts that end at a failure to do so within $(...) too, where bash forgets that unless it is told.
func TestNoScriptHidesAFailure(t *testing.T) {
	files, err := filepath.Glob("scripts/*")
	if err != nil || len(files) < 10 {
		t.Fatalf("got %v, %v", files, err)
	}
	held := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if !strings.Contains(text, "\nset -e") {
			continue
		}
		for _, f := range functionOf.FindAllStringSubmatch(text, -1) {
			if strings.Contains(text, "$("+f[1]+" ") || strings.Contains(text, "$("+f[1]+")") {
				held++
				if !strings.Contains(text, "\nshopt -s inherit_errexit") {
					t.Errorf("%s calls %s within $(...) and goes on after its failures; write: shopt -s inherit_errexit", file, f[1])
				}
			}
		}
	}
	if held < 4 {
		t.Errorf("%d calls were found, want those of agents, e2b, injection and mcp", held)
	}
}

// TestAFailedInstallEndsTheScript runs scripts in a folder of their own, with programs that install nothing.
func TestAFailedInstallEndsTheScript(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("the scripts, and make, need bash: ", err)
	}
	for script, arguments := range map[string][]string{"agents": {"test"}, "e2b": {"tools"}, "mcp": {"test"}} {
		t.Run(script, func(t *testing.T) {
			dir := t.TempDir()
			write := func(name, text string) {
				t.Helper()
				file := filepath.Join(dir, name)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o700)); err != nil {
					t.Fatal(err)
				}
			}
			raw, err := os.ReadFile("scripts/" + script)
			if err != nil {
				t.Fatal(err)
			}
			write("scripts/"+script, string(raw))
			write("scripts/rootfs", "#!/bin/sh\nmkdir -p base/usr/bin base/usr/lib\necho \"$PWD/base\"\n")
			write("path/npm", "#!/bin/sh\ncase $1 in init) ;; *) echo 'the registry is not there' >&2; exit 1 ;; esac\n")
			write("path/python3", "#!/bin/sh\nmkdir -p \"$3/bin\"\nln -s \"$(command -v npm)\" \"$3/bin/pip\"\n")
			write("path/go", "#!/bin/sh\ntouch \"$WENT_ON\"\nexit 1\n")
			went := filepath.Join(dir, "went")
			write("cache/kept", "")
			run := exec.CommandContext(t.Context(), bash, append([]string{filepath.Join(dir, "scripts", script)}, arguments...)...)
			run.Env = append(os.Environ(), "PATH="+filepath.Join(dir, "path")+":"+os.Getenv("PATH"), "AGENTBOX_CACHE="+filepath.Join(dir, "cache"),
				"GO=go", "WENT_ON="+went)
			said, err := run.CombinedOutput()
			if ended, ok := errors.AsType[*exec.ExitError](err); !ok || ended.ExitCode() != 1 ||
				!strings.Contains(string(said), "the registry is not there") {
				t.Errorf("got %v\n%s", err, said)
			}
			ready, err := filepath.Glob(filepath.Join(dir, "cache", "*", "ready"))
			if err != nil || len(ready) > 0 {
				t.Errorf("it says that %v are whole, %v", ready, err)
			}
			if _, err := os.Stat(went); err == nil {
				t.Error("it went on after the failure")
			}
		})
	}
}
