//go:build linux

package namespace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/space/spacetest"
)

func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "a/b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{"x", "a/x", "a/b/x"} {
		if err := os.WriteFile(filepath.Join(dir, f), make([]byte, 8192), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before, err := measure(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Neither a link to something large nor a hole counts.
	if err := os.Symlink("/usr", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "x"), 1<<30); err != nil {
		t.Fatal(err)
	}
	got, err := measure(t.Context(), dir, nil)
	if err != nil || got.files != 6 || got.depth != 2 || got.bytes < 3*8192 || got.bytes > before.bytes+64<<10 {
		t.Errorf("got %d bytes in %d files %d deep, %v, want about %d in 6, 2 deep", got.bytes, got.files, got.depth, err, before.bytes)
	}
}

// A walk writes nothing to the disk: the time of access of a folder that was changed after it was read stays as it was.
func TestAWalkLeavesTheTimeOfAccessAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	below := filepath.Join(dir, "b")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	for _, d := range []string{below, dir} {
		if err := os.Chtimes(d, long, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := measure(t.Context(), dir, nil); err != nil || got.files != 1 {
		t.Fatalf("got %d files, %v, want 1", got.files, err)
	}
	for _, d := range []string{dir, below} {
		var st unix.Stat_t
		if err := unix.Stat(d, &st); err != nil || st.Atim.Sec != long.Unix() {
			t.Errorf("%s was read at %d, %v, want %d", d, st.Atim.Sec, err, long.Unix())
		}
	}
}

// A slow walk is followed by a pause, which is bounded however slow the walk was.
func TestPauseAfterAWalk(t *testing.T) {
	began := time.Unix(1000, 0)
	for _, c := range []struct {
		took      time.Duration
		unseen    bool
		rest, due time.Duration // after the walk
	}{
		{time.Millisecond, false, 8 * time.Millisecond, audit},
		{time.Millisecond, true, 8 * time.Millisecond, recheck},
		{100 * time.Millisecond, true, 800 * time.Millisecond, 1600 * time.Millisecond},
		{breath / breather, false, breath, 2 * breath},
		{time.Second, false, breath, 2 * breath},
		{time.Minute, true, breath, 2 * breath},
	} {
		s := survey{}
		if c.unseen {
			s.unseen = map[string]time.Time{"process 1": began}
		}
		s.plan(began, c.took)
		if rest, due := s.rest.Sub(began)-c.took, s.due.Sub(began)-c.took; rest != c.rest || due != c.due {
			t.Errorf("a walk of %v, unseen %t: the next is allowed after %v and needed after %v, want %v and %v",
				c.took, c.unseen, rest, due, c.rest, c.due)
		}
	}
}

// nest makes folders called d, so many below one another, with a file called f in the last, and returns a descriptor of each.
func nest(t *testing.T, dir string, folders int) []int {
	t.Helper()
	at, err := unix.Open(dir, folderFlags, 0)
	if err != nil {
		t.Fatal(err)
	}
	made := []int{at}
	for range folders {
		if err := unix.Mkdirat(at, "d", 0o755); err != nil {
			t.Fatal(err)
		}
		if at, err = unix.Openat(at, "d", folderFlags, 0); err != nil {
			t.Fatal(err)
		}
		made = append(made, at)
	}
	f, err := unix.Openat(at, "f", unix.O_CREAT|unix.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	_, err = unix.Write(f, make([]byte, 8192))
	if err := errors.Join(err, unix.Close(f)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, fd := range made {
			_ = unix.Close(fd)
		}
	})
	return made
}

// Folders are measured however deep they are nested.
func TestMeasureDepth(t *testing.T) {
	for _, folders := range []int{deepest - 1, deepest, deepest + 1, 5 * deepest} {
		dir := t.TempDir()
		nest(t, dir, folders)
		if got, err := measure(t.Context(), dir, nil); err != nil || got.files != int64(folders)+1 || got.depth != folders || got.bytes < 8192 {
			t.Errorf("%d folders below one another: got %d bytes in %d files %d deep, %v", folders, got.bytes, got.files, got.depth, err)
		}
	}
}

// Moving folders far below while they are measured does not lead the walk anywhere else.
func TestMeasureFarSwap(t *testing.T) {
	dir := t.TempDir()
	made := nest(t, dir, deepest+20)
	low, top := made[deepest+2], made[0]
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat(low, "d", top, "e")
				_ = unix.Renameat(top, "e", low, "d")
			}
		}
	}()
	for range 200 {
		if got, err := measure(t.Context(), dir, nil); err != nil && !errors.Is(err, errRestless) || got.files > 2*(deepest+21) {
			t.Errorf("got %d files, %v, want at most those that are there twice", got.files, err)
			break
		}
	}
	close(stop)
	<-stopped
}

// A command that nests folders without end is ended. The space goes on, keeps them and deletes them, and may not nest them deeper.
func TestDeepFolders(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	const deeper = "while mkdir d && cd d; do :; done 2>/dev/null; sleep 1000"
	for _, c := range []struct{ command, limit, want string }{
		{deeper, "folder_depth", ""}, {"ls", "", "d\n"}, {"for i in 1 2; do mv d e; mkdir d; mv e d/d; done; sleep 1000", "folder_depth", ""},
		{"rm -r d && ls && echo gone", "", "gone\n"},
	} {
		if r := h.Exec(t, s, spacetest.Shell(spec.ID, c.command)); r.Exit.Limit != c.limit || c.limit == "" && r.Exit.Code != 0 ||
			r.Stdout != c.want {
			t.Errorf("%.20s: got %+v", c.command, r)
		}
	}
}

// TestMeasureSwap replaces a folder by a link to the host's root while it is measured: the walk never follows it.
func TestMeasureSwap(t *testing.T) {
	dir := t.TempDir()
	at, aside := filepath.Join(dir, "at"), filepath.Join(dir, "aside")
	if err := os.MkdirAll(filepath.Join(at, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", aside); err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, aside, unix.RENAME_EXCHANGE)
			}
		}
	}()
	for range 2000 {
		if got, err := measure(t.Context(), dir, nil); err != nil || got.files > 4 {
			t.Errorf("got %d files, %v, want at most 4", got.files, err)
			break
		}
	}
	close(stop)
	<-stopped
}
