// Package keys keeps the keys of endpoints of models: a sealed file for each, or a variable of the environment.
package keys

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/host"
	"agentbox/internal/kernel/vault"
)

// Prefix begins the variables of the environment that hold keys of the default workspace: AGENTBOX_MODEL_KEY_ZAI holds the key zai, and
// AGENTBOX_MODEL_KEY_ZAI_FILE names a file that holds it.
const Prefix = "AGENTBOX_MODEL_KEY_"

// A file has the generation of the tree, the leaf and a nonce, then the sealed key.
const (
	head     = 4 + 8 + vault.NonceBytes
	maxBytes = head + model.MaxKeyBytes + 64
)

// Store keeps keys in a folder, sealed under the keys of the data directory. Any goroutine may call its methods.
type Store struct {
	folder string
	sealer vault.Sealer
	chance io.Reader
	env    func(name string) (string, bool)
}

var _ model.Keys = (*Store)(nil)

// Open returns a store in a folder, which it makes. The function env looks up variables of the environment.
func Open(folder string, sealing vault.Keys, entropy io.Reader, env func(string) (string, bool)) (*Store, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the keys of models: %w", err)
	}
	return &Store{folder: folder, sealer: vault.Sealer{Keys: sealing}, chance: entropy, env: env}, nil
}

func tree(ws id.Workspace) string { return "model-keys/" + string(ws) }

func (s *Store) path(ws id.Workspace, name string) (string, error) {
	if err := model.CheckKeyName(name); err != nil {
		return "", err
	}
	if _, err := id.ParseWorkspace(string(ws)); err != nil {
		return "", fault.Wrap(err, fault.Invalid, "workspace_invalid", "this is not a workspace")
	}
	return filepath.Join(s.folder, string(ws), name), nil
}

// Key implements model.Keys. A key that was set goes before one of the environment.
func (s *Store) Key(_ context.Context, ws id.Workspace, name string) (model.Secret, error) {
	path, err := s.path(ws, name)
	if err != nil {
		return model.Secret{}, err
	}
	raw, err := small(path, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return s.outside(ws, name)
	}
	broken := func(err error) error {
		return fault.Wrap(err, fault.Unavailable, "model_key_unreadable", "the key %s cannot be read; set it again: agentbox model key set %s",
			name, name)
	}
	if err != nil || len(raw) < head {
		return model.Secret{}, broken(err)
	}
	opened, err := s.sealer.Open(tree(ws), vault.Generation(binary.BigEndian.Uint32(raw)), binary.BigEndian.Uint64(raw[4:]), raw[12:head],
		raw[head:])
	if err != nil {
		return model.Secret{}, broken(err)
	}
	return model.NewSecret(string(opened)), nil
}

// outside returns a key of the environment. It is there for the default workspace only, because people of other workspaces may not use it.
func (s *Store) outside(ws id.Workspace, name string) (model.Secret, error) {
	variable := Prefix + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(name))
	missing := fault.Wrap(model.ErrNoKey, fault.NotFound, model.ErrNoKey.Code,
		"there is no key %s; set it with: agentbox model key set %s", name, name)
	if ws != id.DefaultWorkspace {
		return model.Secret{}, missing
	}
	value, ok := s.env(variable)
	if !ok {
		file, named := s.env(variable + "_FILE")
		if !named {
			return model.Secret{}, missing
		}
		raw, err := small(file, model.MaxKeyBytes+2)
		if err != nil {
			return model.Secret{}, fault.New(fault.Unavailable, "model_key_unreadable", "the file that %s_FILE names cannot be read", variable)
		}
		value = strings.TrimRight(string(raw), "\r\n")
	}
	if model.CheckSecret(value) != nil {
		return model.Secret{}, fault.New(fault.Unavailable, "model_key_unreadable", "what %s holds is not a key: printable ASCII without spaces",
			variable)
	}
	return model.NewSecret(value), nil
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

// redeem spends a permit for a change of a key.
func redeem(permit policy.Permit, ws id.Workspace, name, method string) error {
	a, err := permit.Redeem(policy.ModelKey)
	if err == nil && (a.Workspace != ws || a.Subject != name || a.Method != method) {
		err = policy.ErrPermitMismatch
	}
	return err
}

// Set implements model.Keys. The file is replaced in one step, and only its owner may read it.
func (s *Store) Set(_ context.Context, permit policy.Permit, ws id.Workspace, name string, key model.Secret) error {
	if err := redeem(permit, ws, name, "set"); err != nil {
		return err
	}
	if err := model.CheckSecret(key.Reveal()); err != nil {
		return err
	}
	path, err := s.path(ws, name)
	if err != nil {
		return err
	}
	raw := make([]byte, head, maxBytes)
	if _, err := io.ReadFull(s.chance, raw[4:head]); err != nil {
		return err
	}
	leaf := binary.BigEndian.Uint64(raw[4:])
	sealed, generation, err := s.sealer.Seal(append(raw, key.Reveal()...), head, tree(ws), leaf, raw[12:head])
	if err != nil {
		return err
	}
	binary.BigEndian.PutUint32(sealed, uint32(generation))
	if err := s.forget(ws, path); err != nil {
		return err
	}
	return replace(path, sealed)
}

// Remove implements model.Keys. Nobody can open the copy in a backup of the folder any more.
func (s *Store) Remove(_ context.Context, permit policy.Permit, ws id.Workspace, name string) error {
	if err := redeem(permit, ws, name, "remove"); err != nil {
		return err
	}
	path, err := s.path(ws, name)
	if err != nil {
		return err
	}
	return s.forget(ws, path)
}

// forget destroys the key that opens a file, then the file.
func (s *Store) forget(ws id.Workspace, path string) error {
	raw, err := small(path, maxBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(raw) >= head {
		if err := s.sealer.Forget(tree(ws), binary.BigEndian.Uint64(raw[4:])); err != nil {
			return err
		}
	}
	return os.Remove(path)
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
