// Package spaceinit is the framed protocol between a daemon and the init of a space, and the daemon's side of it.
package spaceinit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Version is the number of this protocol. It is the first thing an init says, so that a daemon never talks to an init of another build.
const Version = 5

// The bounds of the protocol. Both sides refuse what is larger and end the connection.
const (
	// MaxData is the most that one frame of output or input carries.
	MaxData = 32 << 10
	// MaxRequest is the most that one frame of the daemon holds: the kernel takes 2 MiB of arguments and environment by default.
	MaxRequest = 4 << 20
	// MaxReply is the most that one frame of the init holds.
	MaxReply = MaxData + 64
	// Window is how much output a command may have under way, and how much input: what was sent and not yet taken.
	Window = 8 * MaxData
	// MaxCommands is how many commands of one space may be under way.
	MaxCommands = 256
)

// Kind says what a frame is.
type Kind uint8

// The frames. Those of the daemon come first; Data, End and Credit go both ways.
const (
	KindSetup   Kind = 1  // daemon: Setup, once, before anything else
	KindExec    Kind = 2  // daemon: start a command; its id is new
	KindKill    Kind = 3  // daemon: end a command, with a grace in milliseconds
	KindPing    Kind = 4  // daemon: answer with KindPong
	KindSignal  Kind = 5  // daemon: send a signal to a command
	KindResize  Kind = 6  // daemon: the terminal of a command has another size
	KindDial    Kind = 7  // daemon: open a connection to a port of the loopback interface; its id is new
	KindClose   Kind = 8  // daemon: end a connection at once
	KindPorts   Kind = 9  // daemon: answer with KindListening; its id is new
	KindServe   Kind = 10 // daemon: make a socket whose connections come to the daemon; its id is new
	KindAccept  Kind = 11 // daemon: hand over the next connection of such a socket; its id is new
	KindData    Kind = 16 // a piece of a channel; an empty one of stdin ends it
	KindCredit  Kind = 17 // that many bytes of a channel were taken
	KindReady   Kind = 32 // init: the space stands
	KindStarted Kind = 33 // init: the command runs
	KindExit    Kind = 34 // init: the command and all that it started have ended
	KindRefused Kind = 35 // init: the command was not started, and why
	KindPong    Kind = 36 // init: the answer to KindPing
	KindFailed  Kind = 37 // init: the space could not be set up, and why
	KindShut    Kind = 38 // init: the command takes no more input, or the connection

	KindOpened    Kind = 39 // init: the connection stands
	KindUnreached Kind = 40 // init: the connection was not opened, and why
	KindClosed    Kind = 41 // init: the connection is over; nothing of it follows
	KindListening Kind = 42 // init: the answer to KindPorts
	KindServing   Kind = 43 // init: the socket stands, on this port
)

// Channel is one of a command's three standard streams, or its messages to the daemon. On a connection to a port, Stdin goes into the space
// and Stdout comes out.
type Channel uint8

// The channels, by their numbers as descriptors.
const (
	Stdin  Channel = 0
	Stdout Channel = 1
	Stderr Channel = 2
	Frames Channel = 3 // only of a command that has it
)

// Frame is one message.
type Frame struct {
	Kind Kind
	ID   uint32 // of the command, the connection or the question; 0 where it is about the space
	Body []byte // valid until the next frame is read
}

// ErrProtocol is wrapped by every error that says the other side does not keep to the protocol.
var ErrProtocol = errors.New("the init does not keep to its protocol")

const headSize = 9 // length of the body, kind, id

// Reader reads frames.
type Reader struct {
	r    io.Reader
	max  uint32
	head [headSize]byte
	body []byte
}

// NewReader returns a reader that refuses bodies of more than max bytes.
func NewReader(r io.Reader, maxBody int) *Reader {
	return &Reader{r: r, max: uint32(maxBody)}
}

// Next reads one frame. io.EOF means that the other side closed between two frames.
func (r *Reader) Next() (Frame, error) {
	if _, err := io.ReadFull(r.r, r.head[:]); err != nil {
		return Frame{}, err
	}
	size := binary.LittleEndian.Uint32(r.head[0:4])
	if size > r.max {
		return Frame{}, fmt.Errorf("%w: a frame of %d bytes, more than %d", ErrProtocol, size, r.max)
	}
	if uint32(cap(r.body)) < size {
		r.body = make([]byte, size)
	}
	r.body = r.body[:size]
	if _, err := io.ReadFull(r.r, r.body); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return Frame{Kind: Kind(r.head[4]), ID: binary.LittleEndian.Uint32(r.head[5:9]), Body: r.body}, nil
}

// Writer writes frames; it is safe for concurrent use.
type Writer struct {
	mu  sync.Mutex
	w   io.Writer
	buf []byte
}

// NewWriter returns a writer of frames.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes one frame whose body is the given parts, in one write.
func (w *Writer) Write(kind Kind, id uint32, parts ...[]byte) error {
	size := 0
	for _, p := range parts {
		size += len(p)
	}
	if size > MaxRequest {
		return fmt.Errorf("a frame of %d bytes, more than %d", size, MaxRequest)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf[:0], 0, 0, 0, 0, byte(kind), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(w.buf[0:4], uint32(size))
	binary.LittleEndian.PutUint32(w.buf[5:9], id)
	for _, p := range parts {
		w.buf = append(w.buf, p...)
	}
	_, err := w.w.Write(w.buf)
	if cap(w.buf) > 2*MaxReply {
		w.buf = nil
	}
	return err
}
