package node_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/node"
)

func TestWhatRemainsOfANode(t *testing.T) {
	raw, err := json.Marshal(node.Removed{Node: "node_1", Reason: "words"})
	if err != nil {
		t.Fatal(err)
	}
	e := event.Event{Header: event.Header{Type: node.EventRemoved}, Data: raw}
	if got, err := node.Remains(e); err != nil || got != (node.Removed{Node: "node_1"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	e.Data = json.RawMessage(`[]`)
	if _, err := node.Remains(e); err == nil {
		t.Error("something remains of broken data")
	}
	e.Type = "x"
	if got, err := node.Remains(e); err != nil || got != nil {
		t.Errorf("of another event: %+v, %v", got, err)
	}
	if err := node.Away("node_1", "which is silent"); fault.CodeOf(err) != "node_unavailable" ||
		!strings.Contains(err.Msg, "node_1, which is silent") || !strings.Contains(err.Suggestion, "node_1") {
		t.Errorf("got %+v", err)
	}
}
