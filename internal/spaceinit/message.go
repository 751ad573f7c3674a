package spaceinit

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Exec is the body of KindExec.
type Exec struct {
	Argv  []string // the program and its arguments; the init looks up a name without a slash in the PATH of Env
	Env   []string // NAME=value
	Cwd   string   // absolute, in the space
	Stdin bool     // input follows in frames; otherwise it is empty

	// Terminal is the size of the terminal that the three standard streams are; nil for none. Then all output comes on Stdout, and the end of
	// the input is typed as Ctrl-D.
	Terminal *Size

	// Frames gives the command two more descriptors. Its writes to 3 come on the channel Frames, and its input comes on 4 instead of
	// the standard input. It goes with Stdin, and not with Terminal.
	Frames bool
}

// Size is the size of a terminal in characters. Neither side is 0.
type Size struct{ Cols, Rows uint16 }

// Ready is the body of KindReady: what the init could apply.
type Ready struct {
	Version  uint32
	Landlock uint32   // the interface version that it used; 0 for none
	Missing  []string // what the host refused, each in a few words
}

// Exit is the body of KindExit.
type Exit struct {
	Code   uint8 // 0 to 255; 128 + signal number for a killed process
	Signal uint8 // that ended the command's own process; 0 for none
	Killed bool  // KindKill ended it
}

// Mount is one step of building the space's tree. Targets are relative to its root, which nothing hostile has touched yet.
type Mount struct {
	Source string // a host path to bind; empty where FD or Type says what to mount
	FD     int32  // an inherited descriptor of a detached mount; -1 for none
	Type   string // proc or tmpfs
	Target string
	File   bool   // the target is a file, not a directory
	Attr   uint64 // MOUNT_ATTR_ flags; a source without any is bound as it is
	Option string // for tmpfs: size, inodes, mode
}

// File is a small file of the space's own root.
type File struct {
	Path    string
	Content string
}

// Link is a symbolic link of the space's own root.
type Link struct{ Path, Target string }

// Rlimit is a resource limit, soft and hard.
type Rlimit struct {
	Resource uint32
	Value    uint64
}

// Setup is the body of KindSetup: all that the init has to do before it takes commands.
type Setup struct {
	Hostname  string
	Scratch   string // an existing host directory on which the root is built
	Dirs      []string
	Files     []File
	Links     []Link
	Mounts    []Mount
	Folders   []string // made on what was mounted
	Masks     []string // files and directories of /proc that are hidden where they exist
	Rlimits   []Rlimit
	Writable  []string // what Landlock lets be written
	Landlock  bool
	Namespace bool // close the way to further user namespaces
	Filter    []byte
}

// encoder appends values in a fixed order; decoder takes them in the same one. Numbers are little-endian, texts and lists have a length.
type encoder struct{ b []byte }

func (e *encoder) u32(v uint32) { e.b = binary.LittleEndian.AppendUint32(e.b, v) }
func (e *encoder) u64(v uint64) { e.b = binary.LittleEndian.AppendUint64(e.b, v) }
func (e *encoder) flag(v bool) {
	if v {
		e.b = append(e.b, 1)
	} else {
		e.b = append(e.b, 0)
	}
}
func (e *encoder) text(v string) { e.u32(uint32(len(v))); e.b = append(e.b, v...) }
func (e *encoder) texts(v []string) {
	e.u32(uint32(len(v)))
	for _, s := range v {
		e.text(s)
	}
}

func (e *encoder) size(s Size) {
	e.u32(uint32(s.Cols))
	e.u32(uint32(s.Rows))
}

type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n int) []byte {
	if d.bad || n < 0 || n > len(d.b) {
		d.bad = true
		return nil
	}
	head := d.b[:n]
	d.b = d.b[n:]
	return head
}

func (d *decoder) u32() uint32 {
	if b := d.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (d *decoder) u64() uint64 {
	if b := d.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (d *decoder) byte() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) flag() bool {
	v := d.byte()
	if v > 1 {
		d.bad = true
	}
	return v == 1
}

func (d *decoder) text() string { return string(d.take(int(d.u32()))) }

func (d *decoder) size() Size {
	cols, rows := d.u32(), d.u32()
	if cols == 0 || rows == 0 || cols > math.MaxUint16 || rows > math.MaxUint16 {
		d.bad = true
	}
	return Size{uint16(cols), uint16(rows)}
}

// count reads the length of a list whose items take at least size bytes each, so that a lying length allocates nothing.
func (d *decoder) count(size int) int {
	n := int(d.u32())
	if n > len(d.b)/size {
		d.bad = true
		return 0
	}
	return n
}

func (d *decoder) texts() []string {
	n := d.count(4)
	if n == 0 {
		return nil
	}
	list := make([]string, n)
	for i := range list {
		list[i] = d.text()
	}
	return list
}

func (d *decoder) end(what string) error {
	if d.bad || len(d.b) != 0 {
		return fmt.Errorf("%w: a malformed %s", ErrProtocol, what)
	}
	return nil
}

// Encode returns the body of the frame.
func (x Exec) Encode() []byte {
	var e encoder
	e.texts(x.Argv)
	e.texts(x.Env)
	e.text(x.Cwd)
	e.flag(x.Stdin)
	e.flag(x.Terminal != nil)
	if x.Terminal != nil {
		e.size(*x.Terminal)
	}
	e.flag(x.Frames)
	return e.b
}

// DecodeExec reads the body of KindExec.
func DecodeExec(body []byte) (Exec, error) {
	d := decoder{b: body}
	x := Exec{Argv: d.texts(), Env: d.texts(), Cwd: d.text(), Stdin: d.flag()}
	if d.flag() {
		size := d.size()
		x.Terminal = &size
	}
	x.Frames = d.flag()
	if len(x.Argv) == 0 || x.Frames && (x.Terminal != nil || !x.Stdin) {
		d.bad = true
	}
	return x, d.end("command")
}

// Encode returns the body of the frame.
func (r Ready) Encode() []byte {
	var e encoder
	e.u32(r.Version)
	e.u32(r.Landlock)
	e.texts(r.Missing)
	return e.b
}

// DecodeReady reads the body of KindReady.
func DecodeReady(body []byte) (Ready, error) {
	d := decoder{b: body}
	r := Ready{Version: d.u32(), Landlock: d.u32(), Missing: d.texts()}
	return r, d.end("greeting")
}

// Encode returns the body of the frame.
func (x Exit) Encode() []byte {
	e := encoder{b: []byte{x.Code, x.Signal}}
	e.flag(x.Killed)
	return e.b
}

// DecodeExit reads the body of KindExit.
func DecodeExit(body []byte) (Exit, error) {
	d := decoder{b: body}
	x := Exit{Code: d.byte(), Signal: d.byte(), Killed: d.flag()}
	if x.Signal > LastSignal {
		d.bad = true
	}
	return x, d.end("exit")
}

// EncodeKill returns the body of KindKill.
func EncodeKill(grace time.Duration) []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(grace.Milliseconds()))
}

