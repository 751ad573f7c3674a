// Package spacetest is the conformance suite of tiers: what every space promises, whichever technology it uses.
package spacetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Host holds the parts of the driver under test that the suite needs.
type Host struct {
	// Tier is the tier under test.
	Tier space.Tier
	// Permit makes a permit for an action.
	Permit func(policy.Action) policy.Permit
	// Place makes a folder for the files of a new space and returns its owner's uid; 0 means the daemon's own user.
	Place func(t *testing.T) (dir string, uid int)
	// IDs makes the ids of the suite's spaces.
	IDs *id.Source
	// Unenforced names the bounds that this host cannot enforce. The suite skips their tests and names them in the log.
	Unenforced []string
	// Unnamed names the bounds that the tier enforces without learning when one is hit, so that Exit.Limit cannot name them.
	Unnamed []string
}

// workspace is where the suite's spaces belong.
const workspace = id.DefaultWorkspace

// limits are those of the suite's spaces: small, so that they are hit fast.
func limits() space.Limits {
	return space.Limits{
		MemoryBytes: 96 << 20, CPUMillis: 2000, Pids: 48, DiskBytes: 24 << 20, FileBytes: 16 << 20, OutputBytes: 1 << 20, OpenFiles: 256,
		TmpBytes: 8 << 20,
	}
}

// Spec returns the specification of a new space with the suite's limits.
func (h Host) Spec(t *testing.T) space.Spec {
	t.Helper()
	dir, uid := h.Place(t)
	return space.Spec{ID: id.New[id.Space](h.IDs), Dir: dir, UID: uid, Env: map[string]string{"OWN": "space"}, Limits: limits(),
		BestEffort: len(h.Unenforced) > 0}
}

// CreatePermit is the permit that a specification needs.
func (h Host) CreatePermit(t *testing.T, spec space.Spec) policy.Permit {
	t.Helper()
	raw, err := json.Marshal(spec.Limits)
	if err != nil {
		t.Fatal(err)
	}
	return h.Permit(policy.Action{Type: policy.SpaceStart, Workspace: workspace, Space: spec.ID, Limits: raw})
}

// Create makes a space and ends it after the test.
func (h Host) Create(t *testing.T, spec space.Spec) space.Instance {
	t.Helper()
	s, err := h.Tier.Create(t.Context(), h.CreatePermit(t, spec), spec)
	if err != nil {
		t.Fatalf("create a space: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the space: %v", err)
		}
	})
	return s
}

// Command is a command of a test.
type Command struct {
	Space id.Space
	Argv  []string
	Cwd   string
	Env   map[string]string
	Stdin string
	MS    int64 // its time
}

// Shell is a command that runs a script.
func Shell(s id.Space, script string) Command {
	return Command{Space: s, Argv: []string{"sh", "-c", script}, MS: 60_000}
}

// Action is the action of a command.
func (c Command) Action() policy.Action {
	a := policy.Action{
		Type: policy.ShellExec, Workspace: workspace, Space: c.Space, Argv: c.Argv, Cwd: c.Cwd, Env: c.Env, TimeoutMS: c.MS,
	}
	if c.Stdin != "" {
		a.Stdin = event.DigestOf([]byte(c.Stdin))
	}
	return a
}

// Result is the result of a command.
type Result struct {
	space.Exit
	Stdout, Stderr string
}

// Exec runs a command that the driver must be able to run.
func (h Host) Exec(t *testing.T, s space.Instance, c Command) Result {
	t.Helper()
	r, err := h.TryExec(t.Context(), s, c)
	if err != nil {
		t.Fatalf("run %q: %v", c.Argv, err)
	}
	return r
}

// TryExec runs a command.
func (h Host) TryExec(ctx context.Context, s space.Instance, c Command) (Result, error) {
	var out, errs bytes.Buffer
	exit, err := s.Exec(ctx, h.Permit(c.Action()), []byte(c.Stdin), func(channel string, data []byte) error {
		switch channel {
		case "stdout":
			out.Write(data)
		case "stderr":
			errs.Write(data)
		default:
			return errors.New("no such channel: " + channel)
		}
		return nil
	})
	return Result{exit, out.String(), errs.String()}, err
}

// start runs a command beside the test and returns when it has printed a first line; the function waits for its end.
func (h Host) start(t *testing.T, ctx context.Context, s space.Instance, c Command) (wait func() (Result, error)) {
	t.Helper()
	var (
		r     Result
		err   error
		first = make(chan struct{})
		once  sync.Once
		done  = make(chan struct{})
	)
	go func() {
		defer close(done)
		r.Exit, err = s.Exec(ctx, h.Permit(c.Action()), []byte(c.Stdin), func(_ string, data []byte) error {
			r.Stdout += string(data)
			if strings.Contains(r.Stdout, "\n") {
				once.Do(func() { close(first) })
			}
			return nil
		})
	}()
	select {
	case <-first:
	case <-done:
		t.Fatalf("%q ended before it printed a line: %+v, %v", c.Argv, r, err)
	}
	return func() (Result, error) {
		<-done
		return r, err
	}
}

// processes lists the processes of a space, as one of its commands sees them, without the init and the command itself.
func (h Host) processes(t *testing.T, s space.Instance, space id.Space) string {
	t.Helper()
	r := h.Exec(t, s, Shell(space, `for p in /proc/[0-9]*; do
		case ${p#/proc/} in 1|$$) ;; *) read -r line <"$p/stat" && printf '%s\n' "$line";; esac
	done 2>/dev/null`))
	return r.Stdout
}

// Run runs the suite.
func Run(t *testing.T, h Host) {
	t.Helper()
	for _, group := range []struct {
		name  string
		cases []testCase
	}{{"commands", commandCases}, {"ends", endCases}, {"bounds", boundCases}, {"permits", permitCases}, {"lives", lifeCases},
		{"shell", shellCases}, {"streams", streamCases}, {"processes", processCases}, {"files", fileCases}, {"lacks", lackCases}} {
		t.Run(group.name, func(t *testing.T) {
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) {
					switch {
					case slices.Contains(h.Unenforced, c.needs):
						t.Logf("left out: this host cannot enforce %s", c.needs)
					case slices.Contains(h.Tier.Lacks(), c.needs):
						t.Logf("left out: the tier has no %s, and says so", c.needs)
					default:
						c.test(t, h)
					}
				})
			}
		})
	}
}

// testCase is one promise.
type testCase struct {
	name  string
	needs string // a bound or a feature without which it cannot be tested
	test  func(*testing.T, Host)
}
