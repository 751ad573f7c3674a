// Package shell is the virtual shell: an evaluator of bash's language over the syntax trees of mvdan.cc/sh, whose processes are fibers of
// one execution, whose files are those of vfs and whose commands are programs.
//
// It differs from mvdan.cc/sh/v3/interp in that the stages of a pipeline run one at a time and in the same order each time, in that every
// statement and every expansion is charged to the execution's account, and in that words are expanded by rules of its own: those of
// expand look at the machine's users and folders, evaluate arithmetic statically and count no memory.
package shell

import (
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
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
	Report   func(program.Lack)         // called for each thing that is lacking; may be nil
	Show     func(program.Display) bool // called for each thing that is shown beside the output; nil for a shell that has no room for it
}

// Result is how a script ended.
type Result struct {
	Code   int    // as $? would have it: 128 and the signal's number where one ended the shell
	Signal string // its name, without SIG; "" where the shell exited
	Err    error  // *bound.Stopped where the execution was ended from outside

	// Refused is the bound that kept a process or a function from starting, "" for none. Then the script did not run as written, whatever
	// its exit code is.
	Refused string
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
	show     func(program.Display) bool
	pids     int
	ticks    int
	procs    []*proc // that live, in the order of their start
	words    map[string]parsed
	regexps  map[string]*posix.Machine
	refused  string // the bound by which a process or a function was not begun
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
	queue   *fiber.Queue // of those that wait for its end
	signal  *fiber.Queue // where it sleeps
	reader  bool         // of what a process substitution is given: it ends by itself when that ends
	stdout  *vfs.Handle
}

// firstPID is what the first shell has in $$.
const firstPID = 1000

// New makes a shell.
func New(o Options) *Shell {
	w := &world{fs: o.FS, account: o.Account, group: o.FS.Group(), programs: o.Programs, module: o.Module, report: o.Report, show: o.Show,
		pids:  firstPID,
		words: map[string]parsed{}, regexps: map[string]*posix.Machine{}}
	if o.Name == "" {
		o.Name = "bash"
	}
	return &Shell{world: w, opts: o}
}

// Run runs a script and waits for its end. Its background jobs end with it.
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
		r.Refused = w.refused
	}()
	p := &program.Process{Args: []string{s.opts.Name}, Env: s.opts.Env, Cwd: w.folder(s.opts.Cwd), Stdin: s.opts.Stdin, Stdout: s.opts.Stdout,
		Stderr: s.opts.Stderr,
		FS:     w.fs, Account: w.account, Umask: s.opts.Umask, PID: w.pid(), PPID: 1, Host: host{w, nil}}
	sh := w.shell(p, nil)
	sh.name, sh.params, sh.fromText = s.opts.Name, s.opts.Args, true
	sh.proc = w.start(p.PID, "bash", sh, nil)
	status := sh.process(func() { runScript(sh, script, "") })
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
	p := &proc{pid: pid, text: text, shell: sh, parent: parent, queue: w.group.NewQueue(), signal: w.group.NewQueue()}
	w.procs = append(w.procs, p)
	return p
}

// end notes that a process has ended, and wakes who waits for it.
func (w *world) end(p *proc, status int) {
	p.done, p.status = true, status
	p.queue.Close()
	p.signal.Close()
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
			p.signal.Wake()
		}
		return
	}
	p.fatal = signal
	p.signal.Wake()
	for _, h := range p.shell.fds {
		if h != nil {
			_ = h.Close()
		}
	}
	clear(p.shell.fds)
}

// random returns a seed that the execution's decides.
func (w *world) random() uint32 {
	var b [4]byte
	w.account.Entropy(b[:])
	return binary.LittleEndian.Uint32(b[:])
}

// shell is one process of bash, or a subshell of one. Its methods are what every part of the shell needs: messages,
// variables, expansion and the running of statements. All else is functions that take a shell.
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
	aliasState int   // counts the changes of aliases
	aliasLines []int // the lines of the text that was parsed last; nil where aliases did not change it
	fds        []*vfs.Handle
	piped      bool // its standard input is that of a pipeline
	cwd        *vfs.Node
	umask      uint32
	ulimits    map[byte][2]int64 // what ulimit has lowered, soft and hard
	dirs       []string          // the stack of pushd, without the current one
	status     int
	disabled   map[string]bool // builtins that enable has turned off; replaced, never written
	pipes      []int           // PIPESTATUS of a pipeline; nil where a single command ran last
	ranAny     bool            // a command has run
	single     int             // PIPESTATUS of a single command
	lastJob    int             // $!
	lastProc   *proc           // the process that was started last
	setParams  bool            // set has changed the parameters
	jobs       []*proc
	ended      map[int]int    // the statuses of jobs that were waited for
	traps      map[int]string // by signal; 0 is EXIT and negative ones are bash's own
	parents    map[int]string // the traps of the parent, which a subshell shows until it sets one
	inTrap     map[int]bool
	leaving    int               // the status with which the trap EXIT begins
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
	ignore     string // GLOBIGNORE
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
	base int    // what is added to the lines of the code
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
	ticksPerTurn  = 1_000 // commands after which other processes have their turn
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
	if sh.w.ticks++; sh.w.ticks%ticksPerTurn == 0 && len(sh.w.procs) > 1 {
		sh.w.stop(host{sh.w, sh.proc}.Sleep(time.Microsecond)) // a loop may wait for what another process does
	}
	if len(sh.proc.pending) > 0 && sh.proc.shell == sh {
		runSignals(sh)
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
	sh := &shell{w: w, p: p, proc: from, own: &owner{}, vars: map[string]*variable{}, funcs: map[string]*function{},
		aliases: map[string]string{},
		cwd:     p.Cwd, umask: p.Umask, traps: map[int]string{}, inTrap: map[int]bool{}, shopts: maps.Clone(defaultShopts()), pid: p.PID,
		root:   p.PID,
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
	setVariables(sh, p)
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
	if c.parents = sh.parents; c.parents == nil {
		c.parents = maps.Clone(sh.traps)
	}
	c.ulimits = maps.Clone(sh.ulimits)
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
		sh.inTrap[trapExit], sh.leaving = true, s.Exit()
		after := sh.guard(func() {
			runText(sh, t, "signal")
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
func (sh *shell) guard(body func()) program.Status {
	thrown := program.CatchDefect(body)
	switch x := thrown.(type) {
	case nil:
		return program.Status{Code: sh.status & 0xff}
	case *program.Defect:
		sh.w.Report(program.Lack{Kind: program.LackFeature, Name: "bash", Detail: x.Error()})
		if thrown = program.Catch(func() { sh.complain("", "%s", x.Error()) }); thrown == nil {
			return program.Status{Code: program.DefectCode}
		}
		if k, ok := thrown.(program.Killed); ok {
			return program.Status{Signal: k.Signal}
		}
	case exitShell:
		return program.Status{Code: x.code & 0xff}
	case discard:
		return program.Status{Code: x.code & 0xff}
	case program.Killed:
		return program.Status{Signal: x.Signal}
	}
	panic(thrown)
}
