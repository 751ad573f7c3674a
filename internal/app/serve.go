package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/reader"
	"agentbox/internal/surface/httpapi"
	"agentbox/internal/surface/httpapi/wire"
)

// State is what daemon.json says about the running daemon.
type State struct {
	Address string    `json:"addr"` // host:port
	PID     int       `json:"pid"`
	Started time.Time `json:"started_at"`
	Version string    `json:"version"`
}

// serve makes the HTTP server; it listens nowhere yet.
func (a *App) serve(ids *id.Source, blobs blob.Store) error {
	services := httpapi.Services{
		Gate: a.Gate, Keeper: a.Keeper, Executor: a.Runs, Reader: reader.New(a.Log), Log: a.Log, Prover: a.Prover, Spool: spool(blobs),
		Checks: []httpapi.Check{{Name: "log", Try: a.writable}, {Name: "tiers", Try: a.spacious}, {Name: "checkpoints", Try: a.Signer.Ready}},
	}
	a.server = httpapi.New(wire.Config{
		Clock: a.clock, IDs: ids, Log: a.logger,
		Authenticate: a.Gate.Authenticate, Rates: a.Config.Rates,
	}, services, Version)
	return nil
}

// writable reports whether the log takes events; one that a write error has shut does not.
func (a *App) writable(ctx context.Context) error {
	head, err := a.Log.Head(ctx, id.DefaultWorkspace)
	if err != nil {
		return err
	}
	ended, end := context.WithCancel(ctx)
	end()
	if err := a.Log.Wait(ended, id.DefaultWorkspace, head); errors.Is(err, journal.ErrClosed) {
		return err
	}
	return nil
}

// spacious reports whether a tier can make a space.
func (a *App) spacious(ctx context.Context) error {
	for _, report := range a.Keeper.Probe(ctx) {
		if report.OK || report.Limited {
			return nil
		}
	}
	return fault.New(fault.Unavailable, "tier_unavailable", "no tier can make spaces on this host; run agentbox doctor")
}

// spool keeps what is uploaded as content, which is what the log's hash of it refers to.
func spool(blobs blob.Store) httpapi.Spool {
	return func(ctx context.Context, r io.Reader, most int64) (io.ReadSeekCloser, event.Digest, int64, error) {
		ref, err := blobs.Put(ctx, r, most)
		if err != nil {
			return nil, event.Digest{}, 0, err
		}
		content, err := blobs.Open(ctx, ref.Digest)
		return content, ref.Digest, ref.Size, err
	}
}

// Run listens, tells ready where, and serves until ctx ends or something that it cannot do without breaks. Then it ends every process of
// every space and returns. The App is closed afterwards.
func (a *App) Run(ctx context.Context, ready func(State)) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	listener, err := net.Listen("tcp", a.Config.Listen)
	if err != nil {
		if errors.Is(err, unix.EADDRINUSE) {
			return fault.New(fault.Conflict, "address_in_use", "another program listens on %s", a.Config.Listen).
				With("name another address with --listen; 127.0.0.1:0 takes a free port, and the other commands find it")
		}
		return fault.Wrap(err, fault.Invalid, "listen_invalid", "the daemon cannot listen on %s", a.Config.Listen)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	part := func(name string, run func(context.Context) error) {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				stop(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("execute runs", a.Runs.Run)
	part("serve the api", func(ctx context.Context) error { return a.server.Run(ctx, listener) })
	part("look at the clock", a.tick)
	part("sign checkpoints", a.sign)
	if len(a.Config.Witnesses) > 0 {
		part("bring checkpoints to witnesses", a.witness)
	}
	state := State{Address: listener.Addr().String(), PID: os.Getpid(), Started: a.clock.Now().UTC(), Version: Version}
	if err := a.writeState(state); err != nil {
		stop(err)
	} else if ready != nil {
		ready(state)
	}
	<-ctx.Done()
	parts.Wait()
	if err := a.Signer.Step(context.WithoutCancel(ctx)); err != nil {
		a.logger.Error("sign the last checkpoint", "error", err)
	}
	_ = os.Remove(a.path(stateFile))
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// tick ends what has expired: spaces and questions.
func (a *App) tick(ctx context.Context) error {
	every(a.clock, ctx.Done(), stepPeriod, func(now time.Time) {
		if err := a.Keeper.Step(ctx, now); err != nil && ctx.Err() == nil {
			a.logger.Error("end what has expired", "error", err)
		}
		if err := a.Gate.Step(ctx, now); err != nil && ctx.Err() == nil {
			a.logger.Error("end questions that have expired", "error", err)
		}
	})
	return nil
}

// writeState says where the daemon is found, in one step, so that nobody reads half of it.
func (a *App) writeState(s State) error {
	raw, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	temp := a.path(stateFile + ".new")
	if err := os.WriteFile(temp, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("say where the daemon listens: %w", err)
	}
	return os.Rename(temp, a.path(stateFile))
}

// owner makes the owner of the default workspace and his key, when the data directory is new. The key lies in a file that only the
// daemon's user can read, and the local command line finds it there.
func (a *App) owner(ctx context.Context) error {
	ws := id.DefaultWorkspace
	owner, err := a.Gate.Owner(ctx, ws, "owner")
	if err != nil {
		return err
	}
	a.Owner = owner
	if raw, err := os.ReadFile(a.path(keyFile)); err == nil {
		if _, err := a.Gate.Authenticate(ctx, string(trim(raw))); err == nil {
			return nil
		}
	}
	bearer, _, err := a.Gate.IssueKey(ctx, event.Origin{Principal: owner}, ws, owner, "local command line")
	if err != nil {
		return err
	}
	temp := a.path(keyFile + ".new")
	if err := os.WriteFile(temp, []byte(bearer+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the owner's key: %w", err)
	}
	return os.Rename(temp, a.path(keyFile))
}

func trim(raw []byte) []byte {
	for len(raw) > 0 && (raw[len(raw)-1] == '\n' || raw[len(raw)-1] == '\r') {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// Close ends every process of every space, closes the log and gives the data directory free. It may be called more than once.
func (a *App) Close() error {
	a.closing.Do(func() {
		var errs []error
		if a.Keeper != nil {
			errs = append(errs, a.Keeper.Close())
		}
		for _, close := range a.closers {
			errs = append(errs, close())
		}
		if a.Log != nil {
			errs = append(errs, a.Log.Close())
		}
		if a.lock != nil {
			errs = append(errs, a.lock.Close())
		}
		a.closed = errors.Join(errs...)
	})
	return a.closed
}
