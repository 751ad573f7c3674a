package policy_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// TestAStandingApprovalOfAHostCoversTheHost holds that what is asked for at a host may differ, and where it lies may not.
func TestAStandingApprovalOfAHostCoversTheHost(t *testing.T) {
	of := func(method, target string) policy.Action {
		return policy.Action{Type: policy.APICallMutating, Workspace: "ws_dev", Principal: "agt_00000000000000000000000001", Method: method,
			Target: target}
	}
	one, err := policy.CoverOf(of("POST", "https://Api.Example.com/v1/a?x=1"), policy.ScopeWorkspace, nil)
	if err != nil || one.Kind != policy.CoverHost {
		t.Fatalf("got %+v, %v", one, err)
	}
	for target, want := range map[string]bool{
		"https://api.example.com/v2/b": true, "https://api.example.com": true, "https://api.example.com.": true, "HTTPS://api.example.com/": true,
		"http://api.example.com/v1/a": false, "https://api.example.com:8443/": false, "https://evil.example/api.example.com": false,
		"https://api.example.com.evil.example/": false,
		"https://evil.example#@api.example.com": false, "api.example.com": false,
	} {
		if got, err := policy.CoverOf(of("POST", target), policy.ScopeWorkspace, nil); err != nil || (got == one) != want {
			t.Errorf("%s: covered %t, %v, want %t", target, got == one, err, want)
		}
	}
	if got, _ := policy.CoverOf(of("DELETE", "https://api.example.com/"), policy.ScopeWorkspace, nil); got == one {
		t.Error("another method is covered")
	}
	for _, target := range []string{"https://api.example.com@evil.example/", "https://u@api.example.com/x",
		`https://api.example.com\@evil.example/`} {
		if _, err := policy.CoverOf(of("POST", target), policy.ScopeWorkspace, nil); !errors.Is(err, policy.ErrStandingImpossible) {
			t.Errorf("%s: got %v, want %v", target, err, policy.ErrStandingImpossible)
		}
	}
	if _, err := policy.CoverOf(of("POST", "https://a.example,b.example/"), policy.ScopeWorkspace, nil); !errors.Is(err,
		policy.ErrStandingImpossible) {
		t.Errorf("a target of two hosts: got %v", err)
	}
}

// TestAStandingApprovalHoldsToItsLastUse kills the change of < into <=.
func TestAStandingApprovalHoldsToItsLastUse(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s := policy.Standing{ID: "sta_00000000000000000000000001", EndsAt: now.Add(1), Uses: 3}
	for used, want := range map[int]bool{0: true, 2: true, 3: false, 4: false} {
		if s.Used = used; s.Holds(now) != want {
			t.Errorf("%d of %d used: holds %t", used, s.Uses, !want)
		}
	}
	s.Used = 0
	if s.Holds(now.Add(1)) {
		t.Error("it holds at its end")
	}
	for _, broken := range []policy.Standing{{EndsAt: s.EndsAt, Uses: 3}, {ID: s.ID, EndsAt: s.EndsAt, Uses: 3, RevokedAt: now}} {
		if broken.Holds(now) {
			t.Errorf("%+v holds", broken)
		}
	}
}

