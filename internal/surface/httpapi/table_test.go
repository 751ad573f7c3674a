package httpapi_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/token"
)

// rightsFile is the table of who may what: a row per operation of the API document, a column per credential. `go test -run TableOfRights -update`
// writes it anew; read the difference as a change of rights.
const rightsFile = "testdata/rights.txt"

const rightsHead = `# Who may what: each operation of the API document, asked with each credential, with a body and ids that fit.
# ok: the caller may; the answer is a success, or a refusal that has nothing to do with who asks (400, 409, 413, 415, 429).
# Else the status and the initials of the code:
`

// credential is a column of the table: how a request shows who asks.
type credential struct {
	name   string
	header http.Header
}

// credentials are the columns, the weakest first.
func (m *matrix) credentials(t *testing.T) []credential {
	t.Helper()
	ctx, ws, owner := t.Context(), id.DefaultWorkspace, event.Origin{Principal: m.app.Owner}
	bearer := func(name, text string) credential {
		return credential{name, http.Header{"Authorization": {"Bearer " + text}}}
	}
	revoked, key, err := m.app.Gate.IssueKey(ctx, owner, ws, m.app.Owner, "lost")
	if err == nil {
		err = m.app.Gate.RevokeKey(ctx, owner, ws, key.ID, "lost", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	expired, err := m.app.Identity.Grant(ctx, owner, ws, token.Grant{IssuedTo: m.app.Owner, Scopes: token.All(), ValidUntil: time.Now().Add(50 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	m.keys["expired"] = expired.Bearer
	for status := 0; status != http.StatusUnauthorized; {
		status, _ = m.ask(t, "expired", "GET", "/v1/auth/session", "")
	}
	service := m.must(t, "POST", "/v1/principals", `{"kind":"service","display_name":"nightly"}`, "principal_id")
	worker := m.must(t, "POST", "/v1/keys", `{"name":"nightly","principal_id":"`+service+`"}`, "key")
	engine := m.must(t, "POST", "/v1/engines/register", `{"display_name":"of the table"}`, "engine_id")
	engineToken := m.must(t, "POST", "/v1/engines/"+engine+"/tokens/issue", `{}`, "token")
	narrow, _ := m.bearer(t, m.app.Owner, token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.MessageSend}, Data: token.Data{Read: []string{"message"}, Write: []string{"message"}}})
	return []credential{
		{"none", http.Header{}}, bearer("garbage", "garbage"), bearer("revoked", revoked), bearer("expired", expired.Bearer), bearer("foreign", m.keys["other"]),
		{"narrow", http.Header{"Authorization": {narrow}}},
		bearer("viewer", m.keys["viewer"]),
		{"engine", http.Header{"X-Engine-Id": {engine}, "X-Engine-Token": {engineToken}}}, bearer("service", worker), bearer("agent", m.keys["agent"]),
		bearer("member", m.keys["member"]), bearer("operator", m.key(t, "operator-ole")), bearer("admin", m.key(t, "admin-ada")),
		bearer("overlord", m.keys[""]),
	}
}

// cell asks an operation with a credential and says what comes of it, and the code of a refusal.
func (m *matrix) cell(t *testing.T, e endpoint, c credential) (says, code string) {
	t.Helper()
	status, code, raw := m.tryAs(t, e, c.header)
	if status >= 500 {
		t.Errorf("%s with %s: %d %s", e.id, c.name, status, raw)
	}
	if slices.Contains([]string{"none", "garbage", "revoked", "expired", "foreign"}, c.name) {
		path, sent := m.request(t, e)
		for name, thing := range m.things {
			if len(thing) > 20 && name != "room_id" && !strings.Contains(path+sent.body, thing) && strings.Contains(raw, thing) {
				t.Errorf("%s tells %s of %s", e.id, c.name, thing)
			}
		}
	}
	each := strings.Contains(raw, `"ok":false`) && !strings.Contains(raw, `"ok":true`) // an answer for each file
	switch {
	case each && strings.Contains(raw, policy.ReasonRoleTooLow):
		status, code = http.StatusForbidden, policy.ReasonRoleTooLow
	case status != http.StatusUnauthorized && status != http.StatusForbidden && status != http.StatusNotFound:
		return "ok", ""
	}
	initials := ""
	for word := range strings.SplitSeq(code, "_") {
		initials += word[:1]
	}
	return fmt.Sprintf("%d %s", status, initials), fmt.Sprintf("%d %s = %s", status, initials, code)
}

// TestTableOfRights compares what each credential may with the one written table. An operation without a row fails, and so does a row without one.
func TestTableOfRights(t *testing.T) {
	m := populated(t)
	columns := m.credentials(t)
	last := map[string]int{"delete-space": 1, "put-kill-switch": 2} // behind which nothing else is possible
	all := endpoints(t)
	slices.SortStableFunc(all, func(a, b endpoint) int { return last[a.id] - last[b.id] })
	legend := map[string]bool{}
	var rows []string
	for _, e := range all {
		row := fmt.Sprintf("%-25s", e.id)
		for _, c := range columns {
			says, code := m.cell(t, e, c)
			row += fmt.Sprintf(" %-9s", says)
			if code != "" {
				legend[code] = true
			}
		}
		rows = append(rows, strings.TrimRight(row, " "))
	}
	slices.Sort(rows)
	head := rightsHead
	var codes []string
	for code := range legend {
		codes = append(codes, "#   "+code)
	}
	slices.Sort(codes)
	head += strings.Join(codes, "\n") + "\n\n" + fmt.Sprintf("%-25s", "operation")
	for _, c := range columns {
		head += fmt.Sprintf(" %-9s", c.name)
	}
	got := strings.TrimRight(head, " ") + "\n" + strings.Join(rows, "\n") + "\n"
	if *update {
		if err := os.WriteFile(rightsFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(rightsFile)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what happens now:\n%s", rightsFile, difference(string(want), got))
	}
}
