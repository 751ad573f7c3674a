package external

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
)

// maxReport is the largest report of a program in bytes. A longer one loses its beginning.
const maxReport = 64 << 10

// said is a line of JSON from one of the known programs.
type said struct {
	Type   string `json:"type"`
	Result string `json:"result"`   // claude
	Error  any    `json:"error"`    // opencode, codex
	Failed bool   `json:"is_error"` // claude
	Part   struct {
		Text string `json:"text"`
	} `json:"part"` // opencode
	Item struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"item"` // codex
	Message json.RawMessage `json:"message"` // codex: why a turn failed
}

// reportOf returns the last message of a program, and whether the program reports a failure. All three known programs exit with 0 when a
// tool failed or was denied.
func reportOf(program, stdout string) (report string, failed bool) {
	for line := range strings.Lines(stdout) {
		var s said
		if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &s) != nil {
			continue
		}
		switch {
		case program == opencode && s.Type == "text":
			report, failed = s.Part.Text, false
		case program == codex && s.Type == "item.completed" && s.Item.Type == "agent_message":
			report, failed = s.Item.Text, false
		case program == codex && s.Type == "turn.failed", program == opencode && s.Type == "error":
			raw, err := json.Marshal(s.Error)
			if err == nil {
				report = string(raw)
			}
			failed = true
		case program == claude && s.Type == "result":
			report, failed = s.Result, s.Failed
		}
	}
	if program == custom {
		report = strings.TrimSpace(stdout)
	}
	return ending(report), failed
}

// ending returns the last maxReport bytes of a text.
func ending(text string) string {
	if len(text) <= maxReport {
		return text
	}
	text = text[len(text)-maxReport:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return text
}

// firstLine returns the first line of a report, at most 200 characters, as the summary of the run.
func firstLine(report string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(report), "\n")
	if runes := []rune(line); len(runes) > 200 {
		return string(runes[:199]) + "…"
	}
	return line
}

// namesOf returns the models that a blueprint names, the default one first.
func namesOf(b blueprint.Blueprint) []string {
	names := []string{b.Model(blueprint.DefaultTask)}
	for _, name := range b.References() {
		if name.Kind == blueprint.ToModel && name.Name != names[0] {
			names = append(names, name.Name)
		}
	}
	return names
}
