package token_test

import (
	"encoding/json"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/token"
)

// FuzzScopes reads scopes as they are sent and narrows the one by the other: what comes of it permits nothing that either refuses.
func FuzzScopes(f *testing.F) {
	f.Add(`{"rooms":["*"],"tools":["a","b"],"egress_domains":["*.x.org","x.org"],"action_types":["run.start"],"data_access":{"read":["*"],"write":["room:r"]}}`,
		`{"rooms":["r"],"tools":["*"],"egress_domains":["a.x.org","*"],"action_types":["*"],"data_access":{"read":["run"],"write":["*"]}}`,
		"run.start", "r", "a", "a.x.org", "run")
	f.Add(`{}`, `{"rooms":["*"]}`, "", "", "", "", "")
	f.Add(`{"egress_domains":["*.a","*"]}`, `{"egress_domains":["*.b.a","b.a"]}`, "x", "", "", "c.b.a", "")
	f.Add(`{"rooms":[""]}`, `{"egress_domains":["*.","A"]}`, "", "", "", "", "")
	f.Fuzz(func(t *testing.T, one, other, action, room, tool, domain, reads string) {
		var a, b token.Scopes
		if json.Unmarshal([]byte(one), &a) != nil || json.Unmarshal([]byte(other), &b) != nil || a.Check() != nil || b.Check() != nil {
			return
		}
		both := a.Within(b)
		if !a.Covers(both) || !b.Covers(both) {
			t.Fatalf("%+v is within %+v and %+v, and is more than they are", both, a, b)
		}
		if !a.Covers(a) || a.Covers(b) && !b.Covers(b.Within(a)) {
			t.Errorf("%+v does not cover itself", a)
		}
		for _, use := range []token.Use{
			{Action: action, Room: id.Room(room), Tool: tool, Domain: domain}, {Action: action, Anywhere: true, NoTool: tool != "",
				NoDomain: domain != ""},
			{Room: id.Room(room), Reads: token.Names(reads, room, id.Room(room))}, {Writes: token.Names(reads, room, "")},
		} {
			inBoth, _ := both.Refuses(use)
			inOne, _ := a.Refuses(use)
			inOther, _ := b.Refuses(use)
			if inBoth == "" && (inOne != "" || inOther != "") {
				t.Errorf("%+v permits %+v, and of %+v and %+v one refuses it: %s %s", both, use, a, b, inOne, inOther)
			}
		}
	})
}
