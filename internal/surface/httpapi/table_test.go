package httpapi_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	"agentbox/internal/testkit/wall"
)

// rightsFile is the table of who may what: a row per operation of the API document, a column per credential. `go test -run TableOfRights
// -update` writes it anew; read the difference as a change of rights.
const rightsFile = "testdata/rights.txt"

const rightsHead = `# Who may what: each operation of the API document, asked with each credential, with a body and ids that fit. Each of the columns that may do
# something has a daemon of its own, so that none finds undone or done already what another one asked.
# ok: the caller may, and it was done (2xx). Else the caller is refused: the status and the initials of the code.
# A body that is not valid gets the same refusal as one that is: only a caller who may ask learns whether a body is valid. But for:
`

// bodyDecides are the operations of which a refusal may rest on the body, or on what the path names, so that a body that is not valid is
// told first, and why.
var bodyDecides = map[string]string{
	"create-space":      "the policy that the body names is asked, and a policy can permit it to agents",
	"create-run":        "the policy of the space is asked, together with the agent and the token that the body names",
	"run-cell":          "the policy of the space is asked, together with the token that the body names",
	"give-input":        "the policy of the space is asked, as it is to start the run",
	"update-space":      "the policy of the space is asked about the whole change",
	"extend-space":      "the policy of the space is asked about the whole change",
	"fork-space":        "the policy of the space is asked about the whole fork",
	"promote-space":     "the policy of the space is asked about the whole move",
	"pause-space":       "the policy of the space is asked about the whole change",
	"resume-space":      "the policy of the space is asked about the whole change",
	"preview-port":      "the policy of the space is asked, with how long and for whom the port is opened",
	"rewind-space":      "the policy of the space is asked, with the snapshot that the body names",
	"redact-events":     "policy is asked of agents and services, with what the body names",
	"retain-run":        "policy is asked of agents and services, with what the body names",
	"grant-capability":  "who may be given a token, and by whom, stands in the body",
	"revoke-capability": "which token it is stands in the body, and who holds or granted it may",
	"withdraw-approval": "a service withdraws what an agent asked, for whom it acts by the body",
	"cancel-run":        "a service ends the run of an agent for whom it acts by the body",
	"cancel-engine-run": "a service ends the run of an agent for whom it acts by the body",
	"register-agent":    "a service registers for an agent for whom it acts by the body",
}

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
	revoked, key, err := m.app.Identity.IssueKey(ctx, owner, ws, m.app.Owner, "lost")
	if err == nil {
		err = m.app.Identity.RevokeKey(ctx, owner, ws, key.ID, "lost", false)
	}
	if err != nil {
		t.Fatal(err)
	}
	expired, err := m.app.Identity.Grant(ctx, owner, ws, token.Grant{IssuedTo: m.app.Owner, Scopes: token.All(),
		ValidUntil: time.Now().Add(50 * time.Millisecond)})
	if err != nil {
		t.Fatal(err)
	}
	m.keys["expired"] = expired.Bearer
	for status := 0; status != http.StatusUnauthorized; {
		status, _ = m.ask(t, "expired", "GET", "/v1/auth/session", "")
	}
	service := m.must(t, "POST", "/v1/principals", `{"kind":"service","display_name":"nightly"}`, "principal_id")
	worker := m.must(t, "POST", "/v1/keys", `{"name":"nightly","principal_id":"`+service+`"}`, "key")
	raw, err := json.Marshal(token.All())
	if err != nil {
		t.Fatal(err)
	}
	every := `{"scopes":` + string(raw) + `}`
	engine := m.must(t, "POST", "/v1/engines/register", `{"display_name":"of the table"}`, "engine_id")
	engineToken := m.must(t, "POST", "/v1/engines/"+engine+"/tokens/issue", every, "token")
	narrow, _ := m.bearer(t, m.app.Owner, token.Scopes{Rooms: []string{token.Any}, Actions: []string{policy.MessageSend},
		Data: token.Data{Read: []string{"message"}, Write: []string{"message"}}})
	return []credential{
		{"none", http.Header{}}, bearer("garbage", "garbage"), bearer("revoked", revoked), bearer("expired", expired.Bearer), bearer("foreign",
			m.keys["other"]),
		{"narrow", http.Header{"Authorization": {narrow}}},
		bearer("viewer", m.keys["viewer"]),
		{"engine", http.Header{"X-Engine-Id": {engine}, "X-Engine-Token": {engineToken}}}, bearer("service", worker), bearer("agent",
			m.keys["agent"]),
		bearer("member", m.keys["member"]), bearer("operator", m.key(t, "operator-ole")), bearer("admin", m.key(t, "admin-ada")),
		bearer("overlord", m.keys[""]),
	}
}

