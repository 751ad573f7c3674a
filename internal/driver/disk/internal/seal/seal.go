// Package seal keeps content so that it can be read only with a key of its own, until that key is destroyed.
//
// The key of content is derived from that of a leaf in a tree of keys; the leaf is named by the content's hash, so that all copies of it,
// wherever they lie, also in backups made before, are forgotten at once. Content is sealed in chunks, so that a part of it can be read
// alone, by AES-256-GCM. No nonce is used twice under a key: a key is for one content, and the nonce is the number of the chunk in it.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/kernel/vault"
)

// Tree is the tree of keys of content that is named by its hash.
const Tree = "blobs"

// ChunkBytes is how much is sealed at once; each chunk takes overhead bytes more.
const (
	ChunkBytes = 64 << 10
	overhead   = 16
)

// errBroken means that sealed content was changed.
var errBroken = errors.New("the sealed content was changed")

// Key says under which key content is sealed: the generation of the tree, and the round, which rises each time the content comes back
// after it was forgotten.
type Key struct {
	Generation vault.Generation
	Round      uint32
}

// KeyBytes is the length of a Key as Append writes it.
const KeyBytes = 8

// Append appends the key's name.
func (k Key) Append(to []byte) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(to, uint32(k.Generation)), k.Round)
}

// ParseKey reads what Append wrote.
func ParseKey(raw []byte) Key {
	return Key{vault.Generation(binary.BigEndian.Uint32(raw)), binary.BigEndian.Uint32(raw[4:])}
}

// Leaf returns the leaf of content in a round. That of the first is the beginning of its hash.
func Leaf(d event.Digest, round uint32) uint64 {
	if round == 0 {
		return binary.BigEndian.Uint64(d[:])
	}
	again := sha256.Sum256(binary.BigEndian.AppendUint32(append([]byte("agentbox content again\n"), d[:]...), round))
	return binary.BigEndian.Uint64(again[:])
}

// maxRounds is how often the same content can be forgotten and come back.
const maxRounds = 1 << 16

// Fresh returns the key under which content is sealed now, and its cipher.
func Fresh(keys vault.Keys, d event.Digest, size int64) (Key, *Cipher, error) {
	// If other programs forget keys too, new content must not be sealed under a key that one of them has just forgotten.
	if shared, ok := keys.(interface{ Current() error }); ok {
		if err := shared.Current(); err != nil {
			return Key{}, nil, err
		}
	}
	g, err := keys.Plant(Tree)
	if err != nil {
		return Key{}, nil, err
	}
	for k := (Key{Generation: g}); k.Round < maxRounds; k.Round++ {
		c, err := Open(keys, k, d, size)
		if !errors.Is(err, vault.ErrForgotten) {
			return k, c, err
		}
	}
	return Key{}, nil, vault.ErrForgotten
}

// Open returns the cipher of content that was sealed under a key.
func Open(keys vault.Keys, k Key, d event.Digest, size int64) (*Cipher, error) {
	leaf, err := keys.Key(Tree, k.Generation, Leaf(d, k.Round))
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, leaf[:])
	mac.Write([]byte("agentbox content 1\n"))
	mac.Write(d[:]) // two contents whose hashes begin alike have a leaf in common, and no key
	block, err := aes.NewCipher(mac.Sum(nil))
	clear(leaf[:])
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	c := &Cipher{aead: aead, size: size}
	c.bound = binary.BigEndian.AppendUint64(append([]byte("agentbox chunk 1\n"), d[:]...), uint64(size))
	return c, nil
}

// Forgotten is vault.ErrForgotten, or vault.ErrMissing, where content that was sealed under a key cannot be opened any more.
func Forgotten(keys vault.Keys, k Key, d event.Digest) error {
	return keys.Holds(Tree, k.Generation, Leaf(d, k.Round))
}

// Forget destroys the keys of contents, wherever and in whatever round they were sealed.
func Forget(keys vault.Keys, contents ...event.Digest) error {
	var leaves []uint64
	for _, d := range contents {
		g, err := keys.Plant(Tree)
		if err != nil {
			return err
		}
		for round := uint32(0); round < maxRounds; round++ {
			leaves = append(leaves, Leaf(d, round))
			if _, err := keys.Key(Tree, g, Leaf(d, round)); !errors.Is(err, vault.ErrForgotten) {
				break
			}
		}
	}
	return keys.Forget(Tree, leaves...)
}

