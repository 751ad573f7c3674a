package localengine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/token"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/tools"
)

// Limits of capsules.
const (
	maxCapsules  = 200     // of a run
	maxRelatives = 50      // that one call of capsule_read shows
	maxReadable  = 4 << 20 // bytes of an artifact that is read in pieces

	capsuleKind = "capsule" // the kind of the artifact of a capsule; its title is the type of the capsule
)

// The refusals of the tools of capsules.
var (
	errNoMission   = fault.New(fault.Denied, "no_mission", "the run is no task of an agent")
	errCapsuleMost = fault.New(fault.Denied, "capsule_limit", "a run writes at most %d capsules", maxCapsules).
			With("Go on without them.")
	errCapsuleLong = fault.New(fault.Invalid, "capsule_too_long", "the capsule has too many characters")
	errCapsuleType = fault.New(fault.Denied, "capsule_type", "the agent's definition does not name this type of capsule")
	errNoRelative  = fault.New(fault.NotFound, "relative_not_found", "there is no such relative")
	errNotListed   = fault.New(fault.NotFound, "artifact_not_listed", "the relative shows you no such artifact").
			With("Take a name from its list of artifacts: capsule_read with capsule manifest.")
	errNotReadable = fault.New(fault.Invalid, "artifact_not_utf8", "the artifact is not a text in UTF-8, so you cannot read it")
	errLongPiece   = fault.New(fault.Invalid, "artifact_too_long", "an artifact with more than %d bytes is not read", maxReadable).
			With("Ask for a shorter one.")
)

