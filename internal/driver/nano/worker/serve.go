package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// System executes orders. It has everything that it needs before the worker gives up its rights, and keeps nothing of one execution for
// the next.
type System interface {
	// Version names, in a few words, everything besides an order and its files that the result of an execution depends on.
	Version() string
	// Execute runs an order until its code has ended. Its files come from sources, one for each mount; its output goes to out, whose channel
	// is 1 or 2. It returns the end, and a function that lists the changes of each mount; nil for none. Slow work that changes nothing is left
	// to the account's Finish.
	Execute(o Order, account *bound.Account, sources []vfs.Source, out func(channel int, p []byte) error) (Outcome, func() ([][]vfs.Change,
		error))
	// Rest is called when an execution has ended and its end was reported. It may get ready for the next one, of which it knows nothing.
	Rest()
}

// flushAfter is how long output may wait for more.
const flushAfter = 2 * time.Millisecond

// longGas is the work from which an execution reports its end with a separate write. For so long an execution that write is cheap.
const longGas = 20_000_000

// When a worker returns unused memory.
const (
	restAfter  = 5 * time.Second // without an execution
	worthBytes = 8 << 20         // of memory that was taken since it was done last
)

// server is the worker's side of the pipe.
type server struct {
	system  System
	replies chan []byte
	orders  chan work
	given   uint64 // bytes that the process had ever taken when rubbish was given back last

	mu      sync.Mutex // guards the fields below
	w       *bufio.Writer
	waiting bool // a flush is on its way
	failed  error

	running sync.Mutex
	account *bound.Account // of the execution under way, nil for none
}

// work is an order that was taken.
type work struct {
	order   Order
	account *bound.Account
}

