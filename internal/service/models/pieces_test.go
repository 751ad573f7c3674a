package models_test

import (
	"encoding/json"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// watched returns what those who watch a run have got: the pieces of its answers, and a bar where an answer begins anew.
func (f *fixture) watched(r id.Run) (seen string) {
	f.t.Helper()
	frames, err := f.parts.Live.Read(f.t.Context(), r, 1, 1000)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, frame := range frames {
		var d model.Delta
		if err := json.Unmarshal(frame.Data, &d); err != nil {
			f.t.Fatal(err)
		}
		if d.Again {
			seen += "|"
		}
		seen += d.Text
	}
	return seen
}

// TestPiecesOfAFailedTry holds that the live output says when another try begins.
func TestPiecesOfAFailedTry(t *testing.T) {
	f := start(t)
	f.vendor.script["one"] = []step{func(emit func(model.Delta) error) (model.Answer, error) {
		if err := emit(model.Delta{Type: model.TextPart, Text: "Hal"}); err != nil {
			return model.Answer{}, err
		}
		return model.Answer{}, &model.Failure{Class: model.Retry, Begun: true, Usage: model.Usage{Input: 7, Output: 1}}
	}, says("Hello")}
	seen := ""
	a := f.question(1)
	a.Emit = func(d model.Delta) error {
		if d.Again {
			seen += "|"
		}
		seen += d.Text
		return nil
	}
	if _, err := f.Ask(t.Context(), a); err != nil || seen != "Hal|Hello" || f.watched(a.Run) != seen {
		t.Errorf("got %q, those who watch %q, %v", seen, f.watched(a.Run), err)
	}
	if used := f.used(); used.Usage.Tokens() != 8+15 || used.Failed != 1 || used.Guessed != 0 {
		t.Errorf("got %+v", used)
	}
}
