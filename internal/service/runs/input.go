package runs

import (
	"context"
	"errors"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// attached is the command of a background run.
type attached struct {
	process space.Process
	op      run.Operation
}

// Input gives commands of background runs input; any goroutine may call Give.
type Input struct {
	*shared
	schedule *schedule

	mu     sync.Mutex
	live   map[id.Run]*attached // the commands of background runs
	starts chan struct{}        // closed when another one of them starts
}

// attach lets callers reach the command of a background run until the returned function is called.
func (x *Input) attach(r id.Run, a *attached) (detach func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.live[r] = a
	close(x.starts)
	x.starts = make(chan struct{})
	return func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.live, r)
	}
}

// Given is an input of a background run's command. Exactly one field is set.
type Given struct {
	Stdin  []byte        // bytes for its standard input
	PTY    []byte        // bytes for its terminal
	Close  bool          // the end of its input
	Signal string        // a signal, one that space.CheckSignal accepts
	Resize *run.Terminal // another size of its terminal
}

// The refusals of Give.
var (
	// ErrInputInvalid refuses an input with no field set, or with several.
	ErrInputInvalid = fault.New(fault.Invalid, "input_invalid", "an input is one of stdin, pty, close, signal and resize").
			With("send one of them; stdin and pty are not empty, and have at most 65536 bytes")
	// ErrNotBackground refuses input for a run that takes none.
	ErrNotBackground = fault.New(fault.Conflict, "run_takes_no_input", "the run takes no such input").
				With("start it with background: true and an operation that has stdin or pty")
	// ErrNotStarted refuses input for a command that does not run yet.
	ErrNotStarted = fault.New(fault.Conflict, "run_not_started", "the command of the run has not started").
			With("wait until the run is running; a question may be open")
)

