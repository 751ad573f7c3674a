package engines_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/service/engines"
)

func (h *house) step(k engines.Hold) step.Step {
	h.t.Helper()
	s, err := h.Steps.Add(context.Background(), h.owner, k, engines.StepRequest{Kind: "work"})
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

func (h *house) call(k engines.Hold, s id.Step) step.Call {
	h.t.Helper()
	c, no, err := h.Steps.Invoke(context.Background(), h.owner, ws, k.Token, engines.CallRequest{Step: s, Tool: "look"})
	if err != nil || no != nil {
		h.t.Fatal(no, err)
	}
	return c
}

// TestThreat30AnOldFenceRecordsNoStep tries everything that an engine records with a token that was good once.
func TestThreat30AnOldFenceRecordsNoStep(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, old := h.claim()
	s := h.step(old)
	c := h.call(old, s.ID)
	sum := event.DigestOf([]byte("hello"))
	size := int64(5)
	a, err := h.Artifacts.Add(ctx, h.owner, ws, old.Token, engines.ArtifactRequest{Step: s.ID, Kind: "report", Size: &size, Digest: sum})
	if err != nil {
		t.Fatal(err)
	}
	kept := false
	try := func(want string) {
		t.Helper()
		before := h.head()
		_, err := h.Steps.Add(ctx, h.owner, old, engines.StepRequest{Kind: "late"})
		h.code(err, want)
		_, no, err := h.Steps.Invoke(ctx, h.owner, ws, old.Token, engines.CallRequest{Step: s.ID, Tool: "late"})
		if h.code(err, want); no != nil {
			t.Errorf("got the decision %+v", no)
		}
		_, err = h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: old.Token}, c.ID, nil)
		h.code(err, want)
		_, err = h.Steps.Fail(ctx, h.owner, ws, engines.Shown{Token: old.Token}, c.ID, nil, "late")
		h.code(err, want)
		_, err = h.Artifacts.Add(ctx, h.owner, ws, old.Token, engines.ArtifactRequest{Step: s.ID, Kind: "late"})
		h.code(err, want)
		_, err = h.Artifacts.Store(ctx, h.owner, ws, old.Token, a.ID, strings.NewReader("hello"))
		h.code(err, want)
		if after := h.head(); after != before {
			t.Errorf("%d events were recorded", after-before)
		}
		if _, err := h.blobs.Open(ctx, sum); !kept && !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("content was kept: %v", err)
		}
	}
	h.clock.move(run.ClaimTime)
	try("lease_expired")
	_, fresh := h.claim()
	try("lease_token_mismatch")
	// Who has the run now goes on with what the other left.
	if _, err := h.Steps.Succeed(ctx, h.owner, ws, engines.Shown{Token: fresh.Token}, c.ID, nil); err != nil {
		t.Error(err)
	}
	if _, err := h.Artifacts.Store(ctx, h.owner, ws, fresh.Token, a.ID, strings.NewReader("hello")); err != nil {
		t.Error(err)
	}
	kept = true
	if _, err := h.Release(ctx, h.owner, fresh); err != nil {
		t.Fatal(err)
	}
	old = fresh
	try("lease_token_mismatch")
	old.Token = ""
	_, err = h.Steps.Add(ctx, h.owner, old, engines.StepRequest{Kind: "late"})
	h.code(err, "run_not_running")
}

// TestAClaimThatIsLostWhileContentIsSentKeepsNoName takes the run away while a body is read.
func TestAClaimThatIsLostWhileContentIsSentKeepsNoName(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	size := int64(5)
	a, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, engines.ArtifactRequest{Step: h.step(k).ID, Kind: "report", Size: &size,
		Digest: event.DigestOf([]byte("hello"))})
	if err != nil {
		t.Fatal(err)
	}
	slow := io.MultiReader(strings.NewReader("hel"), reads(func() {
		h.clock.move(run.ClaimTime)
		h.claim()
	}), strings.NewReader("lo"))
	_, err = h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, slow)
	h.code(err, "lease_token_mismatch")
	if doc, err := h.Look.Artifact(ctx, ws, a.ID); err != nil || doc.Stored != nil {
		t.Errorf("got %+v, %v", doc.Stored, err)
	}
}

// reads does something when it is read, and is empty.
type reads func()

// Read implements io.Reader.
func (r reads) Read([]byte) (int, error) {
	r()
	return 0, io.EOF
}

