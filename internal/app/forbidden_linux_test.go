package app

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
)

// TestADataDirectoryOfSomebodyElse reads the note of a data directory that another user has. The advice is not to move the note away: it
// shows that the log beside it was not set back.
func TestADataDirectoryOfSomebodyElse(t *testing.T) {
	dir := t.TempDir()
	note := filepath.Join(dir, noteFile)
	if err := os.WriteFile(note, []byte(`{"version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &directory{path: dir}
	if err := d.read(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(note, 0); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // of this thread only
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if _, err := unix.SetfsuidRetUid(65534); err != nil {
			t.Fatal(err)
		}
		defer func() { _, _ = unix.SetfsuidRetUid(0) }()
	}
	err := d.read()
	f, ok := err.(*fault.Error)
	if !ok || f.Kind != fault.Denied || f.Code != "data_forbidden" || strings.Contains(f.Suggestion, "move") ||
		!strings.Contains(f.Suggestion, "the user who runs the daemon") {
		t.Errorf("got %+v", err)
	}
}
