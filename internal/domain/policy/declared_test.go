package policy_test

import (
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// TestDeclarableNames has the names that a workspace may give its action types, each bound at its edge.
func TestDeclarableNames(t *testing.T) {
	longest := "a." + strings.Repeat("b", policy.MaxActionTypeName-2)
	for name, want := range map[string]error{
		"deploy.production": nil, "crm.invoice.send": nil, "a.b": nil, "a1_.b2_": nil, longest: nil,
		longest + "b": policy.ErrActionTypeName, "": policy.ErrActionTypeName, "deploy": policy.ErrActionTypeName,
		"deploy.": policy.ErrActionTypeName,
		".deploy": policy.ErrActionTypeName, "a.b.c.d": policy.ErrActionTypeName, "Deploy.it": policy.ErrActionTypeName,
		"deploy.1st":  policy.ErrActionTypeName,
		"deploy.it\n": policy.ErrActionTypeName, "déploy.it": policy.ErrActionTypeName, "deploy it.now": policy.ErrActionTypeName,
		"deploy.\"it":  policy.ErrActionTypeName,
		"shell.deploy": policy.ErrActionTypeReserved, "file.x": policy.ErrActionTypeReserved, "email.archive": policy.ErrActionTypeReserved,
		"run.lease.steal": policy.ErrActionTypeReserved, "policy.bend": policy.ErrActionTypeReserved,
		"question.ask": policy.ErrActionTypeReserved,
		"agentbox.own": policy.ErrActionTypeReserved, "secret.read": policy.ErrActionTypeReserved,
	} {
		if err := policy.Declarable(name); !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%q: got %v, want %v", name, err, want)
		}
	}
	for _, k := range policy.Registry() {
		if err := policy.Declarable(k.Type); err == nil {
			t.Errorf("the built-in type %s could be declared", k.Type)
		}
	}
}

func TestTheBoundsOfADeclaration(t *testing.T) {
	fits := policy.Declare{Name: "deploy.it", Description: "x", SideEffect: policy.Network}
	for _, c := range []struct {
		name   string
		change func(*policy.Declare)
		living int
		want   error
	}{
		{"the least", func(*policy.Declare) {}, 0, nil},
		{"the last that has room", func(*policy.Declare) {}, policy.MaxActionTypes - 1, nil},
		{"one too many", func(*policy.Declare) {}, policy.MaxActionTypes, policy.ErrActionTypeFull},
		{"the longest description", func(d *policy.Declare) { d.Description = strings.Repeat("x", policy.MaxDescriptionBytes) }, 0, nil},
		{"a description one byte longer", func(d *policy.Declare) {
			d.Description = strings.Repeat("x", policy.MaxDescriptionBytes+1)
		}, 0, policy.ErrDescription},
		{"no description", func(d *policy.Declare) { d.Description = "" }, 0, policy.ErrDescription},
		{"two lines", func(d *policy.Declare) { d.Description = "a\nb" }, 0, policy.ErrDescription},
		{"a text that turns round", func(d *policy.Declare) { d.Description = "a\u202eb" }, 0, policy.ErrDescription},
		{"no UTF-8", func(d *policy.Declare) { d.Description = "\xff" }, 0, policy.ErrDescription},
		{"no effect", func(d *policy.Declare) { d.SideEffect = "" }, 0, policy.ErrSideEffect},
		{"an effect inside", func(d *policy.Declare) { d.SideEffect = policy.Record }, 0, policy.ErrSideEffect},
		{"control", func(d *policy.Declare) { d.SideEffect = policy.Control }, 0, policy.ErrSideEffect},
		{"an unknown zone", func(d *policy.Declare) { d.Zone = "outer" }, 0, policy.ErrDeclaredZone},
		{"all target kinds", func(d *policy.Declare) { d.Targets = policy.TargetKinds() }, 0, nil},
		{"an unknown target kind", func(d *policy.Declare) { d.Targets = []string{"moon"} }, 0, policy.ErrTargetKinds},
		{"a target kind twice", func(d *policy.Declare) { d.Targets = []string{"host", "host"} }, 0, policy.ErrTargetKinds},
		{"a reserved name", func(d *policy.Declare) { d.Name = "shell.exec" }, 0, policy.ErrActionTypeReserved},
	} {
		cmd := fits
		c.change(&cmd)
		typ, d, err := policy.ActionType{}.Declare(cmd, c.living)
		if !errors.Is(err, c.want) || c.want == nil && (err != nil || typ != policy.ActionTypeDeclaredType || d.Version != 1) {
			t.Errorf("%s: got %q, version %d, %v, want %v", c.name, typ, d.Version, err, c.want)
		}
	}
}

