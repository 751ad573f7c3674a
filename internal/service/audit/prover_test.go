package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// An event, a part of the log and all of it are proven to somebody who has the key and nothing else; whatever byte is changed, it is found.
func TestEvidenceAndExport(t *testing.T) {
	h := newHouse(t)
	h.grow(30)
	log := h.log()
	defer func() { h.must(log.Close()) }()
	prover := audit.NewProver(log, h.trees(), h.key)
	ctx := t.Context()
	document := func(v any, err error) []byte {
		t.Helper()
		h.must(err)
		raw, err := json.Marshal(v)
		h.must(err)
		return raw
	}
	exported := func(s audit.Selection, want int) []byte {
		t.Helper()
		var out bytes.Buffer
		n, err := prover.Export(ctx, ws, s, &out)
		if err != nil || n != want {
			t.Fatalf("exported %d, %v, want %d", n, err, want)
		}
		return out.Bytes()
	}
	thirteenth, err := log.Read(ctx, journal.Query{Workspace: ws, From: 13, Limit: 1})
	h.must(err)
	for name, c := range map[string]struct {
		document []byte
		kind     string
		events   int
		complete bool
	}{
		"an event by its place": {document(prover.EvidenceAt(ctx, ws, 13)), "event", 1, false},
		"an event by its id":    {document(prover.Evidence(ctx, ws, thirteenth[0].ID)), "event", 1, false},
		"consistency":           {document(prover.Consistency(ctx, ws, 12)), "consistency", 0, false},
		"the whole log":         {exported(audit.Selection{}, 30), "export", 30, true},
		"a part of the log":     {exported(audit.Selection{First: 5, Last: 9}, 5), "export", 5, false},
		"none of the log":       {exported(audit.Selection{First: 40, Last: 50}, 0), "export", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			checked, err := audit.Check(bytes.NewReader(c.document), h.key)
			if err != nil || checked.Kind != c.kind || checked.Events != c.events || checked.Complete != c.complete ||
				checked.Checkpoint.Size != 30 {
				t.Fatalf("%+v, %v\n%s", checked, err, c.document)
			}
			if c.kind == "event" && (checked.Event.Seq != 13 || checked.Event.Event != thirteenth[0].ID || !checked.Event.HasData) {
				t.Errorf("%+v", checked.Event)
			}
			if _, err := audit.Check(bytes.NewReader(c.document), newHouse(t).key); fault.CodeOf(err) != "checkpoint_invalid" {
				t.Errorf("another key: %v", err)
			}
			for i := 0; i < len(c.document); i += 3 + len(c.document)/1_000 {
				if c.document[i] < ' ' {
					continue
				}
				turned := bytes.Clone(c.document)
				turned[i] ^= 1
				if again, err := audit.Check(bytes.NewReader(turned), h.key); err == nil && !harmless(c.document, i) && again != checked {
					t.Errorf("byte %d was turned and it holds: ...%s...", i, turned[max(0, i-30):min(len(turned), i+30)])
				}
			}
		})
	}
	whole := exported(audit.Selection{}, 30)
	lines := bytes.SplitAfter(bytes.TrimSuffix(whole, []byte("\n")), []byte("\n"))
	for name, some := range map[string][][]byte{"the last": lines[:30], "the first": append([][]byte{lines[0]}, lines[2:]...),
		"all": lines[:1]} {
		if _, err := audit.Check(bytes.NewReader(bytes.Join(some, nil)), h.key); !errors.Is(err, merkle.ErrProof) {
			t.Errorf("an export without %s event is whole: %v", name, err)
		}
	}
	for _, bad := range []string{"", "{}", "[]", "null", `{"format":"other"}`, `{"proof":{}}`, `{"old_size":1}`, "\x00"} {
		if _, err := audit.Check(strings.NewReader(bad), h.key); err == nil {
			t.Errorf("%q is a proof", bad)
		}
	}
	if _, err := prover.EvidenceAt(ctx, ws, 31); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("an event that is not there: %v", err)
	}
	appendOne(t, log)
	if _, err := prover.EvidenceAt(ctx, ws, 31); fault.CodeOf(err) != "event_not_covered" {
		t.Errorf("an event that no checkpoint covers: %v", err)
	}
	if _, err := prover.EvidenceAt(ctx, "ws_none", 1); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("a workspace without a checkpoint: %v", err)
	}
}

// harmless reports whether a byte of a document says nothing that is proven: it belongs to the public key that came with the proof, which
// nobody reads, or to the name of a field, without which the field is none.
func harmless(document []byte, i int) bool {
	at := bytes.LastIndex(document[:i], []byte(`"public_key":"`))
	return at >= 0 && !bytes.Contains(document[at+14:i], []byte(`"`))
}

// Proofs come out of a tree that was lost, too.
func TestProofsWithoutATree(t *testing.T) {
	h := newHouse(t)
	h.grow(30)
	h.must(os.Remove(filepath.Join(h.dir, "proofs", string(ws), "hashes")))
	log := h.log()
	defer func() { h.must(log.Close()) }()
	prover := audit.NewProver(log, h.trees(), h.key)
	evidence, err := prover.EvidenceAt(t.Context(), ws, 13)
	h.must(err)
	if _, err := evidence.Check(h.key); err != nil {
		t.Error(err)
	}
	if proof, err := prover.Consistency(t.Context(), ws, 12); err != nil || proof.Check(h.key) != nil {
		t.Error(err)
	}
}

// The log's hashes alone tell the signed part, in memory as on disk.
func TestHashes(t *testing.T) {
	for name, log := range map[string]journaltest.Log{"memory": inMemory(t), "sqlite": open(t, filepath.Join(t.TempDir(), "log.db"))} {
		fill(t, log)
		all, err := log.Read(t.Context(), journal.Query{Workspace: ws, Limit: journal.MaxRead})
		if err != nil {
			t.Fatal(err)
		}
		for from := uint64(1); from <= 32; from++ {
			got, err := journal.Hashes(t.Context(), log, ws, from, 7)
			if want := min(7, max(0, 31-int(from))); err != nil || len(got) != want {
				t.Errorf("%s: from %d: %d hashes, %v, want %d", name, from, len(got), err, want)
			}
			for i, hash := range got {
				if hash != all[int(from)-1+i].Chain.Hash {
					t.Errorf("%s: hash %d is another", name, from+uint64(i))
				}
			}
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	log := tampered(t, `DELETE FROM events`+place(13))
	if _, err := journal.Hashes(t.Context(), log, ws, 10, 10); !damagedAt(err, 13) {
		t.Errorf("a place without an event: %v", err)
	}
	log = tampered(t, `DELETE FROM events`+place(30))
	if _, err := journal.Hashes(t.Context(), log, ws, 10, 100); !damagedAt(err, 30) {
		t.Errorf("a last place without an event: %v", err)
	}
	log = tampered(t, `UPDATE events SET record = x'0102'`+place(13))
	if _, err := journal.Hashes(t.Context(), log, ws, 10, 10); !damagedAt(err, 13) {
		t.Errorf("a record that is none: %v", err)
	}
}

func damagedAt(err error, seq uint64) bool {
	damage, ok := errors.AsType[*journal.Damage](err)
	return ok && damage.Seq == seq
}
