// Package shell is the virtual shell of the nano tier: an evaluator of bash's language over the syntax trees of mvdan.cc/sh, whose processes are fibers of one
// execution, whose files are those of vfs and whose commands are programs.
//
// It differs from mvdan.cc/sh/v3/interp in that the stages of a pipeline run one at a time and in the same order each time, in that every statement and every
// expansion is charged to the execution's account, and in that words are expanded by rules of its own: those of expand look at the machine's users and folders,
// evaluate arithmetic statically and count no memory.
package shell

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"agentbox/internal/driver/wasm/bound"
	"agentbox/internal/driver/wasm/fiber"
	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// Options say what a shell begins with.
type Options struct {
	FS       *vfs.FS
	Account  *bound.Account
	Programs program.Table
	Module   program.Program // runs a file that begins with \0asm, its path being the first argument; nil where nothing can
	Env      []string        // NAME=VALUE
	Cwd      string          // "/" where it is empty or is not there
	Stdin    *vfs.Handle     // the handles belong to the caller; nil is closed
	Stdout   *vfs.Handle
	Stderr   *vfs.Handle
	Name     string   // $0, "bash" where it is empty
	Args     []string // $1 and so on
	Umask    uint32
	Report   func(program.Lack) // called for each thing that is lacking; may be nil
}

// Result is how a script ended.
type Result struct {
	Code   int    // as $? would have it: 128 and the signal's number where one ended the shell
	Signal string // its name, without SIG; "" where the shell exited
	Err    error  // *bound.Stopped where the execution was ended from outside
}

// Shell runs scripts. Make it with New, on the first fiber of an execution.
type Shell struct {
	world *world
	opts  Options
}

// world is what all shells of an execution share.
type world struct {
	fs       *vfs.FS
	account  *bound.Account
	group    *fiber.Group
	programs program.Table
	module   program.Program
	report   func(program.Lack)
	pids     int
	sleepers []*sleeper
	procs    []*proc // that live, in the order of their start
	words    map[string]parsed
	regexps  map[string]pattern
}

// proc is one fiber's process as others see it: what can be waited for and killed.
type proc struct {
	pid     int
	text    string
	shell   *shell
	parent  *proc // whose fiber it runs on, nil for one with its own
	fatal   int   // the signal that ends it
	pending []int // signals that have a trap
	done    bool
	status  int
	queue   *fiber.Queue
	reader  bool // of what a process substitution is given: it ends by itself when that ends
	stdout  *vfs.Handle
}

type sleeper struct{ wake time.Time }

// firstPID is what the first shell has in $$.
const firstPID = 1000

// New makes a shell.
func New(o Options) *Shell {
	w := &world{fs: o.FS, account: o.Account, group: o.FS.Group(), programs: o.Programs, module: o.Module, report: o.Report, pids: firstPID,
		words: map[string]parsed{}, regexps: map[string]pattern{}}
	if o.Name == "" {
		o.Name = "bash"
	}
	return &Shell{world: w, opts: o}
}

// Run runs a script and waits for its end. What it has started in the background ends with it.
func (s *Shell) Run(script string) (r Result) {
	w := s.world
	defer func() {
		if x := recover(); x != nil {
			stopped, ok := x.(*bound.Stopped)
			if !ok {
				panic(x)
			}
			r = Result{Code: 128 + program.SIGKILL, Signal: "KILL", Err: stopped}
		}
		w.endAll()
		if err := w.account.Check(); err != nil && r.Err == nil {
			r = Result{Code: 128 + program.SIGKILL, Signal: "KILL", Err: err}
		}
	}()
	p := &program.Process{Args: []string{s.opts.Name}, Env: s.opts.Env, Cwd: w.folder(s.opts.Cwd), Stdin: s.opts.Stdin, Stdout: s.opts.Stdout, Stderr: s.opts.Stderr,
		FS: w.fs, Account: w.account, Umask: s.opts.Umask, PID: w.pid(), PPID: 1, Host: host{w, nil}}
	sh := w.shell(p, nil)
	sh.name, sh.params, sh.fromText = s.opts.Name, s.opts.Args, true
	sh.proc = w.start(p.PID, "bash", sh, nil)
	status := sh.process(func() { sh.script(script, "") })
	w.end(sh.proc, status.Exit())
	r = Result{Code: status.Exit()}
	if status.Signal != 0 {
		r.Signal = signalName(status.Signal)
	}
	return r
}

