package gate_test

import (
	"context"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	rooms "agentbox/internal/domain/room"
	spaces "agentbox/internal/domain/space"
)

// lists records the list of tools of the room, or of what rooms inherit; nil leaves it unset.
func (h *house) lists(typ, entity, key string, tools *[]string) {
	h.t.Helper()
	var data any = rooms.DefaultsSet{Context: rooms.Context{Tools: tools}}
	if typ == rooms.EventUpdated {
		u := rooms.Updated{Room: id.Room(key), Context: rooms.Context{Tools: tools}}
		if tools == nil {
			u.Inherit = []string{rooms.FieldTools}
		}
		data = u
	}
	draft := event.New(typ, h.origin(h.owner), ws, "", data).About(entity, key)
	if _, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) roomLists(tools ...string) {
	tools = append([]string{}, tools...) // an empty list is not an unset one
	h.lists(rooms.EventUpdated, rooms.EntityType, string(room), &tools)
}

func (h *house) everyRoomLists(tools ...string) {
	h.lists(rooms.EventDefaultsSet, rooms.DefaultsEntity, string(ws), &tools)
}

// housed records the space as one of the room.
func (h *house) housed() {
	h.t.Helper()
	draft := event.New(spaces.EventCreated, h.origin(h.owner), ws, room, spaces.Created{Space: space, Bundle: h.bundles["standard"].Hash})
	if _, err := h.log.Append(context.Background(), event.Batch{Workspace: ws, Drafts: []event.Draft{draft.About(spaces.EntityType,
		string(space))}}); err != nil {
		h.t.Fatal(err)
	}
}

// call is the call of a tool in the room.
func (h *house) call(tool string) policy.Action {
	return policy.Action{Type: policy.ToolCall, Workspace: ws, Room: room, Principal: h.agent, Tool: tool}
}

// A tool that the list of the room does not name is used by nobody, by whichever road; where nobody has set a list policy alone decides.
func TestARoomsListOfToolsHolds(t *testing.T) {
	h := build(t, nil)
	operator := h.person("Otto", principal.Operator)
	h.housed()
	by := func(p id.Principal, a policy.Action) policy.Action {
		a.Principal = p
		return a
	}
	transfer := func(p id.Principal, typ string) policy.Action {
		a := by(p, h.file("standard", typ, "a.txt"))
		a.Operation, a.Run = "", ""
		return a
	}
	elsewhere, nowhere := h.call("saw"), h.call("saw")
	elsewhere.Room, nowhere.Room = "room_00000000000000000000000009", ""
	idempotent := policy.Action{Type: policy.APICallIdempotent, Workspace: ws, Room: room, Principal: h.agent, Tool: "saw",
		Target: "example.com"}
	actions := map[string]policy.Action{
		"owner's saw": by(h.owner, h.call("saw")), "owner's operation": by(h.owner, h.file("standard", policy.FileCreate, "a.txt")),
		"saw": h.call("saw"), "drill": h.call("drill"), "none named": h.call(""), "space.shell": h.call("space.shell"),
		"space.saw": h.call("space.saw"),
		"shell":     h.shell("standard", "ls"), "owner's shell": by(h.owner, h.shell("standard", "ls")), "createFile": h.file("standard",
			policy.FileCreate, "a.txt"),
		"readFile": h.file("standard", policy.FileRead, "a.txt"), "list": h.file("standard", policy.FileList, "."),
		"a person's upload": transfer(operator, policy.FileCreate), "an agent's upload": transfer(h.agent, policy.FileCreate),
		"an agent's download": transfer(h.agent, policy.FileArchive), "elsewhere": elsewhere, "nowhere": nowhere, "outside": idempotent,
	}
	for _, c := range []struct {
		name    string
		set     func()
		refused []string
	}{
		{"unset", func() {}, nil},
		{"inherited", func() { h.everyRoomLists("saw", "readFile") }, []string{
			"drill", "none named", "space.shell", "space.saw", "shell", "owner's shell", "createFile", "an agent's upload", "owner's operation",
		}},
		{"of the room", func() { h.roomLists("drill", "shell") }, []string{
			"saw", "none named", "space.saw", "createFile", "readFile", "an agent's upload", "an agent's download", "outside", "owner's saw",
			"owner's operation",
		}},
		{"as an engine names it", func() {
			h.roomLists("saw", "space.shell", "space.saw", "createFile", "readFile")
		}, []string{"drill", "none named"}},
		{"empty", func() { h.roomLists() }, []string{
			"saw", "drill", "none named", "space.shell", "space.saw", "shell", "owner's shell", "createFile", "readFile", "an agent's upload",
			"an agent's download", "outside", "owner's saw", "owner's operation",
		}},
		{"inherited again", func() {
			h.lists(rooms.EventUpdated, rooms.EntityType, string(room), nil)
			h.everyRoomLists("drill")
		}, []string{
			"saw", "none named", "space.shell", "space.saw", "shell", "owner's shell", "createFile", "readFile", "an agent's upload",
			"an agent's download",
			"elsewhere", "nowhere", "outside", "owner's saw", "owner's operation",
		}},
	} {
		c.set()
		want := map[string]bool{}
		for _, name := range c.refused {
			want[name] = true
		}
		for name, a := range actions {
			d := h.judge(a).Decision
			if got := d.ReasonCode == policy.ReasonToolNotAllowed; got != want[name] || got == (d.Outcome != policy.Deny) || got &&
				(d.Reason == "" || d.Suggestion == "") {
				t.Errorf("%s: %s: got %+v, want refused: %t", c.name, name, d, want[name])
			}
		}
	}
}

