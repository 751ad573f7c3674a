package nano

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"agentbox/internal/driver/nano/worker"
	machine "agentbox/internal/host" // the tests have another host
)

// The interpreters as people call them. A process that prepares them prints the name of each that lies in the cache.
const (
	pythonName = "Python"
	scriptName = "JavaScript"
	sqliteName = "SQLite"
)

const (
	tellEvery   = time.Second     // how often a command that waits for an interpreter says so
	endsWithin  = 5 * time.Second // in which a compilation ends that is not wanted any more; then it is killed
	niceness    = 10              // of the compilation: what people wait for goes first
	mostWords   = 4 << 10         // bytes that a compilation may say
	mostOfWords = 500             // bytes of them that the log shows
)

// compilation is the state of the compilation: a channel for each interpreter, closed when its files are in the cache.
type compilation struct {
	began time.Time // written before the first wait
	ready map[string]chan struct{}
	once  map[string]*sync.Once
}

func newCompilation() *compilation {
	c := &compilation{ready: map[string]chan struct{}{}, once: map[string]*sync.Once{}}
	for _, name := range []string{pythonName, scriptName, sqliteName} {
		c.ready[name], c.once[name] = make(chan struct{}), &sync.Once{}
	}
	return c
}

// done says that an interpreter lies in the cache. A name that nobody knows says nothing.
func (c *compilation) done(interpreter string) {
	if once := c.once[interpreter]; once != nil {
		once.Do(func() { close(c.ready[interpreter]) })
	}
}

// Cold reports whether the interpreters are still to be compiled on this machine. That begins in the background after the first Try, or
// with the first space: a daemon that starts would only wait for the processors. Commands that want an interpreter wait for it then, and
// say so.
func (t *Tier) Cold() bool { return !t.ready() && !t.kept() }

// kept reports whether what lies in the cache was prepared for this build.
func (t *Tier) kept() bool {
	_, err := os.Stat(t.mark())
	return err == nil && isKept(t.files())
}

// prepare compiles the interpreters in the background, if that was not done before. The compilation is a process of its own, on one
// processor and behind everything else, and ends with the tier.
func (t *Tier) prepare() {
	t.preparing.Do(func() {
		t.compiles.began = t.o.Clock.Now()
		t.preparation.Go(func() { t.tend(t.base) })
		if t.kept() {
			close(t.prepared)
			return
		}
		t.preparation.Go(func() {
			defer close(t.prepared)
			defer t.pool.Outdate() // those that run have started without
			said, err := t.compile()
			for _, pause := range compileAgain {
				if err == nil || !t.rest(pause) {
					break
				}
				said, err = t.compile()
			}
			if err == nil {
				err = os.WriteFile(t.mark(), nil, 0o600)
			}
			if err != nil && t.base.Err() == nil {
				t.o.Logger.Error("the interpreters of nano spaces could not be prepared", "code", "interpreters_not_prepared",
					"error", fmt.Errorf("%w: %.*s", err, mostOfWords, said))
			}
		})
	})
}

// compileAgain are the pauses after which a compilation is repeated that failed: the host may have lacked memory for a moment. Without an
// interpreter its commands fail for as long as the daemon runs.
var compileAgain = [...]time.Duration{time.Second, 10 * time.Second}

// rest waits, and reports whether the tier goes on.
func (t *Tier) rest(pause time.Duration) bool {
	over, stop := t.o.Clock.NewTimer(pause)
	defer stop()
	select {
	case <-over:
		return true
	case <-t.base.Done():
		return false
	}
}

