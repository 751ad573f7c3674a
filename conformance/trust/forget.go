package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	forgottenRuns = 4  // runs whose text is redacted
	forgottenOps  = 40 // commands of each
)

// secret is a text to redact, with the proofs about it from before.
type secret struct {
	word   string // with which every such text begins
	runs   []string
	events []string // that hold it, by their ids
	seqs   []uint64
}

// forgetting are the checks of redaction.
type forgetting struct{ *examiner }

// forget checks P-Forget on a daemon of its own.
func (x forgetting) forget(ctx context.Context, r *result) error {
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	s := secret{word: fmt.Sprintf("canary%016x", x.chance(7).Uint64())}
	if err := x.tell(ctx, d, space, &s); err != nil {
		return err
	}
	dir := filepath.Dir(d.data)
	there := r.try("before: the text is in the data directory, so that its absence can be seen")
	there.tried(len(s.events))
	there.want(len(s.events) >= forgottenRuns*forgottenOps, "only %d events hold the text", len(s.events))
	before, err := x.prove(ctx, d, dir, s)
	if err != nil {
		return err
	}
	backup := filepath.Join(dir, "backup")
	if _, err := x.done(ctx, "backup", backup, "--data", d.data); err != nil {
		return err
	}

	redacted := r.try("`agentbox audit redact` takes away whole runs, and single events")
	for i, run := range s.runs {
		if i > 0 {
			if _, err := x.done(ctx, "audit", "redact", "--run", run, "--reason", "a check of trust", "--json", "--data", d.data); err != nil {
				return err
			}
			redacted.tried(1)
			continue
		}
		for _, e := range s.events {
			if strings.HasPrefix(e, run) {
				if _, err := x.done(ctx, "audit", "redact", strings.TrimPrefix(e, run+" "), "--reason", "a check of trust", "--json", "--data",
					d.data); err != nil {
					return err
				}
				redacted.tried(1)
			}
		}
	}
	said, err := d.log(ctx, 1, "event_types=event.redacted")
	if err != nil {
		return err
	}
	redacted.want(len(said) > 0, "the log does not say that anything was redacted")
	now, err := d.log(ctx, 1, "")
	if err != nil {
		return err
	}
	for _, e := range now {
		raw, _ := json.Marshal(e) // it was JSON a moment ago
		redacted.want(!bytes.Contains(raw, []byte(s.word)), "the API still shows the text in event %d, %s", e.Seq, e.Type)
	}
	redacted.note("%d events held the text; %d redactions are in the log", len(s.events), len(said))
	if err := x.provedStill(ctx, r, d, dir, before); err != nil {
		return err
	}
	if err := d.stop(); err != nil {
		return err
	}
	gone := r.try("no file of the data directory has the text: database, write-ahead log, contents, output, snapshots")
	if err := gone.lacks(d.data, s.word); err != nil {
		return err
	}
	return x.backupLacks(ctx, r, d, backup, s)
}

// tell writes the text into everything that a run leaves: commands, output, messages, files that are deleted again.
func (x forgetting) tell(ctx context.Context, d *daemon, space string, s *secret) error {
	for i := range forgottenRuns {
		ops := []operation{
			{"type": "message", "id": "said", "content": s.word + " was said"},
			{"type": "createFile", "id": "make", "path": "f", "content": strings.Repeat(s.word+" in a file\n", 8000)},
			shell("long", "cat f"), {"type": "deleteFile", "id": "drop", "path": "f"},
		}
		for n := range forgottenOps {
			ops = append(ops, shell(fmt.Sprint("op", n), fmt.Sprintf("echo %s-%d-%d", s.word, i, n)))
		}
		run, err := d.run(ctx, space, 60, ops...)
		if err != nil {
			return err
		}
		if err := d.settled(ctx, run.id); err != nil {
			return err
		}
		s.runs = append(s.runs, run.id)
	}
	events, err := d.log(ctx, 1, "")
	if err != nil {
		return err
	}
	for _, e := range events {
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if bytes.Contains(raw, []byte(s.word)) {
			s.events, s.seqs = append(s.events, e.Run+" "+e.ID), append(s.seqs, e.Seq)
		}
	}
	return nil
}

// proved holds the proofs from before a redaction.
type proved struct {
	key, checkpoint string
	size            string
	proofs          []string // files
}

func (x forgetting) prove(ctx context.Context, d *daemon, dir string, s secret) (p proved, err error) {
	a, err := d.firstCheckpoint(ctx)
	if err != nil {
		return p, err
	}
	p = proved{key: a.text("public_key"), size: a.text("size"), checkpoint: filepath.Join(dir, "checkpoint")}
	if err := os.WriteFile(p.checkpoint, []byte(a.text("checkpoint")), 0o600); err != nil {
		return p, err
	}
	for i := range 10 {
		seq := s.seqs[i*len(s.seqs)/10]
		file := filepath.Join(dir, fmt.Sprintf("proof-%d.json", seq))
		if err := x.proved(ctx, seq, file, d.data); err != nil {
			return p, err
		}
		p.proofs = append(p.proofs, file)
	}
	return p, nil
}

