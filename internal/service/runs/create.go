package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Request asks for a run.
type Request struct {
	Workspace id.Workspace
	Space     id.Space
	Agent     string // name of the agent that acts; made if new; "" is the space's own agent
	Title     string // at most 200 characters
	Message   run.Message
	Context   []string // files whose content opens the run's events
	Key       string   // idempotency key; "" for none

	// Waits says that the caller waits until the run ends, so the creation need not be on disk before the run begins.
	Waits bool

	// Under returns the tool call behind the run if an engine asks for it; nil for none. It is called again if something has changed
	// meanwhile.
	Under func(context.Context) (run.Under, error)

	// Background asks for a background run: one shell operation that does not wait in the space's queue. Its command may get input by Give.
	Background bool

	// Unless refuses a space that cannot execute it; nil refuses none.
	Unless func(space.Space) error

	// Artifacts name the files of the space that the run keeps as artifacts when it ends.
	Artifacts run.Patterns

	// Retention is how long the run's data are kept once it has ended, in whole seconds; 0 for as long as those of other runs.
	Retention time.Duration
}

// ErrSpaceNotReady refuses a run in a space that is not there.
var ErrSpaceNotReady = fault.New(fault.Conflict, "space_not_ready", "the space cannot take runs now; it was destroyed or is not made yet")

// ErrOtherAgent refuses an agent that starts a run in the name of another one.
var ErrOtherAgent = fault.New(fault.Denied, "agent_actor_id_mismatch",
	"an agent starts runs of its own or of the space's agent, and of no other").
	With("Leave agent out, or name yourself.")

// check refuses a request that no run can be made of, whatever its space is.
func (q *Request) check() error {
	if utf8.RuneCountInString(q.Title) > 200 {
		return fault.New(fault.Invalid, "validation_failed", "title has more than 200 characters")
	}
	if len(q.Context) > run.MaxContextFiles {
		return fault.New(fault.Invalid, "validation_failed", "context holds %d files; at most %d are allowed", len(q.Context),
			run.MaxContextFiles)
	}
	return q.Artifacts.Check()
}

// Start records a run and puts it into its space's queue. The same key with the same request returns the first run again.
func (x *Service) Start(ctx context.Context, origin event.Origin, q Request) (run.Run, error) {
	s, err := x.Spaces.Space(ctx, q.Workspace, q.Space)
	if err != nil {
		return run.Run{}, err
	}
	if x.Mine != nil && s.Status != space.Destroyed {
		mine, err := x.Mine(ctx, s)
		if err == nil && !mine {
			err = space.ErrFilesMissing // the caller was sent to the daemon that owns it before
		}
		if err != nil {
			return run.Run{}, err
		}
	}
	if q.Under != nil {
		under, err := q.Under(ctx)
		if err != nil {
			return run.Run{}, err
		}
		if under.Child != "" {
			return x.child(ctx, q, under.Child)
		}
	}
	if err := q.check(); err != nil {
		return run.Run{}, err
	}
	message := withContext(q.Message, q.Context)
	var side run.Side
	if q.Background {
		if side, err = run.SideOf(message); err != nil {
			return run.Run{}, err
		}
	}
	input, err := json.Marshal(message)
	if err != nil {
		return run.Run{}, err
	}
	if s.Status == space.Destroyed || s.Status == space.Creating {
		return x.repeated(ctx, origin, q, input, ErrSpaceNotReady)
	}
	release, err := x.reserve(q.Space, q.Background)
	if err != nil {
		return x.repeated(ctx, origin, q, input, err)
	}
	defer release()
	r := id.New[id.Run](x.IDs)
	if err := x.mayForget(ctx, origin, s, r, q.Retention); err != nil {
		return x.repeated(ctx, origin, q, input, err)
	}
	ruling, err := x.admit(ctx, origin, s, r, input) // before anything of a refused run is kept
	if err != nil {
		return run.Run{}, err
	}
	if q.Unless != nil {
		if err := q.Unless(s); err != nil {
			return x.repeated(ctx, origin, q, input, err)
		}
	}
	agent, err := x.Agents.Agent(ctx, origin, q.Workspace, agentName(q, s))
	if err != nil {
		return run.Run{}, err
	}
	if q.Agent != "" && origin.Principal.Kind() == id.Agent && agent != origin.Principal {
		return run.Run{}, ErrOtherAgent
	}
	if x.Room != nil {
		if err := x.Room(); err != nil {
			return x.repeated(ctx, origin, q, input, err)
		}
	}
	if s.Pause != nil && x.Resume != nil {
		if err := x.Resume(ctx, origin, s); err != nil {
			return x.repeated(ctx, origin, q, input, err)
		}
	}
	_, found := leak.Scan(json.RawMessage(input))
	named := run.Input{Digest: event.DigestOf(input), Size: int64(len(input)), Inline: len(input) <= maxInlineInput && len(found) == 0}
	if !named.Inline {
		if err := x.contentRoom(ctx, q.Workspace, int64(len(input))); err != nil {
			return x.repeated(ctx, origin, q, input, err)
		}
		defer x.Blobs.Hold()() // until an event names it
		if _, err := x.Blobs.Put(ctx, bytes.NewReader(input), run.MaxInputBytes); err != nil {
			return run.Run{}, err
		}
	}
	c := &creation{request: q, admitted: ruling, ops: message.Operations, found: found, side: side}
	x.draft(c, origin, s, agent, message, named)
	if doc, recorded, err := x.handOver(ctx, c); recorded {
		return doc, err
	}
	_, receipt, err := x.create(ctx, c, nil)
	if err != nil {
		return run.Run{}, err
	}
	doc, err := x.created(ctx, c, receipt)
	if err != nil || doc.Status.Ended() {
		return doc, err
	}
	e := newEntry(doc, false)
	if named.Inline { // longer ones are not kept in memory while the run waits for its turn
		e.ops = c.ops
	}
	if err := x.enqueue(context.WithoutCancel(ctx), e); err != nil {
		return doc, err
	}
	x.endOrphan(ctx, e)
	return doc, nil
}

