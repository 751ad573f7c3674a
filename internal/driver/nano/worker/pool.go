package worker

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// How long the daemon waits for a worker before it kills it.
const (
	startTime = 60 * time.Second       // until it says that it is ready: it compiles the interpreters, where they are not in the cache
	stubborn  = 250 * time.Millisecond // after a request to stop, to end its current step
	telling   = 30 * time.Second       // for sending the changes, once it has begun to
)

// A host may lack something for a moment: memory, processes, or the program itself while another version replaces it. So a start that
// failed is repeated after startPause. A command that waits for a worker fails when starts have failed for the time of patience.
const (
	startPause = 200 * time.Millisecond
	patience   = 2 * time.Second
)

// Memory of the daemon for the changes of one execution, besides twice the execution's own memory.
const (
	maxNames    = 64 << 20 // bytes
	changeBytes = 128      // of each, for any content
)

// maxFew is how many entries of a folder an order may contain.
const maxFew = 64

// maxListings is how many lists of folders may be open at once. A correct worker reads one list to its end before it asks for another.
const maxListings = 1

// errHoard means that a worker reports more changes than an execution can have made. A correct worker never does.
var errHoard = errors.New("the worker tells of more changes than the execution can have made")

// Intervals between checks for idle workers. Under load, one surplus worker ends after it was idle for shedEvery, at the
// latest after twice that time. After lullEvery without executions, all but one end. The last one stays ready: to keep it takes less
// time than another would take to start.
const (
	shedEvery = 2 * time.Minute
	lullEvery = 4 * time.Second
)

// wornOut is the number of executions after which the pool replaces a worker.
const wornOut = 10_000

// Files are the files behind a mount, on the daemon's side.
type Files interface {
	vfs.Source
	// Few returns the entries of the folder itself if they are few. The order lists them, because most executions would ask for them.
	Few(most int) (found []vfs.Found, ok bool)
	// Begin begins to take changes.
	Begin() (Changes, error)
}

// Changes collects the changes of an execution. None of them happens before Commit.
type Changes interface {
	// Add takes one change; content is the beginning of a changed file.
	Add(c vfs.Change, content io.Reader) error
	// Commit makes the changes, in the order in which they were added.
	Commit() error
	// Abort forgets them. After Commit it does nothing.
	Abort() error
}

// Options are the settings and dependencies of a pool.
type Options struct {
	Command []string            // the program that serves, and its arguments
	Env     []string            // all that they get
	Workers int                 // at least 1
	Started func(p *os.Process) // called with each worker's process before its first order, and may be nil
	Prepare func(c *exec.Cmd)   // sets the host's bounds of a process before it starts; may be nil
	Hold    time.Duration       // the longest time for which the output of an attempt is held back; 0 means a second
	// how long an execution bears that starts of workers fail, at least two of them; 0 means two seconds
	Patience time.Duration
	Logger   *slog.Logger
}

// Pool is a number of workers that wait for orders. Close it last.
type Pool struct {
	o     Options
	idle  chan *process // as many as there are workers; nil stands for one that has to be started
	base  context.Context
	end   context.CancelFunc
	alive sync.WaitGroup
	warm  sync.Once
	age   atomic.Int64 // how often the workers were outdated

	mu       sync.Mutex // guards the fields below
	living   map[*process]bool
	closed   bool
	started  int // workers that there are, or that stand for one that has to be started
	starting int // of them
	waiting  int // executions
	unused   int // workers that have been idle at any time since shed looked last, at least
	taken    int // executions that were given a worker, ever
	before   int // as many there were when lull looked last
	failure  failure
}

// failure is the last start that failed.
type failure struct {
	err  error
	row  int           // failures since a start succeeded
	next chan struct{} // closed by the next failure
}

// NewPool returns a pool whose workers start in the background when they are wanted, or by Warm.
func NewPool(o Options) *Pool {
	base, end := context.WithCancel(context.Background())
	return &Pool{o: o, idle: make(chan *process, o.Workers), base: base, end: end, living: map[*process]bool{},
		failure: failure{next: make(chan struct{})}}
}

// Warm starts a worker in the background, if none was started before. The others start when they are wanted, and end when they were not
// for a while.
func (p *Pool) Warm() {
	p.warm.Do(func() {
		p.add()
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.closed {
			p.alive.Go(p.watch)
		}
	})
}

// watch ends superfluous workers from time to time.
func (p *Pool) watch() {
	shed, lull := time.NewTicker(shedEvery), time.NewTicker(lullEvery)
	defer shed.Stop()
	defer lull.Stop()
	for {
		select {
		case <-shed.C:
			p.shed()
		case <-lull.C:
			p.lull()
		case <-p.base.Done():
			return
		}
	}
}

// shed ends the workers that nobody has needed since the last call. It keeps one ready for the next execution.
func (p *Pool) shed() {
	p.mu.Lock()
	count := min(p.unused, p.started-1)
	p.unused = len(p.idle)
	p.finish(count)
}