// kind checks the input and returns its kind.
func (g Given) kind() (string, error) {
	var kinds []string
	for kind, set := range map[string]bool{run.InputStdin: len(g.Stdin) > 0, run.InputPTY: len(g.PTY) > 0, run.InputClose: g.Close,
		run.InputSignal: g.Signal != "", run.InputResize: g.Resize != nil} {
		if set {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 || len(g.Stdin)+len(g.PTY) > space.MaxInputBytes {
		return "", ErrInputInvalid
	}
	if g.Signal != "" {
		return kinds[0], space.CheckSignal(g.Signal)
	}
	if g.Resize != nil {
		return kinds[0], space.TerminalSize(*g.Resize).Check()
	}
	return kinds[0], nil
}

// Give gives the command of a background run input, a signal or another size of its terminal. This needs the right to start the run. It is
// recorded before it is done. It waits for room until ctx ends; then it returns space.ErrInputFull, and nothing was given.
func (x *Input) Give(ctx context.Context, origin event.Origin, ws id.Workspace, runID id.Run, g Given) error {
	doc, err := x.History.Find(ctx, ws, runID)
	if err != nil {
		return err
	}
	kind, err := g.kind()
	if err != nil {
		return err
	}
	input := g.Stdin
	if kind == run.InputPTY {
		input = g.PTY
	}
	s, err := x.mayGive(ctx, origin, doc, input)
	if err != nil {
		return err
	}
	a, err := x.reach(ctx, doc, s, kind)
	if err != nil {
		return err
	}
	record := func() error { return x.given(ctx, origin, doc, kind, input, g) }
	switch kind {
	case run.InputSignal:
		if err = record(); err == nil {
			err = a.process.Signal(g.Signal)
		}
	case run.InputResize:
		if err = record(); err == nil {
			err = a.process.Resize(space.TerminalSize(*g.Resize))
		}
	default:
		err = a.process.Send(ctx, input, record)
	}
	switch {
	case errors.Is(err, space.ErrCommandEnded):
		return ErrEnded
	case errors.Is(err, errGiven):
		return nil
	}
	return err
}

// errGiven means that this input was given before: it is a repeat of the same request.
var errGiven = errors.New("the input was given before")

// mayGive asks the gate whether the principal may give input: this needs the right to start the run.
func (x *Input) mayGive(ctx context.Context, origin event.Origin, doc run.Run, input []byte) (space.Space, error) {
	s, err := x.Spaces.Space(ctx, doc.Workspace, doc.Space)
	if err == nil {
		_, err = x.admit(ctx, origin, s, doc.ID, input)
	}
	return s, err
}

// reach returns the command of a background run that takes an input of that kind. It waits until the command of a run that is under way has
// started.
func (x *Input) reach(ctx context.Context, doc run.Run, s space.Space, kind string) (*attached, error) {
	terminal := kind == run.InputPTY || kind == run.InputResize
	for {
		head, err := x.Log.Head(ctx, doc.Workspace)
		if err != nil {
			return nil, err
		}
		if doc, err = x.History.Find(ctx, doc.Workspace, doc.ID); err != nil {
			return nil, err
		}
		if s, err = x.Spaces.Space(ctx, s.Workspace, s.ID); err != nil { // it may have been promoted meanwhile
			return nil, err
		}
		a, begun, more := x.reached(doc.ID)
		switch {
		case doc.Status.Ended():
			return nil, ErrEnded
		case !doc.Background || terminal && doc.PTY == nil || kind == run.InputStdin && !doc.Stdin || kind == run.InputClose && !doc.Stdin &&
			doc.PTY == nil:
			return nil, ErrNotBackground
		case a != nil:
			return a, nil
		case begun && s.Tier == space.Nano && !(s.Runtime == space.RuntimeAuto && (doc.Stdin || doc.PTY != nil)): // which is being promoted
			return nil, space.LacksProcesses("a command that gets signals while it runs; cancel the run to end it")
		case doc.Status == run.AwaitingApproval:
			return nil, ErrNotStarted
		}
		if x.waits(ctx, doc.Workspace, head, more); ctx.Err() != nil {
			return nil, ErrNotStarted
		}
	}
}

// reached returns the command of a run, or nil; whether an effect of the run is under way; and a channel that closes when another command
// starts.
func (x *Input) reached(r id.Run) (a *attached, begun bool, more <-chan struct{}) {
	begun = x.schedule.underWay(r)
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.live[r], begun, x.starts
}

// waits returns when an event is recorded behind a place of the log, when more is closed, or when ctx ends.
func (x *Input) waits(ctx context.Context, ws id.Workspace, head uint64, more <-chan struct{}) {
	within, end := context.WithCancel(ctx)
	recorded := make(chan struct{})
	go func() {
		defer close(recorded)
		_ = x.Log.Wait(within, ws, head) // the caller looks again, whatever came
	}()
	select {
	case <-recorded:
	case <-more:
	}
	end()
	<-recorded
}

// given records the input. Of bytes, it records their number, and their hash if the hash does not reveal them.
func (x *Input) given(ctx context.Context, origin event.Origin, doc run.Run, kind string, input []byte, g Given) error {
	told := run.Given{Run: doc.ID, Kind: kind, Size: int64(len(input)), Signal: g.Signal, PTY: g.Resize}
	if len(input) >= run.HashedInput {
		told.Digest = ptr(event.DigestOf(input))
	}
	if origin.Correlation == "" {
		origin.Correlation = doc.Correlation
	}
	draft := event.New(run.EventInput, origin, doc.Workspace, doc.Room, told).About(space.EntityType, string(doc.Space)).In(doc.ID, "")
	for {
		now, version, err := x.History.Load(ctx, doc.Workspace, doc.ID)
		if err != nil {
			return err
		}
		if now.Status.Ended() { // nothing of a run follows its end
			return ErrEnded
		}
		receipt, err := x.Log.Append(context.WithoutCancel(ctx), origin.Once(event.Batch{
			Workspace: doc.Workspace, Drafts: []event.Draft{draft},
			Documents: []event.DocumentVersion{{Projection: run.Projection, Key: string(doc.ID), Version: version}},
		}))
		switch {
		case err == nil && receipt.Replayed:
			return errGiven
		case !errors.Is(err, journal.ErrConflict):
			return err
		}
	}
}
