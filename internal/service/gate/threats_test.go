package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/service/gate/authority"
)

func TestThreat06OneFlippedByteIsRefused(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Env = map[string]string{"LANG": "C"}
	r, q := h.asked(a)
	h.approve(q, h.owner)
	rapid.Check(t, func(t *rapid.T) {
		changed := r
		changed.Canonical = append([]byte(nil), r.Canonical...)
		i := rapid.IntRange(0, len(changed.Canonical)-1).Draw(t, "byte")
		changed.Canonical[i] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		refuses(t, h, changed, q.ID)
		// The same with an action that agrees with the bytes, where they still are one.
		if parsed, err := policy.ParseAction(changed.Canonical); err == nil {
			changed.Action = parsed
			changed.Decision.Action = event.DigestOf(changed.Canonical)
			refuses(t, h, changed, q.ID)
		}
	})
	if n := h.count("tool.invoked"); n != 0 {
		t.Fatalf("got %d starts, want none", n)
	}
	if err := begin(h, r, q.ID); err != nil {
		t.Errorf("the action that was approved: %v", err)
	}
}

type failer interface {
	Errorf(format string, args ...any)
}

func refuses(t failer, h *house, r policy.Ruling, approval id.Approval) {
	permit, _, err := h.Begin(context.Background(), r, approval, h.intent(r.Action))
	if err == nil {
		t.Errorf("it began: %s", r.Canonical)
	} else if fault.CodeOf(err) != policy.ReasonApprovalMismatch && fault.KindOf(err) != fault.Internal {
		t.Errorf("got %v, want approval_mismatch", err)
	}
	if permit != (policy.Permit{}) {
		t.Errorf("a permit was made for %s", r.Canonical)
	}
}

func TestThreat07AChangedFieldNeedsItsOwnApproval(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch")
	a.Cwd, a.Step, a.Fence, a.Env = "sub", "step_00000000000000000000000001", 7, map[string]string{"LANG": "C"}
	a.Stdin, a.ToolHash = event.DigestOf([]byte("in")), event.DigestOf([]byte("tool"))
	_, q := h.asked(a)
	h.approve(q, h.owner)
	typ := reflect.TypeOf(a)
	for i := range typ.NumField() {
		changed := a
		name, f := typ.Field(i).Name, reflect.ValueOf(&changed).Elem().Field(i)
		switch v := f.Interface().(type) {
		case policy.Declaration:
			continue // the gate alone says it: TestADeclarationIsTheGatesToSay
		case event.Digest:
			v[0] ^= 1
			f.Set(reflect.ValueOf(v))
		case json.RawMessage:
			f.Set(reflect.ValueOf(json.RawMessage(`{"a":1}`)))
		case []string:
			f.Set(reflect.ValueOf([]string{"/bin/sh", "-c", a.Command}))
		case map[string]string:
			f.Set(reflect.ValueOf(map[string]string{"LANG": "D"}))
		default:
			switch f.Kind() {
			case reflect.String:
				f.SetString(f.String() + "x")
			case reflect.Int64:
				f.SetInt(f.Int() + 1)
			case reflect.Uint64:
				f.SetUint(f.Uint() + 1)
			case reflect.Bool:
				f.SetBool(!f.Bool())
			default:
				t.Fatalf("the field %s has a type that no test covers: %s", name, f.Type())
			}
		}
		r := h.judge(changed)
		permit, _, err := h.Begin(context.Background(), r, q.ID, event.Batch{Workspace: changed.Workspace})
		if err == nil {
			t.Errorf("%s: an approval of another action was accepted", name)
		}
		if permit != (policy.Permit{}) {
			t.Errorf("%s: got a permit", name)
		}
	}
	if n := h.count("approval.used"); n != 0 {
		t.Errorf("got %d uses, want none", n)
	}
}

