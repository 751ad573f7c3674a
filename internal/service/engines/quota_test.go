package engines_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/content"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/engines"
)

// TestUploadsAtOnceDoNotExceedTheQuota stores twelve contents at once where three have room.
func TestUploadsAtOnceDoNotExceedTheQuota(t *testing.T) {
	h, ctx := open(t), t.Context()
	h.ask("")
	_, k := h.claim()
	s := h.step(k)
	const size = 1_000
	h.MaxContent = 3*size + size/2
	var uploads sync.WaitGroup
	var stored, full atomic.Int32
	for n := range 12 {
		text := strings.Repeat(string(rune('a'+n)), size)
		length := int64(size)
		a, err := h.Artifacts.Add(ctx, h.owner, ws, k.Token, engines.ArtifactRequest{Step: s.ID, Kind: "report", Size: &length,
			Digest: event.DigestOf([]byte(text))})
		if err != nil {
			t.Fatal(err)
		}
		uploads.Go(func() {
			switch _, err := h.Artifacts.Store(ctx, h.owner, ws, k.Token, a.ID, strings.NewReader(text)); {
			case err == nil:
				stored.Add(1)
			case fault.CodeOf(err) == content.ErrQuota.Code:
				full.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	uploads.Wait()
	used, _, err := projection.Load[content.Usage](ctx, h.Docs, ws, content.Projection, string(ws))
	if err != nil || stored.Load() != 3 || full.Load() != 9 || used.Bytes != 3*size {
		t.Errorf("%d were stored and %d refused, %d bytes are used, %v; want 3, 9 and %d", stored.Load(), full.Load(), used.Bytes, err, 3*size)
	}
}

// TestRunsAskedForAtOnceDoNotExceedTheQuota asks for runs with inputs.
func TestRunsAskedForAtOnceDoNotExceedTheQuota(t *testing.T) {
	h, ctx := open(t), t.Context()
	input := `"` + strings.Repeat("x", 998) + `"`
	h.MaxContent = 2_500
	var asks sync.WaitGroup
	var made atomic.Int32
	for range 10 {
		asks.Go(func() {
			switch _, err := h.Create(ctx, h.owner, engines.Request{Workspace: ws, Room: "room_00000000000000000000000000", Title: "a run",
				Input: []byte(input)}); {
			case err == nil:
				made.Add(1)
			case fault.CodeOf(err) != content.ErrQuota.Code:
				t.Error(err)
			}
		})
	}
	asks.Wait()
	if made.Load() != 2 {
		t.Errorf("%d runs were made, want 2", made.Load())
	}
}
