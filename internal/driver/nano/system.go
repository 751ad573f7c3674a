package nano

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/worker"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/toolbox"
	"agentbox/internal/userland/vfs"
	"agentbox/internal/userland/zstandard"
)

// system has every program of a nano space. A worker executes with it.
type system struct {
	programs program.Table
	kit      *shell.Kit
	module   program.Program // runs modules that are files of the space
	rest     func() error
	settle   func() // ends the rehearsals
	version  string
	files    []fixed // outside of the space's own folders
}

// Rest implements worker.System. If it cannot prepare something, the next use prepares it and returns the error.
func (s *system) Rest() { _ = s.rest() }

// rehearsals are commands by the programs that they need.
var rehearsals = [][2]string{
	{"true", ":"}, {"python3", "python3 -c 'print(1)'"}, {"js", "js -e 'console.log(1)'"}, {"js", "js -p 1+1"},
	{"bun", "bun -e 'const x: number = 1; console.log(x)'"},
}

// rehearse executes the usual beginnings of orders, so that the first order finds the same state as later ones.
func (s *system) rehearse() error {
	if err := s.rest(); err != nil {
		return err
	}
	for _, x := range rehearsals {
		if s.programs[x[0]] == nil { // this build has none
			continue
		}
		o := worker.Order{
			Argv: []string{"/bin/bash", "-c", x[1]}, Cwd: workspace, Start: time.Unix(0, 0).UTC(), Mounts: []worker.Mount{{Path: workspace},
				{Path: "/tmp"}},
			Limits: bound.Limits{Gas: 1 << 30, Time: time.Minute, MemoryBytes: 128 << 20, OutputBytes: 1 << 10, FileBytes: 1 << 10, OpenFiles: 64,
				Depth: 64},
		}
		var printed []byte
		outcome, _ := s.Execute(o, bound.New(o.Limits, o.Seed, o.Start), []vfs.Source{nothing{}, nothing{}}, func(_ int, p []byte) error {
			printed = append(printed, p...)
			return nil
		})
		if outcome.Code != 0 || outcome.Crash != "" || outcome.Refused != "" {
			return fault.New(fault.Internal, "runtime_damaged", "%s does not run in nano spaces: %+v: %.500s", x[1], outcome, printed)
		}
		if err := s.rest(); err != nil {
			return err
		}
	}
	s.settle()
	return nil
}

// nothing is an empty folder, with room for what a shell makes at its start.
type nothing struct{}

func (nothing) List(string) ([]vfs.Found, error)        { return nil, nil }
func (nothing) Read(string, []byte, int64) (int, error) { return 0, io.EOF }
func (nothing) Room() (bytes, files int64, err error)   { return 1 << 20, 1 << 10, nil }

// Version implements worker.System.
func (s *system) Version() string { return s.version }

// fixed is a file of the system.
type fixed struct {
	path string
	data []byte
}

var _ worker.System = (*system)(nil)

// newSystem returns a system with the programs of the shell and those of the guests.
func newSystem(g *guests) *system {
	s := &system{programs: shell.Programs().Add(coreutils.Programs(), toolbox.Programs(), zstandard.Programs(), g.table), module: g.module,
		version: g.version,
		rest:    func() error { return g.warm(context.Background()) }, settle: g.settle}
	s.kit = shell.NewKit(s.programs)
	s.files = slices.Concat(g.files, []fixed{
		{"/etc/passwd", []byte("agent:x:1000:1000:agent:" + home + ":/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n")},
		{"/etc/group", []byte("agent:x:1000:\nnogroup:x:65534:\n")},
		{"/etc/hosts", []byte("127.0.0.1 localhost space\n::1 localhost space\n")},
		{"/etc/hostname", []byte("space\n")},
	})
	return s
}

