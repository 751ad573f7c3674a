package errand_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/id"
)

const (
	mission = `{"agent_run":1,"blueprint":"b","blueprint_version":1,"space_id":"spc_1","task":"t"}`
	order   = `{"protocolVersion":"1.0","space_id":"spc_2","operations":[{}]}`
)

// TestWhatIsAMission holds each required field of a mission at its edge. An unknown field is refused.
func TestWhatIsAMission(t *testing.T) {
	m, ok := errand.ReadMission(json.RawMessage(mission))
	if !ok || !reflect.DeepEqual(m, errand.Mission{Version: 1, Blueprint: "b", Edition: 1, Space: "spc_1", Task: "t"}) {
		t.Errorf("got %+v, %t", m, ok)
	}
	for _, input := range []string{
		"", "{", `[]`,
		`{"agent_run":2,"blueprint":"b","blueprint_version":1,"space_id":"spc_1","task":"t"}`,
		`{"agent_run":1,"blueprint":"","blueprint_version":1,"space_id":"spc_1","task":"t"}`,
		`{"agent_run":1,"blueprint":"b","blueprint_version":0,"space_id":"spc_1","task":"t"}`,
		`{"agent_run":1,"blueprint":"b","blueprint_version":1,"space_id":"","task":"t"}`,
		`{"agent_run":1,"blueprint":"b","blueprint_version":1,"space_id":"spc_1","task":""}`,
		`{"agent_run":1,"blueprint":"b","blueprint_version":1,"space_id":"spc_1","task":"t","other":1}`,
		`{"agent_run":1,"blueprint":"b","blueprint_version":1,"space_id":"spc_1","task":"t","artifacts":7}`,
	} {
		if m, ok := errand.ReadMission(json.RawMessage(input)); ok || !reflect.DeepEqual(m, errand.Mission{}) {
			t.Errorf("%s: got %+v, %t", input, m, ok)
		}
	}
}

// TestTheKindAndTheSpaceOfAnInput tells orders, missions and the inputs of others apart.
func TestTheKindAndTheSpaceOfAnInput(t *testing.T) {
	for input, want := range map[string]struct {
		kind  string
		space id.Space
	}{mission: {errand.Agent, "spc_1"}, order: {errand.Operations, "spc_2"}, `{"space_id":"spc_3"}`: {}} {
		if got := errand.KindOf(json.RawMessage(input)); got != want.kind {
			t.Errorf("%s: got the kind %q", input, got)
		}
		if got, ok := errand.SpaceOf(json.RawMessage(input)); got != want.space || ok != (want.space != "") {
			t.Errorf("%s: got the space %q, %t", input, got, ok)
		}
	}
}

// TestTheShorterLimitOfACallHolds compares the limit of a call with the rest of its run's time.
func TestTheShorterLimitOfACallHolds(t *testing.T) {
	for _, l := range []errand.Left{{Call: time.Second, Run: time.Minute}, {Call: time.Minute, Run: time.Second}} {
		if got := l.Most(); got != time.Second {
			t.Errorf("%+v: got %s", l, got)
		}
	}
}
