package wasi

import (
	"encoding/binary"
	"math"
	"time"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/vfs"
)

func (c *call) argsGet() errno         { return c.strings(c.arg) }
func (c *call) argsSizesGet() errno    { return c.sizes(c.arg) }
func (c *call) environGet() errno      { return c.strings(c.env) }
func (c *call) environSizesGet() errno { return c.sizes(c.env) }

func (c *call) sizes(all []string) errno {
	size := 0
	for _, s := range all {
		size += len(s) + 1
	}
	if e := c.put32(c.i(0), uint32(len(all))); e != success {
		return e
	}
	return c.put32(c.i(1), uint32(size))
}

func (c *call) strings(all []string) errno {
	at, buf := c.i(0), c.i(1)
	for i, s := range all {
		c.charge(int64(len(s)/bytesPerGas) + gasPerItem)
		if e := c.put32(at+uint32(i)*4, buf); e != success {
			return e
		}
		b, e := c.bytes(buf, uint32(len(s)+1))
		if e != success {
			return e
		}
		copy(b, s)
		b[len(s)] = 0
		buf += uint32(len(s) + 1)
	}
	return success
}

// The clocks.
const (
	realtime uint32 = iota
	monotonic
	processTime
	threadTime
)

// resolution is the resolution of every clock in nanoseconds: one unit of gas.
const resolution = 1

func (c *call) clockResGet() errno {
	if c.i(0) > threadTime {
		return inval
	}
	return c.put64(c.i(1), resolution)
}

func (c *call) clockTimeGet() errno {
	switch c.i(0) {
	case realtime, monotonic: // the virtual clock never goes back
		return c.put64(c.i(2), nanoseconds(c.fs.Now()))
	case processTime, threadTime:
		return c.put64(c.i(2), uint64(c.fs.Worked()))
	}
	return inval
}

func nanoseconds(t time.Time) uint64 { return uint64(max(t.UnixNano(), 0)) }

func (c *call) randomGet() errno {
	c.charge(int64(c.i(1)))
	b, e := c.bytes(c.i(0), c.i(1))
	if e == success {
		c.fs.Account().Entropy(b)
	}
	return e
}

func (c *call) schedYield() errno {
	if g := c.fs.Group(); g != nil {
		g.Yield()
	}
	if err := c.fs.Account().Check(); err != nil {
		panic(err)
	}
	return success
}

func (c *call) procExit() errno { panic(&wasm.Exit{Code: c.i(0)}) }

// procRaise does the default action of a signal: most end the program.
func (c *call) procRaise() errno {
	const (
		none   = 0
		chld   = 16
		cont   = 17
		stop   = 18
		ttou   = 21
		urg    = 22
		winch  = 27
		maxSig = 30
	)
	switch n := c.args[0] & math.MaxUint32; {
	case n > maxSig:
		return inval
	case n == none, n == chld, n == cont, n == urg, n == winch:
		return success
	case n >= stop && n <= ttou: // nobody could let it go on
		return notsup
	default:
		panic(&wasm.Exit{Code: 128 + uint32(n)})
	}
}

// sockAny refuses every function of sockets: there are none.
func (c *call) sockAny() errno {
	if _, e := c.fd(c.i(0), 0); e != success {
		return e
	}
	return notsock
}

func (c *call) sockShutdown() errno {
	if _, e := c.fd(c.i(0), 0); e != success {
		return e
	}
	if how := c.i(1); how == 0 || how > 3 {
		return inval
	}
	return notsock
}

const (
	subscriptionBytes = 48
	eventBytes        = 32

	eventClock = 0
	eventRead  = 1
	eventWrite = 2

	absolute = 1 // flag of a subscription of a clock
	hangup   = 1 // flag of an event of a descriptor
)

// subscription is one thing that poll_oneoff waits for.
type subscription struct {
	user     uint64
	kind     byte
	err      errno
	deadline time.Time
	fd       *descriptor
}

// pollOneoff waits for the first of several events. A clock never makes the host wait: if every fiber waits, the virtual clock moves on.
func (c *call) pollOneoff() errno {
	n := c.i(2)
	if n == 0 || n > maxSubscription {
		return inval
	}
	c.charge(int64(n) * gasPerItem)
	in, e := c.bytes(c.i(0), n*subscriptionBytes)
	if e != success {
		return e
	}
	if _, e := c.bytes(c.i(1), n*eventBytes); e != success {
		return e
	}
	if e := c.put32(c.i(3), 0); e != success {
		return e
	}
	subs := make([]subscription, n)
	for i := range subs {
		if subs[i], e = c.subscription(in[i*subscriptionBytes:][:subscriptionBytes]); e != success {
			return e
		}
	}
	count, e := c.events(subs)
	if count == 0 && e == success {
		var waits []vfs.Wait
		var deadline time.Time
		for _, s := range subs {
			if s.kind != eventClock {
				waits = append(waits, vfs.Wait{Handle: s.fd.handle, Write: s.kind == eventWrite})
			} else if deadline.IsZero() || s.deadline.Before(deadline) {
				deadline = s.deadline
			}
		}
		if !c.deadline.IsZero() && (deadline.IsZero() || c.deadline.Before(deadline)) {
			deadline = c.deadline
		}
		if err := c.fs.Poll(waits, deadline); err != nil {
			return numbered(err)
		}
		c.Check()
		count, e = c.events(subs)
	}
	if e != success {
		return e
	}
	return c.put32(c.i(3), count)
}

func (c *call) subscription(b []byte) (subscription, errno) {
	s := subscription{user: binary.LittleEndian.Uint64(b), kind: b[8]}
	switch s.kind {
	case eventClock:
		timeout, flags := binary.LittleEndian.Uint64(b[24:]), binary.LittleEndian.Uint16(b[40:])
		switch id := binary.LittleEndian.Uint32(b[16:]); {
		case id > threadTime || flags&^absolute != 0:
			s.err = inval
		case id > monotonic:
			s.err = notsup
		case flags&absolute != 0:
			s.deadline = time.Unix(0, int64(min(timeout, math.MaxInt64)))
		default:
			s.deadline = c.fs.Now().Add(time.Duration(min(timeout, math.MaxInt64)))
		}
	case eventRead, eventWrite:
		right := fdRead
		if s.kind == eventWrite {
			right = fdWrite
		}
		s.fd, s.err = c.fd(binary.LittleEndian.Uint32(b[16:]), pollFdReadwrite)
		if s.err == success {
			s.err = s.fd.may(right)
		}
	default:
		return s, inval
	}
	return s, success
}

// events writes the events that have happened.
func (c *call) events(subs []subscription) (count uint32, e errno) {
	now := c.fs.Now()
	for _, s := range subs {
		var bytes uint64
		var flags uint16
		if s.err == success {
			if s.kind == eventClock {
				if now.Before(s.deadline) {
					continue
				}
			} else {
				n, read, write := s.fd.handle.Ready()
				if s.kind == eventRead && !read || s.kind == eventWrite && !write {
					continue
				}
				if s.kind == eventRead {
					bytes = uint64(n)
				}
				if s.fd.handle.Ended() {
					flags = hangup
				}
			}
		}
		b, e := c.bytes(c.i(1)+count*eventBytes, eventBytes)
		if e != success {
			return 0, e
		}
		clear(b)
		binary.LittleEndian.PutUint64(b, s.user)
		binary.LittleEndian.PutUint16(b[8:], uint16(s.err))
		b[10] = s.kind
		binary.LittleEndian.PutUint64(b[16:], bytes)
		binary.LittleEndian.PutUint16(b[24:], flags)
		count++
	}
	return count, success
}
