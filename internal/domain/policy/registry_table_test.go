package policy_test

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

var update = flag.Bool("update", false, "write the table of the registry")

// TestTheRegistry holds every built-in action as the table says: its effects, its roles, and its safeguards. Read the difference after
// -update as a change of everybody's rights.
func TestTheRegistry(t *testing.T) {
	var b strings.Builder
	for _, k := range policy.Registry() {
		fmt.Fprintf(&b, "%s: %s; %s, %s cost, %s recovery", k.Type, k.Title, k.SideEffect, k.Cost, k.Recovery)
		if k.Role != "" {
			fmt.Fprintf(&b, "; least role %s", k.Role)
		}
		for _, flag := range []struct {
			is   bool
			text string
		}{
			{k.Agents, "agents"}, {k.Services, "services"}, {k.Reversible, "reversible"}, {k.Idempotent, "idempotent"},
			{k.PreApproval, "always asks"}, {k.PostReview, "looked at afterwards"},
			{k.Outside, "outside"}, {k.Halts, "halts"}, {k.Anywhere, "anywhere"}, {k.Stops(), "stopped by the kill switch"},
			{k.SideEffect.Reaches(), "counts against the quota"},
			{policy.Outside(k.Type), "done outside"}, {k.Zone == event.HighStakes, "high stakes"}, {k.Zone == event.Sandbox, "sandbox"},
		} {
			if flag.is {
				b.WriteString("; " + flag.text)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "\na policy gives: %s\n", strings.Join(policy.Givable(), ", "))
	const file = "testdata/registry.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got, wanted := strings.Split(b.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(got), len(wanted)) {
		if i >= len(got) || i >= len(wanted) || got[i] != wanted[i] {
			t.Fatalf("line %d of %s differs; go test -update writes it anew:\n%s", i+1, file, b.String())
		}
	}
}

// TestABundleIsBounded holds each bound at its edge, and that a bundle is what its hash says.
func TestABundleIsBounded(t *testing.T) {
	limits := policy.Limits{FileBytes: 1, CommandMS: 1}
	with := func(change func(*policy.Limits)) policy.Limits {
		l := limits
		change(&l)
		return l
	}
	for name, c := range map[string]struct {
		cedar  string
		limits policy.Limits
		code   string
	}{
		"the least":             {"", limits, ""},
		"the longest text":      {strings.Repeat(" ", policy.MaxBundleBytes), limits, ""},
		"a longer text":         {strings.Repeat(" ", policy.MaxBundleBytes+1), limits, "policy_too_large"},
		"no bytes of a file":    {"", with(func(l *policy.Limits) { l.FileBytes = 0 }), "policy_invalid"},
		"no time for a command": {"", with(func(l *policy.Limits) { l.CommandMS = 0 }), "policy_invalid"},
		"the most approvers":    {"", with(func(l *policy.Limits) { l.Approvers = policy.MaxApprovers }), ""},
		"one more approver":     {"", with(func(l *policy.Limits) { l.Approvers = policy.MaxApprovers + 1 }), "policy_invalid"},
		"less than no approver": {"", with(func(l *policy.Limits) { l.Approvers = -1 }), "policy_invalid"},
		"a tier":                {"", with(func(l *policy.Limits) { l.Weakest = "namespace" }), ""},
		"the longest tier":      {"", with(func(l *policy.Limits) { l.Weakest = strings.Repeat("a", 32) }), ""},
		"a longer tier":         {"", with(func(l *policy.Limits) { l.Weakest = strings.Repeat("a", 33) }), "policy_invalid"},
		"a number beyond JSON":  {"", with(func(l *policy.Limits) { l.CommandMS = 1 << 60 }), policy.ErrInexact.Code},
		"no name of a tier":     {"", with(func(l *policy.Limits) { l.Weakest = "Name Space" }), "policy_invalid"},
	} {
		b, err := policy.NewBundle("mine", c.cedar, c.limits)
		if fault.CodeOf(err) != c.code {
			t.Errorf("%s: got %v, want %q", name, err, c.code)
		}
		if err == nil && (b.Name != "mine" || b.Cedar != c.cedar || !reflect.DeepEqual(b.Limits, c.limits) || b.Hash.IsZero() ||
			b.Verify() != nil) {
			t.Errorf("%s: got %+v", name, b)
		}
	}
	b, err := policy.NewBundle("mine", "", limits)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*policy.Bundle){
		"name": func(b *policy.Bundle) { b.Name = "x" }, "text": func(b *policy.Bundle) { b.Cedar = "x" },
		"limit": func(b *policy.Bundle) { b.Limits.FileBytes++ },
		"hash":  func(b *policy.Bundle) { b.Hash[0]++ }, "number beyond JSON": func(b *policy.Bundle) { b.Limits.CommandMS = 1 << 60 },
	} {
		other := b
		change(&other)
		if other.Verify() == nil {
			t.Errorf("a bundle of another %s passes for what it was", name)
		}
	}
	if policy.TierName("") || !policy.TierName("a_1") {
		t.Error("the name of a tier is 1 to 32 small letters, digits and _")
	}
}

