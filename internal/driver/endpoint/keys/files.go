package keys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/host"
	"agentbox/internal/kernel/vault"
)

// head is how many bytes a file has before what is sealed: the generation of the tree, the leaf and a nonce.
const head = 4 + 8 + vault.NonceBytes

// files are sealed files in a folder, one of each workspace and name.
type files struct {
	folder string
	trees  string // the beginning of the names of their key trees
	most   int    // bytes of a content
	sealer vault.Sealer
	chance io.Reader
}

// errBroken means that a file cannot be opened.
var errBroken = errors.New("the file is broken, or its key is destroyed")

func openFiles(folder, trees string, most int, sealing vault.Keys, entropy io.Reader) (*files, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder %s: %w", filepath.Base(folder), err)
	}
	return &files{folder, trees, most, vault.Sealer{Keys: sealing}, entropy}, nil
}

func (f *files) tree(ws id.Workspace) string { return f.trees + string(ws) }

func (f *files) path(ws id.Workspace, name string) (string, error) {
	if err := model.CheckKeyName(name); err != nil {
		return "", err
	}
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "workspace_invalid", "this is not a workspace")
	}
	return filepath.Join(f.folder, string(ws), name), nil
}

// largest is how many bytes a file has at most.
func (f *files) largest() int64 { return int64(head + f.most + 64) }

// read returns the content of a file; fs.ErrNotExist where there is none, errBroken for one that cannot be opened.
func (f *files) read(ws id.Workspace, name string) ([]byte, error) {
	path, err := f.path(ws, name)
	if err != nil {
		return nil, err
	}
	raw, err := small(path, f.largest())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err != nil || len(raw) < head {
		return nil, errors.Join(errBroken, err)
	}
	opened, err := f.sealer.Open(f.tree(ws), vault.Generation(binary.BigEndian.Uint32(raw)), binary.BigEndian.Uint64(raw[4:]), raw[12:head],
		raw[head:])
	if err != nil {
		return nil, errors.Join(errBroken, err)
	}
	return opened, nil
}

// write replaces a file in one step. Only its owner may read it. Nobody can open the file that was there before any more.
func (f *files) write(ws id.Workspace, name string, content []byte) error {
	path, err := f.path(ws, name)
	if err != nil {
		return err
	}
	if len(content) > f.most {
		return fmt.Errorf("%s has %d bytes; the limit is %d", name, len(content), f.most)
	}
	raw := make([]byte, head, f.largest())
	if _, err := io.ReadFull(f.chance, raw[4:head]); err != nil {
		return err
	}
	leaf := binary.BigEndian.Uint64(raw[4:])
	sealed, generation, err := f.sealer.Seal(append(raw, content...), head, f.tree(ws), leaf, raw[12:head])
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(sealed, uint32(generation))
	if err := f.forget(ws, name); err != nil {
		return err
	}
	return replace(path, sealed)
}

// forget destroys the key that opens a file, then the file. One that is not there is no error.
func (f *files) forget(ws id.Workspace, name string) error {
	path, err := f.path(ws, name)
	if err != nil {
		return err
	}
	raw, err := small(path, f.largest())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(raw) >= head {
		if err := f.sealer.Forget(f.tree(ws), binary.BigEndian.Uint64(raw[4:])); err != nil {
			return err
		}
	}
	return os.Remove(path)
}

// small reads a small file.
func small(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(raw)) > most {
		err = errors.New("it is too large")
	}
	return raw, err
}

// replace writes a file that only its owner reads, durably and in one step.
func replace(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(host.SyncNames(folder), folder.Close())
}
