package audit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// SnapshotsReport is the result of verifying the snapshots that a workspace's events name.
type SnapshotsReport struct {
	Workspace id.Workspace `json:"workspace_id"`
	OK        bool         `json:"ok"`
	Snapshots int          `json:"snapshots"`           // that were read in full and held against their hashes
	Bytes     int64        `json:"bytes"`               // that were read
	Let       int          `json:"let_go,omitempty"`    // that events name and their spaces keep no more, as they may
	Unread    int          `json:"unread,omitempty"`    // that were not read in full, for the bound was reached
	Sealed    int          `json:"sealed,omitempty"`    // folders and files that cannot be opened, for their keys are not here
	Lost      int          `json:"lost,omitempty"`      // spaces that do not keep their newest snapshot, which they should
	Gone      int          `json:"gone,omitempty"`      // living spaces of this data directory whose folder was removed from it
	Elsewhere int          `json:"elsewhere,omitempty"` // other spaces whose files are not on this host
	Count     int          `json:"findings_count"`
	Findings  []Finding    `json:"findings"` // the first MaxFindings, in the order of the spaces' ids

	lacking []Finding
	opened  int
}

// Shelves find the stored snapshots of spaces.
type Shelves interface {
	// Shelf returns the stored snapshots of a space; space.ErrFilesMissing if they are not on this host.
	Shelf(ctx context.Context, sp id.Space) (space.Shelf, error)
}

// SnapshotsBound bounds how much of the snapshots is read, and names the function that gets the progress.
type SnapshotsBound struct {
	Bytes    int64                           // at most so many; 0 reads none
	Node     id.Node                         // whose data directory is examined; "" for a copy of a log without the files of its spaces
	Progress func(snapshots int, read int64) // is called after each snapshot with how many there were so far, and the bytes; nil for nobody
}

// named are the snapshots that events name of one space.
type named struct {
	by     map[event.Digest]event.Event // without data: the last event that names each
	newest event.Digest
	node   id.Node // which made the space, and has its files; "" if the log does not say
}

// VerifySnapshots reads the kept snapshots that events of living spaces name, the newest of each space first. It checks every folder and
// file in them against its hash. Others may append meanwhile.
func VerifySnapshots(ctx context.Context, log journal.Journal, shelves Shelves, ws id.Workspace, bound SnapshotsBound) (SnapshotsReport,
	error) {
	report := SnapshotsReport{Workspace: ws, OK: true, Findings: []Finding{}}
	spaces, err := namedSnapshots(ctx, log, ws)
	if err != nil {
		return report, err
	}
	for _, sp := range slices.Sorted(maps.Keys(spaces)) {
		shelf, err := shelves.Shelf(ctx, sp)
		if errors.Is(err, space.ErrFilesMissing) {
			if bound.Node != "" && spaces[sp].node == bound.Node {
				report.Gone++
			} else {
				report.Elsewhere++
			}
			continue
		}
		if err != nil {
			return report, fmt.Errorf("read the snapshots of %s: %w", sp, err)
		}
		if err := report.holdSpace(ctx, sp, shelf, spaces[sp], bound); err != nil {
			return report, fmt.Errorf("read the snapshots of %s: %w", sp, err)
		}
	}
	if report.opened > 0 {
		for _, f := range report.lacking {
			report.found(f)
		}
	}
	return report, nil
}

// namedSnapshots returns the snapshots that events name, of spaces that were not destroyed.
func namedSnapshots(ctx context.Context, log journal.Journal, ws id.Workspace) (map[id.Space]*named, error) {
	spaces, nodes := map[id.Space]*named{}, map[id.Space]id.Node{}
	q := journal.Query{Workspace: ws, From: 1, Limit: journal.MaxRead, Types: append(space.KeepingEvents(), space.EventCreated)}
	for {
		events, err := log.Read(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			q.From = e.Seq + 1
			if e.EntityType == space.EntityType && e.Type == space.EventDestroyed {
				delete(spaces, id.Space(e.EntityID))
			}
			if e.Withheld != "" {
				continue // it names nothing any more
			}
			if e.EntityType == space.EntityType && e.Type == space.EventCreated {
				made, err := event.Decode[struct {
					Node id.Node `json:"node_id"`
				}](e)
				if err != nil {
					return nil, err
				}
				nodes[id.Space(e.EntityID)] = made.Node
			}
			made, ok, err := space.RecordedIn(e)
			if err != nil {
				return nil, err
			}
			if !ok {
				continue
			}
			n := spaces[made.Space]
			if n == nil {
				n = &named{by: map[event.Digest]event.Event{}, node: nodes[made.Space]}
				spaces[made.Space] = n
			}
			e.Data = nil
			n.by[made.Root], n.newest = e, made.Root
		}
		if len(events) < q.Limit {
			return spaces, nil
		}
	}
}

// holdSpace holds the snapshots of one space.
func (r *SnapshotsReport) holdSpace(ctx context.Context, sp id.Space, shelf space.Shelf, n *named, bound SnapshotsBound) error {
	if !shelf.Keeps(n.newest) {
		r.Lost++
	}
	roots := slices.SortedFunc(maps.Keys(n.by), func(a, b event.Digest) int { return int(n.by[b].Seq) - int(n.by[a].Seq) })
	for _, root := range roots {
		if !shelf.Keeps(root) {
			r.Let++
			continue
		}
		held, err := shelf.Hold(ctx, root, bound.Bytes-r.Bytes)
		if err != nil {
			return err
		}
		r.Bytes += held.Read
		r.opened += held.Contents
		e := n.by[root]
		f := Finding{Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, Event: e.ID, Document: space.SnapshotProjection + "/" + string(e.ID),
			Expected: root}
		switch {
		case held.Damage != "":
			f.Kind, f.Detail = SnapshotDamaged, fmt.Sprintf("of %s, %s: %s", sp, root, held.Damage)
			r.found(f)
		case held.Sealed > 0:
			f.Kind, f.Detail = KeyMissing, fmt.Sprintf("the keys of %d folders and files of a snapshot of %s are not here, while keys of others are",
				held.Sealed, sp)
			r.Sealed += held.Sealed
			r.lacking = append(r.lacking, f)
		case held.Left > 0:
			r.Unread++
		default:
			r.Snapshots++
		}
		if bound.Progress != nil {
			bound.Progress(r.Snapshots+r.Unread+r.Count+len(r.lacking), r.Bytes)
		}
	}
	return nil
}

func (r *SnapshotsReport) found(f Finding) {
	r.OK = false
	if r.Count++; len(r.Findings) < MaxFindings {
		r.Findings = append(r.Findings, f)
	}
}
