// Package testkit is a daemon's services for tests: real ones, over memory or real drivers, that can be restarted and can crash.
package testkit

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentbox/internal/documents"
	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/frames"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/namespace"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/redaction"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
)

// WS is the workspace of the tests.
const WS = id.DefaultWorkspace

// Options are the parts of a stack. The zero Options, with Program set, make a stack in memory.
type Options struct {
	Program   []byte       // the init's program; see package inittest
	SQLite    bool         // the log, contents and frames on disk instead of in memory
	MaxSpaces int          // 0 means 100
	MaxLimits space.Limits // the zero value means four times the defaults
	Sources   []string     // folders from which spaces may be filled
	Rule      content.Rule // of snapshots
	Content   int64        // the quota of content; 0 for none
	Idle      bool         // the service of runs does not run; its tests run it
	Light     *Light       // a tier beside the real one, weaker than it
	Alone     bool         // the light tier is the only one
	Place     space.Place  // what commands need that the tier has not
	Has       space.Offer  // what the real tier says of itself; the zero Offer says nothing
}

// Stack is the services of one daemon after the other, over the same log and files.
type Stack struct {
	T       testing.TB
	Options Options
	Dir     string
	Clock   *Clock
	IDs     *id.Source
	Owner   id.Principal
	Origin  event.Origin // the owner's

	Log       *Tap // of the daemon that lives
	Docs      projection.Store
	Blobs     blob.Store
	Live      livestream.Store
	Keys      *memory.Keys // under which contents are sealed
	Store     *disk.Spaces
	Tier      *namespace.Tier
	Gate      *gate.Gate
	Identity  *identity.Service
	Spaces    *spaces.Service
	Runs      *runs.Service
	Engines   *engines.Service
	GC        *gc.Service
	Redaction *redaction.Service

	base  journal.Journal // below the tap
	owner string          // of the tier
	first int             // host uid
	stop  func()          // ends the service of runs and waits for it
}

// Open opens a stack and closes it when the test ends.
func Open(t testing.TB, o Options) *Stack {
	t.Helper()
	if o.MaxSpaces == 0 {
		o.MaxSpaces = 100
	}
	if o.MaxLimits == (space.Limits{}) {
		o.MaxLimits = most()
	}
	clock := &Clock{}
	dir := t.TempDir()
	own := event.DigestOf([]byte(dir)) // no two stacks share a host uid or a control group
	s := &Stack{
		T: t, Options: o, Dir: dir, Clock: clock, IDs: id.NewSource(clock.Now, rand.Reader), owner: "kit" + own.Hex()[:12],
	}
	if os.Geteuid() == 0 {
		s.first = 500_000_000 + int(binary.BigEndian.Uint32(own[:])%100_000)*10_000
	}
	s.Keys = memory.NewKeys(rand.Reader)
	s.open()
	t.Cleanup(s.Close)
	return s
}

func most() space.Limits {
	l := space.DefaultLimits()
	return space.Limits{
		MemoryBytes: 4 * l.MemoryBytes, CPUMillis: 4 * l.CPUMillis, Pids: 4 * l.Pids, DiskBytes: 4 * l.DiskBytes,
		FileBytes: 4 * l.FileBytes, OutputBytes: 4 * l.OutputBytes, OpenFiles: 4 * l.OpenFiles, TmpBytes: 4 * l.TmpBytes,
	}
}