// lull ends all workers but one where nothing was executed since it was called last.
func (p *Pool) lull() {
	p.mu.Lock()
	count := 0
	if p.taken == p.before && len(p.idle) == p.started { // one that is not idle works for longer than that
		count = p.started - 1
	}
	p.before = p.taken
	p.finish(count)
}

// finish ends some idle workers, unless somebody waits for one. The lock is held, and is not any more then.
func (p *Pool) finish(count int) {
	var ended []*process
	for p.waiting == 0 && len(ended) < count {
		select {
		case w := <-p.idle:
			p.started--
			p.unused = max(p.unused-1, 0)
			ended = append(ended, w)
			continue
		default:
		}
		break
	}
	p.mu.Unlock()
	for _, w := range ended {
		if w != nil {
			p.discard(w)
		}
	}
}

// add starts one more worker in the background, where there are fewer than there may be.
func (p *Pool) add() {
	p.mu.Lock()
	room := p.started < p.o.Workers && p.starting == 0
	if room {
		p.started++
	}
	p.mu.Unlock()
	if room {
		p.renew()
	}
}

// Outdate has every worker that was started before replaced before it executes anything more.
func (p *Pool) Outdate() { p.age.Add(1) }

// renew starts a worker in the background and puts it, or where that failed the task to try again, among the idle.
func (p *Pool) renew() { p.renewAfter(0) }

// renewAfter is renew after a pause.
func (p *Pool) renewAfter(pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.alive.Add(1)
	p.starting++
	go func() {
		defer p.alive.Done()
		var w *process
		err := p.rest(pause)
		if err == nil {
			w, err = p.start()
		}
		p.mu.Lock()
		p.starting--
		if err == nil {
			p.failure.row = 0
		}
		more := p.waiting > 1
		p.mu.Unlock()
		if err != nil && p.base.Err() == nil {
			p.o.Logger.Error("a worker could not be started", "code", "worker_not_started", "error", err)
		}
		p.idle <- w
		if err != nil {
			p.fail(err)
		} else if more {
			p.add()
		}
	}()
}

// rest waits, unless the pool is closed.
func (p *Pool) rest(pause time.Duration) error {
	if pause == 0 {
		return nil
	}
	again := time.NewTimer(pause)
	defer again.Stop()
	select {
	case <-again.C:
		return nil
	case <-p.base.Done():
		return errClosed
	}
}

// fail tells those who wait for a worker that a start failed.
func (p *Pool) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.failure.next)
	p.failure = failure{err: err, row: p.failure.row + 1, next: make(chan struct{})}
}

func (p *Pool) lastFailure() failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// Close ends every worker, also those that work, and waits until none is left.
func (p *Pool) Close() error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.end()
	for w := range p.living {
		w.kill()
	}
	p.mu.Unlock()
	if again {
		return nil
	}
	p.alive.Wait()
	for {
		select {
		case w := <-p.idle:
			if w != nil {
				p.discard(w)
			}
			continue
		default:
		}
		return nil // who has a worker discards it
	}
}

// process is one worker.
type process struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	buf     []byte
	done    int // executions
	age     int64
	version string // of the worker's program
	broken  bool   // it broke the protocol, or was killed
	words   *lastWords

	mu sync.Mutex // guards w
	w  *bufio.Writer
}

var errClosed = fault.New(fault.Unavailable, "tier_closed", "the daemon is shutting down; nothing can be executed")

// start starts a worker and waits until it is ready.
func (p *Pool) start() (*process, error) {
	age := p.age.Load()
	c := exec.Command(p.o.Command[0], p.o.Command[1:]...)
	c.Env = append([]string{}, p.o.Env...) // none is none: the daemon's own variables hold secrets
	words := &lastWords{}
	c.Stderr = words
	if p.o.Prepare != nil {
		p.o.Prepare(c)
	}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	widen(in)
	widen(out)
	if err := c.Start(); err != nil {
		return nil, err
	}
	w := &process{command: c, in: in, out: bufio.NewReaderSize(out, 64<<10), w: bufio.NewWriterSize(in, 64<<10), words: words, age: age}
	p.mu.Lock()
	if p.closed {
		w.kill()
	}
	p.living[w] = true
	p.mu.Unlock()
	slow := time.AfterFunc(startTime, w.kill)
	kind, version, _, err := readFrame(w.out, nil)
	slow.Stop()
	if err == nil && kind != frameReady {
		err = errWire
	}
	if err != nil {
		p.discard(w)
		return nil, fmt.Errorf("the worker did not come up: %w: %.300s", err, words)
	}
	w.version = cut(strings.ToValidUTF8(string(version), "?"))
	if p.o.Started != nil {
		p.o.Started(c.Process)
	}
	return w, nil
}

// kill ends the process at once. It may be called at any time.
func (w *process) kill() { _ = w.command.Process.Kill() }

// discard ends a worker for good.
func (p *Pool) discard(w *process) {
	w.kill()
	_ = w.in.Close()
	_, _ = io.Copy(io.Discard, w.out)
	_ = w.command.Wait()
	p.mu.Lock()
	delete(p.living, w)
	p.mu.Unlock()
}

