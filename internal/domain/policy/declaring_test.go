package policy_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// TestADeclarationSaysWhatItIs holds each field of a declared type in its event, its document, its actions, and as the registry shows it.
func TestADeclarationSaysWhatItIs(t *testing.T) {
	for _, effect := range []policy.SideEffect{policy.Pure, policy.Read, policy.Filesystem, policy.Process, policy.Network} {
		for _, zone := range []event.Zone{"", event.Sandbox, event.Supervised, event.HighStakes} {
			for _, is := range []bool{true, false} {
				cmd := policy.Declare{Name: "deploy.it", Description: "put it there", SideEffect: effect, Zone: zone, Reversible: is, Asks: !is,
					Targets: []string{policy.TargetURL, policy.TargetHost}}
				typ, d, err := policy.ActionType{}.Declare(cmd, 0)
				if zone == "" {
					zone = event.Supervised
				}
				want := policy.ActionTypeDeclared{
					Name: "deploy.it", Version: 1, Description: "put it there", SideEffect: effect, Zone: zone, Reversible: is, Asks: !is,
					Targets: []string{policy.TargetHost, policy.TargetURL},
				}
				if err != nil || typ != policy.ActionTypeDeclaredType || !reflect.DeepEqual(d, want) {
					t.Fatalf("got %s %+v, %v, want %+v", typ, d, err, want)
				}
				doc, err := policy.ActionType{}.Evolve(told(t, typ, "deploy.it", d))
				if wanted := (policy.ActionType{
					Name: "deploy.it", Workspace: "ws_dev", Status: policy.DeclaredStatus, Version: 1, Description: "put it there", SideEffect: effect,
					Zone: zone, Reversible: is, Asks: !is,
					Targets: want.Targets, DeclaredBy: "usr_1", DeclaredAt: noon,
				}); err != nil || !reflect.DeepEqual(doc, wanted) {
					t.Fatalf("got %+v, %v, want %+v", doc, err, wanted)
				}
				declaration := policy.Declaration{Version: 1, Description: "put it there", SideEffect: effect, Zone: zone, Reversible: is, Asks: !is,
					Targets: "host url"}
				if got := doc.Declaration(); got != declaration {
					t.Errorf("got %+v, want %+v", got, declaration)
				}
				k, known := policy.Action{Type: "deploy.it", Declared: declaration}.Kind()
				if !known || k.Type != "deploy.it" || k.SideEffect != effect || k.Zone != zone || k.Reversible != is || k.PreApproval != !is ||
					k.Title != "do deploy.it" ||
					!k.Outside || k.Role != "member" || !k.Agents || !k.Services || k.Declared != 1 {
					t.Errorf("got %+v", k)
				}
				shown := doc.Kind()
				cost := policy.MediumCost
				switch {
				case zone == event.HighStakes:
					cost = policy.HighCost
				case is || zone == event.Sandbox:
					cost = policy.LowCost
				}
				if shown.Title != "put it there" || shown.Cost != cost || shown.PostReview != (zone == event.Supervised) || shown.Declared != 1 {
					t.Errorf("%s, reversible %t: got %+v, want the cost %s", zone, is, shown, cost)
				}
				if typ, same, err := doc.Declare(cmd, 0); err != nil || typ != "" || same.Version != 2 {
					t.Errorf("declared again: got %q %+v, %v", typ, same, err)
				}
				for field, change := range map[string]func(*policy.Declare){
					"description": func(d *policy.Declare) { d.Description = "x" }, "reversible": func(d *policy.Declare) { d.Reversible = !d.Reversible },
					"asks": func(d *policy.Declare) { d.Asks = !d.Asks }, "targets": func(d *policy.Declare) { d.Targets = nil },
				} {
					other := cmd
					change(&other)
					if typ, d, err := doc.Declare(other, policy.MaxActionTypes); err != nil || typ != policy.ActionTypeChangedType || d.Version != 2 {
						t.Errorf("another %s: got %q %+v, %v", field, typ, d, err)
					}
				}
			}
		}
	}
	if _, d, err := (policy.ActionType{}).Declare(policy.Declare{Name: "deploy.it", Description: "x", SideEffect: policy.Pure},
		policy.MaxActionTypes); !errors.Is(err, policy.ErrActionTypeFull) || d.Version != 1 {
		t.Errorf("got %+v, %v", d, err)
	}
}

