package event_test

import (
	"testing"

	"agentbox/internal/domain/event"
)

// TestTheCorrelationOfABatch is that of its first event.
func TestTheCorrelationOfABatch(t *testing.T) {
	if got := (event.Batch{}).Correlation(); got != "" {
		t.Errorf("of an empty batch: got %q", got)
	}
	two := []event.Draft{{Header: event.Header{Correlation: "a"}}, {Header: event.Header{Correlation: "b"}}}
	if got := (event.Batch{Drafts: two}).Correlation(); got != "a" {
		t.Errorf("got %q", got)
	}
}
