package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/journal"
)

// asked is what a program outside is answered.
type asked struct {
	Decision string `json:"decision"`
	Code     string `json:"reason_code"`
	Blocked  bool   `json:"blocked"`
	Approval string `json:"approval_id"`
	Event    string `json:"event_id"`
	Error    string `json:"error"`
}

func (d *daemon) evaluate(t *testing.T, who, body string) asked {
	t.Helper()
	status, raw := d.ask(t, who, "POST", "/v1/policy/evaluate", body)
	var a asked
	if err := json.Unmarshal(raw, &a); err != nil || status >= 500 {
		t.Fatalf("%s: %d %s", body, status, raw)
	}
	return a
}

// request asks for approval and returns its id.
func (d *daemon) request(t *testing.T, who, body string) string {
	t.Helper()
	status, raw := d.ask(t, who, "POST", "/v1/approvals", body)
	var made policy.Approval
	if err := json.Unmarshal(raw, &made); err != nil || status != http.StatusCreated {
		t.Fatalf("%s: %d %s", body, status, raw)
	}
	return string(made.ID)
}

func (d *daemon) decide(t *testing.T, approval, body string) {
	t.Helper()
	if status, raw := d.ask(t, "", "POST", "/v1/approvals/"+approval+"/decide", body); status != http.StatusOK {
		t.Fatalf("decide %s: %d %s", approval, status, raw)
	}
}

const mail = `{"action":"email.send","zone":"high_stakes","target":"ada@example.com","request":{"subject":"Report"}}`

// together asks n times at once and returns how often it was allowed.
func (d *daemon) together(t *testing.T, n int, who, body string) int {
	t.Helper()
	var wg sync.WaitGroup
	var mu sync.Mutex
	allowed := 0
	for range n {
		wg.Go(func() {
			a := d.evaluate(t, who, body)
			mu.Lock()
			defer mu.Unlock()
			if a.Decision == "allow" && !a.Blocked {
				allowed++
			} else if a.Decision != "require_approval" || !a.Blocked {
				t.Errorf("got %+v", a)
			}
		})
	}
	wg.Wait()
	return allowed
}

func (d *daemon) recorded(t *testing.T, types ...string) []event.Event {
	t.Helper()
	found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: types, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestThreat09AHundredExecutorsWithOneApprovalAreOneStart(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	d.decide(t, d.request(t, "agent", mail), `{"decision":"approve"}`)
	if got := d.together(t, 100, "agent", mail); got != 1 {
		t.Errorf("one approval allowed %d starts", got)
	}
	if begun := d.recorded(t, policy.BegunType); len(begun) != 1 {
		t.Errorf("the log has %d starts", len(begun))
	}
	// A standing approval is as many starts as it has uses.
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	d.decide(t, d.request(t, "agent", mail), `{"decision":"approve","scope":"workspace","uses":7,"expires_at":"`+ends+`"}`)
	if got := d.together(t, 100, "agent", strings.ReplaceAll(mail, "Report", "Another")); got != 7 {
		t.Errorf("seven uses allowed %d starts", got)
	}
}

func TestThreat13ARevokedApprovalDoesNotComeBack(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for range 10 {
		approval := d.request(t, "agent", mail)
		d.decide(t, approval, `{"decision":"approve","scope":"workspace","uses":100,"expires_at":"`+ends+`"}`)
		standing := d.field(t, "/v1/approvals/"+approval, "standing_id")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { d.evaluate(t, "agent", mail) })
		}
		wg.Go(func() {
			if status, raw := d.ask(t, "", "DELETE", "/v1/standing-approvals/"+standing, ""); status != http.StatusNoContent {
				t.Errorf("revoke: %d %s", status, raw)
			}
		})
		wg.Wait()
		if a := d.evaluate(t, "agent", mail); a.Decision != "require_approval" {
			t.Fatalf("after the revocation: %+v", a)
		}
		revoked := uint64(0)
		for _, e := range d.recorded(t, policy.StandingRevokedType, policy.StandingUsedType) {
			if e.EntityID != standing {
				continue
			}
			if e.Type == policy.StandingRevokedType {
				revoked = e.Seq
			} else if revoked > 0 {
				t.Fatalf("used at %d after it was revoked at %d", e.Seq, revoked)
			}
		}
	}
}

