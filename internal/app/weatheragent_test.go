package app_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	weatheragent "agentbox/examples/weather-agent"
	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// TestTheCassetteOfTheWeatherAgent has the agent of the demo work at a scripted model, once with a person who approves and once with one
// who denies. The record has to be the cassette that the demo plays; -update-situations writes it.
func TestTheCassetteOfTheWeatherAgent(t *testing.T) {
	cache := os.Getenv("AGENTBOX_CACHE")
	if cache == "" {
		cache = filepath.Join(os.Getenv("HOME"), ".cache", "agentbox")
	}
	data, err := os.ReadFile(filepath.Join(cache, "datasets", "seattle-weather.csv"))
	roots, _ := filepath.Glob(filepath.Join(cache, "rootfs-*", "agentbox-rootfs"))
	if err != nil || len(roots) == 0 {
		if os.Getenv("CI") != "" {
			t.Fatal("the data set or the root of spaces is missing: make dataset rootfs")
		}
		t.Skip("the data set or the root of spaces is missing: make dataset rootfs")
	}
	folder := filepath.Join("..", "..", "examples", "weather-agent")
	raw, err := os.ReadFile(filepath.Join(folder, "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var answers [][]struct {
		Say       string          `json:"say"`
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal(raw, &answers); err != nil {
		t.Fatal(err)
	}
	var scenes []scene
	for n, parts := range answers {
		var s scene
		for _, p := range parts {
			if p.Tool == "" {
				s.say += p.Say
				continue
			}
			var arguments bytes.Buffer
			if err := json.Compact(&arguments, p.Arguments); err != nil {
				t.Fatal(err)
			}
			s.calls = append(s.calls, toolCall(string(rune('a'+n))+string(rune('1'+len(s.calls))), p.Tool, arguments.String()))
		}
		scenes = append(scenes, s)
	}
	tape := model.Cassette{}
	known := map[string]bool{}
	for _, word := range []string{"approve", "deny"} {
		for _, r := range recordWeather(t, data, scenes, word) {
			r.Request.CacheKey = ""
			r.Answer.ID, r.Answer.Model = "", ""
			clean, err := model.Record(r.Request, r.Answer, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !known[clean.Hash.String()] {
				known[clean.Hash.String()] = true
				tape.Recordings = append(tape.Recordings, clean)
			}
		}
	}
	got, err := tape.Write()
	if err != nil {
		t.Fatal(err)
	}
	if *tellAnew {
		if err := os.WriteFile(filepath.Join(folder, "cassette.jsonl"), got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(got, weatheragent.Cassette) {
		t.Errorf("the cassette of examples/weather-agent does not fit any more; write it by: go test ./internal/app -run %s -update-situations",
			t.Name())
	}
}

// recordWeather has the agent work with a person who answers each question by a word, and returns what was recorded.
func recordWeather(t *testing.T, data []byte, scenes []scene, word string) []model.Recording {
	t.Helper()
	config := app.Default(t.TempDir())
	config.Listen = "127.0.0.1:0"
	x := &stage{t: t, d: startBy(t, config, hurried{}), first: startActor(t, chatWire, scenes)}
	x.d.ask("PUT", "/v1/models/weather", `{"provider":"openai","dialect":"generic","model":"m","allow_private":true,"record":"weather",`+
		`"base_url":"`+x.first.URL+`"}`, "")
	locked, _ := x.d.ask("POST", "/v1/blueprints/lock", `{"text":`+jsonOf(t, weatheragent.Blueprint)+`}`, "")
	x.d.ask("PUT", "/v1/blueprints/weather", `{"text":`+jsonOf(t, text(locked, "text"))+`}`, "")
	in, _ := x.d.ask("POST", "/v1/spaces", `{"runtime":"heavy","best_effort":true}`, "")
	x.space = text(in, "id")
	at := "/v1/spaces/" + x.space + "/files/data/seattle-weather.csv"
	if raw, status := x.d.send("PUT", at, string(data), ""); status >= http.StatusBadRequest {
		t.Fatalf("%d %s", status, raw)
	}
	run, _ := x.d.ask("POST", "/v1/blueprints/weather/runs", `{"task":`+jsonOf(t, weatheragent.Task)+`,"space_id":"`+x.space+`"}`, "")
	x.run = id.Run(text(run, "run_id"))
	x.decide(word)
	x.wait()
	if raw, _ := x.d.send("GET", "/v1/runs/"+string(x.run), "", ""); !bytes.Contains(raw, []byte(`"status":"succeeded"`)) {
		t.Fatalf("the run ended otherwise: %s", raw)
	}
	raw, err := os.ReadFile(filepath.Join(config.DataDir, "cassettes", "weather.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := model.ParseCassette(raw)
	if err != nil {
		t.Fatal(err)
	}
	return c.Recordings
}