// compile has a process compile what is not in the cache. It holds the process's standard input, whose end tells it that the tier has
// ended, or the daemon.
func (t *Tier) compile() (said string, err error) {
	c := exec.CommandContext(t.base, t.o.Command[0], slices.Concat(t.o.Command[1:], []string{prepares, t.o.Cache})...)
	in, err := c.StdinPipe()
	if err != nil {
		return "", err
	}
	c.Cancel = in.Close
	c.WaitDelay = endsWithin
	out, err := c.StdoutPipe()
	if err != nil {
		return "", errors.Join(err, in.Close())
	}
	var words tail
	c.Stderr = &words
	if err := c.Start(); err != nil {
		return "", errors.Join(err, in.Close())
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		t.pool.Outdate() // workers that start from now on have it
		t.compiles.done(lines.Text())
	}
	err = errors.Join(lines.Err(), c.Wait())
	if left, bad := filepath.Glob(filepath.Join(t.o.Cache, unfinished(c.Process.Pid)+"*")); bad == nil {
		for _, name := range left {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return words.String(), err
}

// tail keeps the beginning of what a process says.
type tail struct{ strings.Builder }

func (t *tail) Write(p []byte) (int, error) {
	_, err := t.Builder.Write(p[:min(len(p), max(0, mostWords-t.Len()))])
	return len(p), err
}

// prepareFor is Prepare in a process of its own: on one processor, behind everything else, and ended by exit when in ends.
func prepareFor(ctx context.Context, cache string, in io.Reader, out io.Writer, exit func()) error {
	runtime.GOMAXPROCS(1)
	if err := machine.StepBack(niceness); err != nil {
		return fmt.Errorf("give way to others: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // an error says the same as an end: the process that started this one is gone
		exit()
	}()
	var told error
	err := Prepare(ctx, cache, func(interpreter string) {
		_, err := fmt.Fprintln(out, interpreter)
		told = errors.Join(told, err)
	})
	return errors.Join(err, told)
}

// attempt executes an order. If the order needs an interpreter that is being compiled, attempt has done nothing: it waits, says so on
// standard error, and executes the order again.
func (s *instance) attempt(within context.Context, o worker.Order, files []worker.Files,
	out func(channel string, p []byte) error) (worker.Outcome, error) {
	t := s.tier
	for {
		ready := t.ready()
		first := o
		if first.Unprepared = !ready; !ready {
			first.Done = nil // it may come back
		}
		outcome, err := t.pool.Execute(within, first, files, out)
		if outcome.NotReady == "" || err != nil || ready {
			return outcome, err
		}
		if err = s.await(within, outcome.NotReady, out); err != nil || within.Err() != nil {
			return outcome, err
		}
	}
}

// await waits for an interpreter, and says each second on standard error how long it has been compiled by now.
func (s *instance) await(within context.Context, interpreter string, out func(channel string, p []byte) error) error {
	t := s.tier
	compiled := t.compiles.ready[interpreter]
	if compiled == nil {
		return fmt.Errorf("a worker waits for %.40q, which is not an interpreter", interpreter)
	}
	told := false
	for {
		again, stop := t.o.Clock.NewTimer(tellEvery)
		select {
		case <-compiled:
		case <-t.prepared:
		case <-within.Done():
		case <-again:
			begin := ""
			if told {
				begin = "\r"
			}
			told = true
			seconds := int(t.o.Clock.Now().Sub(t.compiles.began) / time.Second)
			if err := out("stderr", fmt.Appendf(nil, "%scompiling %s for this machine, once: %d s so far", begin, interpreter,
				seconds)); err != nil {
				return err
			}
			continue
		}
		stop()
		if told {
			return out("stderr", []byte("\n"))
		}
		return nil
	}
}

// mark is a file that is there when these interpreters were prepared for this engine: by this program, or by another build of it, for
// which nothing has to be loaded again. It decides nothing but whether that is tried again.
func (t *Tier) mark() string {
	h := sha256.New()
	for _, file := range t.files() {
		fmt.Fprintln(h, filepath.Base(file))
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		for _, module := range build.Deps {
			if module.Path == enginePath {
				fmt.Fprintln(h, module.Version, module.Sum, module.Replace)
			}
		}
	}
	return filepath.Join(t.o.Cache, "prepared-"+hex.EncodeToString(h.Sum(nil)[:8]))
}

// enginePath is the module that compiles WebAssembly. Another version cannot use the code that one version has compiled.
const enginePath = "github.com/tetratelabs/wazero"

// ready reports whether the interpreters were prepared.
func (t *Tier) ready() bool {
	select {
	case <-t.prepared:
		return true
	default:
		return false
	}
}