// mayForget refuses a retention time that the operator's rules cut short. It also refuses a caller who may not redact, because setting the
// time redacts the run later.
func (x *Service) mayForget(ctx context.Context, origin event.Origin, s space.Space, r id.Run, keep time.Duration) error {
	if keep == 0 {
		return nil
	}
	if keep < run.MinRetention || keep > run.MaxRetention || keep%time.Second != 0 {
		return fault.New(fault.Invalid, "retention_invalid", "the data of a run are kept from %s to %s, in whole seconds", run.MinRetention,
			run.MaxRetention)
	}
	if x.MaxRetention > 0 && keep > x.MaxRetention {
		return run.TooLong(x.MaxRetention)
	}
	ruling, err := x.Gate.Judge(ctx, policy.Action{Type: policy.AuditRedact, Workspace: s.Workspace, Principal: origin.Principal,
		Token: origin.Token, Run: r})
	if err == nil && ruling.Decision.Outcome != policy.Allow {
		err = ruling.Decision.Refusal()
	}
	return err
}

// contentRoom refuses content that the workspace's quota has no room for.
func (x *shared) contentRoom(ctx context.Context, ws id.Workspace, size int64) error {
	used, _, err := projection.Load[content.Usage](ctx, x.Docs, ws, content.Projection, string(ws))
	if err != nil && !errors.Is(err, projection.ErrNotFound) {
		return err
	}
	return used.Room(size, x.MaxContent)
}

// repeated returns the run of an earlier request that this one repeats, and refuses with why if there is none.
func (x *Service) repeated(ctx context.Context, origin event.Origin, q Request, input []byte, why error) (run.Run, error) {
	if q.Key == "" {
		return run.Run{}, why
	}
	events, known, err := journal.Recall(ctx, x.Log, q.Workspace, startKey(q), startDigest(q, event.DigestOf(input)))
	if err != nil {
		return run.Run{}, err
	}
	if !known {
		return run.Run{}, why
	}
	return x.recorded(ctx, q.Workspace, events)
}

// recorded returns the run that the events of a request created.
func (x *Service) recorded(ctx context.Context, ws id.Workspace, events []event.Event) (run.Run, error) {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == run.EventCreated })
	if i < 0 {
		return run.Run{}, fault.New(fault.Internal, "event_missing", "the log did not return the run's creation")
	}
	return x.History.Find(ctx, ws, events[i].Run)
}

// admit asks whether the principal may start the run.
func (x *shared) admit(ctx context.Context, origin event.Origin, s space.Space, r id.Run, input []byte) (policy.Ruling, error) {
	ruling, err := x.Gate.Judge(ctx, policy.Action{
		Type: policy.RunStart, Workspace: s.Workspace, Room: s.Room, Principal: origin.Principal, Token: origin.Token, Space: s.ID, Run: r,
		Content: event.DigestOf(input), Size: int64(len(input)), Bundle: s.Bundle,
	})
	if err == nil && ruling.Decision.Outcome != policy.Allow {
		err = ruling.Decision.Refusal()
	}
	return ruling, err
}

func outline(op run.Operation) run.Outline {
	return run.Outline{ID: op.ID, Type: op.Type, Summary: op.Summary(), Context: op.Context}
}

func startKey(q Request) string { return "run:" + string(q.Space) + ":" + q.Key }

func startDigest(q Request, input event.Digest) event.Digest {
	asked := []string{string(q.Space), q.Agent, q.Title, input.String()}
	if q.Retention != 0 {
		asked = append(asked, q.Retention.String())
	}
	if q.Background {
		asked = append(asked, "background")
	}
	if len(q.Artifacts) > 0 {
		asked = append(append(asked, "artifacts"), q.Artifacts...)
	}
	raw, _ := json.Marshal(asked)
	return event.DigestOf(raw)
}

func agentName(q Request, s space.Space) string {
	if q.Agent != "" {
		return q.Agent
	}
	return principal.SpaceAgent + string(s.ID)
}

// withContext puts the reading of the context files before the operations.
func withContext(m run.Message, files []string) run.Message {
	ops := make([]run.Operation, 0, len(files)+len(m.Operations))
	for i, path := range files {
		ops = append(ops, run.Operation{Type: run.OpReadFile, ID: contextID(m, i), Path: path, Context: true})
	}
	m.Operations = append(ops, m.Operations...)
	return m
}

// contextID names the reading of a context file so that no operation of the message has that name.
func contextID(m run.Message, i int) string {
	name := "context-" + strconv.Itoa(i+1)
	for slices.ContainsFunc(m.Operations, func(op run.Operation) bool { return op.ID == name }) {
		name = "~" + name
	}
	return name
}