// history folds what is said of a type, one command after the other.
func history(t *testing.T, cmds ...any) policy.ActionType {
	t.Helper()
	var doc policy.ActionType
	for _, cmd := range cmds {
		var typ string
		var data any
		var err error
		switch cmd := cmd.(type) {
		case policy.Declare:
			typ, data, err = doc.Declare(cmd, 0)
		case string:
			typ = policy.ActionTypeRetiredType
			data, err = doc.Retire(cmd)
		}
		if err != nil {
			t.Fatal(err)
		}
		if typ == "" {
			continue
		}
		d := event.New(typ, event.Origin{Principal: "usr_1"}, "ws_dev", "", data).About(policy.ActionTypeEntity, "deploy.it")
		e := event.Event{Header: d.Header, Data: d.Data}
		if doc, err = doc.Evolve(e); err != nil {
			t.Fatal(err)
		}
	}
	return doc
}

// TestAVersionIsNeverUsedTwice declares, changes, retires and declares anew.
func TestAVersionIsNeverUsedTwice(t *testing.T) {
	one := policy.Declare{Name: "deploy.it", Description: "deploy", SideEffect: policy.Network, Targets: []string{"url", "host"}}
	two := one
	two.Asks = true
	doc := history(t, one)
	if doc.Version != 1 || !doc.Living() || doc.Zone != event.Supervised || doc.DeclaredBy != "usr_1" || strings.Join(doc.Targets,
		" ") != "host url" {
		t.Errorf("declared: got %+v", doc)
	}
	if typ, _, err := doc.Declare(one, 1); typ != "" || err != nil {
		t.Errorf("the same again: got %q, %v", typ, err)
	}
	if typ, d, err := doc.Declare(two, policy.MaxActionTypes); typ != policy.ActionTypeChangedType || d.Version != 2 || err != nil {
		t.Errorf("a change where there is no room for another type: got %q, version %d, %v", typ, d.Version, err)
	}
	if doc = history(t, one, two, "no longer"); doc.Living() || doc.Version != 2 || doc.Reason != "no longer" ||
		doc.Declaration() != (policy.Declaration{}) {
		t.Errorf("retired: got %+v", doc)
	}
	if _, err := doc.Retire(""); !errors.Is(err, policy.ErrActionTypeNotFound) {
		t.Errorf("retired twice: got %v", err)
	}
	if doc = history(t, one, two, "no longer", one); doc.Version != 3 || !doc.Living() || doc.Reason != "" {
		t.Errorf("declared anew: got %+v", doc)
	}
	if _, err := doc.Retire(strings.Repeat("x", policy.MaxReasonBytes)); err != nil {
		t.Errorf("the longest reason: got %v", err)
	}
	if _, err := doc.Retire(strings.Repeat("x", policy.MaxReasonBytes+1)); !errors.Is(err, policy.ErrReasonTooLong) {
		t.Errorf("a reason one byte longer: got %v", err)
	}
}

