package localengine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/tool"
	"agentbox/internal/kernel/deadline"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
)

// spawnTime is how long the token of a sub-agent is in force: as long as a question may wait for a person.
const spawnTime = 30 * 24 * time.Hour

// failParent is how a sub-agent ends that is claimed when the run that asked for it has ended.
const failParent = "parent_ended"

// errStillRuns ends the wait for a sub-agent that another engine has, so that one whose engine has died is taken up.
var errStillRuns = errors.New("the sub-agent still runs")

// The refusals of a sub-agent.
var (
	errNoSpawn     = fault.New(fault.Denied, "spawn_not_permitted", "this agent may start no sub-agent")
	errSpawnBudget = fault.New(fault.Denied, "spawn_limit", "this agent has started as many sub-agents as limits.children permits").
			With("Do the rest yourself.")
	errSpawnDepth = fault.New(fault.Denied, "spawn_depth", "limits.depth permits no further generation of sub-agents").
			With("Do it yourself.")
	errSpawnUnknown = fault.New(fault.Denied, "spawn_blueprint", "the agent may start sub-agents of its own blueprint, and of those that "+
		"comms.spawn of its blueprint names")
	errSpawnChanged = fault.New(fault.Conflict, "spawn_blueprint_changed", "the blueprint is not what it was when this run was begun")
	errSpawnSpace   = fault.New(fault.Denied, "spawn_space", "the space of this agent has another policy than its blueprint says, so a new "+
		"space could permit more").With("Let the sub-agent work in the same space.")
	errSpawnKind = fault.New(fault.Invalid, "adapter_unsupported", "a sub-agent is of a blueprint whose adapter is internal")
)

// orphaned returns how a sub-agent ends whose parent has ended; nil where it goes on.
func (d *agentDesk) orphaned(ctx context.Context, w errand.Work, m errand.Mission) (*errand.Result, error) {
	if m.Lineage == nil {
		return nil, nil
	}
	parent, err := d.Engines.Find(ctx, w.Workspace, m.Lineage.Parent)
	if err != nil || !parent.Status.Ended() {
		return nil, err
	}
	return &errand.Result{Failure: failParent, Message: "the run that asked for it has ended"}, nil
}

// spawn starts a sub-agent and waits until it has ended. The call has one such run, also after a crash. The engine that waits works on that
// run itself, so that a sub-agent needs no free place and no free hand.
func (u use) spawn(ctx context.Context) (errand.Outcome, error) {
	call, err := u.Engines.Look.Call(ctx, u.work.Workspace, u.call)
	if err != nil {
		return errand.Outcome{}, err
	}
	child := call.Child
	if child == "" {
		made, err := u.begin(ctx)
		if err != nil {
			return errand.Outcome{}, err
		}
		child = made.ID
	}
	doc, err := u.await(ctx, child)
	if err != nil {
		return errand.Outcome{}, err
	}
	said, worked, err := u.reported(ctx, doc)
	if err != nil {
		return errand.Outcome{}, err
	}
	o, err := u.say(ctx, u.work, u.call, u.name, said)
	o.Child, o.Worked = doc.ID, worked
	return o, err
}

// await works on a sub-agent, or waits while another engine does, until it has ended.
func (u use) await(ctx context.Context, child id.Run) (run.Run, error) {
	for {
		doc, token, err := u.Engines.ClaimOne(ctx, u.origin(), u.work.Workspace, child)
		if err == nil {
			given, err := u.Engines.Given(ctx, doc)
			if err != nil {
				return doc, err
			}
			u.busy(u.work.Workspace)
			u.runner.Execute(ctx, errand.Work{Lasts: doc.Claim.Until.Sub(doc.Claim.Since), Workspace: doc.Workspace, Run: doc.ID, Token: token,
				Permit: u.Engines.Permits.OfClaim(doc), Fence: doc.Fence, Input: given})
		} else if !errors.Is(err, errand.ErrNothing) {
			return doc, err
		}
		if doc, err = u.Engines.Find(ctx, u.work.Workspace, child); err != nil || doc.Status.Ended() {
			return doc, err
		}
		waiting, end := deadline.Within(ctx, u.Clock, errand.Again, errStillRuns)
		doc, err = u.Runs.History.Wait(waiting, u.work.Workspace, child)
		end()
		switch {
		case ctx.Err() != nil:
			return doc, context.Cause(ctx)
		case err != nil:
			return doc, err
		}
	}
}

