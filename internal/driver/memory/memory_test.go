package memory_test

import (
	"crypto/rand"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/blob/blobtest"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/livestream/livestreamtest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/kernel/merkle/merkletest"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/kernel/vault/vaulttest"
)

func TestJournal(t *testing.T) {
	journaltest.Run(t, journaltest.Driver{Open: func(t *testing.T, s journaltest.Setup) journaltest.Log {
		t.Helper()
		j, err := memory.NewJournal(s.Definitions, s.Clock, s.IDs, s.Entropy)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}})
}

func TestBlobs(t *testing.T) {
	issue := func(a policy.Action) policy.Permit {
		canonical, err := a.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		return policy.Issue(canonical, nil)
	}
	blobtest.Run(t, issue, func(*testing.T) blob.Store { return memory.NewBlobs() }, nil)
}

func TestLivestreams(t *testing.T) {
	livestreamtest.Run(t, func(_ *testing.T, c event.Clock) livestream.Store { return memory.NewLivestreams(c) }, nil)
}

func TestKeys(t *testing.T) {
	vaulttest.Run(t, func(*testing.T) vault.Keys { return memory.NewKeys(rand.Reader) }, nil)
}

func TestTrees(t *testing.T) {
	merkletest.Run(t, func(*testing.T) func() merkle.Store {
		trees := memory.NewTrees()
		return func() merkle.Store { return trees }
	})
}
