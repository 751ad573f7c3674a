package merkle

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// MaxCheckpointBytes is the most that a signed checkpoint may have: its three lines, the log's signature and those of many witnesses.
const MaxCheckpointBytes = 64 << 10

// Checkpoint is a log's statement about itself at a moment: the number of events, and the root of the tree over them. Signed, it is a note
// of the C2SP form tlog-checkpoint.
type Checkpoint struct {
	Origin string // the installation's name, a slash, the workspace
	Size   uint64
	Root   Hash
}

// Text returns the three lines that are signed.
func (c Checkpoint) Text() string {
	return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.Size, c.Root)
}

// Workspace returns the workspace that the origin names.
func (c Checkpoint) Workspace() (id.Workspace, error) {
	_, name := cutLast(c.Origin, '/')
	return id.ParseWorkspace(name)
}

// Installation returns the installation that the origin names, which is the name of the key that signs.
func (c Checkpoint) Installation() string {
	name, _ := cutLast(c.Origin, '/')
	return name
}

// OriginOf returns the origin of a workspace's log.
func OriginOf(installation string, ws id.Workspace) string { return installation + "/" + string(ws) }

func cutLast(s string, at byte) (before, after string) {
	if i := strings.LastIndexByte(s, at); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// parseCheckpoint reads the text of a note. Lines behind the first three are extensions, which are signed and have no meaning here.
func parseCheckpoint(text string) (Checkpoint, error) {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) != 4 || lines[0] == "" {
		return Checkpoint{}, fmt.Errorf("a checkpoint has three lines: origin, size and root")
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("%.40q is not the size of a tree", lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || root.String() != lines[2] {
		return Checkpoint{}, fmt.Errorf("%.60q is not the root of a tree", lines[2])
	}
	return Checkpoint{Origin: lines[0], Size: uint64(size), Root: root}, nil
}

// Sign returns the checkpoint as a signed note.
func (c Checkpoint) Sign(signer note.Signer) ([]byte, error) {
	return note.Sign(&note.Note{Text: c.Text()}, signer)
}

// Open reads a signed checkpoint and verifies that the key signed it for its own installation. Signatures of others are passed over.
func Open(signed []byte, key PublicKey) (Checkpoint, error) {
	invalid := func(err error, what string) error {
		return fault.Wrap(err, fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: %s", what)
	}
	if len(signed) > MaxCheckpointBytes {
		return Checkpoint{}, invalid(nil, fmt.Sprintf("it has more than %d bytes", MaxCheckpointBytes))
	}
	verifier, err := key.verifier()
	if err != nil {
		return Checkpoint{}, err
	}
	opened, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		return Checkpoint{}, invalid(err, "it is not signed by "+string(key))
	}
	c, err := parseCheckpoint(opened.Text)
	if err != nil {
		return Checkpoint{}, invalid(err, "its text is not that of a checkpoint")
	}
	if _, err := c.Workspace(); err != nil || c.Installation() != key.Name() {
		return Checkpoint{}, invalid(err, fmt.Sprintf("%.100q is not an origin of %s", c.Origin, key.Name()))
	}
	return c, nil
}

// Peek reads a checkpoint without verifying its signature; the result is only a claim.
func Peek(signed []byte) (Checkpoint, error) {
	text, _, ok := strings.Cut(string(signed[:min(len(signed), MaxCheckpointBytes)]), "\n\n")
	if !ok {
		return Checkpoint{}, fault.New(fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: it has no signature")
	}
	c, err := parseCheckpoint(text + "\n")
	if err != nil {
		return c, fault.Wrap(err, fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: %v", err)
	}
	return c, nil
}

func base64Of(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
