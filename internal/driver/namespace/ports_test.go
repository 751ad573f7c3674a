//go:build linux

package namespace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/spaceinit"
)

// serving is a space in which a program of Python listens.
type serving struct {
	t     *testing.T
	host  spacetest.Host
	spec  space.Spec
	space space.Instance
}

// serve starts a space, and in it the program, until the test ends. Its first line of output says that it listens.
func serve(t *testing.T, program string) *serving {
	t.Helper()
	h := host(t)
	spec := h.Spec(t)
	s := &serving{t, h, spec, h.Create(t, spec)}
	ctx, stop := context.WithCancel(t.Context())
	c := spacetest.Shell(spec.ID, "exec python3 -u -c \"$PROGRAM\"")
	a := c.Action()
	a.Env = map[string]string{"PROGRAM": program, "PATH": "/usr/local/bin:/usr/bin:/bin"}
	said, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		exit, err := s.space.Exec(ctx, h.Permit(a), nil, func(_ string, data []byte) error {
			select {
			case said <- string(data):
			default:
			}
			return nil
		})
		if err == nil && !exit.Canceled {
			select {
			case said <- fmt.Sprintf("it ended: %+v", exit):
			default:
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case first := <-said:
		if !strings.HasPrefix(first, "listening") {
			t.Fatalf("the program says %q", first)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the program does not listen")
	}
	return s
}

func (s *serving) door(port int) space.Door {
	s.t.Helper()
	return open(s.t, s.host, s.space, s.spec, port)
}

func open(t *testing.T, h spacetest.Host, i space.Instance, spec space.Spec, port int) space.Door {
	t.Helper()
	d, err := i.(space.Reachable).Expose(h.Permit(expose(spec, fmt.Sprint(port))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d
}

func expose(spec space.Spec, port string) policy.Action {
	return policy.Action{
		Type: policy.PortExpose, Workspace: "ws_dev", Principal: "usr_01M7YNAYM0SMK245AEDNVB5CNW", Space: spec.ID, Target: port,
	}
}

func dial(t *testing.T, d space.Door) space.Conn {
	t.Helper()
	c, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

const echo = `
import asyncio
async def echo(r, w):
    while (b := await r.read(65536)):
        w.write(b)
        await w.drain()
    w.close()
async def main():
    await asyncio.start_server(echo, "127.0.0.1", 8080, backlog=100)
    await asyncio.start_server(echo, "::1", 8081)
    await asyncio.start_server(echo, "0.0.0.0", 8082)
    print("listening")
    await asyncio.Event().wait()
asyncio.run(main())
`

// TestPortIsReached sends megabytes through a port of the space in both directions, and ends what is sent before what comes back.
func TestPortIsReached(t *testing.T) {
	s := serve(t, echo)
	for _, port := range []int{8080, 8081, 8082} {
		c := dial(t, s.door(port))
		sent := strings.Repeat(fmt.Sprintf("%07d\n", port), 4<<20/8) // 16 times the window
		failed := make(chan error, 1)
		go func() {
			_, err := io.WriteString(c, sent)
			failed <- errors.Join(err, c.CloseWrite())
		}()
		got, err := io.ReadAll(c)
		if err != nil || string(got) != sent {
			t.Errorf("port %d: got %d bytes, %v, want the %d that were sent", port, len(got), err, len(sent))
		}
		if err := <-failed; err != nil {
			t.Errorf("port %d: send: %v", port, err)
		}
	}
}

// TestListeningPorts lists the ports with their addresses, and none that is not listened on.
func TestListeningPorts(t *testing.T) {
	s := serve(t, echo)
	got, err := s.space.(space.Reachable).Ports(t.Context())
	want := "[{8080 [127.0.0.1]} {8081 [::1]} {8082 [0.0.0.0]}]"
	if err != nil || fmt.Sprint(got) != want {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
}

// TestPortsOfASpace holds what the connections of a space cannot be: to nobody, to the daemon's host, more than their bound, and after
// their door is closed.
func TestPortsOfASpace(t *testing.T) {
	s := serve(t, echo)
	ctx := t.Context()
	if _, err := s.door(9).Dial(ctx); !errors.Is(err, space.ErrPortSilent) {
		t.Errorf("a port on which nobody listens: got %v, want %v", err, space.ErrPortSilent)
	}
	d := s.door(8080)
	var open []space.Conn
	for range spaceinit.MaxConns {
		open = append(open, dial(t, d))
	}
	if _, err := d.Dial(ctx); !errors.Is(err, space.ErrPortBusy) {
		t.Errorf("one connection more than may be: got %v, want %v", err, space.ErrPortBusy)
	}
	_ = open[0].Close()
	for { // the init says that it is over
		c, err := d.Dial(ctx)
		if err == nil {
			open = append(open, c)
			break
		}
		if !errors.Is(err, space.ErrPortBusy) {
			t.Fatal(err)
		}
	}
	d.Drop()
	for i, c := range open {
		if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("connection %d can be read after it was dropped: %v", i, err)
		}
	}
	for { // they end one by one
		c, err := d.Dial(ctx)
		if err == nil {
			_ = c.Close()
			break
		}
		if !errors.Is(err, space.ErrPortBusy) {
			t.Fatal(err)
		}
	}
	d.Close()
	if _, err := d.Dial(ctx); !errors.Is(err, space.ErrPortClosed) {
		t.Errorf("a closed door: got %v, want %v", err, space.ErrPortClosed)
	}
}

// TestPortsTakeAPermit opens no port without the permit for just that one.
func TestPortsTakeAPermit(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec).(space.Reachable)
	for name, a := range map[string]policy.Action{
		"another space":  func() policy.Action { a := expose(spec, "80"); a.Space = "spc_01M7YNAYM0SMK245AEDNVB5CNW"; return a }(),
		"another action": func() policy.Action { a := expose(spec, "80"); a.Type = policy.SpaceUpdate; return a }(),
		"port 0":         expose(spec, "0"),
		"port 65536":     expose(spec, "65536"),
		"no port":        expose(spec, ""),
		"a host":         expose(spec, "10.0.0.1:80"),
		"a sign":         expose(spec, "+80"),
		"a zero before":  expose(spec, "080"),
	} {
		if _, err := s.Expose(h.Permit(a)); err == nil {
			t.Errorf("%s: the port was opened", name)
		}
	}
	p := h.Permit(expose(spec, "65535"))
	if _, err := s.Expose(p); err != nil {
		t.Error(err)
	}
	if _, err := s.Expose(p); !errors.Is(err, policy.ErrPermitSpent) {
		t.Errorf("a permit opens twice: %v", err)
	}
}

// TestPortOfASpaceThatEnds holds that its end is the end of every connection, and of one that is being opened.
func TestPortOfASpaceThatEnds(t *testing.T) {
	s := serve(t, echo)
	d := s.door(8080)
	c := dial(t, d)
	read := make(chan error, 1)
	go func() {
		_, err := c.Read(make([]byte, 1))
		read <- err
	}()
	if err := s.space.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err == nil || err == io.EOF {
		t.Errorf("the connection ended with %v, which looks like an orderly end", err)
	}
	if _, err := d.Dial(t.Context()); fault.CodeOf(err) != "space_ended" {
		t.Errorf("dial a space that has ended: %v", err)
	}
	select {
	case <-d.Done():
	default:
		t.Error("the door does not say that its space has ended")
	}
}

// TestPortOfAPausedSpace holds that a connection can be closed at once while its space stands still, and goes on afterwards.
func TestPortOfAPausedSpace(t *testing.T) {
	s := serve(t, echo)
	d := s.door(8080)
	c, kept := dial(t, d), dial(t, d)
	if _, err := s.space.(space.Pausing).Pause(); err != nil {
		t.Fatal(err)
	}
	filled := make(chan error, 1)
	go func() { // more than the kernel takes for an init that reads nothing
		_, err := c.Write(make([]byte, 4<<20))
		filled <- err
	}()
	_ = c.Close()
	if err := <-filled; err == nil {
		t.Error("what a paused space cannot have read was sent")
	}
	if err := s.space.(space.Pausing).Resume(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(kept, "still"); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(kept, got); err != nil || string(got) != "still" {
		t.Errorf("after the pause: got %q, %v", got, err)
	}
}

// TestPortThatBreaks tells a connection that was reset from one that ended.
func TestPortThatBreaks(t *testing.T) {
	s := serve(t, `
import socket, struct
s = socket.socket(); s.bind(("127.0.0.1", 8080)); s.listen(); print("listening")
while True:
    c, _ = s.accept()
    c.recv(4)
    c.sendall(b"half")
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    c.recv(4)
    c.close()
`)
	c := dial(t, s.door(8080))
	if _, err := io.WriteString(c, "askd"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "more"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("a connection that was reset ended with %v", err)
	}
}

// TestNoPortOfTheHost holds that what listens on the host's own loopback interface is not reached.
func TestNoPortOfTheHost(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	i := h.Create(t, spec)
	listener := hostPort(t)
	if _, err := open(t, h, i, spec, listener).Dial(t.Context()); !errors.Is(err, space.ErrPortSilent) {
		t.Errorf("a port of the daemon's host: got %v, want %v", err, space.ErrPortSilent)
	}
	ports, err := i.(space.Reachable).Ports(t.Context())
	if err != nil || len(ports) > 0 {
		t.Errorf("a space in which nothing listens has the ports %v, %v", ports, err)
	}
}

// hostPort listens on the host's loopback interface and returns the port.
func hostPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}
