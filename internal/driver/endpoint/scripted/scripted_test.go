package scripted_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint/endpointtest"
	"agentbox/internal/driver/endpoint/scripted"
)

func ask(t testing.TB, to model.Endpoint, e model.Entry, key string, r model.Request) (model.Answer, []model.Delta, error) {
	t.Helper()
	return endpointtest.Issue(policy.Issue).Ask(t.Context(), t, to, e, key, r)
}

var entry = model.Entry{Name: "m", Provider: model.Scripted, BaseURL: "tape", Model: "any"}

// tape writes a cassette that fails first and then answers.
func tape(t *testing.T) (*scripted.Endpoint, []byte) {
	t.Helper()
	busy, err := model.Record(endpointtest.Hello(), nil, &model.Failure{Class: model.Busy, Message: "busy"})
	if err != nil {
		t.Fatal(err)
	}
	said, err := model.Record(endpointtest.Hello(), &model.Answer{Parts: []model.Part{model.Text("Hi")}, Stop: model.StopEnd,
		Usage: model.Usage{Input: 3, Output: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := model.Cassette{Recordings: []model.Recording{busy, said}}.Write()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "tape.jsonl"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return scripted.New(dir), raw
}

// TestACassettePlaysInOrder holds that a failure comes before the answer that was recorded after it.
func TestACassettePlaysInOrder(t *testing.T) {
	s, _ := tape(t)
	_, _, err := ask(t, s, entry, "", endpointtest.Hello())
	if f, ok := model.FailureOf(err); !ok || f.Class != model.Busy {
		t.Fatalf("got %v", err)
	}
	for n := range 3 {
		again := endpointtest.Hello()
		again.CacheKey = strings.Repeat("k", n) // which does not count
		a, seen, err := ask(t, s, entry, "", again)
		if err != nil || a.Text() != "Hi" || a.Usage.Input != 3 || len(seen) != 1 || seen[0].Text != "Hi" {
			t.Errorf("got %+v, %v, %v", a, seen, err)
		}
	}
}

// TestAnUnknownRequestNamesTheDifference changes one word, and the error says which.
func TestAnUnknownRequestNamesTheDifference(t *testing.T) {
	s, _ := tape(t)
	r := endpointtest.Hello()
	r.Messages[0].Parts[0].Text = "Hello!"
	_, _, err := ask(t, s, entry, "", r)
	f, ok := model.FailureOf(err)
	if !ok || f.Class != model.Final || !strings.Contains(f.Message, `messages[0].parts[0].text: recorded "Hello", asked "Hello!"`) {
		t.Errorf("got %v", err)
	}
	r = endpointtest.Hello()
	r.MaxTokens = 7
	if _, _, err = ask(t, s, entry, "", r); err == nil || !strings.Contains(err.Error(), "one of both has more") {
		t.Errorf("got %v", err)
	}
}

// TestABrokenCassetteIsRefused holds that each line is read strictly.
func TestABrokenCassetteIsRefused(t *testing.T) {
	_, raw := tape(t)
	if c, err := model.ParseCassette(raw); err != nil || len(c.Recordings) != 2 {
		t.Fatalf("got %v, %v", c, err)
	}
	for name, change := range map[string][2]string{
		"version": {`cassette":1`, `cassette":2`}, "unknown field": {`"answer":{`, `"answer":{"x":1,`}, "another request": {`"Hello"`, `"Hullo"`},
		"nothing": {`"failure"`, `"faiIure"`}, "text": {"\n{", "\n{{"},
	} {
		if _, err := model.ParseCassette([]byte(strings.Replace(string(raw), change[0], change[1], 1))); fault.CodeOf(err) != "cassette_invalid" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestACassetteLiesInItsFolder tries to lead out of it.
func TestACassetteLiesInItsFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"out.jsonl": "{}", "in/x": ""} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"../out", "none"} {
		e := entry
		e.BaseURL = name
		_, _, err := ask(t, scripted.New(filepath.Join(dir, "in")), e, "", endpointtest.Hello())
		if fault.CodeOf(err) != "cassette_not_found" {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