// DecodeKill reads the body of KindKill.
func DecodeKill(body []byte) (time.Duration, error) {
	d := decoder{b: body}
	ms := d.u32()
	return time.Duration(ms) * time.Millisecond, d.end("kill")
}

// LastSignal is the highest number of a signal.
const LastSignal = 64

// EncodeSignal returns the body of KindSignal.
func EncodeSignal(number uint8) []byte { return []byte{number} }

// DecodeSignal reads the body of KindSignal.
func DecodeSignal(body []byte) (uint8, error) {
	d := decoder{b: body}
	number := d.byte()
	if number == 0 || number > LastSignal {
		d.bad = true
	}
	return number, d.end("signal")
}

// EncodeResize returns the body of KindResize.
func EncodeResize(s Size) []byte {
	var e encoder
	e.size(s)
	return e.b
}

// DecodeResize reads the body of KindResize.
func DecodeResize(body []byte) (Size, error) {
	d := decoder{b: body}
	s := d.size()
	return s, d.end("size")
}

// EncodeCredit returns the body of KindCredit.
func EncodeCredit(c Channel, n int) []byte {
	return binary.LittleEndian.AppendUint32([]byte{byte(c)}, uint32(n))
}

// DecodeCredit reads the body of KindCredit.
func DecodeCredit(body []byte) (Channel, int, error) {
	d := decoder{b: body}
	c, n := Channel(d.byte()), int(d.u32())
	if c > Frames || n > Window {
		d.bad = true
	}
	return c, n, d.end("credit")
}

// DecodeData reads the body of KindData. The bytes are a part of body.
func DecodeData(body []byte) (Channel, []byte, error) {
	if len(body) < 1 || len(body) > 1+MaxData || Channel(body[0]) > Frames {
		return 0, nil, fmt.Errorf("%w: malformed data", ErrProtocol)
	}
	return Channel(body[0]), body[1:], nil
}

// Encode returns the body of the frame.
func (s *Setup) Encode() []byte {
	var e encoder
	e.text(s.Hostname)
	e.text(s.Scratch)
	e.texts(s.Dirs)
	e.u32(uint32(len(s.Files)))
	for _, f := range s.Files {
		e.text(f.Path)
		e.text(f.Content)
	}
	e.u32(uint32(len(s.Links)))
	for _, l := range s.Links {
		e.text(l.Path)
		e.text(l.Target)
	}
	e.u32(uint32(len(s.Mounts)))
	for _, m := range s.Mounts {
		e.text(m.Source)
		e.u32(uint32(m.FD))
		e.text(m.Type)
		e.text(m.Target)
		e.flag(m.File)
		e.u64(m.Attr)
		e.text(m.Option)
	}
	e.texts(s.Folders)
	e.texts(s.Masks)
	e.u32(uint32(len(s.Rlimits)))
	for _, r := range s.Rlimits {
		e.u32(r.Resource)
		e.u64(r.Value)
	}
	e.texts(s.Writable)
	e.flag(s.Landlock)
	e.flag(s.Namespace)
	e.text(string(s.Filter))
	return e.b
}

// DecodeSetup reads the body of KindSetup.
func DecodeSetup(body []byte) (*Setup, error) {
	d := decoder{b: body}
	s := &Setup{Hostname: d.text(), Scratch: d.text(), Dirs: d.texts()}
	for range d.count(8) {
		s.Files = append(s.Files, File{Path: d.text(), Content: d.text()})
	}
	for range d.count(8) {
		s.Links = append(s.Links, Link{Path: d.text(), Target: d.text()})
	}
	for range d.count(29) {
		s.Mounts = append(s.Mounts, Mount{
			Source: d.text(), FD: int32(d.u32()), Type: d.text(), Target: d.text(), File: d.flag(), Attr: d.u64(), Option: d.text(),
		})
	}
	s.Folders, s.Masks = d.texts(), d.texts()
	for range d.count(12) {
		s.Rlimits = append(s.Rlimits, Rlimit{Resource: d.u32(), Value: d.u64()})
	}
	s.Writable, s.Landlock, s.Namespace, s.Filter = d.texts(), d.flag(), d.flag(), []byte(d.text())
	return s, d.end("setup")
}
