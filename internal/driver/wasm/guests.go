package wasm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

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
	if info, err := os.Stat(g.cache); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fault.Wrap(errors.Join(err, fs.ErrPermission), fault.Unavailable, "wasm_cache",
			"what lies in %s is executed, and others may write there: chmod go-w it, or remove it", g.cache)
	}
	var err error
	if g.engine, err = engine.New(ctx, engine.Options{Cache: g.cache, MemoryPages: memoryPages, Depth: python.Depth}); err != nil {
		return err
	}
	if err := g.engine.Define(ctx, wasi.Module, wasi.Functions(stateOf)...); err != nil {
		return err
	}
	return errors.Join(g.openJavaScript(ctx), g.openForeign(ctx), g.openPython(ctx, make))
}

func (g *guests) openForeign(ctx context.Context) (err error) {
	g.module, err = openForeign(ctx)
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
	interpreter, err := python.Load()
	if err != nil { // this build has none: its commands are not there
		return nil
	}
	hash := interpreter.Hash()
	name := filepath.Join(g.cache, fmt.Sprintf("python-%d-%x.image", meter.Version, hash[:8]))
	encoded, err := os.ReadFile(name)
	switch {
	case err == nil:
	case !errors.Is(err, fs.ErrNotExist):
		return err
	case !make:
		for _, name := range []string{"python", "python3"} {
			g.table[name] = program.Func(notReady)
		}
		return nil
	}
	if g.python, err = python.New(ctx, g.engine, interpreter, encoded); err != nil {
		return err
	}
	if encoded == nil {
		if encoded, err = g.python.Encode(); err != nil {
			return err
		}
		if err := keep(name, encoded); err != nil {
			return fmt.Errorf("keep the image of Python: %w", err)
		}
	}
	g.table.Add(g.python.Programs())
	g.version += fmt.Sprintf(", python %.8x", hash)
	g.files = append(g.files, fixed{python.LibraryPath, interpreter.Library})
	return nil
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
