// Package simulation is a daemon whose clock, disk, spaces and clients are those of a seed: one seed, one history, the same each time.
//
// The services are the real ones, over the log in memory. Time is that of a synctest bubble: every call of a service on something outside
// takes a moment of its own, drawn from the seed, so that at each instant one goroutine goes on and the order of everything is the seed's.
// Daemons crash, are stopped, and lose appends and calls; spaces die; disks fill up; clients repeat what they have asked, give up, answer
// twice, cancel, and throw the kill switch. Package world counts what was really done.
package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
)

// WS is the workspace of the simulation.
const WS = id.DefaultWorkspace

// History is the result of a seed.
type History struct {
	Seed     uint64
	Lines    []string // what happened, in order
	Wrong    []string // what should not have; empty where all is well
	Daemons  int      // that lived one after the other
	Runs     int
	Effects  int // that were caused in spaces
	Unknown  int // operations whose outcome a crash hid
	Used     int // approvals
	Switched int // times that the kill switch was thrown
	Promoted int // spaces that were taken into a heavier tier

	Events []event.Event // the log at the end
}

// String is the history as text.
func (h History) String() string { return strings.Join(h.Lines, "\n") + "\n" }

// simulation is one history while it happens.
type simulation struct {
	seed  uint64
	began time.Time
	log   *memory.Journal
	blobs blob.Store
	live  livestream.Store
	world *world
	clock *clock
	chaos bool // faults happen; the end of a history has none

	mu      sync.Mutex     // guards the fields below
	drawn   map[string]int // how often was drawn for what
	now     *daemon        // the one that lives, nil between two
	changed chan struct{}
	history History
}

// Simulate plays the history of a seed. It is called in a bubble of synctest.
func Simulate(seed uint64) History {
	s := &simulation{
		seed: seed, began: time.Now(), blobs: memory.NewBlobs(), drawn: map[string]int{}, changed: make(chan struct{}), chaos: true,
	}
	s.history.Seed = seed
	s.clock = &clock{}
	s.live = memory.NewLivestreams(s.clock)
	s.world = newWorld(s)
	var err error
	s.log, err = memory.NewJournal(documents.All(), s.clock, id.NewSource(s.clock.Now, source(seed, "log ids")), source(seed, "log"))
	if err != nil {
		s.wrong("open the log: %v", err)
		return s.history
	}
	s.play()
	if s.history.Events, err = everyEvent(s.log); err != nil {
		s.wrong("read the log: %v", err)
	}
	if err := s.log.Close(); err != nil {
		s.wrong("close the log: %v", err)
	}
	synctest.Wait()
	return s.history
}

// everyEvent returns the whole log.
func everyEvent(log journal.Journal) (all []event.Event, err error) {
	for {
		some, err := log.Read(context.Background(), journal.Query{Workspace: WS, From: uint64(len(all)) + 1, Limit: journal.MaxRead})
		if all = append(all, some...); err != nil || len(some) < journal.MaxRead {
			return all, err
		}
	}
}

// pause lets a moment pass that is the caller's alone.
func (s *simulation) pause(what string, most time.Duration) { time.Sleep(s.moment(what, most)) }

// moment draws a length of time for an action. It depends only on the seed, on the purpose and on how often that was drawn before. So the
// order of actions at the same moment changes nothing.
func (s *simulation) moment(what string, most time.Duration) time.Duration {
	return 1 + time.Duration(s.draw("moment of "+what)%uint64(most))
}

// happens decides whether something with a likelihood happens; nothing does when the history comes to its end.
func (s *simulation) happens(what string, likely float64) bool {
	drawn := s.draw("chance of " + what)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chaos && float64(drawn%1e9)/1e9 < likely
}

func (s *simulation) draw(what string) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn[what]++
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %d", s.seed, what, s.drawn[what]))
	return binary.BigEndian.Uint64(sum[:])
}

func (s *simulation) note(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.Lines = append(s.history.Lines, fmt.Sprintf("%12s  ", time.Since(s.began))+fmt.Sprintf(format, args...))
}

func (s *simulation) wrong(format string, args ...any) {
	s.note("WRONG: "+format, args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.Wrong = append(s.history.Wrong, fmt.Sprintf(format, args...))
}

// dice are the dice of one of those who act.
func dice(seed uint64, name string) *rand.Rand { return rand.New(source(seed, name)) }

// source is the source of random bytes of one of those who draw them.
func source(seed uint64, name string) *bytesOf {
	var key [32]byte
	copy(key[:], fmt.Sprintf("%020d%s", seed, name))
	return &bytesOf{chance: rand.NewChaCha8(key)}
}

// bytesOf is a source of random bytes for any goroutine.
type bytesOf struct {
	mu     sync.Mutex
	chance *rand.ChaCha8
}

// Read implements io.Reader.
func (b *bytesOf) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chance.Read(p)
}

// Uint64 implements rand.Source.
func (b *bytesOf) Uint64() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.chance.Uint64()
}

// clock is the clock of the host: the bubble's time, and whatever somebody has set it wrong by.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

// Now implements event.Clock.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

// NewTimer implements event.Clock.
func (c *clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// set sets the clock wrong.
func (c *clock) set(off time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = off
}
