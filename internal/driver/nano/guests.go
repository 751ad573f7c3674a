package nano

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/javascript"
	"agentbox/internal/driver/nano/meter"
	"agentbox/internal/driver/nano/python"
	"agentbox/internal/driver/nano/sqlite"
	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// memoryPages bounds the memory of one guest, in pages of 64 KiB; the space's own bound is below it or counts in addition.
const memoryPages = 8192

// Prepare compiles the interpreters and makes their images in a folder. Only the daemon may write to the folder, because its files are
// executed. It does nothing if this build has done it before. A non-nil kept is called with the name of each interpreter in the folder.
func Prepare(ctx context.Context, cache string, kept func(interpreter string)) error {
	g := &guests{cache: cache, kept: kept}
	return errors.Join(g.open(ctx, true), g.close(ctx))
}

// guests are the interpreters of a worker.
type guests struct {
	cache   string
	engine  *wasm.Engine
	python  *python.Guest
	script  *javascript.Runtime
	sqlite  *sqlite.Guest
	module  *foreign
	table   program.Table
	version string // of all of them
	files   []fixed
	kept    func(interpreter string) // called with the new entry of the cache; may be nil
}

// open loads the interpreters. If one was not prepared, open makes it when make is set, and else reports that it is on its way.
func (g *guests) open(ctx context.Context, make bool) (err error) {
	if err := g.bare(); err != nil {
		return err
	}
	if g.engine, err = wasm.New(ctx, wasm.Options{Cache: g.cache, MemoryPages: memoryPages, Depth: python.Depth}); err != nil {
		return err
	}
	if err := g.engine.Define(ctx, wasi.Module, wasi.Functions(stateOf)...); err != nil {
		return err
	}
	return errors.Join(g.openJavaScript(ctx, make), g.openForeign(ctx), g.openSQLite(ctx, make), g.openPython(ctx, make))
}

// bare is open without the interpreters: it looks whether the cache can be trusted, and loads nothing of it.
func (g *guests) bare() error {
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
	return nil
}

func (g *guests) openForeign(ctx context.Context) (err error) {
	if g.module, err = openForeign(ctx); err == nil {
		g.table["wasm"] = program.Func(g.module.command)
	}
	return err
}

func (g *guests) openJavaScript(ctx context.Context, make bool) (err error) {
	key, err := javascript.Key()
	if err != nil { // this build has none: its commands are not there
		return nil
	}
	at := g.keptAt("javascript", key)
	o := wasm.Options{Cache: g.cache, MemoryPages: memoryPages}
	prepared, image, missing := at.loadScript()
	if errors.Is(missing, fs.ErrNotExist) && !make {
		for _, name := range []string{"js", "node", "bun"} {
			g.table[name] = notReady(scriptName)
		}
		return nil
	}
	if missing != nil { // or damaged
		module, err := javascript.Module()
		if err != nil {
			return err
		}
		if prepared, err = wasm.Prepare(module); err != nil {
			return err
		}
	}
	if g.script, err = javascript.Open(ctx, o, prepared, image); err != nil {
		return err
	}
	switch {
	case missing == nil:
		err = shareCode(string(at) + codeFile)
	case make:
		// no other guest is there yet whose code would be larger
		err = errors.Join(keepCode(g.cache, string(at)+codeFile), at.saveScript(prepared, g.script))
	}
	if err != nil {
		return fmt.Errorf("keep JavaScript: %w", err)
	}
	if make && g.kept != nil {
		g.kept(scriptName)
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
	if g.sqlite != nil {
		err = errors.Join(err, g.sqlite.Close(ctx))
	}
	if g.module != nil {
		err = errors.Join(err, g.module.close(ctx))
	}
	if g.engine != nil {
		err = errors.Join(err, g.engine.Close(ctx))
	}
	return err
}

// warm prepares the next execution.
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

// settle ends the rehearsals: what executions do decides nothing for those after them.
func (g *guests) settle() {
	if g.python != nil {
		g.python.Settle()
	}
	if g.script != nil {
		g.script.Settle()
	}
}

func (g *guests) openPython(ctx context.Context, make bool) error {
	key, err := python.Key()
	if err != nil { // this build has none: its commands are not there
		return nil
	}
	at := g.keptAt("python", key)
	interpreter, image, hash, missing := at.load()
	if errors.Is(missing, fs.ErrNotExist) && !make {
		for _, name := range []string{"python", "python3"} {
			g.table[name] = notReady(pythonName)
		}
		return nil
	}
	if missing != nil { // or damaged
		if interpreter, err = python.Load(); err != nil {
			return err
		}
		if interpreter.Prepared, err = wasm.Prepare(interpreter.Module); err != nil {
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
	if make && g.kept != nil {
		g.kept(pythonName)
	}
	g.table.Add(g.python.Programs())
	g.version += fmt.Sprintf(", python %.8x", hash)
	g.files = append(g.files, fixed{python.LibraryPath, interpreter.Library})
	return nil
}

// unprepared is thrown by a program whose interpreter is being prepared: its name.
type unprepared string

func notReady(interpreter string) program.Func {
	return func(*program.Process) int { panic(unprepared(interpreter)) }
}
