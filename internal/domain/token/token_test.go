package token_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

var now = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// words from which entries are drawn; few, so that they meet.
var (
	plainWords  = []string{"*", "a", "b", "c", "resource_type:a", "room:r1"}
	domainWords = []string{"*", "*.org", "*.a.org", "a.org", "b.a.org", "b.org", "org"}
)

func entries(t *rapid.T, words []string, label string) []string {
	return rapid.SliceOfN(rapid.SampledFrom(words), 0, 3).Draw(t, label)
}

func scopes(t *rapid.T, label string) token.Scopes {
	return token.Scopes{
		Rooms: entries(t, plainWords, label+" rooms"), Tools: entries(t, plainWords, label+" tools"), Domains: entries(t, domainWords,
			label+" domains"),
		Actions: entries(t, plainWords, label+" actions"),
		Data:    token.Data{Read: entries(t, plainWords, label+" read"), Write: entries(t, plainWords, label+" write")},
	}
}

func use(t *rapid.T) token.Use {
	word := func(label string) string {
		return rapid.SampledFrom(append([]string{""}, plainWords[1:]...)).Draw(t, label)
	}
	u := token.Use{
		Action: word("action"), Room: id.Room(word("room")), Tool: word("tool"), Domain: rapid.SampledFrom([]string{"", "a.org", "b.a.org",
			"x.org", "org"}).Draw(t, "domain"),
		Anywhere: rapid.Bool().Draw(t, "anywhere"), NoTool: rapid.Bool().Draw(t, "no tool"), NoDomain: rapid.Bool().Draw(t, "no domain"),
	}
	if w := word("reads"); w != "" {
		u.Reads = []string{w}
	}
	if w := word("writes"); w != "" {
		u.Writes = []string{w}
	}
	return u
}

// TestThreat17AChildNeverExceedsItsParent is P-Attenuate: over random scopes, ends and depths, what a derived token permits every token
// above it permits, it never ends later, and nothing is derived beyond the depth.
func TestThreat17AChildNeverExceedsItsParent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		holder := id.Principal("usr_a")
		root, err := token.Grant{IssuedTo: holder, Scopes: scopes(t, "root"), ValidUntil: until(t)}.Root(holder, now)
		if err != nil {
			t.Fatal(err)
		}
		chain := []token.Token{made(root, 0)}
		for depth := 1; ; depth++ {
			g := token.Grant{IssuedTo: holder, Parent: chain[0].ID, Scopes: scopes(t, fmt.Sprint("depth ", depth)), ValidUntil: until(t)}
			granted, err := g.Delegate(chain, holder, now)
			if depth > token.MaxDepth {
				if fault.CodeOf(err) != "delegation_depth_exceeded" {
					t.Fatalf("depth %d: got %v", depth, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			child := made(granted, depth)
			for _, above := range chain {
				if !above.Scopes.Covers(child.Scopes) {
					t.Fatalf("%+v exceeds %+v", child.Scopes, above.Scopes)
				}
				if !above.ValidUntil.IsZero() && (child.ValidUntil.IsZero() || child.ValidUntil.After(above.ValidUntil)) {
					t.Fatalf("the child ends %s, a token above it %s", child.ValidUntil, above.ValidUntil)
				}
			}
			if !g.Scopes.Covers(child.Scopes) {
				t.Fatalf("%+v is more than %+v, which was asked for", child.Scopes, g.Scopes)
			}
			chain = append([]token.Token{child}, chain...)
			u, at := use(t), now.Add(time.Duration(rapid.IntRange(0, 4).Draw(t, "later"))*time.Hour)
			if code, _ := token.Permits(chain, u, at); code == "" {
				for n := range chain {
					if code, _ := token.Permits(chain[n:], u, at); code != "" {
						t.Fatalf("the child permits %+v and the token %d above it does not: %s", u, n, code)
					}
				}
			}
			revoked := slices.Clone(chain)
			n := rapid.IntRange(0, len(chain)-1).Draw(t, "revoked")
			revoked[n].RevokedAt = now
			if code, _ := token.Permits(revoked, token.Use{Anywhere: true}, now); code != policy.ReasonTokenRevoked {
				t.Fatalf("with token %d revoked: got %q", n, code)
			}
		}
	})
}