// Execute implements worker.System. For a stopped execution it waits only for the fiber that started first. The other fibers, which can do
// nothing any more, end after the answer.
func (s *system) Execute(o worker.Order, account *bound.Account, sources []vfs.Source, out func(channel int,
	p []byte) error) (outcome worker.Outcome, changed func() ([][]vfs.Change, error)) {
	defer func() {
		if x := recover(); x != nil {
			changed = nil
			if stopped, ok := x.(*bound.Stopped); ok {
				outcome = ended(worker.Outcome{}, stopped)
				return
			}
			if interpreter, ok := x.(unprepared); ok {
				outcome = worker.Outcome{NotReady: string(interpreter)}
				return
			}
			outcome = worker.Outcome{Crash: fmt.Sprintf("%v: %s", x, debug.Stack())}
		}
	}()
	rest := fiber.Begin(func() bool { return account.Stopped() != nil }, func(g *fiber.Group) {
		fs, err := s.world(o, account, g, sources)
		if err != nil {
			outcome = failed(err)
			return
		}
		e := execution{system: s, order: o, account: account, fs: fs, out: out}
		outcome = e.run()
		changed = func() ([][]vfs.Change, error) { return differences(fs, o.Mounts) }
	})
	account.Afterwards(rest)
	return outcome, changed
}

// differences lists what has become different in each mount.
func differences(fs *vfs.FS, mounts []worker.Mount) (all [][]vfs.Change, err error) {
	for _, m := range mounts {
		list, err := fs.Changes(m.Path)
		if err != nil {
			return nil, err
		}
		all = append(all, list)
	}
	return all, nil
}

// failed returns the outcome of an execution that could not begin.
func failed(err error) worker.Outcome {
	if stopped, ok := errors.AsType[*bound.Stopped](err); ok {
		return ended(worker.Outcome{}, stopped)
	}
	return worker.Outcome{Refused: err.Error()}
}

// ended returns the outcome of a stopped execution.
func ended(o worker.Outcome, why *bound.Stopped) worker.Outcome {
	o.Code, o.Signal, o.Limit, o.TimedOut, o.Canceled = 137, "SIGKILL", why.Limit, why.TimedOut, why.Canceled
	if why.TimedOut {
		o.Code, o.Signal = 124, ""
	}
	return o
}

// world makes the file system of an execution.
func (s *system) world(o worker.Order, account *bound.Account, g *fiber.Group, sources []vfs.Source) (*vfs.FS, error) {
	account.EndAt(bound.Disk, "folder_depth") // as the watcher of a heavier tier ends it
	fs := vfs.New(account, g)
	for i, m := range o.Mounts {
		if err := fs.Mount(m.Path, vfs.Options{Source: sources[i], Disk: m.Disk}); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.Path, err)
		}
	}
	if err := s.kit.Install(fs); err != nil {
		return nil, err
	}
	for _, f := range s.files {
		if err := fs.MakeFile(f.path, 0o644, f.data); err != nil {
			return nil, err
		}
	}
	for _, l := range links {
		if err := fs.MakeLink(l[0], l[1]); err != nil {
			return nil, err
		}
	}
	err := fs.Mkdir(vfs.At{Dir: fs.Root()}, home, 0o755)
	if err != nil && !errors.Is(err, vfs.EEXIST) {
		return nil, err
	}
	return fs, nil
}

// links are the links that every space has.
var links = [][2]string{{"/sbin", "/usr/bin"}, {"/var/tmp", "/tmp"}, {"/home/user", workspace}}

// umask removes the rights of everybody but the space's user from new files.
const umask = 0o022

// execution is the work on one order.
type execution struct {
	system  *system
	order   worker.Order
	account *bound.Account
	fs      *vfs.FS
	out     func(channel int, p []byte) error
	lacks   []space.Lack

	displays []space.Display
}