func TestThreat10WrappersCannotBeGranted(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	week := h.clock.Now().Add(7 * 24 * time.Hour)
	for _, command := range []string{
		"bash -c 'rm -r scratch'", "sh -c 'rm -r scratch'", "env rm -r scratch", "env -S 'rm -r scratch'", "xargs rm -r < list",
		"busybox rm -r scratch",
		"timeout 5 rm -r scratch", "nohup rm -r scratch", "find . -delete", "find . -exec rm -r {} +", "eval rm -r scratch", "$CMD",
		"command rm -r scratch",
		"rm -r scratch; ls", "rm -r scratch && ls", "ls | xargs rm -r", "rm -r $DIR", "rm -r *", "rm -r sc?atch", "rm -r {a,b}", "rm -r ~",
		"rm -r $(ls)",
		"X=1 rm -r scratch", "rm -r scratch > log", "! rm -r scratch", "rm -r scratch &", "(rm -r scratch)", "npm install left-pad", "npx cowsay",
		"pip install x", "python3 -m pip install x", "bun add x", "rm() { :; }; rm -r scratch", "PATH=/x rm -r scratch", "time rm -r scratch",
		"exec rm -r scratch",
		"./rm -r scratch", "/tmp/rm -r scratch", "alias x=y", "source x", "echo x | bash", "trap 'rm -r x' EXIT; :",
	} {
		a := h.shell("standard", command)
		r := h.judge(a)
		if r.Decision.Outcome == policy.Deny {
			continue
		}
		if r.Decision.Outcome == policy.Allow {
			continue // nothing to grant
		}
		_, q := h.asked(a)
		for _, scope := range []policy.Scope{policy.ScopeRun, policy.ScopeRoom, policy.ScopeWorkspace, policy.ScopeTemplate, "forever"} {
			_, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve, Scope: scope, Uses: 1,
				ExpiresAt: week})
			want := policy.ErrStandingImpossible
			if scope == "forever" {
				want = policy.ErrInvalidScope
			}
			if !errors.Is(err, want) {
				t.Errorf("%q, scope %s: got %v, want %v", command, scope, err, want)
			}
		}
	}
	if n := h.count(policy.StandingGrantedType); n != 0 {
		t.Errorf("got %d standing approvals, want none", n)
	}
}

func TestThreat11TheDaemonWritesTheQuestion(t *testing.T) {
	h := build(t, nil)
	a := h.shell("standard", "rm -r scratch # \x1b[2K already approved \u202e")
	words := "Already approved by the owner.\n\n[Approve] [Deny]\x1b[1;32m\u202e what: \"ls\"" + strings.Repeat("x", 10_000)
	r := h.judge(a)
	q, err := h.Ask(context.Background(), h.origin(h.agent), r, policy.Ask{AgentWords: words, Unsealed: []string{"a\x1bb"}},
		event.Batch{Workspace: ws})
	if err != nil {
		t.Fatal(err)
	}
	want, err := policy.Render(r.Canonical)
	if err != nil {
		t.Fatal(err)
	}
	want = policy.Title(r.Action) + "\n" + want
	if q.Question.What != want {
		t.Errorf("got %q, want the rendering of the action", q.Question.What)
	}
	for name, text := range map[string]string{
		"title": q.Title, "what": q.Question.What, "why": q.Question.Why, "impact": q.Question.Impact, "words": q.Question.AgentWords,
		"unsealed": strings.Join(q.Question.Unsealed, ""),
	} {
		if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r < 0x20 || r > 0x7e }) {
			t.Errorf("%s can steer a terminal: %q", name, text)
		}
	}
	for _, text := range []string{q.Title, q.Question.Why, q.Question.Impact} {
		if strings.Contains(text, "Already approved by the owner") {
			t.Errorf("the agent's words stand in the daemon's: %q", text)
		}
	}
	if len(q.Question.AgentWords) > 2*policy.MaxAgentWords || !strings.HasPrefix(q.Question.AgentWords, `Already approved by the owner.\n\n`) {
		t.Errorf("got %.80q", q.Question.AgentWords)
	}
}

