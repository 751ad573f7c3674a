package nano

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/driver/nano/workdir"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/vfs"
)

// Module is a WebAssembly module for this machine, with the bounds of its use.
type Module struct {
	File     string
	Args     []string // behind its own name
	Env      []string // as in NAME=value
	Folders  []Folder
	In       io.Reader
	Out, Err io.Writer
	Terminal [3]bool // whether In, Out and Err are terminals, as a module sees it
	Gas      int64
	Time     time.Duration // by the wall and by what it sleeps
	Memory   int64         // bytes, files that it reads included
	Seed     string        // of its chance
	Start    time.Time     // of its clock
	Cache    string        // folder in which its compiled code is kept, which only the caller may write; "" for none
}

// Folder is a folder of the host, and the names under which a module finds it open.
type Folder struct {
	Host   string
	Guests []string
}

// End is how a module ended.
type End struct {
	ExitCode   int
	Gas        int64
	MemoryPeak int64
	Slept      time.Duration
	Changes    int // steps by which the folders were changed
}

// depth is how deep the programs of one execution start each other; a module starts none.
const depth = 1

// Run runs a module of WASI preview 1 under its bounds, over copies of its folders. Where it ends by itself, with whatever code, the
// folders are changed as it has left them.
func Run(ctx context.Context, m Module) (end End, err error) {
	code, err := os.ReadFile(m.File)
	if err != nil {
		return end, fault.Wrap(err, fault.NotFound, "module_unreadable", "the module cannot be read")
	}
	if m.Cache != "" {
		if err := ownFolder(m.Cache); err != nil {
			return end, err
		}
	}
	pages := min((m.Memory+1<<16-1)>>16, 1<<16)
	e, err := wasm.New(ctx, wasm.Options{MemoryPages: uint32(pages), Cache: m.Cache})
	if err != nil {
		return end, err
	}
	defer func() { err = errors.Join(err, e.Close(context.WithoutCancel(ctx))) }()
	if err := e.Define(ctx, wasi.Module, wasi.Functions(func(state any) *wasi.Program { return state.(*wasi.Program) })...); err != nil {
		return end, err
	}
	compiled, err := e.Compile(ctx, code)
	if err != nil {
		return end, err
	}
	limited, cancel := context.WithTimeout(ctx, m.Time)
	defer cancel()
	fiber.Run(func(g *fiber.Group) { end, err = m.run(limited, compiled, g) })
	return end, err
}

func (m *Module) run(ctx context.Context, code *wasm.Code, g *fiber.Group) (end End, err error) {
	account := bound.New(bound.Limits{
		Gas: m.Gas, Time: m.Time, MemoryBytes: m.Memory, OutputBytes: math.MaxInt64, FileBytes: m.Memory, OpenFiles: 1024, Depth: depth,
	}, sha256.Sum256([]byte(m.Seed)), m.Start)
	fs := vfs.New(account, g)
	// Its own name is that of the file, so that it does the same wherever that lies.
	c := wasi.Config{Args: append([]string{filepath.Base(m.File)}, m.Args...), Env: m.Env, Terminal: m.Terminal, Umask: umask}
	folders, err := m.mount(fs)
	defer func() {
		for _, f := range folders {
			err = errors.Join(err, f.folder.Close())
		}
	}()
	if err != nil {
		return end, err
	}
	for _, d := range m.Folders {
		node, err := preopened(fs, folders, d.Host)
		if err != nil {
			return end, err
		}
		for _, name := range d.Guests {
			c.Preopens = append(c.Preopens, wasi.Preopen{Name: name, Dir: node})
		}
	}
	c.Stdio = [3]*vfs.Handle{
		fs.Stream(&hostInput{ctx: ctx, account: account, in: m.In}, vfs.Read), fs.Stream(hostOutput{m.Out}, vfs.Write),
		fs.Stream(hostOutput{m.Err}, vfs.Write),
	}
	program, err := wasi.New(fs, c)
	if err != nil {
		return end, fault.Wrap(err, fault.Invalid, "module_arguments", "the module cannot get its initial input")
	}
	defer program.Close()
	exit, err := m.execute(ctx, code, account, program)
	_, peak := account.Memory()
	end = End{ExitCode: exit, Gas: account.Used(), MemoryPeak: peak, Slept: account.Slept()}
	if err != nil {
		return end, err
	}
	for _, f := range folders {
		changes, err := fs.Changes(f.mount)
		if err != nil {
			return end, err
		}
		end.Changes += len(changes)
		if err := f.folder.Apply(changes, "", nil); err != nil {
			return end, fault.Wrap(err, fault.Conflict, "folder_unchanged", "not everything that the module has changed could be changed in %s",
				f.path)
		}
	}
	return end, nil
}

// mounted is a folder of the host in the file system of an execution.
type mounted struct {
	path   string // of the host, without links
	mount  string
	folder *workdir.Folder
}

