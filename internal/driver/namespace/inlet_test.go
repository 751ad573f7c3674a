//go:build linux

package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/spaceinit"
)

// asking is a space with a port that leads to the test.
func asking(t *testing.T) (spacetest.Host, space.Spec, space.Instance, space.Inlet) {
	t.Helper()
	h := host(t)
	spec := h.Spec(t)
	i := h.Create(t, spec)
	in, err := i.(space.Asking).Inlet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return h, spec, i, in
}

// runIn executes a program of Python in the space.
func runIn(t *testing.T, h spacetest.Host, spec space.Spec, i space.Instance, port int, program string) (string, space.Exit) {
	t.Helper()
	c := spacetest.Shell(spec.ID, "exec python3 -u -c \"$PROGRAM\"")
	a := c.Action()
	a.Env = map[string]string{"PROGRAM": program, "PORT": fmt.Sprint(port), "PATH": "/usr/local/bin:/usr/bin:/bin"}
	a.TimeoutMS = 60_000
	var said strings.Builder
	exit, err := i.Exec(t.Context(), h.Permit(a), nil, func(_ string, data []byte) error {
		said.Write(data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return said.String(), exit
}

// TestInletCarriesBytes lets a program of the space send megabytes to the daemon and get them back, on many connections at once.
func TestInletCarriesBytes(t *testing.T) {
	h, spec, i, in := asking(t)
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for {
			c, err := in.Accept(context.Background())
			if err != nil {
				if !errors.Is(err, space.ErrPortClosed) {
					t.Errorf("accept: %v", err)
				}
				return
			}
			all.Go(func() {
				_, _ = io.Copy(c, c)
				_ = c.CloseWrite()
				_ = c.Close()
			})
		}
	})
	said, exit := runIn(t, h, spec, i, in.Port(), `
import os, socket, threading
bad = []
def talk(n):
    s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
    sent = (b"%07d\n" % n) * (128 << 10)
    def send():
        s.sendall(sent)
        s.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send)
    t.start()
    got = bytearray()
    while (b := s.recv(65536)): got += b
    t.join()
    if got != sent: bad.append((n, len(got)))
threads = [threading.Thread(target=talk, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(bad)
`)
	if said != "[]\n" || exit.Code != 0 {
		t.Errorf("got %q, %+v", said, exit)
	}
	in.Close()
}

// TestInletsOfASpace holds that the port is on loopback only, is not listed, leads back to nobody, is bounded, and ends.
func TestInletsOfASpace(t *testing.T) {
	h, spec, i, in := asking(t)
	ports, err := i.(space.Reachable).Ports(t.Context())
	if err != nil || len(ports) != 0 {
		t.Errorf("the listed ports: %v, %v", ports, err)
	}
	if _, err := open(t, h, i, spec, in.Port()).Dial(t.Context()); !errors.Is(err, space.ErrPortSilent) {
		t.Errorf("from the daemon to itself: %v", err)
	}
	var more []space.Inlet
	for range spaceinit.MaxServers - 1 {
		next, err := i.(space.Asking).Inlet(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, next)
	}
	if _, err := i.(space.Asking).Inlet(t.Context()); !errors.Is(err, space.ErrPortUnreachable) {
		t.Errorf("one more than may be: %v", err)
	}
	for _, one := range more {
		one.Close()
	}
	// A waiting call ends with its context, and takes no connection away from the next.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := in.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	taken := make(chan error, 1)
	go func() {
		c, err := in.Accept(context.Background())
		if err == nil {
			_, err = io.WriteString(c, "hello")
			err = errors.Join(err, c.CloseWrite())
		}
		taken <- err
	}()
	const ask = `
import os, socket
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])), timeout=20)
print(s.recv(100))
`
	if said, exit := runIn(t, h, spec, i, in.Port(), ask); said != "b'hello'\n" {
		t.Errorf("got %q, %+v", said, exit)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
	waits := make(chan error, 1)
	go func() {
		_, err := in.Accept(context.Background())
		waits <- err
	}()
	in.Close()
	if err := <-waits; !errors.Is(err, space.ErrPortClosed) {
		t.Errorf("a call at a port that is closed: %v", err)
	}
	for said := ""; !strings.Contains(said, "refused"); { // the init closes it a moment later
		said, _ = runIn(t, h, spec, i, in.Port(), strings.Replace(ask, "print(s.recv(100))", "", 1))
		if t.Context().Err() != nil {
			t.Fatalf("a closed port takes connections: %q", said)
		}
	}
	next, err := i.(space.Asking).Inlet(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := next.Accept(context.Background())
		waits <- err
	}()
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waits; !errors.Is(err, space.ErrPortClosed) {
		t.Errorf("a call at a space that has ended: %v", err)
	}
}
