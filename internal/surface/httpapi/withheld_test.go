package httpapi_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
)

// secretText is what withheld files hold, and nothing else does.
const secretText = "hunter2-5c1f0"

// populated adds a principal for each role and kind, with a key under its name.
func (d *daemon) populated(t *testing.T) {
	t.Helper()
	d.populate(t)
	ctx, ws, owner := t.Context(), id.DefaultWorkspace, event.Origin{Principal: d.app.Owner}
	for _, role := range []principal.Role{principal.Operator, principal.Admin} {
		p, err := d.app.Identity.AddPerson(ctx, owner, ws, string(role), role)
		if err == nil {
			d.keys[string(role)], _, err = d.app.Identity.IssueKey(ctx, owner, ws, p, string(role))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	service, err := d.app.Identity.AddService(ctx, owner, ws, "builder")
	if err == nil {
		d.keys["service"], _, err = d.app.Identity.IssueKey(ctx, owner, ws, service.ID, "builder")
	}
	if err != nil {
		t.Fatal(err)
	}
	agent, err := d.app.Identity.Agent(ctx, owner, ws, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	all := token.Scopes{Rooms: []string{token.Any}, Tools: []string{token.Any}, Actions: []string{token.Any},
		Data: token.Data{Read: []string{token.Any}, Write: []string{token.Any}}}
	d.granted(t, "token", agent, all, "", d.app.Owner)
	person, err := d.app.Identity.AddPerson(ctx, owner, ws, "under a token", principal.Member)
	if err != nil {
		t.Fatal(err)
	}
	d.granted(t, "person's token", person, all, "", d.app.Owner)
}

// unzipped returns the names in a zip file, and whether one of them holds the secret.
func unzipped(t *testing.T, raw []byte) (names []string, holds bool) {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		t.Fatalf("%v: %.100s", err, raw)
	}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			t.Fatal(err)
		}
		names, holds = append(names, f.Name), holds || strings.Contains(string(text), secretText)
	}
	return names, holds
}

// TestWhoSeesWhatIsWithheld asks for withheld files, for their names and for archives of them as each role and kind: persons see them,
// and nobody else.
func TestWhoSeesWhatIsWithheld(t *testing.T) {
	d := startDaemon(t)
	d.populated(t)
	in := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	d.must(t, "PUT", in+"/files/deep/.env", secretText, "")
	d.must(t, "PUT", in+"/files/deep/notes.txt", "plain", "")
	for who, sees := range map[string]bool{
		"": true, "admin": true, "operator": true, "member": true, "viewer": true, "person's token": true, "agent": false, "service": false,
		"token": false,
	} {
		for _, path := range []string{"/files?recursive=true", "/files?path=deep"} {
			status, raw := d.ask(t, who, "GET", in+path, "")
			if status != 200 || strings.Contains(string(raw), `.env"`) != sees || !strings.Contains(string(raw), "notes.txt") {
				t.Errorf("%q lists %s: %d %s, want the name of the withheld file: %t", who, path, status, raw, sees)
			}
		}
		for _, path := range []string{"/files/deep/.env", "/files/deep/.env?withheld=true"} {
			status, raw := d.ask(t, who, "GET", in+path, "")
			if (status == 200) != sees || strings.Contains(string(raw), secretText) != sees || !sees && code(raw) != "file_withheld" {
				t.Errorf("%q reads %s: %d %s", who, path, status, raw)
			}
		}
		status, raw := d.ask(t, who, "GET", in+"/files/archive?withheld=true", "")
		if (status == 200) != sees {
			t.Errorf("%q asks for the archive of what is withheld: %d %.200s", who, status, raw)
		} else if sees {
			if names, holds := unzipped(t, raw); strings.Join(names, " ") != "deep/ deep/.env" || !holds {
				t.Errorf("%q: the archive of what is withheld has %q", who, names)
			}
		}
		status, raw = d.ask(t, who, "GET", in+"/files/archive", "")
		if status != 200 {
			t.Errorf("%q asks for the archive: %d %.200s", who, status, raw)
		} else if names, holds := unzipped(t, raw); holds || strings.Contains(strings.Join(names, " "), ".env") ||
			!strings.Contains(strings.Join(names, " "), "notes.txt") {
			t.Errorf("%q: the archive has %q", who, names)
		}
	}
	for who, removes := range map[string]bool{"viewer": false, "agent": false, "service": false, "token": false, "person's token": true,
		"member": true, "operator": true, "admin": true, "": true} {
		d.must(t, "PUT", in+"/files/deep/.env", secretText, "")
		status, raw := d.ask(t, who, "DELETE", in+"/files/deep/.env?withheld=true", "")
		left, _ := d.ask(t, "", "GET", in+"/files/deep/.env?withheld=true", "")
		if (status == 204) != removes || (left == 404) != removes {
			t.Errorf("%q removes it: %d %s; it is there with %d", who, status, raw, left)
		}
	}
	// Files that agents and services write are code's own. A file that a person writes then stands beside them.
	d.must(t, "PUT", in+"/files/deep/.env", secretText, "")
	if status, raw := d.ask(t, "agent", "PUT", in+"/files/deep/.env", "code's own"); status != 200 || strings.Contains(string(raw),
		"withheld") {
		t.Errorf("an agent writes one: %d %s", status, raw)
	}
	for path, want := range map[string]string{"/files/deep/.env": "code's own", "/files/deep/.env?withheld=true": secretText} {
		if _, raw := d.ask(t, "", "GET", in+path, ""); string(raw) != want {
			t.Errorf("%s: %s, want %s", path, raw, want)
		}
	}
}

