package localengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runner"
	"agentbox/internal/service/spaces"
)

// WorkOnAgents executes runs of the kind errand.Agent until ctx ends.
func (e *Engine) WorkOnAgents(ctx context.Context) error {
	d := &agentDesk{
		desk: &desk{Engine: e, work: errand.Agent, most: agentWorkspaceHands, held: map[id.Workspace]int{}}, told: map[id.Run]map[string]bool{},
	}
	loop := &agents.Loop{
		Records: d, Models: e.Models, Clock: e.Clock, Logger: e.Logger, Tools: e.tools, Prepare: prepareTool,
		Read: func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, event.Digest, error) {
			b, source, err := e.Blueprints.Read(ctx, ws, name, version)
			return b, source.Locked, err
		},
	}
	loop.Earlier, loop.Picture = d.earlier, e.picture
	if !e.Floating {
		loop.Pins = e.Blueprints.Pins
	}
	d.runner = &runner.Runner{Claims: d, Perform: performer(d, loop), Clock: e.Clock, Logger: e.Logger, Hands: agentHands, Done: d.left}
	return d.runner.Run(ctx)
}

// Starter begins the runs of agents.
func (e *Engine) Starter() *agents.Starter {
	return &agents.Starter{
		Read: func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, int, event.Digest, error) {
			entry, err := e.Blueprints.Get(ctx, ws, name)
			if err == nil && !entry.Living() {
				err = blueprint.ErrRemoved
			}
			if err != nil {
				return blueprint.Blueprint{}, 0, event.Digest{}, err
			}
			b, source, err := e.Blueprints.Read(ctx, ws, name, version)
			return b, source.Version, source.Locked, err
		},
		Drift: e.Blueprints.Verify, Pins: e.Blueprints.Pins, Tools: e.tools, Space: e.makeSpace, Thread: e.beginThread,
		Floating: e.Floating, External: startExternal,
		NoTools: func(ctx context.Context, ws id.Workspace, name string) (bool, error) {
			held, err := e.Models.Get(ctx, ws, name)
			return held.NoTools, err
		},
		NoImages: func(ctx context.Context, ws id.Workspace, name string) (bool, error) {
			held, err := e.Models.Get(ctx, ws, name)
			return !held.TakesImages(), err
		},
		Before: e.mission,
		Create: func(ctx context.Context, origin event.Origin, t agents.Task, input json.RawMessage) (run.Run, error) {
			return e.Engines.Create(ctx, origin, requestOf(t, input))
		},
	}
}

func requestOf(t agents.Task, input json.RawMessage) engines.Request {
	q := engines.Request{Workspace: t.Workspace, Room: t.Room, Thread: t.Thread, Title: t.Title, Input: input}
	for _, p := range t.Pictures {
		q.Files = append(q.Files, engines.File{Title: cmp.Or(p.Name, "picture"), Media: model.MediaOf(p.Data), Content: p.Data})
	}
	return q
}

// picture returns the content of a picture of a task.
func (e *Engine) picture(ctx context.Context, _ id.Workspace, digest event.Digest) ([]byte, error) {
	stored, err := e.Engines.Blobs.Open(ctx, digest)
	if kind := fault.KindOf(err); err != nil && (kind == fault.NotFound || errors.Is(err, blob.ErrNotFound)) {
		return nil, errand.ErrForgotten
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = stored.Close() }()
	return io.ReadAll(io.LimitReader(stored, model.MaxImage+1))
}

