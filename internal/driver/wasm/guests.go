package wasm

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/wasm/engine"
	"agentbox/internal/driver/wasm/javascript"
	"agentbox/internal/driver/wasm/meter"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/python"
	"agentbox/internal/driver/wasm/wasi"
)

// memoryPages bounds the memory of one guest, in pages of 64 KiB; the space's own bound is below it or counts in addition.
const memoryPages = 8192

// Prepare compiles the interpreters and makes their images in a folder, which nobody but the daemon may write: what lies in it is executed. It does nothing
// where that was done by this build before.
func Prepare(ctx context.Context, cache string) error {
	g := &guests{cache: cache}
	return errors.Join(g.open(ctx, true), g.close(ctx))
}

// guests are the interpreters of a worker.
type guests struct {
	cache   string
	engine  *engine.Engine
	python  *python.Guest
	script  *javascript.Runtime
	module  *foreign
	table   program.Table
	version string // of all of them
	files   []fixed
}

// open loads the interpreters. What was not prepared is made where make says so, and else said to be on its way.
func (g *guests) open(ctx context.Context, make bool) error {
	g.table, g.version = program.Table{}, fmt.Sprintf("metering %d", meter.Version)
	if err := os.MkdirAll(g.cache, 0o700); err != nil {
		return fault.Wrap(err, fault.Unavailable, "wasm_cache", "the folder for compiled WebAssembly cannot be made")
	}
	info, err := os.Stat(g.cache)
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fault.Wrap(errors.Join(err, fs.ErrPermission), fault.Unavailable, "wasm_cache",
			"what lies in %s is executed, and others may write there: chmod go-w it, or remove it", g.cache)
	}
	if foreignOwner(info) {
		return fault.Wrap(fs.ErrPermission, fault.Unavailable, "wasm_cache",
			"what lies in %s is executed, and it is another user's: remove it, or name a folder of your own with AGENTBOX_CACHE", g.cache)
	}
	if g.engine, err = engine.New(ctx, engine.Options{Cache: g.cache, MemoryPages: memoryPages, Depth: python.Depth}); err != nil {
		return err
	}
	if err := g.engine.Define(ctx, wasi.Module, wasi.Functions(stateOf)...); err != nil {
		return err
	}
	return errors.Join(g.openJavaScript(ctx), g.openForeign(ctx), g.openPython(ctx, make))
}

func (g *guests) openForeign(ctx context.Context) (err error) {
	if g.module, err = openForeign(ctx); err == nil {
		g.table["wasm"] = program.Func(g.module.command)
	}
	return err
}

func (g *guests) openJavaScript(ctx context.Context) (err error) {
	if _, err := javascript.Module(); err != nil { // this build has none: its commands are not there
		return nil
	}
	if g.script, err = javascript.New(ctx, engine.Options{Cache: g.cache, MemoryPages: memoryPages}); err != nil {
		return err
	}
	g.table.Add(g.script.Programs())
	g.version += fmt.Sprintf(", javascript %.8x", g.script.Hash())
	return nil
}

// stateOf finds the state of WASI in that of an instance.
func stateOf(state any) *wasi.Program { return state.(interface{ WASI() *wasi.Program }).WASI() }

func (g *guests) close(ctx context.Context) error {
	var err error
	if g.python != nil {
		err = g.python.Close(ctx)
	}
	if g.script != nil {
		err = errors.Join(err, g.script.Close(ctx))
	}
	if g.module != nil {
		err = errors.Join(err, g.module.close(ctx))
	}
	if g.engine != nil {
		err = errors.Join(err, g.engine.Close(ctx))
	}
	return err
}

// warm gets ready what the next execution needs.
func (g *guests) warm(ctx context.Context) error {
	var err error
	if g.python != nil {
		err = g.python.Warm(ctx)
	}
	if g.script != nil {
		err = errors.Join(err, g.script.Warm(ctx))
	}
	return err
}

func (g *guests) openPython(ctx context.Context, make bool) error {
	key, err := python.Key()
	if err != nil { // this build has none: its commands are not there
		return nil
	}
	at := keptAt(g.cache, key)
	interpreter, image, hash, missing := at.load()
	if errors.Is(missing, fs.ErrNotExist) && !make {
		for _, name := range []string{"python", "python3"} {
			g.table[name] = program.Func(notReady)
		}
		return nil
	}
	if missing != nil { // or damaged
		if interpreter, err = python.Load(); err != nil {
			return err
		}
		if interpreter.Prepared, err = engine.Prepare(interpreter.Module); err != nil {
			return err
		}
		hash = interpreter.Hash()
	}
	if g.python, err = python.New(ctx, g.engine, interpreter, image); err != nil {
		return err
	}
	switch {
	case missing == nil:
		err = shareCode(string(at) + codeFile)
	case make:
		err = errors.Join(keepCode(g.cache, string(at)+codeFile), at.save(interpreter, g.python, hash))
	}
	if err != nil {
		return fmt.Errorf("keep Python: %w", err)
	}
	g.table.Add(g.python.Programs())
	g.version += fmt.Sprintf(", python %.8x", hash)
	g.files = append(g.files, fixed{python.LibraryPath, interpreter.Library})
	return nil
}

// keptPython is where an interpreter lies that was prepared, as the beginning of the names of its files: a worker unpacks and meters nothing, and its library is
// memory that all workers share.
type keptPython string

func keptAt(cache string, key [8]byte) keptPython {
	return keptPython(filepath.Join(cache, fmt.Sprintf("python-%d-%x", meter.Version, key)))
}

// isKept reports whether the files are there that a worker needs, so far as that is seen without reading them: a cache is cleared by whoever needs room, and not
// as a whole.
func isKept(cache string) bool {
	key, err := python.Key()
	if err != nil { // this build has none
		return true
	}
	for _, file := range []string{libraryFile, moduleFile, imageFile} {
		if info, err := os.Stat(string(keptAt(cache, key)) + file); err != nil || info.Size() == 0 {
			return false
		}
	}
	return true
}

// The files.
const (
	codeFile    = ".code" // what was compiled of the module, where workers can share it
	libraryFile = ".zip"
	moduleFile  = ".module"
	imageFile   = ".image" // begins with the hash of the interpreter, and is written last
)

// load returns an interpreter without its module, its image and its hash.
func (k keptPython) load() (r *python.Runtime, image []byte, hash [sha256.Size]byte, err error) {
	if image, err = os.ReadFile(string(k) + imageFile); err != nil {
		return nil, nil, hash, err
	}
	module, err := os.ReadFile(string(k) + moduleFile)
	if err != nil {
		return nil, nil, hash, err
	}
	r = &python.Runtime{Prepared: &engine.Prepared{}}
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

// save writes the files.
func (k keptPython) save(r *python.Runtime, g *python.Guest, hash [sha256.Size]byte) error {
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

// keep writes a file in one step.
func keep(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// unprepared is thrown by a program whose interpreter is being prepared.
type unprepared struct{}

func notReady(*program.Process) int { panic(unprepared{}) }
