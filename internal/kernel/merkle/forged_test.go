package merkle_test

import (
	"errors"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/merkle"
)

// A proof that names another event, or another root, than what it proves does not hold, though its hashes do.
func TestAProofIsAboutWhatItNames(t *testing.T) {
	tr := newTree(t, 7)
	_, signed := tr.checkpoint(t, 7)
	p, err := merkle.ProveInclusion(tr, 3, tr.events[2], signed, tr.key)
	if err != nil {
		t.Fatal(err)
	}
	p.EventHash = tr.events[3]
	if _, err := p.Check(tr.key); !errors.Is(err, merkle.ErrProof) {
		t.Errorf("the record of event 3 proved another event: %v", err)
	}
	q, err := merkle.ProveConsistency(tr, 3, signed, tr.key)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*merkle.Consistency){
		"a new root that is not the checkpoint's": func(q *merkle.Consistency) { q.NewRoot = q.OldRoot },
		"an old root that is not a hash":          func(q *merkle.Consistency) { q.OldRoot = "x" },
		"another new size":                        func(q *merkle.Consistency) { q.New-- },
		"a later old size":                        func(q *merkle.Consistency) { q.Old = q.New + 1 },
	} {
		changed := q
		change(&changed)
		if err := changed.Check(tr.key); !errors.Is(err, merkle.ErrProof) {
			t.Errorf("%s: %v", name, err)
		}
	}
	none, err := merkle.ProveConsistency(tr, 0, signed, tr.key)
	if err != nil {
		t.Fatal(err)
	}
	if none.OldRoot = "x"; !errors.Is(none.Check(tr.key), merkle.ErrProof) {
		t.Error("the root of nothing was no hash")
	}
}

// A checkpoint has to name a workspace behind the installation.
func TestACheckpointNamesAWorkspace(t *testing.T) {
	tr := newTree(t, 3)
	c, _ := tr.checkpoint(t, 3)
	signer, _, err := tr.private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "no workspace"} {
		c.Origin = tr.key.Name() + "/" + name
		signed, err := c.Sign(signer)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := merkle.Open(signed, tr.key); fault.CodeOf(err) != "checkpoint_invalid" {
			t.Errorf("%q: %v", c.Origin, err)
		}
	}
}

// The edge and the root of nothing are known without a store.
func TestATreeOfNothingIsNotRead(t *testing.T) {
	edge, err := merkle.EdgeAt(t.Context(), nil, "ws_dev", 0)
	if err != nil || edge.Size() != 0 {
		t.Errorf("got %d leaves, %v", edge.Size(), err)
	}
	if root, err := merkle.RootAt(t.Context(), nil, "ws_dev", 0); err != nil || root != edge.Root() {
		t.Errorf("got %s, %v, want %s", root, err, edge.Root())
	}
}
