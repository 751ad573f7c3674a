package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
)

// Files that a run has kept are listed and read by readers with the right, when its space is gone.
func TestFilesOfARunOutliveItsSpace(t *testing.T) {
	d := startDaemon(t)
	in := "/v1/spaces/" + d.must(t, "POST", "/v1/spaces", `{}`, "space_id")
	of := d.must(t, "POST", in+"/runs", `{"protocolVersion":"1.0","artifacts":["out/**"],"operations":[
		{"type":"createFile","path":"out/a.json","content":"{}"},{"type":"createFile","path":"b","content":"no"}]}`, "runId")
	d.must(t, "DELETE", in, "", "")
	var shown struct {
		Patterns []string     `json:"artifact_patterns"`
		Kept     run.Gathered `json:"artifacts_kept"`
	}
	d.succeed(t, "GET", "/v1/runs/"+of, "", &shown)
	if len(shown.Patterns) != 1 || shown.Kept.Files != 1 || shown.Kept.Bytes != 2 {
		t.Errorf("%+v", shown)
	}
	var list struct {
		Artifacts []struct {
			ID     string       `json:"artifact_id"`
			Path   string       `json:"path"`
			Kind   string       `json:"kind"`
			Media  string       `json:"mime_type"`
			Size   int64        `json:"size_bytes"`
			Digest event.Digest `json:"sha256"`
			As     string       `json:"recorded_as"`
		} `json:"artifacts"`
	}
	d.succeed(t, "GET", "/v1/artifacts?run_id="+of, "", &list)
	if len(list.Artifacts) != 1 {
		t.Fatalf("%+v", list)
	}
	if a := list.Artifacts[0]; a.Path != "out/a.json" || a.Kind != "file" || a.Media != "application/json" || a.Size != 2 ||
		a.Digest != event.DigestOf([]byte("{}")) || a.As != "permitted" {
		t.Errorf("%+v", a)
	}
	status, body := d.ask(t, "", "GET", "/v1/artifacts/"+list.Artifacts[0].ID+"/content", "")
	if status != http.StatusOK || string(body) != "{}" {
		t.Errorf("%d %q", status, body)
	}
	many := `"` + strings.Repeat(`x","`, run.MaxArtifactPatterns) + `x"`
	for _, patterns := range []string{`["../x"]`, `["/x"]`, `[""]`, `[` + many + `]`} {
		status, body := d.ask(t, "", "POST", in+"/runs", `{"protocolVersion":"1.0","artifacts":`+patterns+
			`,"operations":[{"type":"message","content":"x"}]}`)
		if status != http.StatusBadRequest {
			t.Errorf("%.30s: %d %s", patterns, status, body)
		}
	}
}
