// Package keyring keeps the keys of sealed content in files of their own, apart from the content, so that destroying a key is final.
//
// Each tree of keys is one file that only its owner can read. To forget a key, the keyring writes the tree without it into a new file,
// which replaces the old one in one step. Then it overwrites and removes the old file. Some disks write elsewhere than they are told
// (flash, a copying file system). There the overwriting may miss the old bytes, and only the disk's own encryption helps.
package keyring

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/host"
	"agentbox/internal/kernel/vault"
)

var _ vault.Keys = (*Keyring)(nil)

// The names of files. A file with newSuffix is not yet in place. A file with oldSuffix must still be overwritten.
const (
	keysSuffix = ".keys"
	newSuffix  = ".new"
	oldSuffix  = ".old"
)

// A file is the mark, the number and the generation of the tree, its name with its length, the tree, and a SHA-256 of all that.
const mark = "agentbox keys 1\n"

// Keyring keeps trees of keys in a folder.
type Keyring struct {
	dir      string
	entropy  io.Reader
	readOnly bool
	now      func() time.Time // of a keyring that several programs have open; nil of one that is this program's alone

	mu      sync.Mutex // guards all below, and what Key keeps in trees
	trees   map[string][]*planted
	files   map[string]os.FileInfo // that the trees were read from, where others write them too
	checked time.Time              // when that was found to be so last
}

// planted is one generation of a tree.
type planted struct {
	name       string
	number     uint64 // rises with each planting of the name
	generation vault.Generation
	tree       *vault.Tree
}

// Open opens the keys in a folder, which it makes, and finishes a change that a crash left half done. The seeds of trees are drawn from
// entropy.
func Open(dir string, entropy io.Reader) (*Keyring, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open the keys: %w", err)
	}
	if err := tidy(dir); err != nil {
		return nil, fmt.Errorf("open the keys: %w", err)
	}
	k := &Keyring{dir: dir, entropy: entropy}
	return k, k.load()
}

// OpenReadOnly opens the keys in a folder, beside a daemon or without one, and changes nothing there. No folder has no keys.
func OpenReadOnly(dir string) (*Keyring, error) {
	k := &Keyring{dir: dir, readOnly: true}
	return k, k.load()
}

// load reads every tree. The lock is held, or nobody else has the keyring yet.
func (k *Keyring) load() error {
	trees, files := map[string][]*planted{}, map[string]os.FileInfo{}
	entries, err := os.ReadDir(k.dir)
	if errors.Is(err, fs.ErrNotExist) && k.readOnly {
		k.trees = trees
		return nil
	}
	if err != nil {
		return fmt.Errorf("open the keys: %w", err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), keysSuffix) {
			continue
		}
		p, info, err := k.read(entry.Name())
		if err != nil {
			return err
		}
		if entry.Name() != p.file() {
			return damaged(entry.Name())
		}
		trees[p.name], files[entry.Name()] = append(trees[p.name], p), info
	}
	for _, generations := range trees {
		slices.SortFunc(generations, func(a, b *planted) int {
			if a.number != b.number {
				return int(a.number) - int(b.number)
			}
			return int(a.generation) - int(b.generation)
		})
	}
	for _, generations := range k.trees {
		for _, p := range generations {
			p.tree.Wipe()
		}
	}
	k.trees, k.files = trees, files
	return nil
}

// read reads the file of a generation, once more where another program has replaced it meanwhile.
func (k *Keyring) read(name string) (p *planted, info os.FileInfo, err error) {
	path := filepath.Join(k.dir, name)
	for range readTries {
		if info, err = os.Stat(path); err != nil {
			return nil, nil, fmt.Errorf("open the keys: %w", err)
		}
		if p, err = read(path); err == nil || k.now == nil {
			return p, info, err
		}
		if now, gone := os.Stat(path); gone == nil && unchanged(now, info) {
			return nil, nil, err
		}
	}
	return nil, nil, err
}