// lastWords keeps the beginning of a worker's message about its own end.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

const maxWords = 2 << 10

func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p[:min(len(p), maxWords-len(l.text))]...)
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// outOfMemory reports whether a worker says that it has ended because it got no more memory, which is a bound of its execution.
func (l *lastWords) outOfMemory() bool {
	words := l.String()
	return slices.ContainsFunc([]string{"out of memory", "cannot allocate memory", "goroutine stack exceeds"}, func(s string) bool {
		return strings.Contains(words, s)
	})
}

// acquire waits for a worker that is idle.
func (p *Pool) acquire(ctx context.Context) (*process, error) {
	p.Warm()
	p.count(1)
	defer p.count(-1)
	last, since := p.lastFailure(), time.Time{} // of the first failure here
	for {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var w *process
		if p.short() {
			p.add()
		}
		select {
		case w = <-p.idle:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-p.base.Done():
			return nil, errClosed
		case <-last.next:
			last = p.lastFailure()
			if last.row == 1 || since.IsZero() {
				since = time.Now()
			} else if time.Since(since) >= cmp.Or(p.o.Patience, patience) {
				return nil, fault.Wrap(last.err, fault.Unavailable, "worker_not_started", "no worker can be started; run agentbox doctor")
			}
			continue
		}
		p.mu.Lock()
		p.unused = min(p.unused, len(p.idle))
		p.taken++
		p.mu.Unlock()
		if w != nil && w.age == p.age.Load() {
			return w, nil
		}
		if w != nil {
			p.discard(w)
			p.renew()
			continue
		}
		p.renewAfter(startPause) // the last start failed
	}
}

// short reports whether there are fewer idle workers than executions that wait: of those that come together, each has seen the one that
// is idle.
func (p *Pool) short() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.idle) < p.waiting
}

// count counts those who wait for a worker.
func (p *Pool) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting += n
}

// release puts a worker back, or replaces it.
func (p *Pool) release(w *process) {
	if w.done++; !w.broken && w.done < wornOut {
		p.mu.Lock()
		if !p.closed {
			p.idle <- w // there is room for all
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
	p.discard(w)
	p.renew()
}

// ErrEnded is a worker that ended in the middle of an execution, of which nothing was kept.
var ErrEnded = fault.New(fault.Unavailable, "worker_ended",
	"the worker that ran the command has ended; nothing that the command did was kept")

// Execute lets the next idle worker execute an order. It passes output to out as it comes; an error of out ends the execution and is
// returned. It commits the changed files before it returns, also when a bound was hit. If the worker had to be killed, no change is kept.
func (p *Pool) Execute(ctx context.Context, o Order, files []Files, out func(channel string, p []byte) error) (Outcome, error) {
	o.Mounts = slices.Clone(o.Mounts)
	for i := range min(len(o.Mounts), len(files)) {
		o.Mounts[i].few, o.Mounts[i].told = files[i].Few(maxFew)
	}
	raw := o.encode()
	if len(raw) > maxOrder {
		return Outcome{}, fault.New(fault.Exhausted, "command_too_large", "the command with its input has %d bytes; at most %d are taken",
			len(raw), maxOrder)
	}
	for dead := 0; ; dead++ {
		w, err := p.acquire(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return Outcome{Code: 137, Signal: "SIGKILL", Canceled: true}, nil
			}
			return Outcome{}, err
		}
		outcome, unsent, err := p.executeIn(ctx, w, o, raw, files, out)
		if !unsent || dead >= p.o.Workers { // each that was idle may have been dead, and one is new
			return outcome, err
		}
	}
}

// executeIn has a worker execute an order. Unsent means that the worker has ended before it had the order: nothing was executed.
func (p *Pool) executeIn(ctx context.Context, w *process, o Order, raw []byte, files []Files,
	out func(channel string, p []byte) error) (outcome Outcome, unsent bool, err error) {
	var hold time.Duration
	if o.Tentative || o.Unprepared {
		hold = cmp.Or(p.o.Hold, heldFor)
	}
	printed := newPrinter(out, o.Limits.OutputBytes, hold)
	t := &talk{w: w, files: files, printed: printed, limits: o.Limits, tentative: o.Tentative, elsewhere: o.Elsewhere}
	outcome, err = t.execute(ctx, raw, o.Limits.Time)
	outcome.Version = w.version
	broken := w.broken
	p.release(w)
	if broken && errors.Is(err, ErrEnded) && !t.unsent && w.words.outOfMemory() {
		outcome, err = Outcome{Code: 137, Signal: "SIGKILL", Limit: bound.Memory, Took: outcome.Took}, nil
	}
	if broken {
		p.o.Logger.Warn("a worker is replaced", "code", "worker_replaced", "error", errors.Join(err, fmt.Errorf("%s: %.1000s",
			w.command.ProcessState, w.words)))
	}
	if t.unsent {
		return outcome, true, err
	}
	if o.Done != nil {
		o.Done()
	}
	if refused := printed.wait(); refused != nil {
		return Outcome{}, false, refused
	}
	return outcome, false, err
}