// cell asks an operation with a credential, first with a body that is not valid where it takes JSON, and says what comes of it, and the
// code of a refusal.
func (m *matrix) cell(t *testing.T, e endpoint, c credential, json bool) (says, code string) {
	t.Helper()
	path, fits := m.request(t, e)
	var invalid answered
	if json {
		invalid = m.send(t, e, c.header, path, sent{body: `{"no_such_field":[1]}`})
	}
	got := m.send(t, e, c.header, path, fits)
	if got.status >= 500 || invalid.status >= 500 {
		t.Errorf("%s with %s: %d %s, %d %s", e.id, c.name, got.status, got.raw, invalid.status, invalid.raw)
	}
	if slices.Contains(untrusted, c.name) {
		for name, thing := range m.things {
			if len(thing) > 20 && name != "room_id" && !strings.Contains(path+fits.body, thing) && strings.Contains(got.raw+invalid.raw, thing) {
				t.Errorf("%s tells %s of %s", e.id, c.name, thing)
			}
		}
	}
	cell := e.id + " " + c.name
	switch refused := got.status == http.StatusUnauthorized || got.status == http.StatusForbidden; {
	case !json || e.public:
	case refused && bodyDecides[e.id] != "" && invalid.status == http.StatusBadRequest:
		m.excused[e.id] = true
	case refused && (invalid.status != got.status || invalid.code != got.code):
		t.Errorf("%s: a body that fits is refused with %d %s, and one that is not valid with %d %s", cell, got.status, got.code, invalid.status,
			invalid.code)
	case !refused && invalid.status != http.StatusBadRequest && invalid.status != got.status:
		t.Errorf("%s: a body that is not valid: %d %s", cell, invalid.status, invalid.raw)
	}
	initials := ""
	for word := range strings.SplitSeq(got.code, "_") {
		initials += word[:min(1, len(word))]
	}
	switch got.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return fmt.Sprintf("%d %s", got.status, initials), fmt.Sprintf("%d %s = %s", got.status, initials, got.code)
	}
	if got.status < 300 {
		return "ok", ""
	}
	t.Errorf("%s: %d %s: neither done nor refused; send what fits", cell, got.status, got.raw)
	return fmt.Sprint(got.status), ""
}

// untrusted are the columns that may do nothing in the workspace. They change nothing here, so that they share a daemon.
var untrusted = []string{"none", "garbage", "revoked", "expired", "foreign", "narrow"}

// order is when an operation is asked: what a claim rests on first, for a claim ends by itself; what ends things last.
func (m *matrix) order(e endpoint) int {
	switch e.id {
	case "put-kill-switch":
		return 4
	case "delete-space":
		return 3
	case "delete-file", "delete-context", "revoke-key", "revoke-standing-approval", "read-artifact", "logout":
		return 2
	}
	if claimToken.MatchString(m.samples[e.id].body) {
		return 0
	}
	return 1
}

