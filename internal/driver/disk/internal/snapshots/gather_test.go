package snapshots

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// files reads a folder of packs and lists.
func (h *home) kepts() map[string]string {
	h.t.Helper()
	names, err := os.ReadDir(h.where.Kept)
	h.must(err)
	all := map[string]string{}
	for _, name := range names {
		if name.Type().IsRegular() {
			raw, err := os.ReadFile(filepath.Join(h.where.Kept, name.Name()))
			h.must(err)
			all[name.Name()] = string(raw)
		}
	}
	return all
}

func (h *home) layKept(all map[string]string) {
	h.t.Helper()
	h.must(os.RemoveAll(h.where.Kept), os.Mkdir(h.where.Kept, 0o700))
	for name, text := range all {
		h.must(os.WriteFile(filepath.Join(h.where.Kept, name), []byte(text), 0o600))
	}
}

// TestASweepThatACrashInterruptsAtEveryStep lays down what each step of a sweep leaves: the shorter list, the new pack that is not
// durable yet and so may be cut off anywhere, the new pack beside the old ones, and the old ones while they go.
func TestASweepThatACrashInterruptsAtEveryStep(t *testing.T) {
	h := newHome(t, 1<<30)
	var gone []event.Digest
	for i := range 8 {
		h.put("same", strings.Repeat("same", 1000))
		h.put("f", strings.Repeat(fmt.Sprint(i), 5000+i))
		h.put(fmt.Sprintf("d/%d", i), fmt.Sprint("of ", i))
		gone = append(gone, h.keepNow().Root)
	}
	kept := gone[5:]
	gone = gone[:5]
	h.must(h.Sync(t.Context()))
	before := h.kepts()
	freed, err := h.Sweep(t.Context(), gone, false)
	h.must(err)
	if freed <= 0 {
		t.Fatalf("freed %d bytes", freed)
	}
	after, left := h.kepts(), h.packs.bytes
	var made, old []string
	for name := range after {
		if _, ok := before[name]; !ok {
			made = append(made, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			old = append(old, name)
		}
	}
	slices.Sort(old)
	if len(made) != 1 || len(old) < 2 {
		t.Fatalf("made are %q, gone %q; want one pack for several", made, old)
	}
	unsynced := strings.TrimSuffix(made[0], packSuffix) + freshSuffix
	states := map[string]map[string]string{"before": before}
	at := func(name string, change func(map[string]string)) {
		state := maps.Clone(before)
		state[keptFile] = after[keptFile]
		change(state)
		states[name] = state
	}
	at("the list", func(map[string]string) {})
	whole := after[made[0]]
	for cut := 0; cut <= len(whole); cut += 997 {
		at(fmt.Sprintf("%d bytes of the new pack", cut), func(s map[string]string) { s[unsynced] = whole[:cut] })
	}
	at("the new pack", func(s map[string]string) { s[unsynced] = whole })
	for n := range len(old) + 1 {
		at(fmt.Sprintf("%d old packs removed", n), func(s map[string]string) {
			s[made[0]] = whole
			for _, name := range old[:n] {
				delete(s, name)
			}
		})
	}
	for name, state := range states {
		h.layKept(state)
		h.again(7)
		for i, root := range kept {
			h.Disturb()
			if _, _, err := h.Rewind(t.Context(), root); err != nil {
				t.Fatalf("after %s: rewind to %d of those that are kept: %v", name, i, err)
			}
			if raw, err := os.ReadFile(filepath.Join(h.where.Files, "f")); err != nil || string(raw) != strings.Repeat(fmt.Sprint(i+5), 5005+i) {
				t.Fatalf("after %s: the file has %d bytes, %v", name, len(raw), err)
			}
		}
		// The next sweep finishes the work.
		_, err := h.Sweep(t.Context(), gone, false)
		h.must(err)
		if n := h.packs.bytes; n > left*4/3 {
			t.Errorf("after %s and another sweep the packs have %d bytes, want about %d", name, n, left)
		}
	}
}

func TestASweepKeepsWhatTheNextSnapshotTakesOver(t *testing.T) {
	h := newHome(t, 1<<30)
	h.put("f", strings.Repeat("f", 10_000))
	first := h.keepNow()
	h.put("g", "g")
	h.Disturb()
	h.must(h.look(t.Context(), nil, nil)) // looked at, and no snapshot of it kept
	_, err := h.Sweep(t.Context(), []event.Digest{first.Root}, false)
	h.must(err)
	now := h.keepNow()
	h.put("g", "changed")
	h.Disturb()
	if _, _, err := h.Rewind(t.Context(), now.Root); err != nil {
		t.Error(err)
	}
}

// TestSnapshotsRemovedBySomebodyElse removes the folder of the snapshots beside the daemon: the answer says so, and what helps.
func TestSnapshotsRemovedBySomebodyElse(t *testing.T) {
	h := newHome(t, 1<<30)
	old, now := h.two()
	h.must(os.RemoveAll(h.where.Kept))
	for name, call := range map[string]func() error{
		"rewind": func() error { _, _, err := h.Rewind(t.Context(), old.Root); return err },
		"diff": func() error {
			_, err := h.Diff(t.Context(), old.Root, now.Root, 10, func(string) string { return "" })
			return err
		},
		"keep": func() error { h.put("changed", "once more"); _, err := h.Keep(t.Context()); return err },
	} {
		err := call()
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != space.ErrSnapshotDamaged.Code || f.Suggestion == "" {
			t.Errorf("%s: got %v, want %s with a suggestion", name, err, space.ErrSnapshotDamaged.Code)
		}
	}
}
