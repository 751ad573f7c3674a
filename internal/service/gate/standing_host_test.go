package gate

import (
	"reflect"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/token"
)

// TestEveryOperationIsATool holds that a new type of operation cannot be forgotten here: each has a row, and what has none is bound all
// the same.
func TestEveryOperationIsATool(t *testing.T) {
	for _, operation := range run.Specs() {
		for _, action := range append([]string{operation.Action}, operation.Also...) {
			kind, known := policy.KindOf(action)
			if name, bound := toolOf(policy.Action{Type: action}, kind); !known || !bound || name != operation.Type {
				t.Errorf("%s: action %q, known %t, tool %q, bound %t", operation.Type, action, known, name, bound)
			}
		}
		if name := toolName(run.ToolPrefix + operation.Type); name != operation.Type {
			t.Errorf("%s with its prefix is the tool %q", operation.Type, name)
		}
	}
	for _, effect := range []policy.SideEffect{policy.Pure, policy.Read, policy.Filesystem, policy.Process, policy.Network, ""} {
		if name, bound := toolOf(policy.Action{Type: "file.rename", Operation: "op-1"}, policy.Kind{SideEffect: effect}); !bound ||
			name != "file.rename" {
			t.Errorf("an operation of the effect %q without a row: tool %q, bound %t", effect, name, bound)
		}
	}
	for _, typ := range []string{policy.RunContinue, policy.SpaceDiff, policy.FileList, policy.NodeRemove} {
		kind, known := policy.KindOf(typ)
		if name, bound := toolOf(policy.Action{Type: typ, Operation: "op-1"}, kind); !known || bound {
			t.Errorf("an operation's %s counts as the tool %q (known: %t)", typ, name, known)
		}
	}
	for _, typ := range []string{policy.ToolCall, policy.APICallIdempotent} {
		kind, _ := policy.KindOf(typ)
		if name, bound := toolOf(policy.Action{Type: typ, Operation: "op-1", Tool: "saw"}, kind); !bound || name != "saw" {
			t.Errorf("an operation's %s with a tool: tool %q, bound %t", typ, name, bound)
		}
	}
}

// TestDataAccessIsBoundByTheToken holds what a request to come near data reads and writes under a token.
func TestDataAccessIsBoundByTheToken(t *testing.T) {
	for _, typ := range []string{policy.DataAccess, policy.DataAccessUnjustified} {
		for method, read := range map[string]bool{"read": true, "write": false, "": false} {
			c := consideration{ruling: policy.Ruling{Action: policy.Action{Type: typ, Room: "room_1", Subject: "document/ok/1", Method: method}}}
			u := c.use()
			want := token.Names("document", "ok/1", "")
			got, none := u.Reads, u.Writes
			if !read {
				got, none = none, got
			}
			if event.DigestOf([]byte(join(got))) != event.DigestOf([]byte(join(want))) || len(none) > 0 {
				t.Errorf("%s %q: reads %v, writes %v", typ, method, u.Reads, u.Writes)
			}
		}
	}
}

// TestWhatAnActionUsesOfAToken holds what each kind of action is asked of a token.
func TestWhatAnActionUsesOfAToken(t *testing.T) {
	file := token.Names("file", "", "room_1")
	for _, c := range []struct {
		name  string
		a     policy.Action
		k     policy.Kind
		space space.Space
		want  token.Use
	}{
		{"a read", policy.Action{Type: "file.read", Path: "a"}, policy.Kind{SideEffect: policy.Read}, space.Space{}, token.Use{Room: "room_1",
			Reads: token.Names("file", "a", "room_1")}},
		{"a write", policy.Action{Type: "file.edit", Path: "a"}, policy.Kind{SideEffect: policy.Filesystem}, space.Space{},
			token.Use{Room: "room_1", Writes: token.Names("file", "a", "room_1")}},
		{"code", policy.Action{Type: "shell.exec"}, policy.Kind{SideEffect: policy.Process}, space.Space{}, token.Use{Room: "room_1", Reads: file,
			Writes: file}},
		{"a host", policy.Action{Type: "http.send", Target: "https://A.org/x"}, policy.Kind{SideEffect: policy.Network}, space.Space{},
			token.Use{Room: "room_1", Domain: "a.org"}},
		{"a host without a name", policy.Action{Type: "http.send"}, policy.Kind{SideEffect: policy.Network}, space.Space{},
			token.Use{Room: "room_1", Domain: policy.Unreadable, NoDomain: true}},
		{"a record", policy.Action{Type: "run.complete"}, policy.Kind{SideEffect: policy.Record, Anywhere: true}, space.Space{},
			token.Use{Room: "room_1", Anywhere: true}},
		{"a tool", policy.Action{Type: policy.ToolCall, Tool: "t"}, policy.Kind{}, space.Space{}, token.Use{Room: "room_1", Tool: "t"}},
		{"a tool without a name", policy.Action{Type: policy.ToolCall}, policy.Kind{}, space.Space{}, token.Use{Room: "room_1", NoTool: true}},
		{"in a space of another room", policy.Action{Type: "run.complete"}, policy.Kind{}, space.Space{ID: "spc_1", Room: "room_2"},
			token.Use{Room: "room_2"}},
		{"in a space of no room", policy.Action{Type: "run.complete"}, policy.Kind{}, space.Space{ID: "spc_1"}, token.Use{}},
	} {
		c.a.Room, c.want.Action = "room_1", c.a.Type
		got := (&consideration{ruling: policy.Ruling{Action: c.a}, kind: c.k, space: c.space}).use()
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	// A list of tools binds an action outside only if it names a tool, and an action inside only if it is a call.
	for _, c := range []struct {
		tool    string
		outside bool
		want    bool
	}{{"t", true, true}, {"", true, false}, {"t", false, false}} {
		if _, bound := toolOf(policy.Action{Type: "http.send", Tool: c.tool}, policy.Kind{SideEffect: policy.Network,
			Outside: c.outside}); bound != c.want {
			t.Errorf("the tool %q, outside %t: bound %t", c.tool, c.outside, bound)
		}
	}
}

func join(list []string) (text string) {
	for _, s := range list {
		text += s + "\n"
	}
	return text
}
