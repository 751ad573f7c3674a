package merkle_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/merkle"
)

// The test vectors of RFC 6962's reference implementation: eight leaves, and the root of the tree over the first n of them.
func TestRootsOfRFC6962(t *testing.T) {
	leaves := []string{"", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"}
	roots := []string{
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
		"6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
		"fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
		"aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
		"d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
		"4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
		"76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
		"ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
		"5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
	}
	var edge merkle.Edge
	for n, want := range roots {
		if root := edge.Root(); hex.EncodeToString(root[:]) != want {
			t.Errorf("root of %d leaves: got %x, want %s", n, root, want)
		}
		if n < len(leaves) {
			data, err := hex.DecodeString(leaves[n])
			if err != nil {
				t.Fatal(err)
			}
			edge.Add(tlog.RecordHash(data), nil)
		}
	}
}

// A fixed leaf: a change of the hashed bytes breaks every checkpoint that there is, and this test says so.
func TestLeafIsFixed(t *testing.T) {
	hash := event.DigestOf([]byte("an event"))
	if got, want := string(merkle.LeafOf(42, hash)), "42 sha256:"+hash.Hex()+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := merkle.LeafHash(42, hash).String(), "0ykdG/d9hFRY+GNawqJObnnQ8CM2BQfvmb6XlH4OJHk="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// tree is a log of n events with everything that proofs are made of.
type tree struct {
	events  []event.Digest
	hashes  []merkle.Hash
	private merkle.PrivateKey
	key     merkle.PublicKey
}

func newTree(t testing.TB, n int) *tree {
	t.Helper()
	private, public, err := merkle.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tr := &tree{private: private, key: public}
	var edge merkle.Edge
	for i := range n {
		hash := event.DigestOf(fmt.Append(nil, "event ", i))
		tr.events = append(tr.events, hash)
		tr.hashes = edge.Add(merkle.LeafHash(uint64(i)+1, hash), tr.hashes)
	}
	return tr
}

func (tr *tree) ReadHashes(indexes []int64) ([]merkle.Hash, error) {
	out := make([]merkle.Hash, len(indexes))
	for i, n := range indexes {
		if n >= int64(len(tr.hashes)) {
			return nil, errors.New("there is no such hash")
		}
		out[i] = tr.hashes[n]
	}
	return out, nil
}

func (tr *tree) checkpoint(t testing.TB, size int) (merkle.Checkpoint, []byte) {
	t.Helper()
	root, err := tlog.TreeHash(int64(size), tr)
	if err != nil {
		t.Fatal(err)
	}
	signer, key, err := tr.private.Signer()
	if err != nil || key != tr.key {
		t.Fatal(key, err)
	}
	c := merkle.Checkpoint{Origin: merkle.OriginOf(tr.key.Name(), "ws_dev"), Size: uint64(size), Root: root}
	signed, err := c.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	return c, signed
}

// Every event of every size of tree is proven, and no proof holds for anything but what it is about.
func TestInclusion(t *testing.T) {
	tr := newTree(t, 21)
	for size := 1; size <= 21; size++ {
		_, signed := tr.checkpoint(t, size)
		for seq := 1; seq <= size; seq++ {
			p, err := merkle.ProveInclusion(tr, uint64(seq), tr.events[seq-1], signed, tr.key)
			if err != nil {
				t.Fatalf("event %d of %d: %v", seq, size, err)
			}
			if !strings.HasPrefix(p.Text(), fmt.Sprintf("c2sp.org/tlog-proof@v1\nindex %d\n", seq-1)) || !strings.HasSuffix(p.Text(),
				"\n\n"+string(signed)) {
				t.Errorf("text %q", p.Text())
			}
			for name, change := range map[string]func(*merkle.Inclusion){
				"place": func(p *merkle.Inclusion) {
					p.Seq, p.Index, p.Record = p.Seq+1, p.Index+1, string(merkle.LeafOf(p.Seq+1, p.EventHash))
				},
				"index":           func(p *merkle.Inclusion) { p.Index++ },
				"hash":            func(p *merkle.Inclusion) { p.EventHash[0]++; p.Record = string(merkle.LeafOf(p.Seq, p.EventHash)) },
				"record":          func(p *merkle.Inclusion) { p.Record += " " },
				"no place":        func(p *merkle.Inclusion) { p.Seq, p.Index = 0, 0 },
				"path, shortened": func(p *merkle.Inclusion) { p.Hashes = p.Hashes[:len(p.Hashes)-1] },
				"path, extended":  func(p *merkle.Inclusion) { p.Hashes = append(append([]string{}, p.Hashes...), merkle.Hash{}.String()) },
				"path, no hash":   func(p *merkle.Inclusion) { p.Hashes = append(append([]string{}, p.Hashes...), "AA==") },
				"path, too long":  func(p *merkle.Inclusion) { p.Hashes = make([]string, 200) },
				"checkpoint": func(p *merkle.Inclusion) {
					p.Checkpoint = strings.Replace(p.Checkpoint, fmt.Sprintf("\n%d\n", size), fmt.Sprintf("\n%d\n", size+1), 1)
				},
			} {
				if name == "path, shortened" && size == 1 {
					continue // there is none
				}
				changed := p
				change(&changed)
				if _, err := changed.Check(tr.key); err == nil {
					t.Errorf("event %d of %d with another %s passed", seq, size, name)
				}
			}
		}
	}
	_, signed := tr.checkpoint(t, 20)
	for _, seq := range []uint64{0, 21} {
		if _, err := merkle.ProveInclusion(tr, seq, tr.events[0], signed, tr.key); fault.CodeOf(err) != "event_not_covered" {
			t.Errorf("event %d of 20: %v", seq, err)
		}
	}
	if _, err := merkle.ProveInclusion(tr, 3, tr.events[3], signed, tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("the hash of another event was proven: %v", err)
	}
}

// Each size continues each smaller one, and no other root.
func TestConsistency(t *testing.T) {
	tr, other := newTree(t, 21), newTree(t, 21)
	for size := 1; size <= 21; size++ {
		c, signed := tr.checkpoint(t, size)
		for old := 0; old <= size; old++ {
			p, err := merkle.ProveConsistency(tr, uint64(old), signed, tr.key)
			if err != nil {
				t.Fatalf("%d to %d: %v", old, size, err)
			}
			if err := p.Check(other.key); err == nil {
				t.Errorf("%d to %d: another key passed", old, size)
			}
			for name, change := range map[string]func(*merkle.Consistency){
				"root":     func(p *merkle.Consistency) { p.OldRoot = merkle.Hash{}.String() },
				"old size": func(p *merkle.Consistency) { p.Old++ },
				"size":     func(p *merkle.Consistency) { p.New++ },
				"path": func(p *merkle.Consistency) {
					p.Hashes = append(append([]string{}, p.Hashes...), merkle.Hash{}.String())
				},
			} {
				changed := p
				change(&changed)
				if err := changed.Check(tr.key); err == nil {
					t.Errorf("%d to %d with another %s passed", old, size, name)
				}
			}
		}
		if _, err := merkle.ProveConsistency(tr, uint64(size)+1, signed, tr.key); fault.CodeOf(err) != "size_invalid" {
			t.Errorf("a larger log was continued: %v", err)
		}
		if err := merkle.CheckConsistency(uint64(size)+1, c.Root, c, nil); err == nil {
			t.Error("a larger log was continued")
		}
	}
}

// A checkpoint is a note that the stock package opens, and everything that is not one is refused.
func TestCheckpoint(t *testing.T) {
	tr, other := newTree(t, 3), newTree(t, 3)
	c, signed := tr.checkpoint(t, 3)
	verifier, err := note.NewVerifier(string(tr.key))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil || opened.Text != c.Text() || len(opened.Sigs) != 1 {
		t.Errorf("the stock package opens it as %+v, %v", opened, err)
	}
	if stock, err := tlog.ParseTree([]byte("go.sum database tree\n" + strings.SplitN(opened.Text, "\n", 2)[1])); err != nil || stock.N != 3 ||
		stock.Hash != c.Root {
		t.Errorf("the stock package reads size and root as %+v, %v", stock, err)
	}
	got, err := merkle.Open(signed, tr.key)
	if err != nil || got != c {
		t.Errorf("got %+v, %v, want %+v", got, err, c)
	}
	if ws, err := got.Workspace(); err != nil || ws != "ws_dev" || got.Installation() != tr.key.Name() {
		t.Errorf("origin %q is of %q and %q, %v", got.Origin, ws, got.Installation(), err)
	}
	if peeked, err := merkle.Peek(signed); err != nil || peeked != c {
		t.Errorf("peeked %+v, %v", peeked, err)
	}
	signer, _, err := tr.private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	root := c.Root.String()
	for name, text := range map[string]string{
		"two lines": c.Origin + "\n3\n", "a size of letters": c.Origin + "\nx\n" + root + "\n", "a negative size": c.Origin + "\n-1\n" + root +
			"\n",
		"a size with a zero in front": c.Origin + "\n03\n" + root + "\n", "a size with a plus": c.Origin + "\n+3\n" + root + "\n",
		"no root": c.Origin + "\n3\n\n", "a short root": c.Origin + "\n3\nAAAA\n", "no origin": "\n3\n" + root + "\n",
		"another installation": "agentbox/0000000000000000/ws_dev\n3\n" + root + "\n", "no workspace": tr.key.Name() + "/../x\n3\n" + root + "\n",
		"a root that is not canonical": c.Origin + "\n3\n" + root[:42] + "9=\n",
	} {
		raw, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := merkle.Open(raw, tr.key); fault.CodeOf(err) != "checkpoint_invalid" {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := merkle.Open(signed, other.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("another key: got %v", err)
	}
	for i := range signed {
		turned := append([]byte{}, signed...)
		turned[i] ^= 1
		if again, err := merkle.Open(turned, tr.key); err == nil && (i < bytes.Index(signed, []byte("\n\n")) || again != c) {
			// The signature's base64 has a few bits without a meaning; the signed text has none.
			t.Errorf("byte %d was turned and it opens", i)
		}
	}
	if _, err := merkle.Open(append(signed, make([]byte, merkle.MaxCheckpointBytes-len(signed)+1)...),
		tr.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("too many bytes: got %v", err)
	}
	extended, err := note.Sign(&note.Note{Text: c.Text() + "an extension\n"}, signer)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := merkle.Open(extended, tr.key); err != nil || got != c {
		t.Errorf("with an extension: %+v, %v", got, err)
	}
}

// Keys are read back whatever their bytes: in base64 they may hold the plus that parts them.
func TestKeys(t *testing.T) {
	names := map[string]bool{}
	for range 300 {
		private, public, err := merkle.NewKey(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		signer, again, err := private.Signer()
		if err != nil || again != public || signer.Name() != public.Name() {
			t.Fatalf("%s reads back as %s, %v", public, again, err)
		}
		if merkle.InstallationOf(public.Raw()) != public.Name() {
			t.Errorf("%s is the name of another key", public.Name())
		}
		if _, err := merkle.NewCosigner(private, time.Now); err != nil {
			t.Error(err)
		}
		if parsed, err := merkle.ParsePublicKey(" " + string(public) + "\n"); err != nil || parsed != public {
			t.Errorf("%s is parsed as %s, %v", public, parsed, err)
		}
		names[public.Name()] = true
	}
	if len(names) != 300 {
		t.Errorf("300 keys have %d names", len(names))
	}
	for _, bad := range []string{"", "x", "name+00000000+AAAA", "a+b"} {
		if _, err := merkle.ParsePublicKey(bad); fault.CodeOf(err) != "public_key_invalid" {
			t.Errorf("%q: %v", bad, err)
		}
		if _, _, err := merkle.PrivateKey(bad).Signer(); fault.CodeOf(err) != "signing_key_invalid" {
			t.Errorf("%q: %v", bad, err)
		}
		if raw := merkle.PublicKey(bad).Raw(); raw != nil {
			t.Errorf("%q has the key %x", bad, raw)
		}
	}
}

// A witness's signature says when, and holds for its key alone.
func TestCosignature(t *testing.T) {
	tr := newTree(t, 3)
	_, signed := tr.checkpoint(t, 3)
	private, _, err := merkle.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cosigner, err := merkle.NewCosigner(private, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	opened, err := note.Open(signed, note.VerifierList(must(note.NewVerifier(string(tr.key)))))
	if err != nil {
		t.Fatal(err)
	}
	cosigned, err := note.Sign(opened, cosigner)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := merkle.Open(cosigned, tr.key); err != nil {
		t.Errorf("with a witness's signature it does not open: %v", err)
	}
	if got, err := merkle.CosignedAt(cosigned, cosigner.PublicKey()); err != nil || !got.Equal(at) {
		t.Errorf("cosigned at %s, %v, want %s", got, err, at)
	}
	if _, err := merkle.CosignedAt(signed, cosigner.PublicKey()); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("without the signature: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(cosigned)), "\n")
	last := strings.Fields(lines[len(lines)-1])
	blob, err := base64.StdEncoding.DecodeString(last[2])
	if err != nil {
		t.Fatal(err)
	}
	for i := range blob {
		blob[i] ^= 1
		lines[len(lines)-1] = "— " + last[1] + " " + base64.StdEncoding.EncodeToString(blob)
		if _, err := merkle.CosignedAt([]byte(strings.Join(lines, "\n")+"\n"), cosigner.PublicKey()); err == nil {
			t.Errorf("byte %d of the signature was turned and it holds", i)
		}
		blob[i] ^= 1
	}
	for _, bad := range []string{"", string(tr.key), "a+00000000+BA=="} {
		if _, err := merkle.CosignedAt(cosigned, bad); fault.CodeOf(err) != "witness_key_invalid" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Every text that is read as a checkpoint is written back unchanged.
func FuzzOpen(f *testing.F) {
	tr := newTree(f, 3)
	_, signed := tr.checkpoint(f, 3)
	f.Add(string(signed))
	f.Add("a\n1\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := merkle.Peek([]byte(text)); err == nil && !strings.HasPrefix(text, c.Text()) {
			t.Errorf("%q is read as %q", text, c.Text())
		}
		if c, err := merkle.Open([]byte(text), tr.key); err == nil && text != string(signed) && c.Size != 3 {
			t.Errorf("%q opens", text)
		}
	})
}
