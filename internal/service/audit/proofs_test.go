package audit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// house is a data directory: a log, its trees and its key.
type house struct {
	t       *testing.T
	dir     string
	private merkle.PrivateKey
	key     merkle.PublicKey
}

func newHouse(t *testing.T) *house {
	t.Helper()
	private, public, err := merkle.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &house{t, t.TempDir(), private, public}
}

func (h *house) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *house) path() string         { return filepath.Join(h.dir, "log.db") }
func (h *house) trees() *trees.Store  { return trees.Open(filepath.Join(h.dir, "proofs"), clock{}) }
func (h *house) log() *sqlite.Journal { return open(h.t, h.path()) }

type clock struct{}

func (clock) Now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func (clock) NewTimer(time.Duration) (<-chan time.Time, func()) { return nil, func() {} }

// grow starts the daemon's part, appends n events to three streams, signs, and stops.
func (h *house) grow(n int) {
	h.t.Helper()
	log := h.log()
	signer := h.signer(log, h.trees())
	h.must(signer.Recover(h.t.Context()))
	for range n {
		appendOne(h.t, log)
	}
	h.must(signer.Step(h.t.Context()))
	h.must(log.Close())
}

func appendOne(t *testing.T, log journal.Journal) {
	t.Helper()
	head, err := log.Head(t.Context(), ws)
	if err != nil {
		t.Fatal(err)
	}
	draft := journaltest.Draft(fmt.Sprint("text ", head+1))
	if head%3 > 0 {
		draft = journaltest.InRoom(id.Room(fmt.Sprint("room_", head%3)), fmt.Sprint("text ", head+1))
	}
	if _, err := log.Append(t.Context(), journaltest.Batch(draft)); err != nil {
		t.Fatal(err)
	}
}

func (h *house) signer(log journal.Journal, trees merkle.Store) *audit.Signer {
	h.t.Helper()
	signer, err := audit.NewSigner(log, trees, h.private)
	h.must(err)
	return signer
}

// start is what a daemon does first.
func (h *house) start() error {
	log := h.log()
	err := h.signer(log, h.trees()).Recover(h.t.Context())
	h.must(log.Close())
	return err
}

// verify verifies against the own checkpoint and those that others hold.
func (h *house) verify(others ...audit.Held) audit.Report {
	h.t.Helper()
	held, err := audit.OwnCheckpoint(h.t.Context(), h.trees(), ws, h.key)
	h.must(err)
	log, err := sqlite.OpenReadOnly(h.t.Context(), options(h.path()))
	h.must(err)
	report, documents, err := audit.Audit(h.t.Context(), log, log, definitions, ws, append(held, others...)...)
	h.must(errors.Join(err, log.Close()))
	if report.OK && !documents.OK {
		h.t.Errorf("documents: %+v", documents)
	}
	return report
}