// mount mounts the folders of a module. A folder that is named twice or is inside another one is mounted once, so that the module finds the
// same files under several names. It returns the opened folders with an error too.
func (m *Module) mount(fs *vfs.FS) (folders []mounted, err error) {
	paths := make([]string, len(m.Folders))
	for i, d := range m.Folders {
		if paths[i], err = resolved(d.Host); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(paths, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) // what holds others comes first
	for _, path := range paths {
		if _, _, held := holder(folders, path); held {
			continue
		}
		folder, err := workdir.Open(path, math.MaxInt64/2, math.MaxInt64/2)
		if err != nil {
			return folders, unreadable(err)
		}
		f := mounted{path, fmt.Sprintf("/%d", len(folders)), folder}
		folders = append(folders, f)
		if err := fs.Mount(f.mount, vfs.Options{Source: folder}); err != nil {
			return folders, err
		}
	}
	return folders, nil
}

// preopened returns the node of a folder of the host.
func preopened(fs *vfs.FS, folders []mounted, host string) (*vfs.Node, error) {
	path, err := resolved(host)
	if err != nil {
		return nil, err
	}
	f, below, held := holder(folders, path)
	if !held {
		return nil, unreadable(fmt.Errorf("%s leads elsewhere than before", host))
	}
	node, err := fs.Lookup(vfs.At{Dir: fs.Root()}, f.mount+"/"+filepath.ToSlash(below), true)
	if err != nil {
		return nil, unreadable(err)
	}
	if node.Kind() != vfs.Directory {
		return nil, unreadable(fmt.Errorf("%s: not a directory", host))
	}
	return node, nil
}

// holder returns the folder that a path lies in, and the path below it.
func holder(folders []mounted, path string) (f mounted, below string, held bool) {
	for _, f := range folders {
		if below, err := filepath.Rel(f.path, path); err == nil && filepath.IsLocal(below) {
			return f, below, true
		}
	}
	return mounted{}, "", false
}

// resolved is the path of a folder without links.
func resolved(host string) (string, error) {
	path, err := filepath.Abs(host)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", unreadable(err)
	}
	return path, nil
}

func unreadable(err error) error {
	return fault.Wrap(err, fault.NotFound, "folder_unreadable", "a folder of the module cannot be opened")
}

// ownFolder makes a folder in which lies what is executed: nobody else may write there.
func ownFolder(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return fault.Wrap(err, fault.Invalid, "cache_unusable", "the folder for compiled code cannot be made")
	}
	info, err := os.Stat(path)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "cache_unusable", "the folder for compiled code cannot be used")
	}
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o022 != 0 {
		return fault.New(fault.Invalid, "cache_unusable", "others may write into the folder for compiled code, which is executed").With(
			"take their right away: chmod go-w " + path)
	}
	if foreignOwner(info) {
		return fault.New(fault.Invalid, "cache_unusable", "the folder for compiled code, which is executed, is another user's").With(
			"name a folder of your own")
	}
	return nil
}

// execute runs a module from its beginning and returns its exit code.
func (m *Module) execute(ctx context.Context, code *wasm.Code, account *bound.Account, program *wasi.Program) (exit int, err error) {
	in, err := code.Initial().New(ctx, account, program)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, in.Close(context.WithoutCancel(ctx))) }()
	if err = in.Start(ctx); err == nil {
		_, err = in.Call(ctx, "_start")
	}
	if ended, ok := errors.AsType[*wasm.Exit](err); ok {
		return int(ended.Code), nil
	}
	if stopped, ok := errors.AsType[*bound.Stopped](err); ok {
		if stopped.Canceled {
			return 0, context.Canceled
		}
		return 0, m.stopped(stopped)
	}
	if trap, ok := errors.AsType[*wasm.Trap](err); ok {
		return 0, fault.Wrap(trap, fault.Internal, "wasm_trapped", "the module trapped")
	}
	return 0, err
}

// stopped says which bound has stopped a module, and what raises it.
func (m *Module) stopped(why *bound.Stopped) error {
	says := func(reached, more string) error {
		return fault.New(fault.Exhausted, "wasm_stopped", "the module was stopped: %s", reached).With(more)
	}
	switch {
	case why.TimedOut:
		return says(fmt.Sprintf("it has run and slept for the %s that it may", m.Time), "give it more with --time")
	case why.Limit == "gas":
		return says(fmt.Sprintf("it has done the work that it may, %d units of gas", m.Gas), "give it more with --gas")
	case why.Limit == "memory_bytes", why.Limit == "file_bytes":
		return says(fmt.Sprintf("it wanted more than the %d bytes of memory that it may hold, files included", m.Memory),
			"give it more with --memory")
	}
	return says("it has hit the bound "+why.Limit, "")
}

// hostInput is the standard input of a module, read from this process. A read does not block beyond the end of the execution.
type hostInput struct {
	ctx     context.Context //nolint:containedctx // it bounds reads whose interface has none
	account *bound.Account
	in      io.Reader
	chunks  chan []byte
	left    []byte
}

func (h *hostInput) Read(p []byte) (int, error) {
	if h.chunks == nil {
		h.chunks = make(chan []byte)
		go h.pump()
	}
	if len(h.left) == 0 {
		select {
		case chunk, more := <-h.chunks:
			if !more {
				return 0, io.EOF
			}
			h.left = chunk
		case <-h.ctx.Done():
			h.account.Stop(&bound.Stopped{TimedOut: errors.Is(h.ctx.Err(), context.DeadlineExceeded), Canceled: errors.Is(h.ctx.Err(),
				context.Canceled)})
			return 0, h.account.Check()
		}
	}
	n := copy(p, h.left)
	h.left = h.left[n:]
	return n, nil
}

// pump reads ahead by one chunk. A read of a terminal or a pipe cannot be broken off: it ends with the process.
func (h *hostInput) pump() {
	defer close(h.chunks)
	for {
		chunk := make([]byte, 32<<10)
		n, err := h.in.Read(chunk)
		if n > 0 {
			select {
			case h.chunks <- chunk[:n]:
			case <-h.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (h *hostInput) Write([]byte) (int, error) { return 0, vfs.EBADF }

// hostOutput is an output of a module, written to this process.
type hostOutput struct{ to io.Writer }

func (hostOutput) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (h hostOutput) Write(p []byte) (int, error) {
	if _, err := h.to.Write(bytes.Clone(p)); err != nil {
		return 0, vfs.EPIPE
	}
	return len(p), nil
}
