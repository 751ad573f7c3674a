package engines_test

import (
	"errors"
	"io"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/step"
	"agentbox/internal/service/engines"
)

// TestWhatIsKeptTwiceIsThereOnce repeats a call after a crash at each point: before the artifact, before its content, and after both.
func TestWhatIsKeptTwiceIsThereOnce(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	s := h.step(k)
	text := []byte("first look")
	size := int64(len(text))
	q := engines.ArtifactRequest{Step: s.ID, Kind: "capsule", Title: "plan", Media: "text/markdown"}
	declared := q
	declared.Size, declared.Digest = &size, event.DigestOf(text)
	begun, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, declared) // the daemon dies before the content is there
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		before := h.head()
		got, err := h.Artifacts.Keep(ctx, h.owner, ws, k.Token, q, text, func(int) error { return errors.New("it is there already") })
		if err != nil || got.ID != begun.ID || got.Stored == nil || got.Title != "plan" {
			t.Fatalf("got %+v, %v, want %s", got, err, begun.ID)
		}
		if now := h.head(); begun.Stored == nil && now == before || begun.Stored != nil && now != before {
			t.Errorf("%d events were recorded", now-before)
		}
		begun.Stored = got.Stored
	}
	_, read, err := h.Artifacts.Open(ctx, ws, begun.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if got, err := io.ReadAll(read); err != nil || string(got) != string(text) {
		t.Errorf("got %q, %v", got, err)
	}
	// Another text, title, kind or step is another artifact. Each but the kind is counted.
	full := errors.New("full")
	other, title, kind, in := q, q, q, q
	title.Title, kind.Kind, in.Step = "status", "report", h.step(k).ID
	counted := 1
	for name, c := range map[string]struct {
		q    engines.ArtifactRequest
		text string
	}{"text": {other, "second look"}, "title": {title, "first look"}, "kind": {kind, "first look"}, "step": {in, "first look"}} {
		have := -1
		more := func(n int) error { have = n; return full }
		if _, err := h.Artifacts.Keep(ctx, h.owner, ws, k.Token, c.q, []byte(c.text), more); !errors.Is(err, full) {
			t.Errorf("another %s: %v", name, err)
		}
		want := counted
		if name == "kind" {
			want = 0
		}
		if have != want {
			t.Errorf("another %s: %d artifacts of the kind were there, want %d", name, have, want)
		}
		made, err := h.Artifacts.Keep(ctx, h.owner, ws, k.Token, c.q, []byte(c.text), nil)
		if err != nil || made.ID == begun.ID || made.Stored == nil {
			t.Errorf("another %s: %+v, %v", name, made, err)
		}
		if name != "kind" {
			counted++
		}
	}
	unknown := q
	unknown.Step = "step_unknown"
	if _, err := h.Artifacts.Keep(ctx, h.owner, ws, k.Token, unknown, text, nil); !errors.Is(err, step.ErrNotFound) {
		t.Errorf("an unknown step: %v", err)
	}
}