// TestTheBoundsOfAStandingApproval holds each bound at its edge.
func TestTheBoundsOfAStandingApproval(t *testing.T) {
	now := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		ends time.Time
		uses int
		code string
	}{
		{now.Add(1), 1, ""}, {now.Add(policy.MaxStandingTime), policy.MaxStandingUses, ""}, {now, 1, "invalid_expires_at"}, {now.Add(-1), 1,
			"invalid_expires_at"},
		{now.Add(policy.MaxStandingTime + 1), 1, "invalid_expires_at"}, {time.Time{}, 1, "invalid_expires_at"}, {now.Add(1), 0, "invalid_uses"},
		{now.Add(1), -1, "invalid_uses"},
		{now.Add(1), policy.MaxStandingUses + 1, "invalid_uses"},
	} {
		cover := policy.Cover{Kind: policy.CoverCommand, Action: policy.ShellExec}
		got, err := policy.Grant("sta_1", "apr_1", cover, c.ends, c.uses, now)
		if fault.CodeOf(err) != c.code && (err != nil || c.code != "") {
			t.Errorf("until %v, %d uses: got %v, want %q", c.ends, c.uses, err, c.code)
		}
		if want := (policy.StandingGranted{Standing: "sta_1", Approval: "apr_1", Cover: cover, EndsAt: c.ends, Uses: c.uses}); err == nil &&
			got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

// done is an action of each kind that a standing approval can cover.
func done(kind policy.CoverKind) (policy.Action, []string) {
	a := policy.Action{
		Workspace: "ws_dev", Room: "room_1", Principal: "agt_1", Space: "spc_1", Run: "run_1", Step: "stp_1", Operation: "op", Fence: 7,
		Token: "tok_1",
	}
	switch kind {
	case policy.CoverCommand:
		a.Type, a.Command, a.Argv = policy.ShellExec, "rm -r b", []string{"/bin/bash", "-c", "rm -r b"}
		return a, []string{"rm", "-r", "b"}
	case policy.CoverSkill:
		a.Type, a.Tool, a.ToolHash = policy.ToolCall, "saw", event.DigestOf([]byte("saw"))
	case policy.CoverHost:
		a.Type, a.Method, a.Target = policy.APICallMutating, "POST", "https://api.example.com/a"
	case policy.CoverRecipient:
		a.Type, a.Target = policy.EmailSend, "ada@example.com"
	}
	a.Request, a.Content, a.Size, a.Stdin = []byte(`{"n":1}`), event.DigestOf([]byte("c")), 1, event.DigestOf([]byte("i"))
	return a, nil
}

// TestWhatAStandingApprovalCovers changes one field at a time of what was approved, and holds for each scope whether it is still covered.
func TestWhatAStandingApprovalCovers(t *testing.T) {
	change := map[string]func(*policy.Action){
		"step": func(a *policy.Action) { a.Step = "x" }, "operation": func(a *policy.Action) { a.Operation = "x" },
		"fence": func(a *policy.Action) { a.Fence = 8 },
		"token": func(a *policy.Action) { a.Token = "x" }, "run": func(a *policy.Action) { a.Run = "x" }, "principal": func(a *policy.Action) {
			a.Principal = "x"
		},
		"space": func(a *policy.Action) { a.Space = "x" }, "room": func(a *policy.Action) { a.Room = "x" }, "workspace": func(a *policy.Action) {
			a.Workspace = "x"
		},
		"request": func(a *policy.Action) { a.Request = []byte(`{"n":2}`) }, "content": func(a *policy.Action) {
			a.Content = event.DigestOf([]byte("d"))
		},
		"size": func(a *policy.Action) { a.Size = 2 }, "stdin": func(a *policy.Action) { a.Stdin = event.DigestOf([]byte("j")) },
		"cwd": func(a *policy.Action) { a.Cwd = "x" },
		"env": func(a *policy.Action) { a.Env = map[string]string{"A": "b"} }, "command": func(a *policy.Action) {
			a.Command, a.Argv = "x",
				[]string{"x"}
		},
		"method": func(a *policy.Action) { a.Method = "PUT" }, "target": func(a *policy.Action) { a.Target = "evil.example" },
		"bundle": func(a *policy.Action) { a.Bundle = event.DigestOf([]byte("b")) },
	}
	free := map[policy.Scope]string{
		policy.ScopeRun: " step operation fence token ", policy.ScopeRoom: " step operation fence token run principal space ",
		policy.ScopeWorkspace: " step operation fence token run principal space room ",
	}
	for _, kind := range []policy.CoverKind{policy.CoverCommand, policy.CoverSkill, policy.CoverHost, policy.CoverRecipient} {
		for scope, may := range free {
			if kind != policy.CoverCommand {
				may += "request content size stdin "
			}
			a, words := done(kind)
			granted, err := policy.CoverOf(a, scope, words)
			if err != nil || granted.Kind != kind || granted.Scope != scope || granted.Action != a.Type || granted.Text == "" ||
				granted.Match.IsZero() {
				t.Fatalf("%s, %s: got %+v, %v", kind, scope, granted, err)
			}
			for field, f := range change {
				other := a
				f(&other)
				got, err := policy.CoverOf(other, scope, words)
				want := strings.Contains(may, " "+field+" ")
				if covered := err == nil && got.Match == granted.Match; covered != want {
					t.Errorf("%s, scope %s, another %s: covered %t, want %t", kind, scope, field, covered, want)
				}
			}
		}
	}
}

// TestWhatNoStandingApprovalCovers holds what can only be approved once.
func TestWhatNoStandingApprovalCovers(t *testing.T) {
	with := func(kind policy.CoverKind, f func(*policy.Action)) policy.Action {
		a, _ := done(kind)
		f(&a)
		return a
	}
	rm := []string{"rm", "-r", "b"}
	nothing := func(*policy.Action) {}
	for name, c := range map[string]struct {
		a     policy.Action
		scope policy.Scope
		words []string
		want  error
	}{
		"no scope": {with(policy.CoverCommand, nothing), "", rm, policy.ErrInvalidScope},
		"once":     {with(policy.CoverCommand, nothing), policy.ScopeOnce, rm, policy.ErrInvalidScope},
		"no words": {with(policy.CoverCommand, nothing), policy.ScopeRun, nil, policy.ErrStandingImpossible},
		"no vector": {with(policy.CoverCommand, func(a *policy.Action) { a.Argv = nil }), policy.ScopeRun, rm,
			policy.ErrStandingImpossible},
		"no action": {with(policy.CoverCommand, func(a *policy.Action) { a.Type = "never.heard.of" }), policy.ScopeRun, rm,
			policy.ErrStandingImpossible},
		"a tool without a hash": {with(policy.CoverSkill, func(a *policy.Action) { a.ToolHash = event.Digest{} }), policy.ScopeRun, nil,
			policy.ErrStandingImpossible},
		"a hash without a tool": {with(policy.CoverSkill, func(a *policy.Action) { a.Tool = "" }), policy.ScopeRun, nil,
			policy.ErrStandingImpossible},
		"nobody": {with(policy.CoverRecipient, func(a *policy.Action) { a.Target = "" }), policy.ScopeRun, nil,
			policy.ErrStandingImpossible},
		"a method to nowhere": {with(policy.CoverHost, func(a *policy.Action) { a.Target = "" }), policy.ScopeRun, nil,
			policy.ErrStandingImpossible},
		"what names a host only": {with(policy.CoverSkill, func(a *policy.Action) { a.Tool, a.Target, a.Method = "", "a.example", "GET" }),
			policy.ScopeRun, nil, policy.ErrStandingImpossible},
		"of a run, outside": {with(policy.CoverRecipient, func(a *policy.Action) { a.Run = "" }), policy.ScopeRun, nil,
			policy.ErrScopeMissing},
		"of a room, outside": {with(policy.CoverRecipient, func(a *policy.Action) { a.Room = "" }), policy.ScopeRoom, nil,
			policy.ErrScopeMissing},
	} {
		if got, err := policy.CoverOf(c.a, c.scope, c.words); !errors.Is(err, c.want) {
			t.Errorf("%s: got %+v, %v, want %v", name, got, err, c.want)
		}
	}
	for _, outside := range []policy.Action{with(policy.CoverRecipient, func(a *policy.Action) { a.Run, a.Room = "", "" })} {
		if _, err := policy.CoverOf(outside, policy.ScopeWorkspace, nil); err != nil {
			t.Errorf("the workspace's, outside of a room: %v", err)
		}
	}
}

// TestWhatIsPaidNeverVaries holds that a payment of another amount is covered by nothing.
func TestWhatIsPaidNeverVaries(t *testing.T) {
	pay := policy.Action{Type: policy.PaymentExecute, Workspace: "ws_dev", Principal: "agt_1", Target: "iban", Request: []byte(`{"amount":1}`)}
	one, err := policy.CoverOf(pay, policy.ScopeWorkspace, nil)
	if err != nil {
		t.Fatal(err)
	}
	pay.Request = []byte(`{"amount":2}`)
	if two, err := policy.CoverOf(pay, policy.ScopeWorkspace, nil); err != nil || one.Match == two.Match {
		t.Errorf("another amount is covered: %v", err)
	}
	if _, err := policy.CoverOf(pay, policy.ScopeTemplate, nil); !errors.Is(err, policy.ErrTemplateImpossible) {
		t.Errorf("a template of a payment: %v", err)
	}
}

// TestWhatATemplateCovers holds which names may stand in the place of which.
func TestWhatATemplateCovers(t *testing.T) {
	file := func(typ, path string) policy.Action {
		return policy.Action{Type: typ, Workspace: "ws_dev", Room: "room_1", Space: "spc_1", Run: "run_1", Step: "s", Operation: "o", Fence: 1,
			Token: "t", Principal: "agt_1", Path: path, Size: 3, Content: event.DigestOf([]byte("a"))}
	}
	one, err := policy.CoverOf(file(policy.FileDelete, "build/a.tmp"), policy.ScopeTemplate, nil)
	if err != nil || one.Kind != policy.CoverTemplate || one.Scope != policy.ScopeTemplate || one.Text != "delete a file: build/{name}.tmp" {
		t.Fatalf("got %+v, %v", one, err)
	}
	longest := strings.Repeat("n", policy.MaxTemplateName-4)
	for path, want := range map[string]bool{
		"build/b.tmp": true, "build/b_1-2.3.tmp": true, "build/" + longest + ".tmp": true, "build/" + longest + "n.tmp": false,
		"build/.tmp": false, "build/-b.tmp": false, "build/b.txt": false, "other/b.tmp": false,
		"build/c/b.tmp": false, "b.tmp": false, "build/b c.tmp": false, "/build/b.tmp": false, "build/b*.tmp": false,
	} {
		got, err := policy.CoverOf(file(policy.FileDelete, path), policy.ScopeTemplate, nil)
		if covered := err == nil && got.Match == one.Match; covered != want {
			t.Errorf("%s: covered %t, want %t", path, covered, want)
		}
	}
	for field, f := range map[string]func(*policy.Action){
		"principal": func(a *policy.Action) { a.Principal = "x" }, "space": func(a *policy.Action) { a.Space = "x" },
		"bundle": func(a *policy.Action) { a.Bundle = event.DigestOf(nil) },
		"type":   func(a *policy.Action) { a.Type = policy.FileEdit }, "workspace": func(a *policy.Action) { a.Workspace = "x" },
	} {
		a := file(policy.FileDelete, "build/a.tmp")
		f(&a)
		if got, err := policy.CoverOf(a, policy.ScopeTemplate, nil); err == nil && got.Match == one.Match {
			t.Errorf("another %s is covered", field)
		}
	}
	for field, f := range map[string]func(*policy.Action){
		"run": func(a *policy.Action) { a.Run = "" }, "step": func(a *policy.Action) { a.Step = "" }, "operation": func(a *policy.Action) {
			a.Operation = ""
		}, "fence": func(a *policy.Action) { a.Fence = 0 },
		"token": func(a *policy.Action) { a.Token = "" }, "content": func(a *policy.Action) { a.Content = event.Digest{} },
		"size": func(a *policy.Action) { a.Size = 9 },
	} {
		a := file(policy.FileDelete, "build/a.tmp")
		f(&a)
		if got, err := policy.CoverOf(a, policy.ScopeTemplate, nil); err != nil || got.Match != one.Match {
			t.Errorf("another %s is not covered: %v", field, err)
		}
	}
	for path, want := range map[string]bool{"a.txt": false, "d/a.txt": true, "d/../a.txt": false, "../d/a.txt": false, "/d/a.txt": false,
		"-d/a.txt": false, "d/": false, "d/.hidden": false} {
		for typ, content := range map[string]bool{policy.FileRead: false, policy.FileDelete: false, policy.FileCreate: true,
			policy.FileEdit: true} {
			_, err := policy.CoverOf(file(typ, path), policy.ScopeTemplate, nil)
			if made := err == nil; made != (want || content) {
				t.Errorf("a template of %s %s: made %t", typ, path, made)
			}
		}
	}
	shell := func(words ...string) (policy.Cover, error) {
		line := strings.Join(words, " ")
		return policy.CoverOf(policy.Action{Type: policy.ShellExec, Workspace: "ws_dev", Principal: "agt_1", Space: "spc_1", Command: line,
			Argv: []string{"sh", "-c", line}}, policy.ScopeTemplate, words)
	}
	rm, err := shell("rm", "-r", "build/a.tmp", "a b")
	if err != nil || rm.Text != "run a command: rm -r build/{name}.tmp 'a b'" {
		t.Errorf("got %+v, %v", rm, err)
	}
	if got, err := shell("rm", "-r", "build/b.tmp", "a b"); err != nil || got.Match != rm.Match {
		t.Errorf("another name: %v", err)
	}
	for _, words := range [][]string{{"rm", "-f", "build/b.tmp", "a b"}, {"cp", "-r", "build/b.tmp", "a b"}, {"rm", "-r", "build/b.tmp",
		"a c"}, {"rm", "-r", "build/b.tmp"}} {
		if got, err := shell(words...); err == nil && got.Match == rm.Match {
			t.Errorf("%v is covered", words)
		}
	}
	if _, err := shell("bin/rm", "x"); !errors.Is(err, policy.ErrTemplateImpossible) {
		t.Errorf("the name of a program may not vary: %v", err)
	}
	if _, err := policy.CoverOf(policy.Action{Type: policy.FileList, Workspace: "ws_dev", Path: "d/a"}, policy.ScopeTemplate,
		nil); !errors.Is(err, policy.ErrTemplateImpossible) {
		t.Errorf("a list: %v", err)
	}
}

// TestWhatATemplateOfARequestCovers holds that the values may vary, and the form, the target and who asks may not.
func TestWhatATemplateOfARequestCovers(t *testing.T) {
	mail := policy.Action{Type: policy.EmailSend, Workspace: "ws_dev", Principal: "agt_1", Target: "ada@example.com", Run: "r", Step: "s",
		Token: "t", Request: []byte(`{"to":["a"],"n":1,"x":{"y":"z"}}`)}
	one, err := policy.CoverOf(mail, policy.ScopeTemplate, nil)
	if err != nil || one.Kind != policy.CoverTemplate {
		t.Fatal(err)
	}
	for request, want := range map[string]bool{
		`{"to":["b"],"n":2,"x":{"y":"q"}}`: true, `{"to":["b","c"],"n":2,"x":{"y":"q"}}`: false, `{"to":["b"],"n":"2","x":{"y":"q"}}`: false,
		`{"to":["b"],"n":2,"x":{"w":"q"}}`: false, `{"to":["b"],"n":2}`: false,
	} {
		a := mail
		a.Request, a.Run, a.Step, a.Token = []byte(request), "other", "", id.Token("")
		got, err := policy.CoverOf(a, policy.ScopeTemplate, nil)
		if covered := err == nil && got.Match == one.Match; covered != want {
			t.Errorf("%s: covered %t, want %t", request, covered, want)
		}
	}
	for name, f := range map[string]func(*policy.Action){
		"no target": func(a *policy.Action) { a.Target = "" }, "no request": func(a *policy.Action) { a.Request = nil },
		"a broken request": func(a *policy.Action) { a.Request = []byte("{") },
	} {
		a := mail
		f(&a)
		if _, err := policy.CoverOf(a, policy.ScopeTemplate, nil); err == nil {
			t.Errorf("%s makes a template", name)
		}
	}
	a := mail
	a.Target = "eve@example.com"
	if got, err := policy.CoverOf(a, policy.ScopeTemplate, nil); err != nil || got.Match == one.Match {
		t.Errorf("another target is covered: %v", err)
	}
}
