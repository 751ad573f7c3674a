package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"sync"
)

// NonceBytes is the length of a nonce.
const NonceBytes = 12

// ErrTampered means that bytes are not those that were sealed.
var ErrTampered = errors.New("these bytes are not those that were sealed")

// Sealer seals and opens pieces of content with AES-256-GCM, each under the key of a leaf. A caller that seals twice under one leaf must
// use different nonces for different texts. Without keys it seals nothing and cannot open sealed content.
type Sealer struct {
	Keys Keys // nil for none

	mu          sync.Mutex // guards generations
	generations map[string]Generation
}

func gcm(key [KeyBytes]byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key[:])
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// Generation returns that under which new content of a tree is sealed, 0 where nothing is.
func (s *Sealer) Generation(tree string) (Generation, error) {
	if s.Keys == nil {
		return 0, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.generations[tree]; g != 0 {
		return g, nil
	}
	g, err := s.Keys.Plant(tree)
	if err != nil {
		return 0, err
	}
	if s.generations == nil {
		s.generations = map[string]Generation{}
	}
	s.generations[tree] = g
	return g, nil
}

// Seal seals what dst has from a place on, in its place, and tells the generation that sealed it; 0 leaves it as it is.
func (s *Sealer) Seal(dst []byte, from int, tree string, leaf uint64, nonce []byte) ([]byte, Generation, error) {
	g, err := s.Generation(tree)
	if err != nil || g == 0 {
		return dst, 0, err
	}
	key, err := s.Keys.Key(tree, g, leaf)
	if err != nil {
		return dst, 0, err
	}
	aead, err := gcm(key)
	if err != nil {
		return dst, 0, err
	}
	return append(dst[:from], aead.Seal(dst[from:from], nonce, dst[from:], nil)...), g, nil
}

// Open decrypts sealed content into the given bytes. The error is ErrForgotten, ErrMissing or ErrTampered.
func (s *Sealer) Open(tree string, g Generation, leaf uint64, nonce, sealed []byte) ([]byte, error) {
	if s.Keys == nil {
		return nil, ErrMissing
	}
	key, err := s.Keys.Key(tree, g, leaf)
	if err != nil {
		return nil, err
	}
	aead, err := gcm(key)
	if err != nil {
		return nil, err
	}
	opened, err := aead.Open(sealed[:0], nonce, sealed, nil)
	if err != nil {
		return nil, ErrTampered
	}
	return opened, nil
}

// Forget destroys the keys of leaves; without keys it does nothing.
func (s *Sealer) Forget(tree string, leaves ...uint64) error {
	if s.Keys == nil || len(leaves) == 0 {
		return nil
	}
	return s.Keys.Forget(tree, leaves...)
}