func (s *Stack) open() {
	s.T.Helper()
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(s.T.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	s.drivers(ctx)
	s.Log = newTap(s.base)
	var err error
	s.Gate, err = gate.New(gate.Parts{
		Log: s.Log, Docs: s.Docs, Evaluator: cedar.New(), Clock: s.Clock, IDs: s.IDs, System: principal.System,
	})
	s.must(err)
	s.Identity = identity.New(identity.Parts{Log: s.Log, Docs: s.Docs, Gate: s.Gate, Clock: s.Clock, IDs: s.IDs, Entropy: rand.Reader})
	tiers := []space.Tier{offering{s.Tier, s.Options.Has}}
	if s.Options.Light != nil {
		tiers = slices.Insert(tiers, 0, space.Tier(s.Options.Light))
		if s.Options.Alone {
			tiers = tiers[:1]
		}
	}
	s.Spaces = spaces.New(spaces.Parts{
		Log: s.Log, Docs: s.Docs, Gate: s.Gate, Library: s.Gate.Bundles, Store: s.Store, Tiers: tiers, Place: s.Options.Place, Clock: s.Clock,
		IDs:    s.IDs,
		Logger: logger, MaxSpaces: s.Options.MaxSpaces, MaxLimits: s.Options.MaxLimits, FirstUID: s.first, System: principal.System,
		Keys: s.Keys, Entropy: rand.Reader,
	})
	s.Runs = runs.New(runs.Parts{
		Log: s.Log, Docs: s.Docs, Blobs: s.Blobs, Live: s.Live, Gate: s.Gate, Thrown: s.Gate.KillSwitch.Last, Agents: s.Identity,
		Spaces: s.Spaces.Living, Variables: s.Spaces.Variables.Values,
		Routes: s.Spaces.Routing, Bundles: s.Gate.Bundles, Resume: s.Spaces.Pauses.ForRun,
		Clock: s.Clock, IDs: s.IDs, Logger: logger, MaxContent: s.Options.Content,
	})
	s.GC = gc.New(gc.Parts{
		Log: s.Log, Docs: s.Docs, Gate: s.Gate, Blobs: s.Blobs, Live: s.Live, Spaces: s.Store, Rule: s.Options.Rule, Clock: s.Clock,
		Logger: logger, System: principal.System,
	})
	s.Redaction = redaction.New(redaction.Parts{
		Log: s.Log, Bodies: s.base.(journal.Redactor), Docs: s.Docs, Gate: s.Gate, Contents: []vault.Forgetter{s.GC}, Clock: s.Clock,
		Logger: logger, System: principal.System,
	})
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	s.must(err)
	s.Engines = engines.New(engines.Parts{
		Log: s.Log, Docs: s.Docs, Blobs: s.Blobs, MaxContent: s.Options.Content, Gate: s.Gate, Tokens: tokens, Clock: s.Clock, IDs: s.IDs,
		Logger: logger,
		Place:  func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	s.Spaces.SetOccupants(s.Runs)
	s.Gate.KillSwitch.OnHalt(s.Runs.Halt)
	s.Gate.KillSwitch.OnLift(s.Runs.Lifted)
	s.Owner, err = s.Identity.Owner(ctx, WS, "owner")
	s.must(err)
	s.Origin = event.Origin{Principal: s.Owner}
	s.must(s.Spaces.Recover(ctx))
	if !s.Options.Idle {
		s.Run()
	}
}

// offering is a tier that says something else of what it has.
type offering struct {
	space.Tier
	has space.Offer
}

// Offer implements space.Tier.
func (o offering) Offer() space.Offer {
	o.has.Tier = o.Name()
	return o.has
}

// Run runs the service of runs until the daemon ends.
func (s *Stack) Run() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Runs.Run(ctx) }()
	s.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			s.T.Errorf("the service of runs ended with %v", err)
		}
		s.stop = nil
	}
}

// drivers opens what outlives a daemon: on disk anew, in memory once.
func (s *Stack) drivers(ctx context.Context) {
	s.T.Helper()
	var err error
	switch {
	case s.Options.SQLite:
		log, err := sqlite.Open(ctx, sqlite.Options{
			Path: filepath.Join(s.Dir, "log.db"), Definitions: documents.All(), Clock: s.Clock, IDs: s.IDs, Entropy: rand.Reader, Keys: s.Keys,
		})
		s.must(err)
		s.base, s.Docs = log, log
		s.Blobs, err = disk.OpenBlobs(ctx, filepath.Join(s.Dir, "blobs"), s.Keys, rand.Reader)
		s.must(err)
		s.Live, err = frames.Open(filepath.Join(s.Dir, "live"), s.Keys, rand.Reader, s.Clock, 64<<20)
		s.must(err)
	case s.base == nil:
		log, err := memory.NewJournal(documents.All(), s.Clock, s.IDs, rand.Reader)
		s.must(err)
		s.base, s.Docs, s.Blobs, s.Live = log, log, memory.NewBlobs(), memory.NewLivestreams(s.Clock)
	}
	s.Store, err = disk.OpenSpaces(ctx, filepath.Join(s.Dir, "spaces"), s.Keys, rand.Reader, s.Options.Sources...)
	s.must(err)
	s.Tier, err = namespace.New(namespace.Options{Program: s.Options.Program, Root: namespace.HostRoot, Owner: s.owner, Clock: s.Clock})
	s.must(err)
}

// Restart ends the daemon as a signal would, and starts the next one on the same log and files.
func (s *Stack) Restart() {
	s.T.Helper()
	s.end()
	s.open()
}

// Crash ends the daemon as a power failure would: nothing that it still tries reaches the log. Then it starts the next one.
func (s *Stack) Crash() {
	s.T.Helper()
	s.Log.Die()
	s.end()
	s.open()
}

// Close ends the daemon.
func (s *Stack) Close() {
	s.T.Helper()
	s.end()
	if log, ok := s.base.(*memory.Journal); ok {
		s.must(log.Close())
	}
}

func (s *Stack) end() {
	s.T.Helper()
	if s.stop != nil {
		s.stop()
	}
	s.Engines.Evidence.Wait()
	if err := s.Spaces.Living.Close(); err != nil {
		s.T.Errorf("close the spaces: %v", err)
	}
	if err := s.Tier.Close(); err != nil {
		s.T.Errorf("close the tier: %v", err)
	}
	s.must(s.Store.Close()) // a daemon that ends takes its mounts along, however it ends
	if log, ok := s.base.(*sqlite.Journal); ok {
		s.must(log.Close())
	}
}

func (s *Stack) must(err error) {
	s.T.Helper()
	if err != nil {
		s.T.Fatal(err)
	}
}
