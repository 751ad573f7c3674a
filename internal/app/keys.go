package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/kernel/merkle"
)

// The files of the proofs.
const (
	signingFile = "signing.key" // the key that signs checkpoints, 0600, unless it is kept elsewhere
	publicFile  = "signing.pub" // the key that verifies them, as the last daemon wrote it
	proofsDir   = "proofs"      // trees and checkpoints
)

// signingKey reads the key that signs checkpoints, and makes it at the first start. Where something was signed already, a key that is
// missing is not made anew: nobody could tell the new signatures from forged ones.
func signingKey(c Config, signed bool, entropy io.Reader) (merkle.PrivateKey, error) {
	path := c.SigningKey
	if path == "" {
		path = c.shared(signingFile)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if signed {
			return "", fault.New(fault.Unavailable, "signing_key_missing", "the key that signed the checkpoints of this log is gone: there is no %s",
				path).
				With("put it back, or name it with --signing-key; if it is lost, give up the proofs so far with: agentbox audit abandon --reason TEXT")
		}
		private, _, err := merkle.NewKey(entropy)
		if err != nil {
			return "", err
		}
		if err := trees.Replace(path, []byte(private+"\n"), 0o600); err != nil {
			return "", fmt.Errorf("keep the signing key: %w", err)
		}
		return private, nil
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "signing_key_invalid", "the signing key cannot be read")
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("look at the signing key: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fault.New(fault.Unavailable, "signing_key_exposed", "%s can be read by other users (mode %04o)", path,
			info.Mode().Perm()).With("mend it with: chmod 600 " + path)
	}
	return merkle.PrivateKey(strings.TrimSpace(string(raw))), nil
}

// publish writes the public key beside the log, for readers who verify there and have no other copy.
func publish(dir string, key merkle.PublicKey) error {
	path := filepath.Join(dir, publicFile)
	if raw, err := os.ReadFile(path); err == nil && strings.TrimSpace(string(raw)) == string(key) {
		return nil
	}
	if err := trees.Replace(path, []byte(key+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the public key: %w", err)
	}
	return nil
}

// PublicKey reads the public key of a data directory.
func PublicKey(c Config) (merkle.PublicKey, error) {
	raw, err := os.ReadFile(c.shared(publicFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fault.New(fault.NotFound, "public_key_missing", "there is no public key in %s; the first start of a daemon makes one",
			c.DataDir).
			With("name the data directory with --data, or the public key with --public-key")
	}
	if err != nil {
		return "", fault.Wrap(err, fault.Unavailable, "public_key_invalid", "the public key cannot be read")
	}
	return merkle.ParsePublicKey(string(raw))
}
