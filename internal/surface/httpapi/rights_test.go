package httpapi_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
)

// populate gives a daemon a viewer, a member and an agent; their keys are those of the same names.
func (d *daemon) populate(t *testing.T) {
	t.Helper()
	ctx, ws := t.Context(), id.DefaultWorkspace
	origin := event.Origin{Principal: d.app.Owner}
	who := map[string]id.Principal{}
	var err error
	for _, role := range []principal.Role{principal.Viewer, principal.Member} {
		if who[string(role)], err = d.app.Identity.AddPerson(ctx, origin, ws, string(role), role); err != nil {
			t.Fatal(err)
		}
	}
	if who["agent"], err = d.app.Identity.Agent(ctx, origin, ws, "stranger"); err != nil {
		t.Fatal(err)
	}
	for name, p := range who {
		if d.keys[name], _, err = d.app.Identity.IssueKey(ctx, origin, ws, p, name); err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends a request with somebody's key and returns the status and the body.
func (d *daemon) ask(t *testing.T, who, method, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[who])
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	got, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, got
}

// must is ask for what has to succeed; it returns a text field of the answer.
func (d *daemon) must(t *testing.T, method, path, body, field string) string {
	t.Helper()
	status, raw := d.ask(t, "", method, path, body)
	var answer map[string]any
	if err := json.Unmarshal(raw, &answer); err != nil || status >= 300 {
		t.Fatalf("%s %s: %d %s", method, path, status, raw)
	}
	text, _ := answer[field].(string)
	return text
}

// code returns the error code of a problem document.
func code(raw []byte) string {
	var p struct {
		Error string `json:"error"`
	}
	_ = json.Unmarshal(raw, &p)
	return p.Error
}

// kept lists the contents that the daemon keeps.
func (d *daemon) kept(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(filepath.Join(d.app.Config.DataDir, "blobs"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// refusals returns the actions that the log says were refused, or would have been.
func (d *daemon) refusals(t *testing.T) []string {
	t.Helper()
	events, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{policy.DeniedType}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, e := range events {
		refused, err := event.Decode[policy.Refused](e)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, refused.Action)
	}
	return found
}

func TestRunsEndForMembersAndTheirOwnAgentOnly(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	run := space + "/runs/" + d.must(t, "POST", space+"/runs",
		`{"protocolVersion":"1.0","agent":{"name":"own"},"operations":[{"type":"shell","command":"mkdir d; rm -r d"}]}`, "runId")
	for _, who := range []string{"viewer", "agent"} {
		if status, raw := d.ask(t, who, "POST", run+"/cancel", `{}`); status != http.StatusForbidden || code(raw) != policy.ReasonRoleTooLow {
			t.Errorf("%s ended the run: %d %s", who, status, raw)
		}
	}
	own, err := d.app.Identity.Agent(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, "own")
	if err != nil {
		t.Fatal(err)
	}
	if d.keys["own"], _, err = d.app.Identity.IssueKey(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, own,
		"own"); err != nil {
		t.Fatal(err)
	}
	if status, raw := d.ask(t, "own", "POST", run+"/cancel", `{}`); status != http.StatusAccepted {
		t.Errorf("the run's own agent could not end it: %d %s", status, raw)
	}
	if status, raw := d.ask(t, "member", "POST", run+"/cancel", `{}`); status != http.StatusConflict {
		t.Errorf("a member got %d %s, want run_already_ended", status, raw)
	}
}

func TestArchivesLeaveOutWhatMayNotBeRead(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces",
		`{"policy_overrides":{"deny":{"paths":["*.env","*.key",".git/**"]},"withhold":{"paths":[]}}}`, "id")
	d.must(t, "POST", space+"/runs", `{"protocolVersion":"1.0","operations":[
		{"type":"createFile","path":"make.py","content":"import os\nos.makedirs('a/.git')\nfor n in ('a/x.txt', 'a/my.key', 'a/.git/config', 'b.env'): open(n, 'w').write('SECRET')"},
		{"type":"shell","command":"python3 make.py"}]}`, "runId")
	for _, who := range []string{"", "viewer", "agent"} {
		for folder, want := range map[string][]string{"": {"a/", "a/x.txt", "make.py"}, "?path=a": {"x.txt"}} {
			status, raw := d.ask(t, who, "GET", space+"/files/archive"+folder, "")
			archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
			if err != nil {
				t.Fatalf("%d %.100s: %v", status, raw, err)
			}
			var names []string
			for _, f := range archive.File {
				names = append(names, f.Name)
			}
			if !slices.Equal(names, want) {
				t.Errorf("%q got %v of %q, want %v", who, names, folder, want)
			}
		}
		if status, _ := d.ask(t, who, "GET", space+"/files/a/my.key", ""); status != http.StatusForbidden {
			t.Errorf("%q read a/my.key: %d", who, status)
		}
	}
}

// Threat 33: a principal without the right to change anything cannot fill a disk either.
func TestThreat33RefusedContentIsNotKept(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces",
		`{"policy_overrides":{"deny":{"paths":["*.env","*.key",".git/**"]},"withhold":{"paths":[]}}}`, "id")
	d.must(t, "POST", space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"known"}]}`, "runId")
	kept := d.kept(t)
	for _, c := range []struct{ who, method, path, body string }{
		{"viewer", "PUT", space + "/files/a.txt", "content of a viewer"},
		{"", "PUT", space + "/files/a.key", "content that policy refuses"},
		{"viewer", "POST", space + "/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"of a viewer"}]}`},
		{"agent", "POST", space + "/runs",
			`{"protocolVersion":"1.0","agent":{"name":"made up"},"operations":[{"type":"message","content":"of an agent"}]}`},
		{"viewer", "POST", "/v1/spaces", `{"policy_overrides":{"limits":{"command_ms":4321}}}`},
	} {
		if status, raw := d.ask(t, c.who, c.method, c.path, c.body); status != http.StatusForbidden {
			t.Errorf("%s of %q: %d %s, want 403", c.path, c.who, status, raw)
		}
	}
	if now := d.kept(t); !slices.Equal(now, kept) {
		t.Errorf("%d contents are kept, want the %d of before", len(now), len(kept))
	}
	events, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{principal.RegisteredType,
		policy.BundlePinnedType}, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if bytes.Contains(e.Data, []byte("made up")) || bytes.Contains(e.Data, []byte("4321")) {
			t.Errorf("a refused request left %s", e.Type)
		}
	}
}