func (w *world) folder(path string) *vfs.Node {
	if path != "" {
		if n, err := w.fs.Lookup(vfs.At{Dir: w.fs.Root()}, path, true); err == nil && n.Kind() == vfs.Directory {
			return n
		}
	}
	return w.fs.Root()
}

func (w *world) pid() int {
	w.pids++
	return w.pids - 1
}

// start notes a process that begins.
func (w *world) start(pid int, text string, sh *shell, parent *proc) *proc {
	p := &proc{pid: pid, text: text, shell: sh, parent: parent, queue: w.group.NewQueue()}
	w.procs = append(w.procs, p)
	return p
}

// end notes that a process has ended, and wakes who waits for it.
func (w *world) end(p *proc, status int) {
	p.done, p.status = true, status
	p.queue.Close()
	if i := slices.Index(w.procs, p); i >= 0 {
		w.procs = slices.Delete(w.procs, i, i+1)
	}
}

// endAll kills what still runs when the first shell has ended. Its files are closed, so that none waits at a pipe.
func (w *world) endAll() {
	for _, p := range slices.Clone(w.procs) {
		if !p.reader {
			p.kill(program.SIGKILL)
		}
	}
	for _, p := range slices.Clone(w.procs) {
		for !p.done && p.reader && w.account.Check() == nil && p.queue.Wait() == nil {
		}
		p.kill(program.SIGKILL)
	}
}

// dying returns the signal that ends the process, or that on whose fiber it runs; 0 for none.
func (p *proc) dying() int {
	for ; p != nil; p = p.parent {
		if p.fatal != 0 {
			return p.fatal
		}
	}
	return 0
}

// kill sends a signal to a process.
func (p *proc) kill(signal int) {
	if p.done || p.fatal != 0 {
		return
	}
	if t, trapped := p.shell.traps[signal]; trapped && signal != program.SIGKILL {
		if t != "" {
			p.pending = append(p.pending, signal)
		}
		return
	}
	p.fatal = signal
	for _, h := range p.shell.fds {
		if h != nil {
			_ = h.Close()
		}
	}
	clear(p.shell.fds)
}

// Find implements program.Host.
func (w *world) Find(p *program.Process, name string) (string, error) {
	if strings.Contains(name, "/") {
		return name, w.executable(p.At(), name)
	}
	path, ok := p.LookupEnv("PATH")
	if !ok {
		path = defaultPath
	}
	return w.search(p.At(), path, name)
}

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// search looks for a name in the folders of a path.
func (w *world) search(at vfs.At, path, name string) (string, error) {
	found := error(vfs.ENOENT)
	denied := ""
	if name == "" {
		return "", found
	}
	for dir := range strings.SplitSeq(path, ":") {
		full := "./" + name
		if dir != "" {
			full = strings.TrimSuffix(dir, "/") + "/" + name
		}
		switch err := w.executable(at, full); {
		case err == nil:
			return full, nil
		case errors.Is(err, vfs.EACCES) && denied == "":
			found, denied = err, full
		}
	}
	return denied, found
}

// executable says why a path cannot be run.
func (w *world) executable(at vfs.At, path string) error {
	n, err := w.fs.Lookup(at, path, true)
	switch {
	case err != nil:
		w.stop(err)
		return err
	case n.Kind() != vfs.Regular:
		return vfs.EACCES
	case n.Info().Mode&0o111 == 0:
		return vfs.EACCES
	}
	return nil
}

// Execute implements program.Host.
func (w *world) Execute(p *program.Process) (program.Status, error) {
	if len(p.Args) == 0 {
		return program.Status{}, vfs.ENOENT
	}
	path, err := w.Find(p, p.Args[0])
	if err != nil {
		if errors.Is(err, vfs.ENOENT) && !strings.Contains(p.Args[0], "/") {
			w.Report(program.Lack{Kind: program.LackCommand, Name: p.Args[0]})
		}
		return program.Status{}, err
	}
	return w.execute(p, path)
}

// stub is what the files of the programs begin with. What follows is the program's name and a newline.
const stub = "\x7fAGENTBOX "

// errFormat refuses a file that is no program.
var errFormat = errors.New("cannot execute binary file: Exec format error")