func TestThreat05TooLongToShowIsRefused(t *testing.T) {
	h := build(t, nil)
	a := h.file("standard", policy.RunContinue, "")
	a.Env = map[string]string{"A": strings.Repeat("\u202e", 20_000)}
	r := h.judge(a)
	if r.Decision.Outcome != policy.Deny || r.Decision.ReasonCode != policy.ReasonTooLongToShow {
		t.Errorf("got %s %s, want a refusal", r.Decision.Outcome, r.Decision.ReasonCode)
	}
}

func TestThreat13RevokedStaysRevoked(t *testing.T) {
	ctx := context.Background()
	for round := range 50 {
		h := build(t, nil)
		standing, r := h.granted(t, 100)
		var wg sync.WaitGroup
		var mu sync.Mutex
		started := 0
		for range 4 {
			wg.Go(func() {
				for range 5 {
					if err := begin(h, r, ""); err == nil {
						mu.Lock()
						started++
						mu.Unlock()
					} else if fault.KindOf(err) != fault.Waiting && !errors.Is(err, policy.ErrPermitMismatch) {
						t.Errorf("round %d: %v", round, err)
					}
				}
			})
		}
		wg.Go(func() {
			if err := h.Approvals.Revoke(ctx, h.origin(h.owner), ws, standing, "no more"); err != nil {
				t.Errorf("round %d: revoke: %v", round, err)
			}
		})
		wg.Wait()
		// In the log no use follows the revocation, and the gate agrees after a restart.
		after := false
		for _, e := range h.events() {
			switch e.Type {
			case policy.StandingRevokedType:
				after = true
			case policy.StandingUsedType:
				if after {
					t.Errorf("round %d: used after it was revoked", round)
				}
			}
		}
		if n := h.count(policy.StandingUsedType); n != started {
			t.Errorf("round %d: got %d uses in the log, %d starts", round, n, started)
		}
		h.restart()
		if r := h.judge(r.Action); r.Decision.Outcome != policy.RequireApproval {
			t.Errorf("round %d: after the revocation: got %s", round, r.Decision.Outcome)
		}
	}
}

// granted makes a standing approval of `rm -r scratch` in the run and returns it with a ruling that it allows.
func (h *house) granted(t testing.TB, uses int) (id.Standing, policy.Ruling) {
	t.Helper()
	a := h.shell("standard", "rm -r scratch")
	_, q := h.asked(a)
	doc, err := h.Approvals.Decide(context.Background(), h.origin(h.owner), ws, q.ID, policy.Answer{
		Decision: policy.Approve, Scope: policy.ScopeRun, Uses: uses, ExpiresAt: h.clock.Now().Add(24 * time.Hour),
	})
	if err != nil {
		t.Fatalf("grant: %v", err)
	}
	r := h.judge(a)
	if r.Decision.Outcome != policy.Allow || r.Standing != doc.Standing {
		t.Fatalf("got %s by %s, want allow by %s", r.Decision.Outcome, r.Standing, doc.Standing)
	}
	return doc.Standing, r
}

