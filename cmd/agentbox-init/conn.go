//go:build linux

package main

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// reaching is how long a connection to a port of the space may take to stand: a program that accepts none lets it wait.
const reaching = 10 * time.Second

// conn is a connection to a port of the space.
type conn struct {
	id uint32
	of *server // from which it comes; nil for one to a port

	mu      sync.Mutex
	in, out *pump // nil before there is a socket
	dropped bool  // the daemon has given it up
}

// dial begins to open a connection to a port of the loopback interface.
func (t *table) dial(id uint32, port uint16) error {
	t.mu.Lock()
	full := len(t.conns) >= spaceinit.MaxConns
	c := &conn{id: id}
	if !full {
		t.conns[id] = c
	}
	t.mu.Unlock()
	if full {
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Unreached}, []byte("too many connections are open"))
	}
	go t.relay(c, func() error {
		if t.own(port) {
			return unix.ECONNREFUSED // what comes from the daemon does not go back to it
		}
		return c.open(port)
	})
	return nil
}

// relay sees one connection to its end.
func (t *table) relay(c *conn, open func() error) {
	err := open()
	if err == nil && t.w.Write(spaceinit.KindOpened, c.id) == nil {
		var done sync.WaitGroup
		done.Go(func() { c.in.pour(t.w, c.id) })
		if c.out.drain(t.w, c.id, spaceinit.Stdout) {
			_ = t.w.Write(spaceinit.KindData, c.id, []byte{byte(spaceinit.Stdout)}) // nothing follows
		} else {
			c.drop() // what broke takes nothing either
		}
		done.Wait()
	}
	t.mu.Lock()
	delete(t.conns, c.id)
	t.mu.Unlock()
	switch {
	case err == nil:
		_ = t.w.Write(spaceinit.KindClosed, c.id)
	case errors.Is(err, unix.ECONNREFUSED):
		_ = t.w.Write(spaceinit.KindUnreached, c.id, []byte{spaceinit.Nobody})
	case errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE):
		_ = t.w.Write(spaceinit.KindUnreached, c.id, []byte{spaceinit.Full})
	default:
		_ = t.w.Write(spaceinit.KindUnreached, c.id, []byte{spaceinit.Unreached}, []byte(err.Error()))
	}
}

// open connects to the port: on 127.0.0.1, or on ::1 if nothing listens there. Nothing else is ever connected to.
func (c *conn) open(port uint16) error {
	err := c.connect(unix.AF_INET, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
	if errors.Is(err, unix.ECONNREFUSED) {
		six := c.connect(unix.AF_INET6, &unix.SockaddrInet6{Port: int(port), Addr: [16]byte{15: 1}})
		if !errors.Is(six, unix.EAFNOSUPPORT) && !errors.Is(six, unix.EADDRNOTAVAIL) { // else there is no IPv6 in the space
			return six
		}
	}
	return err
}

func (c *conn) connect(family int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return err
	}
	err = unix.Connect(fd, to)
	if err != nil && err != unix.EINPROGRESS {
		return errors.Join(err, unix.Close(fd))
	}
	out := pumpOf(fd)
	if !c.has(nil, out) {
		return os.ErrClosed
	}
	if err == unix.EINPROGRESS {
		err = settle(out.file)
	}
	if err == nil {
		err = apart(out.file)
	}
	if err == nil {
		err = c.both(out)
	}
	if err != nil {
		out.close()
	}
	return err
}

// has notes a half of the connection, unless the daemon has given it up.
func (c *conn) has(in, out *pump) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dropped {
		in.close()
		out.close()
		return false
	}
	c.in, c.out = in, out
	return true
}

// both adds the other half: a descriptor of its own for what goes in.
func (c *conn) both(out *pump) error {
	fd, err := control(out.file, func(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) })
	if err != nil {
		return err
	}
	in := pumpOf(fd)
	in.socket = true
	if !c.has(in, out) {
		return os.ErrClosed
	}
	return nil
}

// settle waits until a socket is connected.
func settle(f *os.File) error {
	_ = f.SetWriteDeadline(time.Now().Add(reaching))
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Write(func(fd uintptr) (over bool) {
		code, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case err != nil:
			failed = err
		case code != 0:
			failed = unix.Errno(code)
		default:
			if _, err = unix.Getpeername(int(fd)); err == unix.ENOTCONN {
				return false
			}
			failed = err
		}
		return true
	})
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("the program that listens accepts no connection")
	}
	_ = f.SetWriteDeadline(time.Time{})
	return errors.Join(err, failed)
}

// apart refuses a socket that the kernel has connected to itself: nothing listens, and the port happened to be its own.
func apart(f *os.File) error {
	_, err := control(f, func(fd int) (int, error) {
		local, err := unix.Getsockname(fd)
		if err != nil {
			return 0, err
		}
		remote, err := unix.Getpeername(fd)
		if err != nil {
			return 0, err
		}
		if portOf(local) == portOf(remote) {
			return 0, unix.ECONNREFUSED
		}
		return 0, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	})
	return err
}

func portOf(a unix.Sockaddr) int {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return a.Port
	case *unix.SockaddrInet6:
		return a.Port
	}
	return 0
}

// control does something with the descriptor of a file.
func control(f *os.File, do func(fd int) (int, error)) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { n, failed = do(int(fd)) })
	return n, errors.Join(err, failed)
}

// drop gives the connection up.
func (c *conn) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = true
	c.in.drop()
	c.out.drop()
}

// handle does what a frame asks of the connection.
func (c *conn) handle(t *table, f spaceinit.Frame) error {
	switch f.Kind {
	case spaceinit.KindClose:
		c.drop()
		if c.of != nil && c.of.remove(c) {
			t.over(c)
		}
	case spaceinit.KindData:
		_, data, err := spaceinit.DecodeData(f.Body)
		if err != nil {
			return err
		}
		c.in.give(data)
	case spaceinit.KindCredit:
		_, n, err := spaceinit.DecodeCredit(f.Body)
		if err != nil {
			return err
		}
		c.out.allow(n)
	default:
		return errNotForConns
	}
	return nil
}

var errNotForConns = errors.New("a frame that is not for connections")
