// Package sqlite is the program sqlite3 of nano spaces: SQLite's own shell as a module of WASI.
//
// It is metered and bounded as every guest, and has the files of the space and nothing else. It cannot start programs: `.shell` and
// `.system` do not exist, and pipes are refused. There is one user of a database at a time, so it takes no locks.
package sqlite

import (
	"context"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// folder is the variable by which the program learns its working folder. It takes it out of its environment.
const folder = "AGENTBOX_FOLDER"

// Guest runs the program. Make it with New, and close it.
type Guest struct{ code *wasm.Code }

// New compiles the program for an engine, to which the functions of WASI were given.
func New(ctx context.Context, e *wasm.Engine, p *wasm.Prepared) (*Guest, error) {
	code, err := e.CompilePrepared(ctx, p)
	if err != nil {
		return nil, err
	}
	return &Guest{code}, nil
}

// Hash is that of the module and its metering.
func (g *Guest) Hash() [32]byte { return g.code.Hash() }

// Close releases the compiled code.
func (g *Guest) Close(ctx context.Context) error { return g.code.Close(ctx) }

// Programs returns the commands that the guest adds to a space.
func (g *Guest) Programs() program.Table { return program.Table{"sqlite3": program.Func(g.run)} }

// state is that of an instance.
type state struct{ program *wasi.Program }

// WASI returns the state of the functions of WASI.
func (s state) WASI() *wasi.Program { return s.program }

func (g *Guest) run(p *program.Process) int {
	cwd, err := p.Cwd.Path()
	if err != nil {
		p.Errorf("the working folder: %s", program.Message(err))
		return 1
	}
	stdio := [3]*vfs.Handle{}
	for i, h := range []*vfs.Handle{p.Stdin, p.Stdout, p.Stderr} {
		if h != nil {
			stdio[i] = h.Dup()
		}
	}
	env := slices.DeleteFunc(slices.Clone(p.Env), func(v string) bool { return strings.HasPrefix(v, folder+"=") })
	w, err := wasi.New(p.FS, wasi.Config{
		Args: p.Args, Env: append(env, folder+"="+cwd), Stdio: stdio, Umask: p.Umask, Preopens: []wasi.Preopen{{Name: "/", Dir: p.FS.Root()}},
	})
	if err != nil {
		return refused(p, err)
	}
	defer w.Close()
	ctx := context.Background() // the caller stops an execution through its account
	in, err := g.code.Initial().New(ctx, p.Account, state{w})
	if err != nil {
		return refused(p, err)
	}
	defer func() { _ = in.Close(ctx) }()
	in.Watch = func() { p.Charge(0) }
	if err = in.Start(ctx); err == nil {
		_, err = in.Call(ctx, "_start")
	}
	if exit, ok := errors.AsType[*wasm.Exit](err); ok {
		return int(exit.Code & 0xff)
	}
	if err != nil {
		return refused(p, err)
	}
	return 0
}

// refused is the end of the program where it did not end by itself.
func refused(p *program.Process, err error) int {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
	if errors.Is(err, bound.ErrMemory) {
		p.Errorf("not enough memory")
		p.Kill(program.SIGKILL)
	}
	p.Errorf("%s", err)
	if trap, ok := errors.AsType[*wasm.Trap](err); ok && trap.Kind == wasm.Unreachable {
		p.Kill(program.SIGABRT)
	}
	p.Kill(segv)
	return 1
}

// segv is the signal that ends a program which leaves its memory or its stack.
const segv = 11
