package testkit

import (
	"context"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Light is a tier of the name nano without anything behind it. The text of a command says what it does: `echo TEXT` prints the text, with
// `--context=NAME` a command shows 42 as a text, a table and a picture, and with `--took=TIME` it claims to have taken that long. With
// `# want KIND NAME` at its end any command wants a feature that the tier lacks after it has printed something. `sleep` ends when it is
// ended, and everything else does nothing.
type Light struct {
	Has space.Offer // what it says of itself; the zero Offer says nothing

	mu      sync.Mutex // guards the fields below
	ran     []string
	living  int
	refuses error
}

var (
	_ space.Tier     = (*Light)(nil)
	_ space.Instance = (*lightSpace)(nil)
)

// LightClock is where the clock of every command in the tier begins.
var LightClock = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Ran returns the commands that were tried in the tier, in order, and forgets them.
func (l *Light) Ran() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	ran := l.ran
	l.ran = nil
	return ran
}

// Living is how many spaces of the tier run.
func (l *Light) Living() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.living
}

// Refuse has every space fail to start with an error from now on; nil ends that.
func (l *Light) Refuse(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refuses = err
}

// Name implements space.Tier.
func (l *Light) Name() string { return space.Nano }

// Lacks implements space.Tier.
func (l *Light) Lacks() []string { return []string{space.Binaries, space.Processes} }

// Offer implements space.Tier.
func (l *Light) Offer() space.Offer {
	o := l.Has
	o.Tier = space.Nano
	return o
}

// Probe implements space.Tier.
func (l *Light) Probe(context.Context) space.Report { return space.Report{Tier: space.Nano, OK: true} }

// Try implements space.Tier.
func (l *Light) Try(context.Context) error { return nil }

// Reap implements space.Tier.
func (l *Light) Reap(context.Context, []id.Space) error { return nil }

// Create implements space.Tier.
func (l *Light) Create(_ context.Context, p policy.Permit, spec space.Spec) (space.Instance, error) {
	if _, err := p.Redeem(policy.SpaceStart); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses != nil {
		return nil, l.refuses
	}
	l.living++
	return &lightSpace{light: l, spec: spec, done: make(chan struct{})}, nil
}

type lightSpace struct {
	light *Light
	spec  space.Spec
	done  chan struct{}
	once  sync.Once
}

// Exec implements space.Instance.
func (s *lightSpace) Exec(ctx context.Context, p policy.Permit, _ []byte, out space.Output) (space.Exit, error) {
	a, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return space.Exit{}, err
	}
	s.light.mu.Lock()
	s.light.ran = append(s.light.ran, a.Command)
	s.light.mu.Unlock()
	exit := space.Exit{Gas: int64(len(a.Command)), Seed: "seed of " + a.Operation, Clock: LightClock}
	command, wanted, wants := strings.Cut(a.Command, "# want ")
	words := strings.Fields(command)
	switch {
	case wants:
		if err := out("stdout", []byte("begun\n")); err != nil {
			return exit, err
		}
		kind, name, _ := strings.Cut(wanted, " ")
		lacks := []space.Lack{{Kind: kind, Name: name}}
		if s.spec.Tentative && (s.spec.Elsewhere == nil || s.spec.Elsewhere(lacks[0])) {
			back()
			return space.Exit{}, &space.Lacking{Lacks: lacks}
		}
		exit.Code, exit.Lacks = 127, lacks
	case len(words) > 1 && strings.HasPrefix(words[1], "--took="):
		exit.Duration, err = time.ParseDuration(strings.TrimPrefix(words[1], "--took="))
		return exit, err
	case len(words) > 1 && words[0] == "echo":
		return exit, out("stdout", []byte(strings.Join(words[1:], " ")+"\n"))
	case len(words) > 1 && strings.HasPrefix(words[1], "--context="):
		exit.Displays = lightCell()
		return exit, out("stdout", []byte("42\n"))
	case len(words) > 0 && words[0] == "sleep":
		if err := out("stdout", []byte("waiting\n")); err != nil {
			return exit, err
		}
		select {
		case <-ctx.Done():
			exit.Code, exit.Canceled = 137, true
		case <-s.done:
			return space.Exit{}, context.Canceled
		}
	}
	return exit, nil
}

// Start implements space.Instance.
func (s *lightSpace) Start(_ context.Context, p policy.Permit, _ space.TerminalSize) (space.Process, error) {
	_, back, err := p.Try(policy.ShellExec)
	if err != nil {
		return nil, err
	}
	back()
	return nil, space.LacksProcesses("a command that gets input or signals while it runs")
}

// lightCell is the output of a command in an interpreter context.
func lightCell() []space.Display {
	return []space.Display{
		{Value: 1, Result: true, Type: "int", Media: space.DisplayText, Data: []byte("42")},
		{Value: 1, Result: true, Type: "int", Media: space.DisplayHTML, Data: []byte("<table><tr><td>42</td></tr></table>"), Rows: 1, Columns: 1},
		{Value: 1, Result: true, Type: "int", Media: space.DisplayPNG, Data: []byte("a picture"), Width: 4, Height: 2},
	}
}

// Load implements space.Instance.
func (s *lightSpace) Load() (space.Load, error) { return space.Load{}, nil }

// Usage implements space.Instance.
func (s *lightSpace) Usage(context.Context) (space.Usage, error) { return space.Usage{}, nil }

// Unenforced implements space.Instance.
func (s *lightSpace) Unenforced() []string { return nil }

// Done implements space.Instance.
func (s *lightSpace) Done() <-chan struct{} { return s.done }

// Close implements space.Instance.
func (s *lightSpace) Close() error {
	s.once.Do(func() {
		close(s.done)
		s.light.mu.Lock()
		defer s.light.mu.Unlock()
		s.light.living--
	})
	return nil
}