// TestARetiredTypeIsNoType holds the reason's bounds, what the event changes, and that a misplaced event changes nothing.
func TestARetiredTypeIsNoType(t *testing.T) {
	doc := policy.ActionType{Name: "deploy.it", Status: policy.DeclaredStatus, Version: 3}
	for reason, want := range map[string]error{strings.Repeat("x", policy.MaxReasonBytes): nil,
		strings.Repeat("x", policy.MaxReasonBytes+1): policy.ErrReasonTooLong, "\xff": policy.ErrReasonTooLong} {
		if d, err := doc.Retire(reason); !errors.Is(err, want) || err == nil &&
			d != (policy.ActionTypeRetired{Name: "deploy.it", Version: 3, Reason: reason}) {
			t.Errorf("%.10q: got %+v, %v, want %v", reason, d, err, want)
		}
	}
	retired := told(t, policy.ActionTypeRetiredType, "deploy.it", policy.ActionTypeRetired{Name: "deploy.it", Version: 3, Reason: "old"})
	got, err := doc.Evolve(retired)
	want := doc
	want.Status, want.RetiredBy, want.RetiredAt, want.Reason = policy.RetiredStatus, "usr_1", noon, "old"
	if err != nil || !reflect.DeepEqual(got, want) || got.Living() || got.Declaration() != (policy.Declaration{}) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := got.Retire("again"); !errors.Is(err, policy.ErrActionTypeNotFound) {
		t.Errorf("retired twice: %v", err)
	}
	for name, e := range map[string]event.Event{
		"a broken retirement": broken(retired), "the retirement of another": told(t, policy.ActionTypeRetiredType, "deploy.it",
			policy.ActionTypeRetired{Name: "deploy.that"}),
		"a broken declaration":       broken(told(t, policy.ActionTypeDeclaredType, "deploy.it", nil)),
		"the declaration of another": told(t, policy.ActionTypeChangedType, "deploy.it", policy.ActionTypeDeclared{Name: "deploy.that"}),
	} {
		if got, err := doc.Evolve(e); err == nil || !reflect.DeepEqual(got, doc) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
}

// TestWhichTargetIsOfWhichKind holds for each kind of target what is one.
func TestWhichTargetIsOfWhichKind(t *testing.T) {
	all := append(policy.TargetKinds(), "moon")
	for target, kinds := range map[string]string{
		"example.com": "host name", "example.com:80": "host name", "example.com/": "name", "https://example.com/a?b#c": "url name",
		"https://": "name", "://x": "name",
		"ada@example.com": "address name", "@example.com": "name", "ada@": "name", "a@b@c": "name", "a b@example.com": "name",
		"a\nb@example.com": "", "ada@a..b c": "name",
		"a\u202eb": "", "a\ufeffb": "", "\xff": "", "a\ufeff@example.com": "", "ada <x>@example.com": "name", "user@": "name", "ada@/": "name",
	} {
		var got []string
		for _, kind := range all {
			a := policy.Action{Type: "till.open", Target: target, Declared: policy.Declaration{Version: 1, Targets: kind}}
			if a.Misses() == "" {
				got = append(got, kind)
			} else if a.Misses() != kind {
				t.Errorf("%q misses %q, want %s", target, a.Misses(), kind)
			}
		}
		if strings.Join(got, " ") != kinds {
			t.Errorf("%q is %v, want %s", target, got, kinds)
		}
	}
	for _, c := range []struct {
		a    policy.Action
		want string
	}{
		{policy.Action{}, "workspace"}, {policy.Action{Room: "room_1"}, "room"}, {policy.Action{Room: "room_1", Run: "run_1"}, "run"},
		{policy.Action{Run: "run_1"}, "run"},
		{policy.Action{Room: "room_1", Target: "x y"}, "name"}, {policy.Action{Run: "run_1", Target: "x y"}, "name"},
		{policy.Action{Target: "x y"}, "name"},
	} {
		for _, kind := range all {
			c.a.Declared = policy.Declaration{Version: 1, Targets: kind}
			if (c.a.Misses() == "") != (kind == c.want) {
				t.Errorf("%+v as a %s: misses %q", c.a, kind, c.a.Misses())
			}
		}
		c.a.Declared.Targets = ""
		if c.a.Misses() != "" {
			t.Errorf("%+v misses %q, and no kind is named", c.a, c.a.Misses())
		}
		if c.a.Declared.Targets = "moon " + c.want; c.a.Misses() != "" {
			t.Errorf("%+v misses %q, and one of two is enough", c.a, c.a.Misses())
		}
		if c.a.Declared.Targets = "moon sun"; c.a.Misses() != "moon, sun" {
			t.Errorf("%+v misses %q, want both", c.a, c.a.Misses())
		}
	}
	for a, want := range map[*policy.Action]bool{{Type: "till.open", Declared: policy.Declaration{Version: 1}}: true,
		{Type: policy.FileRead, Declared: policy.Declaration{Version: 1}}: false, {Type: "till.open"}: false} {
		if a.Own() != want {
			t.Errorf("%s: the workspace's own %t, want %t", a.Type, a.Own(), want)
		}
	}
	for name, want := range map[string]error{"a.b": nil, "z.z": nil, "A.b": policy.ErrActionTypeName, "{.b": policy.ErrActionTypeName,
		"`.b": policy.ErrActionTypeName, "1a.b": policy.ErrActionTypeName} {
		if err := policy.Declarable(name); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	for name, want := range map[string]bool{policy.EmailSend: true, policy.FileRead: false, "till.open": true, "till": false,
		"file.open": false} {
		if policy.Outside(name) != want {
			t.Errorf("%s is done outside: %t, want %t", name, !want, want)
		}
	}
}

// TestTheEdgesOfTargetsAndTemplates holds what is left of a host, a template and a plain question where a part of it is missing.
func TestTheEdgesOfTargetsAndTemplates(t *testing.T) {
	for target, want := range map[string]string{"/": policy.Unreadable, "ada@example.com/x": policy.Unreadable,
		"/@example.com": policy.Unreadable, "https:///": policy.Unreadable, "https://a.example/@b": "a.example"} {
		if got := policy.Host(target); got != want {
			t.Errorf("%s: got %s, want %s", target, got, want)
		}
	}
	of := func(request string) policy.Action {
		return policy.Action{Type: policy.EmailSend, Workspace: "ws_dev", Principal: "agt_1", Target: "ada@example.com", Request: []byte(request)}
	}
	match := func(a policy.Action) event.Digest {
		c, err := policy.CoverOf(a, policy.ScopeTemplate, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c.Match
	}
	if match(of(`{"to":["a",1]}`)) == match(of(`{"to":["a","b"]}`)) || match(of(`{"to":[null]}`)) == match(of(`{"to":["a"]}`)) {
		t.Error("a list of other kinds of values is covered")
	}
	if _, err := policy.CoverOf(of(""), policy.ScopeTemplate, nil); !errors.Is(err, policy.ErrTemplateImpossible) {
		t.Errorf("without a request: %v", err)
	}
	shell := func(command string, words ...string) (policy.Cover, error) {
		return policy.CoverOf(policy.Action{Type: policy.ShellExec, Workspace: "ws_dev", Principal: "agt_1", Command: command,
			Argv: []string{"sh", "-c", command}}, policy.ScopeTemplate, words)
	}
	if c, err := shell("cp '' a/b", "cp", "", "a/b"); err != nil || c.Text != "run a command: cp '' a/{name}" {
		t.Errorf("an empty word: got %+v, %v", c, err)
	}
	inexact := policy.Action{Type: policy.FileCreate, Workspace: "ws_dev", Path: "a/b", TimeoutMS: 1 << 60}
	if _, err := policy.CoverOf(inexact, policy.ScopeTemplate, nil); err == nil {
		t.Error("a template of an action that has no canonical form")
	}
	inexact = of(`{}`)
	inexact.TimeoutMS = 1 << 60
	for _, scope := range []policy.Scope{policy.ScopeTemplate, policy.ScopeWorkspace} {
		if c, err := policy.CoverOf(inexact, scope, nil); !errors.Is(err, policy.ErrInexact) || c != (policy.Cover{}) {
			t.Errorf("scope %s: got %+v, %v", scope, c, err)
		}
	}
	for a, want := range map[*policy.Action]error{
		{Type: "till.open", Workspace: "ws_dev", Target: "t", Declared: policy.Declaration{Version: 1, SideEffect: policy.Filesystem,
			Reversible: true}}: nil,
		{Type: "till.open", Workspace: "ws_dev", Declared: policy.Declaration{Version: 1, SideEffect: policy.Network,
			Reversible: true}}: policy.ErrStandingImpossible,
		{Type: "till.open", Workspace: "ws_dev", Target: "t", Declared: policy.Declaration{Version: 1,
			SideEffect: policy.Process}}: policy.ErrStandingImpossible,
		{Type: policy.FileDelete, Workspace: "ws_dev", Target: "t",
			Path: "p"}: policy.ErrStandingImpossible,
		{Type: policy.EmailSend, Workspace: "ws_dev",
			Method: "PUT"}: policy.ErrStandingImpossible,
	} {
		c, err := policy.CoverOf(*a, policy.ScopeWorkspace, nil)
		if !errors.Is(err, want) || want == nil && c.Kind != policy.CoverRecipient {
			t.Errorf("%+v: got %+v, %v, want %v", a, c, err, want)
		}
	}
	if raw, err := policy.Questioned("why?"); err != nil || string(raw) != `{"question":"why?"}` {
		t.Errorf("got %s, %v", raw, err)
	}
	a := policy.Approval{Approvers: 2, Status: policy.Pending, ExpiresAt: noon}
	if answer, enough, err := a.Second(policy.Answer{Decision: policy.Approve, Uses: 3}, "usr_1", "", nil, true); err != nil || enough ||
		answer.Uses != 3 {
		t.Errorf("a first yes: got %+v, %t, %v", answer, enough, err)
	}
	own := policy.Approval{Approvers: 2, Assents: []policy.Assent{{By: "usr_1", Scope: policy.ScopeOnce, At: noon.Add(-time.Hour)}}}
	if answer, enough, err := own.Second(policy.Answer{Decision: policy.Approve, Uses: 3}, "usr_1", "", nil,
		true); fault.CodeOf(err) != "approval_already_assented" || enough || answer.Uses != 3 {
		t.Errorf("the same yes: got %+v, %t, %v", answer, enough, err)
	}
}

// TestWhatIsWithheld holds the edges of the patterns, and how a policy shows them.
func TestWhatIsWithheld(t *testing.T) {
	none, one := policy.Withhold{}, policy.Withhold{Paths: []string{"a", "b"}, Except: []string{"c"}}
	if !none.IsZero() || one.IsZero() {
		t.Error("a policy withholds something where it names a path")
	}
	seen := map[event.Digest]bool{}
	for _, w := range []policy.Withhold{none, one, {Paths: []string{"a"}, Except: []string{"b", "c"}}, {Paths: []string{"a", "b", "c"}},
		{Except: []string{"c"}}} {
		if seen[w.Digest()] {
			t.Errorf("%+v has the digest of another", w)
		}
		seen[w.Digest()] = true
	}
	for _, c := range []struct {
		pattern, path string
		want          bool
	}{
		{"", "a", false}, {"*", "a", true}, {"**/", "a", false}, {"a*", "ab/c", true}, {"a*", "a", true}, {"*a", "b/ca", true}, {"a*c", "ab/c",
			true}, {"a", "b/a", true}, {"a", "ab", false},
		{"\u00c9*", "e\u0301x", true}, {"stra\u00dfe", "STRA\u00dfE", true}, {"\u03c2", "\u03a3", true}, {"\u0130", "i", true}, {"k", "\u212a",
			true}, {"\u007f", "\u007f", true}, {"\u0080", "\u0080", true},
	} {
		if _, got := (policy.Withhold{Paths: []string{c.pattern}}).Match(c.path); got != c.want {
			t.Errorf("%q and %q: got %t, want %t", c.pattern, c.path, got, c.want)
		}
	}
	if got := (policy.Limits{}).PathRules(); got != nil {
		t.Errorf("without rules: %+v", got)
	}
	rules := policy.Limits{Withhold: &one, Blocked: []string{"d"}}.PathRules()
	var shown []string
	for _, r := range rules {
		text := r.Pattern + " " + r.Strength
		if r.Except {
			text += " except"
		}
		if shown = append(shown, text); r.Says == "" {
			t.Errorf("%+v says nothing", r)
		}
	}
	if got := strings.Join(shown, ", "); got != "a wall, b wall, c wall except, d guard" {
		t.Errorf("got %s", got)
	}
}
