package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/sqlite"
)

// A log is opened again where there is the room for it, to the page, and the try leaves nothing behind.
func TestRoomBeforeALogOpensAgain(t *testing.T) {
	leaveOut := t.Skip
	if os.Getenv("CI") != "" {
		leaveOut = t.Fatal
	}
	if os.Geteuid() != 0 {
		leaveOut("only root can mount a small disk")
	}
	page := os.Getpagesize()
	for _, less := range []int{0, page} {
		dir := t.TempDir()
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", 2*sqlite.MendingRoom)); err != nil {
			leaveOut("this host mounts nothing: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Errorf("unmount the small disk: %v", err)
			}
		})
		if err := os.WriteFile(filepath.Join(dir, "ballast"), make([]byte, sqlite.MendingRoom+less), 0o600); err != nil {
			t.Fatal(err)
		}
		err := sqlite.TryRoom(filepath.Join(dir, "log.db"))
		if full := errors.Is(err, unix.ENOSPC); full != (less > 0) || !full && err != nil {
			t.Errorf("with %d bytes less than it takes: got %v", less, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("with %d bytes less than it takes: left %v, %v", less, left, err)
		}
	}
}