// copyOf copies files or folders of the data directory.
func (h *house) copyOf(names ...string) (restore func()) {
	h.t.Helper()
	kept := h.t.TempDir()
	for _, name := range names {
		copyTree(h.t, filepath.Join(h.dir, name), filepath.Join(kept, name))
	}
	return func() {
		for _, name := range names {
			for _, suffix := range []string{"", "-wal", "-shm"} {
				h.must(os.RemoveAll(filepath.Join(h.dir, name+suffix)))
			}
			copyTree(h.t, filepath.Join(kept, name), filepath.Join(h.dir, name))
		}
	}
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

// change changes the log behind its back.
func (h *house) change(sql string) {
	h.t.Helper()
	conn, err := sqlite3.Open(h.path())
	h.must(err)
	behind(h.t, conn, sql)
	h.must(conn.Close())
}

// cutTo cuts the end of the log off, with every head and posting that names it.
func (h *house) cutTo(n int) {
	h.change(fmt.Sprintf(`
		DELETE FROM bodies WHERE place > (1 << 40) + %[1]d; DELETE FROM events WHERE place > (1 << 40) + %[1]d;
		UPDATE workspaces SET head = %[1]d, indexed = min(indexed, %[1]d), flushed = min(flushed, %[1]d),
			last = (SELECT substr(record, -40, 32) FROM events WHERE place = (1 << 40) + %[1]d);
		DELETE FROM streams WHERE no NOT IN (SELECT stream FROM events);
		UPDATE streams SET head = (SELECT max(stream_seq) FROM events e WHERE e.stream = streams.no),
			hash = (SELECT substr(record, -40, 32) FROM events e WHERE e.stream = streams.no ORDER BY stream_seq DESC LIMIT 1);
		DELETE FROM documents; DELETE FROM entries; DELETE FROM projections;`, n))
}

// A log that lost its end, that an older copy replaced, in which a byte was changed, or that was written anew from some place on, is found
// by the last checkpoint alone; the first bad event is named, and no daemon starts on it.
func TestThreat28LogTruncatedOrRolledBack(t *testing.T) {
	for _, c := range []struct {
		name       string
		do         func(h *house)
		kind, code string
		seq        uint64
	}{
		{"the tail is cut, with every head that names it", func(h *house) { h.cutTo(20) }, audit.Truncated, "log_rolled_back", 21},
		{"all but the first event is cut", func(h *house) { h.cutTo(1) }, audit.Truncated, "log_rolled_back", 2},
		{"one byte of the data is edited", func(h *house) {
			h.change(`UPDATE bodies SET body = CAST(replace(body, CAST('text 13' AS BLOB), CAST('text 14' AS BLOB)) AS BLOB)` + place(13))
		}, audit.CommitmentMismatch, "", 13},
		{"one byte of the envelope is edited", func(h *house) {
			h.change(`UPDATE events SET correlation = 'another'` + place(13))
		}, audit.EventHashMismatch, "", 13},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			h.grow(30)
			if report := h.verify(); !report.OK || len(report.Held) != 1 || !report.Held[0].OK || report.Held[0].Size != 30 {
				t.Fatalf("before: %+v", report)
			}
			c.do(h)
			report := h.verify()
			if report.OK || report.Findings[0].Kind != c.kind || report.Findings[0].Seq != c.seq {
				t.Errorf("got %+v, want %s at %d", report.Findings, c.kind, c.seq)
			}
			err := h.start()
			if fault.CodeOf(err) != c.code {
				t.Errorf("the daemon starts with %v, want %q", err, c.code)
			}
			if f, ok := errors.AsType[*fault.Error](err); ok && (!strings.Contains(f.Suggestion, "audit abandon") || !strings.Contains(f.Msg,
				"30")) {
				t.Errorf("the refusal does not say what happened and what to do: %+v", f)
			}
		})
	}
	for _, more := range []int{0, 5, 18, 40} {
		t.Run(fmt.Sprintf("an older copy of the log, and %d events after it", more), func(t *testing.T) {
			h := newHouse(t)
			h.grow(12)
			restore := h.copyOf("log.db")
			h.grow(18)
			restore()
			log := h.log()
			for range more {
				appendOne(t, log)
			}
			h.must(log.Close())
			report := h.verify()
			if report.OK || report.Count != 1 || report.Findings[0].Seq != 13 {
				t.Errorf("got %+v, want one finding at 13", report.Findings)
			}
			if err := h.start(); err == nil {
				t.Error("the daemon starts")
			}
		})
	}
}

