package bench

import (
	"crypto/rand"
	"crypto/sha256"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// fillLog appends n events of runs, a thousand in a batch, as those of BenchmarkAppend are.
func fillLog(b *testing.B, log store, n int) {
	b.Helper()
	next := runOf(user)
	for n > 0 {
		batch := event.Batch{Workspace: workspace}
		for len(batch.Drafts) < min(n, 1_000) {
			if len(batch.Drafts)%50 == 0 {
				next = runOf(user)
			}
			batch.Drafts = append(batch.Drafts, next().Drafts...)
		}
		_, err := log.Append(b.Context(), batch)
		must(b, err)
		n -= len(batch.Drafts)
	}
}

// BenchmarkVerify measures the verification of a log that nobody writes to, from its files alone: the hash and the commitment of every
// event, the chain of every stream, the tree against a signed checkpoint, and, in documents, every document against the fold of the log.
// The yardstick reads the same rows with the bare driver on one processor and hashes them.
func BenchmarkVerify(b *testing.B) {
	events := sized(200_000, 2_000)
	path := filepath.Join(b.TempDir(), "log.db")
	options := sqlite.Options{Path: path, Definitions: definitions(), Clock: clock{}, IDs: ids, Entropy: rand.Reader, Keys: keysIn(b,
		b.TempDir())}
	log, err := sqlite.Open(b.Context(), options)
	must(b, err)
	fillLog(b, log, events)
	private, public, err := merkle.NewKey(rand.Reader)
	must(b, err)
	kept := trees.Open(filepath.Join(b.TempDir(), "proofs"), clock{})
	signer, err := audit.NewSigner(log, kept, private)
	must(b, err)
	must(b, signer.Recover(b.Context()))
	must(b, signer.Step(b.Context()))
	must(b, log.Close())
	held, err := audit.OwnCheckpoint(b.Context(), kept, workspace, public)
	must(b, err)

	verify := func(b *testing.B, check func(log *sqlite.Journal) (audit.Report, audit.DocumentsReport, error)) {
		before := cpuTime(b)
		for b.Loop() {
			log, err := sqlite.OpenReadOnly(b.Context(), options)
			must(b, err)
			report, documents, err := check(log)
			must(b, err)
			if !report.OK || report.Checked != events || len(report.Held) != 1 || !documents.OK {
				b.Fatal(report, documents)
			}
			must(b, log.Close())
		}
		b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(b.N*events), "cpu-us/event")
	}
	b.Run("log/ours", func(b *testing.B) {
		verify(b, func(log *sqlite.Journal) (audit.Report, audit.DocumentsReport, error) {
			report, err := audit.Verify(b.Context(), log, workspace, held...)
			return report, audit.DocumentsReport{OK: true}, err
		})
	})
	b.Run("documents/ours", func(b *testing.B) {
		verify(b, func(log *sqlite.Journal) (audit.Report, audit.DocumentsReport, error) {
			return audit.Audit(b.Context(), log, log, definitions(), workspace, held...)
		})
	})
	b.Run("log/yardstick", func(b *testing.B) {
		before := cpuTime(b)
		for b.Loop() {
			conn, err := sqlite3.OpenFlags("file:"+path+"?mode=ro", sqlite3.OPEN_READONLY|sqlite3.OPEN_URI)
			must(b, err)
			rows, _, err := conn.Prepare(`SELECT e.record, b.body FROM events e JOIN bodies b ON b.place = e.place ORDER BY e.place`)
			must(b, err)
			n := 0
			for rows.Step() {
				h := sha256.New()
				h.Write(rows.ColumnRawBlob(0))
				h.Write(rows.ColumnRawBlob(1))
				h.Sum(nil)
				n++
			}
			must(b, rows.Err())
			must(b, rows.Close())
			must(b, conn.Close())
			if n != events {
				b.Fatal(n)
			}
		}
		b.ReportMetric(float64(b.N*events)/b.Elapsed().Seconds(), "events/s")
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(b.N*events), "cpu-us/event")
	})
}

// BenchmarkCheckpoint measures what a second of full load leaves to the signer: 30,000 new events become leaves, and a checkpoint is
// signed and kept, beside the log and durably.
func BenchmarkCheckpoint(b *testing.B) {
	events := sized(30_000, 2_000)
	log := openLog(b)
	fillLog(b, log, events)
	private, _, err := merkle.NewKey(rand.Reader)
	must(b, err)
	b.Run("ours", func(b *testing.B) {
		before := cpuTime(b)
		dir := b.TempDir()
		for n := 0; b.Loop(); n++ {
			signer, err := audit.NewSigner(log, trees.Open(filepath.Join(dir, strconv.Itoa(n)), clock{}), private)
			must(b, err)
			must(b, signer.Recover(b.Context()))
			must(b, signer.Step(b.Context()))
		}
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(b.N*events), "cpu-us/event")
	})
}
