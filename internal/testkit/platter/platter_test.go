package platter_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/testkit/platter"
)

// at returns the nth moment of a disk, counted from the end if negative.
func at(d *platter.Disk, n int) *platter.Moment {
	if n < 0 {
		n += d.Len() + 1
	}
	for m := range d.Moments() {
		if m.At == n {
			return m
		}
	}
	panic("there is no such moment")
}

// written says what files hold, in a line.
func written(f platter.Files) string {
	var parts []string
	for name, content := range f {
		if content == nil {
			name += "/"
		}
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s=%s", name, content), "="))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

func TestWhatIsLeft(t *testing.T) {
	d := platter.Load(platter.Files{"old": []byte("1")})
	steps := []struct {
		do          func()
		killed, cut string
	}{
		{func() { d.Make("new") }, "new old=1", "old=1"},
		{func() { d.Write("new", 0, []byte("ab")) }, "new=ab old=1", "old=1"},
		{func() { d.Sync("new") }, "new=ab old=1", "old=1"},
		{func() { d.SyncFolder(".") }, "new=ab old=1", "new=ab old=1"},
		{func() { d.Write("new", 3, []byte("d")) }, "new=ab\x00d old=1", "new=ab old=1"},
		{func() { d.Truncate("new", 1) }, "new=a old=1", "new=ab old=1"},
		{func() { d.Rename("new", "old") }, "old=a", "new=ab old=1"},
		{func() { d.SyncFolder(".") }, "old=a", "old=ab"},
		{func() { d.Sync("old") }, "old=a", "old=a"},
		{func() { d.MakeFolder("f") }, "f/ old=a", "old=a"},
		{func() { d.Make("f/x") }, "f/ f/x old=a", "old=a"},
		{func() { d.SyncFolder("f") }, "f/ f/x old=a", "old=a"},
		{func() { d.SyncFolder(".") }, "f/ f/x old=a", "f/ f/x old=a"},
		{func() { d.Rename("old", "f/y") }, "f/ f/x f/y=a", "f/ f/x old=a"},
		{func() { d.SyncFolder("f") }, "f/ f/x f/y=a", "f/ f/x f/y=a old=a"},
		{func() { d.Link("f/y", "f/z") }, "f/ f/x f/y=a f/z=a", "f/ f/x f/y=a old=a"},
		{func() { d.Write("f/z", 0, []byte("b")) }, "f/ f/x f/y=b f/z=b", "f/ f/x f/y=a old=a"},
		{func() { d.Sync("f/y") }, "f/ f/x f/y=b f/z=b", "f/ f/x f/y=b old=b"},
		{func() { d.SyncFolder("f") }, "f/ f/x f/y=b f/z=b", "f/ f/x f/y=b f/z=b old=b"},
		{func() { d.Remove("f/z") }, "f/ f/x f/y=b", "f/ f/x f/y=b f/z=b old=b"},
		{func() { d.Write("f/y", 0, []byte("a")) }, "f/ f/x f/y=a", "f/ f/x f/y=b f/z=b old=b"},
		{func() { d.Sync("f/y") }, "f/ f/x f/y=a", "f/ f/x f/y=a f/z=a old=a"},
		{func() { d.SyncFolder("f") }, "f/ f/x f/y=a", "f/ f/x f/y=a old=a"},
		{func() { d.Remove("f/x") }, "f/ f/y=a", "f/ f/x f/y=a old=a"},
	}
	for _, s := range steps {
		s.do()
	}
	for i, s := range steps {
		m := at(d, i+1)
		if got := written(m.Killed()); got != s.killed {
			t.Errorf("killed after step %d: got %q, want %q", i+1, got, s.killed)
		}
		if got := written(m.Cut()); got != s.cut {
			t.Errorf("cut after step %d: got %q, want %q", i+1, got, s.cut)
		}
	}
}

// A busy disk keeps sectors whole, keeps what was synced, and keeps now this and now that of the rest.
func TestTornSectors(t *testing.T) {
	d := platter.Load(platter.Files{"f": bytes.Repeat([]byte("o"), 1024)})
	d.Write("f", 500, bytes.Repeat([]byte("n"), 1000))
	m := at(d, -1)
	seen := map[string]bool{}
	for seed := range uint64(200) {
		content := m.Torn(rand.New(rand.NewPCG(seed, 0)))["f"]
		if !bytes.Equal(content[:500], bytes.Repeat([]byte("o"), 500)) {
			t.Fatalf("what was durable is %q", content[:500])
		}
		for i, part := range [][]byte{content[500:512], content[512:1024]} {
			if s := strings.Trim(string(part), string(part[:1])); s != "" {
				t.Fatalf("part %d is torn within a sector: %q", i, part)
			}
		}
		seen[fmt.Sprint(len(content), content[500], content[512])] = true
	}
	if len(seen) != 8 {
		t.Errorf("%d states, want the 8 of three parts that are there or not", len(seen))
	}
	half, ok := m.Halved(rand.New(rand.NewPCG(1, 1)))
	if n := bytes.Count(half["f"], []byte("n")); !ok || n < 1 || n > 999 {
		t.Errorf("a write that a kill halves has written %d of 1000 bytes", n)
	}
}

func TestMarksAndFolders(t *testing.T) {
	d := platter.Load(nil)
	d.Mark("one")
	d.MakeFolder("a")
	d.Make("a/b")
	d.Write("a/b", 0, []byte("x"))
	d.Mark("two")
	if got := at(d, 2).Marks; len(got) != 1 || got[0] != "one" {
		t.Errorf("the marks are %v, want one", got)
	}
	dir := t.TempDir()
	files := at(d, -1).Killed()
	if err := files.Write(dir); err != nil {
		t.Fatal(err)
	}
	back, err := platter.Read(dir)
	if err != nil || back.Digest() != files.Digest() {
		t.Errorf("read back %s, %v, want %s", written(back), err, written(files))
	}
}
