package token_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// A token is in force while its whole chain is: no gap, none revoked, none expired. Each refusal has its own code and a sentence.
func TestWhatKeepsATokenFromBeingInForce(t *testing.T) {
	root := token.Token{ID: "cap_0", IssuedTo: "usr_a", Scopes: token.All()}
	child := token.Token{ID: "cap_1", IssuedTo: "agt_b", Parent: "cap_0", Depth: 1, Scopes: token.All()}
	revoked := func(t token.Token) token.Token { t.RevokedAt = now; return t }
	until := func(t token.Token, end time.Time) token.Token { t.ValidUntil = end; return t }
	var long []token.Token
	for n := token.MaxDepth + 1; n >= 0; n-- {
		link := token.Token{ID: id.Token("cap_" + string(rune('a'+n))), Scopes: token.All()}
		if n > 0 {
			link.Parent = id.Token("cap_" + string(rune('a'+n-1)))
		}
		long = append(long, link)
	}
	for _, c := range []struct {
		name  string
		chain []token.Token
		want  string
	}{
		{"a root", []token.Token{root}, ""},
		{"a child", []token.Token{child, root}, ""},
		{"as deep as may be", long[1:], ""},
		{"deeper", long, policy.ReasonTokenNotFound},
		{"none", nil, policy.ReasonTokenNotFound},
		{"without its root", []token.Token{child}, policy.ReasonTokenNotFound},
		{"with the root of another", []token.Token{child, {ID: "cap_9", Scopes: token.All()}}, policy.ReasonTokenNotFound},
		{"without an id", []token.Token{{Scopes: token.All()}}, policy.ReasonTokenNotFound},
		{"revoked", []token.Token{revoked(child), root}, policy.ReasonTokenRevoked},
		{"revoked above", []token.Token{child, revoked(root)}, policy.ReasonTokenRevoked},
		{"in its last moment", []token.Token{until(child, now.Add(1)), root}, ""},
		{"expired", []token.Token{until(child, now), root}, policy.ReasonTokenExpired},
		{"expired above", []token.Token{child, until(root, now)}, policy.ReasonTokenExpired},
	} {
		code, reason := token.Holds(c.chain, now)
		if code != c.want || (code == "") != (reason == "") {
			t.Errorf("%s: held by %q (%s), want %q", c.name, code, reason, c.want)
		}
		used, why := token.Permits(c.chain, token.Use{Action: policy.RunStart}, now)
		if used != code || why != reason {
			t.Errorf("%s: a use is refused as %q (%s), the token as %q (%s)", c.name, used, why, code, reason)
		}
	}
}

// A chain permits only the uses that each of its tokens permits. The answer is that of the token that refuses.
func TestEveryTokenOfAChainHasToPermitAUse(t *testing.T) {
	narrow := token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.FileRead}}
	root := token.Token{ID: "cap_0", IssuedTo: "usr_a", Scopes: narrow}
	child := token.Token{ID: "cap_1", IssuedTo: "agt_b", Parent: "cap_0", Depth: 1, Scopes: token.All()}
	u := token.Use{Action: policy.RunStart}
	code, reason := token.Permits([]token.Token{child, root}, u, now)
	if wantCode, wantReason := narrow.Refuses(u); code != wantCode || reason != wantReason || code != policy.ReasonScopeAction {
		t.Errorf("refused as %q (%s), want %q (%s)", code, reason, wantCode, wantReason)
	}
	if code, reason := token.Permits([]token.Token{child, root}, token.Use{Action: policy.FileRead}, now); code != "" || reason != "" {
		t.Errorf("what both permit is refused as %q (%s)", code, reason)
	}
}

// A derived token ends when somebody asked it to, or with the first of those above it: whichever is earlier.
func TestADerivedTokenEndsWithTheFirst(t *testing.T) {
	at := func(hours int) time.Time {
		if hours == 0 {
			return time.Time{}
		}
		return now.Add(time.Duration(hours) * time.Hour)
	}
	for _, c := range []struct{ asked, parent, root, want int }{
		{0, 0, 0, 0}, {1, 0, 0, 1}, {1, 2, 3, 1}, {3, 2, 0, 2}, {3, 2, 1, 1}, {0, 2, 3, 2}, {0, 0, 3, 3}, {2, 0, 3, 2}, {2, 3, 0, 2},
	} {
		chain := []token.Token{
			{ID: "cap_1", IssuedTo: "agt_b", Parent: "cap_0", Depth: 1, Scopes: token.All(), ValidUntil: at(c.parent)},
			{ID: "cap_0", IssuedTo: "usr_a", Scopes: token.All(), ValidUntil: at(c.root)},
		}
		got, err := token.Grant{IssuedTo: "agt_c", Parent: "cap_1", Scopes: token.All(), ValidUntil: at(c.asked)}.Delegate(chain, "agt_b", now)
		if err != nil || !got.ValidUntil.Equal(at(c.want)) {
			t.Errorf("%+v: ends %s, %v", c, got.ValidUntil, err)
		}
	}
}

