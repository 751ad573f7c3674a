package label_test

import (
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
)

// strictness orders the outcomes by how far they keep somebody away.
var strictness = map[policy.Outcome]int{policy.Allow: 0, policy.RequireApproval: 1, policy.Deny: 2}

// FuzzLabels compares two labels: if the new label does not lower the old one, it permits nothing that the old one refused.
func FuzzLabels(f *testing.F) {
	f.Add("artifact", "a", "confidential", "room_1", "a b", "sensitive_pii", "room_1", "a", "read", "room_1", "a", "because", "public")
	f.Add("artifact", "a", "restricted", "room_1", "", "restricted", "room_2", "", "write", "room_2", "", "", "")
	f.Add("artifact", "a", "sensitive_pii", "", "a", "sensitive_pii", "room_1", "", "read", "", "a", "", "")
	f.Add("", "", "odd", "", "a a", "", "", "", "", "", "", "\xff", "odd")
	f.Fuzz(func(t *testing.T, typ, key, level, in, purposes, nextLevel, nextIn, nextPurposes, action, from, asked, why, claimed string) {
		thing := label.Resource{Type: typ, ID: key}
		was := label.Label{Resource: thing, Level: label.Level(level), Room: id.Room(in), Purposes: strings.Fields(purposes)}
		next := label.Label{Resource: thing, Level: label.Level(nextLevel), Room: id.Room(nextIn), Purposes: strings.Fields(nextPurposes)}
		q := label.Request{Resource: thing, Action: action, Level: label.Level(claimed), Room: id.Room(from), Purposes: strings.Fields(asked),
			Justification: why}
		if was.Check() != nil || next.Check() != nil || q.Check() != nil {
			return
		}
		if thing.Key() != typ+"/"+key || strings.Contains(typ, "/") {
			t.Fatalf("%q and %q have the key %q", typ, key, thing.Key())
		}
		level1, before, _ := was.Decide(q)
		level2, after, _ := next.Decide(q)
		if !level1.AtLeast(was.Level) || !level2.AtLeast(next.Level) || q.Level != "" && !level1.AtLeast(q.Level) {
			t.Errorf("%+v under %+v is decided at %s", q, was, level1)
		}
		if was.Lowers(was) {
			t.Errorf("%+v lowers itself", was)
		}
		if q.Level == "" && !was.Lowers(next) && strictness[after.Outcome] < strictness[before.Outcome] {
			t.Errorf("%+v in the place of %+v lowers nothing, and %+v is %s instead of %s", next, was, q, after.Outcome, before.Outcome)
		}
	})
}

// TestWhatLowersNothingLetsNobodyNearer is FuzzLabels over all labels and requests that two rooms and two purposes make.
func TestWhatLowersNothingLetsNobodyNearer(t *testing.T) {
	levels := []label.Level{label.Public, label.Internal, label.Restricted, label.Confidential, label.SensitivePII}
	rooms := []id.Room{"", room, other}
	tags := [][]string{nil, {"a"}, {"b"}, {"a", "b"}}
	var labels []label.Label
	var requests []label.Request
	for _, level := range levels {
		for _, in := range rooms {
			for _, of := range tags {
				l := label.Label{Resource: thing, Level: level, Room: in, Purposes: of}
				if l.Check() == nil {
					labels = append(labels, l)
				}
			}
		}
	}
	for _, in := range rooms { // a request may claim a stricter level than the label's; then the caller only excludes themselves
		for _, of := range tags {
			for _, why := range []string{"", "why"} {
				requests = append(requests, label.Request{Resource: thing, Action: "read", Room: in, Purposes: of, Justification: why})
			}
		}
	}
	for _, was := range labels {
		for _, next := range labels {
			if was.Lowers(next) {
				continue
			}
			for _, q := range requests {
				_, before, _ := was.Decide(q)
				if _, after, _ := next.Decide(q); strictness[after.Outcome] < strictness[before.Outcome] {
					t.Errorf("%s %q %q in the place of %s %q %q lowers nothing, and %+v is %s instead of %s", next.Level, next.Room, next.Purposes,
						was.Level, was.Room, was.Purposes, q, after.Outcome, before.Outcome)
				}
			}
		}
	}
}
