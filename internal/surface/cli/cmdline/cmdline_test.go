package cmdline

import (
	"encoding/json"
	"testing"
)

// TestAListSaysItsEntriesFirst keeps the cursor of a list, which is the identifier of an entry, behind the entries.
func TestAListSaysItsEntriesFirst(t *testing.T) {
	for next, want := range map[string]string{"": `{"runs":["a"]}`, "a": `{"runs":["a"],"next_cursor":"a"}`} {
		if got, err := json.Marshal(listed{"runs", []string{"a"}, next}); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
}
