// Package worker runs executions in processes of their own: copies of this program that have given up everything but the pipe to the
// daemon.
//
// The daemon sends an order for each execution. While it runs, the worker asks for the files that it touches and sends the output. At the
// end it lists the changed files. Frames of a worker are hostile input: the daemon bounds them, and the space's files check every path.
package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// Version is the first byte of every frame, so that the other side recognises a worker of another build.
const Version = 2

// Bounds of the wire.
const (
	maxFrame = 1 << 20   // bytes of one frame
	maxOrder = 64 << 20  // bytes of an order, its input included
	piece    = 256 << 10 // of content in one frame
)

// The frames. A worker begins with ready; then each order is answered by any number of its questions and tellings, and ended.
const (
	frameReady byte = iota + 1
	frameOrder
	frameReply
	frameStop
	frameList
	frameRead
	frameRoom
	frameOutput
	frameChange
	frameContent
	frameEnd
	frameOrderPart // what did not fit into frameOrder follows before it
	frameDisplay   // its content follows in frames of content
	frameEnded     // the code has ended; the changes, the displays and the end follow
)

// errWire means a frame that no correct worker writes.
var errWire = errors.New("the worker's pipe carries what is not a frame")

// encoder appends to a frame.
type encoder struct{ b []byte }

func (e *encoder) uint(v uint64)    { e.b = binary.AppendUvarint(e.b, v) }
func (e *encoder) int(v int64)      { e.b = binary.AppendVarint(e.b, v) }
func (e *encoder) bytes(p []byte)   { e.uint(uint64(len(p))); e.b = append(e.b, p...) }
func (e *encoder) string(s string)  { e.uint(uint64(len(s))); e.b = append(e.b, s...) }
func (e *encoder) time(t time.Time) { e.int(t.UnixNano()) }
func (e *encoder) strings(s []string) {
	e.uint(uint64(len(s)))
	for _, x := range s {
		e.string(x)
	}
}

func (e *encoder) bool(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}

// decoder takes from a frame. After something that is not there, everything is zero and err says so.
type decoder struct {
	b   []byte
	err error
}

func (d *decoder) fail() { d.b, d.err = nil, errWire }

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail()
		return 0
	}
	d.b = d.b[n:]
	return v
}

// bytes returns a part of the frame. A caller that keeps it must copy it.
func (d *decoder) bytes() []byte {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) string() string { return string(d.bytes()) }

func (d *decoder) bool() bool {
	if len(d.b) == 0 {
		d.fail()
		return false
	}
	v := d.b[0]
	d.b = d.b[1:]
	return v == 1
}

func (d *decoder) time() time.Time { return time.Unix(0, d.int()).UTC() }

// count returns how many follow, each of at least one byte.
func (d *decoder) count() int {
	n := d.uint()
	if n > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(n)
}

func (d *decoder) strings() []string {
	all := make([]string, d.count())
	for i := range all {
		all[i] = d.string()
	}
	return all
}

// done returns the error of the frame; bytes left over are one.
func (d *decoder) done() error {
	if d.err == nil && len(d.b) > 0 {
		d.err = errWire
	}
	return d.err
}

// writeFrame writes a frame: the version, its kind, its length, its bytes.
func writeFrame(w *bufio.Writer, kind byte, payload []byte) error {
	if len(payload) > maxFrame {
		return fmt.Errorf("a frame of %d bytes", len(payload))
	}
	var head [6]byte
	head[0], head[1] = Version, kind
	binary.LittleEndian.PutUint32(head[2:], uint32(len(payload)))
	if _, err := w.Write(head[:]); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readFrame reads a frame into buf, which it may grow and returns.
func readFrame(r *bufio.Reader, buf []byte) (kind byte, payload, grown []byte, err error) {
	var head [6]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, buf, err
	}
	n := binary.LittleEndian.Uint32(head[2:])
	if head[0] != Version || n > maxFrame {
		return 0, nil, buf, errWire
	}
	if int(n) > cap(buf) {
		buf = make([]byte, n)
	}
	payload = buf[:n]
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, buf, fmt.Errorf("%w: it ends in a frame", errWire)
	}
	return head[1], payload, buf, nil
}