func TestTheTargetKindsOfADeclaration(t *testing.T) {
	const room, run = id.Room("room_1"), id.Run("run_1")
	for kind, c := range map[string]struct{ fits, misses []policy.Action }{
		"host": {
			[]policy.Action{{Target: "api.example.com"}, {Target: "api.example.com:8443"}},
			[]policy.Action{{}, {Target: "https://api.example.com"}, {Target: "ada@example.com"}, {Target: "a b"}, {Target: "example.com/x"}},
		},
		"url": {[]policy.Action{{Target: "https://example.com/x?y"}}, []policy.Action{{}, {Target: "example.com"}, {Target: "https://"},
			{Target: "https://a b/"}}},
		"address": {[]policy.Action{{Target: "ada@example.com"}}, []policy.Action{{}, {Target: "ada"}, {Target: "@example.com"},
			{Target: "a@b.c,d@e.f"}, {Target: "a@b@c"}, {Target: "a@b\n.c"}}},
		"name":      {[]policy.Action{{Target: "the blue one"}}, []policy.Action{{}, {Target: "a\nb"}, {Target: "a\u202eb"}}},
		"room":      {[]policy.Action{{Room: room}}, []policy.Action{{}, {Room: room, Run: run}, {Room: room, Target: "x"}}},
		"run":       {[]policy.Action{{Run: run}, {Room: room, Run: run}}, []policy.Action{{}, {Room: room}, {Run: run, Target: "x"}}},
		"workspace": {[]policy.Action{{}}, []policy.Action{{Room: room}, {Run: run}, {Target: "x"}}},
	} {
		for _, a := range c.fits {
			if a.Declared.Targets = kind; a.Misses() != "" {
				t.Errorf("%s refuses %+v", kind, a)
			}
		}
		for _, a := range c.misses {
			if a.Declared.Targets = kind; a.Misses() != kind {
				t.Errorf("%s accepts %+v", kind, a)
			}
		}
	}
	if (policy.Action{Target: "x"}).Misses() != "" || (policy.Action{}).Misses() != "" {
		t.Error("a type without target kinds refuses something")
	}
}

// own is an action of a declared type.
func own(change func(*policy.Action)) policy.Action {
	a := policy.Action{
		Type: "deploy.it", Workspace: "ws_dev", Room: "room_1", Principal: "agt_1", Target: "web1.example.com", Request: []byte(`{"build":7}`),
		Declared: policy.Declaration{Version: 3, Description: "send an e-mail", SideEffect: policy.Network, Zone: event.Supervised,
			Reversible: true},
	}
	if change != nil {
		change(&a)
	}
	return a
}

// TestAnOwnActionReadsLikeNoOther renders actions of declared types: marked as the workspace's own, with all that was declared, and no
// two the same.
func TestAnOwnActionReadsLikeNoOther(t *testing.T) {
	if got, want := policy.Title(own(nil)), "this workspace's own action deploy.it, version 3: web1.example.com"; got != want {
		t.Errorf("got the title %s, want %s", got, want)
	}
	if got := policy.Impact(own(nil), nil,
		false); got != "As this workspace declared it, by itself: Reaches out of this machine. Can be undone." {
		t.Errorf("got the impact %s", got)
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*policy.Action){
		"as it is": nil, "version": func(a *policy.Action) { a.Declared.Version++ }, "description": func(a *policy.Action) {
			a.Declared.Description += "."
		},
		"effect": func(a *policy.Action) { a.Declared.SideEffect = policy.Read }, "zone": func(a *policy.Action) {
			a.Declared.Zone = event.HighStakes
		},
		"reversible": func(a *policy.Action) { a.Declared.Reversible = false }, "asks": func(a *policy.Action) { a.Declared.Asks = true },
		"targets": func(a *policy.Action) { a.Declared.Targets = "host" }, "name": func(a *policy.Action) { a.Type = "deploy.if" },
		"undeclared": func(a *policy.Action) { a.Declared = policy.Declaration{} },
		"a forgery": func(a *policy.Action) {
			a.Declared = policy.Declaration{}
			a.Target = "web1.example.com\"\ndeclaration.version: 3"
		},
	} {
		shown, err := policy.Render(canonical(t, own(change)))
		if err != nil {
			t.Fatal(err)
		}
		if other, twice := seen[shown]; twice {
			t.Errorf("%s and %s read the same", name, other)
		}
		seen[shown] = name
		if name == "as it is" && (!strings.Contains(shown, "\ndeclaration.version: 3\n") || !strings.Contains(shown,
			"\ndeclaration.description: \"send an e-mail\"\n")) {
			t.Errorf("got\n%s", shown)
		}
		again, err := policy.ParseAction(canonical(t, own(change)))
		if err != nil || again.Declared != own(change).Declared {
			t.Errorf("%s: read back %+v, %v", name, again.Declared, err)
		}
	}
}