// prepared is what the table needs beside what everybody tries: things that are there to be shown and ended.
func (m *matrix) prepared(t *testing.T, c credential) {
	t.Helper()
	m.samples["prove-consistency"] = sent{path: "/v1/audit/proofs/consistency?old_size=1"}
	m.samples["prove-inclusion"] = sent{path: "/v1/audit/proofs/inclusion?seq=1"}
	m.samples["search"] = sent{path: "/v1/search?q=weather"}
	m.samples["put-read-cursor"] = sent{path: "/v1/rooms/" + m.things["room_id"] + "/read-cursor", body: `{"stream_seq":1}`}
	m.samples["get-evidence"] = sent{path: strings.TrimSuffix(m.samples["finalize-evidence"].path, "/finalize")}
	m.must(t, "POST", m.samples["finalize-evidence"].path, "", "run_id")
	m.must(t, "PUT", "/v1/spaces/"+m.things["space_id"]+"/files/.agentbox/contexts/c.py", "a context", "path")
	m.must(t, "PUT", "/v1/spaces/"+m.things["space_id"]+"/files/f", "a file", "path")
	m.listen(t, m.things["space_id"], m.things["port"])
	asked := m.daemon.request(t, "agent", mail)
	m.decide(t, asked, `{"decision":"approve","scope":"workspace","uses":2,"expires_at":"`+
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	var standing struct {
		Approvals []policy.Standing `json:"standing_approvals"`
	}
	m.succeed(t, "GET", "/v1/standing-approvals", "", &standing)
	m.things["standing_id"] = string(standing.Approvals[0].ID)
	if !slices.Contains(untrusted, c.name) && c.name != "engine" { // everybody ends a key of their own
		own := m.send(t, endpoint{id: "issue-key", method: http.MethodPost}, c.header, "/v1/keys", sent{body: `{"name":"another"}`})
		var key struct {
			ID string `json:"key_id"`
		}
		if err := json.Unmarshal([]byte(own.raw), &key); err != nil || key.ID == "" {
			t.Fatalf("a key of %s: %d %s", c.name, own.status, own.raw)
		}
		m.samples["revoke-key"] = sent{path: "/v1/keys/" + key.ID}
	}
}

// listen has a program serve the files of a space on a port, and returns when it listens.
func (d *daemon) listen(t *testing.T, space, port string) {
	t.Helper()
	in := "/v1/spaces/" + space
	d.must(t, "POST", in+"/runs", `{"protocolVersion":"1.0","background":true,"operations":[`+
		`{"type":"shell","command":"python3 -m http.server --bind 127.0.0.1 `+port+`"}]}`, "")
	for end := time.Now().Add(wall.Patience); ; {
		_, raw := d.ask(t, "", "GET", in+"/ports", "")
		if strings.Contains(string(raw), `"listening":true`) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("nothing listens: %s", raw)
		}
	}
}

// TestTableOfRights compares what each credential may with the one written table. An operation without a row fails, and so does a row
// without one.
func TestTableOfRights(t *testing.T) {
	takesJSON, all := documentedExamples(t), endpoints(t)
	legend, cells, names := map[string]bool{}, map[string][]string{}, []string{}
	excused := map[string]bool{}
	column := func(m *matrix, c credential) {
		m.excused = excused
		names = append(names, c.name)
		ordered := slices.Clone(all)
		slices.SortStableFunc(ordered, func(a, b endpoint) int { return cmp.Or(m.order(a)-m.order(b), strings.Compare(a.id, b.id)) })
		for _, e := range ordered {
			_, isJSON := takesJSON[e.id]
			says, code := m.cell(t, e, c, isJSON)
			cells[e.id] = append(cells[e.id], says)
			if code != "" {
				legend[code] = true
			}
		}
	}
	shared := populated(t)
	for n, c := range shared.credentials(t) {
		m := shared
		if !slices.Contains(untrusted, c.name) {
			m = populated(t)
			c = m.credentials(t)[n]
		}
		if n == 0 || m != shared {
			m.prepared(t, c)
		}
		column(m, c)
	}
	head := rightsHead
	for _, operation := range slices.Sorted(maps.Keys(bodyDecides)) {
		head += fmt.Sprintf("#   %s: %s\n", operation, bodyDecides[operation])
	}
	head += "# The codes:\n"
	for _, code := range slices.Sorted(maps.Keys(legend)) {
		head += "#   " + code + "\n"
	}
	line := func(operation string, cells []string) string {
		row := fmt.Sprintf("%-25s", operation)
		for _, says := range cells {
			row += fmt.Sprintf(" %-9s", says)
		}
		return strings.TrimRight(row, " ") + "\n"
	}
	got := head + "\n" + line("operation", names)
	for _, operation := range slices.Sorted(maps.Keys(cells)) {
		got += line(operation, cells[operation])
	}
	for operation := range bodyDecides {
		if !excused[operation] {
			t.Errorf("%q is excused, and nothing needs it", operation)
		}
	}
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
