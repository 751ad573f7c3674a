//go:build linux

package namespace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

var _ space.Pausing = (*instance)(nil)

// Pause implements space.Pausing.
func (s *instance) Pause() (method string, err error) {
	method = space.PausedBySignals
	if s.freezer.file != "" {
		method = space.PausedByFreezer
	}
	err = s.freezer.set(true)
	if err != nil {
		err = fault.Wrap(err, fault.Unavailable, "space_not_paused", "the processes of the space could not be stopped")
	}
	return method, err
}

// Resume implements space.Pausing.
func (s *instance) Resume() error {
	if err := s.freezer.set(false); err != nil {
		return fault.Wrap(err, fault.Unavailable, "space_not_resumed", "the processes of the space could not go on; try again")
	}
	return nil
}

// freezer stops all processes of a space at once: by its group of version 2 where it has one, else by a signal to each.
type freezer struct {
	file      string       // cgroup.freeze of the group; "" for signals
	events    string       // cgroup.events of the group
	processes func() []int // of the space, without the init
	init      int          // the number of the init on the host
	clock     event.Clock

	mu     sync.Mutex
	wanted bool // the space is paused
	except int  // commands that are being ended meanwhile, for which the init has to run
	frozen bool // the processes stand still
	since  time.Time
	stood  time.Duration // how long they have stood still, without the present time
	thawed chan struct{} // closed when they go on; nil while they do
}

// newFreezer returns the freezer of a space that has started.
func (s *instance) newFreezer() *freezer {
	f := &freezer{processes: s.processes, init: s.process.Pid, clock: s.tier.clock}
	if s.group.v2 != "" {
		if file := filepath.Join(s.group.v2, "cgroup.freeze"); unix.Access(file, unix.W_OK) == nil {
			f.file, f.events = file, filepath.Join(s.group.v2, "cgroup.events")
		}
	}
	return f
}

// set stops the processes, or lets them go on.
func (f *freezer) set(paused bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wanted = paused
	err := f.apply()
	if err != nil && paused {
		f.wanted = false
		err = errors.Join(err, f.move(false)) // some of them may stand still
	}
	return err
}

// excuse lets the init run while it ends a command. Where signals stop the processes, the others stand still meanwhile. A group is thawed
// as a whole, so the others run for the few milliseconds that it takes.
func (f *freezer) excuse() (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.except++
	_ = f.apply() // a space that cannot go on is ended by the caller
	f.only(unix.SIGCONT)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.except--
		_ = f.apply() // it stood still before in the same way
		if f.except == 0 {
			f.only(unix.SIGSTOP)
		}
	})
}

// only signals the init alone, where signals have stopped the processes. The caller holds the lock.
func (f *freezer) only(sig unix.Signal) {
	if f.file == "" && f.frozen {
		_ = unix.Kill(f.init, sig) // it has ended, and with it every process
	}
}

// apply stops or continues the processes as wanted. The caller holds the lock.
func (f *freezer) apply() error {
	stop := f.wanted && (f.except == 0 || f.file == "")
	if stop == f.frozen {
		return nil
	}
	if err := f.move(stop); err != nil {
		return err
	}
	now := f.clock.Now()
	if f.frozen = stop; stop {
		f.since, f.thawed = now, make(chan struct{})
		return nil
	}
	f.stood += now.Sub(f.since)
	close(f.thawed)
	f.thawed = nil
	return nil
}

// still returns how long the processes have stood still since the start, and what is closed when they go on; nil if they do.
func (f *freezer) still() (stood time.Duration, thawed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.frozen {
		return f.stood, nil
	}
	return f.stood + f.clock.Now().Sub(f.since), f.thawed
}

// timer is a timer that stands still with the processes.
func (f *freezer) timer(limit time.Duration) (expire <-chan time.Time, stop func()) {
	seen, _ := f.still()
	first, release := f.clock.NewTimer(limit)
	out, over := make(chan time.Time, 1), make(chan struct{})
	go func() {
		for running, release := first, release; ; {
			select {
			case at := <-running:
				release()
				_, thawed := f.still()
				if thawed != nil {
					select {
					case <-thawed:
					case <-over:
						return
					}
				}
				stood, _ := f.still()
				if stood <= seen {
					out <- at
					return
				}
				running, release = f.clock.NewTimer(stood - seen)
				seen = stood
			case <-over:
				release()
				return
			}
		}
	}()
	return out, sync.OnceFunc(func() { close(over) })
}

// move stops the processes or lets them go on, and waits until the kernel has done so.
func (f *freezer) move(stop bool) error {
	if f.file == "" {
		return f.signal(stop)
	}
	value := "0"
	if stop {
		value = "1"
	}
	if err := writeFile(f.file, value); err != nil {
		return err
	}
	return within(func() bool {
		raw, err := os.ReadFile(f.events)
		return err != nil || strings.Contains(string(raw), "frozen "+value)
	})
}

// signal sends SIGSTOP or SIGCONT to every process of the space until each has taken it: one may start others meanwhile. The init comes
// first, for it starts the commands.
func (f *freezer) signal(stop bool) error {
	sig := unix.SIGCONT
	if stop {
		sig = unix.SIGSTOP
	}
	var last error
	err := within(func() bool {
		settled := true
		for _, pid := range append([]int{f.init}, f.processes()...) {
			if stop && pid == f.init && f.except > 0 {
				continue // it ends a command, and is stopped after that
			}
			state := stateOf(pid)
			if state == 0 || state == 'Z' || state == 'X' || (state == 'T' || state == 't') == stop {
				continue
			}
			settled = false
			if err := unix.Kill(pid, sig); err != nil && err != unix.ESRCH {
				last = err
			}
		}
		return settled
	})
	return errors.Join(err, last)
}

// stateOf returns the letter of a process's state; 0 for one that has ended.
func stateOf(pid int) byte {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	if i := bytes.LastIndexByte(raw, ')'); i >= 0 && i+2 < len(raw) { // the name before may hold anything
		return raw[i+2]
	}
	return 0
}

// stoppedWithin is how long the processes of a space may take to stop. One that waits for the disk takes its time.
const stoppedWithin = 5 * time.Second

// within polls a condition until it holds, for a few seconds.
func within(come func() bool) error {
	if come() {
		return nil
	}
	again, end := time.NewTicker(time.Millisecond), time.NewTimer(stoppedWithin)
	defer again.Stop()
	defer end.Stop()
	for {
		select {
		case <-again.C:
			if come() {
				return nil
			}
		case <-end.C:
			return errors.New("the kernel did not do it within " + stoppedWithin.String())
		}
	}
}
