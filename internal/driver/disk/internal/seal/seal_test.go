package seal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/vault"
)

type constant struct{}

func (constant) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func sealed(t *testing.T, keys vault.Keys, content []byte) (Key, []byte) {
	t.Helper()
	d := event.DigestOf(content)
	key, c, err := Fresh(keys, d, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	var raw bytes.Buffer
	if n, got, err := c.Copy(&raw, bytes.NewReader(content)); err != nil || n != int64(len(content)) || got != d {
		t.Fatalf("sealed %d bytes, %v, %v", n, got, err)
	}
	var whole bytes.Buffer
	if err := c.Seal(&whole, content); err != nil || !bytes.Equal(whole.Bytes(), raw.Bytes()) {
		t.Fatalf("sealed at once it is another: %v", err)
	}
	if int64(raw.Len()) != Sealed(int64(len(content))) {
		t.Fatalf("%d bytes take %d sealed, want %d", len(content), raw.Len(), Sealed(int64(len(content))))
	}
	return key, raw.Bytes()
}

func TestEveryPartCanBeRead(t *testing.T) {
	keys := memory.NewKeys(constant{})
	for _, size := range []int{0, 1, ChunkBytes - 1, ChunkBytes, ChunkBytes + 1, 3*ChunkBytes + 7} {
		content := bytes.Repeat([]byte("0123456789abcdef!"), size/17+1)[:size]
		key, raw := sealed(t, keys, content)
		if size > 16 && bytes.Contains(raw, content[:16]) {
			t.Error("the content shows")
		}
		c, err := Open(keys, key, event.DigestOf(content), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		r := c.Reader(bytes.NewReader(append([]byte("head"), raw...)), 4)
		for _, part := range [][2]int{{0, size}, {0, 1}, {size - 1, 1}, {ChunkBytes - 1, 2}, {ChunkBytes, 10}, {size / 2, size}} {
			from, length := max(part[0], 0), part[1]
			if from > size {
				continue
			}
			got := make([]byte, length)
			n, err := r.ReadAt(got, int64(from))
			want := content[from:min(size, from+length)]
			if !bytes.Equal(got[:n], want) || err != nil && (!errors.Is(err, io.EOF) || n == length) {
				t.Fatalf("%d bytes from %d of %d: %d bytes, %v", length, from, size, n, err)
			}
		}
	}
}

func TestWhatWasChangedIsRefused(t *testing.T) {
	keys := memory.NewKeys(constant{})
	content := bytes.Repeat([]byte("x"), 2*ChunkBytes+5)
	d := event.DigestOf(content)
	key, raw := sealed(t, keys, content)
	read := func(raw []byte, key Key, d event.Digest, size int64) error {
		c, err := Open(keys, key, d, size)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(io.NewSectionReader(c.Reader(bytes.NewReader(raw), 0), 0, size))
		return err
	}
	if err := read(raw, key, d, int64(len(content))); err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(raw)
	flipped[ChunkBytes+20]++
	const sealedChunk = ChunkBytes + overhead
	swapped := append(append(bytes.Clone(raw[sealedChunk:2*sealedChunk]), raw[:sealedChunk]...), raw[2*sealedChunk:]...)
	for name, err := range map[string]error{
		"a flipped bit":   read(flipped, key, d, int64(len(content))),
		"swapped chunks":  read(swapped, key, d, int64(len(content))),
		"a missing byte":  read(raw[:len(raw)-1], key, d, int64(len(content))),
		"another length":  read(raw, key, d, 2*ChunkBytes),
		"another content": read(raw, key, event.DigestOf([]byte("other")), int64(len(content))),
		"another round":   read(raw, Key{key.Generation, 1}, d, int64(len(content))),
	} {
		if !Broken(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func TestForget(t *testing.T) {
	keys := memory.NewKeys(constant{})
	content, other := []byte(strings.Repeat("secret", 10)), []byte("other")
	d := event.DigestOf(content)
	first, _ := sealed(t, keys, content)
	beside, _ := sealed(t, keys, other)
	for round := range uint32(3) {
		if err := Forget(keys, d); err != nil {
			t.Fatal(err)
		}
		for before := range round + 1 {
			if _, err := Open(keys, Key{first.Generation, before}, d, 60); !errors.Is(err, vault.ErrForgotten) {
				t.Errorf("the key of round %d after %d: %v, want %v", before, round, err, vault.ErrForgotten)
			}
		}
		if again, _ := sealed(t, keys, content); again.Round != round+1 {
			t.Errorf("it came back in round %d, want %d", again.Round, round+1)
		}
	}
	if _, err := Open(keys, beside, event.DigestOf(other), 5); err != nil {
		t.Errorf("another content: %v", err)
	}
}
