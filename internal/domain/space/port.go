package space

import (
	"context"
	"io"
	"strconv"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// The events of the ports of a space.
const (
	EventPortOpened = "space.port.opened" // from now on requests from outside reach a port
	EventPortClosed = "space.port.closed" // they do not any more; its data counts what came through
)

// The ways in which a port is opened.
const (
	PortByRequests     = "requests"      // for the principal who asks, with each request of theirs
	PortByLink         = "link"          // for everybody who has an address, until it ends
	PortByExternalLink = "link_external" // by an address too, and pages may load from other hosts
)

// The causes for which a port is closed.
const (
	PortRequested    = "requested"      // somebody closed it
	PortExpired      = "expired"        // its time was over
	PortSpaceEnded   = "space_ended"    // the space, or its processes, ended
	PortKillSwitch   = "kill_switch"    // the kill switch was thrown
	PortNotPermitted = "not_permitted"  // who opened it may not any more
	PortPolicy       = "policy_changed" // the space is under another policy
	PortDaemon       = "daemon_stopped" // the daemon stopped
)

// PortOpened is the data of space.port.opened.
type PortOpened struct {
	Space     id.Space     `json:"space_id"`
	Exposure  id.Exposure  `json:"exposure_id"`
	Port      int          `json:"port"`
	How       string       `json:"how"` // requests, link or link_external
	ExpiresAt time.Time    `json:"expires_at,omitzero"`
	Hash      event.Digest `json:"action_sha256"`
}

// PortClosed is the data of space.port.closed. It counts requests and bytes.
type PortClosed struct {
	Space    id.Space    `json:"space_id"`
	Exposure id.Exposure `json:"exposure_id"`
	Port     int         `json:"port"`
	Reason   string      `json:"reason"`
	Requests int64       `json:"requests"`
	In       int64       `json:"bytes_in"`  // into the space
	Out      int64       `json:"bytes_out"` // out of it
}

// Port is a port on which processes of a space listen.
type Port struct {
	Port      int      `json:"port"`
	Addresses []string `json:"addresses" nullable:"false" doc:"On which they listen, in the space: 127.0.0.1, ::1, 0.0.0.0 or ::"`
}

// Reachable is an Instance whose processes can serve on ports of the space's own loopback interface.
type Reachable interface {
	// Expose opens a port by a port.expose permit, whose Target is the port.
	Expose(p policy.Permit) (Door, error)
	// Ports returns the ports on which processes listen, in order.
	Ports(ctx context.Context) ([]Port, error)
}

// Door is an open port. Every method may be called from any goroutine.
type Door interface {
	// Dial opens a connection to the port. It returns ErrPortSilent if nothing listens, ErrPortBusy if too many connections are open, and
	// ErrPortUnreachable for other reasons.
	Dial(ctx context.Context) (Conn, error)
	// Drop ends every connection at once. It needs no permit.
	Drop()
	// Close ends every connection at once, and opens no other. It needs no permit and may be called again.
	Close()
	// Done is closed when the processes of the space have ended.
	Done() <-chan struct{}
}

// Conn is a connection to a port of a space. Its bytes come from code that nobody trusts.
type Conn interface {
	io.ReadWriteCloser
	// CloseWrite says that nothing more is sent.
	CloseWrite() error
	// Port returns the port.
	Port() int
}

// The refusals of ports.
var (
	// ErrPortSilent means that nothing listens on the port.
	ErrPortSilent = fault.New(fault.Unavailable, "port_not_listening", "no program in the space listens on the port").
			With("start the program first, as a background run, and let it listen on 127.0.0.1 or on every address: agentbox space ports lists " +
			"what listens")
	// ErrPortBusy means that as many connections are open as may be.
	ErrPortBusy = fault.New(fault.Exhausted, "port_busy", "the space has the largest number of open connections to its ports").
			With("close one, or wait until one ends")
	// ErrPortUnreachable means that the connection could not be opened for another reason.
	ErrPortUnreachable = fault.New(fault.Unavailable, "port_unreachable", "the program that listens on the port accepts no connection")
	// ErrPortClosed means that the port was closed meanwhile.
	ErrPortClosed = fault.New(fault.Conflict, "port_closed", "the port was closed; open it again")
	// ErrNoPorts refuses ports of a space whose tier has none.
	ErrNoPorts = fault.New(fault.Conflict, "ports_not_here", "the tier of the space has no ports: its programs have no sockets").
			With("make a space with the runtime heavy: agentbox space create --runtime heavy")
	// ErrNotRunning refuses ports of a space without processes.
	ErrNotRunning = fault.New(fault.Conflict, "space_not_running", "the space has no processes at the moment, so nothing listens in it").
			With("start the program that listens first, as a background run")
)

// ReadPort reads the number of a port, 1 to 65535.
func ReadPort(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 || text[0] == '0' || text[0] == '+' {
		return 0, fault.New(fault.Invalid, "invalid_port", "%.16q is not a port; a port is a number from 1 to 65535", text)
	}
	return int(n), nil
}

// Presence finds the processes of spaces on this daemon.
type Presence interface {
	// Present returns the processes of a space. It starts none; ok is false where there are none.
	Present(s id.Space) (i Instance, ok bool)
}

// Doors get notice of changes to spaces whose ports are open.
type Doors interface {
	// Paused ends the connections to a space that stands still.
	Paused(s id.Space)
	// Ended closes the ports of a space that ends.
	Ended(ctx context.Context, s id.Space)
}
