package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
)

// noProcess is a number that Linux gives to no process.
const noProcess = 1<<22 + 1

// stepping is the machine's clock. Each wait ends at once, and does the next step before; the waits after the steps are the machine's.
type stepping struct {
	app.Clock
	steps chan func() error
	waits int
	err   error
}

func (s *stepping) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	select {
	case step := <-s.steps:
		s.waits++
		s.err = errors.Join(s.err, step())
		d = 0
	default:
	}
	return s.Clock.NewTimer(d)
}

// left makes a data directory whose lock and address are held. Its daemon.json names a process that had them.
func left(t *testing.T, pid int) (c app.Config, held *datadir.Lock, listener net.Listener) {
	t.Helper()
	c = app.Default(t.TempDir())
	held, err := datadir.Acquire(c.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = held.Close() })
	if listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	c.Listen = listener.Addr().String()
	state, err := json.Marshal(app.State{Address: c.Listen, PID: pid})
	if err == nil {
		err = os.WriteFile(filepath.Join(c.DataDir, "daemon.json"), state, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c, held, listener
}

// TestADaemonFollowsOneThatWasKilledWhileItStartedAProcess: that process holds the lock and the address for a moment longer.
func TestADaemonFollowsOneThatWasKilledWhileItStartedAProcess(t *testing.T) {
	c, held, listener := left(t, noProcess)
	nothing := func() error { return nil }
	clock := &stepping{steps: make(chan func() error, 4)}
	for _, step := range []func() error{nothing, held.Close, nothing, listener.Close} {
		clock.steps <- step
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := app.Up(ctx, c, clock, slog.New(slog.DiscardHandler), func(app.State) { stop() }); err != nil {
		t.Error(err)
	}
	if clock.err != nil || clock.waits != 4 {
		t.Errorf("it waited %d times, %v", clock.waits, clock.err)
	}
}

// TestADaemonDoesNotWaitForOneThatLives: nor for ever for a lock of which nobody says whose it is.
func TestADaemonDoesNotWaitForOneThatLives(t *testing.T) {
	for name, x := range map[string]struct{ pid, waits int }{"lives": {os.Getpid(), 0}, "unknown": {noProcess, 100}} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := left(t, x.pid)
			clock := &stepping{steps: make(chan func() error, 200)}
			for range cap(clock.steps) {
				clock.steps <- func() error { return nil }
			}
			err := app.Up(t.Context(), c, clock, slog.New(slog.DiscardHandler), nil)
			if fault.CodeOf(err) != "data_in_use" || clock.waits != x.waits {
				t.Errorf("got %v after %d waits, want data_in_use after %d", err, clock.waits, x.waits)
			}
		})
	}
}
