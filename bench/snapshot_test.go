package bench

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/memory"
)

// The tree of these benchmarks: 5,000 files of 20 KiB in 50 folders, 100 MB, none like another.
var treeFiles = sized(5_000, 200)

const (
	treeFolders = 50
	treeSize    = 20 << 10
	treeChanged = 10 // files that change between two snapshots
)

// tree is a space with that tree and its past.
type tree struct {
	b     *testing.B
	store *disk.Spaces
	past  space.History
	dir   string
	uid   int // of the space; its forks have another
	ids   *id.Source
	count uint64
}

func newTree(b *testing.B) *tree {
	b.Helper()
	store, err := disk.OpenSpaces(b.Context(), b.TempDir(), memory.NewKeys(rand.Reader), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	uid := 0
	if os.Geteuid() == 0 {
		uid = 61_000
	}
	if _, err := store.Create(b.Context(), permitFor(b, policy.Action{Type: policy.SpaceCreate, Space: benchSpace}), uid,
		space.DefaultLimits(), space.Seed{}); err != nil {
		b.Fatal(err)
	}
	past, err := store.History(benchSpace, uid, space.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	_, dir, err := store.Open(benchSpace, uid, space.DefaultLimits())
	if err != nil {
		b.Fatal(err)
	}
	t := &tree{b: b, store: store, past: past, dir: dir, uid: uid, ids: id.NewSource(time.Now, rand.Reader)}
	for i := range treeFiles {
		t.write(i)
	}
	time.Sleep(50 * time.Millisecond) // what was written a moment ago is read again
	t.keep()
	return t
}

// write gives a file new content.
func (t *tree) write(i int) {
	t.b.Helper()
	content := bytes.Repeat([]byte("0123456789abcdef"), treeSize/16)
	t.count++
	binary.BigEndian.PutUint64(content, t.count)
	path := filepath.Join(t.dir, fmt.Sprintf("d%02d/f%04d", i%treeFolders, i))
	if err := os.WriteFile(path, content, 0o644); err != nil {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
			t.b.Fatal(err)
		}
	}
	if t.uid == 0 {
		return
	}
	if err := errors.Join(os.Chown(filepath.Dir(path), t.uid, t.uid), os.Chown(path, t.uid, t.uid)); err != nil {
		t.b.Fatal(err)
	}
}

func (t *tree) keep() event.Digest {
	t.b.Helper()
	t.past.Disturb() // as before a command
	s, err := t.past.Keep(t.b.Context())
	if err != nil || s.Files != int64(treeFiles) {
		t.b.Fatal(s, err)
	}
	return s.Root
}

// rest is what happens between two operations, out of the clock: what was written becomes durable, and old enough to be believed.
func (t *tree) rest() {
	t.b.Helper()
	if err := t.store.Sync(t.b.Context()); err != nil {
		t.b.Fatal(err)
	}
	time.Sleep(30 * time.Millisecond)
}

// BenchmarkSnapshot is what an operation pays for its snapshot where the space holds 5,000 files: one that changed nothing, and one that
// changed ten of them. The yardstick looks at every file with find.
func BenchmarkSnapshot(b *testing.B) {
	for name, changed := range map[string]int{"nothing": 0, "ten": treeChanged} {
		b.Run("changed="+name+"/ours", func(b *testing.B) {
			t := newTree(b)
			for b.Loop() {
				b.StopTimer()
				for i := range changed {
					t.write(i * 37 % treeFiles)
				}
				t.rest()
				b.StartTimer()
				t.keep()
			}
		})
		b.Run("changed="+name+"/yardstick", func(b *testing.B) {
			t := newTree(b)
			for b.Loop() {
				if out, err := exec.Command("find", t.dir, "-newer", t.dir).Output(); err != nil {
					b.Fatal(err, len(out))
				}
			}
		})
	}
}

// BenchmarkRewind goes back where ten of 5,000 files had changed, and where all had. The yardstick is `cp -a` of the tree, with which one
// would go back otherwise.
func BenchmarkRewind(b *testing.B) {
	for name, changed := range map[string]int{"ten": treeChanged, "all": treeFiles} {
		b.Run("changed="+name+"/ours", func(b *testing.B) {
			t := newTree(b)
			first := t.keep()
			for b.Loop() {
				b.StopTimer()
				for i := range changed {
					t.write(i)
				}
				t.rest()
				t.keep() // the operation has its snapshot
				b.StartTimer()
				if _, now, err := t.past.Rewind(b.Context(), permitFor(b, policy.Action{Type: policy.SpaceRewind, Space: benchSpace,
					Content: first})); err != nil || now.Root != first {
					b.Fatal(now, err)
				}
			}
		})
		b.Run("changed="+name+"/yardstick", copyTree)
	}
}

// BenchmarkFork makes another space of the tree as it is now, beside `cp -a`, and of an earlier snapshot, since which ten files have
// changed, or all. The time of the first fork, which makes the tree one that is shared, is reported apart.
func BenchmarkFork(b *testing.B) {
	b.Run("ours", func(b *testing.B) { newTree(b).forks(b, 0) })
	for name, changed := range map[string]int{"ten": treeChanged, "all": treeFiles} {
		b.Run("older="+name+"/ours", func(b *testing.B) { newTree(b).forks(b, changed) })
	}
	for _, name := range []string{"", "older=ten/", "older=all/"} {
		b.Run(name+"yardstick", copyTree)
	}
}

// forks makes forks of a snapshot since which some files have changed.
func (t *tree) forks(b *testing.B, changed int) {
	b.Helper()
	root := t.keep()
	for i := range changed {
		t.write(i)
	}
	t.rest()
	t.keep()
	unix.Sync() // else the first fork's few writes wait for 100 MB of ours
	began := time.Now()
	t.fork(root)
	first := time.Since(began)
	for b.Loop() {
		made := t.fork(root)
		b.StopTimer()
		if err := t.store.Remove(b.Context(), made); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(first.Microseconds())/1e3, "first-ms")
}

// fork makes one.
func (t *tree) fork(root event.Digest) id.Space {
	t.b.Helper()
	made := id.New[id.Space](t.ids)
	permit := permitFor(t.b, policy.Action{Type: policy.SpaceFork, Space: made, Target: string(benchSpace), Content: root})
	uid := t.uid
	if uid != 0 {
		uid++
	}
	err := t.store.Share(t.b.Context(), benchSpace, t.uid, space.DefaultLimits(), func() error { return nil })
	if err != nil {
		t.b.Fatal(err)
	}
	if n, err := t.store.Create(t.b.Context(), permit, uid, space.DefaultLimits(), space.Seed{Space: benchSpace,
		Snapshot: root}); err != nil || n.Files != treeFiles {
		t.b.Fatal(n, err)
	}
	return made
}

// copyTree is the yardstick: `cp -a` of the tree.
func copyTree(b *testing.B) {
	t := newTree(b)
	for i := 0; b.Loop(); i++ {
		to := filepath.Join(filepath.Dir(t.dir), fmt.Sprint("copy", i))
		if out, err := exec.Command("cp", "-a", t.dir, to).CombinedOutput(); err != nil {
			b.Fatal(err, string(out))
		}
		b.StopTimer()
		if err := os.RemoveAll(to); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkAPISnapshotExec is `true` over the API in a space of 5,000 files, with its snapshot; the yardstick is the same in an empty
// space, where there is next to nothing to look at.
func BenchmarkAPISnapshotExec(b *testing.B) {
	for name, files := range map[string]int{"ours": treeFiles, "yardstick": 0} {
		b.Run(name, func(b *testing.B) {
			c := overAPI(b)
			s, err := c.CreateSpace(b.Context(), client.SpaceRequest{})
			if err != nil {
				b.Fatal(err)
			}
			if files > 0 {
				shell(b, c, s.ID, fmt.Sprintf("mkdir d; cd d; seq %d | split -l 1 -a 4 -", files))
			}
			time.Sleep(50 * time.Millisecond)
			shell(b, c, s.ID, "true")
			for b.Loop() {
				shell(b, c, s.ID, "true")
			}
		})
	}
}