// execute runs the file at a path, which was found to be executable.
func (w *world) execute(p *program.Process, path string) (program.Status, error) {
	head, err := w.head(p.At(), path)
	if err != nil {
		return program.Status{}, err
	}
	if err := w.account.Charge(gasPerProgram); err != nil {
		panic(err)
	}
	if err := w.account.Enter(); err != nil {
		return program.Status{}, err
	}
	defer w.account.Leave()
	p.PID = w.pid()
	switch {
	case strings.HasPrefix(head, stub):
		name, _, _ := strings.Cut(head[len(stub):], "\n")
		switch name {
		case "bash", "sh", "dash":
			return program.Run(program.Func(w.main), p), nil
		}
		prog := w.programs[name]
		if prog == nil {
			return program.Status{}, vfs.ENOENT
		}
		return program.Run(prog, p), nil
	case strings.HasPrefix(head, "\x00asm"):
		if w.module == nil {
			w.Report(program.Lack{Kind: program.LackFeature, Name: path, Detail: "wasm module"})
			return program.Status{}, errFormat
		}
		p.Args = append([]string{path}, p.Args[1:]...)
		return program.Run(w.module, p), nil
	case strings.HasPrefix(head, "#!"):
		line, _, _ := strings.Cut(head[2:], "\n")
		interpreter, arg, _ := strings.Cut(strings.Trim(line, " \t"), " ")
		args := []string{interpreter}
		if arg = strings.TrimSpace(arg); arg != "" {
			args = append(args, arg)
		}
		p.Args = slices.Concat(args, []string{path}, p.Args[1:])
		if err := w.executable(p.At(), interpreter); err != nil {
			if errors.Is(err, vfs.ENOENT) {
				w.Report(program.Lack{Kind: program.LackCommand, Name: interpreter[strings.LastIndexByte(interpreter, '/')+1:]})
				return program.Status{}, badInterpreter{interpreter}
			}
			return program.Status{}, err
		}
		return w.execute(p, interpreter)
	case strings.HasPrefix(head, "\x7fELF"):
		w.Report(program.Lack{Kind: program.LackFeature, Name: path, Detail: "native program"})
		return program.Status{}, errFormat
	case strings.IndexByte(head, 0) >= 0:
		return program.Status{}, errFormat
	}
	p.Args = append([]string{"bash", path}, p.Args[1:]...)
	return program.Run(program.Func(w.main), p), nil
}

type badInterpreter struct{ name string }

func (badInterpreter) Error() string { return "cannot execute: required file not found" }

// head returns the beginning of a file.
func (w *world) head(at vfs.At, path string) (string, error) {
	n, err := w.fs.Lookup(at, path, true)
	if err != nil {
		w.stop(err)
		return "", err
	}
	h, err := w.fs.OpenNode(n, vfs.Read)
	if err != nil {
		w.stop(err)
		return "", err
	}
	defer func() { _ = h.Close() }()
	buf := make([]byte, 256)
	got, err := h.ReadAt(buf, 0)
	w.stop(err)
	return string(buf[:got]), nil
}

// stop throws an error that ends the execution.
func (w *world) stop(err error) {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
}

// Report implements program.Host.
func (w *world) Report(l program.Lack) {
	if w.report != nil {
		w.report(l)
	}
}

// Go implements program.Host. What stops the execution is known by everybody already.
func (w *world) Go(f func()) {
	w.group.Go(func() {
		defer func() {
			x := recover()
			if _, stopped := x.(*bound.Stopped); x != nil && !stopped {
				if _, killed := x.(program.Killed); !killed {
					panic(x)
				}
			}
		}()
		f()
	})
}

// host is the program.Host of what one process starts.
type host struct {
	*world
	proc *proc
}

// Sleep implements program.Host: who sleeps wakes in the order of time, and time moves only when everybody sleeps or waits.
func (h host) Sleep(d time.Duration) error {
	w := h.world
	me := &sleeper{wake: w.fs.Now().Add(d)}
	w.sleepers = append(w.sleepers, me)
	defer func() { w.sleepers = slices.DeleteFunc(w.sleepers, func(s *sleeper) bool { return s == me }) }()
	for {
		if err := w.account.Check(); err != nil {
			return err
		}
		if h.proc.dying() != 0 {
			return nil
		}
		now := w.fs.Now()
		if !me.wake.After(now) {
			return w.account.Charge(1)
		}
		if w.group.Ready() == len(w.sleepers)-1 && !slices.ContainsFunc(w.sleepers, func(s *sleeper) bool { return s.wake.Before(me.wake) }) {
			return w.account.Sleep(me.wake.Sub(now))
		}
		if err := w.account.Charge(1); err != nil {
			return err
		}
		w.group.Yield()
	}
}

