// Package program says what a command of the userland is: something that runs with arguments, an environment, a working folder and open
// files, under an account.
//
// The virtual shell starts programs; commands written in Go, the guests' interpreters and WASI modules are programs alike.
package program

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/posix"
	"agentbox/internal/userland/vfs"
)

// Program is a command. Run returns its exit code, 0 to 255. It ends at once, by a panic that Execute knows, where a helper of Process
// says so: Exit, a write into a pipe that nobody reads, the end of the execution's bounds. It keeps nothing of p when it has returned and
// has no state of its own.
type Program interface {
	Run(p *Process) int
}

// Func is a function that is a program.
type Func func(p *Process) int

// Run calls f.
func (f Func) Run(p *Process) int { return f(p) }

// Table is what programs there are, by the name under which they lie in /bin.
type Table map[string]Program

// Add puts the programs of other tables into the table. One of the same name is replaced.
func (t Table) Add(others ...Table) Table {
	for _, o := range others {
		maps.Copy(t, o)
	}
	return t
}

// Functions returns a table of programs that are functions.
func Functions(functions map[string]Func) Table {
	t := make(Table, len(functions))
	for name, f := range functions {
		t[name] = f
	}
	return t
}

// Lack is something that the nano tier does not have and that a heavier one does.
type Lack struct {
	Kind   string // LackCommand, LackOption or LackFeature
	Name   string // of the command
	Detail string // the option, or a description of the feature
}

// The kinds of what is lacking.
const (
	LackCommand = "command"
	LackOption  = "option"
	LackFeature = "feature"
)

func (l Lack) String() string {
	if l.Detail == "" {
		return l.Kind + " " + l.Name
	}
	return l.Kind + " " + l.Name + " " + l.Detail
}

// Host answers the requests of a program to its starter.
type Host interface {
	// Find returns the path of the program that a name means to p, as execvp searches it. ENOENT and EACCES are as there.
	Find(p *Process, name string) (string, error)
	// Execute runs p, whose first argument names the program, and waits for its end. An error means that it could not be started.
	Execute(p *Process) (Status, error)
	// Go runs f beside the others, as a fiber.
	Go(f func())
	// Sleep waits on the virtual clock; others run meanwhile.
	Sleep(d time.Duration) error
	// Report tells the tier what is lacking. It prints nothing.
	Report(l Lack)
	// Show shows something beside the output of the execution. It reports false where that has no room any more, or is not well-formed.
	Show(d Display) bool
}

// The signals that can end a program.
const (
	SIGHUP  = 1
	SIGINT  = 2
	SIGQUIT = 3
	SIGABRT = 6
	SIGKILL = 9
	SIGUSR1 = 10
	SIGUSR2 = 12
	SIGPIPE = 13
	SIGALRM = 14
	SIGTERM = 15
)

// Status is how a program ended: with an exit code, or by a signal.
type Status struct {
	Code   int
	Signal int // 0 where it exited
}

// Exit returns what the shell has in $? for it.
func (s Status) Exit() int {
	if s.Signal != 0 {
		return 128 + s.Signal
	}
	return s.Code & 0xff
}

// Process is one program that runs.
type Process struct {
	Eager   bool     // the output is flushed before the program waits for input: it may be a question
	Args    []string // with the name that it was called by
	Env     []string // NAME=VALUE, in order, each name once
	Cwd     *vfs.Node
	Stdin   *vfs.Handle // nil if it is closed; the starter of the program owns it
	Stdout  *vfs.Handle
	Stderr  *vfs.Handle
	Files   map[int]*vfs.Handle // further descriptors that were passed on, from 3
	FS      *vfs.FS
	Account *bound.Account
	Umask   uint32
	PID     int
	PPID    int
	// Deadline is when a program that Go code runs ends by SIGTERM on the virtual clock; the zero time is never. Charge and Sleep look at
	// it; a guest's runner has to.
	Deadline time.Time
	// Signal returns the signal that is to end the program, 0 for none. Charge and Sleep look at it. It may be nil.
	Signal func() int
	Host   Host

	out  *Output
	open []*vfs.Handle
	held int64
}

// exit and Killed are thrown through a program and known by Run.
type exit struct{ code int }

// Killed is thrown by a program that a signal ends.
type Killed struct{ Signal int }

// Run runs a program to its end, flushes its output, closes what it left open and gives back the memory that it held. A *bound.Stopped
// goes on as a panic.
func Run(prog Program, p *Process) (s Status) {
	thrown := Catch(func() {
		defer func() {
			if p.out != nil && s.Signal == 0 {
				s = p.last(s)
			}
			for _, h := range p.open {
				_ = h.Close()
			}
			p.open = nil
			p.Account.Release(p.held)
			p.held = 0
		}()
		s = p.guard(func() int { return prog.Run(p) })
	})
	if err := p.Account.Check(); thrown == nil && err != nil {
		thrown = err
	}
	if thrown != nil {
		panic(thrown)
	}
	return s
}

