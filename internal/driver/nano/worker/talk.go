package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// talk is one execution, seen from the daemon.
type talk struct {
	w         *process
	files     []Files
	changes   []Changes
	printed   *printer
	limits    bound.Limits
	tentative bool
	elsewhere func(space.Lack) bool  // nil for all
	listing   map[string][]vfs.Found // folders whose lists arrive in parts
	told      int64                  // bytes that the changes take here
	displays  []space.Display
	overdue   *time.Timer   // that kills the worker whose time is over
	sent      *stopwatch    // since its order began to be sent
	took      time.Duration // from then until its code had ended
	writing   *stopwatch    // since its code has ended, nil before
	wrote     time.Duration // of that, for what took the daemon's time and not the worker's
	unsent    bool          // the worker has ended before it had the order

	mu     sync.Mutex // guards the fields below
	over   bool       // the worker is not this execution's any more
	killed *bound.Stopped
	ended  time.Duration // from sending the order until it was killed
	hang   *time.Timer   // kills a worker that does not stop on request
}

// wanting reports whether something is lacking that another tier has.
func (t *talk) wanting(lacks []space.Lack) bool {
	return len(lacks) > 0 && (t.elsewhere == nil || slices.ContainsFunc(lacks, t.elsewhere))
}

func (t *talk) execute(ctx context.Context, order []byte, limit time.Duration) (o Outcome, err error) {
	t.sent = newStopwatch()
	t.changes = make([]Changes, len(t.files))
	defer func() {
		for _, c := range t.changes {
			if c != nil {
				_ = c.Abort()
			}
		}
	}()
	defer func() { // before Abort, which may take a while
		switch {
		case t.writing != nil: // frame has set it
		case t.killed != nil: // freeing the memory of the process is no time of the command
			t.took = t.ended
		default:
			t.took = t.sent.elapsed()
		}
		o.Took = t.took
	}()
	// The daemon kills a worker that does not stop by itself at its deadline or on request.
	t.overdue = time.AfterFunc(limit+stubborn, func() { t.kill(&bound.Stopped{TimedOut: true}) })
	defer t.overdue.Stop()
	defer context.AfterFunc(ctx, t.stop)()
	t.printed.refuse = t.stop
	defer t.leave()
	for ; err == nil && len(order) > piece; order = order[piece:] {
		err = t.send(frameOrderPart, order[:piece])
	}
	if err == nil {
		err = t.send(frameOrder, order)
	}
	if err != nil { // no worker executes a part of an order
		o, err = t.lost(err)
		t.unsent = errors.Is(err, ErrEnded)
		return o, err
	}
	for {
		kind, payload, grown, err := readFrame(t.w.out, t.w.buf)
		t.w.buf = grown
		if err != nil {
			return t.lost(err)
		}
		if kind == frameEnd {
			outcome, err := decodeOutcome(payload)
			if err == nil && outcome.Crash != "" { // what broke once is not trusted again
				err = errors.New(outcome.Crash)
			}
			if err != nil || !t.leave() {
				return t.lost(err)
			}
			return t.end(outcome)
		}
		if err := t.frame(kind, payload); err != nil {
			return t.lost(err)
		}
	}
}

// kill ends the worker, unless it is another execution's by now.
func (t *talk) kill(why *bound.Stopped) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	if t.killed == nil {
		t.killed, t.ended = why, t.sent.elapsed()
	}
	t.w.kill()
}

// unhurried does what the worker waits for: the time that it takes does not count to the time in which the worker has to tell what has
// changed.
func (t *talk) unhurried(do func()) {
	if !t.overdue.Stop() { // the worker is being killed
		do()
		return
	}
	began := t.writing.elapsed()
	do()
	ended := t.writing.elapsed()
	t.wrote += ended - began
	t.overdue.Reset(max(0, telling-(ended-t.wrote)))
}

// stop tells the worker to end the execution, unless it is another one's by now. It may be called more than once, at any time.
func (t *talk) stop() {
	t.mu.Lock()
	if t.over || t.hang != nil {
		t.mu.Unlock()
		return
	}
	t.hang = time.AfterFunc(stubborn, func() { t.kill(&bound.Stopped{Canceled: true}) })
	t.mu.Unlock()
	t.w.mu.Lock() // the next order waits for it, and comes after what is written here
	defer t.w.mu.Unlock()
	t.mu.Lock()
	over := t.over
	t.mu.Unlock()
	if !over && writeFrame(t.w.w, frameStop, nil) == nil {
		_ = t.w.w.Flush()
	}
}

// leave makes the worker free for another execution: it is neither killed nor told to stop for this one any more. It reports false where
// it was killed.
func (t *talk) leave() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.hang != nil {
		t.hang.Stop()
	}
	return t.killed == nil
}

func (t *talk) send(kind byte, payload []byte) error {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()
	if err := writeFrame(t.w.w, kind, payload); err != nil {
		return err
	}
	return t.w.w.Flush()
}

// lost is an execution whose worker ended, or has to.
func (t *talk) lost(err error) (Outcome, error) {
	t.w.broken = true
	t.leave()
	if why := t.killed; why != nil { // it does not change any more
		if why.Canceled {
			return Outcome{Code: 137, Signal: "SIGKILL", Canceled: true}, nil
		}
		return Outcome{Code: 124, TimedOut: true}, nil
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return Outcome{}, f
	}
	return Outcome{}, fmt.Errorf("%w: %w", ErrEnded, err)
}

