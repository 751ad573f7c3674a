package scripted_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint/endpointtest"
	"agentbox/internal/driver/endpoint/scripted"
)

// vendor answers the first request and fails at the second.
type vendor struct{ asked int }

func (v *vendor) Stream(_ context.Context, p policy.Permit, _ model.Target, _ model.Request,
	emit func(model.Delta) error) (model.Answer, error) {
	if _, err := p.Redeem(policy.ModelCall); err != nil {
		return model.Answer{}, err
	}
	if v.asked++; v.asked > 1 {
		return model.Answer{}, &model.Failure{Class: model.Busy, Message: "busy"}
	}
	return model.Answer{Parts: []model.Part{model.Text("Hi")}, Stop: model.StopEnd}, emit(model.Delta{Type: model.TextPart, Text: "Hi"})
}

// TestWhatIsRecordedIsPlayed records an answer, and plays it from the cassette.
func TestWhatIsRecordedIsPlayed(t *testing.T) {
	folder, issue := filepath.Join(t.TempDir(), "cassettes"), endpointtest.Issue(policy.Issue)
	live := scripted.Recorders(folder, map[string]model.Endpoint{model.OpenAI: &vendor{}})[model.OpenAI]
	e := model.Entry{Name: "live", Model: "m", Record: "tape"}.Complete()
	for _, to := range []struct {
		endpoint model.Endpoint
		entry    model.Entry
	}{{live, e}, {scripted.New(folder), model.Entry{Name: "played", Provider: model.Scripted, BaseURL: "tape", Model: "m"}}} {
		if a, _, err := issue.Ask(t.Context(), t, to.endpoint, to.entry, "the-key", endpointtest.Hello()); err != nil || a.Text() != "Hi" {
			t.Fatalf("%s: got %+v, %v", to.entry.Name, a, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(folder, "tape.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := model.ParseCassette(raw); err != nil || len(c.Recordings) != 1 || c.Head.Model != "m" {
		t.Errorf("got %+v, %v", c, err)
	}
}

// TestACassetteThatCannotBeWritten is an error, because a cassette with a hole plays something else.
func TestACassetteThatCannotBeWritten(t *testing.T) {
	folder, issue := filepath.Join(t.TempDir(), "cassettes"), endpointtest.Issue(policy.Issue)
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	live := scripted.Recorders(folder, map[string]model.Endpoint{model.OpenAI: &vendor{}})[model.OpenAI]
	e := model.Entry{Name: "live", Model: "m", Record: "tape"}.Complete()
	if _, _, err := issue.Ask(t.Context(), t, live, e, "", endpointtest.Hello()); err == nil || errors.Is(err, model.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	e.Record = ""
	if _, _, err := issue.Ask(t.Context(), t, live, e, "", endpointtest.Hello()); err == nil {
		t.Error("the second request of the vendor fails")
	}
}
