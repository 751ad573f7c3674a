package merkle_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/merkle"
)

// signed signs a checkpoint of any size and root.
func (tr *tree) signed(t testing.TB, size uint64, root merkle.Hash) []byte {
	t.Helper()
	signer, _, err := tr.private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	signed, err := merkle.Checkpoint{Origin: merkle.OriginOf(tr.key.Name(), "ws_dev"), Size: size, Root: root}.Sign(signer)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// A log that puts an event at another place than its own proves nothing of it, though the tree holds the leaf.
func TestALeafAtAnotherPlaceProvesNothing(t *testing.T) {
	tr := newTree(t, 0)
	hash := event.DigestOf([]byte("moved"))
	var edge merkle.Edge
	for _, leaf := range []merkle.Hash{merkle.LeafHash(9, event.DigestOf([]byte("other"))), merkle.LeafHash(1, hash)} {
		tr.hashes = edge.Add(leaf, tr.hashes)
	}
	path, err := tlog.ProveRecord(2, 1, tr)
	if err != nil {
		t.Fatal(err)
	}
	p := merkle.Inclusion{
		Seq: 1, EventHash: hash, Record: string(merkle.LeafOf(1, hash)), Index: 1, Hashes: []string{path[0].String()},
		Checkpoint: string(tr.signed(t, 2, edge.Root())), PublicKey: tr.key,
	}
	if _, err := p.Check(tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("event 1 was proven at the place of event 2: %v", err)
	}
}

// Who checks a proof with a key of their own gets the checkpoint that they checked. Another key is named as what is wrong.
func TestAProofIsCheckedWithTheKeyOfTheReader(t *testing.T) {
	tr, other := newTree(t, 5), newTree(t, 5)
	c, signed := tr.checkpoint(t, 5)
	p, err := merkle.ProveInclusion(tr, 2, tr.events[1], signed, tr.key)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Check(tr.key); err != nil || got != c {
		t.Errorf("got %+v, %v, want %+v", got, err, c)
	}
	if _, err := p.Check(other.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("another key: %v", err)
	}
	if _, err := p.Check("x"); fault.CodeOf(err) != "public_key_invalid" {
		t.Errorf("no key: %v", err)
	}
	if want := fmt.Sprintf("c2sp.org/tlog-proof@v1\nindex 1\n%s\n\n%s", strings.Join(p.Hashes, "\n"), signed); p.Text() != want ||
		len(p.Hashes) != 3 {
		t.Errorf("text %q, want %q", p.Text(), want)
	}
	q, err := merkle.ProveConsistency(tr, 3, signed, tr.key)
	if err != nil || q.Check(tr.key) != nil || q.Old != 3 || q.New != 5 || q.NewRoot != c.Root.String() || q.PublicKey != tr.key {
		t.Errorf("got %+v, %v", q, err)
	}
	if old, _ := tr.checkpoint(t, 3); q.OldRoot != old.Root.String() {
		t.Errorf("the old root is %s, want %s", q.OldRoot, old.Root)
	}
	if err := q.Check(other.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("another key: %v", err)
	}
	if q, err = merkle.ProveConsistency(tr, 0, signed, tr.key); err != nil || len(q.Hashes) != 0 || q.Check(tr.key) != nil {
		t.Errorf("from nothing: %+v, %v", q, err)
	}
	q.Hashes = append(slices.Clone(q.Hashes), "AA==")
	if err := q.Check(tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("a path with a short hash: %v", err)
	}
}

// missing is a reader that lacks the hash of one read.
type missing struct {
	tlog.HashReader
	reads, at int
}

func (m *missing) ReadHashes(indexes []int64) ([]merkle.Hash, error) {
	if m.reads++; m.reads == m.at {
		return nil, errMissing
	}
	return m.HashReader.ReadHashes(indexes)
}

var errMissing = errors.New("a hash is missing")

// No proof is made of hashes that cannot be read, of another log, or under a checkpoint of another key.
func TestWhatCannotBeProven(t *testing.T) {
	tr, other := newTree(t, 7), newTree(t, 0)
	var edge merkle.Edge
	for i := range 7 {
		other.hashes = edge.Add(merkle.LeafHash(uint64(i)+1, event.DigestOf([]byte("other"))), other.hashes)
	}
	_, signed := tr.checkpoint(t, 7)
	if _, err := merkle.ProveInclusion(&missing{tr, 0, 1}, 2, tr.events[1], signed, tr.key); !errors.Is(err, errMissing) {
		t.Errorf("inclusion without a hash: %v", err)
	}
	for at := 1; at <= 2; at++ {
		if _, err := merkle.ProveConsistency(&missing{tr, 0, at}, 3, signed, tr.key); !errors.Is(err, errMissing) {
			t.Errorf("consistency without the hash of read %d: %v", at, err)
		}
	}
	if _, err := merkle.ProveInclusion(tr, 2, tr.events[1], signed, other.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("inclusion under another key: %v", err)
	}
	if _, err := merkle.ProveConsistency(tr, 3, signed, other.key); fault.CodeOf(err) != "checkpoint_invalid" {
		t.Errorf("consistency under another key: %v", err)
	}
	if _, err := merkle.ProveInclusion(other, 2, tr.events[1], signed, tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("inclusion by the hashes of another log: %v", err)
	}
	if _, err := merkle.ProveConsistency(other, 3, signed, tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("consistency by the hashes of another log: %v", err)
	}
}

// The largest log that is continued has 2^62 events.
func TestTheLargestLogThatIsContinued(t *testing.T) {
	tr := newTree(t, 1)
	for size, want := range map[uint64]string{1 << 62: "", 1<<62 + 1: "size_invalid"} {
		if _, err := merkle.ProveConsistency(tr, 0, tr.signed(t, size, merkle.Hash{1}), tr.key); fault.CodeOf(err) != want {
			t.Errorf("%d events: %v, want %q", size, err, want)
		}
	}
}

// A path has at most 128 hashes, each of 32 bytes in strict base64.
func TestThePathOfAProof(t *testing.T) {
	one := merkle.Hash{31: 1}
	repeat := func(n int) []string { return slices.Repeat([]string{one.String()}, n) }
	for _, c := range []struct {
		name   string
		hashes []string
		ok     bool
	}{
		{"none", nil, true},
		{"one", repeat(1), true},
		{"as many as may be", repeat(128), true},
		{"more", repeat(129), false},
		{"a short one", []string{"AA=="}, false},
		{"a long one", []string{base64.StdEncoding.EncodeToString(make([]byte, 33))}, false},
		{"what is not base64", []string{"!" + one.String()}, false},
		{"more behind it", []string{one.String() + "!"}, false},
		{"bits that mean nothing", []string{one.String()[:42] + "F="}, false},
		{"an empty one", []string{""}, false},
	} {
		path, err := merkle.Consistency{Hashes: c.hashes}.Path()
		if (err == nil) != c.ok || c.ok && len(path) != len(c.hashes) || !c.ok && !errors.Is(err, merkle.ErrProof) {
			t.Errorf("%s: %d hashes, %v", c.name, len(path), err)
		}
		if c.ok && len(path) > 0 && path[len(path)-1] != one {
			t.Errorf("%s: got %s", c.name, path[0])
		}
	}
}

// The stored hashes tell the root and the edge of every size, and a tree goes on from its edge.
func TestTheEdgeIsReadFromTheStore(t *testing.T) {
	ctx, store, tr := context.Background(), memory.NewTrees(), newTree(t, 21)
	if err := store.WriteHashes(ctx, "ws_dev", 0, tr.hashes); err != nil {
		t.Fatal(err)
	}
	var want merkle.Edge
	for size := uint64(0); size <= 21; size++ {
		root, err := merkle.RootAt(ctx, store, "ws_dev", size)
		if err != nil || root != want.Root() {
			t.Errorf("root of %d: got %s, %v, want %s", size, root, err, want.Root())
		}
		edge, err := merkle.EdgeAt(ctx, store, "ws_dev", size)
		if err != nil || edge.Size() != size || edge.Root() != want.Root() {
			t.Errorf("edge of %d: size %d, %v", size, edge.Size(), err)
		}
		if size < 21 {
			leaf := merkle.LeafHash(size+1, tr.events[size])
			edge.Add(leaf, nil)
			want.Add(leaf, nil)
			if edge.Root() != want.Root() || edge.Size() != want.Size() {
				t.Errorf("a leaf behind the edge of %d makes another root", size)
			}
		}
	}
	if _, err := merkle.EdgeAt(ctx, store, "ws_dev", 22); err == nil {
		t.Error("the edge of a larger tree was read")
	}
	if _, err := merkle.RootAt(ctx, store, "ws_dev", 22); err == nil {
		t.Error("the root of a larger tree was read")
	}
}

// Peek refuses what is not a checkpoint, though it verifies nobody's signature.
func TestPeekRefusesWhatIsNoCheckpoint(t *testing.T) {
	root := merkle.Hash{}.String()
	for name, text := range map[string]string{
		"nothing": "", "no signature": "a\n1\n" + root + "\n", "no origin": "\n1\n" + root + "\n\n", "one line": "a\n\n", "two lines": "a\n1\n\n",
		"a size of letters": "a\nx\n" + root + "\n\n",
		"a negative size":   "a\n-1\n" + root + "\n\n", "a plus": "a\n+1\n" + root + "\n\n", "a short root": "a\n1\nAAAA\n\n",
		"no root": "a\n1\n-\n\n",
	} {
		if c, err := merkle.Peek([]byte(text)); fault.CodeOf(err) != "checkpoint_invalid" || c != (merkle.Checkpoint{}) {
			t.Errorf("%s: got %+v, %v", name, c, err)
		}
	}
	if c, err := merkle.Peek([]byte("a/ws_dev\n0\n" + root + "\n\n")); err != nil || c.Size != 0 || c.Installation() != "a" {
		t.Errorf("an empty tree: %+v, %v", c, err)
	}
}

func TestTheBoundsOfACheckpoint(t *testing.T) {
	tr := newTree(t, 3)
	signer, _, err := tr.private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	c, signed := tr.checkpoint(t, 3)
	for _, more := range []int{0, 1} {
		text := c.Text() + strings.Repeat("x", merkle.MaxCheckpointBytes-len(signed)-1+more) + "\n"
		long, err := note.Sign(&note.Note{Text: text}, signer)
		if err != nil || len(long) != merkle.MaxCheckpointBytes+more {
			t.Fatal(len(long), err)
		}
		if _, err := merkle.Open(long, tr.key); (err == nil) != (more == 0) {
			t.Errorf("%d bytes: %v", len(long), err)
		}
	}
	if got, err := merkle.Open(tr.signed(t, 0, merkle.Hash{}), tr.key); err != nil || got.Size != 0 {
		t.Errorf("of an empty tree: %+v, %v", got, err)
	}
	if _, err := merkle.Open(signed, "x"); fault.CodeOf(err) != "public_key_invalid" {
		t.Errorf("under no key: %v", err)
	}
	for origin, want := range map[string]string{"a/b/ws_dev": "a/b", "/ws_dev": "", "alone": "alone"} {
		if got := (merkle.Checkpoint{Origin: origin}).Installation(); got != want {
			t.Errorf("%q is of %q, want %q", origin, got, want)
		}
		if _, err := (merkle.Checkpoint{Origin: origin}).Workspace(); (err == nil) != (origin != "alone") {
			t.Errorf("%q names a workspace: %v", origin, err)
		}
	}
}

// A key is one of Ed25519 with its own hash, or none.
func TestWhatIsNoKey(t *testing.T) {
	tr := newTree(t, 0)
	raw := tr.key.Raw()
	of := func(alg byte, key []byte, behind string) merkle.PublicKey {
		return merkle.PublicKey("a+00000000+" + base64.StdEncoding.EncodeToString(append([]byte{alg}, key...)) + behind)
	}
	if got := of(1, raw, "").Raw(); !slices.Equal(got, raw) {
		t.Errorf("got %x, want %x", got, raw)
	}
	for name, key := range map[string]merkle.PublicKey{
		"another algorithm": of(2, raw, ""), "a short key": of(1, raw[1:], ""), "a long key": of(1, append(slices.Clone(raw), 0), ""),
		"no base64": of(1, raw, "!"), "nothing": "a+00000000+",
	} {
		if got := key.Raw(); got != nil {
			t.Errorf("%s: %x", name, got)
		}
	}
	if _, _, err := merkle.NewKey(strings.NewReader("too short")); err == nil {
		t.Error("a key was made of too few random bytes")
	}
	parts := strings.SplitN(string(tr.private), "+", 5)
	parts[3] = "00000000"
	foreign := merkle.PrivateKey(strings.Join(parts, "+"))
	if _, _, err := foreign.Signer(); fault.CodeOf(err) != "signing_key_invalid" {
		t.Errorf("a private key with another hash: %v", err)
	}
	if _, err := merkle.NewCosigner(foreign, time.Now); fault.CodeOf(err) != "signing_key_invalid" {
		t.Errorf("a witness with such a key: %v", err)
	}
}

// The key of a witness has the id that C2SP says, and what is not such a key verifies nothing.
func TestTheKeyOfAWitness(t *testing.T) {
	tr := newTree(t, 3)
	_, signed := tr.checkpoint(t, 3)
	private, public, err := merkle.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cosigner, err := merkle.NewCosigner(private, func() time.Time { return time.Unix(1, 0) })
	if err != nil {
		t.Fatal(err)
	}
	cosigned, err := note.Sign(must(note.Open(signed, note.VerifierList(must(note.NewVerifier(string(tr.key)))))), cosigner)
	if err != nil {
		t.Fatal(err)
	}
	key := func(alg byte, raw []byte) string {
		sum := sha256.Sum256(slices.Concat([]byte(cosigner.Name()+"\n\x04"), raw))
		return cosigner.Name() + "+" + hex.EncodeToString(sum[:4]) + "+" + base64.StdEncoding.EncodeToString(append([]byte{alg}, raw...))
	}
	raw := public.Raw()
	if want := key(4, raw); cosigner.PublicKey() != want || fmt.Sprintf("%08x", cosigner.KeyHash()) != strings.Split(want, "+")[1] {
		t.Errorf("the key is %s with the id %08x, want %s", cosigner.PublicKey(), cosigner.KeyHash(), want)
	}
	good := strings.SplitN(key(4, raw), "+", 3)
	for name, bad := range map[string]string{
		"another algorithm": key(1, raw), "a short key": key(4, raw[1:]), "a long key": key(4, append(slices.Clone(raw), 0)),
		"no bytes": good[0] + "+" + good[1] + "+", "more behind it": strings.Join(good, "+") + "!",
		"a long id": good[0] + "+" + good[1] + "00+" + good[2], "a short id": good[0] + "+" + good[1][:6] + "+" + good[2],
		"an id of letters":  good[0] + "+" + good[1] + "x+" + good[2],
		"the id of another": good[0] + "+00000000+" + good[2], "two parts": good[0] + "+" + good[1],
	} {
		if _, err := merkle.CosignedAt(cosigned, bad); fault.CodeOf(err) != "witness_key_invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, _, _ := strings.Cut(string(cosigned), "\n\n")
	for _, size := range []int{0, 7, 71, 73} {
		blob := base64.StdEncoding.EncodeToString(append(binary.BigEndian.AppendUint32(nil, cosigner.KeyHash()), make([]byte, size)...))
		short := text + "\n\n— " + cosigner.Name() + " " + blob + "\n"
		if _, err := merkle.CosignedAt([]byte(short), cosigner.PublicKey()); fault.CodeOf(err) != "checkpoint_invalid" {
			t.Errorf("a signature of %d bytes: %v", size, err)
		}
	}
}

// A witness that holds another checkpoint says of how many events.
func TestAStaleWitnessSaysWhatItHolds(t *testing.T) {
	err := error(&merkle.Stale{Size: 42})
	if !strings.Contains(err.Error(), "42") || fault.CodeOf(err) != "witness_holds_another" || fault.KindOf(err) != fault.Conflict {
		t.Errorf("got %v, %q", err, fault.CodeOf(err))
	}
}
