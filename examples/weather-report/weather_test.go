package weatherreport_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	weatherreport "agentbox/examples/weather-report"
)

var update = flag.Bool("update", false, "put the programs into ops.json")

type message struct {
	ProtocolVersion string      `json:"protocolVersion"`
	Operations      []operation `json:"operations"`
}

type operation struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Path    string          `json:"path,omitempty"`
	Content string          `json:"content,omitempty"`
	Command string          `json:"command,omitempty"`
	Timeout int             `json:"timeout,omitempty"`
	Edits   json.RawMessage `json:"edits,omitempty"`
}

// TestTheProgramsStandInTheOperations keeps ops.json and the programs beside it the same; -update writes the programs into ops.json.
func TestTheProgramsStandInTheOperations(t *testing.T) {
	decoder := json.NewDecoder(bytes.NewReader(weatherreport.Operations))
	decoder.DisallowUnknownFields()
	var m message
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	programs := 0
	for i, op := range m.Operations {
		if op.Type != "createFile" {
			continue
		}
		programs++
		want, err := os.ReadFile(filepath.Join("programs", op.Path))
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			m.Operations[i].Content = string(want)
		} else if op.Content != string(want) {
			t.Errorf("%s in ops.json is not programs/%s; run make generate", op.ID, op.Path)
		}
	}
	if programs != 2 {
		t.Errorf("got %d programs in ops.json, want 2", programs)
	}
	if !*update {
		return
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(m); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("ops.json", out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