func TestThreat05And06WhatIsShownIsWhatIsApproved(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	body := func(change string) string {
		return fmt.Sprintf(`{"action":"email.send","zone":"high_stakes","target":"ada@example.com","request":{"subject":"Report","to":["a","b"],"n":1}%s}`, change)
	}
	d.decide(t, d.request(t, "agent", body("")), `{"decision":"approve"}`)
	for _, other := range []string{
		strings.Replace(body(""), "Report", "report", 1), strings.Replace(body(""), `"a","b"`, `"b","a"`, 1), strings.Replace(body(""), `"n":1`,
			`"n":2`, 1),
		strings.Replace(body(""), "ada@", "eve@", 1), strings.Replace(body(""), "email.send", "external.write", 1), body(`,"method":"bcc"`),
		body(`,"tool_name":"mail"`),
		strings.Replace(body(""), `"n":1`, `"n":1,"bcc":"eve@example.com"`, 1), body(`,"step_id":"step_00000000000000000000000000"`),
	} {
		if a := d.evaluate(t, "agent", other); a.Decision == "allow" {
			t.Errorf("allowed by the approval of another action: %s", other)
		}
	}
	if a := d.evaluate(t, "member", body("")); a.Decision == "allow" {
		t.Error("allowed for another principal")
	}
	if a := d.evaluate(t, "agent", body("")); a.Decision != "allow" {
		t.Errorf("what was approved: %+v", a)
	}
	// The gate does not ask about a text that nobody can read in full.
	long := strings.Replace(body(""), "Report", strings.Repeat("x", policy.MaxRequestBytes), 1)
	if status, raw := d.ask(t, "agent", "POST", "/v1/approvals", long); status != 400 || code(raw) != "invalid_request" {
		t.Errorf("too long: %d %s", status, raw)
	}
	lines := strings.Replace(body(""), "Report", strings.Repeat(`\n`, policy.MaxQuestionLines+1), 1)
	if status, raw := d.ask(t, "agent", "POST", "/v1/approvals", lines); status != 403 || code(raw) != "action_too_long_to_show" {
		t.Errorf("too many lines: %d %s", status, raw)
	}
}

func TestThreat11And12TheDaemonWritesTheQuestion(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	shown := map[string]string{}
	for _, subject := range []string{"paypal", "p\u0430ypal", "paypal\u200b", "\u202elapyap", "paypal\\u0000", "pаураl", "paypa\u217c",
		"PAYPAL", "paypal ", "x\\nstatus: approved"} {
		body := fmt.Sprintf(`{"action":"external.write","target":"%[1]s","request":{"%[1]s":"%[1]s"},"title":"[approve] already approved `+
			`\u202e","context":{"status":"approved","reason":"\u001b[2J"}}`, subject)
		status, raw := d.ask(t, "agent", "POST", "/v1/approvals", body)
		var made policy.Approval
		if err := json.Unmarshal(raw, &made); err != nil || status != http.StatusCreated {
			t.Fatalf("%s: %d %s", body, status, raw)
		}
		q := made.Question
		if made.Status != policy.Pending || strings.Contains(q.What+q.Why+q.Impact+made.Title, "already") {
			t.Errorf("the asker's words are among the daemon's: %+v", made)
		}
		if !strings.Contains(q.AgentWords, "already approved") {
			t.Errorf("the asker's words are not shown: %q", q.AgentWords)
		}
		text := q.What[strings.Index(q.What, "\n"):] // without the hash, which differs in any case
		for _, r := range text + q.AgentWords + made.Title {
			if r != '\n' && (r < 0x20 || r > 0x7e && (r < 0xc0 || r > 0xff)) {
				t.Errorf("%q shows %q as it is", subject, r)
			}
		}
		if other, twice := shown[text]; twice {
			t.Errorf("%q looks like %q", subject, other)
		}
		shown[text] = subject
	}
}