func TestShadowTriesPolicyAndNotTheHousesOrder(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.Shadow = true })
	d.populate(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	d.must(t, "PUT", space+"/files/.git/config", "secret", "path")
	d.must(t, "POST", space+"/runs", `{"protocolVersion":"1.0","operations":[{"type":"readFile","path":".git/config"}]}`, "runId")
	if status, raw := d.ask(t, "", "GET", space+"/files/.git/config", ""); status != http.StatusOK || string(raw) != "secret" {
		t.Errorf("shadow let nothing pass: %d %s", status, raw)
	}
	want := []string{policy.FileCreate, policy.FileRead, policy.FileRead}
	if got := d.refusals(t); !slices.Equal(got, want) {
		t.Errorf("the log says that %v would have been refused, want %v", got, want)
	}
	for _, c := range []struct{ who, method, path, body string }{
		{"viewer", "PUT", space + "/files/b.txt", "content"},
		{"viewer", "DELETE", space, ""},
		{"agent", "DELETE", space, ""},
		{"agent", "POST", "/v1/spaces", `{}`},
		{"viewer", "POST", space + "/runs", `{"protocolVersion":"1.0","operations":[{"type":"message","content":"x"}]}`},
	} {
		if status, raw := d.ask(t, c.who, c.method, c.path, c.body); status != http.StatusForbidden {
			t.Errorf("shadow let %s %s %s pass: %d %s", c.who, c.method, c.path, status, raw)
		}
	}
}

func TestUploadsThatBreakOffAreTheSendersFault(t *testing.T) {
	d := startDaemon(t)
	space := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	for name, body := range map[string]string{
		"a chunk without a length": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nZZ\r\n",
		"less than it says":        "Content-Length: 100\r\n\r\nhello",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(d.address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(conn, "PUT "+space+"/files/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer "+
			d.keys[""]+"\r\n"+body)
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.HasPrefix(raw, []byte("HTTP/1.1 400 ")) || !bytes.Contains(raw, []byte("body_unreadable")) {
			t.Errorf("%s: %s, want 400 body_unreadable", name, raw)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	if status, _ := d.ask(t, "", "GET", space+"/files/a", ""); status != http.StatusNotFound {
		t.Errorf("a file that did not arrive is there: %d", status)
	}
}
