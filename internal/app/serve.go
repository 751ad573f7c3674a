package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi"
	"agentbox/internal/surface/httpapi/hostapi"
	"agentbox/internal/surface/httpapi/wire"
)

// upkeep is the work that goes on while a daemon serves, each part in a loop of its own.
type upkeep struct {
	app    *App
	proofs *trees.Store
	sizes  sizes
	models fileWatch
	prices fileWatch
}

// State is the content of daemon.json, about the running daemon.
type State struct {
	Address string    `json:"addr"` // host:port
	PID     int       `json:"pid"`
	Started time.Time `json:"started_at"`
	Version string    `json:"version"`
	Phase   string    `json:"phase,omitempty"` // the daemon's current step before it can work, as in "opens the log"; "" once it can
	// the interpreters of nano spaces were never compiled on this machine; that begins in the background
	Cold bool `json:"-"`
}

// tiersAge is how long it is believed that a tier works that worked: a space is started to find out.
const tiersAge = 10 * time.Minute

// serve makes the HTTP server; it listens nowhere yet.
func (a *App) serve(ids *id.Source, blobs *disk.Blobs) error {
	rates := a.Config.Rates
	if rates == (wire.Rates{}) {
		var err error
		if rates, err = wire.ParseRates(a.Config.RateRules); err != nil {
			return err
		}
	}
	services := httpapi.Services{
		Gate:    a.Gate,
		Spaces:  a.Spaces,
		Ports:   a.Ports,
		Runs:    a.Runs,
		Engines: a.Engines,
		Rooms:   a.Rooms, Workspaces: a.Workspaces, Search: a.Search,
		Query:        query.New(a.Log, Definitions()...),
		Log:          a.Log,
		Prover:       a.Prover,
		Redaction:    a.Redaction,
		Transfer:     a.Transfer,
		Outside:      a.Outside,
		MaxWorkspace: a.Config.MaxWorkspace,
		GC:           a.GC,
		Spool:        blobs.Spool,
		Identity:     a.Identity,
		Incidents:    a.Incidents,
		Nodes:        a.Nodes,
		Labels:       a.Labels,
		Blueprints:   a.Blueprints,
		Servers:      a.Servers,
		Models:       a.Models,
		FileProblems: a.fileProblems,
		Agents:       a.engine.Starter(),
		Docs:         a.Log,
		Metrics:      a.metrics.Handler(),
		Tally:        func(ws id.Workspace) hostapi.Tally { return hostapi.Tally(a.metrics.Tally(ws)) },
		Checks: []hostapi.Check{
			{Name: "log", Try: a.writable, Keep: time.Second}, {Name: "tiers", Try: a.tryTiers, Keep: tiersAge},
			{Name: "checkpoints", Try: a.Signer.Ready, Keep: time.Second},
			{Name: "disk", Try: func(context.Context) error { return blobs.Room() }, Keep: time.Second},
		},
	}
	beside, sandboxes, err := a.beside(ids)
	if err != nil {
		return err
	}
	services.OpenToken = func(s id.Space, token string) (string, bool) { return sandboxes.Open(string(s), token) }
	a.server = httpapi.New(wire.Config{
		Beside: beside,
		Clock:  a.clock, IDs: ids, Log: a.logger,
		Authenticate: a.Identity.Authenticate, AuthenticateEngine: a.Identity.AuthenticateEngine, Rates: rates, Observer: observer{a.metrics,
			a.tracer},
		Hosts: a.Config.hosts(), Elsewhere: a.together.elsewhere(),
	}, services, Version)
	return nil
}

// writable reports whether the log takes events; one that a write error has shut does not, until it is opened again.
func (a *App) writable(ctx context.Context) error {
	return errors.Join(a.Log.Writable(), ctx.Err())
}

