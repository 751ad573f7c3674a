//go:build linux

package namespace

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/space"
)

// stepped is a clock whose time and timers go on by hand.
type stepped struct {
	mu     sync.Mutex
	now    time.Time
	timers chan stepTimer
}

type stepTimer struct {
	after time.Duration
	fire  chan time.Time
}

func (c *stepped) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *stepped) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	fire := make(chan time.Time, 1)
	c.timers <- stepTimer{d, fire}
	return fire, func() {}
}

func (c *stepped) move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// frozen returns a freezer of a group of version 2 that does at once what it is told, and what its file says.
func frozen(t *testing.T, clock *stepped) (f *freezer, said func() string) {
	t.Helper()
	dir := t.TempDir()
	f = &freezer{file: filepath.Join(dir, "cgroup.freeze"), events: filepath.Join(dir, "cgroup.events"), clock: clock}
	for name, text := range map[string]string{f.file: "0", f.events: "populated 1\nfrozen 0\nfrozen 1\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f, func() string {
		raw, err := os.ReadFile(f.file)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
}

// The group of a paused space is thawed while a command is ended, and frozen again after the last one.
func TestFreezeByGroup(t *testing.T) {
	f, said := frozen(t, &stepped{})
	s := &instance{freezer: f}
	if method, err := s.Pause(); err != nil || method != space.PausedByFreezer || said() != "1" {
		t.Fatalf("paused: got %q, %v, the file says %q", method, err, said())
	}
	first, second := f.excuse(), f.excuse()
	if said() != "0" {
		t.Error("it is frozen while commands are ended")
	}
	first()
	first()
	if said() != "0" {
		t.Error("it is frozen while a command is ended")
	}
	if second(); said() != "1" {
		t.Error("it is not frozen after the commands were ended")
	}
	done := f.excuse()
	if err := s.Resume(); err != nil || said() != "0" {
		t.Errorf("resumed: %v, the file says %q", err, said())
	}
	if done(); said() != "0" {
		t.Error("a resumed space is frozen again")
	}
	if err := os.Remove(f.file); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Pause(); err == nil || f.frozen {
		t.Errorf("without its file: %v, frozen is %t", err, f.frozen)
	}
}

// A timer of a command fires after the time in which the space did not stand still.
func TestTheTimerStandsStill(t *testing.T) {
	clock := &stepped{timers: make(chan stepTimer, 1)}
	f, _ := frozen(t, clock)
	expire, stop := f.timer(10 * time.Second)
	defer stop()
	first := <-clock.timers
	clock.move(4 * time.Second)
	if err := f.set(true); err != nil {
		t.Fatal(err)
	}
	clock.move(6 * time.Second)
	first.fire <- clock.Now() // while it stands still
	clock.move(30 * time.Second)
	if err := f.set(false); err != nil {
		t.Fatal(err)
	}
	second := <-clock.timers
	if first.after != 10*time.Second || second.after != 36*time.Second {
		t.Errorf("it ran for %s and then for %s; want 10s, and 36s, as long as it stood still", first.after, second.after)
	}
	select {
	case <-expire:
		t.Error("it fired while the space stood still")
	default:
	}
	second.fire <- clock.Now()
	<-expire
}