// TestNothingThatLeavesHoldsWithheldFiles exports a run with its files and the workspace. Neither holds a withheld file, whether it was
// withheld from the beginning or by a later policy, for every caller.
func TestNothingThatLeavesHoldsWithheldFiles(t *testing.T) {
	d := startDaemon(t)
	d.populated(t)
	in := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "id")
	d.must(t, "PUT", in+"/files/.env", secretText, "")
	d.must(t, "PUT", in+"/files/notes.txt", "plain", "")
	run := d.must(t, "POST", in+"/runs",
		`{"protocolVersion":"1.0","wait_seconds":20,"operations":[{"type":"shell","command":"cat notes.txt; cat .env"}]}`, "runId")
	carried := func(who, run string) string {
		t.Helper()
		status, raw := d.ask(t, who, "GET", "/v1/runs/"+run+"/transcript?files=true", "")
		if status != 200 {
			t.Fatalf("%q: %d %s", who, status, raw)
		}
		return everyText(t, raw)
	}
	for _, who := range []string{"", "member", "agent"} {
		if got := carried(who, run); strings.Contains(got, secretText) || !strings.Contains(got, "plain") {
			t.Errorf("the transcript for %q: %.2000s", who, got)
		}
	}
	// An older policy let code see it, so that a snapshot has it. That is shown to persons, and to nobody else any more.
	open := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{"policy":"permissive"}`, "id")
	d.must(t, "PUT", open+"/files/.env", secretText, "")
	old := d.must(t, "POST", open+"/runs", `{"protocolVersion":"1.0","wait_seconds":20,"operations":[{"type":"shell","command":"true"}]}`,
		"runId")
	if got := carried("agent", old); !strings.Contains(got, secretText) {
		t.Errorf("before the policy changes an agent is carried all: %.2000s", got)
	}
	d.must(t, "POST", open+"/policy", `{"policy":"standard"}`, "id")
	for who, holds := range map[string]bool{"": true, "viewer": true, "agent": false, "service": false, "token": false} {
		if got := carried(who, old); strings.Contains(got, secretText) != holds {
			t.Errorf("the snapshot of before for %q holds it: %t, want %t", who, !holds, holds)
		}
	}

	target := filepath.Join(t.TempDir(), "workspace")
	_, err := app.ExportWorkspace(t.Context(), d.app.Config, id.DefaultWorkspace, target)
	file, failed := os.ReadFile(target)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	if got := everyText(t, file); strings.Contains(got, secretText) || !strings.Contains(got, run) {
		t.Errorf("the workspace's file holds it: %t", strings.Contains(got, secretText))
	}
}

// everyText returns all that is in something, with what lies packed or encoded in it.
func everyText(t *testing.T, raw []byte) string {
	t.Helper()
	var all strings.Builder
	var open func(raw []byte, depth int)
	open = func(raw []byte, depth int) {
		all.Write(raw)
		if depth > 6 {
			return
		}
		if z, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
			inner, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			open(inner, depth+1)
			return
		}
		if len(raw) > 262 && string(raw[257:262]) == "ustar" {
			for r := tar.NewReader(bytes.NewReader(raw)); ; {
				h, err := r.Next()
				if errors.Is(err, io.EOF) {
					return
				}
				inner, failed := io.ReadAll(r)
				if err = errors.Join(err, failed); err != nil {
					t.Fatal(err)
				}
				all.WriteString(h.Name + "\n")
				open(inner, depth+1)
			}
		}
		for _, text := range strings.FieldsFunc(string(raw), func(r rune) bool { return r == '"' || r == '\n' }) {
			if len(text) >= 16 {
				if inner, err := base64.StdEncoding.DecodeString(text); err == nil {
					open(inner, depth+1)
				}
			}
		}
	}
	open(raw, 0)
	return all.String()
}