// TestTheWordsOfAnOutcome holds the wire form both ways; what nobody knows denies.
func TestTheWordsOfAnOutcome(t *testing.T) {
	for o, word := range map[policy.Outcome]string{policy.Allow: "allow", policy.RequireApproval: "require_approval", policy.Deny: "deny"} {
		text, err := o.MarshalText()
		read := policy.Outcome(9)
		if err != nil || string(text) != word || o.String() != word || read.UnmarshalText(text) != nil || read != o {
			t.Errorf("%d: written %q, %v, read %d", o, text, err, read)
		}
	}
	unknown := policy.Allow
	if err := unknown.UnmarshalText([]byte("ALLOW")); err != nil || unknown != policy.Deny || policy.Outcome(9).String() != "deny" {
		t.Errorf("an unknown word is read as %s, %v", unknown, err)
	}
	for d, want := range map[*policy.Decision]bool{{Outcome: policy.Allow}: true, {Outcome: policy.RequireApproval}: false, {}: false,
		{Shadow: true}: true} {
		if d.Allowed() != want {
			t.Errorf("%+v: allowed %t", *d, !want)
		}
	}
	if (policy.Verdict{}).Matched() || !(policy.Verdict{Rules: []policy.Rule{{}}}).Matched() {
		t.Error("a verdict matches where a rule decided")
	}
}

// TestWhichQuestionStillCounts holds for how long a question says something about its action.
func TestWhichQuestionStillCounts(t *testing.T) {
	for _, c := range []struct {
		status policy.ApprovalStatus
		scope  policy.Scope
		used   bool
		want   bool // before its end; never at it
	}{
		{policy.Pending, policy.ScopeOnce, false, true}, {policy.Held, policy.ScopeOnce, false, true},
		{policy.Denied, policy.ScopeOnce, false, true},
		{policy.Approved, policy.ScopeOnce, false, true}, {policy.Approved, policy.ScopeOnce, true, false},
		{policy.Approved, policy.ScopeRun, false, false},
		{policy.Expired, policy.ScopeOnce, false, false}, {policy.Withdrawn, policy.ScopeOnce, false, false},
		{"", policy.ScopeOnce, false, false},
	} {
		a := policy.Approval{Status: c.status, Scope: c.scope, Used: c.used, ExpiresAt: noon}
		if got := a.Counts(noon.Add(-1)); got != c.want || a.Counts(noon) {
			t.Errorf("%+v counts %t before its end, %t at it; want %t, false", c, got, a.Counts(noon), c.want)
		}
	}
	for _, c := range []struct {
		a    policy.Approval
		code string
		says string
	}{
		{policy.Approval{Status: policy.Approved}, "", ""}, {policy.Approval{ID: "apr_1", Status: policy.Denied}, policy.ReasonApprovalDenied,
			policy.ErrApprovalDenied.Msg},
		{policy.Approval{ID: "apr_1", Status: policy.Denied, Reason: "no\nway"}, policy.ReasonApprovalDenied, `a person refused it: no\nway`},
		{policy.Approval{ID: "apr_1", Status: policy.Pending, Question: policy.Question{Why: "it is far"}}, policy.CodeApprovalRequired,
			"policy asks a person first: it is far"},
	} {
		err := c.a.Answered()
		if fault.CodeOf(err) != c.code || err != nil && err.Error() != c.says {
			t.Errorf("%+v: got %v, want %s", c.a, err, c.says)
		}
		if asked, ok := err.(*policy.Asked); err != nil && (!ok || asked.Approval != "apr_1" || asked.Fault.Suggestion == "") {
			t.Errorf("%+v: got %+v", c.a, err)
		}
	}
}

