package token_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/token"
)

// TestATokenDelegatesWhatAllOfItsChainName holds that an action is given by its own name only, by every token up to the root.
func TestATokenDelegatesWhatAllOfItsChainName(t *testing.T) {
	of := func(name, parent id.Token, actions ...string) token.Token {
		return token.Token{ID: name, Parent: parent, Scopes: token.Scopes{Actions: actions}}
	}
	root := of("cap_1", "", "run.start", "space.start")
	for name, c := range map[string]struct {
		chain []token.Token
		want  bool
	}{
		"a root that names it": {[]token.Token{root}, true}, "a root that names another": {[]token.Token{of("cap_1", "", "space.start")}, false},
		"a root with a star":       {[]token.Token{of("cap_1", "", token.Any)}, false},
		"both name it":             {[]token.Token{of("cap_2", "cap_1", "run.start"), root}, true},
		"only the root names it":   {[]token.Token{of("cap_2", "cap_1", token.Any), root}, false},
		"only the child names it":  {[]token.Token{of("cap_2", "cap_1", "run.start"), of("cap_1", "", token.Any)}, false},
		"a chain without its root": {[]token.Token{of("cap_2", "cap_1", "run.start")}, false}, "no chain": {nil, false},
	} {
		if got := token.Delegates(c.chain, "run.start"); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
	if e, ok := root.Edge(); ok {
		t.Errorf("a root was derived by %+v", e)
	}
	child := token.Token{ID: "cap_2", Parent: "cap_1", GrantedBy: "usr_1", IssuedTo: "agt_1", Depth: 1, CreatedAt: time.Unix(1, 0),
		RevokedAt: time.Unix(2, 0)}
	if e, ok := child.Edge(); !ok || e != (token.Edge{Parent: "cap_1", Child: "cap_2", From: "usr_1", To: "agt_1", Depth: 1,
		CreatedAt: time.Unix(1, 0), RevokedAt: time.Unix(2, 0)}) {
		t.Errorf("got %+v, %t", e, ok)
	}
}

// TestWhatMakesATokenUseful holds an action of the workspace's own, a grant without rooms, and the names in a refusal.
func TestWhatMakesATokenUseful(t *testing.T) {
	for _, action := range []string{"till.open", "run.start", token.Any} {
		g := token.Grant{Scopes: token.Scopes{Actions: []string{action}}}
		if err := g.Useful(token.Granted{Scopes: g.Scopes}); err != nil {
			t.Errorf("%s: %v", action, err)
		}
	}
	for action, near := range map[string]string{"external_write": "external.write", "run.strat": "run.start"} {
		err := token.Grant{Scopes: token.Scopes{Actions: []string{action}}}.Useful(token.Granted{})
		if fault.CodeOf(err) != token.ErrUnknownAction.Code && action != "external_write" {
			t.Errorf("%s: %v", action, err)
		}
		if said := token.UnknownAction(action).Error(); !strings.Contains(said, "did you mean "+near+"?") {
			t.Errorf("%s: got %q, want %s", action, said, near)
		}
	}
	broken := errors.New("broken")
	if _, err := token.Chain("cap_1", func(id.Token) (token.Token, error) { return token.Token{}, broken }); !errors.Is(err, broken) {
		t.Errorf("a chain that cannot be read: %v", err)
	}
}
