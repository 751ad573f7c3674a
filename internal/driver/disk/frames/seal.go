package frames

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/kernel/vault"
)

// Tree is the tree of keys of live output: a leaf for each operation of a run, and one for frames of no operation.
const Tree = "frames"

const (
	nonceBytes = 12
	sealedMore = 4 + nonceBytes + 16 // what sealing adds to the content of a frame
)

// about is the input from which the leaf and the key of an operation's frames are derived.
func about(run id.Run, operation string) []byte {
	return fmt.Appendf(nil, "agentbox frames\n%s\n%s", run, operation)
}

func leaf(run id.Run, operation string) uint64 {
	sum := sha256.Sum256(about(run, operation))
	return binary.BigEndian.Uint64(sum[:])
}

// cipherOf returns the cipher of an operation's frames.
func (s *Store) cipherOf(g vault.Generation, run id.Run, operation string) (cipher.AEAD, error) {
	key, err := s.keys.Key(Tree, g, leaf(run, operation))
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, key[:])
	mac.Write(about(run, operation))
	clear(key[:])
	block, err := aes.NewCipher(mac.Sum(nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// bound is the additional data that binds the content of a frame.
func bound(f livestream.Frame) []byte {
	raw := binary.BigEndian.AppendUint64(nil, f.N)
	raw = binary.BigEndian.AppendUint64(raw, uint64(f.At.UnixMicro()))
	return fmt.Appendf(raw, "%q %q", f.Kind, f.Operation)
}

// seal returns the frame with its content sealed.
func (s *Store) seal(run id.Run, f livestream.Frame) (livestream.Frame, error) {
	g, err := s.keys.Plant(Tree)
	if err != nil {
		return f, err
	}
	aead, err := s.cipherOf(g, run, f.Operation)
	if err != nil {
		return f, err
	}
	raw := make([]byte, 4+nonceBytes, sealedMore+len(f.Data))
	binary.BigEndian.PutUint32(raw, uint32(g))
	if _, err := io.ReadFull(s.entropy, raw[4:]); err != nil {
		return f, fmt.Errorf("draw a nonce: %w", err)
	}
	f.Data = aead.Seal(raw, raw[4:], f.Data, bound(f))
	return f, nil
}

// errBroken means that a frame was written whole, but its content is not the sealed content.
var errBroken = errors.New("the sealed frame was changed")

// unseal returns the frame with its content; that of one that was forgotten says so.
func (s *Store) unseal(run id.Run, f livestream.Frame) (livestream.Frame, error) {
	if len(f.Data) < sealedMore {
		return f, errBroken
	}
	aead, err := s.cipherOf(vault.Generation(binary.BigEndian.Uint32(f.Data)), run, f.Operation)
	if errors.Is(err, vault.ErrForgotten) {
		return livestream.Forgotten(f), nil
	}
	if err != nil {
		return f, err
	}
	data, err := aead.Open([]byte{}, f.Data[4:4+nonceBytes], f.Data[4+nonceBytes:], bound(f))
	if err != nil {
		return f, errBroken
	}
	f.Data = data
	return f, nil
}

// Forget implements livestream.Store.
func (s *Store) Forget(run id.Run, operations ...string) error {
	leaves := make([]uint64, len(operations))
	for i, operation := range operations {
		leaves[i] = leaf(run, operation)
	}
	if err := s.keys.Forget(Tree, leaves...); err != nil {
		return err
	}
	r, release, err := s.use(run)
	if err != nil {
		return err
	}
	defer release()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil || !r.plain || r.failed != nil {
		return r.failed
	}
	if err := r.blank(operations); err != nil {
		r.failed = broken(err)
		return r.failed
	}
	return nil
}