func TestTheNearestWord(t *testing.T) {
	words := []string{"shell.exec", "shell.edit", "file.read", "run.start"}
	for word, want := range map[string]string{
		"shell.exec": "shell.exec", "shel.exec": "shell.exec", "shell.edut": "shell.edit", "fileread": "file.read", "xrun.start": "run.start",
		"nur.start": "run.start", "": "file.read",
		"shell.exed": "shell.exec",
	} {
		if got := policy.Nearest(word, words); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
	keys := []string{"provider", "allow_private", "base_url", "no_tools"}
	for word, want := range map[string]string{"private": "allow_private", "tools": "no_tools", "providr": "provider"} {
		if got := policy.Nearest(word, keys); got != want {
			t.Errorf("%q, a part of a word: got %s, want %s", word, got, want)
		}
	}
	if got := policy.Nearest("x", nil); got != "" {
		t.Errorf("of no words: %q", got)
	}
	long := strings.Repeat("a", 64)
	if got := policy.Nearest(long+"b", []string{long + "cc", long + "b"}); got != long+"cc" {
		t.Error("more than 64 bytes count")
	}
}

// TestWhatAnActionCanChange holds each sentence that a person reads before they answer.
func TestWhatAnActionCanChange(t *testing.T) {
	own := func(effect policy.SideEffect, reversible bool) policy.Action {
		return policy.Action{Type: "till.open", Declared: policy.Declaration{Version: 1, SideEffect: effect, Reversible: reversible}}
	}
	const declared = "As this workspace declared it, by itself: "
	for _, c := range []struct {
		a        policy.Action
		unsealed []string
		want     string
	}{
		{policy.Action{Type: policy.RunContinue}, []string{"x"},
			"The run goes on with its next operation. The interrupted one is not repeated, and what it did is not known."},
		{policy.Action{Type: policy.DataAccessUnjustified}, nil,
			"Personal data are used for another purpose than they are kept for. This cannot be undone."},
		{policy.Action{Type: policy.QuestionAsk}, nil, "Nothing is done. The requester learns the answer."},
		{policy.Action{Type: policy.FileRead}, nil, "Reads from the workspace and changes nothing."},
		{policy.Action{Type: policy.FileRead}, []string{"x", "y"},
			"Reads from the workspace and changes nothing. Depends on 2 file(s) that this approval cannot seal: they can change before it runs."},
		{own(policy.Pure, false), nil, declared + "Changes nothing."},
		{own(policy.Filesystem, true), nil, declared + "Changes files of the space. Can be undone."},
		{own(policy.Process, false), nil, declared + "Runs code in the space; it can change every file of the space. Cannot be undone."},
		{own(policy.Network, false), nil, declared + "Reaches out of this machine. Cannot be undone."},
		{policy.Action{Type: policy.ShellExec, Space: "spc_1"}, nil,
			"Runs code in the space; it can change every file of the space. A rewind to the snapshot before it puts the space's files back, " +
				"unless the space is too large for snapshots."},
		{policy.Action{Type: policy.ShellExec}, nil, "Runs code in the space; it can change every file of the space. Cannot be undone."},
		{policy.Action{Type: policy.EmailSend, Space: "spc_1"}, nil, "Reaches out of this machine. Cannot be undone."},
		{policy.Action{Type: policy.RoomCreate}, nil, "Is recorded, and changes nothing else. Can be undone."},
		{policy.Action{Type: policy.SpaceCreate}, nil, "Changes spaces, runs or policy. Can be undone."},
		{policy.Action{Type: "never.heard"}, nil, "Its effect is not known. Cannot be undone."},
	} {
		if got := policy.Impact(c.a, c.unsealed, false); got != c.want {
			t.Errorf("%s: got %q, want %q", c.a.Type, got, c.want)
		}
	}
	got := policy.Impact(policy.Action{Type: policy.ShellExec, Space: "spc_1"}, nil, true)
	want := "Runs code in the space; it can change every file of the space. It moves files out of the space, to where nothing is kept. " +
		"A rewind brings back what the snapshot before it has of them, unless the space is too large for snapshots; what changed since is " +
		"lost, and " +
		"nothing outside of the space's files is undone."
	if got != want {
		t.Errorf("a command that moves files out: got %q, want %q", got, want)
	}
}

// TestWhatRemainsOfARedactedEventOfPermission holds that ids and the program's own words stay, and no word of anybody.
func TestWhatRemainsOfARedactedEventOfPermission(t *testing.T) {
	bundle, hash := event.DigestOf([]byte("b")), event.DigestOf([]byte("a"))
	decision := policy.Decision{
		Outcome: policy.RequireApproval, ReasonCode: "code", Reason: "words", Suggestion: "words", Policies: []string{"p"}, Action: hash,
		Bundle: bundle, Shadow: true, Unsealed: []string{"x"}, Approvers: 2,
	}
	bare := policy.Decision{Outcome: policy.RequireApproval, ReasonCode: "code", Policies: []string{"p"}, Bundle: bundle, Shadow: true,
		Approvers: 2}
	later := noon.Add(time.Hour)
	refused := policy.Refused{Action: "a", Title: "words", Space: "spc_1", Operation: "words", Decision: decision, Bundle: bundle,
		Approval: "apr_1", Through: "svc_1"}
	less := policy.Refused{Action: "a", Space: "spc_1", Decision: bare, Bundle: bundle, Approval: "apr_1", Through: "svc_1"}
	for typ, c := range map[string]struct{ data, want any }{
		policy.ApprovalRequestedType: {
			policy.ApprovalRequested{
				Approval: "apr_1", Space: "spc_1", Operation: "words", Action: "a", Title: "words", Request: policy.Stored(`{}`), ActionHash: hash,
				Bundle:   bundle,
				Question: policy.Question{What: "words"}, Scope: policy.ScopeOnce, ExpiresAt: later, Approvers: 2, Through: "svc_1",
			},
			policy.ApprovalRequested{Approval: "apr_1", Space: "spc_1", Action: "a", Bundle: bundle, Scope: policy.ScopeOnce, ExpiresAt: later,
				Approvers: 2, Through: "svc_1"},
		},
		policy.ApprovalAssentedType: {
			policy.ApprovalAssented{Approval: "apr_1", Reason: "words", Scope: policy.ScopeRun, Uses: 2, Issuer: "usr_2"},
			policy.ApprovalAssented{Approval: "apr_1", Scope: policy.ScopeRun, Uses: 2, Issuer: "usr_2"},
		},
		policy.ApprovalDecidedType: {
			policy.ApprovalDecided{Approval: "apr_1", Status: policy.Denied, Reason: "words", ExpiresAt: later},
			policy.ApprovalDecided{Approval: "apr_1", Status: policy.Denied, ExpiresAt: later},
		},
		policy.ApprovalUsedType:      {policy.ApprovalUsed{Approval: "apr_1", ActionHash: hash}, policy.ApprovalUsed{Approval: "apr_1"}},
		policy.ApprovalExpiredType:   {policy.ApprovalExpired{Approval: "apr_1"}, policy.ApprovalExpired{Approval: "apr_1"}},
		policy.ApprovalWithdrawnType: {policy.ApprovalWithdrawn{Approval: "apr_1", Reason: "words"}, policy.ApprovalWithdrawn{Approval: "apr_1"}},
		policy.DeniedType:            {refused, less},
		policy.RequiresApprovalType:  {refused, less},
		policy.BegunType: {
			policy.Begun{Action: "a", Title: "words", Space: "spc_1", Operation: "words", Decision: decision, Approval: "apr_1", Standing: "sta_1",
				Through: "svc_1"},
			policy.Begun{Action: "a", Space: "spc_1", Decision: bare, Approval: "apr_1", Standing: "sta_1", Through: "svc_1"},
		},
		policy.StandingGrantedType: {policy.StandingGranted{Standing: "sta_1"}, nil},
	} {
		if got, err := policy.Remains(told(t, typ, "", c.data)); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", typ, got, err, c.want)
		}
		if _, err := policy.Remains(broken(told(t, typ, "", c.data))); (err == nil) != (c.want == nil) {
			t.Errorf("%s with broken data: %v", typ, err)
		}
	}
	decision.Shadow = false
	got, err := policy.Remains(told(t, policy.BegunType, "", policy.Begun{Decision: decision}))
	if begun, ok := got.(policy.Begun); err != nil || !ok || begun.Decision.Shadow {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestTheDraftsOfADecision holds what is recorded of what was refused, of what is asked about, and of what begins.
func TestTheDraftsOfADecision(t *testing.T) {
	a := policy.Action{Type: policy.FileDelete, Path: "a", Workspace: "ws_dev", Room: "room_1", Space: "spc_1", Operation: "op", Run: "run_1",
		Step: "stp_1", Principal: "agt_1", Token: "tok_1", Bundle: event.DigestOf([]byte("b"))}
	origin := event.Origin{Principal: "usr_1"}
	for _, c := range []struct {
		outcome policy.Outcome
		typ     string
	}{{policy.Deny, policy.DeniedType}, {policy.RequireApproval, policy.RequiresApprovalType}} {
		r := policy.Ruling{Action: a, Decision: policy.Decision{Outcome: c.outcome, Action: event.DigestOf([]byte("a"))}, Standing: "sta_1"}
		for name, d := range map[string]event.Draft{"inside": policy.RefusedDraft(origin, r),
			"outside": policy.RefusedOutside(origin, r, "apr_1", "svc_1")} {
			data, err := event.Decode[policy.Refused](event.Event{Header: d.Header, Data: d.Data})
			want := policy.Refused{Action: policy.FileDelete, Title: "delete a file: a", Space: "spc_1", Operation: "op", Decision: r.Decision,
				Bundle: a.Bundle}
			if name == "outside" {
				want.Operation, want.Approval, want.Through = "", "apr_1", "svc_1"
			}
			if err != nil || !reflect.DeepEqual(data, want) || d.Type != c.typ || d.Workspace != "ws_dev" || d.Room != "room_1" ||
				d.Run != "run_1" || d.Step != "stp_1" ||
				d.EntityType != policy.ActionEntity || d.EntityID != r.Decision.Action.String() || d.Principal != "usr_1" {
				t.Errorf("%s, %s: got %+v with %+v, %v", c.typ, name, d.Header, data, err)
			}
		}
		r.Decision.Action = event.Digest{} // the action has no canonical bytes
		for name, d := range map[string]event.Draft{"inside": policy.RefusedDraft(origin, r),
			"outside": policy.RefusedOutside(origin, r, "", "")} {
			data, err := event.Decode[policy.Refused](event.Event{Header: d.Header, Data: d.Data})
			if err != nil || !data.Decision.Action.IsZero() || d.Type != c.typ || d.Run != "run_1" || d.EntityType != "" || d.EntityID != "" {
				t.Errorf("%s, %s, without a digest: got %+v with %+v, %v", c.typ, name, d.Header, data, err)
			}
		}
		r.Decision.Action = event.DigestOf([]byte("a"))
		for name, d := range map[string]event.Draft{"inside": policy.BegunDraft(r), "outside": policy.BegunOutside(origin, r, "apr_1", "svc_1")} {
			data, err := event.Decode[policy.Begun](event.Event{Header: d.Header, Data: d.Data})
			want := policy.Begun{Action: policy.FileDelete, Title: "delete a file: a", Space: "spc_1", Operation: "op", Decision: r.Decision}
			if name == "outside" {
				want.Operation, want.Approval, want.Standing, want.Through = "", "apr_1", "sta_1", "svc_1"
			}
			if err != nil || !reflect.DeepEqual(data, want) || d.Type != policy.BegunType || d.Run != "run_1" ||
				d.EntityID != r.Decision.Action.String() || (d.Principal == "agt_1") != (name == "inside") {
				t.Errorf("begun %s: got %+v with %+v, %v", name, d.Header, data, err)
			}
		}
	}
}
