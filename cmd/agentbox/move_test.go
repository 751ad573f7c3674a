package main_test

import (
	"bytes"
	crand "crypto/rand"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/service/transfer"
)

// TestAnImportThatIsKilled is killed with most of the events in its transaction: nothing of the workspace is there, and the same import
// made again takes it in.
func TestAnImportThatIsKilled(t *testing.T) {
	t.Parallel()
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
	if _, err := transfer.Write(t.Context(), &file, transfer.Source{Log: log, Contents: memory.NewBlobs()}, journaltest.Workspace, time.Time{},
		"test"); err != nil {
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
	if out, err := exec.CommandContext(t.Context(), "agentbox", "export", filepath.Join(dir, "none"), "--data",
		data).CombinedOutput(); err == nil {
		t.Errorf("after the kill there is a workspace:\n%s", out)
	}
	for _, command := range [][]string{{"import", whole}, {"audit", "verify"}} {
		if out, err := exec.CommandContext(t.Context(), "agentbox", append(command, "--data", data)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
}

// sentFile is the file of a workspace of n thousand events.
func sentFile(t *testing.T, ws id.Workspace, n int) []byte {
	t.Helper()
	setup := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, setup.Clock, id.NewSource(time.Now, crand.Reader), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for range n {
		var drafts []event.Draft
		for len(drafts) < journal.MaxBatch {
			drafts = append(drafts, event.New("note.added", event.Origin{Principal: journaltest.User}, ws, "",
				map[string]string{"text": strings.Repeat("some text ", 40)}))
		}
		if _, err := log.Append(t.Context(), event.Batch{Workspace: ws, Drafts: drafts}); err != nil {
			t.Fatal(err)
		}
	}
	var file bytes.Buffer
	if _, err := transfer.Write(t.Context(), &file, transfer.Source{Log: log, Contents: memory.NewBlobs()}, ws, time.Time{},
		"test"); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestTheDaemonIsKilledWhileItImports kills the daemon with SIGKILL while it takes a workspace in. Afterwards all of it is there or
// nothing, and nothing acknowledged is lost. The same request again, under its key, has the workspace there once. The log verifies each
// time.
func TestTheDaemonIsKilledWhileItImports(t *testing.T) {
	t.Parallel()
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, chance: rand.New(rand.NewPCG(9,
		10))}
	c.start()
	whole, nothing, took := 0, 0, time.Second
	for round := range max(kills(t)/8, 3) {
		c.round = round
		ws := fmt.Sprintf("ws_moved%d", round)
		file := string(sentFile(t, id.Workspace(ws), 5))
		headers := []string{"Content-Type", "application/gzip", "Idempotency-Key", ws}
		answered := make(chan bool, 1)
		began := time.Now()
		go func() {
			status, _, ok := c.once("POST", "/v1/workspaces/import", file, headers...)
			answered <- ok && status == 201
		}()
		acknowledged := false
		if round == 0 { // the first tells how long it takes
			if acknowledged = <-answered; !acknowledged {
				t.Fatal("an import that nobody disturbed is not acknowledged")
			}
			took = time.Since(began)
			c.kill()
		} else {
			select {
			case <-time.After(time.Duration(c.chance.Int64N(int64(took)))): // the moment of the kill
			case <-t.Context().Done():
			}
			c.kill()
			acknowledged = <-answered
		}
		c.verify()
		events := c.exported(ws)
		switch {
		case events != 0 && events != 5_000, acknowledged && events == 0:
			t.Fatalf("round %d: %d events are there, acknowledged: %v", round, events, acknowledged)
		case events == 0:
			nothing++
		default:
			whole++
		}
		c.start()
		for range 2 {
			if status, answer, ok := c.call("POST", "/v1/workspaces/import", file, headers...); !ok || status != 201 || answer["events"] != 5_000.0 {
				t.Fatalf("round %d: the same request again: %d %v", round, status, answer)
			}
		}
	}
	c.end()
	c.verify()
	for round := range c.round + 1 {
		if events := c.exported(fmt.Sprintf("ws_moved%d", round)); events != 5_000 {
			t.Errorf("in the end workspace %d has %d events", round, events)
		}
	}
	t.Logf("of %d imports %d were there as a whole after the kill, and %d not at all", c.round+1, whole, nothing)
}

// exported returns how many events a workspace has, 0 where there is none.
func (c *victim) exported(ws string) int {
	c.t.Helper()
	to := filepath.Join(c.t.TempDir(), "ws.tar.gz")
	out, err := exec.CommandContext(c.t.Context(), c.bin, "export", to, "--workspace", ws, "--data", c.dir, "--json").Output()
	if err != nil {
		return 0
	}
	var moved struct {
		Events int `json:"events"`
	}
	if err := json.Unmarshal(out, &moved); err != nil {
		c.t.Fatal(err)
	}
	return moved.Events
}

// TestACommandImportsIntoARunningDaemon sends the file where a daemon runs, and writes the data directory itself where none does.
func TestACommandImportsIntoARunningDaemon(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	dir := t.TempDir()
	for n, running := range []bool{true, false} {
		ws := fmt.Sprintf("ws_moved%d", n)
		file := filepath.Join(dir, ws)
		if err := os.WriteFile(file, sentFile(t, id.Workspace(ws), 1), 0o600); err != nil {
			t.Fatal(err)
		}
		if !running {
			c.end()
		}
		said := "the running daemon: 1000 events and 0 contents of " + ws
		if !running {
			said = c.dir + ": 1000 events and 0 contents of " + ws
		}
		out, err := exec.CommandContext(t.Context(), c.bin, "import", file, "--data", c.dir).CombinedOutput()
		if err != nil || !strings.Contains(string(out), said) {
			t.Errorf("running: %v: %v\n%s\nwant %s", running, err, out, said)
		}
		out, err = exec.CommandContext(t.Context(), c.bin, "import", file, "--data", c.dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "has events here already") {
			t.Errorf("a second time, running: %v: %v\n%s", running, err, out)
		}
		if c.exported(ws) != 1000 {
			t.Errorf("running: %v: it has %d events", running, c.exported(ws))
		}
	}
	c.verify()
}