func TestThreat15NumbersThatCanonicalJSONFoldsAreRefused(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	for number, status := range map[string]int{
		"9007199254740991": 201, "-9007199254740991": 201, "9007199254740992": 400, "9007199254740993": 400, "-9007199254740993": 400,
		"1e400": 400, "9.007199254740993e15": 400,
		`"9007199254740993"`: 201,
	} {
		body := `{"action":"payment.execute","target":"DE00","request":{"cents":` + number + `}}`
		got, raw := d.ask(t, "agent", "POST", "/v1/approvals", body)
		if got != status || status == 400 && number != "1e400" && code(raw) != "number_not_exact" {
			t.Errorf("%s: %d %s", number, got, raw)
		}
		got, raw = d.ask(t, "agent", "POST", "/v1/policy/evaluate", body)
		if want := map[int]int{201: 200, 400: 400}[status]; got != want {
			t.Errorf("evaluate %s: %d %s", number, got, raw)
		}
	}
	if status, raw := d.ask(t, "agent", "POST", "/v1/approvals",
		`{"action":"payment.execute","request":{"cents":1,"cents":2}}`); status != 400 {
		t.Errorf("a name that stands twice: %d %s", status, raw)
	}
	if status, raw := d.ask(t, "agent", "POST", "/v1/approvals", `{"action":"payment.execute","request":[1]}`); status != 400 ||
		code(raw) != "invalid_request" {
		t.Errorf("a list: %d %s", status, raw)
	}
}

// A person who sends a question for an agent counts as a requester too: neither the person nor the agent approves it.
func TestNobodyApprovesWhatHeSentForAnAgent(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	ada := d.key(t, "admin-ada")
	d.keys["ada"] = ada
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	body := strings.Replace(mail, `{"action"`, `{"principal_id":"`+string(agent)+`","action"`, 1)
	approval := d.request(t, "ada", body)
	if status, raw := d.ask(t, "ada", "POST", "/v1/approvals/"+approval+"/decide", `{"decision":"approve"}`); status != 403 ||
		code(raw) != "approval_own_request" {
		t.Errorf("ada approves what she sent: %d %s", status, raw)
	}
	d.decide(t, approval, `{"decision":"approve"}`)
	if a := d.evaluate(t, "agent", mail); a.Decision != "allow" || a.Approval != approval {
		t.Errorf("the agent: %+v", a)
	}
	for _, e := range d.recorded(t, policy.ApprovalRequestedType) {
		if said, err := event.Decode[policy.ApprovalRequested](e); err != nil || e.Principal != agent || said.Through == "" {
			t.Errorf("the event says %s through %q, %v", e.Principal, said.Through, err)
		}
	}
}

// The scopes of 5.6, each of which the origin only partly matched.
func TestScopesOfApprovalsOutside(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	ends := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	first := `{"action":"api.call.mutating","zone":"high_stakes","room_id":"room_00000000000000000000000000","target":"api.example.com","method":"POST","request":{"path":"/a"}}`
	same := strings.Replace(first, "/a", "/b", 1)
	elsewhere := strings.Replace(first, "api.example.com", "evil.example.com", 1)
	otherForm := strings.Replace(first, `"path":"/a"`, `"path":"/a","force":true`, 1)
	otherRoom := strings.Replace(same, "room_00000000000000000000000000", d.must(t, "POST", "/v1/rooms", `{"title":"other"}`, "room_id"), 1)
	for scope, allowed := range map[string]map[string]bool{
		"room":      {same: true, otherForm: true, elsewhere: false, otherRoom: false},
		"workspace": {same: true, otherForm: true, elsewhere: false, otherRoom: true},
		"template":  {same: true, otherForm: false, elsewhere: false, otherRoom: false},
	} {
		approval := d.request(t, "agent", first)
		d.decide(t, approval, `{"decision":"approve","scope":"`+scope+`","uses":9,"expires_at":"`+ends+`"}`)
		for body, want := range allowed {
			if a := d.evaluate(t, "agent", body); (a.Decision == "allow") != want || want && a.Code != policy.ReasonApprovalAllows {
				t.Errorf("scope %s, %s: %+v", scope, body, a)
			}
		}
		standing := d.field(t, "/v1/approvals/"+approval, "standing_id")
		if status, raw := d.ask(t, "", "DELETE", "/v1/standing-approvals/"+standing, ""); status != http.StatusNoContent {
			t.Fatalf("revoke: %d %s", status, raw)
		}
	}
	// How much is paid is not a detail, a shell is none of what is approved for good, and there is no run here.
	pay := `{"action":"payment.execute","zone":"high_stakes","target":"DE00","request":{"cents":100}}`
	d.decide(t, d.request(t, "agent", pay), `{"decision":"approve","scope":"workspace","uses":2,"expires_at":"`+ends+`"}`)
	if a := d.evaluate(t, "agent", strings.Replace(pay, "100", "101", 1)); a.Decision == "allow" {
		t.Error("another amount is paid by the approval of the first")
	}
	if a := d.evaluate(t, "agent", pay); a.Decision != "allow" {
		t.Errorf("the same payment again: %+v", a)
	}
	for body, scope := range map[string]string{
		strings.Replace(first, `"method"`, `"tool_name":"bash","method"`, 1):         "workspace",
		strings.Replace(first, `"method"`, `"tool_name":"/usr/bin/env","method"`, 1): "room",
		strings.Replace(first, `"method"`, `"tool_name":"python3","method"`, 1):      "template",
		first: "run",
		strings.Replace(first, `"target":"api.example.com",`, "", 1): "workspace",
		strings.Replace(pay, "100", "102", 1):                        "template",
	} {
		status, raw := d.ask(t, "", "POST", "/v1/approvals/"+d.request(t, "member", body)+"/decide", `{"decision":"approve","scope":"`+scope+
			`","uses":2,"expires_at":"`+ends+`"}`)
		if status != http.StatusBadRequest {
			t.Errorf("%s of scope %s: %d %s", body, scope, status, raw)
		}
	}
}

