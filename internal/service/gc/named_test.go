package gc_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/run"
	"agentbox/internal/service/redaction"
	"agentbox/internal/testkit"
)

// TestNamesAreRemembered redacts runs that name the same content, some of them made when others had been redacted already, with names
// that are remembered, that are as many as may be, and that are more: the answers are the same.
func TestNamesAreRemembered(t *testing.T) {
	for _, remember := range []int{0, 1, 3, 4, 5, 1000} { // there are four names at the last
		t.Run(fmt.Sprint(remember), func(t *testing.T) {
			s := open(t, testkit.Options{})
			s.GC.Remember = remember
			in := s.Space().ID
			same := func() run.Run {
				t.Helper()
				return s.Ended(s.Start(in, stored(`{"type":"message","id":"a","content":"the same"}`)).ID)
			}
			named := func(r run.Run) bool {
				t.Helper()
				remains := redact(t, s, redaction.Request{Run: r.ID})
				for _, shared := range remains.Shared {
					if strings.HasPrefix(shared, r.Input.Digest.String()) {
						return true
					}
				}
				return false
			}
			first, second := same(), same()
			other := s.Ended(s.Start(in, stored(`{"type":"message","id":"a","content":"something else"}`)).ID)
			if !named(first) {
				t.Error("what the second names is forgotten with the first")
			}
			third := same()
			if !named(second) {
				t.Error("what the third names, which is new, is forgotten with the second")
			}
			if named(third) {
				t.Error("what nobody names any more is kept")
			}
			if _, err := s.Blobs.Open(t.Context(), third.Input.Digest); err == nil {
				t.Error("what was forgotten can be read")
			}
			if c, err := s.Blobs.Open(t.Context(), other.Input.Digest); err != nil {
				t.Error(err)
			} else if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