// TestScopesMeet compares the intersection with what both of two scopes permit, use by use.
func TestScopesMeet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, u := scopes(t, "a"), scopes(t, "b"), use(t)
		met := a.Within(b)
		refusedA, _ := a.Refuses(u)
		refusedB, _ := b.Refuses(u)
		refused, _ := met.Refuses(u)
		one := len(u.Reads) < 2 && len(u.Writes) < 2
		if both := refusedA == "" && refusedB == ""; one && both != (refused == "") {
			t.Fatalf("%+v of %+v and %+v: permitted by both %t, by what they meet in %q", u, a, b, both, refused)
		}
	})
}

func until(t *rapid.T) time.Time {
	if hours := rapid.IntRange(0, 3).Draw(t, "hours"); hours > 0 {
		return now.Add(time.Duration(hours) * time.Hour)
	}
	return time.Time{}
}

func made(g token.Granted, n int) token.Token {
	return token.Token{ID: id.Token(fmt.Sprint("cap_", n)), IssuedTo: g.IssuedTo, Parent: g.Parent, Depth: g.Depth, Scopes: g.Scopes,
		ValidUntil: g.ValidUntil}
}

func TestRefusals(t *testing.T) {
	narrow := token.Scopes{
		Rooms: []string{"room_1"}, Tools: []string{"search"}, Domains: []string{"*.a.org", "b.org"}, Actions: []string{"message.create"},
		Data: token.Data{Read: []string{"run", "resource:event:e1", "room:room_1"}, Write: []string{"resource_type:file"}},
	}
	in := func(u token.Use) token.Use {
		u.Room = "room_1"
		return u
	}
	for _, c := range []struct {
		name   string
		scopes token.Scopes
		use    token.Use
		want   string
	}{
		{"its action in its room", narrow, in(token.Use{Action: "message.create"}), ""},
		{"another action", narrow, in(token.Use{Action: "room.create"}), policy.ReasonScopeAction},
		{"no actions", token.Scopes{Rooms: []string{"*"}}, token.Use{Action: "a"}, policy.ReasonScopeActionRequired},
		{"another room", narrow, token.Use{Action: "message.create", Room: "room_2"}, policy.ReasonScopeRoom},
		{"the workspace", narrow, token.Use{Action: "message.create"}, policy.ReasonScopeRoomRequired},
		{"no rooms", token.Scopes{Actions: []string{"*"}}, token.Use{Action: "a", Room: "room_1"}, policy.ReasonScopeRoom},
		{"of no room by its nature", narrow, token.Use{Action: "message.create", Anywhere: true}, ""},
		{"its tool", narrow, in(token.Use{Tool: "search"}), ""},
		{"another tool", narrow, in(token.Use{Tool: "pay"}), policy.ReasonScopeTool},
		{"a tool without a name", narrow, in(token.Use{NoTool: true}), policy.ReasonScopeToolMissing},
		{"a tool without a name, of any", token.All(), token.Use{NoTool: true, NoDomain: true}, ""},
		{"no tools", token.Scopes{Rooms: []string{"*"}}, token.Use{Tool: "search"}, policy.ReasonScopeToolRequired},
		{"a host below its domain", narrow, in(token.Use{Domain: "x.y.a.org"}), ""},
		{"the domain itself", narrow, in(token.Use{Domain: "a.org"}), policy.ReasonScopeDomain},
		{"a host that only ends like it", narrow, in(token.Use{Domain: "xa.org"}), policy.ReasonScopeDomain},
		{"a host in capitals", narrow, in(token.Use{Domain: "B.org"}), policy.ReasonScopeDomain},
		{"no host", narrow, in(token.Use{NoDomain: true}), policy.ReasonScopeDomainMissing},
		{"no domains", token.Scopes{Rooms: []string{"*"}}, token.Use{Domain: "b.org"}, policy.ReasonScopeDomainRequired},
		{"data by type", token.Scopes{Rooms: []string{"*"}, Data: token.Data{Read: []string{"run"}}}, token.Use{Reads: token.Names("run", "r",
			"")}, ""},
		{"data by room", narrow, in(token.Use{Reads: token.Names("anything", "x", "room_1")}), ""},
		{"data by name", token.Scopes{Rooms: []string{"*"}, Data: token.Data{Read: []string{"resource:event:e1"}}},
			token.Use{Reads: token.Names("event", "e1", "")}, ""},
		{"data of another name", token.Scopes{Rooms: []string{"*"}, Data: token.Data{Read: []string{"resource:event:e1"}}},
			token.Use{Reads: token.Names("event", "e2", "")}, policy.ReasonScopeData},
		{"no data", token.Scopes{Rooms: []string{"*"}}, token.Use{Reads: []string{"run"}}, policy.ReasonScopeDataRequired},
		{"reading is not writing", narrow, in(token.Use{Writes: token.Names("run", "", "")}), policy.ReasonScopeData},
		{"writing its type", narrow, in(token.Use{Writes: token.Names("file", "a.txt", "")}), ""},
		{"everything", token.All(), token.Use{Action: "x", Tool: "y", Domain: "z", Reads: []string{"r"}, Writes: []string{"w"}}, ""},
		{"nothing", token.Scopes{}, token.Use{Action: "x"}, policy.ReasonScopeActionRequired},
	} {
		if got, reason := c.scopes.Refuses(c.use); got != c.want || (got == "") != (reason == "") {
			t.Errorf("%s: got %q (%s), want %q", c.name, got, reason, c.want)
		}
	}
}

