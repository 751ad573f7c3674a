//go:build linux

package main_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/app"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/testkit/platter"
)

// report is the daemon's answer about an acknowledged run.
type report struct {
	run    id.Run
	events string // its results, as JSON
}

// TestThePowerFailsUnderTheDaemon traces the system calls of a daemon that works, and rebuilds its data directory as it may be after a kill
// and after a power cut at each moment: log, contents and live output, with no layer of it replaced. Each time the log verifies, the daemon
// opens it, every run that was acknowledged is there with every result, also the long ones that lie apart, and its output can be followed
// to the end or says that it was damaged. AGENTBOX_MOMENTS says how many moments are tried; 30 unless it does.
func TestThePowerFailsUnderTheDaemon(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	disk := platter.Load(nil)
	c := &victim{t: t, bin: "agentbox", dir: dir, seen: map[string]string{}, chance: rand.New(rand.NewPCG(5, 6))}
	traced := make(chan error, 1)
	c.daemon = exec.Command(c.bin, "up", "--data", dir, "--listen", "127.0.0.1:0")
	c.daemon.Stderr = &c.output
	go func() {
		err := platter.Trace(c.daemon, dir, disk)
		if err != nil {
			t.Errorf("trace: %v", err)
		}
		traced <- err
	}()
	within(t, 5*time.Minute, "the traced daemon to be ready", c.ready) // each of its system calls stops it
	c.space = c.post("/v1/spaces", `{"name":"power","runtime":"heavy","ttl_seconds":3600}`)["id"].(string)
	for n := range 4 {
		disk.Mark(c.reported(n))
	}
	if err := c.daemon.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-traced; err != nil {
		t.Fatalf("%v\n%s", err, c.output.String())
	}
	tried, different := 0, map[[sha256.Size]byte]bool{}
	stride := max(1, disk.Len()/moments(t))
	for m := range disk.Moments() {
		if m.At%stride != 0 {
			continue
		}
		chance := rand.New(rand.NewPCG(uint64(m.At), 7))
		for how, files := range map[string]platter.Files{"killed": m.Killed(), "cut": m.Cut(), "torn": m.Torn(chance)} {
			tried++
			digest := files.Digest()
			if different[digest] {
				continue
			}
			different[digest] = true
			if err := reopened(t, files, m.Marks); err != nil {
				t.Errorf("%s at step %d of %d, with %d runs acknowledged: %v", how, m.At, disk.Len(), count(m.Marks), err)
			}
		}
	}
	t.Logf("%d steps; %d states tried, %d different ones", disk.Len(), tried, len(different))
	if len(different) < 30 {
		t.Errorf("%d different states, want at least 30", len(different))
	}
}

func moments(t *testing.T) int {
	t.Helper()
	asked := os.Getenv("AGENTBOX_MOMENTS")
	if asked == "" {
		return 30
	}
	n, err := strconv.Atoi(asked)
	if err != nil || n < 1 {
		t.Fatalf("AGENTBOX_MOMENTS is %q, and is to be a number of moments", asked)
	}
	return n
}

func count(marks []any) (n int) {
	for _, m := range marks {
		if _, ok := m.(report); ok {
			n++
		}
	}
	return n
}

// reported asks for a run of each kind of operation, waits for its end and returns what was answered.
func (c *victim) reported(n int) report {
	c.t.Helper()
	ops := []map[string]any{
		{"type": "createFile", "id": "make", "path": fmt.Sprint("f", n), "content": strings.Repeat("content ", 1000*n)},
		{"type": "shell", "id": "short", "command": "echo short"},
		{"type": "shell", "id": "long", "command": "head -c 70000 /dev/zero | tr '\\0' x"},
		{"type": "readFile", "id": "read", "path": fmt.Sprint("f", n)},
	}
	body, _ := json.Marshal(map[string]any{"protocolVersion": "1.0", "operations": ops, "wait": 30})
	answer := c.post("/v1/spaces/"+c.space+"/runs", string(body))
	if answer["status"] != "completed" {
		c.t.Fatalf("the run is %v", answer)
	}
	events, _ := json.Marshal(answer["events"])
	return report{id.Run(answer["runId"].(string)), string(events)}
}

// reopened opens what is left of a data directory and holds it against what was acknowledged.
func reopened(t *testing.T, files platter.Files, marks []any) (err error) {
	t.Helper()
	dir, err := os.MkdirTemp(t.TempDir(), "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data := filepath.Join(dir, "data")
	if err := files.Write(data); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := app.Open(ctx, app.Default(data), app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for _, m := range marks {
		if acknowledged, ok := m.(report); ok {
			err = errors.Join(err, holds(ctx, a, acknowledged))
		}
	}
	if err := errors.Join(err, a.Close()); err != nil {
		return err
	}
	audits, err := app.Verify(ctx, app.Default(data))
	for _, audit := range audits {
		if !audit.Log.OK || !audit.Documents.OK {
			return fmt.Errorf("verify: %+v", audit)
		}
	}
	return err
}

// holds compares a run with what was acknowledged of it, and follows its output to the end.
func holds(ctx context.Context, a *app.App, acknowledged report) error {
	doc, err := a.Runs.History.Find(ctx, id.DefaultWorkspace, acknowledged.run)
	if err != nil {
		return err
	}
	m, err := a.Runs.History.Events(ctx, doc)
	if err != nil {
		return fmt.Errorf("the results of %s: %w", doc.ID, err)
	}
	raw, err := json.Marshal(m.Events)
	if err != nil {
		return err
	}
	var got any
	if err := json.Unmarshal(raw, &got); err != nil {
		return err
	}
	if raw, err = json.Marshal(got); err != nil || string(raw) != acknowledged.events {
		return fmt.Errorf("the results of %s are %.300s, and were %.300s", doc.ID, raw, acknowledged.events)
	}
	last := ""
	for f, err := range a.Runs.Frames.Follow(ctx, id.DefaultWorkspace, doc.ID, 1) {
		if fault.CodeOf(err) == "stream_damaged" {
			return nil // frames that nobody has synced came to the disk out of order; that is said, and the results are there
		}
		if err != nil {
			return fmt.Errorf("follow %s: %w", doc.ID, err)
		}
		last = f.Kind
	}
	if last != livestream.Complete {
		return fmt.Errorf("the output of %s ends with %q", doc.ID, last)
	}
	return nil
}