// begin records the run of a sub-agent.
func (u use) begin(ctx context.Context) (run.Run, error) {
	s, err := tools.ReadSpawn(u.args)
	if err != nil {
		return run.Run{}, err
	}
	// Hook phase: Spawn/Fork.
	m, ok := errand.ReadMission(u.work.Input)
	if !ok {
		return run.Run{}, errNoSpawn
	}
	ws := u.work.Workspace
	parent, _, err := u.Blueprints.Read(ctx, ws, m.Blueprint, m.Edition)
	if err != nil {
		return run.Run{}, err
	}
	adjusted := parent.Adjustment()
	parent = parent.Answering(m.Model).Effective()
	lineage, err := u.lineage(ctx, m, parent)
	if err != nil {
		return run.Run{}, err
	}
	name, version := cmp.Or(s.Blueprint, m.Blueprint), 0
	if name == m.Blueprint {
		version = m.Edition
	} else if err := u.known(ctx, m, parent, name); err != nil {
		return run.Run{}, err
	}
	starter := u.starter(parent)
	child, version, _, err := starter.Read(ctx, ws, name, version)
	if err != nil {
		return run.Run{}, err
	}
	task, err := relatives{u}.withPlan(ctx, s.Task, parent, child.Effective())
	if err != nil {
		return run.Run{}, err
	}
	scopes := token.All()
	scopes.Rooms = []string{string(u.asked.Room)}
	in, err := u.Spaces.Catalog.Space(ctx, ws, u.space)
	if err != nil {
		return run.Run{}, err
	}
	if s.Space == "new" {
		bundle, _, err := u.Gate.Bundles.Adjust(parent.Policy, adjusted)
		if err != nil {
			return run.Run{}, err
		}
		if bundle.Hash != in.Bundle {
			return run.Run{}, errSpawnSpace
		}
	}
	if in.Room != u.asked.Room {
		scopes.Rooms = append(scopes.Rooms, string(in.Room))
	}
	scopes.Data = token.Data{}
	for _, room := range scopes.Rooms {
		scopes.Data.Read = append(scopes.Data.Read, "room:"+room)
	}
	scopes.Data.Write = scopes.Data.Read
	origin := u.requester()
	narrowing := origin
	narrowing.Key, narrowing.Command = "spawn:"+string(u.call), event.DigestOf([]byte(u.call))
	narrow, err := u.Identity.Narrow(ctx, narrowing, ws, scopes, u.Clock.Now().UTC().Add(spawnTime))
	if err != nil {
		return run.Run{}, err
	}
	origin.Token = narrow.ID
	t := agents.Task{
		Workspace: ws, Blueprint: name, Version: version, Text: task, Room: u.asked.Room, Thread: u.asked.Thread,
		Key: "spawn:" + string(u.call), Lineage: lineage,
	}
	if s.Space == "same" {
		t.Space = u.space
	}
	if name == m.Blueprint {
		t.Model = m.Model
	}
	return starter.Start(ctx, origin, t)
}

// starter begins the runs of sub-agents of an agent.
func (u use) starter(parent blueprint.Blueprint) *agents.Starter {
	s := u.Starter()
	read := s.Read
	s.Read = func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, int, event.Digest, error) {
		b, version, locked, err := read(ctx, ws, name, version)
		if err == nil && b.Effective().Adapter.Kind != blueprint.Internal {
			err = errSpawnKind
		}
		return b, version, locked, err
	}
	s.Thread = func(context.Context, event.Origin, agents.Task) (id.Thread, error) { return "", nil } // that of the parent, if it has one
	s.Space = func(ctx context.Context, origin event.Origin, t agents.Task, b blueprint.Blueprint) (id.Space, id.Room, error) {
		return u.makeSpace(ctx, origin, t, within(b.Effective(), parent))
	}
	s.Create = func(ctx context.Context, origin event.Origin, t agents.Task, input json.RawMessage) (run.Run, error) {
		q := requestOf(t, input)
		q.Under = func(ctx context.Context) (run.Under, error) {
			return u.Engines.Steps.Vouch(ctx, u.work.Workspace, u.work.Token, u.call)
		}
		return u.Engines.Create(ctx, origin, q)
	}
	return s
}

