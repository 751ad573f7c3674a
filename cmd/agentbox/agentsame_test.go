package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTheSameAgentLeavesTheSameLog records a cassette with one daemon, and plays it in two others: the same blueprint, with a seed and a
// clock for its space, the same cassette, the same task. Everything that follows from the request is the same in both logs, byte for byte,
// after ids, hashes, times and durations have got names in the order in which they come. Calls side by side end in any order, so the logs
// of the agent that makes some are compared without their order.
func TestTheSameAgentLeavesTheSameLog(t *testing.T) {
	t.Parallel()
	vendor := newVendor([][]vendorItem{
		{{Say: "I look."}, {Tool: "shell", Arguments: []byte(`{"command":"node -e 'console.log(Math.random(), Date.now())'"}`)}},
		{{Tool: "createFile", Arguments: []byte(`{"path":"a","content":"1"}`)}, {Tool: "shell", Arguments: []byte(`{"command":"sudo true"}`)},
			{Tool: "fly", Arguments: []byte(`{}`)}},
		{{Tool: "readFile", Arguments: []byte(`{"path":"a"}`)}, {Tool: "readFile", Arguments: []byte(`{"path":"b"}`)},
			{Tool: "message", Arguments: []byte(`{"content":"I have read."}`)}},
		{{Tool: "code", Arguments: []byte(`{"language":"javascript","code":"Math.random()"}`)}},
	}, "Done: $LAST")
	t.Cleanup(func() {
		vendor.CloseClientConnections()
		vendor.Close()
	})
	cassettes := map[string][]byte{}
	for _, agent := range []string{"alone", "together"} {
		c := sameDaemon(t, `{"provider":"openai","dialect":"generic","model":"m","allow_private":true,"base_url":"`+vendor.URL+
			`/v1","record":"tape"}`, agent)
		c.works(agent)
		tape, err := os.ReadFile(filepath.Join(c.dir, "cassettes", "tape.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		cassettes[agent] = tape
		c.end()
	}
	for agent, tape := range cassettes {
		var logs [2][]string
		for n := range logs {
			c := sameDaemon(t, `{"provider":"scripted","base_url":"tape","model":"m"}`, agent)
			folder := filepath.Join(c.dir, "cassettes")
			if err := os.MkdirAll(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "tape.jsonl"), tape, 0o600); err != nil {
				t.Fatal(err)
			}
			logs[n] = plainLog(t, c.works(agent), agent == "together")
			c.end()
		}
		if len(logs[0]) < 50 {
			t.Errorf("%s: only %d events", agent, len(logs[0]))
		}
		if len(logs[0]) != len(logs[1]) {
			t.Errorf("%s: %d events, and then %d", agent, len(logs[0]), len(logs[1]))
		}
		for i := range min(len(logs[0]), len(logs[1])) {
			if logs[0][i] != logs[1][i] {
				at := 0
				for at < min(len(logs[0][i]), len(logs[1][i])) && logs[0][i][at] == logs[1][i][at] {
					at++
				}
				t.Errorf("%s: the logs differ first at event %d of %d, in its byte %d\ngot  %.400s\nthen %.400s", agent, i+1, len(logs[0]), at,
					logs[0][i][max(0, at-200):], logs[1][i][max(0, at-200):])
				break
			}
		}
	}
}

// sameDaemon starts a daemon with a model and an agent, whose pins name the model that it has there.
func sameDaemon(t *testing.T, entry, agent string) *victim {
	t.Helper()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	concurrency := map[string]int{"alone": 1, "together": 4}[agent]
	source := fmt.Sprintf("api_version: 1\nname: %s\nadapter: {kind: internal}\nmodels: {default: played}\nlimits: {concurrency: %d}\n"+
		"space: {tier: nano, env: {AGENTBOX_SEED: \"7\", AGENTBOX_CLOCK: \"2026-01-01T00:00:00Z\"}}\n", agent, concurrency)
	put := func(path, body string) {
		if status, answer, _ := c.call("PUT", path, body); status >= 300 {
			t.Fatalf("PUT %s: %d %v", path, status, answer)
		}
	}
	put("/v1/models/played", entry)
	locked := c.post("/v1/blueprints/lock", `{"text":`+quoted(source)+`}`)
	put("/v1/blueprints/"+agent, `{"text":`+quoted(locked["text"].(string))+`}`)
	return c
}

// works gives the agent its task, waits for its report, and returns every event that followed from the request.
func (c *victim) works(agent string) []map[string]any {
	c.t.Helper()
	made := c.post("/v1/blueprints/"+agent+"/runs", `{"task":"Look around."}`)
	run := made["run_id"].(string)
	alive(c.t, c.daemon.Process.Pid, "the run to end, and its evidence", func() bool {
		status, _, _ := c.call("GET", "/v1/runs/"+run+"/evidence", "")
		return status == 200
	})
	doc := c.shown(run)
	if reported, _ := doc["reported"].(map[string]any); doc["status"] != "succeeded" || reported["summary"] != "Done: Look around." {
		c.t.Fatalf("the run ended otherwise: %v", doc)
	}
	var events []map[string]any
	for from := 1; ; {
		status, page, ok := c.call("GET", fmt.Sprintf("/v1/events?limit=200&from_seq=%d&correlation_id=%s", from, made["correlation_id"]), "")
		if !ok || status != 200 {
			c.t.Fatalf("events: %d %v", status, page)
		}
		for _, raw := range page["events"].([]any) {
			events = append(events, raw.(map[string]any))
		}
		if len(page["events"].([]any)) == 0 {
			return events
		}
		from = int(page["next_from_seq"].(float64))
	}
}

// The parts that differ from one time to the next, and their replacements.
var (
	variable = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\b[a-z]{2,8}_[0-9A-HJKMNP-TV-Z]{26}\b|sha256:[0-9a-f]{64}|\b[0-9a-f]{64}\b|` +
		`prm_[A-Za-z0-9_.-]+|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z|hmac-sha256:[0-9a-f]+`)
	duration = regexp.MustCompile(`(?i)(_ms|_ns|millis|durationms|commitms|_seconds_left|bytes_used|rss|cpu)$`)
)

// plainLog returns the events as canonical JSON, one for each line. Each value that differs from one time to the next has a name by the
// order in which such values come, so that the same value has the same name. Without their order such values have no number.
func plainLog(t *testing.T, events []map[string]any, unordered bool) []string {
	t.Helper()
	names := map[string]string{}
	name := func(value string) string {
		kind, _, _ := strings.Cut(value, "_")
		if kind == value {
			kind = "value"
		}
		if strings.Contains(value, "T") && strings.Contains(value, ":") && value[0] == '2' {
			return "TIME"
		}
		if unordered {
			return kind
		}
		if names[value] == "" {
			names[value] = fmt.Sprintf("%s-%d", kind, len(names))
		}
		return names[value]
	}
	var plain func(key string, v any) any
	plain = func(key string, v any) any {
		switch v := v.(type) {
		case string:
			return variable.ReplaceAllStringFunc(v, name)
		case float64:
			if duration.MatchString(key) || unordered && strings.HasSuffix(key, "seq") {
				return "DURATION"
			}
		case []any:
			for i := range v {
				v[i] = plain(key, v[i])
			}
		case map[string]any:
			changed := map[string]any{}
			for _, k := range sortedKeys(v) {
				if k == "chain" { // what seals the event: it is made of a drawn salt
					continue
				}
				changed[variable.ReplaceAllStringFunc(k, name)] = plain(k, v[k])
			}
			return changed
		}
		return v
	}
	var lines []string
	for _, e := range events {
		raw, err := json.Marshal(plain("", e))
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(raw))
	}
	if unordered {
		slices.Sort(lines)
	}
	return lines
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
