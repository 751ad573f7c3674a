package sqlite_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/audit"
	"agentbox/internal/testkit/platter"
)

// tears is how many ways there are in which a busy disk is cut off at each moment. Each is drawn anew at each moment, so a few of them
// tear every kind of write; make soak tries more.
var tears = flag.Int("tears", 3, "ways in which a busy disk is cut off at each moment")

// acknowledged is a mark: a batch that Append has returned.
type acknowledged struct{ events []event.Event }

// TestPowerFailsAtEachMoment runs a workload over a file layer that records every write, truncation and sync, and rebuilds the files as
// they may be at every one of these moments: after a kill, after a kill in the middle of a write, after a power cut that leaves what was
// synced alone, and after power cuts that leave any sectors of the rest. Each time the log opens, verifies, holds every event that was
// acknowledged, no half of a batch that was not, the documents that its events make, and goes on.
func TestPowerFailsAtEachMoment(t *testing.T) {
	t.Parallel()
	disk := platter.Load(nil)
	trial := newTrial(t, workload(t, disk, filepath.Join(t.TempDir(), "log.db"), false))
	for m := range disk.Moments() {
		trial.try(m, *tears)
	}
	trial.report(disk, 400)
}

// The same where a commit is large, touches pages all over a file of some size, and writes a piece of the postings.
func TestPowerFailsInALargeLog(t *testing.T) {
	t.Parallel()
	var disk *platter.Disk
	trial := newTrial(t, large(t, func(files platter.Files) *platter.Disk {
		disk = platter.Load(files)
		return disk
	}))
	for m := range disk.Moments() {
		if m.At%3 == 0 || *tears > 3 { // two writes in a row leave nearly the same, and each state is a thousand events to verify
			trial.try(m, 1)
		}
	}
	trial.report(disk, 200)
}

// A disk that says that it has synced, and has not, loses what was acknowledged; else the tests above could not fail.
func TestPowerFailsOnADiskThatLies(t *testing.T) {
	t.Parallel()
	disk := platter.Load(nil)
	trial := newTrial(t, workload(t, disk, filepath.Join(t.TempDir(), "log.db"), true))
	lost := 0
	trial.failed = func(_ string, err error) {
		if strings.Contains(err.Error(), "was acknowledged") { // or the file is not a database any more
			lost++
		}
	}
	for m := range disk.Moments() {
		if m.At%8 == 0 {
			trial.try(m, 1)
		}
	}
	if lost < 10 {
		t.Errorf("events were lost in %d states, want at least 10", lost)
	}
}

// The crash that follows a crash: the power fails at each moment at which a log that it has torn is being opened, appended to and closed.
func TestPowerFailsAgain(t *testing.T) {
	t.Parallel()
	disk := platter.Load(nil)
	sizes := workload(t, disk, filepath.Join(t.TempDir(), "log.db"), false)
	chance := rand.New(rand.NewPCG(2, 2))
	trial := newTrial(t, sizes)
	for m := range disk.Moments() {
		if m.At%61 != 30 {
			continue
		}
		files, dir := m.Torn(chance), t.TempDir()
		if err := files.Write(dir); err != nil {
			t.Fatal(err)
		}
		again := platter.Load(files)
		for _, mark := range m.Marks {
			again.Mark(mark)
		}
		known := again.Len()
		w := &writer{t: t, disk: again, sizes: sizes, first: 1000 * m.At}
		w.open(filepath.Join(dir, "log.db"))
		for range 3 {
			w.append(2, "")
		}
		w.close()
		for m := range again.Moments() {
			if m.At >= known {
				trial.try(m, (*tears+2)/3)
			}
		}
	}
	t.Logf("%d states opened", len(trial.seen))
	if len(trial.seen) < 100 {
		t.Errorf("%d different states, want at least 100", len(trial.seen))
	}
}

// writer appends batches whose events say to which they belong.
type writer struct {
	t    *testing.T
	log  *sqlite.Journal
	disk *platter.Disk
	lies bool // about syncs

	mu    sync.Mutex // guards sizes
	first int
	sizes map[string]int // events of each batch, by its name
}

