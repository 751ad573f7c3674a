// Package transfer writes a workspace as one file and takes one in: every event as it is, and the contents that the events name.
//
// The file is a gzip-compressed tar archive that is written and read from its beginning to its end:
//
//	workspace.json           the workspace's identity, and the last checkpoint that was signed for it
//	contents/SHA256          each content that an event names
//	events/FIRST.jsonl       the events in the order of the log, at most 1,000 in each, one in each line: a line
//	keys/FIRST.jsonl         the idempotency keys of batches in their order, at most 1,000 in each, so that a repeat is met there too
//	end.json                 how many there are, the root of the tree over all events, and the SHA-256 of the list of all entries before it
package transfer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// format names the form of the file. A later form has a higher number and is refused here; the first had no keys.
const (
	format      = "agentbox-workspace/2"
	formatFirst = "agentbox-workspace/1"
)

// Limits of a file.
const (
	maxNoteBytes  = 1 << 20   // of workspace.json and of end.json
	maxChunkBytes = 192 << 20 // of one file of events: a batch of the largest data, in base64
	maxKeyBytes   = 4 << 20   // of one file of keys
	chunkBytes    = 32 << 20  // of data, after which a file of events is closed
	maxContent    = 1 << 30   // of one content
)

// note is workspace.json.
type note struct {
	Format     string           `json:"format"`
	Workspace  id.Workspace     `json:"workspace_id"`
	Made       time.Time        `json:"made_at"`
	Program    string           `json:"agentbox"`
	Head       uint64           `json:"events"`
	Checkpoint string           `json:"checkpoint,omitempty"` // the C2SP note; none where nothing was signed yet
	PublicKey  merkle.PublicKey `json:"public_key,omitempty"`
}

// line is one event. Its data are separate, because the commitment covers their exact bytes.
type line struct {
	Event event.Event `json:"event"`
	Data  []byte      `json:"body"`
}

// end is end.json.
type end struct {
	Events   uint64       `json:"events"`
	Contents int          `json:"contents"`
	Missing  int          `json:"contents_missing"` // that events name and that were not there any more
	Keys     int          `json:"keys,omitempty"`
	Root     string       `json:"root_hash"`
	Entries  event.Digest `json:"sha256"` // of the list: SHA-256, size and name of each entry, in a line each, and of "missing"
}

// Moved describes the content of a file, or of an import.
type Moved struct {
	Workspace id.Workspace     `json:"workspace_id"`
	Made      time.Time        `json:"made_at"`
	Events    uint64           `json:"events"`
	Contents  int              `json:"contents"`
	Missing   int              `json:"contents_missing"`
	Keys      int              `json:"idempotency_keys"`
	Root      string           `json:"root_hash"`       // of the tree over all events
	Size      uint64           `json:"checkpoint_size"` // of the last checkpoint that was signed at home; 0 for none
	PublicKey merkle.PublicKey `json:"public_key"`      // that verifies it
}

// Source is the log of a workspace, and what belongs to it.
type Source struct {
	Log interface {
		journal.Journal
		journal.Keyed
	}
	Contents   Contents
	Checkpoint string // the last one, read before the log; "" for none
	PublicKey  merkle.PublicKey
}

// Target takes a workspace in.
type Target struct {
	Log      journal.Adopter
	Contents Keeper
	Key      merkle.PublicKey // that must have signed the checkpoint; "" for the one that came with the file
	Only     id.Workspace     // of which the file must be; "" for any
	Most     int64            // bytes that are read of it when it is unpacked; 0 for without limit
}

// Keeper keeps contents, as a blob.Store does.
type Keeper interface {
	Put(ctx context.Context, r io.Reader, max int64) (blob.Ref, error)
}

// ErrTooLarge refuses a file that is larger than its reader takes.
var ErrTooLarge = fault.New(fault.Exhausted, "workspace_file_too_large",
	"the unpacked file is larger than a daemon takes at a time").
	With("stop the daemon and import it into its data directory: agentbox import FILE")

// bounded reads at most so many bytes, and remembers that there were more.
type bounded struct {
	io.Reader
	left int64
	over bool
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p[:min(int64(len(p)), b.left+1)])
	if b.left -= int64(n); b.left < 0 {
		b.over = true
		return 0, ErrTooLarge
	}
	return n, err
}

// list hashes the list of entries.
type list struct{ sum hash.Hash }

func newList() list { return list{sha256.New()} }

func (l list) add(name string, size int64, digest []byte) {
	fmt.Fprintf(l.sum, "%s %d %s\n", hex.EncodeToString(digest), size, name)
}

func (l list) digest() (d event.Digest) {
	l.sum.Sum(d[:0])
	return d
}

// damaged refuses a file.
func damaged(format string, args ...any) error {
	return fault.New(fault.Invalid, "workspace_file_invalid", "the file cannot be used: "+format, args...).
		With("export the workspace again with: agentbox export FILE")
}

// signed holds the log against the checkpoint that came with it, while it is walked.
type signed struct {
	edge  merkle.Edge
	spare []merkle.Hash
	want  merkle.Checkpoint // size 0 for none
	held  bool
}

func (s *signed) add(e *event.Event) {
	s.spare = s.edge.Add(merkle.LeafHash(e.Seq, e.Chain.Hash), s.spare[:0])
	if s.edge.Size() == s.want.Size {
		s.held = s.edge.Root() == s.want.Root
	}
}

// settle reports a log that is not the one that the checkpoint was signed for.
func (s *signed) settle() error {
	if s.want.Size > 0 && !s.held {
		return fault.New(fault.Invalid, merkle.ErrProof.Code, "the events are not those that the checkpoint of %d events was signed for",
			s.want.Size)
	}
	return nil
}
