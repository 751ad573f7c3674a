package platter

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// sector is the size that a disk writes wholly or not at all.
const sector = 512

// Files are the files of a folder by their paths; a nil content is a folder.
type Files map[string][]byte

// Killed returns the files after a kill of every process at this moment: everything, for the operating system goes on.
func (m *Moment) Killed() Files { return m.files(m.held, func(n *node) []byte { return n.held }) }

// Halved returns the files after a kill during a write: a beginning of the last write. It is false where the last step
// was no write.
func (m *Moment) Halved(chance *rand.Rand) (Files, bool) {
	n := m.held[m.last.path]
	if m.last.kind != write || n == nil || len(m.last.text) < 2 {
		return nil, false
	}
	half := slices.Clone(n.safe)
	for i, c := range n.since {
		if i == len(n.since)-1 {
			c.text = c.text[:1+chance.IntN(len(c.text)-1)]
		}
		half = c.on(half)
	}
	files := m.Killed()
	files[m.last.path] = half
	return files, true
}

// Cut returns the files after a power cut on a disk that has written only the synced data.
func (m *Moment) Cut() Files { return m.files(m.safe, func(n *node) []byte { return n.safe }) }

// Torn returns what may be there after a power cut on a disk that was busy: beside what it had to keep, any part of the rest, sector by
// sector and in any order, as chance wills.
func (m *Moment) Torn(chance *rand.Rand) Files {
	names := maps.Clone(m.safe)
	for _, folder := range slices.Sorted(maps.Keys(m.waiting)) {
		likely := likelihood(chance)
		for _, e := range m.waiting[folder] {
			if chance.Float64() < likely {
				e.on(names)
			}
		}
	}
	contents := map[*node][]byte{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		n := names[name]
		if contents[n] != nil || len(n.since) == 0 {
			continue
		}
		likely, content := likelihood(chance), slices.Clone(n.safe)
		for _, c := range n.since {
			for _, part := range c.sectors() {
				if chance.Float64() < likely {
					content = part.on(content)
				}
			}
		}
		contents[n] = content
	}
	return m.files(names, func(n *node) []byte {
		if torn, ok := contents[n]; ok {
			return torn
		}
		return n.safe
	})
}

// likelihood is how much of what a file had to write was written: all of it is as likely as most of it, half of it and next to nothing.
func likelihood(chance *rand.Rand) float64 {
	return []float64{0.05, 0.5, 0.95, 1}[chance.IntN(4)]
}

// sectors are the parts of a change that happen each for itself.
func (c change) sectors() []change {
	if c.text == nil {
		return []change{c}
	}
	var parts []change
	for at, text := c.at, c.text; len(text) > 0; {
		n := min(int64(len(text)), sector-at%sector)
		parts = append(parts, change{at, text[:n]})
		at, text = at+n, text[n:]
	}
	return parts
}

// files are the named files whose folders are there.
func (m *Moment) files(names map[string]*node, content func(*node) []byte) Files {
	found := Files{}
	for name, n := range names {
		if !rooted(names, name) {
			continue
		}
		if n.folder {
			found[name] = nil
		} else {
			found[name] = append([]byte{}, content(n)...)
		}
	}
	return found
}

func rooted(names map[string]*node, name string) bool {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if n := names[folder]; n == nil || !n.folder {
			return false
		}
	}
	return true
}

// Digest is the same for the same files.
func (f Files) Digest() [sha256.Size]byte {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		kind := int64(len(f[name]))
		if f[name] == nil {
			kind = -1
		}
		_, _ = fmt.Fprintf(h, "%s\x00", name)
		_, _ = h.Write(binary.BigEndian.AppendUint64(nil, uint64(kind)))
		_, _ = h.Write(f[name])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// Write writes the files into a folder, which is made.
func (f Files) Write(dir string) error {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if f[name] == nil {
			if err := os.MkdirAll(to, 0o700); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(to, f[name], 0o600); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, 0o700)
}

// Read reads the files of a folder.
func Read(dir string) (Files, error) {
	found := Files{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		switch {
		case e.IsDir():
			found[rel] = nil
		case e.Type().IsRegular():
			raw, err := os.ReadFile(name)
			found[rel] = append([]byte{}, raw...)
			return err
		default:
			return errors.New(rel + " is neither a file nor a folder")
		}
		return nil
	})
	return found, err
}