func TestDelegation(t *testing.T) {
	root := token.Token{ID: "cap_0", IssuedTo: "usr_a", Scopes: token.All()}
	child := token.Token{ID: "cap_1", IssuedTo: "agt_b", Parent: "cap_0", Depth: 1, Scopes: token.All()}
	with := func(t token.Token, change func(*token.Token)) token.Token { change(&t); return t }
	g := token.Grant{IssuedTo: "agt_c", Parent: "cap_1", Scopes: token.All()}
	for _, c := range []struct {
		name  string
		chain []token.Token
		by    id.Principal
		grant token.Grant
		want  error
	}{
		{"by the holder", []token.Token{child, root}, "agt_b", g, nil},
		{"by the holder of the root", []token.Token{child, root}, "usr_a", g, token.ErrParentNotYours},
		{"revoked", []token.Token{with(child, func(t *token.Token) { t.RevokedAt = now }), root}, "agt_b", g, token.ErrParentRevoked},
		{"revoked above", []token.Token{child, with(root, func(t *token.Token) { t.RevokedAt = now })}, "agt_b", g, token.ErrParentRevoked},
		{"its last moment is over", []token.Token{with(child, func(t *token.Token) { t.ValidUntil = now }), root}, "agt_b", g,
			token.ErrParentExpired},
		{"in its last moment", []token.Token{with(child, func(t *token.Token) { t.ValidUntil = now.Add(1) }), root}, "agt_b", g, nil},
		{"expired above", []token.Token{child, with(root, func(t *token.Token) { t.ValidUntil = now })}, "agt_b", g, token.ErrParentExpired},
		{"with a gap", []token.Token{child}, "agt_b", g, token.ErrParentNotFound},
		{"of another token", []token.Token{root}, "usr_a", g, token.ErrParentNotFound},
		{"of none", nil, "agt_b", g, token.ErrParentNotFound},
		{"too deep", []token.Token{with(child, func(t *token.Token) { t.Depth = token.MaxDepth }), root}, "agt_b", g, token.ErrTooDeep},
		{"until now", []token.Token{child, root}, "agt_b", token.Grant{IssuedTo: "agt_c", Parent: "cap_1", ValidUntil: now},
			token.ErrInvalidUntil},
		{"with a bad scope", []token.Token{child, root}, "agt_b", token.Grant{IssuedTo: "agt_c", Parent: "cap_1",
			Scopes: token.Scopes{Tools: []string{""}}}, token.ErrInvalidScopes},
	} {
		got, err := c.grant.Delegate(c.chain, c.by, now)
		if fault.CodeOf(err) != fault.CodeOf(c.want) {
			t.Errorf("%s: got %v, want %v", c.name, err, c.want)
		}
		if err == nil && got.Depth != 2 {
			t.Errorf("%s: depth %d", c.name, got.Depth)
		}
	}
}