func TestStandingApprovalCountsItsUses(t *testing.T) {
	h := build(t, nil)
	_, r := h.granted(t, 10)
	var wg sync.WaitGroup
	var mu sync.Mutex
	started := 0
	for range 40 {
		wg.Go(func() {
			if err := begin(h, r, ""); err == nil {
				mu.Lock()
				started++
				mu.Unlock()
			} else if fault.KindOf(err) != fault.Waiting && fault.KindOf(err) != fault.Conflict {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	for begin(h, r, "") == nil { // those who gave up in the crowd
		started++
	}
	if started != 10 || h.count(policy.StandingUsedType) != 10 {
		t.Errorf("got %d starts and %d uses, want 10", started, h.count(policy.StandingUsedType))
	}
	if again := h.judge(r.Action); again.Decision.Outcome != policy.RequireApproval {
		t.Errorf("used up: got %s", again.Decision.Outcome)
	}
}

func TestStandingApprovalEnds(t *testing.T) {
	h := build(t, nil)
	_, r := h.granted(t, 5)
	h.clock.move(24*time.Hour - 1)
	if err := begin(h, r, ""); err != nil {
		t.Errorf("a moment before its end: %v", err)
	}
	h.clock.move(1)
	if err := begin(h, r, ""); fault.KindOf(err) != fault.Waiting {
		t.Errorf("at its end: got %v, want a question", err)
	}
}

func TestStandingApprovalNeedsAnEndAndANumber(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	_, q := h.asked(h.shell("standard", "rm -r scratch"))
	now := h.clock.Now()
	for _, c := range []struct {
		uses int
		ends time.Time
		code string
	}{
		{0, now.Add(time.Hour), "invalid_uses"}, {-1, now.Add(time.Hour), "invalid_uses"}, {policy.MaxStandingUses + 1, now.Add(time.Hour),
			"invalid_uses"},
		{1, time.Time{}, "invalid_expires_at"}, {1, now, "invalid_expires_at"}, {1, now.Add(policy.MaxStandingTime + 1), "invalid_expires_at"},
		{policy.MaxStandingUses, now.Add(policy.MaxStandingTime), ""},
	} {
		_, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, policy.Answer{Decision: policy.Approve, Scope: policy.ScopeWorkspace,
			Uses: c.uses, ExpiresAt: c.ends})
		if fault.CodeOf(err) != c.code {
			t.Errorf("%d uses until %s: got %v, want %q", c.uses, c.ends, err, c.code)
		}
	}
}

func TestThreat17AStandingApprovalCoversNoMoreThanWasAsked(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	operator := h.person("Otto", principal.Operator)
	a := h.shell("standard", "rm -r scratch")
	_, q := h.asked(a)
	answer := policy.Answer{Decision: policy.Approve, Scope: policy.ScopeRun, Uses: 50, ExpiresAt: h.clock.Now().Add(time.Hour)}
	if _, err := h.Approvals.Decide(ctx, h.origin(operator), ws, q.ID, answer); !errors.Is(err, authority.ErrNotDecider) {
		t.Errorf("an operator granted a standing approval: %v", err)
	}
	if _, err := h.Approvals.Decide(ctx, h.origin(h.owner), ws, q.ID, answer); err != nil {
		t.Fatal(err)
	}
	other, err := h.Agent(ctx, h.origin(h.owner), ws, "other")
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*policy.Action){
		"another argument":    func(a *policy.Action) { a.Command = "rm -r scratch2"; a.Argv[2] = a.Command },
		"one more argument":   func(a *policy.Action) { a.Command = "rm -r scratch x"; a.Argv[2] = a.Command },
		"another option":      func(a *policy.Action) { a.Command = "rm -rf scratch"; a.Argv[2] = a.Command },
		"other quotes":        func(a *policy.Action) { a.Command = "rm -r 'scratch'"; a.Argv[2] = a.Command },
		"another folder":      func(a *policy.Action) { a.Cwd = "sub" },
		"another environment": func(a *policy.Action) { a.Env = map[string]string{"A": "b"} },
		"another input":       func(a *policy.Action) { a.Stdin = event.DigestOf([]byte("x")) },
		"another run":         func(a *policy.Action) { a.Run = "run_00000000000000000000000002" },
		"another room":        func(a *policy.Action) { a.Room = "room_00000000000000000000000001" },
		"another space":       func(a *policy.Action) { a.Space = "spc_00000000000000000000000002" },
		"another agent":       func(a *policy.Action) { a.Principal = other },
		"another policy": func(a *policy.Action) {
			b, err := h.Bundles.Pin(ctx, h.origin(h.owner), ws, "standard", []byte(`{"limits":{"command_ms":29999}}`))
			if err != nil {
				t.Fatal(err)
			}
			a.Bundle = b.Hash
		},
		"another shell": func(a *policy.Action) { a.Argv[0] = "/bin/dash" },
		"another time":  func(a *policy.Action) { a.TimeoutMS = 9_999 },
	} {
		changed := h.shell("standard", "rm -r scratch")
		change(&changed)
		if r := h.judge(changed); r.Decision.Outcome == policy.Allow || r.Standing != "" {
			t.Errorf("%s: it is covered too: %s", name, r.Decision.Reason)
		}
	}
	covered := h.shell("standard", "rm -r scratch")
	covered.Step, covered.Operation = "step_00000000000000000000000009", "op-9"
	if r := h.judge(covered); r.Decision.Outcome != policy.Allow {
		t.Errorf("a later operation of the run: got %s", r.Decision.Outcome)
	}
}

func TestThreat17NobodyGivesMoreThanHeHas(t *testing.T) {
	ctx := context.Background()
	h := build(t, nil)
	roles := []principal.Role{principal.Viewer, principal.Member, principal.Operator, principal.Admin, principal.Overlord}
	people := map[principal.Role]id.Principal{}
	for _, role := range roles {
		people[role] = h.person(string(role), role)
	}
	for i, giver := range roles {
		for j, given := range roles {
			_, err := h.AddPerson(ctx, h.origin(people[giver]), ws, "x", given)
			_, _, keyErr := h.IssueKey(ctx, h.origin(people[giver]), ws, people[given], "key")
			want := i >= 3 && i >= j
			if (err == nil) != want {
				t.Errorf("%s adds %s: got %v, want allowed: %t", giver, given, err, want)
			}
			if may := giver == principal.Overlord && j < 4 || giver == principal.Admin && j < 2; (keyErr == nil) != (may || i == j) {
				t.Errorf("%s makes a key for %s: got %v", giver, given, keyErr)
			}
		}
	}
	for _, role := range []principal.Role{"", "root", "Overlord"} {
		if _, err := h.AddPerson(ctx, h.origin(h.owner), ws, "x", role); fault.CodeOf(err) != "invalid_role" {
			t.Errorf("role %q: got %v", role, err)
		}
	}
	if _, err := h.AddPerson(ctx, h.origin(h.agent), ws, "x", principal.Viewer); !errors.Is(err, principal.ErrMayNotGive) {
		t.Errorf("an agent adds a person: got %v", err)
	}
}

// refusedEverywhere are commands that standard refuses wherever they stand.
var refusedEverywhere = []string{"sudo", "ssh", "mount", "curl", "wget", "nsenter", "chroot", "chmod"}

func TestThreat10NothingHidesARefusedCommand(t *testing.T) {
	h := build(t, nil)
	wraps := []string{
		"%s", "ls; %s", "ls && %s", "false || %s", "ls | %s", "%s &", "(%s)", "{ %s; }", "echo $(%s)", "echo `%s`", "cat <(%s)",
		"if %s; then :; fi", "! %s",
		"while %s; do :; done", "for i in 1; do %s; done", "f() { %s; }; f", "case x in x) %s;; esac", "env A=b %s", "nice -n 3 %s",
		"timeout 5 %s",
		"xargs %s", "find . -exec %s \\;", "bash -c '%s'", "sh -c '%s'", "nohup %s", "command %s", "exec %s", "time %s", "trap '%s' EXIT",
		"cat <<E\n$(%s)\nE",
		"x=$(%s)", "[[ -n $(%s) ]]", "echo ${x:-$(%s)}", "coproc %s", "bash <<'E'\n%s\nE", "stdbuf -oL %s", "busybox %s", "ls\n%s",
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(refusedEverywhere).Draw(t, "name")
		line := rapid.SampledFrom([]string{"", "/usr/bin/", "./", "\\"}).Draw(t, "folder") + name + " x"
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			w := rapid.SampledFrom(wraps).Draw(t, "wrap")
			if strings.Contains(w, "'") && strings.Contains(line, "'") || strings.Contains(w, "`") && strings.Contains(line, "`") ||
				strings.Contains(w, "\n") && strings.Contains(line, "\n") {
				continue // it would end its own quotes
			}
			line = fmt.Sprintf(w, line)
		}
		for _, preset := range []string{"restrictive", "standard"} {
			r, err := h.Judge(context.Background(), h.shell(preset, line))
			if err != nil {
				t.Fatal(err)
			}
			if r.Decision.Outcome == policy.Allow {
				t.Fatalf("%s allows %q", preset, line)
			}
		}
	})
}