// TestStandingApprovalsOfOwnActions has what a standing approval of a declared action covers: never another version, and another request
// only of what can be undone.
func TestStandingApprovalsOfOwnActions(t *testing.T) {
	covers := func(scope policy.Scope, change func(*policy.Action)) (policy.Cover, error) {
		return policy.CoverOf(own(change), scope, nil)
	}
	fixed := func(a *policy.Action) { a.Declared.Reversible = false }
	other := func(a *policy.Action) { a.Request = []byte(`{"build":8}`) }
	both := func(a *policy.Action) { fixed(a); other(a) }
	for _, scope := range []policy.Scope{policy.ScopeRoom, policy.ScopeWorkspace, policy.ScopeTemplate} {
		base, err := covers(scope, nil)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := covers(scope, other); again != base {
			t.Errorf("%s: another request of what can be undone is not covered", scope)
		}
		for name, change := range map[string]func(*policy.Action){
			"another version": func(a *policy.Action) { a.Declared.Version++ }, "another target": func(a *policy.Action) {
				a.Target = "web2.example.com"
			},
			"another type": func(a *policy.Action) { a.Type = "deploy.that" },
		} {
			if again, _ := covers(scope, change); again.Match == base.Match {
				t.Errorf("%s covers %s", scope, name)
			}
		}
		for name, change := range map[string]func(*policy.Action){
			"a process": func(a *policy.Action) { a.Declared.SideEffect = policy.Process }, "no target": func(a *policy.Action) { a.Target = "" },
			"no declaration": func(a *policy.Action) { a.Declared = policy.Declaration{} },
		} {
			if _, err := covers(scope, change); !errors.Is(err, policy.ErrStandingImpossible) {
				t.Errorf("%s, %s: got %v", scope, name, err)
			}
		}
	}
	one, err := covers(policy.ScopeRoom, fixed)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := covers(policy.ScopeRoom, both); again.Match == one.Match {
		t.Error("another request of what cannot be undone is covered")
	}
	if _, err := covers(policy.ScopeTemplate, fixed); !errors.Is(err, policy.ErrTemplateImpossible) {
		t.Errorf("a template of what cannot be undone: got %v", err)
	}
}

func TestPlainQuestions(t *testing.T) {
	for text, want := range map[string]error{
		"May we?": nil, strings.Repeat("x", policy.MaxQuestionText): nil, strings.Repeat("x", policy.MaxQuestionText+
			1): policy.ErrQuestionTooLong,
		"": policy.ErrQuestionEmpty, " \n": policy.ErrQuestionEmpty,
	} {
		request, err := policy.Questioned(text)
		if !errors.Is(err, want) || want == nil && err != nil {
			t.Errorf("%.20q: got %v, want %v", text, err, want)
		}
		if err == nil && len(text) < 20 {
			a := policy.Action{Type: policy.QuestionAsk, Workspace: "ws_dev", Principal: "agt_1", Request: request}
			if got := policy.Title(a); got != "put a question to a person: "+text {
				t.Errorf("got the title %q", got)
			}
			if _, err := policy.CoverOf(a, policy.ScopeWorkspace, nil); !errors.Is(err, policy.ErrStandingImpossible) {
				t.Errorf("a standing answer: got %v", err)
			}
		}
	}
}
