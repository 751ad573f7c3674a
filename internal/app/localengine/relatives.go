package localengine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/tools"
)

// place is where a relative stands in the lineage of an agent.
type place struct {
	name string // as child 1: it has no id, because ids differ in every run
	kin  blueprint.Kin
	run  id.Run
}

// relative is another agent of the lineage.
type relative struct {
	place
	doc   run.Run
	space id.Space            // in which it works
	def   blueprint.Blueprint // with its defaults; empty, so that it gives no capsules, where nobody can read it any more
}

// line says who the relative is.
func (r relative) line() string {
	return fmt.Sprintf("%s, %s, %s\n", r.name, r.doc.Blueprint, r.doc.Status)
}

// relatives is a call in which an agent is shown what others of its lineage give, or gives something itself.
type relatives struct{ use }

// among is what a tool of capsules is called for.
func among(do func(relatives, context.Context) (errand.Outcome, error)) func(use, context.Context) (errand.Outcome, error) {
	return func(u use, ctx context.Context) (errand.Outcome, error) { return do(relatives{u}, ctx) }
}

// self returns what the agent of the call runs with, with its defaults.
func (u relatives) self(ctx context.Context) (errand.Mission, blueprint.Blueprint, error) {
	m, ok := errand.ReadMission(u.work.Input)
	if !ok {
		return m, blueprint.Blueprint{}, errNoMission
	}
	def, _, err := u.Blueprints.Read(ctx, u.work.Workspace, m.Blueprint, m.Edition)
	return m, def.Effective(), err
}

// kin returns where the relatives of the agent stand. Runs above it are those of its lineage, which only a call of spawn records; runs
// beside it and below it are those of such calls. So nothing else is reachable.
func (u relatives) kin(ctx context.Context, m errand.Mission, from string) ([]place, error) {
	var found []place
	add := func(name string, kin blueprint.Kin, r id.Run) {
		found = append(found, place{fmt.Sprintf("%s %d", name, len(found)+1), kin, r})
	}
	of := m.Lineage
	switch {
	case from == tools.FromChildren:
		below, err := u.spawned(ctx, u.work.Run)
		for _, r := range below {
			add("child", blueprint.Child, r)
		}
		return found, err
	case of == nil: // nothing is above it or beside it
	case from == tools.FromParent:
		return []place{{"parent", blueprint.Parent, of.Parent}}, nil
	case from == tools.FromAncestors:
		for _, above := range of.Above {
			kin := blueprint.Ancestor
			if above.Run == of.Parent {
				kin = blueprint.Parent
			}
			add("ancestor", kin, above.Run)
		}
	case from == tools.FromSiblings:
		beside, err := u.spawned(ctx, of.Parent)
		for _, r := range beside {
			if r != u.work.Run {
				add("sibling", blueprint.Sibling, r)
			}
		}
		return found, err
	}
	return found, nil
}

// spawned returns the runs of the sub-agents of a run, the oldest first.
func (u relatives) spawned(ctx context.Context, of id.Run) ([]id.Run, error) {
	var runs []id.Run
	err := u.calls(ctx, of, func(c step.Call) {
		if c.Tool == tools.SpawnTool && c.Child != "" {
			runs = append(runs, c.Child)
		}
	})
	slices.Reverse(runs)
	return runs, err
}

// calls gives each tool call of a run, the newest first.
func (u relatives) calls(ctx context.Context, of id.Run, each func(step.Call)) error {
	return pages(func(after string, limit int) ([]step.Call, error) {
		return u.Engines.Look.Calls(ctx, u.work.Workspace, engines.Of{Run: of}, after, limit)
	}, func(c step.Call) string { return string(c.ID) }, each)
}

// meet returns the relative at a place.
func (u relatives) meet(ctx context.Context, at place) (relative, error) {
	doc, m, err := u.mission(ctx, u.work.Workspace, at.run)
	if errors.Is(err, errand.ErrForgotten) {
		return relative{place: at, doc: doc}, nil
	}
	if err != nil {
		return relative{}, err
	}
	def, _, err := u.Blueprints.Read(ctx, u.work.Workspace, m.Blueprint, m.Edition)
	if kind := fault.KindOf(err); kind == fault.NotFound || kind == fault.Invalid {
		return relative{place: at, doc: doc}, nil
	}
	return relative{at, doc, m.Space, def.Effective()}, err
}

// seen returns the artifacts of a run that the requester of the agent may see and that are there, the newest first.
func (u relatives) seen(ctx context.Context, of id.Run) ([]step.Artifact, error) {
	sight, err := u.Labels.Sight(ctx, u.work.Workspace, u.requester().Principal)
	if err != nil {
		return nil, err
	}
	var found []step.Artifact
	err = pages(func(after string, limit int) ([]step.Artifact, error) {
		return u.Engines.Look.Artifacts(ctx, u.work.Workspace, engines.Of{Run: of}, after, limit)
	}, func(a step.Artifact) string { return string(a.ID) }, func(a step.Artifact) { found = append(found, a) })
	if err != nil {
		return nil, err
	}
	shown := found[:0]
	for _, a := range found {
		may, err := sight.Shows(ctx, label.Resource{Type: label.OfArtifact, ID: string(a.ID)})
		if err != nil {
			return nil, err
		}
		if may && !a.Redacted {
			shown = append(shown, a)
		}
	}
	return shown, nil
}

// made returns the artifacts of a run, and of the runs of its calls in the space, the oldest first. Results of tools and capsules are not
// among them.
func (u relatives) made(ctx context.Context, of id.Run) ([]step.Artifact, error) {
	runs := []id.Run{}
	if err := u.calls(ctx, of, func(c step.Call) {
		if c.Child != "" && c.Tool != tools.SpawnTool {
			runs = append(runs, c.Child)
		}
	}); err != nil {
		return nil, err
	}
	var all []step.Artifact
	for _, r := range append(runs, of) { // the newest first
		found, err := u.seen(ctx, r)
		if err != nil {
			return nil, err
		}
		for _, a := range found {
			if a.Kind != toolResult && a.Kind != capsuleKind {
				all = append(all, a)
			}
		}
	}
	slices.Reverse(all)
	return all, nil
}

// listed is the name of an artifact in a list for a model, which does not show ids.
func listed(a step.Artifact) string {
	return strings.Join(strings.FieldsFunc(cmp.Or(a.Title, a.Path, a.Kind), unicode.IsControl), " ")
}

// lines are the lines of a list of artifacts.
func lines(of []step.Artifact) []string {
	text := make([]string, 0, len(of))
	for _, a := range of {
		size := int64(0)
		if a.Size != nil {
			size = *a.Size
		}
		text = append(text, fmt.Sprintf("artifact: %s, %s, %d bytes\n", listed(a), cmp.Or(a.Media, "unknown type"), size))
	}
	return text
}