// A data directory that was set back as a whole, with its checkpoint and its tree, is whole in itself. A witness that holds a later
// checkpoint finds it, names the first bad event, and takes nothing from it any more.
func TestThreat28WitnessCatchesAFullRollback(t *testing.T) {
	for _, more := range []int{0, 5, 18, 40} {
		t.Run(fmt.Sprint(more, " events after it"), func(t *testing.T) {
			h := newHouse(t)
			stick := trees.Open(filepath.Join(t.TempDir(), "stick"), clock{})
			h.grow(7)
			h.visit(stick, 0, 7)
			h.grow(5)
			restore := h.copyOf("log.db", "proofs")
			h.grow(18)
			h.visit(stick, 7, 30)
			h.visit(stick, 30, 30)
			restore()
			h.grow(more)
			if report := h.verify(); !report.OK {
				t.Fatalf("in itself it is whole: %+v", report.Findings)
			}
			if err := h.start(); err != nil {
				t.Fatalf("in itself it is whole: %v", err)
			}
			signed, err := stick.Checkpoint(t.Context(), ws)
			h.must(err)
			report := h.verify(audit.HeldNote("the stick", signed, ws, h.key, stick))
			if report.OK || report.Count != 1 || report.Findings[0].Seq != 13 || len(report.Held) != 2 {
				t.Errorf("got %+v, want one finding at 13", report)
			}
			// With the checkpoint alone, without the hashes below, the finding is less exact and still true.
			report = h.verify(audit.HeldNote("a note", signed, ws, h.key, nil))
			want := uint64(1)
			if 12+more < 30 {
				want = uint64(12+more) + 1
			}
			if 12+more == 30 {
				want = 1
			}
			if report.OK || report.Findings[0].Seq != want {
				t.Errorf("got %+v, want a finding at %d", report.Findings, want)
			}
			log := h.log()
			_, err = audit.NewProver(log, h.trees(), h.key).VisitStore(t.Context(), ws, "the stick", stick)
			h.must(log.Close())
			if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != "witness_disagrees" || !strings.Contains(f.Suggestion, "number 13;") {
				t.Errorf("the witness takes it: %+v", err)
			}
			if again, err := stick.Checkpoint(t.Context(), ws); err != nil || !bytes.Equal(again, signed) {
				t.Errorf("the witness has changed its mind: %s, %v", again, err)
			}
		})
	}
}

// visit brings the checkpoint to a witness.
func (h *house) visit(witness merkle.Store, old, size uint64) {
	h.t.Helper()
	log := h.log()
	v, err := audit.NewProver(log, h.trees(), h.key).VisitStore(h.t.Context(), ws, "the stick", witness)
	h.must(errors.Join(err, log.Close()))
	if v.Old != old || v.New != size {
		h.t.Errorf("visit %+v, want %d to %d", v, old, size)
	}
}

// A witness whose hashes were lost or changed gets them anew; one that holds a checkpoint of another key is not overwritten.
func TestWitnessOfItsOwnMind(t *testing.T) {
	h := newHouse(t)
	stick := trees.Open(filepath.Join(t.TempDir(), "stick"), clock{})
	h.grow(9)
	h.visit(stick, 0, 9)
	h.must(stick.WriteHashes(t.Context(), ws, 4, nil))
	h.grow(3)
	h.visit(stick, 9, 12)
	if root, err := merkle.RootAt(t.Context(), stick, ws, 12); err != nil || root == (merkle.Hash{}) {
		t.Errorf("root %s, %v", root, err)
	}
	other := newHouse(t)
	other.grow(30)
	log := other.log()
	_, err := audit.NewProver(log, other.trees(), other.key).VisitStore(t.Context(), ws, "the stick", stick)
	h.must(log.Close())
	if fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("got %v", err)
	}
}

