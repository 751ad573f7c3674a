package nano

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agentbox/internal/driver/nano/javascript"
	"agentbox/internal/driver/nano/meter"
	"agentbox/internal/driver/nano/python"
	"agentbox/internal/driver/nano/sqlite"
	"agentbox/internal/driver/nano/wasm"
	machine "agentbox/internal/host" // the tests have another host
)

// kept is where an interpreter lies that was prepared, as the beginning of the names of its files: a worker unpacks and meters nothing,
// and compiled code and libraries are memory that all workers share.
type kept string

func (g *guests) keptAt(name string, key [8]byte) kept { return keptAt(g.cache, name, key) }

func keptAt(cache, name string, key [8]byte) kept {
	return kept(filepath.Join(cache, fmt.Sprintf("%s-%d-%x", name, meter.Version, key)))
}

// keptFiles are the files that a worker of this build needs.
func keptFiles(cache string) (all []string) {
	if key, err := python.Key(); err == nil { // else this build has none
		for _, file := range []string{libraryFile, moduleFile, imageFile} {
			all = append(all, string(keptAt(cache, "python", key))+file)
		}
	}
	if key, err := javascript.Key(); err == nil {
		for _, file := range []string{moduleFile, imageFile} {
			all = append(all, string(keptAt(cache, "javascript", key))+file)
		}
	}
	if key, err := sqlite.Key(); err == nil {
		all = append(all, string(keptAt(cache, "sqlite", key))+moduleFile)
	}
	return all
}

// isKept reports whether the files that a worker needs exist. It does not read them. Files may be missing one by
// one, because people delete large ones to free space.
func isKept(files []string) bool {
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() == 0 {
			return false
		}
	}
	return true
}

// The files.
const (
	codeFile    = ".code" // the compiled code of the module, where workers can share it
	libraryFile = ".zip"
	moduleFile  = ".module"
	imageFile   = ".image" // begins with the hash of the interpreter, and is written last
)

// load returns an interpreter without its module, its image and its hash.
func (k kept) load() (r *python.Runtime, image []byte, hash [sha256.Size]byte, err error) {
	if image, err = os.ReadFile(string(k) + imageFile); err != nil {
		return nil, nil, hash, err
	}
	module, err := os.ReadFile(string(k) + moduleFile)
	if err != nil {
		return nil, nil, hash, err
	}
	r = &python.Runtime{Prepared: &wasm.Prepared{}}
	if err = r.Prepared.UnmarshalBinary(module); err == nil && len(image) <= len(hash) {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		r.Library, err = mapped(string(k) + libraryFile)
	}
	if err != nil {
		return nil, nil, hash, err
	}
	return r, image[copy(hash[:], image):], hash, nil
}

// loadScript returns the module and the image of JavaScript.
func (k kept) loadScript() (*wasm.Prepared, []byte, error) {
	image, err := os.ReadFile(string(k) + imageFile)
	if err != nil {
		return nil, nil, err
	}
	module, err := os.ReadFile(string(k) + moduleFile)
	if err != nil {
		return nil, nil, err
	}
	prepared := &wasm.Prepared{}
	return prepared, image, prepared.UnmarshalBinary(module)
}

// saveScript writes them.
func (k kept) saveScript(prepared *wasm.Prepared, r *javascript.Runtime) error {
	module, err := prepared.MarshalBinary()
	if err != nil {
		return err
	}
	image, err := r.MarshalBinary()
	if err != nil {
		return err
	}
	return errors.Join(keep(string(k)+moduleFile, module), keep(string(k)+imageFile, image))
}

// save writes the files.
func (k kept) save(r *python.Runtime, g *python.Guest, hash [sha256.Size]byte) error {
	module, err := r.Prepared.MarshalBinary()
	if err != nil {
		return err
	}
	image, err := g.Encode()
	if err != nil {
		return err
	}
	if err := errors.Join(keep(string(k)+libraryFile, r.Library), keep(string(k)+moduleFile, module)); err != nil {
		return err
	}
	return keep(string(k)+imageFile, slices.Concat(hash[:], image))
}

// unfinished is the beginning of the names of files that a process has not written whole.
func unfinished(pid int) string { return fmt.Sprintf(".new-%d-", pid) }

// keep writes a file in one step, which is there as a whole after a power cut, or is not.
func keep(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), unfinished(os.Getpid()))
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(name))
}

// syncFolder makes the names in a folder durable, where the system can.
func syncFolder(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(machine.SyncNames(d), d.Close())
}

// The cache of several builds is one folder. Each living daemon says every day of the files of its own that they are used, and removes
// those of which nobody has said so, and which nobody has read, for a month.
const (
	tendEvery = 24 * time.Hour
	keptFor   = 30 * 24 * time.Hour
)

// tend looks after the cache until ctx ends.
func (t *Tier) tend(ctx context.Context) {
	for {
		if err := sweep(t.o.Cache, append(slices.Clone(t.files()), t.mark()), t.o.Clock.Now()); err != nil {
			t.o.Logger.Warn("the folder for compiled WebAssembly could not be tended", "code", "wasm_cache", "error", err)
		}
		again, stop := t.o.Clock.NewTimer(tendEvery)
		select {
		case <-again:
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// sweep marks some files of a cache as used now, and removes the files whose mark is too old. wazero reads its code on every use, and makes
// removed code again. sweep touches only files with names of the cache.
func sweep(cache string, used []string, now time.Time) error {
	var all error
	for _, name := range used {
		for _, file := range []string{name, strings.TrimSuffix(strings.TrimSuffix(name, imageFile), moduleFile) + codeFile} {
			if err := os.Chtimes(file, now, now); err != nil && !errors.Is(err, fs.ErrNotExist) {
				all = errors.Join(all, err)
			}
		}
	}
	var names []string
	for _, pattern := range []string{"prepared-*", "python-*", "javascript-*", "sqlite-*", ".new-*", filepath.Join("wazero-*", "*")} {
		found, err := filepath.Glob(filepath.Join(cache, pattern))
		names, all = append(names, found...), errors.Join(all, err)
	}
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < keptFor || now.Sub(lastRead(name)) < keptFor {
			continue
		}
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}
