package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/disk/internal/beneath"
	"agentbox/internal/testkit/ondisk"
)

func TestMain(m *testing.M) { ondisk.Run(m) }

// grove is a folder that is watched.
type grove struct {
	t    *testing.T
	dir  string
	tree *Tree
}

func newGrove(t *testing.T) *grove { return &grove{t: t, dir: t.TempDir()} }

func newTree(ctx context.Context, open func() (*beneath.Folder, error), at string, recursive, poll bool) (*Tree, error) {
	t := New(open, at, recursive, poll)
	return t, t.Begin(ctx)
}

// begin watches a folder of the grove.
func (g *grove) begin(at string, recursive, poll bool) {
	g.t.Helper()
	tree, err := newTree(g.t.Context(), func() (*beneath.Folder, error) { return beneath.Root(g.dir) }, at, recursive, poll)
	g.must(err)
	g.t.Cleanup(func() { tree.Close() })
	g.tree = tree
}

func (g *grove) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *grove) at(p string) string { return filepath.Join(g.dir, p) }

func (g *grove) put(p, text string) {
	g.t.Helper()
	g.must(os.MkdirAll(filepath.Dir(g.at(p)), 0o755))
	g.must(os.WriteFile(g.at(p), []byte(text), 0o644))
}

func (g *grove) rename(from, to string) {
	g.t.Helper()
	g.must(os.Rename(g.at(from), g.at(to)))
}

// now looks once, without waiting, and returns what is told.
func (g *grove) now() []string {
	g.t.Helper()
	g.tree.mu.Lock()
	defer g.tree.mu.Unlock()
	told, err := g.tree.look(g.t.Context())
	lines := []string{}
	for _, e := range told {
		lines = append(lines, line(e))
	}
	if err != nil {
		lines = append(lines, err.Error())
	}
	return lines
}

func line(e space.WatchEvent) string {
	out := e.Kind + " " + e.Type + " " + e.Path
	if e.From != "" {
		out += " from " + e.From
	}
	if e.Attributes {
		out += " attributes"
	}
	return out
}

func (g *grove) wants(want ...string) {
	g.t.Helper()
	if got := g.now(); !slices.Equal(got, want) {
		g.t.Errorf("told\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// eachWay runs a test with the kernel's notes and without.
func eachWay(t *testing.T, f func(t *testing.T, poll bool)) {
	for _, poll := range []bool{false, true} {
		t.Run(map[bool]string{false: "notes", true: "poll"}[poll], func(t *testing.T) { f(t, poll) })
	}
}

func TestTellsWhatBecomesOfFiles(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		g := newGrove(t)
		g.put("src/a.txt", "one")
		g.begin(".", true, poll)
		g.wants()
		g.put("src/new/b.txt", "two")
		g.wants("created directory src/new", "created file src/new/b.txt")
		g.put("src/a.txt", "longer than before")
		g.wants("changed file src/a.txt")
		g.must(os.Chmod(g.at("src/a.txt"), 0o755))
		g.wants("changed file src/a.txt attributes")
		g.rename("src/a.txt", "src/new/c.txt")
		g.wants("renamed file src/new/c.txt from src/a.txt")
		g.rename("src/new", "old")
		g.wants("renamed directory old from src/new")
		g.put("old/b.txt", "and more")
		g.wants("changed file old/b.txt")
		g.must(os.Symlink("nowhere", g.at("link")))
		g.wants("created symlink link")
		g.must(os.RemoveAll(g.at("old")))
		g.wants("removed file old/b.txt", "removed file old/c.txt", "removed directory old")
		g.put("tmp", "x")
		g.rename("tmp", "link")
		g.wants("removed symlink link", "created file link")
		g.must(os.Remove(g.at("link")))
		g.must(os.Mkdir(g.at("link"), 0o755))
		g.wants("removed file link", "created directory link")
	})
}

func TestAFileThatTakesThePlaceOfAnotherIsAChange(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		g := newGrove(t)
		g.put("a", "one")
		g.begin(".", false, poll)
		elsewhere := filepath.Join(t.TempDir(), "staged") // as a file is written from outside
		g.must(os.WriteFile(elsewhere, []byte("two"), 0o644))
		g.must(os.Rename(elsewhere, g.at("a")))
		g.wants("changed file a")
	})
}

func TestOneFolderIsWatchedWithoutWhatItsFoldersHold(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		g := newGrove(t)
		g.put("src/sub/a", "one")
		g.begin("src", false, poll)
		g.put("src/sub/b", "two")
		g.put("beside", "two")
		g.wants()
		g.put("src/c", "three")
		g.wants("created file src/c")
	})
}