// An action outside is decided in mode shadow as it is without it, and the answer says that it is enforced.
func TestShadowModeBlocksOnlyWhatAlwaysTakesAPerson(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.Shadow = true })
	d.populate(t)
	for body, blocked := range map[string]bool{
		`{"action":"api.call.idempotent"}`: false, `{"action":"email.send","zone":"high_stakes"}`: true, `{"action":"server.shutdown"}`: true,
		`{"action":"email.send","zone":"sandbox"}`: true, `{"action":"external.write","target":"a.example"}`: true,
		`{"action":"payment.execute","zone":"high_stakes"}`: true,
	} {
		status, raw := d.ask(t, "agent", "POST", "/v1/policy/evaluate", body)
		var a struct {
			asked
			Mode string `json:"enforcement_mode"`
		}
		if err := json.Unmarshal(raw, &a); err != nil || status != 200 || a.Mode != "enforce" || a.Blocked != blocked {
			t.Errorf("%s: %d %s", body, status, raw)
		}
	}
}

// Where effects are counted, actions outside count too, however many callers ask at once.
func TestTheQuotaHoldsOutside(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.EffectsPerHour = 5 })
	d.populate(t)
	var wg sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]int{}
	for range 20 {
		wg.Go(func() {
			a := d.evaluate(t, "agent", `{"action":"api.call.idempotent","target":"api.example.com"}`)
			mu.Lock()
			defer mu.Unlock()
			answers[a.Decision+" "+a.Code]++
		})
	}
	wg.Wait()
	if answers["allow default_allow"] != 5 || answers["deny quota_exceeded"] != 15 {
		t.Errorf("got %v", answers)
	}
	if status, raw := d.ask(t, "agent", "POST", "/v1/policy/evaluate",
		`{"action":"api.call.idempotent","target":"api.example.com","preview":true}`); status != 200 || !strings.Contains(string(raw),
		"quota_exceeded") {
		t.Errorf("a preview: %d %s", status, raw)
	}
}

// A quarantined agent may do nothing outside either, and what was approved for it before waits with it.
func TestQuarantineHoldsOutside(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	agent, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	d.decide(t, d.request(t, "agent", mail), `{"decision":"approve"}`)
	for _, on := range []bool{true, false} {
		if err := d.app.Identity.Quarantine(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, agent, on,
			"it acts oddly"); err != nil {
			t.Fatal(err)
		}
		body := strings.Replace(mail, `{"action"`, `{"principal_id":"`+string(agent)+`","action"`, 1)
		if a := d.evaluate(t, "", body); on && (a.Decision != "deny" || a.Code != policy.ReasonAgentQuarantined) || !on && a.Decision != "allow" {
			t.Errorf("quarantined %t: %+v", on, a)
		}
	}
}
