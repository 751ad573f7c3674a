package errand_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
)

// Only an order of protocol 1.0 that names its space and has operations is one.
func TestWhatIsAnOrder(t *testing.T) {
	for input, want := range map[string]bool{
		`{"protocolVersion":"1.0","space_id":"spc_1","operations":[{}],"continue_on_error":true}`: true,
		`{"protocolVersion":"2.0","space_id":"spc_1","operations":[{}]}`:                          false,
		`{"protocolVersion":"1.0","operations":[{}]}`:                                             false,
		`{"protocolVersion":"1.0","space_id":"spc_1","operations":[]}`:                            false, `{`: false,
		`{"protocolVersion":"1.0","space_id":"spc_1","operations":[{}],"continue_on_error":7}`: false,
	} {
		got, ok := errand.ReadOrder(json.RawMessage(input))
		if ok != want || !ok && !reflect.DeepEqual(got, errand.Order{}) || ok &&
			(got.Space != "spc_1" || len(got.Operations) != 1 || !got.Continue) {
			t.Errorf("%s: got %+v, %t", input, got, ok)
		}
	}
}

// The record of an operation is the data of its step and of its last call.
func TestWhatWasRecordedOfAnOperation(t *testing.T) {
	input := json.RawMessage(`{"index":4}`)
	for name, c := range map[string]struct {
		call errand.Call
		want errand.Progress
	}{
		"no call":      {errand.Call{}, errand.Progress{}},
		"an open call": {errand.Call{ID: "tc_1", Status: "running", Child: "run_1"}, errand.Progress{Call: "tc_1"}},
		"a success": {
			errand.Call{ID: "tc_1", Status: "succeeded", OK: true, Child: "run_1", Output: json.RawMessage(`{"status":"completed"}`),
				Error: json.RawMessage(`{"status":"other"}`)},
			errand.Progress{Call: "tc_1", Ended: true, OK: true, Outcome: errand.Outcome{Child: "run_1", Status: "completed", OK: true}},
		},
		"a failure": {
			errand.Call{ID: "tc_1", Status: "failed", Child: "run_1", Output: json.RawMessage(`{"status":"other"}`),
				Error: json.RawMessage(`{"run_id":"run_2","status":"error","success":true,"reason_code":"c","reason":"r"}`)},
			errand.Progress{Call: "tc_1", Ended: true, Outcome: errand.Outcome{Child: "run_2", Status: "error", Code: "c", Reason: "r"}},
		},
		"an end that was redacted": {errand.Call{ID: "tc_1", Status: "failed", Child: "run_1"},
			errand.Progress{Call: "tc_1", Ended: true, Outcome: errand.Outcome{Child: "run_1", Status: "failed"}}},
	} {
		c.want.Index, c.want.Step = 4, "step_1"
		if got := errand.Recorded("step_1", input, c.call); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
	for input, want := range map[string]int{`{"index":0}`: 0, `{"index":7}`: 7, `{}`: -1, `{`: -1, `{"index":3,"type":7}`: -1} {
		if got := errand.Indexed(json.RawMessage(input)); got != want {
			t.Errorf("%s: got %d, want %d", input, got, want)
		}
	}
}

// A call says which operation it is by its place, its type and its hash.
func TestWhichOperationACallIs(t *testing.T) {
	for _, typ := range []string{"message", "createFile", "readFile", "editFile", "deleteFile", "shell"} {
		operation := json.RawMessage(`{"type":"` + typ + `"}`)
		if got := errand.AtOperation(3, typ, operation); got != (errand.At{Index: 3, Type: typ, Digest: event.DigestOf(operation)}) ||
			run.ToolName(operation) != "space."+typ {
			t.Errorf("%s: got %+v, %s", typ, got, run.ToolName(operation))
		}
	}
	for _, operation := range []string{`{"type":"fly"}`, `{}`, `{`} {
		if got := run.ToolName(json.RawMessage(operation)); got != "space.unknown" {
			t.Errorf("%s: got %s", operation, got)
		}
	}
}
