package nano

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Bounds of modules that are files of a space.
const (
	maxModule    = 32 << 20 // bytes
	keptModules  = 8        // compiled, of those that were run last
	keptBytes    = 32 << 20 // of these, before they were compiled
	compiling    = 8        // bytes of memory for each of a module, while it is compiled
	gasToCompile = 100      // of a byte, whether it was kept or not
)

// foreign runs WASI modules that are files of the space. Between executions it keeps only their compiled code, found by its
// hash alone.
type foreign struct {
	engine *wasm.Engine
	kept   []compiled // the one that was used last comes last
}

type compiled struct {
	hash [sha256.Size]byte
	size int
	code *wasm.Code
}

func openForeign(ctx context.Context) (*foreign, error) {
	// Without a folder for compiled code: by then the worker reaches none.
	e, err := wasm.New(ctx, wasm.Options{MemoryPages: memoryPages, Foreign: true})
	if err != nil {
		return nil, err
	}
	if err := e.Define(ctx, wasi.Module, wasi.Functions(stateOf)...); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	return &foreign{engine: e}, nil
}

// module is the state of one that runs.
type module struct{ program *wasi.Program }

// WASI returns the state of the functions of WASI.
func (m module) WASI() *wasi.Program { return m.program }

// Run implements program.Program: the name of the program is the path of the module.
func (f *foreign) Run(p *program.Process) int {
	code, err := f.load(p)
	if err != nil {
		return f.refused(p, err)
	}
	stdio := [3]*vfs.Handle{}
	for i, h := range []*vfs.Handle{p.Stdin, p.Stdout, p.Stderr} {
		if h != nil {
			stdio[i] = h.Dup()
		}
	}
	w, err := wasi.New(p.FS, wasi.Config{Args: p.Args, Env: p.Env, Stdio: stdio, Umask: p.Umask, Preopens: preopens(p)})
	if err != nil {
		return f.refused(p, err)
	}
	defer w.Close()
	ctx := context.Background() // an execution is stopped by its account
	in, err := code.Initial().New(ctx, p.Account, module{w})
	if err != nil {
		return f.refused(p, err)
	}
	defer func() { _ = in.Close(ctx) }()
	in.Watch = func() { p.Charge(0) }
	if err = in.Start(ctx); err == nil {
		_, err = in.Call(ctx, "_start")
	}
	if exit, ok := errors.AsType[*wasm.Exit](err); ok {
		return int(exit.Code & 0xff)
	}
	if trap, ok := errors.AsType[*wasm.Trap](err); ok {
		p.Errorf("%s", trap)
		p.Kill(trapped(trap))
	}
	if err != nil {
		return f.refused(p, err)
	}
	return 0
}

// preopens are the folders that a module has open from the beginning. The C library of WASI takes the slash off absolute paths, and then
// the folder whose name is the longest that the path begins with; of names that are as long, the last, where "/" and "." are the empty
// name. So each folder of the root has a name of its own, and the working folder comes last, because relative paths start there. It
// comes first too, since programs without that library take the first for it. A relative path whose first element is the name of a folder
// of the root means that one; "./" in front does not help, for the library takes it off.
func preopens(p *program.Process) []wasi.Preopen {
	work := wasi.Preopen{Name: ".", Dir: p.Cwd}
	all := []wasi.Preopen{work, {Name: "/", Dir: p.FS.Root()}}
	entries, err := p.FS.Root().List()
	if err != nil {
		return all
	}
	for _, e := range entries {
		path := "/" + e.Name
		if n, err := p.FS.Lookup(vfs.At{Dir: p.FS.Root()}, path, true); err == nil && n.Kind() == vfs.Directory {
			all = append(all, wasi.Preopen{Name: path, Dir: n})
		}
	}
	return append(all, work)
}

// trapped returns the signal that a machine would end such a program by.
func trapped(t *wasm.Trap) int {
	switch t.Kind {
	case wasm.Unreachable:
		return program.SIGABRT
	case wasm.Integer:
		return 8 // SIGFPE
	}
	return 11 // SIGSEGV
}

// command runs a module that is named, whether it may be executed or not, as an interpreter runs its program: wasm FILE [ARG...].
func (f *foreign) command(p *program.Process) int {
	args := p.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	} else if len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = nil // it has no options; a file of such a name stands behind --
	}
	if len(args) == 0 {
		p.Stderrf("usage: wasm FILE [ARG...]\nFILE is a module of WASI preview 1.\n")
		return 2
	}
	if n, err := p.FS.Lookup(p.At(), args[0], true); err != nil || n.Kind() != vfs.Regular {
		if err == nil {
			err = vfs.EISDIR
		}
		p.Errorf("%s: %s", args[0], err)
		return 127
	}
	p.Args = args
	return f.Run(p)
}

// refused is the end of a module that cannot be run, or that was stopped.
func (f *foreign) refused(p *program.Process, err error) int {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	if errors.Is(err, bound.ErrMemory) {
		p.Errorf("not enough memory for the module")
		p.Kill(program.SIGKILL)
	}
	p.Errorf("cannot execute the WebAssembly module: %s", err)
	return 126
}

// load reads and compiles the module.
func (f *foreign) load(p *program.Process) (*wasm.Code, error) {
	h, err := p.Open(p.Name(), vfs.Read)
	if err != nil {
		return nil, err
	}
	if size := h.Info().Size; size > maxModule {
		return nil, fault.New(fault.Exhausted, "file_too_large", "it has %d bytes; at most %d are taken", size, int64(maxModule))
	}
	raw, err := h.ReadAll()
	if err != nil {
		return nil, err
	}
	defer p.Account.Release(int64(len(raw)))
	p.Charge(len(raw) * gasToCompile)
	hash := digest(p, raw)
	if i := slices.IndexFunc(f.kept, func(c compiled) bool { return c.hash == hash }); i >= 0 {
		c := f.kept[i]
		f.kept = append(slices.Delete(f.kept, i, i+1), c)
		return c.code, nil
	}
	if err := p.Account.Allocate(compiling * int64(len(raw))); err != nil {
		return nil, err
	}
	defer p.Account.Release(compiling * int64(len(raw)))
	code, err := f.engine.Compile(p.Account.Context(), raw)
	if err != nil {
		p.Charge(0) // this ends a stopped process
		return nil, err
	}
	ctx := context.Background()
	size := len(raw)
	for _, c := range f.kept {
		size += c.size
	}
	for len(f.kept) == keptModules || len(f.kept) > 0 && size > keptBytes {
		// Another fiber may be running one now; its instances keep it until they are closed.
		size -= f.kept[0].size
		_ = f.kept[0].code.Close(ctx)
		f.kept = slices.Delete(f.kept, 0, 1)
	}
	f.kept = append(f.kept, compiled{hash, len(raw), code})
	return code, nil
}

// digest is the hash of a module, which can be stopped on the way.
func digest(p *program.Process, raw []byte) (sum [sha256.Size]byte) {
	h := sha256.New()
	for part := range slices.Chunk(raw, 1<<20) {
		p.Charge(0)
		h.Write(part)
	}
	h.Sum(sum[:0])
	return sum
}

func (f *foreign) close(ctx context.Context) error { return f.engine.Close(ctx) }