// Catch calls f and returns what it throws; nil if f returns. A caller that does not handle the value throws it again, after Catch has
// returned. A deferred function that throws again keeps all the passed frames on the stack, and each outer one goes through them again. A
// runtime error of Go goes on, so that its trace is not lost.
func Catch(f func()) (thrown any) {
	defer func() {
		x := recover()
		if _, defect := x.(runtime.Error); defect {
			panic(x)
		}
		thrown = x
	}()
	f()
	return nil
}

// guard calls f and catches how a program ends by a panic.
func (p *Process) guard(f func() int) (s Status) {
	thrown := CatchDefect(func() { s = Status{Code: f() & 0xff} })
	switch x := thrown.(type) {
	case nil:
	case *Defect:
		return reportDefect(p, x)
	case exit:
		return Status{Code: x.code}
	case Killed:
		return Status{Signal: x.Signal}
	default:
		panic(x)
	}
	return s
}

// reportDefect tells of a defect of the program's own, of which a heavier tier may be free.
func reportDefect(p *Process, d *Defect) Status {
	p.Lack(LackFeature, d.Error())
	p.out = nil // nobody knows what it holds
	if thrown := Catch(func() { p.message(d.Error()) }); thrown != nil {
		if _, killed := thrown.(Killed); !killed {
			panic(thrown)
		}
	}
	return Status{Code: DefectCode}
}

// last flushes what is left of the output.
func (p *Process) last(s Status) Status {
	flushed := p.guard(func() int { p.out.Flush(); return s.Code })
	if flushed.Signal != 0 || flushed.Code != 0 {
		return flushed
	}
	return s
}

// Exit ends the program.
func (p *Process) Exit(code int) { panic(exit{code}) }

// Kill ends the program by a signal.
func (p *Process) Kill(signal int) { panic(Killed{signal}) }

// Name returns what the program calls itself in messages: the name that it was called by.
func (p *Process) Name() string {
	if len(p.Args) == 0 {
		return ""
	}
	return p.Args[0]
}

// Getenv returns a variable of the environment, "" where there is none.
func (p *Process) Getenv(name string) string {
	v, _ := p.LookupEnv(name)
	return v
}

// LookupEnv returns a variable of the environment and whether there is one.
func (p *Process) LookupEnv(name string) (string, bool) {
	for i := len(p.Env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(p.Env[i], "="); ok && k == name {
			return v, true
		}
	}
	return "", false
}

// At returns from where the paths of the program are followed.
func (p *Process) At() vfs.At { return vfs.At{Dir: p.Cwd} }

// Now returns the virtual time.
func (p *Process) Now() time.Time { return p.FS.Now() }

// Zone returns the time zone of the program, which the variable TZ says. It is UTC where that is not set.
func (p *Process) Zone() *time.Location {
	p.Charge(posix.GasPerZone)
	return posix.Zone(p.Getenv("TZ"))
}

// Charge counts work, a unit for about as much as an instruction of a guest. It ends the program where the bound is reached or its
// deadline is over.
func (p *Process) Charge(gas int) {
	p.stop(p.Account.Charge(int64(gas)))
	if !p.Deadline.IsZero() && p.Now().After(p.Deadline) {
		panic(Killed{SIGTERM})
	}
	p.signals()
}

func (p *Process) signals() {
	if p.Signal != nil {
		if s := p.Signal(); s != 0 {
			panic(Killed{s})
		}
	}
}

// Sleep waits on the virtual clock.
func (p *Process) Sleep(d time.Duration) {
	if left := p.Deadline.Sub(p.Now()); !p.Deadline.IsZero() && left < d {
		p.stop(p.Host.Sleep(max(left, 0)))
		panic(Killed{SIGTERM})
	}
	p.stop(p.Host.Sleep(d))
	p.signals()
}

// Hold counts memory that the program holds until it ends or calls Drop. Where there is none left it ends as the kernel would end it.
func (p *Process) Hold(bytes int) {
	if err := p.Account.Allocate(int64(bytes)); err != nil {
		p.message("memory exhausted")
		panic(Killed{SIGKILL})
	}
	p.held += int64(bytes)
}

// Append appends to a text that may be long: see bound.Append.
func (p *Process) Append(dst, src []byte) []byte {
	dst, err := bound.Append(p.Account, dst, src)
	p.stop(err)
	return dst
}

// Text returns a text of its own: see bound.Text.
func (p *Process) Text(b []byte) string {
	s, err := bound.Text(p.Account, b)
	p.stop(err)
	return s
}

// Room ends the program, as Hold does, where so much memory could not be held. It holds none.
func (p *Process) Room(bytes int) error {
	if bytes > 1<<16 && int64(bytes) > p.Account.Spare() {
		p.Hold(bytes)
	}
	return nil
}

