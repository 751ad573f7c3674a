package nano

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/userland/vfs"
)

// TestNoMoreIsWrittenThanFits takes changes from a worker that keeps to no bound.
func TestNoMoreIsWrittenThanFits(t *testing.T) {
	dir := t.TempDir()
	begin := func(bytes int64) *changes { return &changes{folder: &folder{path: dir, bytes: bytes}} }
	add := func(c *changes, size int64) error {
		return c.Add(vfs.Change{Op: vfs.WriteFile, Path: "f", Size: size}, strings.NewReader(""))
	}
	c := begin(1000)
	if err := errors.Join(add(c, 600), add(c, 400)); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if err := add(c, 1); !errors.Is(err, errOverfull) {
		t.Errorf("a byte more: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), make([]byte, 2000), 0o600); err != nil {
		t.Fatal(err)
	}
	c = begin(1000) // it was made smaller
	if err := add(c, 2000); err != nil {
		t.Errorf("what was there: %v", err)
	}
	if err := add(c, 1); !errors.Is(err, errOverfull) {
		t.Errorf("a byte more than there was: got %v", err)
	}
}

// TestLargeContentIsWrittenWhileItComes has content that is too large for memory lie beside the files until all changes are there. What
// is given up leaves nothing, and what lies there is no file of the space.
func TestLargeContentIsWrittenWhileItComes(t *testing.T) {
	for name, ends := range map[string]struct {
		end  func(*changes) error
		left []string
	}{"made": {(*changes).Commit, []string{"large", "small"}}, "given up": {(*changes).Abort, nil}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := &folder{path: dir, bytes: 4 * maxInMemory}
			defer f.close()
			c := &changes{folder: f}
			for path, size := range map[string]int64{"small": maxInMemory, "large": maxInMemory + 1} {
				x := vfs.Change{Op: vfs.WriteFile, Path: path, Mode: 0o644, Size: size + 1}
				if err := c.Add(x, &piped{text: strings.Repeat(path[:1], int(size))}); err != nil {
					t.Fatal(err)
				}
				if got := c.list[len(c.list)-1]; (got.Held != "") != (path == "large") || (got.Content == nil) != (path == "large") {
					t.Errorf("%s: %d pieces in memory, held as %q", path, len(got.Content), got.Held)
				}
			}
			if err := c.Add(vfs.Change{Op: vfs.WriteFile, Path: "more", Size: 2*maxInMemory - 2}, strings.NewReader("")); !errors.Is(err,
				errOverfull) {
				t.Errorf("a byte more than fits, beside what is on its way: got %v", err)
			}
			if err := errors.Join(ends.end(c), c.Abort()); err != nil {
				t.Fatal(err)
			}
			var left []string
			entries, err := os.ReadDir(dir)
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if err != nil || !slices.Equal(left, ends.left) {
				t.Errorf("got the files %q, %v; want %q", left, err, ends.left)
			}
			for _, path := range ends.left {
				got, err := os.ReadFile(filepath.Join(dir, path))
				if want := strings.Repeat(path[:1], len(got)-1) + "\x00"; err != nil || string(got) != want {
					t.Errorf("%s: %d bytes, %v", path, len(got), err)
				}
			}
		})
	}
}

// piped is content that says how much it is and comes once.
type piped struct{ text string }

func (p *piped) Len() int64 { return int64(len(p.text)) }

func (p *piped) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text)
	p.text = p.text[n:]
	return n, nil
}

// TestTheTimeOfACommandIsItsOwn has a command write much: writing what it has changed is told apart, and the two together are no more
// than what passed.
func TestTheTimeOfACommandIsItsOwn(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.FileBytes, spec.Limits.DiskBytes = 48<<20, 96<<20
	s := h.Create(t, spec)
	for _, c := range []spacetest.Command{
		{Space: spec.ID, Argv: []string{"bash", "-c", "head -c 40M /dev/zero > f"}, MS: 20_000},
		{Space: spec.ID, Argv: []string{"bash", "-c", "head -c 40M /dev/zero > f; while :; do :; done"}, MS: 2_000},
	} {
		began := time.Now()
		r, err := h.TryExec(t.Context(), s, c)
		passed := time.Since(began)
		if err != nil || r.TimedOut != (c.MS == 2_000) {
			t.Fatalf("got %+v, %v", r.Exit, err)
		}
		if r.Commit <= 0 || r.Duration <= 0 || r.Duration+r.Commit > passed {
			t.Errorf("%v: %v, and %v to write what it changed, of %v", c.Argv, r.Duration, r.Commit, passed)
		}
		if info, err := os.Stat(filepath.Join(spec.Dir, "f")); err != nil || info.Size() != 40<<20 {
			t.Errorf("%v: got %v, %v", c.Argv, info, err)
		}
	}
}

// TestTheWaitForAWorkerIsNoTimeOfACommand has one worker for the commands of two spaces. The second command waits until the first one has
// ended. The wait counts neither to its duration nor to its limit.
func TestTheWaitForAWorkerIsNoTimeOfACommand(t *testing.T) {
	h := hostOf(t, 1)
	first, second := h.Spec(t), h.Spec(t)
	one, two := h.Create(t, first), h.Create(t, second)
	const busy, limit = 2_000, 1_000 // milliseconds
	running := make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		c := spacetest.Command{Space: first.ID, Argv: []string{"bash", "-c", "echo; while :; do :; done"}, MS: busy}
		_, err := one.Exec(t.Context(), h.Permit(c.Action()), nil, func(string, []byte) error {
			once.Do(func() { close(running) })
			return nil
		})
		ended <- err
	}()
	select {
	case <-running:
	case err := <-ended:
		t.Fatalf("the first command has ended: %v", err)
	}
	began := time.Now()
	r, err := h.TryExec(t.Context(), two, spacetest.Command{Space: second.ID, Argv: []string{"true"}, MS: limit})
	passed := time.Since(began)
	if err != nil || r.Code != 0 || r.TimedOut {
		t.Fatalf("got %+v, %v", r.Exit, err)
	}
	if passed < limit*time.Millisecond || r.Duration > passed/2 {
		t.Errorf("of %v the command's own time is said to be %v", passed, r.Duration)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
