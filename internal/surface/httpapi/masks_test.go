package httpapi_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/policy"
)

// TestMasksAreNoValues refuses masks where a value is meant, and names of variables that are secrets: with 400, and with what helps.
// The mask that a space shows keeps its value.
func TestMasksAreNoValues(t *testing.T) {
	d := startDaemon(t)
	space := d.must(t, "POST", "/v1/spaces", `{"env":{"SERVICE_KEY":"s3cr3t-value","MODE":"a"}}`, "id")
	var shown struct {
		Env map[string]string `json:"env"`
	}
	d.succeed(t, "GET", "/v1/spaces/"+space, "", &shown)
	own := shown.Env["SERVICE_KEY"]
	if !policy.IsMask(own) || shown.Env["MODE"] != "a" {
		t.Fatalf("the space shows %v", shown.Env)
	}
	other := policy.Mask(make([]byte, 32))
	name := "ghp" + "_" + strings.Repeat("aB3dE6gH9k", 3) + "aB3dE6"
	for what, c := range map[string]struct{ method, path, body, says string }{
		"a mask in a new space":    {"POST", "/v1/spaces", `{"env":{"SERVICE_KEY":"` + own + `"}}`, "send the value itself"},
		"another mask":             {"PATCH", "/v1/spaces/" + space, `{"env":{"SERVICE_KEY":"` + other + `"}}`, "send the value itself"},
		"the mask of another name": {"PATCH", "/v1/spaces/" + space, `{"env":{"MODE":"` + own + `"}}`, "send the value itself"},
		"a mask in a fork": {"POST", "/v1/spaces/" + space + "/fork", `{"env":{"SERVICE_KEY":"` + own + `"}}`,
			"send the value itself"},
		"a secret name":               {"POST", "/v1/spaces", `{"env":{"` + name + `":"x"}}`, "looks like a secret"},
		"a secret name in a change":   {"PATCH", "/v1/spaces/" + space, `{"env":{"` + name + `":"x"}}`, "looks like a secret"},
		"a secret name in a fork":     {"POST", "/v1/spaces/" + space + "/fork", `{"env":{"` + name + `":"x"}}`, "looks like a secret"},
		"a name that is not a name":   {"POST", "/v1/spaces", `{"env":{"A B":"x"}}`, "letters, digits"},
		"a name with a digit ahead":   {"PATCH", "/v1/spaces/" + space, `{"env":{"1A":"x"}}`, "letters, digits"},
		"a mask as an operation's":    {"POST", "/v1/spaces/" + space + "/runs", masked(own), ""},
		"another mask in a operation": {"POST", "/v1/spaces/" + space + "/runs", masked(other), ""},
	} {
		status, raw := d.ask(t, "", c.method, c.path, c.body)
		if strings.Contains(string(raw), name) {
			t.Errorf("%s: the answer has the name: %s", what, raw)
		}
		if c.says == "" { // one malformed operation does not refuse a message: it has an error as its result, and nothing of it runs
			var answer struct {
				Events []struct{ Type, ReasonCode, Message string }
			}
			if err := json.Unmarshal(raw, &answer); err != nil || len(answer.Events) != 1 || answer.Events[0].ReasonCode != "operation_invalid" ||
				!strings.Contains(answer.Events[0].Message, "is the mask of a secret: leave it out") {
				t.Errorf("%s: got %d %s, %v", what, status, raw, err)
			}
			continue
		}
		var problem struct{ Error, Detail string }
		if err := json.Unmarshal(raw, &problem); err != nil || status != 400 || problem.Error != "validation_failed" ||
			!strings.Contains(problem.Detail, c.says) {
			t.Errorf("%s: got %d %s, want 400 with %q", what, status, raw, c.says)
		}
	}
	d.succeed(t, "PATCH", "/v1/spaces/"+space, `{"env":{"SERVICE_KEY":"`+own+`","MODE":"b"}}`, &shown)
	if shown.Env["SERVICE_KEY"] != own || shown.Env["MODE"] != "b" {
		t.Errorf("after its own mask was sent back: %v", shown.Env)
	}
}

func masked(mask string) string {
	return `{"protocolVersion":"1.0","operations":[{"type":"shell","id":"a","command":"true","env":{"SERVICE_KEY":"` + mask + `"}}]}`
}
