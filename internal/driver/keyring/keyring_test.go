package keyring_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/kernel/vault/vaulttest"
)

func open(t testing.TB, dir string) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestConformance(t *testing.T) {
	dirs := map[vault.Keys]string{}
	vaulttest.Run(t, func(t *testing.T) vault.Keys {
		dir := filepath.Join(t.TempDir(), "keys")
		k := open(t, dir)
		dirs[k] = dir
		return k
	}, func(t *testing.T, k vault.Keys) vault.Keys {
		return open(t, dirs[k])
	})
}

// files reads every file of the folder.
func files(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]byte{}
	for _, entry := range entries {
		raw, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		found[entry.Name()] = raw
	}
	return found
}

// plantOne makes one tree and returns its file.
func plantOne(t *testing.T, k *keyring.Keyring, dir string) (vault.Generation, string) {
	t.Helper()
	g, err := k.Plant("blobs")
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.keys"))
	if err != nil || len(names) != 1 {
		t.Fatalf("files of keys: %v, %v", names, err)
	}
	return g, names[0]
}

func TestForgettingOverwritesTheFileThatWasThere(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	_, path := plantOne(t, k, dir)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Another name keeps the old file in sight after it was removed.
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.Link(path, kept); err != nil {
		t.Fatal(err)
	}
	if err := k.Forget("blobs", 9); err != nil {
		t.Fatal(err)
	}
	old, err := os.ReadFile(kept)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(old, make([]byte, len(before))) {
		t.Errorf("the file that was replaced still holds %q", old)
	}
	if left := files(t, dir); len(left) != 1 {
		t.Errorf("the folder has %d files, want 1", len(left))
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file of keys: %v, %v; want mode 0600", info.Mode(), err)
	}
}

// A crash leaves the folder as it is between two steps of a replacement; each of these is opened, and the old seed is gone for good.
func TestACrashBetweenTheStepsIsFinished(t *testing.T) {
	for _, crash := range []struct {
		name string
		do   func(t *testing.T, path string, before, after []byte)
		gone bool // the leaf is forgotten
	}{
		{"before the old file has its second name", func(t *testing.T, path string, before, after []byte) {
			write(t, path, before)
			write(t, path+".new", after[:len(after)/2])
		}, false},
		{"before the new file is in place", func(t *testing.T, path string, before, after []byte) {
			write(t, path, before)
			write(t, path+".new", after)
			if err := os.Link(path, path+".old"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"before the old file is overwritten", func(t *testing.T, path string, before, after []byte) {
			write(t, path, after)
			write(t, path+".old", before)
		}, true},
		{"before the old file is removed", func(t *testing.T, path string, before, after []byte) {
			write(t, path, after)
			write(t, path+".old", make([]byte, len(before)))
		}, true},
	} {
		t.Run(crash.name, func(t *testing.T) {
			dir := t.TempDir()
			k := open(t, dir)
			g, path := plantOne(t, k, dir)
			before := files(t, dir)[filepath.Base(path)]
			if err := k.Forget("blobs", 9); err != nil {
				t.Fatal(err)
			}
			after := files(t, dir)[filepath.Base(path)]
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			crash.do(t, path, before, after)
			k = open(t, dir)
			if left := files(t, dir); len(left) != 1 {
				t.Errorf("the folder has %d files, want 1", len(left))
			}
			if _, err := k.Key("blobs", g, 9); errors.Is(err, vault.ErrForgotten) != crash.gone {
				t.Errorf("the leaf: %v; forgotten %v expected", err, crash.gone)
			}
			if _, err := k.Key("blobs", g, 10); err != nil {
				t.Errorf("its neighbour: %v", err)
			}
		})
	}
}

func write(t *testing.T, path string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNotOursIsRefused(t *testing.T) {
	for name, spoil := range map[string]func(path string) (string, error){
		"keys_damaged": func(path string) (string, error) {
			raw, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			raw[len(raw)/2] ^= 1
			return path, os.WriteFile(path, raw, 0o600)
		},
		"keys_exposed": func(path string) (string, error) { return path, os.Chmod(path, 0o640) },
	} {
		dir := t.TempDir()
		_, path := plantOne(t, open(t, dir), dir)
		if _, err := spoil(path); err != nil {
			t.Fatal(err)
		}
		_, err := keyring.Open(dir, rand.Reader)
		if f, ok := errors.AsType[*fault.Error](err); !ok || f.Code != name {
			t.Errorf("%v, want %s", err, name)
		}
	}
	dir := t.TempDir()
	_, path := plantOne(t, open(t, dir), dir)
	if err := os.Rename(path, strings.Replace(path, "blobs", "frames", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := keyring.Open(dir, rand.Reader); err == nil {
		t.Error("a file under another tree's name is taken")
	}
}

func TestReadOnlyChangesNothing(t *testing.T) {
	dir := t.TempDir()
	k := open(t, dir)
	g, path := plantOne(t, k, dir)
	want, err := k.Key("blobs", g, 3)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path+".new", []byte("half"))
	r, err := keyring.OpenReadOnly(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Key("blobs", g, 3); err != nil || got != want {
		t.Errorf("the key read beside: %x, %v", got, err)
	}
	if err := r.Forget("blobs", 3); err == nil {
		t.Error("a key was forgotten by who only reads")
	}
	if _, err := r.Plant("frames"); !errors.Is(err, vault.ErrMissing) {
		t.Errorf("plant by who only reads: %v", err)
	}
	if left := files(t, dir); len(left) != 2 {
		t.Errorf("the folder has %d files, want 2", len(left))
	}
	if none, err := keyring.OpenReadOnly(filepath.Join(dir, "none")); err != nil || none == nil {
		t.Errorf("no folder: %v", err)
	}
}

// BenchmarkSeal is what an event costs more: its key, and AES-256-GCM over 512 bytes.
func BenchmarkSeal(b *testing.B) {
	k := open(b, b.TempDir())
	g, err := k.Plant("blobs")
	if err != nil {
		b.Fatal(err)
	}
	plain, sealed := make([]byte, 512), make([]byte, 0, 600)
	seal := func(key [vault.KeyBytes]byte) {
		block, err := aes.NewCipher(key[:])
		if err != nil {
			b.Fatal(err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			b.Fatal(err)
		}
		sealed = aead.Seal(sealed[:0], make([]byte, 12), plain, nil)
	}
	for name, leafOf := range map[string]func(i uint64) uint64{
		"one leaf after another": func(i uint64) uint64 { return i },
		"leaves anywhere":        func(i uint64) uint64 { return i * 0x9e3779b97f4a7c15 },
	} {
		b.Run(name, func(b *testing.B) {
			for i := uint64(0); b.Loop(); i++ {
				key, err := k.Key("blobs", g, leafOf(i))
				if err != nil {
					b.Fatal(err)
				}
				seal(key)
			}
		})
	}
	b.Run("the cipher alone", func(b *testing.B) {
		for b.Loop() {
			seal([vault.KeyBytes]byte{})
		}
	})
}