// Run listens, tells ready where, and serves until ctx ends or something that it cannot do without breaks. Then it ends every process of
// every space and returns. The App is closed afterwards.
func (a *App) Run(ctx context.Context, ready func(State)) (err error) {
	defer func() { err = errors.Join(err, a.Close()) }()
	var listener net.Listener
	if a.early != nil {
		listener, err = a.early.handOver()
	} else {
		listener, err = a.bind(ctx)
	}
	if err != nil {
		return err
	}
	a.serving = listener.Addr().String()
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
	if a.Config.Engine != EngineExternal {
		part("execute runs that wait for an engine", a.engine.Work)
		part("execute runs of agents", a.engine.WorkOnAgents)
	}
	part("serve the api", func(ctx context.Context) error { return a.server.Run(ctx, listener) })
	part("end spaces that have expired", a.upkeep.tick)
	part("read the files about models again", func(ctx context.Context) error {
		every(a.clock, ctx.Done(), stepPeriod, func(time.Time) {
			a.upkeep.models.step(ctx)
			a.upkeep.prices.step(ctx)
		})
		return nil
	})
	part("close ports", func(ctx context.Context) error {
		<-ctx.Done()
		a.Ports.Stop(context.WithoutCancel(ctx))
		return nil
	})
	part("sweep", a.upkeep.sweep)
	part("make snapshots durable", a.upkeep.syncSnapshots)
	part("take what was said into the index", a.upkeep.index)
	part("watch over the data directory", a.upkeep.watch)
	part("open the log again", a.upkeep.mend)
	if a.reign != nil {
		part("hold the database", a.holdStore)
	}
	part("measure the data directory", a.upkeep.measureData)
	part("give memory back", a.upkeep.releaseMemory)
	if a.together.member != nil {
		part("follow what other daemons say", a.Gate.KillSwitch.Follow)
		part("lead", a.together.lead)
		if err := a.together.member.Together.Advertise(ctx, a.together.advertised()); err != nil {
			stop(err)
		}
	} else {
		for name, run := range a.upkeep.alone() {
			part(name, run)
		}
	}
	state := a.state(listener, "")
	state.Cold = a.nano != nil && a.nano.Cold()
	if err := a.dir.write(stateFile, state); err != nil {
		stop(err)
	} else if ready != nil {
		ready(state)
	}
	a.upkeep.tellOfSwitches(ctx)
	<-ctx.Done()
	parts.Wait()
	a.settle()
	if a.together.member == nil {
		a.upkeep.lastCheckpoint(ctx)
	}
	_ = os.Remove(a.path(stateFile))
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// tellOfSwitches warns of kill switches that are on: the operator would wonder why nothing is done.
func (up *upkeep) tellOfSwitches(ctx context.Context) {
	workspaces, err := up.app.Log.Workspaces(ctx)
	if err != nil {
		return // the error is reported where the log is used
	}
	for _, ws := range workspaces {
		if k, err := up.app.Gate.KillSwitch.State(ctx, ws); err == nil && k.On {
			up.app.logger.Warn("the kill switch is on: no effect is permitted until somebody lifts it with agentbox kill-switch off", "code",
				"kill_switch_on", "workspace", string(ws))
		}
	}
}

// alone are the parts of what only one daemon of a log does.
func (up *upkeep) alone() map[string]func(context.Context) error {
	parts := map[string]func(context.Context) error{
		"sign checkpoints": up.sign, "forget what is past its time": up.forget, "end questions that have expired": up.expire,
	}
	if len(up.app.Config.Witnesses) > 0 {
		parts["bring checkpoints to witnesses"] = up.witness
	}
	return parts
}

// lastCheckpoint signs the last events, after which nothing more is recorded.
func (up *upkeep) lastCheckpoint(ctx context.Context) {
	if err := up.app.Signer.Step(context.WithoutCancel(ctx)); err != nil {
		up.app.logger.Error("sign the last checkpoint", "code", "last_checkpoint_not_signed", "error", err)
	}
}

// watch ends the daemon when the files of its log are taken from under it.
func (up *upkeep) watch(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	every(up.app.clock, ctx.Done(), stepPeriod, func(time.Time) {
		if err := up.app.dir.step(context.WithoutCancel(ctx), up.app.Log); fault.CodeOf(err) == "log_moved" {
			stop(err)
		} else if err != nil {
			up.app.logger.Error("write down how far the log has come", "code", "head_not_noted", "error", err)
		}
	})
	if cause := context.Cause(ctx); fault.CodeOf(cause) == "log_moved" {
		return cause
	}
	return nil
}

// index adds new events of the log to the index, so that searches need not wait for it.
func (up *upkeep) index(ctx context.Context) error {
	every(up.app.clock, ctx.Done(), stepPeriod, func(time.Time) {
		if err := up.app.Search.Step(ctx); err != nil && ctx.Err() == nil {
			up.app.logger.Error("take what is new into the index", "code", "index_not_current", "error", err)
		}
	})
	return nil
}

// mend opens the log again where a write error has shut it and the disk is well again.
func (up *upkeep) mend(ctx context.Context) error {
	shut := false
	every(up.app.clock, ctx.Done(), stepPeriod, func(time.Time) {
		why := up.app.Log.Writable()
		if why != nil && !shut {
			shut = true
			up.app.logger.Error("the log is shut", "code", "log_shut", "error", errors.Unwrap(why))
		}
		if !shut || ctx.Err() != nil {
			return
		}
		if err := up.app.Log.Mend(ctx); err != nil {
			return // the next step tries again; readiness shows the state
		}
		shut = false
		up.app.logger.Warn("the log is open again", "code", "log_mended")
	})
	return nil
}

// syncSnapshots makes the snapshots of spaces durable, beside the operations that make them.
func (up *upkeep) syncSnapshots(ctx context.Context) error {
	every(up.app.clock, ctx.Done(), stepPeriod, func(time.Time) {
		if err := up.app.Spaces.Snapshots.Sync(ctx); err != nil && ctx.Err() == nil {
			up.app.logger.Error("make snapshots durable", "code", "snapshots_not_durable", "error", err)
		}
	})
	return nil
}

// sweep frees what nothing names, for the first time when the daemon has been up for ten minutes.
func (up *upkeep) sweep(ctx context.Context) error {
	const wait = 10 * time.Minute
	n := 0
	every(up.app.clock, ctx.Done(), wait, func(reading time.Time) {
		if now, _ := up.app.steady.at(reading); reading.Sub(now) > jump {
			return // nothing is freed by a clock that is not believed
		}
		if n++; n%int(gc.Every/wait) != 2 {
			return
		}
		if err := up.app.GC.Step(ctx, id.DefaultWorkspace, up.app.Owner); err != nil && ctx.Err() == nil {
			up.app.logger.Error("sweep", "code", "sweep_failed", "error", err)
		}
	})
	return nil
}

// forget redacts data whose retention has ended, and finishes redactions that another program held up.
func (up *upkeep) forget(ctx context.Context) error {
	finished := up.app.clock.Now()
	up.steadily(ctx.Done(), func(now time.Time) {
		err := up.app.Redaction.Step(ctx, now)
		if now.Sub(finished) >= time.Minute {
			err = errors.Join(err, up.app.Redaction.Recover(ctx))
			finished = now
		}
		if err != nil && ctx.Err() == nil {
			up.app.logger.Error("forget what is past its time", "code", "retention_failed", "error", err)
		}
	})
	return nil
}

// expire ends questions that nobody has answered in time.
func (up *upkeep) expire(ctx context.Context) error {
	up.steadily(ctx.Done(), func(now time.Time) {
		if err := up.app.Gate.Approvals.Step(ctx, now); err != nil && ctx.Err() == nil {
			up.app.logger.Error("end questions that have expired", "code", "questions_not_expired", "error", err)
		}
	})
	return nil
}

// tick ends the spaces that have expired.
func (up *upkeep) tick(ctx context.Context) error {
	up.steadily(ctx.Done(), func(now time.Time) {
		if err := up.app.Spaces.Ending.Step(ctx, now); err != nil && ctx.Err() == nil {
			up.app.logger.Error("end what has expired", "code", "spaces_not_expired", "error", err)
		}
		if err := up.app.Ports.Step(ctx, now); err != nil && ctx.Err() == nil {
			up.app.logger.Error("close ports that are over", "code", "ports_not_closed", "error", err)
		}
	})
	return nil
}

// owner makes the owner of the default workspace and the owner's key if the data directory is new. Only the daemon's user can read the key
// file. The local command line reads the key from it.
func (a *App) owner(ctx context.Context) error {
	ws := id.DefaultWorkspace
	owner, err := a.Identity.Owner(ctx, ws, "owner")
	if err != nil {
		return err
	}
	a.Owner = owner
	known, err := a.ownerKey(ctx)
	if err != nil || known {
		return err
	}
	bearer, _, err := a.Identity.IssueKey(ctx, event.Origin{Principal: owner}, ws, owner, "local command line")
	if err != nil {
		return err
	}
	if err := trees.Replace(a.path(keyFile), []byte(bearer+"\n"), 0o600); err != nil { // a power cut takes nothing of it
		return datadir.Unwritable(err, a.Config.DataDir)
	}
	return nil
}

// ownerKey reports whether the key file holds a valid key. It refuses a key that others could read, because its reader is the owner.
func (a *App) ownerKey(ctx context.Context) (bool, error) {
	info, err := datadir.Regular(a.path(keyFile))
	if err != nil || info == nil {
		return false, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return false, fault.New(fault.Denied, "key_exposed", "%s can be read by other users (mode %04o)", a.path(keyFile), info.Mode().Perm()).
			With("if nobody has read it, chmod 600 it; else remove it, and the next start makes a new key")
	}
	raw, err := readSmall(a.path(keyFile))
	if err != nil {
		return false, datadir.Unwritable(err, a.Config.DataDir)
	}
	_, err = a.Identity.Authenticate(ctx, string(trim(raw)))
	return err == nil, nil
}

func trim(raw []byte) []byte {
	for len(raw) > 0 && (raw[len(raw)-1] == '\n' || raw[len(raw)-1] == '\r') {
		raw = raw[:len(raw)-1]
	}
	return raw
}

// settleTime is how long the daemon waits for the evidence of ended runs before it closes the log: the database may be away.
const settleTime = 5 * time.Second

// settle waits until the evidence of every ended run is collected, at most settleTime. The returned channel closes when that is so, or when
// the log is closed.
func (a *App) settle() <-chan struct{} {
	settled := make(chan struct{})
	if a.Engines == nil {
		close(settled)
		return settled
	}
	go func() {
		defer close(settled)
		a.Engines.Evidence.Wait()
	}()
	late, stop := a.clock.NewTimer(settleTime)
	defer stop()
	select {
	case <-settled:
	case <-late:
		a.logger.Warn("the evidence of runs that have ended is left to who asks for it", "code", "evidence_not_awaited")
	}
	return settled
}

// Close ends every process of every space, closes the log and gives the data directory free. It may be called more than once.
func (a *App) Close() error {
	a.closing.Do(func() {
		var errs []error
		if a.early != nil {
			errs = append(errs, a.early.Close())
			_ = os.Remove(a.path(stateFile))
		}
		settled := a.settle()
		if a.Spaces != nil {
			a.Spaces.Watches.Close()
			errs = append(errs, a.Spaces.Living.Close())
		}
		for _, close := range a.closers {
			errs = append(errs, close())
		}
		if a.Log != nil {
			if a.opened {
				if err := a.dir.step(context.Background(), a.Log); fault.CodeOf(err) != "log_moved" {
					errs = append(errs, err) // else it was said already
				}
			}
			errs = append(errs, a.Log.Close())
		}
		<-settled
		for _, taken := range []*datadir.Lock{a.together.shared, a.claim} {
			if taken != nil {
				errs = append(errs, taken.Close())
			}
		}
		a.closed = errors.Join(errs...)
	})
	return a.closed
}
