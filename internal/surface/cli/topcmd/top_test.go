package topcmd

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

// someTop are two looks at spaces of every kind, two seconds apart, with names that would like to be more than names.
func someTop() (before, now client.Top) {
	load := func(memory, pids, cpu int64) *space.Load {
		return &space.Load{MemoryBytes: memory, Pids: pids, CPUMicros: cpu}
	}
	spaces := []client.TopSpace{
		{ID: "spc_1", Name: "weather", Status: space.Running, Memory: 512 << 20, Load: load(80<<20, 7, 1_000_000), Run: &client.TopRun{
			Status: run.Running, Operation: "shell", Summary: "bun run build.ts && " + strings.Repeat("echo very long ", 20), Number: 2, Of: 9,
			Since: termtest.Noon().Add(-90 * time.Second),
		}},
		{ID: "spc_2", Name: "asks\x1b[2J\nfor more than it gets", Status: space.Paused, Memory: 1 << 30, Load: load(3<<20, 1, 5_000),
			Run: &client.TopRun{
				Status: run.AwaitingApproval, Operation: "shell", Summary: "rm -r old", Number: 1, Of: 1, Since: termtest.Noon().Add(-26 * time.Hour),
			}},
		{ID: "spc_3", Name: "天気予報のとても長い名前のスペースです", Status: space.Ready, Memory: 256 << 20},
		{ID: "spc_4", Name: "unmeasured", Status: space.Ready, Memory: 256 << 20, Load: load(-1, -1, -1)},
	}
	before = client.Top{At: termtest.Noon().Add(-2 * time.Second), Head: 100, Decisions: 10, Appends: 50, Spaces: spaces}
	later := slices.Clone(spaces)
	later[0].Load = load(96<<20, 9, 2_500_000)
	later[1].Load = load(3<<20, 1, 5_000)
	return before, client.Top{At: termtest.Noon(), Head: 125, Decisions: 16, Appends: 60, Waiting: 1, Spaces: later}
}

// TestTopKeepsWithinTheScreen draws on screens of every size: no line is wider, and there are no more of them.
func TestTopKeepsWithinTheScreen(t *testing.T) {
	before, now := someTop()
	for wide := 1; wide < 200; wide++ {
		for high := 1; high < 12; high++ {
			lines := rated(before, now).draw(&term.Printer{Out: io.Discard, Width: wide}, order{by: 'm'}, 0, high)
			if len(lines) > high {
				t.Errorf("%d lines on a screen of %d", len(lines), high)
			}
			for _, line := range lines {
				if columns(line) > wide || strings.ContainsAny(line, "\n\x1b") {
					t.Fatalf("%q has %d columns on a screen of %d", line, columns(line), wide)
				}
			}
		}
	}
}

// TestTopRates compares two looks, also those between which the daemon was restarted, and those at the same moment.
func TestTopRates(t *testing.T) {
	before, now := someTop()
	if r := rated(before, now); r.Events != 12.5 || r.Decided != 3 || r.Appended != 5 || r.Spaces[0].Percent != 75 ||
		r.Spaces[1].Percent != 0 || r.Spaces[2].Percent != -1 || r.Spaces[3].Percent != -1 {
		t.Errorf("got %+v", r)
	}
	for name, r := range map[string]topNow{"the same moment": rated(now, now), "a clock that goes back": rated(now, before)} {
		if r.Events != 0 || r.Decided != 0 || r.Spaces[0].Percent > 0 {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// TestTopKeys presses keys: the list moves within its ends, is sorted, and q ends it.
func TestTopKeys(t *testing.T) {
	before, now := someTop()
	v := topView{now: rated(before, now)}
	top := func() string { return v.now.draw(&term.Printer{Out: io.Discard}, v.order, v.skip, 0)[heading] }
	for _, c := range []struct {
		sent  string
		first string // space of the list that is shown
	}{
		{"", "weather"}, {"\x1b[A", "weather"}, {"\x1b[B", "asks"}, {"\x1b[B\x1b[B\x1b[B\x1b[B", "天気"}, {"\x1b[A", "asks"}, {"b", "weather"},
		{" ", "天気"},
		{"n", "asks"}, {"r", "天気"}, {"r", "asks"}, {"c", "weather"}, {"t", "asks"}, {"m", "weather"}, {"p", "weather"}, {"x\x1b", "weather"},
	} {
		for _, key := range pressed([]byte(c.sent)) {
			if v.press(key, 2) {
				t.Fatalf("%q ends", c.sent)
			}
		}
		if !strings.HasPrefix(top(), c.first) {
			t.Errorf("%q: the first is %q, want %q", c.sent, top(), c.first)
		}
	}
	for _, key := range []byte{'q', 3} {
		if !v.press(key, 2) {
			t.Errorf("%d does not end", key)
		}
	}
	var screen bytes.Buffer
	v.show(&term.Printer{Out: &screen, Width: 80}, 10)
	if got := strings.Count(screen.String(), "\r\n"); got != 9 || !strings.Contains(screen.String(), "q ends   sort by: c processor") ||
		strings.HasSuffix(screen.String(), "\n") || !strings.HasPrefix(screen.String(), "\x1b[H") {
		t.Errorf("drawn: %q", screen.String())
	}
}

// TestKeysAreReadUntilTheEnd reads from a terminal that has nothing to say now and then.
func TestKeysAreReadUntilTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	keys := make(chan byte)
	ended := make(chan struct{})
	in := &sayings{left: []string{"", "a", "", "\x1b[B"}}
	go func() {
		defer close(ended)
		readKeys(ctx, in, keys)
	}()
	if a, b := <-keys, <-keys; a != 'a' || b != keyDown {
		t.Errorf("got %d, %d", a, b)
	}
	stop()
	<-ended
}

// sayings is a terminal in which a read without a key answers with the end of the file.
type sayings struct{ left []string }

func (s *sayings) Read(p []byte) (int, error) {
	if len(s.left) == 0 || s.left[0] == "" {
		s.left = s.left[min(1, len(s.left)):]
		return 0, io.EOF
	}
	n := copy(p, s.left[0])
	s.left = s.left[1:]
	return n, nil
}