// append appends a batch of n events, with a key if one is named, and marks the moment from which on it must be there.
func (w *writer) append(n int, key string) {
	w.mu.Lock()
	name := fmt.Sprintf("b%d", w.first+len(w.sizes))
	w.sizes[name] = n
	w.mu.Unlock()
	b := event.Batch{Workspace: journaltest.Workspace, Key: key}
	if key != "" {
		b.Digest = event.DigestOf([]byte(key))
	}
	for i := range n {
		text := name + strings.Repeat(".", i%5*150)
		b.Drafts = append(b.Drafts, journaltest.InRoom(journaltest.Room, text).About("note", fmt.Sprint("n", (len(name)+i)%7)))
	}
	receipt, err := w.log.Append(w.t.Context(), b)
	if err != nil {
		w.t.Error(err)
		return
	}
	w.disk.Mark(acknowledged{receipt.Events})
}

// workload fills a log twice, with what the committer and the checkpoints do in between, and returns the sizes of its batches by name.
func workload(t *testing.T, disk *platter.Disk, path string, lies bool) map[string]int {
	t.Helper()
	w := &writer{t: t, disk: disk, lies: lies, sizes: map[string]int{}}
	w.open(path)
	for i := range 10 {
		w.append(1+i%3, fmt.Sprint("key", i))
	}
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for i := range 6 {
				w.append(1+i%3, "")
			}
		})
	}
	writers.Wait()
	if err := w.log.Rebuild(t.Context(), "notes"); err != nil {
		t.Fatal(err)
	}
	w.close()
	w.open(path)
	for range 4 {
		w.append(2, "")
	}
	w.close()
	return w.sizes
}

// large appends to a log that has many events until a piece of the postings is written, and returns the sizes of its batches by name.
func large(t *testing.T, disk func(platter.Files) *platter.Disk) map[string]int {
	t.Helper()
	dir := t.TempDir()
	w := &writer{t: t, disk: platter.Load(nil), sizes: map[string]int{}}
	w.open(filepath.Join(dir, "log.db"))
	w.append(1000, "")
	w.close()
	files, err := platter.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	w.disk = disk(files)
	w.open(filepath.Join(dir, "log.db"))
	for range 4 {
		w.append(20, "")
	}
	w.close()
	return w.sizes
}

