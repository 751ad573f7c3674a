package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/host"
	"agentbox/internal/surface/httpapi/hostapi"
	"agentbox/internal/surface/httpapi/wire"
)

// early holds the listener of a daemon that opens its data directory, which may take long: a log that is rebuilt, spaces that an earlier
// daemon left, a disk that is cold. It says what the daemon does until the server takes the listener over; nobody is turned away in
// between.
type early struct {
	listener *net.TCPListener
	server   *http.Server
	ended    chan error
	phase    atomic.Pointer[string]
}

// lent is a listener that a server has for a while: after its deadline the server sees it as closed.
type lent struct{ *net.TCPListener }

// Accept implements net.Listener.
func (l lent) Accept() (net.Conn, error) {
	c, err := l.TCPListener.Accept()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = net.ErrClosed // the server would retry after an error that is a timeout
	}
	return c, err
}

// Close implements net.Listener; the listener stays open.
func (lent) Close() error { return nil }

// bind listens on the configured address.
func (a *App) bind(ctx context.Context) (*net.TCPListener, error) {
	var listener net.Listener
	err := a.lingering(ctx, func() (again bool, err error) {
		listener, err = net.Listen("tcp", a.Config.Listen)
		was, lives := a.last()
		return host.InUse(err) && !lives && was.Address == a.Config.Listen, err
	})
	if host.InUse(err) {
		return nil, fault.New(fault.Conflict, "address_in_use", "another program listens on %s", a.Config.Listen).
			With("name another address with --listen; 127.0.0.1:0 takes a free port, and the other commands find it")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "listen_invalid", "the daemon cannot listen on %s", a.Config.Listen)
	}
	return listener.(*net.TCPListener), nil
}

// listen binds the address and begins to answer.
func (a *App) listen(ctx context.Context, ids *id.Source) (*early, error) {
	listener, err := a.bind(ctx)
	if err != nil {
		return nil, err
	}
	e := &early{listener: listener, ended: make(chan error, 1)}
	says := func() string { return *e.phase.Load() }
	e.says("starts")
	handler := hostapi.Starting(wire.Config{Clock: a.clock, IDs: ids, Log: a.logger}, Version, says)
	e.server = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, MaxHeaderBytes: 32 << 10}
	e.server.SetKeepAlivesEnabled(false) // the next request of a connection is to meet the server that can work
	go func() { e.ended <- e.server.Serve(lent{listener}) }()
	return e, nil
}

func (e *early) says(phase string) { e.phase.Store(&phase) }

// does publishes the daemon's present step until it can work: on /readyz, and in daemon.json for the command line.
func (a *App) does(phase string) error {
	if a.early == nil {
		return nil
	}
	a.early.says(phase)
	return a.dir.write(stateFile, a.state(a.early.listener, phase))
}

func (a *App) state(l net.Listener, phase string) State {
	return State{Address: l.Addr().String(), PID: os.Getpid(), Started: a.clock.Now().UTC(), Version: Version, Phase: phase}
}

// handOver ends the taking of connections and returns the listener, on which new ones wait meanwhile. Those that were taken are answered: a
// server that shuts down would close them.
func (e *early) handOver() (net.Listener, error) {
	if err := e.listener.SetDeadline(time.Unix(1, 0)); err != nil {
		return nil, err
	}
	if err := <-e.ended; !errors.Is(err, net.ErrClosed) {
		return nil, err
	}
	l := e.listener
	e.listener = nil
	return l, l.SetDeadline(time.Time{})
}

// Close ends the open answers, and closes the listener unless another server has taken it over.
func (e *early) Close() error {
	if e.listener == nil {
		return e.server.Close()
	}
	err := errors.Join(e.listener.Close(), e.server.Close())
	if served := <-e.ended; !errors.Is(served, net.ErrClosed) && !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
