package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/agents"
)

// starting is a Starter with the requests that it got.
type starting struct {
	agents.Starter
	spaces int
	made   agents.Task
	input  errand.Mission
}

func newStarter(kind string, drift ...blueprint.Drift) *starting {
	s := &starting{}
	locked, offered := event.DigestOf([]byte("locked")), event.DigestOf([]byte("tools"))
	s.Starter = agents.Starter{
		Read: func(_ context.Context, _ id.Workspace, name string, version int) (blueprint.Blueprint, int, event.Digest, error) {
			if name != "counter" {
				return blueprint.Blueprint{}, 0, event.Digest{}, blueprint.ErrNotFound
			}
			return blueprint.Blueprint{Name: name, Adapter: blueprint.Adapter{Kind: kind}, Models: map[string]string{"default": "main"}},
				max(version, 7), locked, nil
		},
		Drift: func(context.Context, id.Workspace, blueprint.Blueprint) ([]blueprint.Drift, error) { return drift, nil },
		Pins: func(context.Context, id.Workspace, blueprint.Blueprint) (blueprint.Pins, error) {
			return blueprint.Pins{Policy: "sha256:1", Models: map[string]string{"main": "sha256:2"}}, nil
		},
		Tools: func(context.Context, id.Workspace, blueprint.Blueprint) ([]tool.Tool, event.Digest, error) {
			return nil, offered, nil
		},
		Before: func(_ context.Context, _ id.Workspace, r id.Run) (run.Run, errand.Mission, error) {
			before := run.Run{ID: r, Room: "room_before", Status: run.Cancelled, Order: run.Order{Thread: "thrd_before"}}
			if r == "run_on" {
				before.Status = run.Running
			}
			return before, errand.Mission{Space: "spc_before"}, nil
		},
		Space: func(_ context.Context, _ event.Origin, _ agents.Task, b blueprint.Blueprint) (id.Space, id.Room, error) {
			s.spaces++
			return id.Space("spc_of_" + b.Name), "room_of_space", nil
		},
		Thread: func(_ context.Context, _ event.Origin, t agents.Task) (id.Thread, error) {
			return id.Thread("thr_in_" + t.Room), nil
		},
		Create: func(_ context.Context, _ event.Origin, t agents.Task, input json.RawMessage) (run.Run, error) {
			var ok bool
			if s.input, ok = errand.ReadMission(input); !ok {
				return run.Run{}, errors.New("the input is not a mission")
			}
			s.made = t
			return run.Run{ID: "run_1"}, nil
		},
	}
	return s
}

// TestTheTaskOfAnAgent holds the input of an agent's run, and which tasks are refused before a space is made.
func TestTheTaskOfAnAgent(t *testing.T) {
	unpinned := blueprint.Drift{Reference: blueprint.Reference{Kind: blueprint.ToModel, Name: "main"}}
	long := strings.Repeat("x", errand.MaxTask)
	for name, c := range map[string]struct {
		starter *starting
		task    agents.Task
		refused string // the code
		spaces  int
		space   id.Space
		room    id.Room
		title   string
	}{
		"a new space": {newStarter(blueprint.Internal), agents.Task{Text: "count\nto three"}, "", 1, "spc_of_counter", "room_of_space",
			"count"},
		"a new space in a room": {newStarter(blueprint.Internal), agents.Task{Text: "count", Room: "room_mine"}, "", 1, "spc_of_counter",
			"room_mine", "count"},
		"a space that is named": {newStarter(blueprint.Internal), agents.Task{Text: "count", Space: "spc_1"}, "", 0, "spc_1", "", "count"},
		"a title": {newStarter(blueprint.Internal), agents.Task{Text: "count", Space: "spc_1", Title: "sum"}, "", 0, "spc_1", "",
			"sum"},
		"a conversation that goes on": {newStarter(blueprint.Internal), agents.Task{Text: "count", After: "run_0"}, "", 0, "spc_before",
			"room_before", "count"},
		"one that goes on elsewhere": {newStarter(blueprint.Internal), agents.Task{Text: "count", After: "run_0", Space: "spc_1",
			Room: "room_1"}, "", 0, "spc_1", "room_1", "count"},
		"a run that has not ended": {newStarter(blueprint.Internal), agents.Task{Text: "count", After: "run_on"}, "run_not_ended", 0, "", "", ""},
		"another model": {newStarter(blueprint.Internal), agents.Task{Text: "count", Space: "spc_1", Model: "other"}, "", 0, "spc_1", "",
			"count"},
		"the longest text": {newStarter(blueprint.Internal), agents.Task{Text: long, Space: "spc_1"}, "", 0, "spc_1", "",
			long[:79] + "…"},
		"a longer text":           {newStarter(blueprint.Internal), agents.Task{Text: long + "x"}, "invalid_field", 0, "", "", ""},
		"no text":                 {newStarter(blueprint.Internal), agents.Task{}, "invalid_field", 0, "", "", ""},
		"another adapter":         {newStarter(blueprint.Remote), agents.Task{Text: "count"}, "adapter_unsupported", 0, "", "", ""},
		"a pin that does not fit": {newStarter(blueprint.Internal, unpinned), agents.Task{Text: "count"}, "blueprint_unpinned", 0, "", "", ""},
	} {
		c.task.Blueprint = "counter"
		_, err := c.starter.Start(t.Context(), event.Origin{}, c.task)
		if fault.CodeOf(err) != c.refused || c.starter.spaces != c.spaces {
			t.Errorf("%s: %v, %d spaces", name, err, c.starter.spaces)
		}
		if got := c.starter.made; got.Space != c.space || got.Room != c.room || got.Title != c.title {
			t.Errorf("%s: begun with %q %q %q", name, got.Space, got.Room, got.Title)
		}
		want := errand.Mission{Version: 1, Blueprint: "counter", Edition: 7, Locked: event.DigestOf([]byte("locked")), Loop: agents.Hash(),
			Tools: event.DigestOf([]byte("tools")), Space: c.space, Task: c.task.Text, After: c.task.After, Model: c.task.Model,
			Pins: map[string]string{"policy": "sha256:1", "models.main": "sha256:2", "tools": "", "loop": ""}}
		if c.task.Model != "" {
			want.Pins = map[string]string{"policy": "sha256:1", "models.other": "", "tools": "", "loop": ""}
		}
		if c.refused == "" && !reflect.DeepEqual(c.starter.input, want) {
			t.Errorf("%s: the input is %+v, want %+v", name, c.starter.input, want)
		}
	}
	floating := newStarter(blueprint.Internal, unpinned)
	floating.Floating = true
	if _, err := floating.Start(t.Context(), event.Origin{}, agents.Task{Blueprint: "counter", Text: "count"}); err != nil {
		t.Errorf("floating pins: %v", err)
	}
	_, err := newStarter(blueprint.Internal).Start(t.Context(), event.Origin{}, agents.Task{Blueprint: "other", Text: "count"})
	if fault.CodeOf(err) != blueprint.ErrNotFound.Code {
		t.Errorf("an unknown blueprint: %v", err)
	}
}
