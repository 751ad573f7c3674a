package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/service/mover"
)

// TestAnImportThatIsKilled is killed with most of the events in its transaction: nothing of the workspace is there, and the same import made
// again takes it in.
func TestAnImportThatIsKilled(t *testing.T) {
	setup := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, setup.Clock, setup.IDs, setup.Entropy)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range 20 {
		b := journaltest.Batch(journaltest.Draft("x"))
		for len(b.Drafts) < journal.MaxBatch {
			b.Drafts = append(b.Drafts, journaltest.Draft("some text of a note"))
		}
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if _, err := mover.Write(t.Context(), &file, mover.Source{Log: log, Contents: memory.NewBlobs()}, journaltest.Workspace, time.Time{}, "test"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pipe, data, whole := filepath.Join(dir, "pipe"), filepath.Join(dir, "data"), filepath.Join(dir, "ws.tar.gz")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(whole, file.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	killed := exec.CommandContext(t.Context(), "agentbox", "import", pipe, "--data", data)
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	feed, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// All but the end: when the pipe has taken it, the process has read all but what the pipe holds, 64 KiB at most.
	if _, err := feed.Write(file.Bytes()[:file.Len()-1024]); err != nil {
		t.Fatal(err)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := killed.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("it ended by itself: %v", err)
	}
	feed.Close()
	if out, err := exec.CommandContext(t.Context(), "agentbox", "export", filepath.Join(dir, "none"), "--data", data).CombinedOutput(); err == nil {
		t.Errorf("after the kill there is a workspace:\n%s", out)
	}
	for _, command := range [][]string{{"import", whole}, {"audit", "verify"}} {
		if out, err := exec.CommandContext(t.Context(), "agentbox", append(command, "--data", data)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}
