package workspace_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/workspace"
)

func TestTheBoundsOfAWorkspace(t *testing.T) {
	fits := workspace.Created{Workspace: "ws_a", Kind: workspace.Community, Tasks: 1}
	with := func(change func(*workspace.Created)) workspace.Created {
		c := fits
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		said interface{ Check() error }
		code string
	}{
		"as it is":          {fits, ""},
		"a private one":     {with(func(c *workspace.Created) { c.Kind = workspace.Private }), ""},
		"of no kind":        {with(func(c *workspace.Created) { c.Kind = "" }), "invalid_kind"},
		"without a name":    {with(func(c *workspace.Created) { c.Workspace = "ws_" }), "invalid_workspace_id"},
		"no tasks":          {with(func(c *workspace.Created) { c.Tasks = 0 }), "invalid_max_concurrent_tasks"},
		"the most tasks":    {with(func(c *workspace.Created) { c.Tasks = workspace.MaxTasks }), ""},
		"one task more":     {with(func(c *workspace.Created) { c.Tasks = workspace.MaxTasks + 1 }), "invalid_max_concurrent_tasks"},
		"no change":         {workspace.Updated{}, "nothing_to_change"},
		"another name":      {workspace.Updated{Name: "a"}, ""},
		"other tasks":       {workspace.Updated{Tasks: 3}, ""},
		"fewer than none":   {workspace.Updated{Tasks: -1}, "invalid_max_concurrent_tasks"},
		"more than allowed": {workspace.Updated{Name: "a", Tasks: workspace.MaxTasks + 1}, "invalid_max_concurrent_tasks"},
	} {
		if err := c.said.Check(); fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
	}
}

func TestTheDocumentOfAWorkspace(t *testing.T) {
	at := time.Unix(9, 0).UTC()
	told := func(typ string, data any) event.Event {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return event.Event{Header: event.Header{Type: typ, EntityType: workspace.EntityType, EntityID: "ws_a", Workspace: "ws_a",
			Principal: "usr_1", OccurredAt: at}, Data: raw}
	}
	unsaid := workspace.Workspace{ID: "ws_a", Kind: workspace.Community, Name: "ws_a", Tasks: workspace.DefaultTasks,
		State: workspace.ActiveState}
	if got := workspace.Unsaid("ws_a"); got != unsaid || got.Archived() {
		t.Errorf("got %+v", got)
	}
	made := workspace.Workspace{ID: "ws_a", Kind: workspace.Private, Name: "A", Tasks: 7, State: workspace.ActiveState, CreatedBy: "usr_1",
		CreatedAt: at}
	with := func(w workspace.Workspace, change func(*workspace.Workspace)) workspace.Workspace {
		change(&w)
		return w
	}
	archived := with(made, func(w *workspace.Workspace) { w.State, w.ArchivedAt, w.Reason = workspace.ArchivedState, at, "over" })
	if !archived.Archived() {
		t.Error("it is archived")
	}
	for name, c := range map[string]struct {
		before workspace.Workspace
		e      event.Event
		want   workspace.Workspace
	}{
		"made": {workspace.Workspace{}, told(workspace.EventCreated, workspace.Created{Kind: workspace.Private, Name: "A",
			Tasks: 7}), made},
		"another name": {made, told(workspace.EventUpdated, workspace.Updated{Name: "B"}),
			with(made, func(w *workspace.Workspace) { w.Name = "B" })},
		"other tasks": {made, told(workspace.EventUpdated, workspace.Updated{Tasks: 9}),
			with(made, func(w *workspace.Workspace) { w.Tasks = 9 })},
		"the first word of it": {workspace.Workspace{}, told(workspace.EventUpdated, workspace.Updated{Tasks: 9}),
			with(unsaid, func(w *workspace.Workspace) { w.Tasks = 9 })},
		"archived":      {made, told(workspace.EventArchived, workspace.Archiving{Reason: "over"}), archived},
		"unarchived":    {archived, told(workspace.EventUnarchived, nil), made},
		"another event": {made, told("x", nil), made},
	} {
		if got, err := c.before.Evolve(c.e); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
		said := strings.HasPrefix(c.e.Type, "workspace.")
		if workspace.Tells(c.e) != said {
			t.Errorf("%s tells of the workspace: %t", c.e.Type, !said)
		}
		elsewhere, other := c.e, c.e
		elsewhere.EntityID, other.EntityType = "ws_b", "x"
		if workspace.Tells(elsewhere) || workspace.Tells(other) {
			t.Errorf("%s about something else tells of the workspace", c.e.Type)
		}
		if c.e.Data = json.RawMessage(`[]`); said && c.e.Type != workspace.EventUnarchived {
			if _, err := c.before.Evolve(c.e); err == nil {
				t.Errorf("%s with broken data was folded", name)
			}
		}
	}
	for _, typ := range []string{workspace.EventImportBegun, workspace.EventImported, workspace.EventImportFailed} {
		e := told(typ, nil)
		e.Data = json.RawMessage(`[]`)
		if _, err := workspace.Evolve(workspace.Import{}, e); err == nil {
			t.Errorf("%s with broken data was folded", typ)
		}
		if e.EntityType = "x"; workspace.Touches(e) {
			t.Errorf("%s of another thing touches an import", typ)
		}
	}
}
