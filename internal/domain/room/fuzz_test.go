package room_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentbox/internal/domain/room"
)

// FuzzContext reads contexts as they are sent: one that is taken is within the bounds, survives the log, and holds where it is laid over
// another.
func FuzzContext(f *testing.F) {
	f.Add(`{"system_prompt":"be brief","tool_allowlist":["a"],"model_allowlist":[],"memory_summary":""}`, `{"memory_summary":"once"}`)
	f.Add(`{"tool_allowlist":[""]}`, `{}`)
	f.Add(`{"system_prompt":null,"tool_allowlist":["a\n"]}`, `{"model_allowlist":["ä"]}`)
	f.Fuzz(func(t *testing.T, upper, lower string) {
		var c, below room.Context
		if json.Unmarshal([]byte(upper), &c) != nil || json.Unmarshal([]byte(lower), &below) != nil {
			return
		}
		created := room.Created{Title: "a", Context: c}
		if created.Check() != nil {
			return
		}
		if c.Prompt != nil && len(*c.Prompt) > room.MaxPrompt || c.Memory != nil && len(*c.Memory) > room.MaxMemory {
			t.Error("a text is longer than it may be")
		}
		for _, list := range []*[]string{c.Tools, c.Models} {
			if list == nil {
				continue
			}
			if len(*list) > room.MaxAllowed {
				t.Errorf("%d names are allowed", len(*list))
			}
			for _, name := range *list {
				if name == "" || len(name) > room.MaxName || strings.ContainsFunc(name, func(r rune) bool { return r <= 0x20 || r >= 0x7f }) {
					t.Errorf("%q is a name", name)
				}
			}
		}
		raw, err := json.Marshal(created)
		var again room.Created
		if err != nil || json.Unmarshal(raw, &again) != nil || again.Check() != nil {
			t.Fatalf("%s does not survive: %v", raw, err)
		}
		over := c.Over(below)
		if c.Prompt != nil && over.Prompt != c.Prompt || c.Prompt == nil && over.Prompt != below.Prompt || c.Tools != nil &&
			over.Tools != c.Tools || c.Models == nil && over.Models != below.Models {
			t.Errorf("%+v over %+v is %+v", c, below, over)
		}
		if !reflect.DeepEqual(over.Over(below), over) || !reflect.DeepEqual(c.Over(room.Context{}), c) {
			t.Errorf("what holds changes where it is laid over again: %+v", over)
		}
	})
}

// FuzzMessage reads messages and changes of threads as they are sent.
func FuzzMessage(f *testing.F) {
	f.Add(`{"content_md":"hello","lang":"en","labels":["a"],"schema_version":"1"}`)
	f.Add(`{"content_md":" ","labels":["",""]}`)
	f.Add(`{"content_md":"0000","labels":[]}`)
	f.Add("{\"content_md\":\"\\ud800\"}")
	f.Fuzz(func(t *testing.T, sent string) {
		var m room.MessageCreated
		if json.Unmarshal([]byte(sent), &m) != nil || m.Check() != nil {
			return
		}
		if m.Content == "" || len(m.Content) > room.MaxContent || len(m.Labels) > room.MaxLabels {
			t.Errorf("%+v is taken", m)
		}
		raw, err := json.Marshal(m)
		var again room.MessageCreated
		if err != nil || json.Unmarshal(raw, &again) != nil || again.Check() != nil {
			t.Fatalf("%s does not survive: %v", raw, err)
		}
		if twice, err := json.Marshal(again); err != nil || string(twice) != string(raw) {
			t.Errorf("%s comes back as %s, %v", raw, twice, err)
		}
	})
}
