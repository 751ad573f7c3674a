package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestAMissingThingNamesItsList asks for things that are not there. The error names the command that lists those that are, and that
// command exists. A suggestion of the daemon stands in its place.
func TestAMissingThingNamesItsList(t *testing.T) {
	code, suggestion := "", ""
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]any{"error": code, "detail": "it is not there", "status": 404, "suggestion": suggestion})
	}))
	defer daemon.Close()
	var errs strings.Builder
	host := cmdline.Host{Out: &strings.Builder{}, Err: &errs, Clock: termtest.Clock{}, Getenv: func(name string) string {
		return map[string]string{"HOME": t.TempDir(), "AGENTBOX_URL": daemon.URL, "AGENTBOX_KEY": "abk_x"}[name]
	}}
	for of, list := range cmdline.Lists {
		code, suggestion = of, ""
		errs.Reset()
		got := Run(t.Context(), host, []string{"runs", "show", "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"})
		if want := "agentbox: it is not there\n          see: agentbox " + list + "\n"; got != cmdline.ExitNotFound || errs.String() != want {
			t.Errorf("%s: exit code %d and %q, want %q", of, got, errs.String(), want)
		}
		args := strings.Fields(strings.ReplaceAll(list, "ROOM", "room_x"))
		if got := Run(t.Context(), host, append(args, "--help")); got != cmdline.ExitOK {
			t.Errorf("%s: %q is no command", of, list)
		}
		suggestion = "look elsewhere"
		errs.Reset()
		Run(t.Context(), host, []string{"runs", "show", "run_01ARZ3NDEKTSV4RRFFQ69G5FAV"})
		if strings.Contains(errs.String(), list) || !strings.Contains(errs.String(), suggestion) {
			t.Errorf("%s: got %q, want the suggestion of the daemon", of, errs.String())
		}
	}
}

// TestADaemonThatIsNamedWantsAKey names a daemon where none runs on the data directory. The error is about the key of the named one.
func TestADaemonThatIsNamedWantsAKey(t *testing.T) {
	var errs strings.Builder
	host := cmdline.Host{Out: &strings.Builder{}, Err: &errs, Clock: termtest.Clock{}, Getenv: func(string) string { return "" }}
	got := Run(t.Context(), host, []string{"space", "ls", "--data", filepath.Join(t.TempDir(), "none"), "--url", "http://127.0.0.1:1"})
	want := "agentbox: no key for http://127.0.0.1:1\n          set AGENTBOX_KEY or name a file with --key-file\n"
	if got != cmdline.ExitDenied || errs.String() != want {
		t.Errorf("exit code %d and %q, want %d and %q", got, errs.String(), cmdline.ExitDenied, want)
	}
}

// TestHelpFitsANarrowTerminal shows the help of commands at terminals of several widths. No line is longer but examples, usage and
// words that cannot be broken.
func TestHelpFitsANarrowTerminal(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		for _, args := range [][]string{{}, {"up"}, {"exec"}, {"chat"}, {"space", "create"}, {"runs", "replay"}, {"audit", "verify"}} {
			var out strings.Builder
			host := cmdline.Host{Out: &out, Err: &strings.Builder{}, Clock: termtest.Clock{}, Width: width, Terminal: true,
				Getenv: func(string) string { return "" }}
			if got := Run(t.Context(), host, append(args, "--help")); got != cmdline.ExitOK || out.Len() == 0 {
				t.Fatalf("%v: exit code %d", args, got)
			}
			section := ""
			for line := range strings.SplitSeq(out.String(), "\n") {
				if line != "" && line[0] != ' ' && strings.HasSuffix(line, ":") {
					section = line
				}
				long := utf8.RuneCountInString(line) > width && strings.Contains(strings.TrimSpace(line), " ")
				if long && section != "Examples:" && section != "Usage:" {
					t.Errorf("%v in %d characters: %d in %q", args, width, utf8.RuneCountInString(line), line)
				}
			}
		}
	}
}