func TestScopesAreChecked(t *testing.T) {
	long := strings.Repeat("x", token.MaxEntryBytes)
	many := make([]string, token.MaxEntries)
	for i := range many {
		many[i] = "x"
	}
	for _, c := range []struct {
		name   string
		scopes token.Scopes
		ok     bool
	}{
		{"none", token.Scopes{}, true},
		{"as long as may be", token.Scopes{Tools: []string{long}}, true},
		{"longer", token.Scopes{Tools: []string{long + "x"}}, false},
		{"as many as may be", token.Scopes{Rooms: many}, true},
		{"more", token.Scopes{Rooms: append(many, "x")}, false},
		{"empty", token.Scopes{Actions: []string{""}}, false},
		{"a space", token.Scopes{Actions: []string{"a b"}}, false},
		{"a letter that looks like another", token.Scopes{Rooms: []string{"rооm"}}, false},
		{"control", token.Scopes{Data: token.Data{Write: []string{"a\x00"}}}, false},
		{"hosts", token.Scopes{Domains: []string{"*", "a.org", "*.a.org", "xn--bcher-kva.example"}}, true},
		{"a host in capitals", token.Scopes{Domains: []string{"A.org"}}, false},
		{"a star inside", token.Scopes{Domains: []string{"a.*.org"}}, false},
		{"a star without a dot", token.Scopes{Domains: []string{"*org"}}, false},
		{"a dot at the end", token.Scopes{Domains: []string{"a.org."}}, false},
		{"an address", token.Scopes{Domains: []string{"a.org/path"}}, false},
	} {
		if err := c.scopes.Check(); (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.name, err, c.ok)
		}
	}
}

func TestAChainIsReadToItsRoot(t *testing.T) {
	docs := map[id.Token]token.Token{"cap_0": {ID: "cap_0"}}
	for n := 1; n <= token.MaxDepth+1; n++ {
		name := id.Token(fmt.Sprint("cap_", n))
		docs[name] = token.Token{ID: name, Parent: id.Token(fmt.Sprint("cap_", n-1)), Depth: n}
	}
	docs["cap_loop"] = token.Token{ID: "cap_loop", Parent: "cap_loop"}
	docs["cap_orphan"] = token.Token{ID: "cap_orphan", Parent: "cap_gone"}
	docs["cap_other"] = token.Token{ID: "cap_0"}
	read := func(t id.Token) (token.Token, error) { return docs[t], nil }
	for name, want := range map[id.Token]int{"cap_0": 1, "cap_3": 4, "cap_4": 0, "cap_loop": 0, "cap_orphan": 0, "cap_other": 0,
		"cap_none": 0} {
		chain, err := token.Chain(name, read)
		if len(chain) != want || (err == nil) != (want > 0) {
			t.Errorf("%s: got %d tokens, %v, want %d", name, len(chain), err, want)
		}
	}
	if _, err := token.Chain("cap_0", func(id.Token) (token.Token, error) { return token.Token{}, token.ErrTooDeep }); err == nil {
		t.Error("an error was swallowed")
	}
}

