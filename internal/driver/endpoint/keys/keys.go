// Package keys keeps the keys of endpoints of models, and the grants of logins at MCP servers: a sealed file for each, or a variable of the
// environment for a key.
package keys

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/vault"
)

// Prefix begins the variables of the environment that hold keys of the default workspace: AGENTBOX_MODEL_KEY_ZAI holds the key zai, and
// AGENTBOX_MODEL_KEY_ZAI_FILE names a file that holds it.
const Prefix = "AGENTBOX_MODEL_KEY_"

// Store keeps keys in a folder, sealed under the keys of the data directory. Any goroutine may call its methods.
type Store struct {
	*files
	env func(name string) (string, bool)
}

var _ model.Keys = (*Store)(nil)

// Open returns a store in a folder, which it makes. The function env looks up variables of the environment.
func Open(folder string, sealing vault.Keys, entropy io.Reader, env func(string) (string, bool)) (*Store, error) {
	kept, err := openFiles(folder, "model-keys/", model.MaxKeyBytes, sealing, entropy)
	return &Store{kept, env}, err
}

// Key implements model.Keys. A key that was set goes before one of the environment.
func (s *Store) Key(_ context.Context, ws id.Workspace, name string) (model.Secret, error) {
	opened, err := s.read(ws, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return s.outside(ws, name)
	case errors.Is(err, errBroken):
		return model.Secret{}, fault.Wrap(err, fault.Unavailable, "model_key_unreadable",
			"the key %s cannot be read; set it again: agentbox model key set %s", name, name)
	case err != nil:
		return model.Secret{}, err
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
	return s.write(ws, name, []byte(key.Reveal()))
}

// Remove implements model.Keys. Nobody can open the copy in a backup of the folder any more.
func (s *Store) Remove(_ context.Context, permit policy.Permit, ws id.Workspace, name string) error {
	if err := redeem(permit, ws, name, "remove"); err != nil {
		return err
	}
	return s.forget(ws, name)
}
