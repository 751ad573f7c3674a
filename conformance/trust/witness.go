package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// signed is a checkpoint that stock tools have opened.
type signed struct {
	origin string
	tree   tlog.Tree
}

// opened checks the signature of a checkpoint with the packages that check go.sum.
func opened(text, key string) (signed, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(key))
	if err != nil {
		return signed{}, err
	}
	n, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		return signed{}, err
	}
	var s signed
	lines := strings.Split(n.Text, "\n")
	if len(lines) < 3 {
		return signed{}, errors.New("the checkpoint has no root")
	}
	s.origin = lines[0]
	if _, err := fmt.Sscan(lines[1], &s.tree.N); err != nil {
		return signed{}, err
	}
	s.tree.Hash, err = tlog.ParseHash(lines[2])
	return s, err
}

// witness checks P-Witness: the proofs of the live installation with stock tools, and logs that were set back on a daemon of its own.
func (x *examiner) witness(ctx context.Context, r *result) error {
	if err := x.stock(ctx, r); err != nil {
		return err
	}
	return x.setBack(ctx, r)
}

// evidence is an event with the proof that it is in the log.
type evidence struct {
	Header string `json:"header"`
	Proof  struct {
		Index      int64       `json:"leaf_index"`
		Hashes     []tlog.Hash `json:"hashes"`
		Checkpoint string      `json:"checkpoint"`
	} `json:"proof"`
}

// check holds an event against a root, with stock tools and from its bytes.
func (e evidence) check(key string) error {
	s, err := opened(e.Proof.Checkpoint, key)
	if err != nil {
		return err
	}
	var header struct {
		Seq       int64  `json:"seq"`
		Workspace string `json:"workspace_id"`
	}
	if err := json.Unmarshal([]byte(e.Header), &header); err != nil {
		return err
	}
	if !strings.HasSuffix(s.origin, "/"+header.Workspace) || header.Seq-1 != e.Proof.Index {
		return errors.New("the event is another one's")
	}
	record := fmt.Sprintf("%d %s\n", header.Seq, sha([]byte(e.Header)))
	return tlog.CheckRecord(tlog.RecordProof(e.Proof.Hashes), s.tree.N, s.tree.Hash, e.Proof.Index, tlog.RecordHash([]byte(record)))
}

// stock checks proofs of the live installation.
func (x *examiner) stock(ctx context.Context, r *result) error {
	vectors := r.try("the stock tool computes the roots that RFC 6962's reference vectors have")
	if err := vectorsHold(vectors); err != nil {
		return err
	}
	t := r.try("signature and inclusion of the installation's events hold, by stock tools (golang.org/x/mod/sumdb)")
	a, err := x.live.get(ctx, "/v1/audit/key")
	if err != nil {
		return err
	}
	key := a.text("public_key")
	if a, err = x.live.firstCheckpoint(ctx); err != nil {
		return err
	}
	old, err := opened(a.text("checkpoint"), key)
	if err != nil {
		return err
	}
	chance := x.chance(6)
	forged := r.try("with one byte of event, proof or checkpoint changed they no longer hold")
	for range 20 {
		seq := 1 + chance.Int64N(old.tree.N)
		a, err := x.live.get(ctx, fmt.Sprintf("/v1/audit/proofs/inclusion?seq=%d", seq))
		if err != nil {
			return err
		}
		var e evidence
		if err := json.Unmarshal(a.raw, &e); err != nil {
			return err
		}
		t.tried(1)
		if err := e.check(key); err != nil {
			t.fail("event %d: %v", seq, err)
		}
		other := e
		other.Header = strings.Replace(e.Header, `"event_version":1`, `"event_version":2`, 1)
		forged.tried(1)
		forged.want(other.check(key) != nil, "event %d: another header is accepted", seq)
		other = e
		other.Proof.Checkpoint = strings.Replace(e.Proof.Checkpoint, "\n", "\n1", 1)
		forged.tried(1)
		forged.want(other.check(key) != nil, "event %d: another size is accepted", seq)
		if len(e.Proof.Hashes) > 0 {
			other = e
			other.Proof.Hashes = append([]tlog.Hash{}, e.Proof.Hashes...)
			other.Proof.Hashes[chance.IntN(len(e.Proof.Hashes))][chance.IntN(32)] ^= 1
			forged.tried(1)
			forged.want(other.check(key) != nil, "event %d: another path is accepted", seq)
		}
	}
	t.note("%s, %d events", old.origin, old.tree.N)
	return x.continues(ctx, r, key, old)
}