func (e *execution) run() worker.Outcome {
	roomy()
	if err := e.startable(); err != nil {
		return failed(err)
	}
	stdin := e.fs.Stream(&input{rest: e.order.Stdin}, vfs.Read)
	stdout := e.fs.Stream(&output{e, 1}, vfs.Write)
	stderr := e.fs.Stream(&output{e, 2}, vfs.Write)
	sh := shell.New(shell.Options{
		FS: e.fs, Account: e.account, Programs: e.system.programs, Module: e.system.module, Env: e.order.Env, Cwd: e.order.Cwd,
		Stdin: stdin, Stdout: stdout, Stderr: stderr, Args: e.order.Argv, Umask: umask, Report: e.lack, Show: e.show,
	})
	r := sh.Run(`exec "$@"`)
	o := worker.Outcome{Code: r.Code, Lacks: e.lacks, Displays: e.displays}
	if r.Signal == "STOP" || r.Signal == "TSTP" { // nobody would continue it
		return ended(o, &bound.Stopped{TimedOut: true})
	}
	if r.Signal != "" {
		o.Signal = "SIG" + r.Signal
	}
	if stopped, ok := errors.AsType[*bound.Stopped](r.Err); ok {
		return ended(o, stopped)
	}
	if o.Limit = r.Refused; o.Code != 0 {
		o.Limit = e.account.WasHit()
	}
	return o
}

// roomy makes the stack of a goroutine as large as most executions need, at once: grown in doublings, each of which copies all of it, it
// costs a shell with an interpreter a twentieth of its time.
//
//go:noinline
func roomy() (room [32 << 10]byte) { return room }

// startable returns the error of a command that is not even there.
func (e *execution) startable() error {
	at := vfs.At{Dir: e.fs.Root()}
	cwd, err := e.fs.Lookup(at, e.order.Cwd, true)
	if err != nil {
		return fmt.Errorf("the working folder: %w", err)
	}
	if cwd.Kind() != vfs.Directory {
		return fmt.Errorf("the working folder: %w", vfs.ENOTDIR)
	}
	name := e.order.Argv[0]
	if !strings.Contains(name, "/") {
		switch _, ok := e.system.programs[name]; {
		case ok, name == "bash", name == "sh", name == "dash":
		default:
			e.lack(program.Lack{Kind: program.LackCommand, Name: name})
			return fmt.Errorf("%.100s: %w", name, vfs.ENOENT)
		}
		return nil
	}
	n, err := e.fs.Lookup(vfs.At{Dir: cwd}, name, true)
	if err != nil {
		return fmt.Errorf("%.100s: %w", name, err)
	}
	if n.Kind() != vfs.Regular || n.Info().Mode&0o111 == 0 {
		return fmt.Errorf("%.100s: %w", name, vfs.EACCES)
	}
	return nil
}

func (e *execution) lack(l program.Lack) {
	if w := (space.Lack{Kind: l.Kind, Name: l.Name, Detail: l.Detail}); !slices.Contains(e.lacks, w) {
		e.lacks = append(e.lacks, w)
	}
}

// show keeps a display in the memory of the execution until the end.
func (e *execution) show(shown program.Display) bool {
	d := space.Display(shown)
	if !d.Fits(e.displays) || e.account.Allocate(int64(len(d.Data))) != nil {
		return false
	}
	e.displays = append(e.displays, d)
	return true
}

// input is the standard input of a command.
type input struct{ rest []byte }

func (i *input) Read(p []byte) (int, error) {
	if len(i.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, i.rest)
	i.rest = i.rest[n:]
	return n, nil
}

func (i *input) Write([]byte) (int, error) { return 0, vfs.EBADF }

// output is an output stream of a command.
type output struct {
	e       *execution
	channel int
}

func (o *output) Read([]byte) (int, error) { return 0, vfs.EBADF }

func (o *output) Write(p []byte) (int, error) {
	fits, err := o.e.account.Print(len(p))
	if fits > 0 {
		if e := o.e.out(o.channel, p[:fits]); e != nil {
			return 0, vfs.EIO
		}
	}
	return fits, err
}
