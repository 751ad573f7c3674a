package label_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
)

const (
	room  = id.Room("room_00000000000000000000000000")
	other = id.Room("room_00000000000000000000000001")
)

var thing = label.Resource{Type: "artifact", ID: "a"}

func TestWhoComesNear(t *testing.T) {
	bare := label.Label{Resource: thing}
	in := func(l label.Level, r id.Room, purposes ...string) label.Label {
		return label.Label{Resource: thing, Level: l, Room: r, Purposes: purposes}
	}
	ask := func(r id.Room, purposes ...string) label.Request {
		return label.Request{Resource: thing, Action: "read", Room: r, Purposes: purposes}
	}
	because := func(q label.Request, text string) label.Request { q.Justification = text; return q }
	claims := func(q label.Request, l label.Level) label.Request { q.Level = l; return q }
	for _, c := range []struct {
		name  string
		label label.Label
		q     label.Request
		level label.Level
		want  policy.Outcome
		code  string
	}{
		{"no label", bare, ask(""), label.Internal, policy.Allow, policy.ReasonDefaultAllow},
		{"public", in(label.Public, ""), ask(other), label.Public, policy.Allow, policy.ReasonDefaultAllow},
		{"an unknown level", in("odd", ""), ask(""), label.Internal, policy.Allow, policy.ReasonDefaultAllow},
		{"restricted, here", in(label.Restricted, room), ask(room), label.Restricted, policy.Allow, policy.ReasonDefaultAllow},
		{"restricted, elsewhere", in(label.Restricted, room), ask(other), label.Restricted, policy.Deny, policy.ReasonRoomMismatch},
		{"restricted, nowhere", in(label.Restricted, room), ask(""), label.Restricted, policy.Deny, policy.ReasonRoomMismatch},
		{"restricted, with every reason", in(label.Restricted, room), because(ask(other, "a"), "please"), label.Restricted, policy.Deny,
			policy.ReasonRoomMismatch},
		{"confidential, everywhere", in(label.Confidential, ""), ask(other), label.Confidential, policy.Allow, policy.ReasonDefaultAllow},
		{"confidential, elsewhere", in(label.Confidential, room), ask(other), label.Confidential, policy.Deny, policy.ReasonRoomMismatch},
		{"for its purpose", in(label.SensitivePII, "", "a", "b"), ask("", "b"), label.SensitivePII, policy.Allow, policy.ReasonDefaultAllow},
		{"for no purpose", in(label.SensitivePII, "", "a"), ask(""), label.SensitivePII, policy.RequireApproval, policy.ReasonPurposeMismatch},
		{"for one of its purposes and another", in(label.SensitivePII, "", "a"), ask("", "a", "b"), label.SensitivePII, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
		{"kept for nothing", in(label.SensitivePII, ""), ask("", "a"), label.SensitivePII, policy.RequireApproval, policy.ReasonPurposeMismatch},
		{"for another, justified", in(label.SensitivePII, "", "a"), because(ask("", "b"), "why"), label.SensitivePII, policy.Allow,
			policy.ReasonDefaultAllow},
		{"for another, with blanks", in(label.SensitivePII, "", "a"), because(ask("", "b"), " \n"), label.SensitivePII, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
		{"confidential, for its purpose", in(label.Confidential, "", "a"), ask("", "a"), label.Confidential, policy.Allow,
			policy.ReasonDefaultAllow},
		{"confidential, for another", in(label.Confidential, "", "a"), ask("", "b"), label.Confidential, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
		{"confidential, for none", in(label.Confidential, "", "a"), ask(""), label.Confidential, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
		{"confidential, justified", in(label.Confidential, "", "a"), because(ask("", "b"), "why"), label.Confidential, policy.Allow,
			policy.ReasonDefaultAllow},
		{"confidential for anything", in(label.Confidential, ""), ask(""), label.Confidential, policy.Allow, policy.ReasonDefaultAllow},
		{"personal, elsewhere", in(label.SensitivePII, room, "a"), because(ask(other, "a"), "why"), label.SensitivePII, policy.Deny,
			policy.ReasonRoomMismatch},
		{"claimed to be less", in(label.SensitivePII, "", "a"), claims(ask(""), label.Public), label.SensitivePII, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
		{"claimed to be more", bare, claims(ask(""), label.SensitivePII), label.SensitivePII, policy.RequireApproval,
			policy.ReasonPurposeMismatch},
	} {
		level, d, _ := c.label.Decide(c.q)
		if level != c.level || d.Outcome != c.want || d.ReasonCode != c.code {
			t.Errorf("%s: got %s, %s %s, want %s, %s %s", c.name, level, d.Outcome, d.ReasonCode, c.level, c.want, c.code)
		}
	}
}

func TestWhatLowersALabel(t *testing.T) {
	levels := []label.Level{label.Public, label.Internal, label.Restricted, label.Confidential, label.SensitivePII}
	for i, was := range levels {
		for j, next := range levels {
			got := label.Label{Level: was, Room: room}.Lowers(label.Label{Level: next, Room: room})
			if want := j < i; got != want {
				t.Errorf("from %s to %s: got %t", was, next, got)
			}
			if got := (label.Label{Level: was, Room: room}).Lowers(label.Label{Level: next, Room: other}); got != (j < i || i >= 2) {
				t.Errorf("from %s to %s of another room: got %t", was, next, got)
			}
		}
	}
	kept := label.Label{Level: label.Confidential, Purposes: []string{"a", "b"}}
	for _, c := range []struct {
		level    label.Level
		purposes []string
		want     bool
	}{
		{label.Confidential, []string{"a", "b"}, false}, {label.Confidential, []string{"b"}, false}, {label.Confidential, []string{"b", "c"},
			true}, {label.Confidential, nil, true},
		{label.SensitivePII, nil, false}, {label.SensitivePII, []string{"a"}, false}, {label.SensitivePII, []string{"c"}, true},
	} {
		if got := kept.Lowers(label.Label{Level: c.level, Purposes: c.purposes}); got != c.want {
			t.Errorf("confidential for a and b, then %s for %v: got %t, want %t", c.level, c.purposes, got, c.want)
		}
	}
	if (label.Label{Level: label.Confidential}).Lowers(label.Label{Level: label.Confidential, Purposes: []string{"a"}}) {
		t.Error("naming the first purpose lowers the label")
	}
	kept = label.Label{Level: label.SensitivePII, Purposes: []string{"a", "b"}}
	for purposes, want := range map[string]bool{"a,b": false, "a": false, "b,c": true} {
		if got := kept.Lowers(label.Label{Level: label.SensitivePII, Purposes: strings.Split(purposes, ",")}); got != want {
			t.Errorf("for %s: got %t", purposes, got)
		}
	}
}

func TestTheBoundsOfLabels(t *testing.T) {
	word := func(n int) string { return strings.Repeat("x", n) }
	tags := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprint(i))
		}
		return list
	}
	for _, c := range []struct {
		l    label.Label
		want error
	}{
		{label.Label{Resource: label.Resource{Type: word(label.MaxType), ID: word(label.MaxID)}, Level: label.Public}, nil},
		{label.Label{Resource: label.Resource{Type: word(label.MaxType + 1), ID: "a"}, Level: label.Public}, label.ErrInvalidResource},
		{label.Label{Resource: label.Resource{Type: "a", ID: word(label.MaxID + 1)}, Level: label.Public}, label.ErrInvalidResource},
		{label.Label{Resource: label.Resource{Type: "a/b", ID: "c"}, Level: label.Public}, label.ErrInvalidResource},
		{label.Label{Resource: label.Resource{Type: "a", ID: "\xff"}, Level: label.Public}, label.ErrInvalidResource},
		{label.Label{Resource: thing}, label.ErrInvalidLabel},
		{label.Label{Resource: thing, Level: label.Internal, Purposes: tags(1)}, label.ErrIdleTags},
		{label.Label{Resource: thing, Level: label.Confidential, Purposes: tags(1)}, nil},
		{label.Label{Resource: thing, Level: label.Restricted}, label.ErrInvalidLabel},
		{label.Label{Resource: thing, Level: label.Restricted, Room: room}, nil},
		{label.Label{Resource: thing, Level: label.Confidential, Purposes: tags(label.MaxTags)}, nil},
		{label.Label{Resource: thing, Level: label.Confidential, Purposes: tags(label.MaxTags + 1)}, label.ErrInvalidTags},
		{label.Label{Resource: thing, Level: label.Confidential, Purposes: []string{word(label.MaxTag)}}, nil},
		{label.Label{Resource: thing, Level: label.Confidential, Purposes: []string{word(label.MaxTag + 1)}}, label.ErrInvalidTags},
	} {
		if err := c.l.Check(); !errors.Is(err, c.want) {
			t.Errorf("%.80v: got %v, want %v", c.l, err, c.want)
		}
	}
	for n, want := range map[int]error{label.MaxJustification: nil, label.MaxJustification + 1: label.ErrInvalidJustification} {
		if err := (label.Request{Resource: thing, Action: "read", Justification: word(n)}).Check(); !errors.Is(err, want) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestWhatRemainsOfAnAccessHoldsNoText(t *testing.T) {
	raw, err := json.Marshal(label.Accessed{Resource: thing, Action: "read", Purposes: []string{"private"}, Justification: "private",
		Reason: "private"})
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []string{label.EventDenied, label.EventMismatch, label.EventJustified, label.EventUnjustified} {
		left, err := label.Remains(event.Event{Header: event.Header{Type: typ}, Data: raw})
		if text, _ := json.Marshal(left); err != nil || left == nil || strings.Contains(string(text), "private") {
			t.Errorf("of %s remains %s, %v", typ, text, err)
		}
	}
	if left, err := label.Remains(event.Event{Header: event.Header{Type: label.EventLabelled}, Data: raw}); left != nil || err != nil {
		t.Errorf("a label is redacted: %v, %v", left, err)
	}
}
