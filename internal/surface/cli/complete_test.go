package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestStoppedInWords ends a daemon that waits, and a command that says for itself what became of it.
func TestStoppedInWords(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	var out, errs strings.Builder
	host := cmdline.Host{Out: &out, Err: &errs, Clock: termtest.Clock{}, Getenv: func(name string) string {
		return map[string]string{"HOME": t.TempDir()}[name]
	}}
	host.Up = func(ctx context.Context, _ cmdline.Daemon, _ func(string, bool)) error {
		return fmt.Errorf("open the log: %w", ctx.Err())
	}
	if code := Run(ctx, host, []string{"up"}); code != cmdline.ExitInterrupted || errs.String() != "agentbox: interrupted\n" {
		t.Errorf("got %d and %q, want %d and that it was interrupted", code, errs.String(), cmdline.ExitInterrupted)
	}
	errs.Reset()
	host.Up = func(context.Context, cmdline.Daemon, func(string, bool)) error { return context.Canceled }
	if Run(t.Context(), host, []string{"up"}); !strings.Contains(errs.String(), "canceled") {
		t.Errorf("what nobody stopped says %q", errs.String())
	}
}

// TestUpSaysThatItCompiles: a daemon whose interpreters were never compiled says so when it serves, and one whose were says nothing.
func TestUpSaysThatItCompiles(t *testing.T) {
	for cold, want := range map[bool]int{true: 1, false: 0} {
		var out, errs strings.Builder
		host := cmdline.Host{Out: &out, Err: &errs, Clock: termtest.Clock{}, Getenv: func(name string) string {
			return map[string]string{"HOME": t.TempDir()}[name]
		}}
		host.Up = func(_ context.Context, _ cmdline.Daemon, ready func(string, bool)) error {
			ready("127.0.0.1:1", cold)
			return nil
		}
		if code := Run(t.Context(), host, []string{"up"}); code != 0 || strings.Count(out.String(),
			"compiles Python and JavaScript for this machine, once") != want {
			t.Errorf("cold %v: got %d, %q, %q", cold, code, out.String(), errs.String())
		}
	}
}

// TestEveryCommandSaysWhatItIsCompletedWith looks for commands and flags that a shell would complete with files because nobody said
// anything.
func TestEveryCommandSaysWhatItIsCompletedWith(t *testing.T) {
	i := &cmdline.Invocation{Host: cmdline.Host{Clock: termtest.Clock{}, Getenv: func(string) string { return "" }}}
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && len(cmd.ValidArgs) == 0 {
			t.Errorf("%s has no completion", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, known := cmd.GetFlagCompletionFunc(f.Name); !known && f.Value.Type() != "bool" {
				t.Errorf("%s --%s has no completion", cmd.CommandPath(), f.Name)
			}
		})
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(root(i))
}

// upClock has timers that end when somebody says so.
type upClock struct {
	termtest.Clock
	over chan time.Time
}

func (c upClock) NewTimer(time.Duration) (<-chan time.Time, func()) { return c.over, func() {} }

// TestASilentDaemonHoldsUpNoShell completes a run with a daemon that takes the question and never answers.
func TestASilentDaemonHoldsUpNoShell(t *testing.T) {
	over := make(chan time.Time, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		over <- termtest.Noon() // its time is up while it is asked
		<-r.Context().Done()
	}))
	defer silent.Close()
	var out strings.Builder
	i := cmdline.Host{Out: &out, Err: io.Discard, Clock: upClock{over: over}, Getenv: func(name string) string {
		return map[string]string{"HOME": t.TempDir(), "AGENTBOX_URL": silent.URL, "AGENTBOX_KEY": "abk_x"}[name]
	}}
	if code := Run(t.Context(), i, []string{"__complete", "runs", "show", ""}); code != cmdline.ExitOK || out.String() != ":4\n" {
		t.Errorf("got %d and %q, want nothing, and no files", code, out.String())
	}
}
