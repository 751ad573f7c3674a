//go:build linux

package main

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

// backlog is how many connections to the daemon the kernel holds until they are taken.
const backlog = 64

// server is a socket of the loopback interface whose connections go to the daemon.
type server struct {
	port uint16
	file *os.File

	mu      sync.Mutex
	changed *sync.Cond
	waiting []*conn // that the daemon has asked for, the oldest first
	closed  bool
}

// serve makes a server on a port that the kernel chooses.
func (t *table) serve(id uint32) error {
	t.mu.Lock()
	full := len(t.servers) >= spaceinit.MaxServers
	t.mu.Unlock()
	if full {
		why := []byte("the space has as many sockets to the daemon as it may")
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Unreached}, why)
	}
	s, err := newServer()
	if errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) {
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Full})
	}
	if err != nil {
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Unreached}, []byte(err.Error()))
	}
	t.mu.Lock()
	t.servers[id] = s
	t.mu.Unlock()
	if err := t.w.Write(spaceinit.KindServing, id, spaceinit.EncodePort(s.port)); err != nil {
		return err
	}
	go func() {
		s.run(t)
		t.mu.Lock()
		delete(t.servers, id)
		t.mu.Unlock()
		_ = t.w.Write(spaceinit.KindClosed, id)
	}()
	return nil
}

func newServer() (*server, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	s := &server{file: os.NewFile(uintptr(fd), "server")}
	s.changed = sync.NewCond(&s.mu)
	if err = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err == nil {
		err = unix.Listen(fd, backlog)
	}
	if err == nil {
		var at unix.Sockaddr
		if at, err = unix.Getsockname(fd); err == nil {
			s.port = uint16(portOf(at))
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.file.Close())
	}
	return s, nil
}

// run takes connections until the server is closed, one for each that the daemon has asked for.
func (s *server) run(t *table) {
	defer func() {
		for _, c := range s.close() {
			t.over(c)
		}
	}()
	for {
		fd, err := s.next()
		if err != nil {
			return
		}
		c := s.waiter()
		if c == nil {
			_ = unix.Close(fd)
			return
		}
		go t.relay(c, func() error { return c.given(fd) })
	}
}

// next accepts a connection.
func (s *server) next() (int, error) {
	raw, err := s.file.SyscallConn()
	if err != nil {
		return -1, err
	}
	for {
		fd := -1
		var failed error
		err := raw.Read(func(at uintptr) bool {
			fd, _, failed = unix.Accept4(int(at), unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
			return failed != unix.EAGAIN
		})
		switch {
		case err != nil:
			return -1, err
		case failed == nil:
			return fd, nil
		case errors.Is(failed, unix.ECONNABORTED) || errors.Is(failed, unix.EINTR):
		default: // the space has as many open files, or as much memory, as it may
			<-time.After(100 * time.Millisecond)
		}
	}
}

// waiter returns the connection that has waited longest, and waits for one; nil once the server is closed.
func (s *server) waiter() *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.waiting) == 0 && !s.closed {
		s.changed.Wait()
	}
	if s.closed {
		return nil
	}
	c := s.waiting[0]
	s.waiting = s.waiting[1:]
	return c
}

// close ends the server and returns the connections that still wait.
func (s *server) close() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changed.Broadcast()
	_ = s.file.Close() // it wakes next
	left := s.waiting
	s.waiting = nil
	return left
}

// add lets a connection wait; false once the server is closed.
func (s *server) add(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.waiting = append(s.waiting, c)
	s.changed.Broadcast()
	return true
}

// remove takes back a connection that waits; false where it does not.
func (s *server) remove(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := slices.Index(s.waiting, c)
	if at < 0 {
		return false
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	return true
}

// accept hands the next connection of a server to the daemon.
func (t *table) accept(id, of uint32) error {
	t.mu.Lock()
	s := t.servers[of]
	full := len(t.conns) >= spaceinit.MaxConns
	c := &conn{id: id, of: s}
	if s != nil && !full {
		t.conns[id] = c
	}
	t.mu.Unlock()
	switch {
	case s == nil:
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Nobody})
	case full:
		return t.w.Write(spaceinit.KindUnreached, id, []byte{spaceinit.Unreached}, []byte("too many connections are open"))
	case !s.add(c):
		t.over(c)
	}
	return nil
}

// over tells the daemon that a connection which never stood is over.
func (t *table) over(c *conn) {
	t.mu.Lock()
	delete(t.conns, c.id)
	t.mu.Unlock()
	_ = t.w.Write(spaceinit.KindClosed, c.id)
}

// given makes a connection of an accepted socket.
func (c *conn) given(fd int) error {
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	out := pumpOf(fd)
	if !c.has(nil, out) {
		return os.ErrClosed
	}
	err := c.both(out)
	if err != nil {
		out.close()
	}
	return err
}

// own reports whether a port is one on which the daemon is served.
func (t *table) own(port uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.servers {
		if s.port == port {
			return true
		}
	}
	return false
}

// others are the listening sockets that are not the daemon's.
func (t *table) others(all []spaceinit.Listening) []spaceinit.Listening {
	return slices.DeleteFunc(all, func(l spaceinit.Listening) bool { return !l.Six && !l.Any && t.own(l.Port) })
}