// main is the program bash.
func (w *world) main(p *program.Process) int {
	parent := (*proc)(nil)
	if h, ok := p.Host.(host); ok {
		parent = h.proc
	}
	sh := w.shell(p, nil)
	sh.proc = w.start(p.PID, "bash", sh, parent)
	sh.p.Host = host{w, sh.proc}
	status := sh.process(func() { sh.arguments(p.Args) })
	w.end(sh.proc, status.Exit())
	if status.Signal != 0 {
		panic(program.Killed{Signal: status.Signal})
	}
	return status.Code
}

// wait waits for the end of a process.
func (w *world) wait(p *proc) {
	for !p.done {
		err := p.queue.Wait()
		if errors.Is(err, fiber.ErrDeadlock) {
			w.account.Stop(&bound.Stopped{TimedOut: true})
		}
		if stopped := w.account.Check(); stopped != nil {
			panic(stopped)
		}
	}
}

// random returns a seed that the execution's decides.
func (w *world) random() uint32 {
	var b [4]byte
	w.account.Entropy(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// shell is one process of bash, or a subshell of one.
type shell struct {
	w          *world
	p          *program.Process
	proc       *proc // the fiber's
	own        *owner
	held       int64
	name       string   // $0
	params     []string // $1 and so on
	vars       map[string]*variable
	frames     []*frame
	funcs      map[string]*function
	aliases    map[string]string
	fds        []*vfs.Handle
	piped      bool // its standard input is that of a pipeline
	cwd        *vfs.Node
	umask      uint32
	dirs       []string // the stack of pushd, without the current one
	status     int
	pipes      []int // PIPESTATUS
	lastJob    int   // $!
	lastProc   *proc // the process that was started last
	setParams  bool  // set has changed the parameters
	jobs       []*proc
	ended      map[int]int    // the statuses of jobs that were waited for
	traps      map[int]string // by signal; 0 is EXIT and negative ones are bash's own
	inTrap     map[int]bool
	on         [optionCount]bool // set -o
	shopts     map[string]bool
	level      int    // BASH_SUBSHELL
	pid        int    // BASHPID
	root       int    // $$
	command    string // BASH_COMMAND
	last       string // $_
	source     *text
	sources    []string // names of what is sourced or called
	line       int
	fromText   bool // bash -c
	flow       flow
	levels     int // of loops that break and continue leave
	loops      int
	sourcing   int
	quiet      int // set -e does nothing in here
	seed       uint32
	seeded     bool
	started    time.Time // of SECONDS
	optind     int       // within an argument of getopts
	optlast    int
	substs     int // the number of command substitutions so far
	substCode  int
	producers  []*proc // of process substitutions
	hidden     []*vfs.Handle
	ifs        string
	ifsSet     bool
	hash       map[string]string
	evals      int // xtrace's depth
	arithmetic int
}

type flow uint8

const (
	flowNone flow = iota
	flowBreak
	flowContinue
	flowReturn
)

// text is source code that is run.
type text struct {
	code string
	name string // of a file; "" for others
}

// thrown ends of a shell's process.
type (
	exitShell struct{ code int }
	discard   struct{ code int } // the rest of the command line
)

const (
	gasPerCommand = 300
	gasPerWord    = 50
	gasPerProgram = 5_000
	gasPerFork    = 3_000
)

// charge counts work.
func (sh *shell) charge(gas int) {
	if err := sh.w.account.Charge(int64(gas)); err != nil {
		panic(err)
	}
}

// tick is done before each command: it counts it and looks for signals.
func (sh *shell) tick() {
	sh.charge(gasPerCommand)
	if d := sh.p.Deadline; !d.IsZero() && !sh.p.Now().Before(d) {
		panic(program.Killed{Signal: program.SIGTERM})
	}
	if signal := sh.proc.dying(); signal != 0 {
		panic(program.Killed{Signal: signal})
	}
	if len(sh.proc.pending) > 0 && sh.proc.shell == sh {
		sh.signals()
	}
}

// hold counts memory that the shell's variables take, or take no more.
func (sh *shell) hold(n int64) {
	if n > 0 {
		if err := sh.w.account.Allocate(n); err != nil {
			sh.complain("", "xmalloc: cannot allocate %d bytes", n)
			panic(program.Killed{Signal: program.SIGKILL})
		}
	} else {
		sh.w.account.Release(-n)
	}
	sh.held += n
}

// shell makes one for a process of its own.
func (w *world) shell(p *program.Process, from *proc) *shell {
	sh := &shell{w: w, p: p, proc: from, own: &owner{}, vars: map[string]*variable{}, funcs: map[string]*function{}, aliases: map[string]string{},
		cwd: p.Cwd, umask: p.Umask, traps: map[int]string{}, inTrap: map[int]bool{}, shopts: maps.Clone(defaultShopts()), pid: p.PID, root: p.PID,
		source: &text{}, hash: map[string]string{}, started: p.Now(), line: 1, optind: 1}
	sh.fds = []*vfs.Handle{p.Stdin, p.Stdout, p.Stderr}
	for n, h := range p.Files {
		for len(sh.fds) <= n {
			sh.fds = append(sh.fds, nil)
		}
		sh.fds[n] = h
	}
	for i, h := range sh.fds {
		if h != nil {
			sh.fds[i] = h.Dup()
		}
	}
	sh.on[optHashall], sh.on[optBraceexpand], sh.on[optInteractiveComments] = true, true, true
	sh.setup(p)
	return sh
}

// fork makes a subshell. It runs on the fiber of proc.
func (sh *shell) fork(p *proc) *shell {
	sh.charge(gasPerFork + len(sh.vars)*10)
	c := *sh
	process := *sh.p
	c.p = &process
	c.p.PID = sh.w.pid()
	c.pid = c.p.PID
	c.own, c.held = &owner{}, 0
	sh.own = &owner{} // so that neither changes what the other sees
	c.vars, c.funcs, c.aliases = maps.Clone(sh.vars), maps.Clone(sh.funcs), maps.Clone(sh.aliases)
	c.frames = make([]*frame, len(sh.frames))
	for i, f := range sh.frames {
		copied := *f
		copied.saved = slices.Clip(copied.saved)
		c.frames[i] = &copied
	}
	c.fds = slices.Clone(sh.fds)
	for i, h := range c.fds {
		if h != nil {
			c.fds[i] = h.Dup()
		}
	}
	c.traps, c.inTrap = map[int]string{}, map[int]bool{}
	for signal, t := range sh.traps {
		if t == "" || signal == trapErr && sh.on[optErrtrace] || (signal == trapDebug || signal == trapReturn) && sh.on[optFunctrace] {
			c.traps[signal] = t
		}
	}
	c.shopts, c.hash = maps.Clone(sh.shopts), maps.Clone(sh.hash)
	c.jobs, c.ended = nil, nil
	c.level++
	c.seeded = false
	c.producers, c.hidden = nil, nil
	c.dirs = slices.Clip(c.dirs)
	if p != nil {
		c.proc = p
		p.shell = &c
	}
	return &c
}

// process runs the body of a shell's process to its end, its EXIT trap included, and gives back what it holds.
func (sh *shell) process(body func()) (s program.Status) {
	s = sh.guard(body)
	if t, ok := sh.traps[trapExit]; ok && t != "" && s.Signal != program.SIGKILL && s.Signal != program.SIGPIPE {
		delete(sh.traps, trapExit)
		sh.flow, sh.loops, sh.quiet = flowNone, 0, 0
		sh.status = s.Exit()
		after := sh.guard(func() {
			sh.runText(t, "trap")
			sh.status = s.Exit()
		})
		if after.Signal != 0 || s.Signal == 0 {
			s = after
		}
	}
	for _, h := range sh.fds {
		if h != nil {
			_ = h.Close()
		}
	}
	sh.fds = nil
	for _, h := range sh.hidden {
		_ = h.Close()
	}
	sh.w.account.Release(sh.held)
	sh.held = 0
	return s
}

// guard runs a body and catches how a shell's process ends.
func (sh *shell) guard(body func()) (s program.Status) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case exitShell:
			s = program.Status{Code: x.code & 0xff}
		case discard:
			s = program.Status{Code: x.code & 0xff}
		case program.Killed:
			s = program.Status{Signal: x.Signal}
		default:
			panic(x)
		}
	}()
	body()
	return program.Status{Code: sh.status & 0xff}
}