func TestAFolderThatGoesAwayEndsItsWatch(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		for name, change := range map[string]func(g *grove){
			"removed":      func(g *grove) { g.must(os.RemoveAll(g.at("a/src"))) },
			"renamed":      func(g *grove) { g.rename("a/src", "a/other") },
			"above it":     func(g *grove) { g.rename("a", "b") },
			"another came": func(g *grove) { g.rename("a", "b"); g.must(os.MkdirAll(g.at("a/src"), 0o755)) },
		} {
			t.Run(name, func(t *testing.T) {
				g := newGrove(t)
				g.put("a/src/f", "one")
				g.begin("a/src", true, poll)
				change(g)
				told, err := g.tree.Next(t.Context())
				if len(told) != 2 || line(told[0]) != "removed file a/src/f" || line(told[1]) != "removed directory a/src" || err != nil {
					t.Errorf("told %+v, %v", told, err)
				}
				if _, err := g.tree.Next(t.Context()); !errors.Is(err, space.ErrWatchedGone) {
					t.Errorf("then %v, want %v", err, space.ErrWatchedGone)
				}
			})
		}
	})
}

func TestAWatchOfNoFolderIsRefused(t *testing.T) {
	g := newGrove(t)
	g.put("file", "x")
	g.must(os.Symlink(t.TempDir(), g.at("link")))
	for at, want := range map[string]error{"none": space.ErrFileNotFound, "file": space.ErrNotADirectory, "link": space.ErrNotADirectory} {
		tree, err := newTree(t.Context(), func() (*beneath.Folder, error) { return beneath.Root(g.dir) }, at, true, false)
		if !errors.Is(err, want) && !errors.Is(err, space.ErrLink) {
			t.Errorf("%s: %v, want %v", at, err, want)
		}
		if err == nil {
			tree.Close()
		}
	}
}

func TestFilesThatMoveElsewhereAreToldByWhatDiffers(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		g := newGrove(t)
		g.put("src/a", "one")
		g.put("src/b", "two")
		g.begin(".", true, poll)
		copied := t.TempDir()
		g.must(os.CopyFS(copied, os.DirFS(g.dir)))
		for _, p := range []string{"src/a", "src/b"} {
			info, err := os.Stat(g.at(p))
			g.must(err)
			g.must(os.Chtimes(filepath.Join(copied, p), info.ModTime(), info.ModTime()))
		}
		g.dir = copied
		g.must(os.Remove(g.at("src/b")))
		g.tree.Moved()
		g.wants("removed file src/b")
		g.put("src/c", "three")
		g.wants("created file src/c")
	})
}

func TestABoundedNumberOfEntriesIsWatched(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		g := newGrove(t)
		for i := range space.MaxWatchEntries {
			f, err := os.Create(g.at(fmt.Sprintf("%05d", i)))
			g.must(err)
			f.Close()
		}
		g.begin(".", true, poll)
		g.wants()
		g.must(os.Remove(g.at("00000")))
		g.put("other", "x")
		g.wants("removed file 00000", "created file other")
		g.put("more", "x")
		g.wants(space.ErrWatchLarge.Msg)
		_, err := newTree(t.Context(), func() (*beneath.Folder, error) { return beneath.Root(g.dir) }, ".", true, poll)
		if !errors.Is(err, space.ErrWatchLarge) {
			t.Errorf("a folder with one entry too many: %v", err)
		}
	})
}

func TestFoldersNestedTooDeepAreNotWatched(t *testing.T) {
	g := newGrove(t)
	deep := strings.Repeat("d/", space.MaxWatchDepth)
	g.must(os.MkdirAll(g.at(deep), 0o755))
	g.begin(".", true, false)
	g.must(os.Mkdir(g.at(path.Join(deep, "d")), 0o755))
	if got := g.now(); len(got) != 2 || got[1] != space.ErrWatchLarge.Msg {
		t.Errorf("told %q", got)
	}
	_, err := newTree(t.Context(), func() (*beneath.Folder, error) { return beneath.Root(g.dir) }, ".", true, false)
	if !errors.Is(err, space.ErrWatchLarge) {
		t.Errorf("folders nested one too deep: %v", err)
	}
}

