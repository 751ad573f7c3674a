package runs_test

import (
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

// A secret that a command names or prints, and a value of the space's own environment, stands in no event, no answer and no live frame; a
// file that is read comes as it is. An event says what was found, before the one in which it was.
func TestSecretsInResults(t *testing.T) {
	t.Parallel()
	s := testkit.Open(t, testkit.Options{Program: program})
	token, value := "ghp"+"_"+strings.Repeat("aB3dE6gH9k", 3), "s3cr3t-value-of-the-space"
	in := s.SpaceOf(spaces.Request{Env: map[string]string{"SERVICE_KEY": value, "MODE": "production"}, BestEffort: true}).ID
	doc := s.Ended(s.Start(in, `[{"type":"shell","command":"echo `+token+`; echo $SERVICE_KEY >&2; echo $MODE"},
		{"type":"createFile","path":"f","content":"k=`+token+`"},{"type":"readFile","path":"f"},
		{"type":"shell","command":"for i in $(seq 3); do printf '%s' \"$SERVICE_KEY\"; done; sleep 0.1; cat f"}]`).ID)
	if doc.Status != run.Succeeded {
		t.Fatalf("got %+v", doc)
	}
	results, err := s.Runs.History.Events(t.Context(), doc)
	if err != nil {
		t.Fatal(err)
	}
	if got := results.Events[0]; *got.Stdout != leak.Redacted+"\nproduction\n" || *got.Stderr != leak.Redacted+"\n" ||
		strings.Contains(got.Command, token) {
		t.Errorf("the command: %+v %q %q", got, *got.Stdout, *got.Stderr)
	}
	if got := results.Events[2]; *got.Content != "k="+token {
		t.Errorf("a file that was read: %q", *got.Content)
	}
	if got := *results.Events[3].Stdout; got != strings.Repeat(leak.Redacted, 3)+"k="+leak.Redacted {
		t.Errorf("the second command: %q", got)
	}
	var told []string
	for _, e := range s.Events(0) {
		// the log takes what the rules find out of the last two: see redaction.Scrub
		file := e.Type == run.EventSucceeded && strings.Contains(string(e.Data), `"readFile"`) || e.Type == run.EventCreated ||
			e.Type == run.EventInvoked
		if strings.Contains(string(e.Data), token) && !file || strings.Contains(string(e.Data), value) && e.Type != "space.created" {
			t.Errorf("%s still has it: %s", e.Type, e.Data)
		}
		if e.Type == leak.EventDetected {
			d, err := event.Decode[leak.Detected](e)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range d.Matches {
				told = append(told, d.Type+" "+m.Rule+" "+m.Where)
			}
		}
	}
	for _, want := range []string{
		"tool.succeeded github_pat result.command", "tool.succeeded github_pat result.stdout", "tool.succeeded environment_value result.stderr",
		"tool.succeeded environment_value result.stdout",
	} {
		if !slices.Contains(told, want) {
			t.Errorf("%s is not told of: %q", want, told)
		}
	}
	if !slices.ContainsFunc(told, func(s string) bool { return strings.HasPrefix(s, "run.created github_pat input") }) {
		t.Errorf("the secret in the operations is not told of: %q", told)
	}
	frames, err := s.Live.Read(t.Context(), doc.ID, 1, 1000)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, f := range frames {
		shown[f.Kind+f.Operation] += string(f.Data)
		if strings.Contains(string(f.Data), value) || strings.Contains(string(f.Data), token) && !strings.Contains(string(f.Data), `"readFile"`) {
			t.Errorf("a frame %s has it: %s", f.Kind, f.Data)
		}
	}
	for kind, text := range shown {
		if strings.Contains(text, value) {
			t.Errorf("the frames of %s have it together: %q", kind, text)
		}
	}
}