func TestARootIsChecked(t *testing.T) {
	for _, c := range []struct {
		grant token.Grant
		want  string
	}{
		{token.Grant{Scopes: token.All()}, ""},
		{token.Grant{Scopes: token.All(), ValidUntil: now.Add(1)}, ""},
		{token.Grant{Scopes: token.All(), ValidUntil: now}, "invalid_valid_until"},
		{token.Grant{Scopes: token.Scopes{Tools: []string{""}}}, "invalid_scopes"},
		{token.Grant{Scopes: token.Scopes{Tools: []string{"a\x7f"}}}, "invalid_scopes"},
		{token.Grant{Scopes: token.Scopes{Tools: []string{"a~"}}}, ""},
	} {
		if _, err := c.grant.Root("usr_a", now); fault.CodeOf(err) != c.want {
			t.Errorf("%+v: got %v, want %q", c.grant, err, c.want)
		}
	}
}

// Covers and Within are the two sides of one order: entries come once each and sorted.
func TestScopesCover(t *testing.T) {
	narrow, wide := token.Scopes{Domains: []string{"a.org"}}, token.Scopes{Domains: []string{"*.org", "b.org"}}
	if !token.All().Covers(wide) || !wide.Covers(narrow) || !wide.Covers(wide) {
		t.Error("wide scopes do not cover narrow ones")
	}
	if narrow.Covers(wide) || (token.Scopes{}).Covers(narrow) || wide.Covers(token.All()) {
		t.Error("narrow scopes cover wide ones")
	}
	met := token.Scopes{Tools: []string{"c", "a", "b", "a"}}.Within(token.All())
	if want := []string{"a", "b", "c"}; !slices.Equal(met.Tools, want) {
		t.Errorf("got %v, want %v", met.Tools, want)
	}
}

// A scope that names an empty key or an empty room would name nothing, so none of them is there.
func TestTheNamesOfData(t *testing.T) {
	for _, c := range []struct {
		key  string
		room id.Room
		want []string
	}{
		{"", "", []string{"run", "resource_type:run"}},
		{"r", "", []string{"run", "resource_type:run", "resource:run:r"}},
		{"", "room_1", []string{"run", "resource_type:run", "room:room_1"}},
		{"r", "room_1", []string{"run", "resource_type:run", "resource:run:r", "room:room_1"}},
	} {
		if got := token.Names("run", c.key, c.room); !slices.Equal(got, c.want) {
			t.Errorf("%q in %q: got %q, want %q", c.key, c.room, got, c.want)
		}
	}
}

func TestATokenIsWithinItsChain(t *testing.T) {
	chain := []token.Token{{ID: "cap_1", Parent: "cap_0"}, {ID: "cap_0"}}
	if !token.Within(chain, "cap_0") || !token.Within(chain, "cap_1") {
		t.Error("a token is not within its own chain")
	}
	if token.Within(chain, "cap_2") || token.Within(nil, "cap_0") || token.Within(chain, "") {
		t.Error("a token is within the chain of another")
	}
}

// Where nothing was asked for, the refusal does not blame the parent.
func TestARefusalBlamesTheParentOnlyForWhatItLacks(t *testing.T) {
	for _, s := range []token.Scopes{{}, {Rooms: []string{token.Any}}} {
		g := token.Grant{Scopes: s}
		granted, err := g.Root("usr_a", now)
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Useful(granted); fault.CodeOf(err) != "capability_permits_nothing" || strings.Contains(err.Error(), "parent") {
			t.Errorf("%+v: got %v", s, err)
		}
	}
}

// Data that cannot be read change no token, so that a revoked token stays revoked.
func TestBrokenDataChangeNoToken(t *testing.T) {
	doc := token.Token{ID: "cap_1", IssuedTo: "agt_1", RevokedAt: now}
	for _, typ := range []string{token.GrantedType, token.RevokedType} {
		got, err := doc.Evolve(event.Event{Header: event.Header{Type: typ, OccurredAt: now.Add(1)}, Data: []byte("[")})
		if err == nil || got.ID != doc.ID || got.IssuedTo != doc.IssuedTo || !got.RevokedAt.Equal(now) {
			t.Errorf("%s: got %+v, %v", typ, got, err)
		}
	}
}
