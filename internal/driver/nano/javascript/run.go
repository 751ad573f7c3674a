package javascript

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/driver/nano/contexts"
	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// run is one run of a program: the state of an instance.
type run struct {
	runtime *Runtime
	vm      *guest
	account *bound.Account

	p       *program.Process          // nil while the image is made
	zone    *time.Location            // the zone that TZ names; nil until it is first needed
	zones   map[string]*time.Location // that the program named
	files   map[int]*vfs.Handle
	maps    map[string]*sourceMap // of the transformed texts, by file
	rejects []rejection
	lacks   map[string]bool
	given   source            // a program that was given as text, or the file that it begins with until it is evaluated
	cell    bool              // the interpreter goes on after it
	follows bool              // async functions are rewritten, so that AsyncLocalStorage follows them
	awaited bool              // a file with async functions was loaded that was not rewritten
	begun   bool              // a module was evaluated, and its jobs have not run yet
	showing *contexts.Showing // of a cell

	// Functions that a program calls, by their module of Node.
	buffers     buffers
	crypto      crypto
	filesystem  filesystem
	intl        intl
	modules     modules
	compression compression
}

// newRun returns a run of nothing yet. Without a process it makes the image.
func newRun(r *Runtime, account *bound.Account, p *program.Process) *run {
	x := &run{runtime: r, account: account, p: p, files: map[int]*vfs.Handle{}, maps: map[string]*sourceMap{}, lacks: map[string]bool{}}
	x.buffers, x.compression, x.crypto = buffers{x}, compression{x}, crypto{x}
	x.filesystem, x.intl, x.modules = filesystem{x}, intl{x}, modules{x}
	return x
}

// rejection is a promise that was rejected and that nobody has handled yet.
type rejection struct {
	promise value
	reason  value
	id      uint64
}

// Run implements program.Program.
func (r *Runtime) Run(p *program.Process) int {
	c, code := parse(p)
	if c == nil {
		return code
	}
	if c.context != nil {
		return r.runCell(p, c)
	}
	ctx := context.Background() // an execution is stopped through its account
	run := newRun(r, p.Account, p)
	in, err := r.image.New(ctx, p.Account, run)
	if err != nil {
		return run.failed(err)
	}
	defer func() { _ = in.Close(ctx) }()
	run.vm = &guest{in: in, ctx: ctx, cell: r.cell, known: r.known}
	exit, err := run.main(c)
	if err != nil {
		return run.failed(err)
	}
	return exit
}

// failed ends a run that ended by something else than its own code.
func (r *run) failed(err error) int {
	if exit, ok := errors.AsType[*wasm.Exit](err); ok {
		return int(exit.Code & 0xff)
	}
	if stopped := ended(err); stopped != nil {
		panic(stopped)
	}
	if trap, ok := errors.AsType[*wasm.Trap](err); ok {
		switch trap.Kind {
		case wasm.StackOverflow:
			r.p.Stderrf("RangeError: Maximum call stack size exceeded\n")
		default:
			r.p.Stderrf("%s: the interpreter was ended: %s\n", r.p.Name(), trap.Kind)
		}
		return 134
	}
	if errors.Is(err, errMemory) || errors.Is(err, bound.ErrMemory) || errors.Is(err, wasm.ErrMemory) {
		r.account.Hit(bound.Memory)
		r.p.Stderrf("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n")
		return 134
	}
	r.p.Errorf("%s", err)
	return 70
}

// main runs the program of a command line and returns its exit code.
func (r *run) main(c *command) (int, error) {
	if err := r.open(c); err != nil {
		return 0, err
	}
	var main value
	var thrown bool
	var err error
	switch {
	case c.code != nil && c.print:
		main, thrown, err = r.evaluate(*c.code, "[eval]")
		if err == nil && !thrown {
			if _, thrown, err = r.vm.apply("print", main); main != 0 {
				main = 0
			}
		}
	case c.code != nil:
		main, thrown, err = r.text(*c.code, "[eval]", c.typescript)
	case c.file == "-":
		var text []byte
		if text, err = r.stdin(); err == nil {
			main, thrown, err = r.text(string(text), "[stdin]", c.typescript)
		}
	default:
		main, thrown, err = r.file(c.file)
	}
	if err != nil {
		return 0, err
	}
	if thrown {
		return r.uncaught()
	}
	return r.loop(main)
}