// The reason of a refusal says whether the list is empty, names other tools, or finds no tool named.
func TestWhyAToolIsNotAllowed(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		list []string
		tool string
		want string
	}{
		{nil, "saw", "the room's list of allowed tools is empty, so that none may be used"},
		{nil, "", "the room's list of allowed tools is empty, so that none may be used"},
		{[]string{"drill"}, "saw", "the room's list of allowed tools does not name saw"},
		{[]string{"drill"}, "", "the room has a list of allowed tools, and no tool is named"},
	} {
		h.roomLists(c.list...)
		if d := h.judge(h.call(c.tool)).Decision; d.ReasonCode != policy.ReasonToolNotAllowed || d.Reason != c.want {
			t.Errorf("the tool %q beside the list %v: got %s, %q, want %q", c.tool, c.list, d.ReasonCode, d.Reason, c.want)
		}
	}
}

// An action in a space is bound by the list of the space's own room, whichever room the action names.
func TestTheListIsThatOfTheSpacesRoom(t *testing.T) {
	h := build(t, nil)
	h.housed()
	h.roomLists("readFile")
	for _, in := range []id.Room{room, "room_00000000000000000000000009", ""} {
		a := h.shell("standard", "ls")
		a.Room = in
		if d := h.judge(a).Decision; d.ReasonCode != policy.ReasonToolNotAllowed {
			t.Errorf("named room %q: got %s %s, want %s", in, d.Outcome, d.ReasonCode, policy.ReasonToolNotAllowed)
		}
	}
}

// A list of the room that is changed between a ruling and its effect holds, though every room inherits the same as before.
func TestAChangedListOfTheRoomIsAskedAgain(t *testing.T) {
	h := build(t, nil)
	h.housed()
	h.roomLists("shell")
	a := h.shell("standard", "ls")
	r := h.judge(a)
	h.roomLists("readFile")
	if err := begin(h, r, ""); fault.CodeOf(err) != policy.ReasonToolNotAllowed {
		t.Errorf("got %v, want %s", err, policy.ReasonToolNotAllowed)
	}
}

// The refusal is recorded like any other, and a list that is set between a ruling and its effect holds.
func TestAListOfToolsIsAskedAgainBeforeTheEffect(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	h.housed()
	for name, set := range map[string]func(){"of the room": func() { h.roomLists("readFile") }, "inherited": func() {
		h.everyRoomLists("readFile")
	}} {
		h.lists(rooms.EventUpdated, rooms.EntityType, string(room), nil)
		h.everyRoomLists("shell")
		a := h.shell("standard", "ls")
		r := h.judge(a)
		set()
		if _, _, err := h.Begin(ctx, r, "", h.intent(a)); fault.CodeOf(err) != policy.ReasonToolNotAllowed {
			t.Errorf("%s: got %v, want %s", name, err, policy.ReasonToolNotAllowed)
		}
	}
	before := h.count(policy.DeniedType)
	said := event.Batch{Workspace: ws, Drafts: []event.Draft{event.New("toolcall.test", h.origin(h.agent), ws, room, map[string]string{})}}
	if _, err := h.Record(ctx, h.origin(h.agent), h.call("saw"), said); fault.CodeOf(err) != policy.ReasonToolNotAllowed ||
		h.count(policy.DeniedType) != before+1 {
		t.Errorf("got %v and %d refusals, want one more than %d", err, h.count(policy.DeniedType), before)
	}
}
