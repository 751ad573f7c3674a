package workspace_test

import (
	"encoding/json"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/workspace"
)

func TestAnImportFromBeginningToEnd(t *testing.T) {
	var doc workspace.Import
	then := func(typ string, data any) {
		t.Helper()
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		e := event.Event{Header: event.Header{ID: "e", Type: typ, EntityType: workspace.EntityType, EntityID: "ws_a"}, Data: raw}
		if !workspace.Touches(e) {
			t.Errorf("%s touches nothing", typ)
		}
		if doc, err = workspace.Evolve(doc, e); err != nil {
			t.Fatal(err)
		}
	}
	begun := workspace.ImportBegun{Workspace: "ws_a", Events: 3, Root: "r"}
	then(workspace.EventImportBegun, begun)
	if doc.Status != workspace.Begun || doc.ImportBegun != begun || doc.By != "e" {
		t.Errorf("begun: %+v", doc)
	}
	then(workspace.EventImportFailed, workspace.ImportEnded{Workspace: "ws_a", Error: "log_broken"})
	if doc.Status != workspace.Failed || doc.Error != "log_broken" {
		t.Errorf("failed: %+v", doc)
	}
	then(workspace.EventImportBegun, begun)
	if doc.Status != workspace.Begun || doc.Error != "" {
		t.Errorf("begun again: %+v", doc)
	}
	then(workspace.EventImported, workspace.ImportEnded{Workspace: "ws_a", Spaces: 2})
	if doc.Status != workspace.Imported || doc.Spaces != 2 || doc.Events != 3 {
		t.Errorf("imported: %+v", doc)
	}
	if workspace.Touches(event.Event{Header: event.Header{Type: "content.swept", EntityType: workspace.EntityType}}) {
		t.Error("the event of another thing touches it")
	}
}
