package snapshots

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/space"
)

// A power cut takes the end of one pack and leaves a later one, which names what is gone.
func TestASnapshotOfWhichAPowerCutTookAPart(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	first := filepath.Join(h.where.Kept, "00000001"+freshSuffix)
	h.must(os.Truncate(first, h.packs.objects[event.DigestOf([]byte("same"))].at))
	kept := func() []space.Snapshot {
		h.t.Helper()
		s, err := h.Kept(t.Context())
		h.must(err)
		return s
	}
	shelf, err := LookAt(t.Context(), h.where.Kept, keys())
	h.must(err)
	if shelf.Keeps(old.Root) || shelf.Keeps(now.Root) {
		t.Error("an audit counts a snapshot as kept whose content is gone")
	}
	h.again(1)
	if got := kept(); len(got) > 0 {
		t.Errorf("kept are %v, want none", got)
	}
	h.must(h.Sync(t.Context()))
	h.again(2)
	if got := kept(); len(got) > 0 {
		t.Errorf("after a sync and a restart kept are %v, want none", got)
	}
	if again := h.keepNow(); again.Root != now.Root {
		t.Errorf("the files are kept as %v, want %v", again.Root, now.Root)
	}
	shelf, err = LookAt(t.Context(), h.where.Kept, keys())
	h.must(err)
	if report, err := shelf.Hold(t.Context(), now.Root, 1<<30); err != nil || report.Damage != "" {
		t.Errorf("kept once more, it is %+v, %v", report, err)
	}
	// The loss of durable content by a disk is reported.
	h.must(h.Sync(t.Context()))
	h.put("later", "in a pack of its own")
	later := h.keepNow()
	h.must(h.Sync(t.Context()))
	lost := h.packs.objects[event.DigestOf([]byte("same"))]
	h.must(os.Truncate(h.packs.path(lost.pack), lost.at))
	h.put("fresh", "so that a pack is not durable")
	h.keepNow()
	h.again(3)
	if got := kept(); !slices.Contains(got, later) {
		t.Errorf("kept are %v, without %v, whose content the disk lost after it was durable", got, later)
	}
	shelf, err = LookAt(t.Context(), h.where.Kept, keys())
	h.must(err)
	if report, err := shelf.Hold(t.Context(), later.Root, 1<<30); err != nil || report.Damage == "" || !shelf.Keeps(later.Root) {
		t.Errorf("of lost content an audit says %+v, %v", report, err)
	}
}