// proved makes the proof of an event, once a checkpoint covers it.
func (x forgetting) proved(ctx context.Context, seq uint64, file, data string) error {
	for try := 1; ; try++ {
		out, code, err := x.tool(ctx, "audit", "prove", fmt.Sprint(seq), "--out", file, "--data", data)
		if err != nil || code == 0 {
			return err
		}
		if try == 50 {
			return fmt.Errorf("agentbox audit prove %d ended with %d: %.500s", seq, code, out)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// provedStill holds the log, as it is after a redaction, against everything that was proved before.
func (x forgetting) provedStill(ctx context.Context, r *result, d *daemon, dir string, p proved) error {
	t := r.try("the log is intact, continues what was signed before, and every proof made before stays valid")
	found, err := x.audited(ctx, d.data, "--against", p.checkpoint, "--public-key", p.key)
	if err != nil {
		return err
	}
	t.tried(1)
	t.want(found.Valid, "the log is not intact: %+v", found.Findings)
	for _, file := range p.proofs {
		_, code, err := x.tool(ctx, "audit", "check", file, "--public-key", p.key)
		if err != nil {
			return err
		}
		t.tried(1)
		t.want(code == 0, "%s no longer holds", filepath.Base(file))
	}
	continued := filepath.Join(dir, "continues.json")
	if _, err := x.done(ctx, "audit", "prove", "--since", p.size, "--out", continued, "--data", d.data); err != nil {
		return err
	}
	out, code, err := x.tool(ctx, "audit", "check", continued, "--public-key", p.key)
	if err != nil {
		return err
	}
	t.tried(1)
	t.want(code == 0, "the log does not continue what was signed: %s", out)
	t.note("%d proofs of redacted events, and the consistency from %s events on", len(p.proofs), p.size)
	return nil
}

// spellings are the ways in which a file may hold a word.
func spellings(word string) [][]byte {
	all := [][]byte{[]byte(word), []byte(strings.ToUpper(hex.EncodeToString([]byte(word)))), []byte(hex.EncodeToString([]byte(word)))}
	for shift := range 3 { // base64 spells a text in three ways, by where it begins; its first and last letters depend on what stands around
		spelled := base64.StdEncoding.EncodeToString(append(make([]byte, shift), word...))
		all = append(all, []byte(spelled[4:len(spelled)-4]))
	}
	return all
}

// lacks fails for each file below a folder that has a word, also within gzip.
func (t *trial) lacks(folder, word string) error {
	return filepath.WalkDir(folder, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if unpacked, err := gzip.NewReader(bytes.NewReader(raw)); err == nil {
			more, err := io.ReadAll(unpacked)
			if err != nil {
				return fmt.Errorf("unpack %s: %w", name, err)
			}
			raw = append(raw, more...)
		}
		t.tried(1)
		rel, _ := filepath.Rel(folder, name)
		for _, spelled := range spellings(word) {
			t.want(!bytes.Contains(raw, spelled), "%s has the text, written as %q, %d times", rel, spelled, bytes.Count(raw, spelled))
		}
		return nil
	})
}

// backupLacks looks into a backup that was made before: as it is, and restored with the keys of today.
func (x forgetting) backupLacks(ctx context.Context, r *result, d *daemon, backup string, s secret) error {
	t := r.try("a backup made before has no readable text, as it is and restored with the keys of today")
	dir, err := x.folder()
	if err != nil {
		return err
	}
	if err := os.Rename(backup, filepath.Join(dir, "backup")); err != nil {
		return err
	}
	backup = filepath.Join(dir, "backup")
	if err := t.lacks(dir, s.word); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	if _, err := x.done(ctx, "restore", backup, "--data", data, "--keys", filepath.Join(d.data, "keys")); err != nil {
		return err
	}
	if err := t.lacks(data, s.word); err != nil {
		return err
	}
	restored, err := x.up(ctx, data, nil)
	if err != nil {
		return err
	}
	events, err := restored.log(ctx, 1, "")
	if err != nil {
		return err
	}
	t.want(len(events) >= len(s.seqs), "the restored log has %d events", len(events))
	for _, e := range events {
		raw, _ := json.Marshal(e)
		t.want(!bytes.Contains(raw, []byte(s.word)), "the restored daemon shows the text in event %d, %s", e.Seq, e.Type)
	}
	return restored.stop()
}
