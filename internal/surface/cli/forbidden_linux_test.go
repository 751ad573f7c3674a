package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/cmdline"
)

// TestADaemonOfSomebodyElse looks for the daemon of a data directory that another user has. The advice is not to start one.
func TestADaemonOfSomebodyElse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "daemon.json"), []byte(`{"addr":"127.0.0.1:1","pid":1}`), 0); err != nil {
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
	_, err := (&cmdline.Invocation{}).Serving(t.Context(), dir)
	f, ok := cmdline.AsFault(err)
	if !ok || f.Kind != fault.Denied || f.Code != "data_forbidden" || !strings.Contains(f.Suggestion, "the user who runs the daemon") {
		t.Errorf("got %+v", err)
	}
}