func TestNextWaitsUntilSomethingHappensOrItIsClosed(t *testing.T) {
	g := newGrove(t)
	g.begin(".", true, false)
	type answer struct {
		told []space.WatchEvent
		err  error
	}
	answers := make(chan answer)
	next := func(ctx context.Context) {
		told, err := g.tree.Next(ctx)
		answers <- answer{told, err}
	}
	go next(t.Context())
	g.put("a", "")
	if a := <-answers; a.err != nil || line(a.told[0]) != "created file a" {
		t.Errorf("told %+v, %v", a.told, a.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	go next(ctx)
	if a := <-answers; !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("after its time: %+v, %v", a.told, a.err)
	}
	go next(t.Context())
	g.must(g.tree.Close())
	if a := <-answers; a.err == nil {
		t.Errorf("after its end: %+v", a.told)
	}
}

// mirror is what somebody knows of a folder who listed it once and believes what is told.
type mirror map[string]string

func (m mirror) apply(t *testing.T, e space.WatchEvent) {
	t.Helper()
	_, known := m[e.Path]
	switch e.Kind {
	case space.WatchCreated:
		if known {
			t.Errorf("%s: it was there", line(e))
		}
		if in := path.Dir(e.Path); in != "." && m[in] != "directory" {
			t.Errorf("%s: its folder is not known", line(e))
		}
		m[e.Path] = e.Type
	case space.WatchChanged:
		if m[e.Path] != e.Type {
			t.Errorf("%s: it was %q", line(e), m[e.Path])
		}
	case space.WatchRemoved:
		if !known {
			t.Errorf("%s: it was not there", line(e))
		}
		for p := range m {
			if strings.HasPrefix(p, e.Path+"/") {
				t.Errorf("%s: %s was not told first", line(e), p)
			}
		}
		delete(m, e.Path)
	case space.WatchRenamed:
		if _, there := m[e.From]; !there {
			t.Errorf("%s: it was not there", line(e))
		}
		moved := mirror{}
		for p, kind := range m {
			if p == e.From || strings.HasPrefix(p, e.From+"/") {
				moved[e.Path+p[len(e.From):]] = kind
				delete(m, p)
			}
		}
		for p, kind := range moved {
			m[p] = kind
		}
	}
}

func (g *grove) truth() mirror {
	m := mirror{}
	g.must(filepath.WalkDir(g.dir, func(p string, d fs.DirEntry, err error) error {
		if rel, _ := filepath.Rel(g.dir, p); rel != "." && err == nil {
			m[filepath.ToSlash(rel)] = map[bool]string{true: "directory", false: "file"}[d.IsDir()]
		}
		return err
	}))
	return m
}

// stir changes the grove once, by chance.
func (g *grove) stir(r *rand.Rand, n int) {
	places := []string{"."}
	for p := range g.truth() {
		places = append(places, p)
	}
	slices.Sort(places)
	some := func() string { return places[r.IntN(len(places))] }
	into := func() string { return path.Join(some(), fmt.Sprintf("n%d", r.IntN(8))) }
	switch r.IntN(7) { // what cannot be done, for example in a file, is left
	case 0, 1:
		_ = os.WriteFile(g.at(into()), fmt.Append(nil, n), 0o644)
	case 2:
		_ = os.MkdirAll(g.at(path.Join(into(), "deep")), 0o755)
	case 3, 4:
		if p := some(); p != "." {
			_ = os.Rename(g.at(p), g.at(into()))
		}
	case 5:
		if p := some(); p != "." {
			_ = os.RemoveAll(g.at(p))
		}
	case 6:
		_ = os.WriteFile(g.at(some()), fmt.Append(nil, n, "changed"), 0o644)
	}
}

// A reader that believes all reports about a tree knows the tree in the end, after all kinds of changes.
func TestWhatIsToldLeadsToWhatIsThere(t *testing.T) {
	eachWay(t, func(t *testing.T, poll bool) {
		for seed := range uint64(40) {
			g, r := newGrove(t), rand.New(rand.NewPCG(seed, 1))
			for n := range 20 {
				g.stir(r, n)
			}
			known := g.truth()
			g.begin(".", true, poll)
			for round := range 30 {
				for n := range 1 + r.IntN(6) {
					g.stir(r, round*10+n)
				}
				// While somebody looks nothing happens here, but a look may leave a moving tree to the next one.
				for range 3 {
					g.tree.mu.Lock()
					told, err := g.tree.look(t.Context())
					g.tree.mu.Unlock()
					g.must(err)
					for _, e := range told {
						known.apply(t, e)
					}
				}
				if want := g.truth(); fmt.Sprint(known) != fmt.Sprint(want) {
					t.Fatalf("seed %d, round %d: known\n%v\nthere\n%v", seed, round, known, want)
				}
				if t.Failed() {
					t.Fatalf("seed %d, round %d", seed, round)
				}
			}
			g.tree.Close()
		}
	})
}

// A program that changes a tree without a pause, beyond what the kernel notes, is followed all the same.
func TestLostNotesLoseNothing(t *testing.T) {
	g := newGrove(t)
	g.put("src/a", "one")
	g.begin(".", true, false)
	known := g.truth()
	for i := range 9000 { // each makes more notes than one; the kernel keeps 16,384 by default
		p := fmt.Sprintf("src/f%05d", i)
		g.put(p, "x")
		if i%2 == 0 {
			g.rename(p, fmt.Sprintf("src/g%05d", i))
		}
	}
	for range 40 {
		g.tree.mu.Lock()
		told, err := g.tree.look(t.Context())
		g.tree.mu.Unlock()
		g.must(err)
		for _, e := range told {
			known.apply(t, e)
		}
	}
	if want := g.truth(); fmt.Sprint(known) != fmt.Sprint(want) {
		t.Fatalf("%d entries are known, %d are there", len(known), len(want))
	}
}
