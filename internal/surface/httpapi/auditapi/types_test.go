package auditapi

import (
	"errors"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
)

// TestAnUnknownEventTypeNamesWhatMayBeMeant asks for types that do not exist. The suggestion is short: the types that are like it, or how
// a type is written.
func TestAnUnknownEventTypeNamesWhatMayBeMeant(t *testing.T) {
	for typ, want := range map[string]string{
		"run.completd": "run.completed",
		"run.foo":      "Near it are run.created, ",
		"foo":          "The nouns are action, action_type, agent, approval, ",
	} {
		refused, ok := errors.AsType[*fault.Error](knownType(typ))
		if !ok || refused.Code != "unknown_event_type" || !strings.Contains(refused.Suggestion, want) || len(refused.Suggestion) > 600 {
			t.Errorf("%s: got %v, want %q in a short suggestion", typ, refused, want)
		}
	}
	if err := knownType("run.created"); err != nil {
		t.Error(err)
	}
}
