package sqlite_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
)

// childPath names the log that a child process of the tests is to write.
const childPath = "AGENTBOX_TEST_LOG"

func TestMain(m *testing.M) {
	if path := os.Getenv(childPath); path != "" {
		fmt.Fprintln(os.Stderr, write(path))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// clock is the time of day.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func options(path string, defs ...projection.Definition) sqlite.Options {
	return sqlite.Options{Path: path, Definitions: defs, Clock: clock{}, IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader}
}

// write appends until it is killed, and tells of each acknowledgement.
func write(path string) error {
	ctx := context.Background()
	log, err := sqlite.Open(ctx, options(path, journaltest.Notes(1), journaltest.Rooms(1)))
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				drafts := journaltest.Batch(journaltest.InRoom(journaltest.Room, strings.Repeat("x", i%7*100)).About("note", fmt.Sprint("n", w)),
					journaltest.Draft("y"))
				receipt, err := log.Append(ctx, drafts)
				if err != nil {
					return
				}
				mu.Lock()
				for _, e := range receipt.Events {
					fmt.Println(e.Seq, e.ID)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return log.Close()
}

// Events that were acknowledged before a writer was killed are in the log afterwards, at the same place, again and again on the same file.
func TestKilledWriter(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "log.db")
	acknowledged := map[id.Event]uint64{}
	for round := range 8 {
		child := exec.Command(self)
		child.Env = append(os.Environ(), childPath+"="+path)
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		child.Stderr = &said
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			var seq uint64
			var e id.Event
			// A line that the kill cut off says nothing.
			if _, err := fmt.Sscan(lines.Text(), &seq, &e); err == nil && len(e) == 36 {
				acknowledged[e] = seq
			}
			if n == 100+round*171 {
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := child.Wait(); err == nil || said.Len() > 0 {
			t.Fatalf("the writer ended by itself: %v, %s", err, said.String())
		}
		log, err := sqlite.Open(t.Context(), options(path, journaltest.Notes(1), journaltest.Rooms(1)))
		if err != nil {
			t.Fatal(err)
		}
		checkAll(t, log, acknowledged)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) < 1000 {
		t.Errorf("only %d events were acknowledged", len(acknowledged))
	}
}