// makeSpace makes the space in which an agent works, as its blueprint says.
func (e *Engine) makeSpace(ctx context.Context, origin event.Origin, t agents.Task, b blueprint.Blueprint) (id.Space, id.Room, error) {
	wanted := b.Effective()
	if wanted.Adapter.Kind == blueprint.ExternalCLI && wanted.Space.Tier == space.RuntimeAuto {
		wanted.Space.Tier = space.RuntimeHeavy
	}
	_, overrides, err := e.Gate.Bundles.Adjust(wanted.Policy, b.Adjustment())
	if err != nil {
		return "", "", err
	}
	origin.Key, origin.Command = "", event.Digest{} // the request's own key is that of the run
	key := ""
	if t.Key != "" {
		key = "agent:" + t.Key
	}
	made, err := e.Spaces.Creation.Create(ctx, origin, spaces.Request{
		Workspace: t.Workspace, Room: t.Room, Description: "made for the agent " + b.Name, Preset: wanted.Policy,
		Overrides: overrides, Runtime: wanted.Space.Tier, Env: wanted.Space.Env, TTL: time.Duration(wanted.Space.TTL) * time.Second, Key: key,
		Limits: space.Limits{MemoryBytes: int64(wanted.Space.MemoryMB) << 20, DiskBytes: int64(wanted.Space.DiskMB) << 20},
	})
	return made.ID, made.Room, err
}

// beginThread begins the thread in which people talk to an agent. It returns "" if the requester may not begin one.
func (e *Engine) beginThread(ctx context.Context, origin event.Origin, t agents.Task) (id.Thread, error) {
	origin.Key, origin.Command = "", event.Digest{} // the request's own key is that of the run
	made, err := e.Rooms.CreateThread(ctx, origin, t.Workspace, cmp.Or(t.Room, id.DefaultRoom), room.ThreadCreated{
		Title: "agent " + t.Blueprint,
	})
	if kind := fault.KindOf(err); kind == fault.Denied || kind == fault.Waiting {
		return "", nil
	}
	return made.ID, err
}

// agentDesk implements the records of the loop.
type agentDesk struct {
	*desk
	runner *runner.Runner // also works on sub-agents

	mu   sync.Mutex                 // guards told
	told map[id.Run]map[string]bool // the refusals and questions that the viewers of a run have got
}

var _ agents.Records = (*agentDesk)(nil)

// pages reads all pages of a list.
func pages[T any](read func(after string, limit int) ([]T, error), key func(T) string, each func(T)) error {
	const page = 1000
	for after := ""; ; {
		found, err := read(after, page)
		if err != nil {
			return err
		}
		for _, one := range found {
			after = key(one)
			each(one)
		}
		if len(found) < page {
			return nil
		}
	}
}

// Past implements agents.Records.
func (d *agentDesk) Past(ctx context.Context, w errand.Work) (map[int]errand.PastTurn, error) {
	of, look := engines.Of{Run: w.Run}, d.Engines.Look
	calls := map[id.Step]map[int]errand.Progress{}
	newest := map[id.Step]map[int]id.ToolCall{}
	var forgotten error // without the record nobody knows what was done
	err := pages(func(after string, limit int) ([]step.Call, error) {
		return look.Calls(ctx, w.Workspace, of, after, limit)
	},
		func(c step.Call) string { return string(c.ID) }, func(c step.Call) {
			var at errand.TurnCall
			if c.Redacted || json.Unmarshal(c.Input, &at) != nil {
				forgotten = errand.ErrForgotten
				return
			}
			if calls[c.Step] == nil {
				calls[c.Step], newest[c.Step] = map[int]errand.Progress{}, map[int]id.ToolCall{}
			}
			if c.ID < newest[c.Step][at.Index] {
				return
			}
			newest[c.Step][at.Index] = c.ID
			calls[c.Step][at.Index] = errand.Recorded(c.Step, c.Input, errand.Call{ID: c.ID, Status: string(c.Status),
				OK: c.Status == step.Succeeded, Child: c.Child, Output: c.Output, Error: c.Error})
		})
	if err != nil {
		return nil, err
	}
	past := map[int]errand.PastTurn{}
	err = pages(func(after string, limit int) ([]step.Step, error) {
		return look.Steps(ctx, w.Workspace, of, after, limit)
	},
		func(s step.Step) string { return string(s.ID) }, func(s step.Step) {
			var turn errand.Turn
			if s.Kind != errand.TurnKind {
				return
			}
			if s.Redacted || json.Unmarshal(s.Input, &turn) != nil {
				forgotten = errand.ErrForgotten
				return
			}
			if before, twice := past[turn.Number]; !twice || len(before.Calls) == 0 && (len(calls[s.ID]) > 0 || s.ID < before.Step) {
				past[turn.Number] = errand.PastTurn{Turn: turn, Step: s.ID, Calls: calls[s.ID]}
			}
		})
	return past, cmp.Or(err, forgotten)
}

