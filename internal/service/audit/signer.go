package audit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// lookedBack is how many of the last events that were signed for are compared when a daemon starts.
const lookedBack = 1_000

// grownAtOnce is how many leaves a tree grows by before they are written.
const grownAtOnce = 16 << 10

// Signer grows the tree of every workspace after its log and signs checkpoints. It reads committed events, and no append waits for it.
type Signer struct {
	log    journal.Journal
	trees  merkle.Store
	key    note.Signer
	public merkle.PublicKey

	mu    sync.Mutex // guards edges; held by one Step at a time
	edges map[id.Workspace]*merkle.Edge

	failed atomic.Pointer[error] // of the last Step; nil while it succeeds
}

// NewSigner returns a signer. It signs nothing before Recover has found that the log continues the last signed checkpoint.
func NewSigner(log journal.Journal, trees merkle.Store, key merkle.PrivateKey) (*Signer, error) {
	signer, public, err := key.Signer()
	if err != nil {
		return nil, err
	}
	return &Signer{log: log, trees: trees, key: signer, public: public}, nil
}

// PublicKey returns the key that verifies the signer's signatures.
func (s *Signer) PublicKey() merkle.PublicKey { return s.public }

// advice tells the operator how to act when the log is not the one that was signed.
const advice = "stop, keep a copy of the data directory, and put the newer log back; if it is lost for good, or a backup was restored on " +
	"purpose, " +
	"run: agentbox audit abandon --reason TEXT. That gives up the proofs so far, keeps the old checkpoint as evidence, and is recorded in " +
	"the log"

// Recover holds the log against the last checkpoint of every workspace and refuses a log that is older than it, or another one. It reads
// the last thousand events that were signed for; Verify reads all. A tree that is lost is made again from the log.
func (s *Signer) Recover(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	workspaces, err := s.trees.Workspaces(ctx)
	if err != nil {
		return err
	}
	edges := map[id.Workspace]*merkle.Edge{}
	for _, ws := range workspaces {
		edge, err := s.recover(ctx, ws)
		if err != nil {
			return err
		}
		edges[ws] = edge
	}
	s.edges = edges
	return nil
}

func (s *Signer) recover(ctx context.Context, ws id.Workspace) (*merkle.Edge, error) {
	signed, err := s.trees.Checkpoint(ctx, ws)
	if err != nil {
		return nil, err
	}
	c, err := merkle.Open(signed, s.public)
	if of, _ := c.Workspace(); err != nil || of != ws {
		return nil, fault.Wrap(err, fault.Unavailable, "checkpoint_foreign",
			"the last checkpoint of %s cannot be read, or another key than this data directory's signed it", ws).
			With("put the signing key and the checkpoint back as they were, or give up the proofs so far with: agentbox audit abandon --reason TEXT")
	}
	head, err := s.log.Head(ctx, ws)
	if err != nil {
		return nil, err
	}
	if head < c.Size {
		return nil, fault.New(fault.Unavailable, "log_rolled_back",
			"the log is older than its own last checkpoint: %s ends at event %d, and the checkpoint was signed for %d; events %d to %d are missing",
			ws, head, c.Size, head+1, c.Size).With(advice)
	}
	if root, err := merkle.RootAt(ctx, s.trees, ws, c.Size); err != nil || root != c.Root {
		if err := s.again(ctx, ws, c.Size); err != nil {
			return nil, err
		}
		if root, err = merkle.RootAt(ctx, s.trees, ws, c.Size); err != nil {
			return nil, err
		}
		if root != c.Root {
			return nil, fault.New(fault.Unavailable, "log_replaced",
				"the log of %s is not the one that its last checkpoint was signed for: one of the events 1 to %d was changed", ws,
				c.Size).With("run agentbox audit verify to find which; " + advice)
		}
	}
	first, err := firstDifference(ctx, s.log, ws, s.trees, c.Size-min(c.Size, lookedBack), c.Size)
	if err != nil {
		return nil, err
	}
	if first != 0 {
		return nil, fault.New(fault.Unavailable, "log_replaced",
			"the log of %s is not the one that its last checkpoint was signed for: event %d is another, perhaps others before it too", ws,
			first).With("run agentbox audit verify to find the first; " + advice)
	}
	edge, err := merkle.EdgeAt(ctx, s.trees, ws, c.Size)
	return &edge, err
}