// open prepares the instance for a run.
func (r *run) open(c *command) error {
	heap := max(min(r.account.Spare()+int64(len(r.vm.in.Memory()))-spareBytes, 1<<31-1), 1<<20)
	if err := r.vm.must("qjs_set_memory_limit", uint64(heap)); err != nil {
		return err
	}
	cwd, err := r.p.Cwd.Path()
	if err != nil {
		cwd = "/"
	}
	env := map[string]string{}
	for _, pair := range r.p.Env {
		if k, v, ok := strings.Cut(pair, "="); ok {
			env[k] = v
		}
	}
	var pairs []string
	for _, k := range slices.Sorted(mapKeys(env)) {
		pairs = append(pairs, k, env[k])
	}
	var args []value
	for _, text := range []string{character(path.Base(r.p.Name())), character(cwd), apart(c.words(r, cwd)), apart(pairs)} {
		v, err := r.vm.str(text)
		if err != nil {
			return err
		}
		args = append(args, v)
	}
	for _, id := range []int{r.p.PID, r.p.PPID} {
		v, err := r.vm.call("qjs_new_number", floatBits(float64(id)))
		if err != nil {
			return err
		}
		args = append(args, value(v))
	}
	v, thrown, err := r.vm.apply("start", args...)
	if err == nil && thrown {
		return errors.New(r.vm.describe())
	}
	if err = errors.Join(err, r.vm.free(v)); err != nil || len(c.options) == 0 {
		return err
	}
	options, err := json.Marshal(c.options)
	if err != nil {
		return err
	}
	_, err = r.vm.ask("String(__agentbox.process.execArgv = " + string(options) + ")")
	return err
}

// apart puts words into one text, a zero before each, of which they hold none.
func apart(words []string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteByte(0)
		b.WriteString(strings.ReplaceAll(character(w), "\x00", ""))
	}
	return b.String()
}