func (w *writer) open(path string) {
	w.t.Helper()
	o := options(path, journaltest.Notes(1), journaltest.Rooms(1))
	o.VFS, o.Clock = recording(w.t, w.disk, w.lies), hasty{}
	var err error
	if w.log, err = sqlite.Open(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) close() {
	w.t.Helper()
	if err := w.log.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// hasty is a clock whose timers fire at once: the committer tidies up as soon as nothing waits.
type hasty struct{ clock }

func (hasty) NewTimer(time.Duration) (<-chan time.Time, func()) {
	fired := make(chan time.Time, 1)
	fired <- time.Time{}
	return fired, func() {}
}

// trial opens what is left at moments.
type trial struct {
	t     *testing.T
	sizes map[string]int
	seen  map[[sha256.Size]byte]int // different files, and the most that was acknowledged when they were opened

	failed                    func(state string, err error)
	killed, halved, cut, torn int
}

func newTrial(t *testing.T, sizes map[string]int) *trial {
	t.Helper()
	c := &trial{t: t, sizes: sizes, seen: map[[sha256.Size]byte]int{}}
	c.failed = func(state string, err error) { t.Errorf("%s: %v", state, err) }
	return c
}

// try opens what may be left at a moment, with so many ways in which a busy disk may be cut off.
func (c *trial) try(m *platter.Moment, torn int) {
	c.t.Helper()
	chance := rand.New(rand.NewPCG(uint64(m.At), 1))
	c.killed++
	c.open(m, "killed", m.Killed())
	if files, ok := m.Halved(chance); ok {
		c.halved++
		c.open(m, "halved", files)
	}
	c.cut++
	c.open(m, "cut", m.Cut())
	for i := range torn {
		c.torn++
		c.open(m, fmt.Sprint("torn ", i), m.Torn(chance))
	}
}

// report says what was tried; different states fewer than least mean that the workload does too little.
func (c *trial) report(disk *platter.Disk, least int) {
	c.t.Helper()
	c.t.Logf("%d steps, %d batches; states: %d killed, %d halved, %d cut, %d torn; %d different ones opened", disk.Len(), len(c.sizes),
		c.killed, c.halved, c.cut, c.torn, len(c.seen))
	if len(c.seen) < least {
		c.t.Errorf("%d different states, want at least %d", len(c.seen), least)
	}
}

// open holds files against what was acknowledged at a moment. The same files are opened again only if more has to be in them.
func (c *trial) open(m *platter.Moment, how string, files platter.Files) {
	c.t.Helper()
	digest := files.Digest()
	if most, ok := c.seen[digest]; ok && most >= len(m.Marks) {
		return
	}
	c.seen[digest] = len(m.Marks)
	dir, err := os.MkdirTemp(c.t.TempDir(), "")
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := files.Write(dir); err != nil {
		c.t.Fatal(err)
	}
	if err := c.check(c.t.Context(), filepath.Join(dir, "log.db"), m.Marks); err != nil {
		c.failed(fmt.Sprintf("%s at step %d, with %d acknowledged", how, m.At, len(m.Marks)), err)
	}
}

func (c *trial) check(ctx context.Context, path string, marks []any) (err error) {
	o := options(path, journaltest.Notes(1), journaltest.Rooms(1))
	log, err := sqlite.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := intact(path); err != nil {
		return err
	}
	there := map[string]int{}
	places := map[uint64]event.Event{}
	for from := uint64(1); ; {
		events, err := log.Read(ctx, journal.Query{Workspace: journaltest.Workspace, From: from, Limit: journal.MaxRead})
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		for _, e := range events {
			note, err := event.Decode[journaltest.Note](e)
			if err != nil {
				return err
			}
			there[strings.TrimRight(note.Text, ".")]++
			places[e.Seq] = e
			from = e.Seq + 1
		}
		if len(events) == 0 {
			break
		}
	}
	for name, n := range there {
		if n != c.sizes[name] {
			return fmt.Errorf("%d of the %d events of batch %s are there", n, c.sizes[name], name)
		}
	}
	for _, m := range marks {
		for _, e := range m.(acknowledged).events {
			if got := places[e.Seq]; got.ID != e.ID || got.Chain.Hash != e.Chain.Hash {
				return fmt.Errorf("event %s was acknowledged at %d, and there is %q", e.ID, e.Seq, got.ID)
			}
		}
	}
	return c.verify(ctx, log)
}

// verify proves the log and its documents, and that it goes on.
func (c *trial) verify(ctx context.Context, log *sqlite.Journal) error {
	defs := []projection.Definition{journaltest.Notes(1), journaltest.Rooms(1)}
	if documents, err := audit.VerifyProjections(ctx, log, log, defs, journaltest.Workspace); err != nil || !documents.OK {
		return fmt.Errorf("verify the documents: %v, %w", documents.Findings, err)
	}
	if _, err := log.Append(ctx, journaltest.Batch(journaltest.InRoom(journaltest.Room, "on").About("note", "n1"))); err != nil {
		return fmt.Errorf("go on: %w", err)
	}
	if report, err := audit.Verify(ctx, log, journaltest.Workspace); err != nil || !report.OK {
		return fmt.Errorf("verify: %v, %w", report.Findings, err)
	}
	return nil
}

// intact lets SQLite check the structure of a database that is open elsewhere.
func intact(path string) (err error) {
	conn, err := sqlite3.OpenFlags("file:"+path, sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	stmt, _, err := conn.Prepare(`PRAGMA integrity_check`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stmt.Close()) }()
	if !stmt.Step() || stmt.ColumnText(0) != "ok" {
		return fmt.Errorf("the database is not intact: %s, %w", stmt.ColumnText(0), stmt.Err())
	}
	return nil
}
