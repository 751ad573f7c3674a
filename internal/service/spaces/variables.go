package spaces

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"io"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/vault"
)

// Variables keeps the secret values of environments out of the log. The log, and everything that is made of it, has masks and sealed
// values; the key is in the daemon's keyring. See docs/RATIONALE.md, "Where are the secret values of a space's environment?".
type Variables struct {
	keys    vault.Keys // nil for none: then secret values are refused
	sealer  vault.Sealer
	entropy io.Reader
}

func newVariables(keys vault.Keys, entropy io.Reader) *Variables {
	return &Variables{keys: keys, sealer: vault.Sealer{Keys: keys}, entropy: entropy}
}

// The leaves of a workspace's tree of keys for environments.
const (
	sealingLeaf = 1
	maskingLeaf = 2
)

func variablesTree(ws id.Workspace) string { return "environment/" + string(ws) }

// seal returns an environment with masks for its secret values, and these values sealed; nil if there is none. Was is the space as it is,
// or the zero value for a new one: a mask that it has keeps its value.
func (v *Variables) seal(ws id.Workspace, was space.Space, env map[string]string) (map[string]string, *space.Secrets, error) {
	var old map[string]string // the environment as it is, read when it is needed
	shown, values := make(map[string]string, len(env)), map[string]string{}
	for name, value := range env {
		shown[name] = value
		if policy.IsMask(value) {
			if was.Env[name] != value {
				return nil, nil, invalid("env variable %s is the mask of another value; send the value itself", name)
			}
			if old == nil {
				var err error
				if old, err = v.Values(was); err != nil {
					return nil, nil, err
				}
			}
			values[name] = old[name]
		} else if leak.Variable(name, value) {
			values[name] = value
		}
	}
	if len(values) == 0 {
		return env, nil, nil
	}
	if v.keys == nil {
		return nil, nil, vault.ErrMissing
	}
	generation, err := v.sealer.Generation(variablesTree(ws))
	if err != nil {
		return nil, nil, err
	}
	mask, err := v.masks(ws, generation)
	if err != nil {
		return nil, nil, err
	}
	for name, value := range values {
		shown[name] = mask(name, value)
	}
	text, err := json.Marshal(values)
	if err != nil {
		return nil, nil, err
	}
	nonce := make([]byte, vault.NonceBytes)
	if _, err := io.ReadFull(v.entropy, nonce); err != nil {
		return nil, nil, fault.Wrap(err, fault.Unavailable, "entropy_missing", "the host gives no randomness to seal the environment with")
	}
	sealed, sealedBy, err := v.sealer.Seal(text, 0, variablesTree(ws), sealingLeaf, nonce)
	if err == nil && sealedBy != generation {
		err = vault.ErrMissing // the keys were exchanged meanwhile
	}
	return shown, &space.Secrets{Generation: uint32(generation), Nonce: nonce, Sealed: sealed}, err
}

// masks returns what makes the mask of a variable's value.
func (v *Variables) masks(ws id.Workspace, g vault.Generation) (func(name, value string) string, error) {
	key, err := v.keys.Key(variablesTree(ws), g, maskingLeaf)
	return func(name, value string) string {
		mac := hmac.New(sha256.New, key[:])
		mac.Write([]byte(name + "\x00" + value)) // no name holds a NUL
		return policy.Mask(mac.Sum(nil))
	}, err
}

// Values returns the environment of a space as its commands get it. The error is vault.ErrMissing if the key is not here, as after a
// restore without keys, and vault.ErrTampered if the masks are not those of the sealed values.
func (v *Variables) Values(s space.Space) (map[string]string, error) {
	if s.Secrets == nil {
		return s.Env, nil // also that of a space which was made before values were sealed
	}
	if v.keys == nil {
		return nil, vault.ErrMissing
	}
	tree, generation := variablesTree(s.Workspace), vault.Generation(s.Secrets.Generation)
	if len(s.Secrets.Nonce) != vault.NonceBytes {
		return nil, vault.ErrTampered
	}
	text, err := v.sealer.Open(tree, generation, sealingLeaf, s.Secrets.Nonce, append([]byte(nil), s.Secrets.Sealed...))
	if err != nil {
		return nil, err
	}
	var secrets map[string]string
	if err := json.Unmarshal(text, &secrets); err != nil {
		return nil, vault.ErrTampered
	}
	mask, err := v.masks(s.Workspace, generation)
	if err != nil {
		return nil, err
	}
	values := make(map[string]string, len(s.Env))
	for name, value := range s.Env {
		values[name] = value
		if secret, ok := secrets[name]; ok {
			if mask(name, secret) != value {
				return nil, vault.ErrTampered
			}
			values[name] = secret
		}
	}
	return values, nil
}
