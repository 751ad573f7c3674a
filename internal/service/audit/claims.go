package audit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// Held is a checkpoint that somebody holds: the log is verified against it.
type Held struct {
	By         string // who, for people: "this data directory", or a witness
	Checkpoint merkle.Checkpoint
	Err        error        // why it is none: it cannot be read, or the key did not sign it
	Trees      merkle.Store // has the hashes below the checkpoint, so that the first wrong event can be named; may be nil
}

// HeldReport is a checkpoint that the log was held against.
type HeldReport struct {
	By   string `json:"by"`
	Size uint64 `json:"size"`
	Root string `json:"root_hash,omitempty"`
	OK   bool   `json:"ok"`
}

// Own is the holder's name of a data directory's own checkpoint.
const Own = "this data directory"

// OwnCheckpoint reads the last checkpoint of a workspace, to be read before the log is. There is none before the first was signed. Without
// a key its signature is not checked; the log has to continue it all the same.
func OwnCheckpoint(ctx context.Context, trees merkle.Store, ws id.Workspace, key merkle.PublicKey) ([]Held, error) {
	signed, err := trees.Checkpoint(ctx, ws)
	if errors.Is(err, merkle.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if key == "" {
		c, err := merkle.Peek(signed)
		return []Held{held(Own+" (without its signature)", c, err, ws, trees)}, nil
	}
	return []Held{HeldNote(Own, signed, ws, key, trees)}, nil
}

// HeldNote reads a signed checkpoint of a workspace that somebody holds.
func HeldNote(by string, signed []byte, ws id.Workspace, key merkle.PublicKey, trees merkle.Store) Held {
	c, err := merkle.Open(signed, key)
	return held(by, c, err, ws, trees)
}

// held is a checkpoint that has to be one of a workspace.
func held(by string, c merkle.Checkpoint, err error, ws id.Workspace, trees merkle.Store) Held {
	if of, _ := c.Workspace(); err == nil && of != ws {
		err = fault.New(fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: it is one of %s", of)
	}
	return Held{By: by, Checkpoint: c, Err: err, Trees: trees}
}

// claims holds the log against checkpoints while it is walked.
type claims struct {
	held  []Held        // by size
	roots []merkle.Hash // of the log at the size of each
	next  int           // of held, the first that the walk has not come to
	edge  merkle.Edge
	spare []merkle.Hash
	gap   bool // an event is missing, so that there is no tree behind it
}

func newClaims(held []Held) claims {
	c := claims{held: slices.Clone(held), roots: make([]merkle.Hash, len(held))}
	slices.SortStableFunc(c.held, func(a, b Held) int {
		switch x, y := a.Checkpoint.Size, b.Checkpoint.Size; {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	c.reach()
	return c
}

// reach notes the root for every checkpoint of the present size.
func (c *claims) reach() {
	for c.next < len(c.held) && c.held[c.next].Checkpoint.Size == c.edge.Size() {
		c.roots[c.next] = c.edge.Root()
		c.next++
	}
}

// add adds the leaf of the event at a place.
func (c *claims) add(seq uint64, leaf merkle.Hash) {
	if c.next == len(c.held) || c.gap {
		return
	}
	if seq != c.edge.Size()+1 {
		c.gap = true
		return
	}
	c.spare = c.edge.Add(leaf, c.spare[:0])
	c.reach()
}

// settleClaims reports every checkpoint that does not fit the log.
func (w *walk) settleClaims(ctx context.Context) error {
	for i, held := range w.claims.held {
		c := held.Checkpoint
		report := HeldReport{By: held.By, Size: c.Size, Root: c.Root.String()}
		switch {
		case held.Err != nil:
			report.Root = ""
			w.report.found(Finding{Kind: CheckpointInvalid, Detail: fmt.Sprintf("the checkpoint of %s: %s", held.By, faultText(held.Err))})
		case i < w.claims.next && w.claims.roots[i] == c.Root:
			report.OK = true
		default:
			f, err := w.differing(ctx, held)
			if err != nil {
				return err
			}
			w.report.found(f)
		}
		w.report.Held = append(w.report.Held, report)
	}
	return nil
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }

func faultText(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	return err.Error()
}

// differing names the first event that is not the one that was signed for, as exactly as the hashes at hand allow.
// Another checkpoint that the log continues tells nothing about it: of a log that was forked, each branch may have been signed.
func (w *walk) differing(ctx context.Context, held Held) (Finding, error) {
	size, head := held.Checkpoint.Size, w.report.Head
	end := min(size, head)
	if held.Trees != nil && authentic(ctx, held) {
		first, err := firstDifference(ctx, w.log, w.report.Workspace, held.Trees, 0, end)
		if err != nil {
			return Finding{}, err
		}
		if first != 0 {
			return Finding{Kind: CheckpointMismatch, Seq: first,
				Detail: fmt.Sprintf("event %d is not the one that the checkpoint of %s was signed for; from there on it is another log", first,
					held.By)}, nil
		}
	} else if size <= head {
		return Finding{Kind: CheckpointMismatch, Seq: 1, Detail: fmt.Sprintf(
			"the log is not the one that the checkpoint of %s was signed for: it differs at an event from 1 to %d, and the hashes that would tell "+
				"which are not there", held.By, size)}, nil
	}
	if size <= head {
		return Finding{Kind: CheckpointMismatch, Seq: end, Detail: fmt.Sprintf("the checkpoint of %s was signed for another log", held.By)}, nil
	}
	return Finding{Kind: Truncated, Seq: head + 1, Detail: fmt.Sprintf(
			"the checkpoint of %s was signed for %d events and the log ends at %d: events %d to %d are missing", held.By, size, head, head+1, size)},
		nil
}

// leavesAtOnce is how many leaves are read at a time.
const leavesAtOnce = 4 << 10

// leaves calls see with the leaves of a stored tree, in order, until it returns false.
func leaves(ctx context.Context, trees merkle.Store, ws id.Workspace, from, to uint64, see func(seq uint64, leaf merkle.Hash) bool) error {
	for from < to {
		n := min(to-from, leavesAtOnce)
		first := tlog.StoredHashIndex(0, int64(from))
		indexes := make([]int64, tlog.StoredHashIndex(0, int64(from+n-1))-first+1)
		for i := range indexes {
			indexes[i] = first + int64(i)
		}
		hashes, err := trees.ReadHashes(ctx, ws, indexes)
		if err != nil {
			return err
		}
		for i := range n {
			if !see(from+i+1, hashes[tlog.StoredHashIndex(0, int64(from+i))-first]) {
				return nil
			}
		}
		from += n
	}
	return nil
}

// authentic reports whether the leaves that are kept with a checkpoint are those that it was signed for.
func authentic(ctx context.Context, held Held) bool {
	ws, err := held.Checkpoint.Workspace()
	if err != nil {
		return false
	}
	var edge merkle.Edge
	var spare []merkle.Hash
	err = leaves(ctx, held.Trees, ws, 0, held.Checkpoint.Size, func(_ uint64, leaf merkle.Hash) bool {
		spare = edge.Add(leaf, spare[:0])
		return true
	})
	return err == nil && edge.Root() == held.Checkpoint.Root
}

// firstDifference returns the place of the first event behind from, up to and with to, that has not the leaf which the trees have; 0 if
// there is none.
func firstDifference(ctx context.Context, log journal.Journal, ws id.Workspace, trees merkle.Store, from, to uint64) (uint64, error) {
	for from < to {
		hashes, err := journal.Hashes(ctx, log, ws, from+1, int(min(to-from, leavesAtOnce)))
		if damage, ok := errors.AsType[*journal.Damage](err); ok {
			return damage.Seq, nil
		}
		if err != nil {
			return 0, err
		}
		if len(hashes) == 0 {
			return from + 1, nil
		}
		first := uint64(0)
		base := from
		err = leaves(ctx, trees, ws, from, from+uint64(len(hashes)), func(seq uint64, leaf merkle.Hash) bool {
			if merkle.LeafHash(seq, hashes[seq-base-1]) != leaf {
				first = seq
			}
			return first == 0
		})
		if first != 0 || err != nil {
			return first, err
		}
		from += uint64(len(hashes))
	}
	return 0, nil
}