// TestStepsOfOneEngineDoNotHinderEachOther records many at once under one claim, and heartbeats between them.
func TestStepsOfOneEngineDoNotHinderEachOther(t *testing.T) {
	h, ctx := open(t), context.Background()
	h.ask("")
	_, k := h.claim()
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for range 5 {
				if _, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: "work"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 5 {
		if _, err := h.Renew(ctx, h.owner, k); err != nil {
			t.Error(err)
		}
	}
	workers.Wait()
	steps, err := h.Look.Steps(ctx, ws, engines.Of{Run: k.Run}, "", 100)
	if err != nil || len(steps) != 40 {
		t.Errorf("got %d steps, %v", len(steps), err)
	}
}

func TestLimitsOfWhatEnginesRecord(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	s := h.step(k)
	value := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
	most, more := int64(step.MaxArtifact), int64(step.MaxArtifact+1)
	less := int64(-1)
	sum := event.DigestOf([]byte("x"))
	for name, c := range map[string]struct {
		do   func() error
		code string
	}{
		"step input": {func() error {
			_, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: "a", Input: value(step.MaxValue)})
			return err
		}, ""},
		"large input": {func() error {
			_, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: "a", Input: value(step.MaxValue + 1)})
			return err
		}, "field_too_large"},
		"kind": {func() error {
			_, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: strings.Repeat("k", step.MaxWord)})
			return err
		}, ""},
		"long kind": {func() error {
			_, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: strings.Repeat("k", step.MaxWord+1)})
			return err
		}, "invalid_field"},
		"long title": {func() error {
			_, err := h.Steps.Add(ctx, h.owner, k, engines.StepRequest{Kind: "a", Title: strings.Repeat("k", step.MaxTitle+1)})
			return err
		}, "invalid_field"},
		"zone": {func() error {
			_, _, err := h.Steps.Invoke(ctx, h.owner, ws, k.Token, engines.CallRequest{Step: s.ID, Tool: "a", Zone: "orbit"})
			return err
		}, "invalid_zone"},
		"tool": {func() error {
			_, _, err := h.Steps.Invoke(ctx, h.owner, ws, k.Token, engines.CallRequest{Step: s.ID, Tool: "a b"})
			return err
		}, "invalid_field"},
		"size": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Size: &most, Digest: sum})
		}, ""},
		"large": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Size: &more, Digest: sum})
		}, "artifact_too_large"},
		"negative": {func() error { return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Size: &less}) }, "artifact_too_large"},
		"media": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Media: "no media"})
		}, "invalid_field"},
		"two contents": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Content: step.Content{Type: "text", Text: "a", URI: "https://a"}})
		}, "invalid_content"},
		"no type": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Content: step.Content{Text: "a"}})
		}, "invalid_content"},
		"relative": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Content: step.Content{Type: "uri", URI: "a"}})
		}, "invalid_content"},
		"password": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: s.ID, Kind: "a", Content: step.Content{Type: "uri", URI: "https://a:b@c"}})
		}, "invalid_content"},
		"no step": {func() error {
			return h.artifact(k, engines.ArtifactRequest{Step: "step_01M7YNAYM0SM228XA4K3G6VDD4", Kind: "a"})
		}, "step_not_found"},
	} {
		t.Run(name, func(t *testing.T) { h.code(c.do(), c.code) })
	}
}

func (h *house) artifact(k engines.Hold, q engines.ArtifactRequest) error {
	_, err := h.Artifacts.Add(context.Background(), h.owner, ws, k.Token, q)
	return err
}

// TestContentIsKeptOnlyIfItIsWhatWasDeclared sends too much, too little, something else, and half.
func TestContentIsKeptOnlyIfItIsWhatWasDeclared(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	s := h.step(k)
	want := []byte("hello")
	size := int64(len(want))
	a, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, engines.ArtifactRequest{Step: s.ID, Kind: "report", Size: &size,
		Digest: event.DigestOf(want)})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the line is dead")
	for name, sent := range map[string]io.Reader{
		"more": strings.NewReader("hello!"), "less": strings.NewReader("hell"), "other": strings.NewReader("hallo"),
		"nothing":      strings.NewReader(""),
		"half":         io.MultiReader(strings.NewReader("hel"), iotest.ErrReader(broken)),
		"byte by byte": iotest.OneByteReader(strings.NewReader("hallo")),
	} {
		before := h.head()
		_, err := h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, sent)
		if err == nil || name != "half" && !errors.Is(err, step.ErrOtherContent) {
			t.Errorf("%s: %v", name, err)
		}
		if h.head() != before {
			t.Errorf("%s was recorded", name)
		}
	}
	for range 2 { // the second time it is there
		doc, err := h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, iotest.HalfReader(bytes.NewReader(want)))
		if err != nil || doc.Stored == nil || doc.Stored.Digest != event.DigestOf(want) {
			t.Fatalf("got %+v, %v", doc.Stored, err)
		}
	}
	_, read, err := h.Artifacts.Open(ctx, ws, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if got, err := io.ReadAll(read); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestArtifactsCountAgainstTheQuota(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	s := h.step(k)
	size := int64(1<<30 - 1)
	a, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, engines.ArtifactRequest{Step: s.ID, Kind: "report", Size: &size,
		Digest: event.DigestOf([]byte("x"))})
	if err != nil {
		t.Fatal(err)
	}
	h.ask(`"two bytes and more"`) // names content
	_, err = h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, strings.NewReader("x"))
	h.code(err, content.ErrQuota.Code)
}

// TestTheHeartbeatOfAnEngineThatSendsMuchKeepsItsClaim renews while content comes: the claim is that of the end, not of the beginning.
func TestTheHeartbeatOfAnEngineThatSendsMuchKeepsItsClaim(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	size := int64(5)
	a, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, engines.ArtifactRequest{Step: h.step(k).ID, Kind: "report", Size: &size,
		Digest: event.DigestOf([]byte("hello"))})
	if err != nil {
		t.Fatal(err)
	}
	slow := io.MultiReader(strings.NewReader("hel"), reads(func() {
		for range 10 {
			h.clock.move(run.ClaimTime - time.Second)
			if _, err := h.Renew(ctx, h.owner, k); err != nil {
				t.Error(err)
			}
		}
	}), strings.NewReader("lo"))
	if _, err := h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, slow); err != nil {
		t.Error(err)
	}
}
