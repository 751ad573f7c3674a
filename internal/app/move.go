package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/transfer"
)

// Moved counts the content of a file of a workspace.
type Moved = transfer.Moved

// ExportWorkspace writes a workspace as one file, which appears as a whole or not at all. A daemon may run on the data directory meanwhile.
func ExportWorkspace(ctx context.Context, c Config, ws id.Workspace, target string) (moved Moved, err error) {
	p, err := OpenProofs(c, "")
	if err != nil {
		return moved, err
	}
	keys, err := keyring.OpenReadOnly(c.keys())
	if err != nil {
		return moved, err
	}
	from := transfer.Source{Contents: disk.LookAtBlobs(c.blobs(), keys), PublicKey: p.Key}
	note, err := p.Trees.Checkpoint(ctx, ws) // before the log, which is never older
	switch {
	case err == nil:
		from.Checkpoint = string(note)
	case !errors.Is(err, merkle.ErrNone):
		return moved, err
	}
	log, err := p.Log(ctx)
	if err != nil {
		return moved, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	from.Log = log
	if _, err := os.Lstat(target); err == nil {
		return moved, fault.New(fault.Conflict, "file_exists", "%s exists already", target).With("name another file")
	}
	out, err := os.CreateTemp(filepath.Dir(target), ".agentbox-export-*")
	if err != nil {
		return moved, fault.Wrap(err, fault.Unavailable, "file_unwritable", "%s cannot be written", target)
	}
	defer func() { err = errors.Join(err, os.Remove(out.Name())) }()
	moved, err = transfer.Write(ctx, out, from, ws, Clock{}.Now().UTC(), Version)
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return moved, err
	}
	if err := os.Link(out.Name(), target); err != nil { // fails where another has come first
		return moved, fault.Wrap(err, fault.Conflict, "file_unwritable", "%s cannot be written", target)
	}
	return moved, nil
}

// ImportWorkspace takes a workspace from a file into a data directory on which no daemon runs. It makes the directory if it does not exist.
// The spaces stay on the old host: they end here, as moved. An empty key accepts any signer of the checkpoint.
func ImportWorkspace(ctx context.Context, c Config, source, key string) (moved Moved, ended int, err error) {
	to := transfer.Target{}
	if key != "" {
		if to.Key, err = merkle.ParsePublicKey(key); err != nil {
			return moved, 0, err
		}
	}
	in, err := os.Open(source)
	if errors.Is(err, fs.ErrNotExist) {
		return moved, 0, fault.New(fault.NotFound, "file_not_found", "there is no file %s", source)
	}
	if err != nil {
		return moved, 0, fault.Wrap(err, fault.Unavailable, "file_unreadable", "%s cannot be read", source)
	}
	defer in.Close()
	claimed, err := datadir.AcquireAll(c.DataDir, c.Shared)
	if err != nil {
		return moved, 0, err
	}
	defer func() { err = errors.Join(err, claimed.Close()) }()
	dir, err := lookAt(c)
	if err != nil {
		return moved, 0, err
	}
	keys, err := keyring.Open(c.keys(), rand.Reader)
	if err != nil {
		return moved, 0, err
	}
	log, err := writeStore(ctx, c, dir.used && dir.store == "", keys)
	if err != nil {
		return moved, 0, dir.unopened(err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := dir.hold(ctx, log, log); err != nil {
		return moved, 0, err
	}
	if to.Contents, err = disk.OpenBlobs(ctx, c.blobs(), keys, rand.Reader); err != nil {
		return moved, 0, err
	}
	to.Log = log
	if moved, err = transfer.Read(ctx, in, to); err != nil {
		return moved, 0, err
	}
	ended, err = transfer.LeaveSpaces(ctx, log, log, moved.Workspace, principal.System)
	return moved, ended, errors.Join(err, dir.step(ctx, log))
}