// Order is a request for one execution.
type Order struct {
	Argv   []string
	Env    []string // name=value
	Cwd    string   // absolute
	Stdin  []byte
	Seed   [32]byte
	Start  time.Time // of the virtual clock
	Limits bound.Limits
	Millis int64 // thousandths of a processor that it may take
	Mounts []Mount

	// Done is called when nothing of the execution runs any more and its changes are in place. Its output may still be on its way to a slow
	// reader. Done may be nil. Only the daemon has this field and the next ones.
	Done func()

	// Tentative drops the changes and the output of an execution that wanted something that this tier lacks.
	Tentative bool
	// Elsewhere reports whether another tier has the lacking thing. An execution is dropped only if it does. Nil means that it always does.
	Elsewhere func(space.Lack) bool
	// Unprepared says that an interpreter may still be missing: an execution that wants it is dropped, with NotReady.
	Unprepared bool
}

// Mount is a folder of the space's in the tree that the execution sees.
type Mount struct {
	Path string
	Disk bool // its room is the bound disk_bytes

	told bool // what is in it is few
	few  []vfs.Found
}

func (o *Order) encode() []byte {
	var e encoder
	e.strings(o.Argv)
	e.strings(o.Env)
	e.string(o.Cwd)
	e.bytes(o.Stdin)
	e.b = append(e.b, o.Seed[:]...)
	e.time(o.Start)
	l := o.Limits
	for _, v := range []int64{l.Gas, int64(l.Time), l.MemoryBytes, l.OutputBytes, l.FileBytes, l.OpenFiles, l.Depth} {
		e.int(v)
	}
	e.int(o.Millis)
	e.uint(uint64(len(o.Mounts)))
	for _, m := range o.Mounts {
		e.string(m.Path)
		e.bool(m.Disk)
		e.bool(m.told)
		if m.told {
			e.bytes(encodeFound(m.few))
		}
	}
	return e.b
}

func decodeOrder(b []byte) (Order, error) {
	d := decoder{b: b}
	o := Order{Argv: d.strings(), Env: d.strings(), Cwd: d.string()}
	o.Stdin = append([]byte(nil), d.bytes()...)
	if len(d.b) < len(o.Seed) {
		d.fail()
	}
	d.b = d.b[copy(o.Seed[:], d.b):]
	o.Start = d.time()
	l := &o.Limits
	for _, v := range []*int64{&l.Gas, (*int64)(&l.Time), &l.MemoryBytes, &l.OutputBytes, &l.FileBytes, &l.OpenFiles, &l.Depth} {
		*v = d.int()
	}
	o.Millis = d.int()
	o.Mounts = make([]Mount, d.count())
	for i := range o.Mounts {
		m := &o.Mounts[i]
		m.Path, m.Disk, m.told = d.string(), d.bool(), d.bool()
		if m.told {
			var err error
			if m.few, err = decodeFound(d.bytes()); err != nil {
				return o, err
			}
		}
	}
	return o, d.done()
}

// Outcome is how an execution ended.
type Outcome struct {
	Code     int
	Signal   string
	Limit    string // the bound that it hit, if any
	TimedOut bool
	Canceled bool
	Gas      int64
	Slept    time.Duration
	CPU      time.Duration // of the worker's processor time
	Took     time.Duration // from sending the order until its code had ended; measured by the daemon
	Commit   time.Duration // time to send and make the changes; measured by the daemon
	Late     time.Duration // from the bound that ended it until it had ended, on the wall
	LateCPU  time.Duration // the worker's processor time in that
	Memory   int64         // the most that was held at once
	Lacks    []space.Lack
	Version  string          // of what executed it
	Dropped  bool            // it was tentative and lacked something: nothing of it is left
	NotReady string          // the interpreter that it wanted and that is still being prepared: nothing of it is left
	Displays []space.Display // told before the end
	Refused  string          // why the command was not started, "" where it was
	Crash    string          // what broke in a guest or in us, "" for nothing
}

// Bounds of the fields of an outcome, which a worker may have forged.
const (
	maxLacks = 32
	maxWord  = 500
)

