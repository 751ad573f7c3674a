package httpapi_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/transfer"
)

// parcel is the file of a workspace with n events.
func parcel(t *testing.T, ws id.Workspace, n int) string {
	t.Helper()
	s := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, s.Clock, id.NewSource(time.Now, strings.NewReader(string(ws)+strings.Repeat("x", 1<<12))), s.Entropy)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range n {
		read := event.New(space.EventFileRead, event.Origin{Principal: journaltest.User}, ws, "", space.FileRead{Path: "a"})
		if _, err := log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: []event.Draft{read}}); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if _, err := transfer.Write(t.Context(), &b, transfer.Source{Log: log, Contents: memory.NewBlobs()}, ws, time.Time{}, "test"); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestAWorkspaceIsSentToADaemon takes one in beside work, at the limit of its bytes, and refuses who may not send one before it is read.
func TestAWorkspaceIsSentToADaemon(t *testing.T) {
	file := parcel(t, "ws_parcel", 1200)
	c := app.Default(t.TempDir())
	c.MaxWorkspace = int64(len(file))
	d, stop := serveDaemon(t, c)
	defer stop()
	const path, media = "/v1/workspaces/import", "application/gzip"
	if status, _, got := d.keyed(t, "POST", path, media, "", file+"x"); status != 413 || !strings.Contains(got, "workspace_file_too_large") {
		t.Errorf("a byte more than it may have: %d %s", status, got)
	}
	if status, _, got := d.keyed(t, "POST", path, "application/json", "", "{}"); status != 415 || !strings.Contains(got,
		"unsupported_media_type") {
		t.Errorf("JSON: %d %s", status, got)
	}
	if status, _, got := d.keyed(t, "POST", path+"?public_key=x", media, "", file); status != 400 {
		t.Errorf("a key that is none: %d %s", status, got)
	}
	if status, _, got := d.keyed(t, "POST", path, media, "", file[:len(file)/2]); status != 400 || !strings.Contains(got,
		"workspace_file_invalid") {
		t.Errorf("half of it: %d %s", status, got)
	}
	if workspaces, err := d.app.Log.Workspaces(t.Context()); err != nil || slices.Contains(workspaces, "ws_parcel") {
		t.Errorf("refusals left %v, %v", workspaces, err)
	}
	status, _, got := d.keyed(t, "POST", path, media, "k", file)
	if status != 201 || !strings.Contains(got, `"events":1200`) || !strings.Contains(got, `"workspace_id":"ws_parcel"`) {
		t.Fatalf("%d %s", status, got)
	}
	report, documents, err := audit.Audit(t.Context(), d.app.Log, d.app.Log, app.Definitions(), "ws_parcel")
	if err != nil || !report.OK || report.Checked != 1200 || !documents.OK {
		t.Errorf("it is %+v %+v, %v", report, documents, err)
	}
	if err := d.app.Signer.Step(t.Context()); err != nil {
		t.Error(err)
	}
	if signed, err := d.app.Prover.Checkpoint(t.Context(), "ws_parcel"); err != nil || signed.Checkpoint.Size != 1200 {
		t.Errorf("it is signed for here: %+v, %v", signed, err)
	}
	if status, _, got := d.keyed(t, "POST", path, media, "", file); status != 409 || !strings.Contains(got, "workspace_exists") {
		t.Errorf("a second time: %d %s", status, got)
	}
}