// continues lets the live log grow and checks that it continues what was signed before.
func (x *examiner) continues(ctx context.Context, r *result, key string, old signed) error {
	t := r.try("the log continues the checkpoints that it had, by stock tools")
	space, err := x.own(ctx)
	if err != nil {
		return err
	}
	if _, err := x.live.run(ctx, space, 20, operation{"type": "message", "id": "m", "content": "grow"}); err != nil {
		return err
	}
	for _, size := range []int64{1, old.tree.N / 2, old.tree.N} {
		if size < 1 {
			continue
		}
		a, err := x.live.get(ctx, fmt.Sprintf("/v1/audit/proofs/consistency?old_size=%d", size))
		if err != nil {
			return err
		}
		var p struct {
			Old        int64       `json:"old_size"`
			Root       string      `json:"old_root_hash"`
			Hashes     []tlog.Hash `json:"hashes"`
			Checkpoint string      `json:"checkpoint"`
		}
		if err := json.Unmarshal(a.raw, &p); err != nil {
			return err
		}
		now, err := opened(p.Checkpoint, key)
		if err != nil {
			return err
		}
		root, err := tlog.ParseHash(p.Root)
		if err != nil {
			return err
		}
		t.tried(1)
		if err := tlog.CheckTree(tlog.TreeProof(p.Hashes), now.tree.N, now.tree.Hash, size, root); err != nil {
			t.fail("from %d to %d: %v", size, now.tree.N, err)
		}
		t.want(size != old.tree.N || root == old.tree.Hash, "the root at %d was %s and is said to have been %s", size, old.tree.Hash, root)
	}
	return nil
}

// vectorsHold computes the roots of the eight leaves with which RFC 6962's implementations are compared.
func vectorsHold(t *trial) error {
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d", "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77", "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4", "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c", "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) (found []tlog.Hash, err error) {
		for _, i := range at {
			found = append(found, stored[i])
		}
		return found, nil
	})
	for i, leaf := range leaves {
		raw, err := hex.DecodeString(leaf)
		if err != nil {
			return err
		}
		more, err := tlog.StoredHashes(int64(i), raw, read)
		if err != nil {
			return err
		}
		stored = append(stored, more...)
		root, err := tlog.TreeHash(int64(i+1), read)
		if err != nil {
			return err
		}
		t.tried(1)
		t.want(hex.EncodeToString(root[:]) == roots[i], "the root over %d leaves is %x", i+1, root[:])
	}
	return nil
}