func (o *Outcome) encode() []byte {
	var e encoder
	e.int(int64(o.Code))
	e.string(o.Signal)
	e.string(o.Limit)
	e.bool(o.TimedOut)
	e.bool(o.Canceled)
	e.int(o.Gas)
	e.int(int64(o.Slept))
	e.int(int64(o.CPU))
	e.int(o.Memory)
	e.int(int64(o.Late))
	e.int(int64(o.LateCPU))
	lacks := o.Lacks[:min(len(o.Lacks), maxLacks)]
	e.uint(uint64(len(lacks)))
	for _, l := range lacks {
		e.string(cut(l.Kind))
		e.string(cut(l.Name))
		e.string(cut(l.Detail))
	}
	e.string(cut(o.NotReady))
	e.string(cut(o.Refused))
	e.string(cut(o.Crash))
	return e.b
}

func cut(s string) string { return s[:min(len(s), maxWord)] }

func decodeOutcome(b []byte) (Outcome, error) {
	d := decoder{b: b}
	o := Outcome{
		Code: int(d.int() & 0xff), Signal: cut(d.string()), Limit: cut(d.string()), TimedOut: d.bool(), Canceled: d.bool(),
		Gas: max(d.int(), 0), Slept: time.Duration(max(d.int(), 0)), CPU: time.Duration(max(d.int(), 0)), Memory: max(d.int(), 0),
		Late: time.Duration(max(d.int(), 0)), LateCPU: time.Duration(max(d.int(), 0)),
	}
	n := d.count()
	if n > maxLacks {
		d.fail()
		n = 0
	}
	for range n {
		o.Lacks = append(o.Lacks, space.Lack{Kind: cut(d.string()), Name: cut(d.string()), Detail: cut(d.string())})
	}
	o.NotReady = cut(d.string())
	o.Refused, o.Crash = cut(d.string()), cut(d.string())
	return o, d.done()
}

func encodeFound(found []vfs.Found) []byte {
	var e encoder
	e.uint(uint64(len(found)))
	for _, f := range found {
		e.string(f.Name)
		e.uint(uint64(f.Kind))
		e.uint(uint64(f.Mode))
		e.int(f.Size)
		e.time(f.Modified)
		e.string(f.Target)
		e.uint(f.Same)
		e.uint(uint64(f.Links))
	}
	return e.b
}

func decodeFound(b []byte) ([]vfs.Found, error) {
	d := decoder{b: b}
	found := make([]vfs.Found, d.count())
	for i := range found {
		found[i] = vfs.Found{
			Name: d.string(), Kind: vfs.Kind(d.uint()), Mode: uint32(d.uint()), Size: d.int(), Modified: d.time(), Target: d.string(),
			Same:  d.uint(),
			Links: int(d.uint() & math.MaxInt32),
		}
	}
	return found, d.done()
}

func encodeChange(mount int, c vfs.Change) []byte {
	var e encoder
	e.uint(uint64(mount))
	e.uint(uint64(c.Op))
	e.string(c.Path)
	e.uint(uint64(c.Slot))
	e.uint(uint64(c.Mode))
	e.bool(!c.Modified.IsZero())
	if !c.Modified.IsZero() {
		e.time(c.Modified)
	}
	e.string(c.Target)
	e.bool(c.Keep)
	e.int(c.Size)
	length := 0
	for _, p := range c.Content {
		length += len(p)
	}
	e.uint(uint64(length))
	return e.b
}

// decodeChange returns a change whose content follows.
func decodeChange(b []byte) (mount int, c vfs.Change, length int64, err error) {
	d := decoder{b: b}
	m := d.uint()
	c = vfs.Change{Op: vfs.Op(d.uint()), Path: d.string(), Slot: int(d.uint() & math.MaxInt32), Mode: uint32(d.uint() & 0o7777)}
	if d.bool() {
		c.Modified = d.time()
	}
	c.Target, c.Keep, c.Size = d.string(), d.bool(), d.int()
	n := d.uint()
	if n > math.MaxInt64 || c.Size < 0 || int64(n) > c.Size || n > 0 && c.Op != vfs.WriteFile || m > 255 {
		d.fail()
	}
	return int(m), c, int64(n), d.done()
}