// end makes the changes, unless the execution was an attempt that lacked something.
func (t *talk) end(outcome Outcome) (o Outcome, err error) {
	o = outcome
	if o.NotReady != "" {
		if !t.printed.drop() {
			o.NotReady, o.Refused = "", "the interpreter is still being prepared; try again in a moment"
		}
		return o, nil
	}
	if t.tentative && t.wanting(o.Lacks) && !o.TimedOut && !o.Canceled && t.printed.drop() {
		o.Dropped = true
		return o, nil
	}
	if t.writing != nil {
		defer func() { o.Commit = t.writing.elapsed() }()
	}
	for _, c := range t.changes {
		if c != nil {
			if err := c.Commit(); err != nil {
				return o, err
			}
		}
	}
	o.Displays = t.displays
	return o, nil
}

// frame handles one frame: it answers a question or takes a report.
func (t *talk) frame(kind byte, payload []byte) error {
	d := decoder{b: payload}
	switch kind {
	case frameEnded: // it may have many changes
		if t.writing != nil || len(payload) > 0 {
			return errWire
		}
		t.overdue.Reset(telling)
		t.writing = newStopwatch()
		t.took = t.sent.elapsed()
		return nil
	case frameChange, frameDisplay:
		if t.writing == nil {
			return errWire
		}
	default:
		if t.writing != nil {
			return errWire
		}
	}
	switch kind {
	case frameOutput:
		if len(payload) < 1 || payload[0] != 1 && payload[0] != 2 {
			return errWire
		}
		return t.printed.print(payload[0], payload[1:])
	case frameChange:
		return t.change(payload)
	case frameDisplay:
		return t.display(payload)
	}
	mount, path := d.uint(), d.string()
	if d.err != nil || mount >= uint64(len(t.files)) {
		return errWire
	}
	files := t.files[mount]
	var reply encoder
	reply.uint(0)
	var err error
	switch kind {
	case frameList:
		err = t.list(&reply, files, fmt.Sprint(mount, " ", path), path, d.uint())
	case frameRead:
		off, want := d.int(), d.uint()
		if off < 0 || want > piece {
			return errWire
		}
		buf := make([]byte, want)
		var n int
		if n, err = files.Read(path, buf, off); errors.Is(err, io.EOF) {
			err = nil
		}
		reply.b = append(reply.b, buf[:n]...)
	case frameRoom:
		var bytes, count int64
		bytes, count, err = files.Room()
		reply.int(bytes)
		reply.int(count)
	default:
		return errWire
	}
	if e := d.done(); e != nil {
		return e
	}
	if err != nil {
		e, ok := errors.AsType[vfs.Errno](err)
		if !ok {
			return err
		}
		reply.b = reply.b[:0]
		reply.uint(uint64(e))
	}
	return t.send(frameReply, reply.b)
}

// list answers with a part of a folder.
func (t *talk) list(reply *encoder, files Files, key, path string, from uint64) error {
	found, known := t.listing[key]
	if !known || from == 0 {
		var err error
		if found, err = files.List(path); err != nil {
			return err
		}
	}
	if from > uint64(len(found)) {
		return errWire
	}
	part := found[from:]
	size := 0
	for i, f := range part {
		if size += len(f.Name) + len(f.Target) + 64; size > maxFrame/2 {
			part = part[:i]
			break
		}
	}
	more := int(from)+len(part) < len(found)
	if more {
		if t.listing == nil || len(t.listing) >= maxListings { // a worker asks for one list to its end
			t.listing = map[string][]vfs.Found{}
		}
		t.listing[key] = found
	} else {
		delete(t.listing, key)
	}
	reply.bool(more)
	reply.b = append(reply.b, encodeFound(part)...)
	return nil
}

// change takes one change; its content follows in frames of its own.
func (t *talk) change(payload []byte) error {
	mount, c, length, err := decodeChange(payload)
	if err != nil {
		return err
	}
	if mount >= len(t.files) || c.Size > t.limits.FileBytes {
		return errWire
	}
	// An execution has held its changes in memory: the content, and the names, which it reports with their folders.
	if t.told += changeBytes + int64(len(payload)) + length; t.told > 2*t.limits.MemoryBytes+maxNames {
		return errHoard
	}
	if t.changes[mount] == nil {
		if t.changes[mount], err = t.files[mount].Begin(); err != nil {
			return err
		}
	}
	content := &contents{t: t, left: length}
	if err := t.changes[mount].Add(c, content); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, content)
	return err
}

// contents reads the content after a change.
type contents struct {
	t    *talk
	left int64
	buf  []byte
}

// Len returns how many bytes are to come.
func (c *contents) Len() int64 { return c.left + int64(len(c.buf)) }

func (c *contents) Read(p []byte) (int, error) {
	for len(c.buf) == 0 {
		if c.left == 0 {
			return 0, io.EOF
		}
		kind, payload, grown, err := readFrame(c.t.w.out, c.t.w.buf)
		c.t.w.buf = grown
		if err != nil {
			return 0, err
		}
		if kind != frameContent || int64(len(payload)) > c.left || len(payload) == 0 {
			return 0, errWire
		}
		c.buf, c.left = payload, c.left-int64(len(payload))
	}
	n := copy(p, c.buf)
	c.buf = c.buf[n:]
	return n, nil
}

// WriteTo writes the rest of the content as it arrives, without another copy.
func (c *contents) WriteTo(w io.Writer) (written int64, err error) {
	for {
		if len(c.buf) == 0 {
			if _, err = c.Read(nil); err == io.EOF {
				return written, nil
			} else if err != nil {
				return written, err
			}
		}
		var n int
		c.t.unhurried(func() { n, err = w.Write(c.buf) })
		c.buf, written = c.buf[n:], written+int64(n)
		if err != nil {
			return written, err
		}
	}
}