// setBack brings checkpoints of a daemon to a witness and sets the whole data directory back, checkpoint, key and all.
func (x *examiner) setBack(ctx context.Context, r *result) error {
	t := r.try("a data directory that was set back as a whole is found by the witness, with the first event that is missing")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	stick := filepath.Join(filepath.Dir(d.data), "stick")
	if err := os.Mkdir(stick, 0o700); err != nil {
		return err
	}
	type past struct {
		data string
		size uint64
	}
	var all []past
	var note []byte
	for n := range 4 {
		if _, err := d.run(ctx, space, 20, operation{"type": "message", "id": "m", "content": fmt.Sprint("state ", n)}); err != nil {
			return err
		}
		if err := d.stop(); err != nil {
			return err
		}
		if _, err := x.done(ctx, "audit", "witness", stick, "--data", d.data); err != nil {
			return err
		}
		if note, err = x.done(ctx, "audit", "checkpoint", "--data", d.data); err != nil {
			return err
		}
		found, err := x.audited(ctx, d.data, "--against", stick)
		if err != nil {
			return err
		}
		t.want(found.Valid, "the log does not agree with the witness that has just seen it: %+v", found.Findings)
		copied, err := x.copied(d.data)
		if err != nil {
			return err
		}
		all = append(all, past{copied, found.Checked})
		if n < 3 {
			if d, err = x.up(ctx, d.data, nil); err != nil {
				return err
			}
		}
	}
	checkpoint := filepath.Join(filepath.Dir(d.data), "checkpoint")
	if err := os.WriteFile(checkpoint, note, 0o600); err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(d.data, "signing.pub"))
	if err != nil {
		return err
	}
	for _, p := range all[:3] {
		alone, err := x.audited(ctx, p.data)
		if err != nil {
			return err
		}
		t.want(alone.Valid, "the older state is not intact by itself: %+v", alone.Findings)
		for _, holder := range []string{stick, checkpoint} {
			found, err := x.audited(ctx, p.data, "--against", holder)
			if err != nil {
				return err
			}
			t.tried(1)
			t.want(!found.Valid && found.first() == p.size+1, "%d events against %s: valid %v, the first that is named is %d", p.size,
				filepath.Base(holder), found.Valid, found.first())
		}
		_, code, err := x.tool(ctx, "audit", "witness", stick, "--data", p.data)
		if err != nil {
			return err
		}
		t.want(code != 0, "the witness takes the checkpoint of a log that was set back")
	}
	t.note("by itself each older state looks intact; against a folder and against a note it does not, and the folder takes no older " +
		"checkpoint")
	return x.recomputed(ctx, r, d.data, string(note), string(key))
}

// recomputed computes the root over an export of the whole log with stock tools.
func (x *examiner) recomputed(ctx context.Context, r *result, data, checkpoint, key string) error {
	t := r.try("the root of the last checkpoint is that of the exported events, computed from their bytes by stock tools")
	s, err := opened(checkpoint, key)
	if err != nil {
		return err
	}
	out := filepath.Join(filepath.Dir(data), "log.jsonl")
	if _, err := x.done(ctx, "audit", "export", "--out", out, "--data", data); err != nil {
		return err
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	var stored []tlog.Hash
	read := tlog.HashReaderFunc(func(at []int64) (found []tlog.Hash, err error) {
		for _, i := range at {
			found = append(found, stored[i])
		}
		return found, nil
	})
	n := int64(0)
	lines := json.NewDecoder(bytes.NewReader(raw))
	for lines.More() {
		var e struct {
			Header string `json:"header"`
			Salt   string `json:"salt"`
			Data   string `json:"data"`
		}
		if err := lines.Decode(&e); err != nil {
			return err
		}
		if e.Header == "" {
			continue // the first line is about the log
		}
		if e.Data != "" {
			var header struct {
				Commitment string `json:"data_commitment"`
			}
			salt, err := base64.StdEncoding.DecodeString(e.Salt)
			if err != nil {
				return err
			}
			data, err := base64.StdEncoding.DecodeString(e.Data)
			if err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(e.Header), &header); err != nil {
				return err
			}
			t.want(sha(append(salt, data...)) == header.Commitment, "the data of event %d are not those that it commits to", n+1)
		}
		more, err := tlog.StoredHashes(n, []byte(fmt.Sprintf("%d %s\n", n+1, sha([]byte(e.Header)))), read)
		if err != nil {
			return err
		}
		stored = append(stored, more...)
		n++
	}
	t.tried(int(n))
	if n != s.tree.N {
		t.fail("the export has %d events, the checkpoint %d", n, s.tree.N)
		return nil
	}
	root, err := tlog.TreeHash(n, read)
	t.want(root == s.tree.Hash, "the root is %s, signed is %s", root, s.tree.Hash)
	t.note("root %s over %d events", root, n)
	return err
}
