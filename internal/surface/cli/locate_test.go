package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestACommandWaitsForADaemonThatStarts lets a daemon come up step by step while a command looks for it, and lets one die.
func TestACommandWaitsForADaemonThatStarts(t *testing.T) {
	dead := 1 << 22 // above every process number of Linux
	for _, c := range []struct {
		name  string
		steps []string // what daemon.json holds, one after the other
		says  []string // on the error output, in this order
		code  int
	}{
		{
			"it comes up",
			[]string{`"pid":%d,"phase":"opens the log"`, `"pid":%d,"phase":"opens the log"`, `"pid":%d,"phase":"prepares the tiers"`, `"pid":%d`},
			[]string{"is starting: it opens the log\n", "is starting: it prepares the tiers\n",
				"the owner's key cannot be read"}, cmdline.ExitDenied,
		},
		{
			"it dies", []string{`"pid":%d,"phase":"opens the log"`, `"pid":` + fmt.Sprint(dead) + `,"phase":"opens the log"`},
			[]string{"is starting: it opens the log\n", "has ended without saying so"}, cmdline.ExitUnavailable,
		},
		{"it gives up", []string{`"pid":%d,"phase":"opens the log"`, ""}, []string{"is starting: it opens the log\n", "no daemon runs on"},
			cmdline.ExitUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			at := 0
			step := func() {
				path := filepath.Join(dir, "daemon.json")
				text := c.steps[at]
				at++
				if text == "" {
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
					return
				}
				text = `{"addr":"127.0.0.1:1",` + strings.Replace(text, "%d", fmt.Sprint(os.Getpid()), 1) + `}`
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			step()
			var out, says bytes.Buffer
			host := cmdline.Host{Out: &out, Err: &says, Getenv: func(string) string { return "" }, Clock: termtest.Stepped{Step: step}}
			code := Run(context.Background(), host, []string{"space", "ls", "--data", dir})
			if code != c.code || at != len(c.steps) {
				t.Errorf("exit code %d after %d looks, want %d after %d", code, at, c.code, len(c.steps))
			}
			rest := says.String()
			for _, want := range c.says {
				_, after, found := strings.Cut(rest, want)
				if !found {
					t.Fatalf("got %q, want %q in it, once and in this order", says.String(), c.says)
				}
				rest = after
			}
			if strings.Contains(rest, "is starting") {
				t.Errorf("said again: %q", says.String())
			}
		})
	}
}

// TestTheFilesOfADaemonAreOrdinary puts something else in their place: a pipe, which would be waited for, a link, a folder.
func TestTheFilesOfADaemonAreOrdinary(t *testing.T) {
	for _, name := range []string{"daemon.json", "owner.key"} {
		for what, put := range map[string]func(path string) error{
			"a pipe": func(path string) error { return unix.Mkfifo(path, 0o600) },
			"a link": func(path string) error {
				if err := os.WriteFile(path+".other", []byte("abx_key"), 0o600); err != nil {
					return err
				}
				return os.Symlink(path+".other", path)
			},
			"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
			"empty":    func(path string) error { return os.WriteFile(path, nil, 0o600) },
		} {
			dir := t.TempDir()
			if name == "owner.key" {
				text := fmt.Sprintf(`{"addr":"127.0.0.1:1","pid":%d}`, os.Getpid())
				if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := put(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
			var out, says bytes.Buffer
			host := cmdline.Host{Out: &out, Err: &says, Getenv: func(string) string { return "" }, Clock: termtest.Stepped{Step: func() {}}}
			code := Run(context.Background(), host, []string{"space", "ls", "--data", dir})
			if want := map[string]int{"daemon.json": cmdline.ExitUnavailable, "owner.key": cmdline.ExitDenied}[name]; code != want {
				t.Errorf("%s is %s: exit code %d, want %d: %s", name, what, code, want, says.String())
			}
		}
	}
}
