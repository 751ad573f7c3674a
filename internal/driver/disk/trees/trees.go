// Package trees keeps the Merkle trees and the last checkpoint of every workspace in a folder beside the log.
package trees

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/host"
	"agentbox/internal/kernel/merkle"
)

// The files of a workspace.
const (
	checkpointFile = "checkpoint" // the last signed note, as any C2SP tool reads it
	hashesFile     = "hashes"     // 32 bytes each, in the order of tlog.StoredHashIndex
	abandonedDir   = "abandoned"
)

const hashBytes = int64(len(merkle.Hash{}))

// Store is a merkle.Store in a folder: `<dir>/<workspace>/checkpoint` and `hashes`.
type Store struct {
	dir   string
	clock event.Clock
}

var _ merkle.Store = (*Store)(nil)

// Open returns the store of a folder. It makes nothing: a folder that is not there is a store without a workspace.
func Open(dir string, clock event.Clock) *Store { return &Store{dir: dir, clock: clock} }

func (s *Store) path(ws id.Workspace, name string) (string, error) {
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return "", err
	}
	return filepath.Join(s.dir, string(ws), name), nil
}

// Workspaces implements merkle.Store.
func (s *Store) Workspaces(ctx context.Context) ([]id.Workspace, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the checkpoints: %w", err)
	}
	found := []id.Workspace{}
	for _, entry := range entries {
		ws, err := id.ParseWorkspace(entry.Name())
		if err != nil {
			continue
		}
		_, err = os.Stat(filepath.Join(s.dir, entry.Name(), checkpointFile))
		if err == nil {
			found = append(found, ws)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the checkpoints: %w", err)
		}
	}
	slices.Sort(found)
	return found, ctx.Err()
}

// Checkpoint implements merkle.Store.
func (s *Store) Checkpoint(ctx context.Context, ws id.Workspace) ([]byte, error) {
	path, err := s.path(ws, checkpointFile)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, merkle.ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s: %w", ws, err)
	}
	defer file.Close()
	note, err := io.ReadAll(io.LimitReader(file, merkle.MaxCheckpointBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the checkpoint of %s: %w", ws, err)
	}
	return note, ctx.Err()
}

// Keep implements merkle.Store.
func (s *Store) Keep(ctx context.Context, ws id.Workspace, note []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(ws, checkpointFile)
	if err != nil {
		return err
	}
	if err := s.folder(ws); err != nil {
		return err
	}
	if err := Replace(path, note, 0o600); err != nil {
		return fmt.Errorf("keep the checkpoint of %s: %w", ws, err)
	}
	return nil
}

// folder makes the folder of a workspace, durably.
func (s *Store) folder(ws id.Workspace) error {
	for _, dir := range []string{s.dir, filepath.Join(s.dir, string(ws))} {
		err := os.Mkdir(dir, 0o700)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			err = syncDir(filepath.Dir(dir))
		}
		if err != nil {
			return fmt.Errorf("make the folder of the checkpoints: %w", err)
		}
	}
	return nil
}

// Stored implements merkle.Store.
func (s *Store) Stored(ctx context.Context, ws id.Workspace) (int64, error) {
	path, err := s.path(ws, hashesFile)
	if err != nil {
		return 0, err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("look at the tree of %s: %w", ws, err)
	}
	return info.Size() / hashBytes, ctx.Err()
}

// ReadHashes implements merkle.Store. Indexes that follow one another are read at once.
func (s *Store) ReadHashes(ctx context.Context, ws id.Workspace, indexes []int64) ([]merkle.Hash, error) {
	path, err := s.path(ws, hashesFile)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the tree of %s: %w", ws, err)
	}
	defer file.Close()
	out := make([]merkle.Hash, len(indexes))
	var buf []byte
	for from := 0; from < len(indexes); {
		to := from + 1
		for to < len(indexes) && indexes[to] == indexes[to-1]+1 {
			to++
		}
		if want := (to - from) * int(hashBytes); cap(buf) < want {
			buf = make([]byte, want)
		}
		part := buf[:(to-from)*int(hashBytes)]
		if _, err := file.ReadAt(part, indexes[from]*hashBytes); err != nil {
			return nil, fmt.Errorf("read the tree of %s: %w", ws, err)
		}
		for i := range to - from {
			copy(out[from+i][:], part[i*int(hashBytes):])
		}
		from = to
	}
	return out, ctx.Err()
}

// WriteHashes implements merkle.Store.
func (s *Store) WriteHashes(ctx context.Context, ws id.Workspace, at int64, hashes []merkle.Hash) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	path, err := s.path(ws, hashesFile)
	if err != nil {
		return err
	}
	if err := s.folder(ws); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the tree of %s: %w", ws, err)
		}
	}()
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < at*hashBytes {
		return fmt.Errorf("hash %d would leave a gap behind %d", at, info.Size()/hashBytes)
	}
	if err := file.Truncate(at * hashBytes); err != nil {
		return err
	}
	raw := make([]byte, 0, len(hashes)*int(hashBytes))
	for i := range hashes {
		raw = append(raw, hashes[i][:]...)
	}
	if _, err := file.WriteAt(raw, at*hashBytes); err != nil {
		return err
	}
	return file.Sync()
}

// Abandon implements merkle.Store: the note goes to `abandoned/<time>.checkpoint`, the reason beside it.
func (s *Store) Abandon(ctx context.Context, ws id.Workspace, reason string) error {
	if _, err := s.Checkpoint(ctx, ws); err != nil {
		return err
	}
	from, err := s.path(ws, checkpointFile)
	if err != nil {
		return err
	}
	folder := filepath.Join(filepath.Dir(from), abandonedDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("put the checkpoint aside: %w", err)
	}
	name := s.clock.Now().UTC().Format("20060102T150405.000000Z")
	if _, err := os.Lstat(filepath.Join(folder, name+".checkpoint")); err == nil {
		return fmt.Errorf("put the checkpoint aside: %s is there already", name)
	}
	if err := Replace(filepath.Join(folder, name+".reason"), []byte(reason+"\n"), 0o600); err != nil {
		return fmt.Errorf("put the checkpoint aside: %w", err)
	}
	if err := os.Rename(from, filepath.Join(folder, name+".checkpoint")); err != nil {
		return fmt.Errorf("put the checkpoint aside: %w", err)
	}
	if err := errors.Join(syncDir(folder), syncDir(filepath.Dir(from))); err != nil {
		return fmt.Errorf("put the checkpoint aside: %w", err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(from), hashesFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("put the tree aside: %w", err)
	}
	return nil
}

// Replace writes a file in one step, durably: a reader sees the old content or the new, also after a power cut.
func Replace(path string, content []byte, mode fs.FileMode) error {
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(host.SyncNames(f), f.Close())
}