// again rebuilds the tree of a workspace from the log.
func (s *Signer) again(ctx context.Context, ws id.Workspace, size uint64) error {
	if err := s.trees.WriteHashes(ctx, ws, 0, nil); err != nil {
		return err
	}
	return s.grow(ctx, ws, &merkle.Edge{}, size)
}

// Ready reports whether the last checkpoints could be signed and kept.
func (s *Signer) Ready(ctx context.Context) error {
	if failed := s.failed.Load(); failed != nil {
		return fault.Wrap(*failed, fault.Unavailable, "checkpoint_unsigned",
			"the last checkpoint could not be signed and stored; check that the disk works and has free space")
	}
	return ctx.Err()
}

// grow adds the leaves of the events up to a place.
func (s *Signer) grow(ctx context.Context, ws id.Workspace, edge *merkle.Edge, to uint64) error {
	var more []merkle.Hash
	for edge.Size() < to {
		at := tlog.StoredHashCount(int64(edge.Size()))
		more = more[:0]
		for stop := min(to, edge.Size()+grownAtOnce); edge.Size() < stop; {
			from := edge.Size()
			hashes, err := journal.Hashes(ctx, s.log, ws, from+1, int(stop-from))
			if err != nil {
				return err
			}
			if len(hashes) == 0 {
				return fmt.Errorf("the log of %s has no events from %d on", ws, from+1)
			}
			for i, hash := range hashes {
				more = edge.Add(merkle.LeafHash(from+uint64(i)+1, hash), more)
			}
		}
		if err := s.trees.WriteHashes(ctx, ws, at, more); err != nil {
			return err
		}
	}
	return nil
}

// Step signs a checkpoint for every workspace whose log has grown since its last one. It tries all, whatever becomes of one.
func (s *Signer) Step(ctx context.Context) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if err == nil {
			s.failed.Store(nil)
		} else if ctx.Err() == nil {
			s.failed.Store(&err)
		}
	}()
	if s.edges == nil {
		return errors.New("the signer was not recovered")
	}
	workspaces, err := s.log.Workspaces(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, ws := range workspaces {
		if err := s.sign(ctx, ws); err != nil {
			errs = append(errs, fmt.Errorf("sign a checkpoint of %s: %w", ws, err))
		}
	}
	return errors.Join(errs...)
}

func (s *Signer) sign(ctx context.Context, ws id.Workspace) error {
	head, err := s.log.Head(ctx, ws)
	if err != nil {
		return err
	}
	edge := s.edges[ws]
	if edge == nil {
		edge = &merkle.Edge{}
	}
	if head == edge.Size() {
		return nil
	}
	delete(s.edges, ws) // after a failure, read it again
	if head < edge.Size() {
		return fmt.Errorf("the log ends at %d and was signed for %d", head, edge.Size())
	}
	if err := s.grow(ctx, ws, edge, head); err != nil {
		return errors.Join(err, s.reread(ctx, ws))
	}
	c := merkle.Checkpoint{Origin: merkle.OriginOf(s.public.Name(), ws), Size: head, Root: edge.Root()}
	signed, err := c.Sign(s.key)
	if err == nil {
		err = s.trees.Keep(ctx, ws, signed)
	}
	if err != nil {
		return errors.Join(err, s.reread(ctx, ws))
	}
	s.edges[ws] = edge
	return nil
}

// reread goes back to the last checkpoint that was kept.
func (s *Signer) reread(ctx context.Context, ws id.Workspace) error {
	ctx = context.WithoutCancel(ctx)
	signed, err := s.trees.Checkpoint(ctx, ws)
	if errors.Is(err, merkle.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := merkle.Open(signed, s.public)
	if err != nil {
		return err
	}
	edge, err := merkle.EdgeAt(ctx, s.trees, ws, c.Size)
	if err == nil {
		s.edges[ws] = &edge
	}
	return err
}

// EventAbandoned is recorded when an operator gives up a checkpoint that the log does not continue.
const EventAbandoned = "checkpoint.abandoned"

// CheckpointAbandoned is the data of EventAbandoned.
type CheckpointAbandoned struct {
	Size       uint64 `json:"size"`       // events that the checkpoint was signed for
	Head       uint64 `json:"head"`       // events that the log had
	Checkpoint string `json:"checkpoint"` // the note
	Reason     string `json:"reason"`
}