// Cipher seals and opens one content.
type Cipher struct {
	aead  cipher.AEAD
	size  int64  // of the content
	bound []byte // what each chunk is bound to, besides its number
}

// Sealed returns how many bytes content takes when it is sealed.
func Sealed(size int64) int64 { return size + overhead*((size+ChunkBytes-1)/ChunkBytes) }

func (c *Cipher) with(number int64) (nonce, bound []byte) {
	nonce = make([]byte, 12)
	binary.BigEndian.PutUint64(nonce[4:], uint64(number))
	return nonce, append(c.bound[:len(c.bound):len(c.bound)], nonce...)
}

// Seal seals content that is in memory and whose hash is known to be the one that it is sealed by.
func (c *Cipher) Seal(w io.Writer, content []byte) error {
	sealed := make([]byte, 0, min(ChunkBytes, c.size)+overhead)
	for number := int64(0); len(content) > 0; number++ {
		chunk := content[:min(ChunkBytes, len(content))]
		content = content[len(chunk):]
		nonce, bound := c.with(number)
		if _, err := w.Write(c.aead.Seal(sealed[:0], nonce, chunk, bound)); err != nil {
			return err
		}
	}
	return nil
}

// Copy seals what r yields, which must be the whole content. It returns the number of bytes and their hash. Callers need both if the source
// can change while it is copied.
func (c *Cipher) Copy(w io.Writer, r io.Reader) (int64, event.Digest, error) {
	hash := sha256.New()
	chunk, sealed := make([]byte, min(ChunkBytes, c.size)), make([]byte, 0, min(ChunkBytes, c.size)+overhead)
	var n int64
	for number := int64(0); n < c.size; number++ {
		got, err := io.ReadFull(r, chunk[:min(ChunkBytes, c.size-n)])
		n += int64(got)
		hash.Write(chunk[:got])
		if err != nil {
			return n, event.Digest{}, err
		}
		nonce, bound := c.with(number)
		if _, err := w.Write(c.aead.Seal(sealed[:0], nonce, chunk[:got], bound)); err != nil {
			return n, event.Digest{}, err
		}
	}
	return n, event.Digest(hash.Sum(nil)), nil
}

// Reader reads content that lies sealed at a place of r.
func (c *Cipher) Reader(r io.ReaderAt, at int64) *Reader {
	return &Reader{c: c, from: r, at: at, number: -1}
}

// Reader opens sealed content from any place on. It is safe for concurrent use.
type Reader struct {
	c    *Cipher
	from io.ReaderAt
	at   int64

	mu     sync.Mutex // guards the chunk that was read last
	number int64
	sealed []byte
	chunk  []byte
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, errors.New("a place before the content")
	}
	n := 0
	for n < len(p) {
		if off >= r.c.size {
			return n, io.EOF
		}
		got, err := r.part(p[n:], off)
		if err != nil {
			return n, err
		}
		n, off = n+got, off+int64(got)
	}
	return n, nil
}

// part copies what one chunk holds from a place on.
func (r *Reader) part(p []byte, off int64) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	number := off / ChunkBytes
	if number != r.number {
		r.number = -1
		first := number * ChunkBytes
		length := min(ChunkBytes, r.c.size-first)
		if r.sealed == nil {
			most := min(ChunkBytes, r.c.size)
			r.sealed, r.chunk = make([]byte, most+overhead), make([]byte, 0, most)
		}
		sealed := r.sealed[:length+overhead]
		if n, err := r.from.ReadAt(sealed, r.at+number*(ChunkBytes+overhead)); n < len(sealed) {
			return 0, fmt.Errorf("%w: %w", errBroken, err)
		}
		nonce, bound := r.c.with(number)
		opened, err := r.c.aead.Open(r.chunk[:0], nonce, sealed, bound)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", errBroken, err)
		}
		r.chunk, r.number = opened, number
	}
	return copy(p, r.chunk[off-number*ChunkBytes:]), nil
}

// Broken reports whether an error says that sealed content was changed.
func Broken(err error) bool { return errors.Is(err, errBroken) }