// lineage returns that of a new sub-agent, or why there may be none.
func (u use) lineage(ctx context.Context, m errand.Mission, parent blueprint.Blueprint) (*errand.Lineage, error) {
	if parent.Limits.Children < 1 {
		return nil, errNoSpawn
	}
	l := &errand.Lineage{Parent: u.work.Run, Call: u.call, Root: u.work.Run, Depth: 1, Below: parent.Limits.Depth - 1}
	offered, _, err := u.tools(ctx, u.work.Workspace, parent)
	if err != nil {
		return nil, err
	}
	for _, t := range offered {
		l.Tools = append(l.Tools, t.Name)
	}
	for _, name := range tools.Among() { // they lead only to relatives, whose own blueprints say what they show
		if !slices.Contains(l.Tools, name) && !slices.Contains(parent.Tools.Deny, name) {
			l.Tools = append(l.Tools, name)
		}
	}
	l.Above = []errand.Bounded{{Run: u.work.Run, Tokens: parent.Limits.Tokens, Cost: string(parent.Limits.Cost)}}
	if of := m.Lineage; of != nil {
		l.Root, l.Depth, l.Below = of.Root, of.Depth+1, min(l.Below, of.Below-1)
		l.Tools = slices.DeleteFunc(l.Tools, func(name string) bool { return !slices.Contains(of.Tools, name) })
		l.Above = append(l.Above, of.Above...)
	}
	if l.Below < 0 || l.Depth > model.MaxAbove {
		return nil, errSpawnDepth
	}
	l.Left = max(int(math.Ceil(u.left.Run.Seconds())), 1)
	started, err := relatives{u}.spawned(ctx, u.work.Run)
	if err == nil && len(started) >= parent.Limits.Children {
		err = errSpawnBudget
	}
	return l, err
}

// known refuses a blueprint that the parent's does not name, and one that has changed since the parent was begun.
func (u use) known(ctx context.Context, m errand.Mission, parent blueprint.Blueprint, name string) error {
	if !slices.Contains(parent.Comms.Spawn, name) {
		return errSpawnUnknown
	}
	if u.Floating {
		return nil
	}
	pins, err := u.Blueprints.Pins(ctx, u.work.Workspace, parent)
	if err != nil {
		return err
	}
	r := blueprint.Reference{Kind: blueprint.ToBlueprint, Name: name}
	if pin := pins.Of(r); pin == "" || pin != m.Pins[r.String()] {
		return errSpawnChanged
	}
	return nil
}

// presets are those of blueprints, the one that permits least first.
var presets = []string{"restrictive", "standard", "permissive"}

// within returns the blueprint of a sub-agent whose new space permits no more than a space of the parent's blueprint does. Both have their
// defaults.
func within(child, parent blueprint.Blueprint) blueprint.Blueprint {
	child.Policy = presets[max(min(slices.Index(presets, child.Policy), slices.Index(presets, parent.Policy)), 0)]
	child.Space.Network.Allow = slices.DeleteFunc(slices.Clone(child.Space.Network.Allow), func(host string) bool {
		return !slices.ContainsFunc(parent.Space.Network.Allow, func(allowed string) bool {
			below, pattern := strings.CutPrefix(allowed, "*")
			return host == allowed || pattern && strings.HasSuffix(strings.TrimPrefix(host, "*"), below)
		})
	})
	if parent.Space.Files.Access == "read" {
		child.Space.Files.Access = "read"
	}
	child.Space.Files.Deny = union(child.Space.Files.Deny, parent.Space.Files.Deny)
	child.Space.Files.Withhold = union(child.Space.Files.Withhold, parent.Space.Files.Withhold)
	child.Limits.ToolSeconds = min(child.Limits.ToolSeconds, parent.Limits.ToolSeconds)
	return child
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// reported returns the text that a model reads about a sub-agent that has ended, and for how many milliseconds it worked.
func (u use) reported(ctx context.Context, doc run.Run) (tool.Result, int64, error) {
	var text strings.Builder
	fmt.Fprintf(&text, "status: %s\n", doc.Status)
	if doc.Error != "" {
		fmt.Fprintf(&text, "error: %s\n", doc.Error)
	}
	worked := max(doc.EndedAt.Sub(doc.StartedAt), 0).Milliseconds() // of a run that was stopped nobody said it
	if r := doc.Reported; r != nil {
		var said struct {
			Report string `json:"report"`
			Worked *int64 `json:"worked_ms"`
		}
		_ = json.Unmarshal(r.Output, &said) // what was redacted says nothing
		if said.Worked != nil {
			worked = *said.Worked
		}
		if r.Message != "" {
			fmt.Fprintf(&text, "message: %s\n", r.Message)
		}
		if report := cmp.Or(said.Report, r.Summary); report != "" {
			fmt.Fprintf(&text, "report:\n%s\n", strings.TrimRight(report, "\n"))
		}
	}
	said, err := relatives{u}.handed(ctx, doc)
	text.WriteString(said)
	return tool.Result{OK: doc.Status == run.Succeeded, Text: text.String()}, worked, err
}