// Serve executes the orders that come over r, one after the other, until it ends. It says that it is ready first. Where the other side is
// gone while an execution does not stop, exit is called, which does not return.
func Serve(r io.Reader, w io.Writer, s System, exit func()) error {
	srv := &server{system: s, replies: make(chan []byte), orders: make(chan work, 1), w: bufio.NewWriterSize(w, 64<<10), given: taken()}
	if err := srv.send(frameReady, []byte(cut(s.Version())), true); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		err := srv.read(bufio.NewReaderSize(r, 64<<10))
		ended <- err
		time.AfterFunc(stubborn, exit)
		srv.stop(&bound.Stopped{Canceled: true})
		close(srv.replies)
	}()
	quiet := time.NewTimer(restAfter)
	defer quiet.Stop()
	for {
		select {
		case o := <-srv.orders:
			if err := srv.execute(o.order, o.account); err != nil {
				return err
			}
			quiet.Reset(restAfter)
		case <-quiet.C:
			srv.freeMemory()
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// freeMemory gives the memory of rubbish back to the system, where there was so much of it that it is worth it: an execution may have held
// as much as its bound says, and what it leaves would be this process's until it has made as much again.
func (s *server) freeMemory() {
	if now := taken(); now-s.given >= worthBytes {
		debug.FreeOSMemory()
		s.given = now
	}
}

// taken returns how many bytes of memory the process has ever taken.
func taken() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

// read takes the frames apart: orders, replies to questions, and the order to stop.
func (s *server) read(r *bufio.Reader) error {
	var buf, order []byte
	for {
		kind, payload, grown, err := readFrame(r, buf)
		if buf = grown; err != nil {
			return err
		}
		switch kind {
		case frameOrderPart:
			if order = append(order, payload...); len(order) > maxOrder {
				return errWire
			}
		case frameOrder:
			o, err := decodeOrder(append(order, payload...))
			if order = nil; err != nil {
				return err
			}
			account := bound.New(o.Limits, o.Seed, o.Start)
			s.running.Lock()
			s.account = account
			s.running.Unlock()
			s.orders <- work{o, account}
		case frameReply:
			s.replies <- append([]byte(nil), payload...)
		case frameStop:
			s.stop(&bound.Stopped{Canceled: true})
		default:
			return errWire
		}
	}
}

// stop ends the execution under way.
func (s *server) stop(why *bound.Stopped) {
	s.running.Lock()
	defer s.running.Unlock()
	if s.account != nil {
		s.account.Stop(why)
	}
}

func (s *server) execute(o Order, account *bound.Account) error {
	timer := time.AfterFunc(o.Limits.Time, func() { account.Stop(&bound.Stopped{TimedOut: true}) })
	defer guard(account)()
	begun := newPace(account, o.Millis)
	late := watchLateness(account, begun)
	sources := make([]vfs.Source, len(o.Mounts))
	for i := range sources {
		sources[i] = &remote{server: s, mount: i, told: o.Mounts[i].told, few: o.Mounts[i].few}
	}
	account.Promise()
	outcome, changed := s.system.Execute(o, account, sources, s.output)
	timer.Stop()
	outcome.Late, outcome.LateCPU = late.end(account.Stopped())
	s.running.Lock()
	s.account = nil
	s.running.Unlock()
	outcome.Gas, outcome.Slept, outcome.CPU = account.Used(), account.Slept(), begun.used()
	_, outcome.Memory = account.Memory()
	// If collecting the changes may take a while, or the execution is late already, report the end to the waiting caller at once.
	if err := s.send(frameEnded, nil, account.Stopped() != nil || account.Used() > longGas); err != nil {
		return err
	}
	var changes [][]vfs.Change
	if changed != nil {
		var err error
		if changes, err = changed(); err != nil {
			outcome = Outcome{Crash: err.Error()}
		}
	}
	for mount, list := range changes {
		for _, c := range list {
			if err := s.change(mount, c); err != nil {
				return err
			}
		}
	}
	for _, d := range outcome.Displays {
		if err := s.display(d); err != nil {
			return err
		}
	}
	if err := s.send(frameEnd, outcome.encode(), true); err != nil {
		return err
	}
	account.Finish()
	s.system.Rest()
	return nil
}

func (s *server) change(mount int, c vfs.Change) error {
	if err := s.send(frameChange, encodeChange(mount, c), false); err != nil {
		return err
	}
	for _, p := range c.Content {
		if err := s.content(p); err != nil {
			return err
		}
	}
	return nil
}

// content writes content in frames of its own.
func (s *server) content(rest []byte) error {
	for len(rest) > 0 {
		n := min(len(rest), piece)
		if err := s.send(frameContent, rest[:n], false); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// send writes a frame, and everything that waits with flush.
func (s *server) send(kind byte, payload []byte, flush bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = writeFrame(s.w, kind, payload)
	}
	if s.failed == nil && flush {
		s.failed = s.w.Flush()
	}
	return s.failed
}

// output sends the output, soon.
func (s *server) output(channel int, p []byte) error {
	for len(p) > 0 {
		n := min(len(p), piece)
		if err := s.send(frameOutput, append([]byte{byte(channel)}, p[:n]...), false); err != nil {
			return err
		}
		p = p[n:]
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waiting {
		s.waiting = true
		time.AfterFunc(flushAfter, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.waiting = false; s.failed == nil {
				s.failed = s.w.Flush()
			}
		})
	}
	return nil
}

// ask sends a question and waits for its reply, whose first part is an error of the file system or 0.
func (s *server) ask(kind byte, payload []byte) ([]byte, error) {
	if err := s.send(kind, payload, true); err != nil {
		return nil, err
	}
	reply, ok := <-s.replies
	if !ok {
		return nil, &bound.Stopped{Canceled: true}
	}
	d := decoder{b: reply}
	if e := d.uint(); e != 0 {
		return nil, vfs.Errno(e)
	}
	return d.b, d.err
}

// remote is a folder on the other side of the pipe.
type remote struct {
	server *server
	mount  int
	told   bool // the order listed its few entries, and nobody has asked since
	few    []vfs.Found
}

var _ vfs.Source = (*remote)(nil)

func (r *remote) question(path string) encoder {
	var e encoder
	e.uint(uint64(r.mount))
	e.string(path)
	return e
}

// List returns the entries of a folder.
func (r *remote) List(dir string) ([]vfs.Found, error) {
	if r.told && dir == "." {
		r.told = false
		return r.few, nil
	}
	q := r.question(dir)
	var all []vfs.Found
	for {
		q.uint(uint64(len(all)))
		reply, err := r.server.ask(frameList, q.b)
		if err != nil {
			return nil, err
		}
		d := decoder{b: reply}
		more := d.bool()
		found, err := decodeFound(d.b)
		if err != nil || d.err != nil {
			return nil, errors.Join(err, d.err)
		}
		all = append(all, found...)
		if !more || len(found) == 0 {
			return all, nil
		}
		q = r.question(dir)
	}
}

// Read reads a file at an offset.
func (r *remote) Read(path string, p []byte, off int64) (int, error) {
	done := 0
	for done < len(p) {
		want := min(len(p)-done, piece)
		q := r.question(path)
		q.int(off + int64(done))
		q.uint(uint64(want))
		reply, err := r.server.ask(frameRead, q.b)
		if err != nil {
			return done, err
		}
		n := copy(p[done:done+want], reply)
		if done += n; n < want {
			return done, io.EOF
		}
	}
	return done, nil
}

// Room returns how much more fits.
func (r *remote) Room() (bytes, files int64, err error) {
	q := r.question("")
	reply, err := r.server.ask(frameRoom, q.b)
	if err != nil {
		return 0, 0, err
	}
	d := decoder{b: reply}
	bytes, files = d.int(), d.int()
	return bytes, files, d.done()
}

// String names the folder in messages.
func (r *remote) String() string { return fmt.Sprintf("mount %d", r.mount) }