// The findings of a daemon at its start: it makes a lost tree again, and refuses a checkpoint of another key and an old change under a lost
// tree.
func TestRecover(t *testing.T) {
	h := newHouse(t)
	if err := h.start(); err != nil {
		t.Fatal(err)
	}
	h.grow(30)
	hashes := filepath.Join(h.dir, "proofs", string(ws), "hashes")
	for name, spoil := range map[string]func() error{
		"lost": func() error { return os.Remove(hashes) }, "cut": func() error { return os.Truncate(hashes, 100) },
		"zeroed": func() error { return os.WriteFile(hashes, make([]byte, 59*32), 0o600) }, "longer": func() error {
			raw, err := os.ReadFile(hashes)
			return errors.Join(err, os.WriteFile(hashes, append(raw, make([]byte, 77)...), 0o600))
		},
	} {
		h.must(spoil())
		if err := h.start(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		h.grow(1)
		if report := h.verify(); !report.OK {
			t.Errorf("%s: %+v", name, report.Findings)
		}
	}
	h.must(os.Remove(hashes))
	h.change(`UPDATE events SET record = CAST(substr(record, 1, length(record) - 40) || randomblob(32) || substr(record, -8) AS BLOB)` +
		place(3))
	if err := h.start(); fault.CodeOf(err) != "log_replaced" {
		t.Errorf("an event that was changed under a lost tree: %v", err)
	}
	stranger := newHouse(t)
	stranger.dir = h.dir
	if err := stranger.start(); fault.CodeOf(err) != "checkpoint_foreign" {
		t.Errorf("another key: %v", err)
	}
	h.must(h.trees().Abandon(t.Context(), ws, "a test"))
	if err := stranger.start(); err != nil {
		t.Errorf("after it was given up: %v", err)
	}
}

// A Signer that was not recovered signs nothing; one whose store fails goes on from what it kept.
func TestSignerGoesOn(t *testing.T) {
	h := newHouse(t)
	log := inMemory(t)
	store := &failing{Store: memory.NewTrees()}
	signer := h.signer(log, store)
	if err := signer.Step(t.Context()); err == nil {
		t.Error("it signs without having looked")
	}
	h.must(signer.Recover(t.Context()))
	for n := range 40 {
		appendOne(t, log)
		store.write, store.keep = n%3 == 1, n%5 == 2
		err := signer.Step(t.Context())
		if failed := store.write || store.keep; (err != nil) != failed || (signer.Ready(t.Context()) != nil) != failed {
			t.Errorf("event %d: %v, ready %v", n, err, signer.Ready(t.Context()))
		}
		store.write, store.keep = false, false
		if n%7 == 0 {
			h.must(signer.Recover(t.Context()))
		}
	}
	h.must(signer.Step(t.Context()))
	held, err := audit.OwnCheckpoint(t.Context(), store, ws, h.key)
	h.must(err)
	report, err := audit.Verify(t.Context(), log, ws, held...)
	if err != nil || !report.OK || len(report.Held) != 1 || report.Held[0].Size != 40 {
		t.Errorf("%+v, %v", report, err)
	}
	kept := store.kept
	h.must(signer.Step(t.Context()))
	if store.kept != kept {
		t.Error("a checkpoint was signed though nothing was recorded")
	}
}

// failing is a store that fails when it is told to.
type failing struct {
	merkle.Store
	write, keep bool
	kept        int
}

func (f *failing) WriteHashes(ctx context.Context, ws id.Workspace, at int64, hashes []merkle.Hash) error {
	if f.write {
		return errors.Join(errors.New("no room"), f.Store.WriteHashes(ctx, ws, at, hashes[:len(hashes)/2]))
	}
	return f.Store.WriteHashes(ctx, ws, at, hashes)
}

func (f *failing) Keep(ctx context.Context, ws id.Workspace, note []byte) error {
	if f.keep {
		return errors.New("no room")
	}
	f.kept++
	return f.Store.Keep(ctx, ws, note)
}

// Checkpoints are signed while others append, each continues the one before, and the log verifies against all of them at any moment.
func TestSignWhileOthersAppend(t *testing.T) {
	h := newHouse(t)
	log := h.log()
	store := h.trees()
	signer := h.signer(log, store)
	h.must(signer.Recover(t.Context()))
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					appendOne(t, log)
				}
			}
		})
	}
	prover := audit.NewProver(log, store, h.key)
	var held []audit.Held
	for len(held) < 20 {
		h.must(signer.Step(t.Context()))
		own, err := audit.OwnCheckpoint(t.Context(), store, ws, h.key)
		h.must(err)
		held = append(held, own...)
		for _, old := range held {
			proof, err := prover.Consistency(t.Context(), ws, old.Checkpoint.Size)
			if err != nil || proof.OldRoot != old.Checkpoint.Root.String() {
				t.Errorf("%d events do not continue %d: %v", proof.New, proof.Old, err)
			}
		}
	}
	report, err := audit.Verify(t.Context(), log, ws, held...)
	close(stop)
	writers.Wait()
	h.must(errors.Join(err, log.Close()))
	if !report.OK || len(report.Held) != 20 {
		t.Errorf("%+v", report.Findings)
	}
}