func TestEvolve(t *testing.T) {
	at := func(typ, data string) event.Event {
		return event.Event{Header: event.Header{Type: typ, Workspace: "ws_dev", OccurredAt: now}, Data: []byte(data)}
	}
	var doc token.Token
	for _, e := range []event.Event{
		at(token.GrantedType, `{"token_id":"cap_1","issued_to_principal_id":"agt_1","granted_by_principal_id":"usr_1","parent_token_id":"cap_0","depth":1,"scopes":{"rooms":["*"]},"later":1}`),
		at(token.RevokedType, `{"token_id":"cap_1","revoked_by_principal_id":"usr_1","reason":"enough"}`),
		at(token.RevokedType, `{"token_id":"cap_1","revoked_by_principal_id":"usr_2","reason":"again"}`),
		at("something.else", `{}`),
	} {
		var err error
		if doc, err = doc.Evolve(e); err != nil {
			t.Fatal(err)
		}
	}
	if doc.ID != "cap_1" || doc.IssuedTo != "agt_1" || doc.RevokedBy != "usr_1" || doc.Reason != "enough" || !doc.RevokedAt.Equal(now) ||
		doc.Workspace != "ws_dev" {
		t.Errorf("got %+v", doc)
	}
	if edge, ok := doc.Edge(); !ok || edge.Parent != "cap_0" || edge.Child != "cap_1" || edge.From != "usr_1" || edge.To != "agt_1" ||
		edge.Depth != 1 {
		t.Errorf("got %+v", edge)
	}
	if _, err := doc.Evolve(at(token.GrantedType, `[`)); err == nil {
		t.Error("broken data was folded")
	}
}

// A grant that would permit nothing is refused, and the refusal names the scopes that the parent does not permit.
func TestATokenThatPermitsNothingIsNotUseful(t *testing.T) {
	acts := func(actions ...string) token.Scopes {
		return token.Scopes{Rooms: []string{token.Any}, Actions: actions}
	}
	root := token.Token{ID: "cap_1", IssuedTo: "agt_a", Scopes: token.Scopes{Rooms: []string{"room_a"}, Actions: []string{policy.FileRead},
		Data: token.Data{Read: []string{"file"}}}}
	for _, c := range []struct {
		name    string
		derived bool
		scopes  token.Scopes
		code    string
		says    string
		dropped []string
	}{
		{"everything", false, token.All(), "", "", nil},
		{"an action", false, acts(policy.RunStart), "", "", nil},
		{"only to see", false, token.Scopes{Rooms: []string{token.Any}, Data: token.Data{Read: []string{"run"}}}, "", "", nil},
		{"nothing", false, token.Scopes{}, "capability_permits_nothing", "", nil},
		{"rooms only", false, acts(), "capability_permits_nothing", "", nil},
		{"a wrong action", false, acts(policy.RunStart, "run.strat"), "invalid_action", "did you mean run.start?", nil},
		{"a pattern", false, acts("file.*"), "invalid_action", "there is no action file.*", nil},
		{"an alias", false, acts("external_write"), "invalid_action", "did you mean external.write?", nil},
		{"what the parent permits", true, token.Scopes{Rooms: []string{"room_a"}, Actions: []string{policy.FileRead}}, "", "", nil},
		{"less of it", true, acts(policy.FileRead, policy.FileCreate), "", "", []string{"rooms *", "action_types file.create"}},
		{"none of the actions", true, acts(policy.FileCreate), "capability_permits_nothing", "action_types", nil},
		{"none of the rooms", true, token.Scopes{Rooms: []string{"room_b"}, Actions: []string{policy.FileRead}}, "capability_permits_nothing",
			"rooms", nil},
	} {
		g := token.Grant{IssuedTo: "agt_b", Scopes: c.scopes}
		granted, err := g.Root("agt_a", now)
		if c.derived {
			g.Parent = root.ID
			granted, err = g.Delegate([]token.Token{root}, "agt_a", now)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Useful(granted); fault.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q that says %q", c.name, err, c.code, c.says)
		}
		if got := c.scopes.Without(granted.Scopes); c.code == "" && !slices.Equal(got, c.dropped) {
			t.Errorf("%s: %v was dropped, want %v", c.name, got, c.dropped)
		}
	}
}