// capsuleWrite keeps a capsule as an artifact of the run.
func (u relatives) capsuleWrite(ctx context.Context) (errand.Outcome, error) {
	c, err := tools.ReadCapsuleWrite(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	_, own, err := u.self(ctx)
	if err != nil {
		return errand.Outcome{}, err
	}
	if may := own.Comms.Writes(); !slices.Contains(may, c.Capsule) {
		return errand.Outcome{}, fault.New(errCapsuleType.Kind, errCapsuleType.Code, "you write capsules of these types: %s",
			strings.Join(may, ", ")).With("Write one of these, or go on without it.")
	}
	most, n := own.Context.Budget(c.Capsule), utf8.RuneCountInString(c.Text)
	if n > most {
		return errand.Outcome{}, fault.New(errCapsuleLong.Kind, errCapsuleLong.Code, "the capsule has %d characters; at most %d are written",
			n, most).With("Shorten it.")
	}
	text, secrets := leak.Text(c.Text)
	call, err := u.Engines.Look.Call(ctx, u.work.Workspace, u.call)
	if err != nil {
		return errand.Outcome{}, err
	}
	if _, err := u.Engines.Artifacts.Keep(ctx, u.origin(), u.work.Workspace, u.work.Token, engines.ArtifactRequest{
		Step: call.Step, Kind: capsuleKind, Title: c.Capsule, Media: "text/markdown",
	}, []byte(text), func(have int) error {
		if have >= maxCapsules {
			return errCapsuleMost
		}
		return nil
	}); err != nil {
		return errand.Outcome{}, err
	}
	said := fmt.Sprintf("written: %d of %d characters", n, most)
	if len(secrets) > 0 {
		said += ", without what looks like a secret"
	}
	return u.told(ctx, said)
}

// capsuleRead shows the capsules of relatives, and their lists of artifacts.
func (u relatives) capsuleRead(ctx context.Context) (errand.Outcome, error) {
	q, err := tools.ReadCapsuleRead(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	m, own, err := u.self(ctx)
	if err != nil {
		return errand.Outcome{}, err
	}
	if q.Capsule != "" && !own.Context.Takes(q.Capsule) {
		return errand.Outcome{}, fault.New(errCapsuleType.Kind, errCapsuleType.Code, "context.sources of your definition does not name %s",
			blueprint.SourceOf(q.Capsule)).With("Read another type, or go on without it.")
	}
	found, err := u.kin(ctx, m, q.From)
	if err != nil {
		return errand.Outcome{}, err
	}
	found, text, err := chosen(found, q)
	if err != nil {
		return errand.Outcome{}, err
	}
	if err := u.bound(ctx, u.asked.Room, ""); err != nil {
		return errand.Outcome{}, err
	}
	for _, at := range found {
		r, err := u.meet(ctx, at)
		if err != nil {
			return errand.Outcome{}, err
		}
		said, err := u.shownBy(ctx, own, r, q.Capsule)
		if err != nil {
			return errand.Outcome{}, err
		}
		if said == "" {
			said = "it shows you nothing\n"
		}
		text += r.line() + said
	}
	return u.told(ctx, text)
}

// chosen returns the relatives that a call shows, with a line about those that it does not.
func chosen(found []place, q tools.CapsuleRead) ([]place, string, error) {
	switch from := max(len(found)-maxRelatives, 0); {
	case q.Number > len(found):
		return nil, "", noRelative(q.From, len(found))
	case q.Number > 0:
		return found[q.Number-1 : q.Number], "", nil
	case len(found) == 0:
		return nil, noRelative(q.From, 0).Msg + "\n", nil
	case from > 0:
		return found[from:], fmt.Sprintf("the first %d of the %s are left out; read one of them by its number\n", from, q.From), nil
	}
	return found, "", nil
}

// noRelative says how many relatives there are.
func noRelative(from string, have int) *fault.Error {
	said := fmt.Sprintf("from %s the last number is %d", from, have)
	if have == 0 {
		said = "you have no " + from
	}
	return fault.New(errNoRelative.Kind, errNoRelative.Code, "%s", said)
}

// bound refuses to read what lies outside of the capability token of the run.
func (u relatives) bound(ctx context.Context, in id.Room, a id.Artifact) error {
	origin := u.requester()
	return u.Gate.Bound(ctx, origin, principal.Caller{Principal: origin.Principal, Workspace: u.work.Workspace, Token: origin.Token},
		token.Use{Room: in, Reads: token.Names("artifact", string(a), in)})
}

// shownBy returns what a relative shows to an agent, of all types or only of one. An agent without sources is shown no more than the list
// of the artifacts of its sub-agents.
func (u relatives) shownBy(ctx context.Context, own blueprint.Blueprint, r relative, only string) (string, error) {
	shown := blueprint.Shown(own, r.def, r.kin)
	if len(own.Context.Sources) == 0 && r.def.Comms.Reaches(r.kin) {
		shown = []string{blueprint.ManifestCapsule}
	}
	if only != "" {
		shown = slices.DeleteFunc(shown, func(capsule string) bool { return capsule != only })
	}
	if len(shown) == 0 {
		return "", nil
	}
	written, err := u.capsules(ctx, r.run)
	if err != nil {
		return "", err
	}
	found := make([]string, len(written))
	for i, a := range written {
		found[i] = a.Title
	}
	text, err := tools.Capsules(own.Context, shown, found, func(i int) (string, error) {
		return u.read(ctx, u.work, written[i].ID, maxReadable)
	})
	if err != nil || !slices.Contains(shown, blueprint.ManifestCapsule) {
		return text, err
	}
	artifacts, err := u.made(ctx, r.run)
	return text + tools.Manifest(lines(artifacts), own.Context.Manifest), err
}

// handed returns what a sub-agent that has ended shows to its parent.
func (u relatives) handed(ctx context.Context, doc run.Run) (string, error) {
	_, own, err := u.self(ctx)
	if err != nil {
		return "", err
	}
	child, err := u.meet(ctx, place{kin: blueprint.Child, run: doc.ID})
	if err != nil {
		return "", err
	}
	return u.shownBy(ctx, own, child, "")
}

// capsules returns those of a run whose text is there, the newest first.
func (u relatives) capsules(ctx context.Context, of id.Run) ([]step.Artifact, error) {
	found, err := u.seen(ctx, of)
	return slices.DeleteFunc(found, func(a step.Artifact) bool { return a.Kind != capsuleKind || a.Stored == nil }), err
}

// artifactRead shows a piece of an artifact that a relative lists.
func (u relatives) artifactRead(ctx context.Context) (errand.Outcome, error) {
	q, err := tools.ReadArtifactRead(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	m, own, err := u.self(ctx)
	if err != nil {
		return errand.Outcome{}, err
	}
	found, err := u.kin(ctx, m, q.From)
	if err != nil {
		return errand.Outcome{}, err
	}
	if q.Number > len(found) {
		return errand.Outcome{}, noRelative(q.From, len(found))
	}
	r, err := u.meet(ctx, found[q.Number-1])
	if err != nil {
		return errand.Outcome{}, err
	}
	if !slices.Contains(blueprint.Shown(own, r.def, r.kin), blueprint.ManifestCapsule) {
		return errand.Outcome{}, errNotListed
	}
	artifacts, err := u.made(ctx, r.run)
	if err != nil {
		return errand.Outcome{}, err
	}
	slices.Reverse(artifacts) // the newest of a name
	i := slices.IndexFunc(artifacts, func(a step.Artifact) bool { return listed(a) == q.Artifact })
	if i < 0 {
		return errand.Outcome{}, errNotListed
	}
	a := artifacts[i]
	if err := u.bound(ctx, a.Room, a.ID); err != nil {
		return errand.Outcome{}, err
	}
	text, err := u.legible(ctx, r, a)
	if err != nil {
		return errand.Outcome{}, err
	}
	return u.told(ctx, tool.Piece(text, q.Offset, q.Length, own.Context.ToolResult))
}

// legible returns the text of an artifact of a relative, without secrets. They are removed from the whole, so that no two pieces show the
// halves of one.
func (u relatives) legible(ctx context.Context, r relative, a step.Artifact) (string, error) {
	if a.Size != nil && *a.Size > maxReadable {
		return "", errLongPiece
	}
	text, err := u.read(ctx, u.work, a.ID, maxReadable)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "", errNotReadable
	}
	in, err := u.Spaces.Catalog.Space(ctx, u.work.Workspace, r.space)
	if err != nil {
		return "", err
	}
	env, err := u.Spaces.Variables.Values(in)
	if err != nil {
		return "", err
	}
	text, _ = leak.Values(env).Text(text) // a program can print what its model is not shown
	return text, nil
}

// withPlan returns the task of a sub-agent, with the newest plan of its parent where both blueprints say so.
func (u relatives) withPlan(ctx context.Context, task string, parent, child blueprint.Blueprint) (string, error) {
	if !slices.Contains(blueprint.Shown(child, parent, blueprint.Parent), blueprint.PlanCapsule) {
		return task, nil
	}
	written, err := u.capsules(ctx, u.work.Run)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(written, func(a step.Artifact) bool { return a.Title == blueprint.PlanCapsule })
	if i < 0 {
		return task, nil
	}
	plan, err := u.read(ctx, u.work, written[i].ID, maxReadable)
	if err != nil {
		return "", err
	}
	return planned(task, plan, child.Context.Budget(blueprint.PlanCapsule)), nil
}

// planned returns a task with a plan of at most about a number of characters, and of fewer where the whole would be too long for a task.
func planned(task, plan string, most int) string {
	for ; ; most /= 2 {
		whole := task + "\n\nThe plan of your parent:\n" + tools.Indented(plan, most)
		if len(whole) <= errand.MaxTask || most == 0 {
			return whole
		}
	}
}