// saidWithheld stands for a message that labels keep from the requester of the run. It counts as a message, so that a label that is set
// later changes the place of no other one.
const saidWithheld = "[A person has written a message that this run may not show you.]"

// Heard implements agents.Records: what people post in the run's thread after it was made, as far as the requester of the run may see it.
func (d *agentDesk) Heard(ctx context.Context, w errand.Work, after int) ([]string, error) {
	doc, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	if err != nil || doc.Thread == "" {
		return nil, err
	}
	sight, err := d.Labels.Sight(ctx, w.Workspace, doc.CreatedBy)
	if err != nil {
		return nil, err
	}
	const page = 100
	var said []string
	for before := id.Message(""); ; {
		found, err := d.Rooms.Messages(ctx, w.Workspace, doc.Thread, before, page)
		if err != nil {
			return nil, err
		}
		old := false
		for _, m := range found {
			before = m.ID
			if old = old || !m.CreatedAt.After(doc.CreatedAt); old || m.SenderType != id.User || m.Content == "" {
				continue
			}
			shows, err := sight.Shows(ctx, label.Resource{Type: label.OfMessage, ID: string(m.ID)})
			if err != nil {
				return nil, err
			}
			if !shows {
				m.Content = saidWithheld
			}
			said = append(said, m.Content)
		}
		if old || len(found) < page {
			slices.Reverse(said)
			return said[min(after, len(said)):], nil
		}
	}
}

// Turn implements agents.Records.
func (d *agentDesk) Turn(ctx context.Context, w errand.Work, t errand.Turn) (id.Step, error) {
	input, err := json.Marshal(t)
	if err != nil {
		return "", err
	}
	s, err := d.Engines.Steps.Add(ctx, d.origin(), d.hold(w), engines.StepRequest{Kind: errand.TurnKind, Title: "turn " +
		strconv.Itoa(t.Number+1), Input: input})
	return s.ID, err
}

// Invoke implements agents.Records.
func (d *agentDesk) Invoke(ctx context.Context, w errand.Work, s id.Step, name string, c errand.TurnCall) (errand.Verdict, error) {
	input, err := json.Marshal(c)
	if err != nil {
		return errand.Verdict{}, err
	}
	if no, err := d.kept(ctx, w); err != nil || no.Code != "" {
		return no, err
	}
	made, no, err := d.Engines.Steps.Invoke(ctx, d.origin(), w.Workspace, w.Token, engines.CallRequest{Step: s, Tool: name, Input: input})
	if no != nil {
		d.refused(ctx, w, name, c, no)
		return errand.Verdict{Asks: no.Decision.Outcome == policy.RequireApproval, Code: no.Decision.ReasonCode, Reason: no.Decision.Reason}, nil
	}
	return errand.Verdict{Call: made.ID, Permit: d.Engines.Permits.OfCall(w.Workspace, made)}, err
}

// kept refuses the calls of a run whose space has got a label that keeps it from the requester of the run, who reads what the agent
// reports.
func (d *agentDesk) kept(ctx context.Context, w errand.Work) (errand.Verdict, error) {
	in, ok := errand.SpaceOf(w.Input)
	if !ok {
		return errand.Verdict{}, nil
	}
	doc, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	if err != nil {
		return errand.Verdict{}, err
	}
	sight, err := d.Labels.Sight(ctx, w.Workspace, doc.CreatedBy)
	if err == nil {
		err = sight.Sees(ctx, label.Resource{Type: label.OfSpace, ID: string(in)})
	}
	if fault.KindOf(err) == fault.Denied {
		return errand.Verdict{Code: fault.CodeOf(err), Reason: "the space has a label that keeps it from the requester of the run"}, nil
	}
	return errand.Verdict{}, err
}

// Origin implements agents.Records.
func (d *agentDesk) Origin(ctx context.Context, w errand.Work) (event.Origin, id.Room, error) {
	asked, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	return event.Origin{Principal: asked.CreatedBy, Token: asked.Token, Correlation: asked.Correlation}, asked.Room, err
}