// character is a text in which each byte that is not part of a character is U+FFFD.
func character(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

func (r *run) stdin() ([]byte, error) {
	if r.p.Stdin == nil {
		return nil, nil
	}
	in := r.p.Reader(r.p.Stdin)
	return slices.Clone(in.All()), in.Err()
}

// file runs a program that lies in a file.
func (r *run) file(name string) (value, bool, error) {
	file, err := r.modules.resolveMain(name)
	if err != nil {
		return 0, true, r.raise(err)
	}
	source, err := r.modules.source(file)
	if err != nil {
		return 0, true, r.raise(err)
	}
	if source.format == cjs {
		r.given = source
	}
	return r.start(source)
}

// text runs a program that was given as text.
func (r *run) text(text, name string, typescript bool) (value, bool, error) {
	source, err := r.modules.prepare(text, name, typescript)
	if err != nil {
		return 0, true, r.raise(err)
	}
	r.given = source
	return r.start(source)
}

// start evaluates the first module of a program.
func (r *run) start(s source) (value, bool, error) {
	if s.format == esm {
		r.begun = true
		return r.vm.eval(s.text, s.file, asModule)
	}
	file, err := r.vm.str(s.file)
	if err != nil {
		return 0, false, err
	}
	v, thrown, err := r.vm.apply("main", file)
	if err != nil || !thrown {
		return v, thrown, err
	}
	return 0, true, nil
}

// evaluate evaluates a program as a script, whose value is that of its last expression.
func (r *run) evaluate(text, name string) (value, bool, error) {
	if _, thrown, err := r.vm.apply("globals"); err != nil || thrown {
		return 0, thrown, err
	}
	return r.vm.eval(text, name, 0)
}

// raise has an error thrown in the guest, outside of any call.
func (r *run) raise(err error) error {
	code, message, ok := known(err)
	if !ok {
		return err
	}
	return r.vm.throw(code, message)
}

// uncaught tells of the exception that waits, and returns the exit code.
func (r *run) uncaught() (int, error) {
	e, err := r.vm.exception()
	if err != nil {
		return 0, err
	}
	return r.fatal("fatal", e)
}

// The prelude's results for an uncaught error: a listener handled it, it was reported, or there was no memory to report it.
const (
	heard     = 0
	exhausted = 2
)

// fatal has the prelude tell of an error, which a listener of the program's may handle.
func (r *run) fatal(how string, args ...value) (int, error) {
	v, thrown, err := r.vm.apply(how, args...)
	if err != nil {
		return 0, err
	}
	if thrown {
		e, err := r.vm.exception()
		if err != nil {
			return 0, err
		}
		text, _ := r.vm.text(e)
		r.p.Stderrf("Uncaught %s\n", text)
		return 1, nil
	}
	outcome, err := r.vm.number(v)
	if err != nil {
		return 0, err
	}
	switch outcome {
	case heard:
		return r.loop(0)
	case exhausted:
		return 0, errMemory
	}
	return r.exit(1)
}

// loop is the event loop: it ends when nothing can happen any more. main is the promise of a module, or 0.
func (r *run) loop(main value) (int, error) {
	for {
		if code, over, err := r.settle(main); err != nil || over {
			return code, err
		}
		v, thrown, err := r.vm.apply("step")
		if err != nil {
			return 0, err
		}
		if thrown {
			return r.uncaught()
		}
		wait, err := r.vm.number(v)
		if err = errors.Join(err, r.vm.free(v)); err != nil {
			return 0, err
		}
		switch {
		case wait < 0:
			if state, err := r.state(main); err != nil || state == pending {
				if err == nil {
					r.p.Stderrf("Warning: Detected unsettled top-level await\n")
				}
				return 13, err
			}
			return r.exit(0)
		case wait > 0:
			r.p.Sleep(time.Duration(wait * float64(time.Millisecond)))
		}
	}
}

// settle executes ticks and jobs until there are none, and ends the run where an error was left.
func (r *run) settle(main value) (code int, over bool, err error) {
	if r.begun { // the jobs of a module run before its ticks, as in Node
		r.begun = false
		if _, err := r.vm.drain(); err != nil {
			return 0, false, err
		}
	}
	for {
		v, thrown, err := r.vm.apply("ticks")
		if err != nil {
			return 0, false, err
		}
		if thrown {
			code, err := r.uncaught()
			return code, true, err
		}
		ran, err := r.vm.number(v)
		if err = errors.Join(err, r.vm.free(v)); err != nil {
			return 0, false, err
		}
		jobs, err := r.vm.drain()
		if err != nil {
			return 0, false, err
		}
		if ran == 0 && !jobs {
			break
		}
	}
	if state, err := r.state(main); err != nil {
		return 0, false, err
	} else if state == rejected {
		reason, err := r.vm.call("qjs_promise_result", uint64(main))
		if err != nil {
			return 0, false, err
		}
		code, err := r.fatal("fatal", value(reason))
		return code, true, err
	}
	for len(r.rejects) > 0 {
		first := r.rejects[0]
		r.rejects = r.rejects[1:]
		if main != 0 && r.same(first.promise, main) {
			continue
		}
		code, err := r.fatal("unhandled", first.reason, first.promise)
		return code, true, err
	}
	return 0, false, nil
}

func (r *run) same(a, b value) bool {
	x, err := r.vm.call("qjs_get_value_ptr", uint64(a))
	y, other := r.vm.call("qjs_get_value_ptr", uint64(b))
	return err == nil && other == nil && x == y
}

// The states of a promise.
const (
	pending  = 0
	rejected = 2
)

// state returns the state of a module's promise; that of 0 is kept.
func (r *run) state(main value) (uint64, error) {
	if main == 0 {
		return 1, nil
	}
	if is, err := r.vm.call("qjs_is_promise", uint64(main)); err != nil || is == 0 {
		return 1, err
	}
	return r.vm.call("qjs_promise_state", uint64(main))
}

// exit has listeners hear of the end and returns the exit code.
func (r *run) exit(code int) (int, error) {
	if r.cell {
		return code, nil
	}
	v, err := r.vm.call("qjs_new_number", floatBits(float64(code)))
	if err != nil {
		return 0, err
	}
	result, thrown, err := r.vm.apply("exit", value(v))
	if err != nil {
		return 0, err
	}
	if thrown {
		return r.uncaught()
	}
	n, err := r.vm.number(result)
	return int(n) & 0xff, err
}