// Plant implements vault.Keys.
func (k *Keyring) Plant(tree string) (vault.Generation, error) {
	if err := vault.CheckName(tree); err != nil {
		return 0, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if generations := k.trees[tree]; len(generations) > 0 {
		return generations[len(generations)-1].generation, nil
	}
	if k.readOnly {
		return 0, vault.ErrMissing
	}
	var g vault.Generation
	err := k.alone(func() (err error) {
		if generations := k.trees[tree]; len(generations) > 0 { // another program was first
			g = generations[len(generations)-1].generation
			return nil
		}
		g, err = k.plant(tree, 1)
		return err
	})
	return g, err
}

// plant makes a generation of a tree. The lock is held.
func (k *Keyring) plant(tree string, number uint64) (vault.Generation, error) {
	p := &planted{name: tree, number: number}
	for p.generation == 0 {
		var drawn [4]byte
		if _, err := io.ReadFull(k.entropy, drawn[:]); err != nil {
			return 0, fmt.Errorf("draw the keys of %s: %w", tree, err)
		}
		p.generation = vault.Generation(binary.BigEndian.Uint32(drawn[:]))
	}
	var seed [vault.KeyBytes]byte
	if _, err := io.ReadFull(k.entropy, seed[:]); err != nil {
		return 0, fmt.Errorf("draw the keys of %s: %w", tree, err)
	}
	p.tree = vault.NewTree(seed)
	if err := k.replace(p); err != nil {
		return 0, fmt.Errorf("keep the keys of %s: %w", tree, err)
	}
	k.trees[tree] = append(k.trees[tree], p)
	return p.generation, nil
}

// Key implements vault.Keys.
func (k *Keyring) Key(tree string, g vault.Generation, leaf uint64) ([vault.KeyBytes]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, err := k.find(tree, g)
	if err != nil {
		return [vault.KeyBytes]byte{}, err
	}
	if key, ok := p.tree.Key(leaf); ok {
		return key, nil
	}
	return [vault.KeyBytes]byte{}, vault.ErrForgotten
}

// find returns a generation of a tree. The lock is held.
func (k *Keyring) find(tree string, g vault.Generation) (*planted, error) {
	if err := k.current(); err != nil {
		return nil, err
	}
	for again := k.now != nil; ; again = false {
		for _, p := range k.trees[tree] {
			if p.generation == g {
				return p, nil
			}
		}
		if !again {
			return nil, vault.ErrMissing
		}
		if err := k.load(); err != nil { // another program may have planted it a moment ago
			return nil, err
		}
	}
}

// Holds implements vault.Keys.
func (k *Keyring) Holds(tree string, g vault.Generation, leaf uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, err := k.find(tree, g)
	if err == nil && !p.tree.Holds(leaf) {
		err = vault.ErrForgotten
	}
	return err
}

// Forget implements vault.Keys.
func (k *Keyring) Forget(tree string, leaves ...uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.alone(func() error { return k.forget(tree, leaves) })
}

// forget is Forget for a caller that holds the keys alone.
func (k *Keyring) forget(tree string, leaves []uint64) error {
	for _, p := range k.trees[tree] {
		if !slices.ContainsFunc(leaves, p.tree.Holds) {
			continue
		}
		if k.readOnly {
			return fault.New(fault.Conflict, "keys_read_only", "the keys are open for reading only")
		}
		less := *p
		less.tree = p.tree.Without(leaves)
		if err := k.replace(&less); err != nil {
			return fmt.Errorf("forget keys of %s: %w", tree, err)
		}
		p.tree.Wipe()
		p.tree = less.tree
	}
	return nil
}

// Renew plants every tree in a folder anew: the old trees still open their sealed data, and seal nothing more. Use it for copied keys,
// since two logs that go on under the same keys could seal two texts under one.
func Renew(dir string, entropy io.Reader) error {
	k, err := Open(dir, entropy)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for tree, generations := range k.trees {
		if _, err := k.plant(tree, generations[len(generations)-1].number+1); err != nil {
			return err
		}
	}
	return nil
}

// Copy copies the keys of one folder into another, which it makes.
func Copy(from, to string) error {
	source, err := OpenReadOnly(from)
	if err != nil {
		return err
	}
	if len(source.trees) == 0 {
		return fault.New(fault.NotFound, "keys_missing", "there are no keys in %s",
			from).With("name the folder keys of the data directory whose backup it is")
	}
	target, err := Open(to, nil)
	if err != nil {
		return err
	}
	for _, generations := range source.trees {
		for _, p := range generations {
			if err := target.replace(p); err != nil {
				return fmt.Errorf("copy the keys: %w", err)
			}
		}
	}
	return nil
}

// file is the name of the file that a generation lies in.
func (p *planted) file() string {
	return fmt.Sprintf("%s.%08x%s", strings.ReplaceAll(p.name, "/", "+"), uint32(p.generation), keysSuffix)
}

// replace writes a generation into its file in one step, and destroys the old file.
func (k *Keyring) replace(p *planted) error {
	raw := append([]byte(mark), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	binary.BigEndian.PutUint64(raw[len(mark):], p.number)
	binary.BigEndian.PutUint32(raw[len(mark)+8:], uint32(p.generation))
	raw = append(append(raw, byte(len(p.name))), p.name...)
	raw = p.tree.Append(raw)
	sum := sha256.Sum256(raw)
	raw = append(raw, sum[:]...)
	defer clear(raw)

	path := filepath.Join(k.dir, p.file())
	if err := writeNew(path+newSuffix, raw); err != nil {
		return err
	}
	if err := os.Link(path, path+oldSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(path+newSuffix, path); err != nil {
		return err
	}
	if err := syncFolder(k.dir); err != nil {
		return err
	}
	return tidy(k.dir)
}

// writeNew makes a durable file; a crash may have left one of its name.
func writeNew(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

// tidy overwrites and removes replaced files, and files that were not yet in place when the program ended.
func tidy(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	removed := false
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		switch {
		case strings.HasSuffix(path, keysSuffix+newSuffix):
			err = overwrite(path)
		case strings.HasSuffix(path, keysSuffix+oldSuffix):
			// Before the new one took its place, the old one had both names.
			if !same(path, strings.TrimSuffix(path, oldSuffix)) {
				err = overwrite(path)
			}
		default:
			continue
		}
		if err := errors.Join(err, os.Remove(path)); err != nil {
			return err
		}
		removed = true
	}
	if removed {
		return syncFolder(dir)
	}
	return nil
}

func same(a, b string) bool {
	x, errX := os.Lstat(a)
	y, errY := os.Lstat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// overwrite makes every byte of a file zero, durably.
func overwrite(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		_, err = f.WriteAt(make([]byte, info.Size()), 0)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(host.SyncNames(f), f.Close())
}

// read reads the file of a generation.
func read(path string) (*planted, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open the keys: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fault.New(fault.Unavailable, "keys_exposed", "%s can be read by other users (mode %04o)", path,
			info.Mode().Perm()).With("mend it with: chmod 600 " + path)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("open the keys: %w", err)
	}
	defer clear(raw)
	body := raw[:max(0, len(raw)-sha256.Size)]
	sum := sha256.Sum256(body)
	rest, marked := bytes.CutPrefix(body, []byte(mark))
	if !marked || !bytes.Equal(sum[:], raw[len(body):]) || len(rest) < 13 || len(rest) < 13+int(rest[12]) {
		return nil, damaged(filepath.Base(path))
	}
	p := &planted{number: binary.BigEndian.Uint64(rest), generation: vault.Generation(binary.BigEndian.Uint32(rest[8:]))}
	p.name = string(rest[13:][:rest[12]])
	if p.tree, err = vault.Parse(rest[13+int(rest[12]):]); err != nil || vault.CheckName(p.name) != nil {
		return nil, damaged(filepath.Base(path))
	}
	return p, nil
}

func damaged(file string) error {
	return fault.New(fault.Unavailable, "keys_damaged",
		"the file of keys %s does not have its original content: it is damaged, or was renamed", file).
		With("put it back from a copy; without it what it seals stays sealed, and it can be moved away")
}