// Drop gives back memory that Hold has counted.
func (p *Process) Drop(bytes int) {
	p.held -= int64(bytes)
	p.Account.Release(int64(bytes))
}

// Check ends the program where an error ends the execution.
func (p *Process) Check(err error) { p.stop(err) }

// stop throws an error that ends the execution.
func (p *Process) stop(err error) {
	if s, ok := errors.AsType[*bound.Stopped](err); ok {
		panic(s)
	}
}

// Lack reports something of this program that the nano tier does not have. It prints nothing.
func (p *Process) Lack(kind, detail string) {
	name := p.Name()
	p.Host.Report(Lack{Kind: kind, Name: name[strings.LastIndexByte(name, '/')+1:], Detail: detail})
}

// Open opens a file as the program sees it: relative to its folder, with /dev/stdin, /dev/stdout, /dev/stderr and /dev/fd/N for its own.
// It is closed by Close or when the program ends. New files get 0666 without the mask's bits.
func (p *Process) Open(path string, flags vfs.Flags) (*vfs.Handle, error) {
	return p.OpenAs(path, flags, 0o666)
}

// OpenAs is Open for what gets a mode of its own where it is made, without the mask's bits.
func (p *Process) OpenAs(path string, flags vfs.Flags, mode uint32) (*vfs.Handle, error) {
	h, err := p.openPath(path, flags, mode)
	p.stop(err)
	if err == nil {
		p.open = append(p.open, h)
	}
	return h, err
}

func (p *Process) openPath(path string, flags vfs.Flags, mode uint32) (*vfs.Handle, error) {
	if n, ok := Descriptor(path); ok {
		h := p.File(n)
		if h == nil {
			return nil, vfs.ENOENT
		}
		return h.Dup(), nil
	}
	return p.FS.Open(p.At(), path, flags, mode&^p.Umask)
}

// Descriptor returns the number of the descriptor that a path like /dev/stdin or /dev/fd/3 means.
func Descriptor(path string) (int, bool) {
	switch path {
	case "/dev/stdin", "/proc/self/fd/0":
		return 0, true
	case "/dev/stdout", "/proc/self/fd/1":
		return 1, true
	case "/dev/stderr", "/proc/self/fd/2":
		return 2, true
	}
	digits, ok := strings.CutPrefix(path, "/dev/fd/")
	if !ok || digits == "" || len(digits) > 4 {
		return 0, false
	}
	n := 0
	for _, c := range []byte(digits) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// File returns the handle of a descriptor, nil for one that is not open.
func (p *Process) File(n int) *vfs.Handle {
	switch n {
	case 0:
		return p.Stdin
	case 1:
		return p.Stdout
	case 2:
		return p.Stderr
	}
	return p.Files[n]
}

// Close closes what Open has opened.
func (p *Process) Close(h *vfs.Handle) error {
	for i, o := range p.open {
		if o == h {
			p.open = append(p.open[:i], p.open[i+1:]...)
			return h.Close()
		}
	}
	return vfs.EBADF
}

// Pipe returns the two ends of a pipe, which the program closes by Close or by its end.
func (p *Process) Pipe() (r, w *vfs.Handle, err error) {
	r, w, err = p.FS.Pipe()
	p.stop(err)
	if err == nil {
		p.open = append(p.open, r, w)
	}
	return r, w, err
}

// Out returns the standard output, buffered. It is flushed before messages, before other programs are started and at the end.
func (p *Process) Out() *Output {
	if p.out == nil {
		p.out = &Output{p: p, h: p.Stdout}
	}
	return p.out
}

// Errorf prints a message to the standard error, behind the program's name, with a newline.
func (p *Process) Errorf(format string, args ...any) {
	p.message(fmt.Sprintf(format, args...))
}

func (p *Process) message(text string) {
	p.Stderrf("%s: %s\n", p.Name(), text)
}

// Stderrf prints to the standard error.
func (p *Process) Stderrf(format string, args ...any) {
	if p.out != nil {
		p.out.Flush()
	}
	if p.Stderr == nil {
		return
	}
	_, err := p.Stderr.Write([]byte(fmt.Sprintf(format, args...)))
	p.stop(err)
	if errors.Is(err, vfs.EPIPE) {
		panic(Killed{SIGPIPE})
	}
}

// Child returns a process like p with other arguments. Changes to it do not change p; the environment is p's own slice.
func (p *Process) Child(args ...string) *Process {
	c := *p
	c.Args = args
	c.out, c.open, c.held = nil, nil, 0
	c.PPID = p.PID
	return &c
}

// Execute runs a child to its end. An error means that it could not be started; it is ENOENT for a command that is not there.
func (p *Process) Execute(c *Process) (Status, error) {
	if p.out != nil {
		p.out.Flush()
	}
	return p.Host.Execute(c)
}

// Shell runs a text by /bin/sh.
func (p *Process) Shell(text string) (Status, error) { return p.Execute(p.Child("sh", "-c", text)) }
