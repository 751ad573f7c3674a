package space

import "context"

// Asking is an Instance whose programs can reach the daemon on a port of the space's own loopback interface.
type Asking interface {
	// Inlet makes the port. It needs no permit, because it gives nothing by itself: who answers on it asks the gate about each request. It
	// returns ErrPortBusy if the space has too many of them, and ErrPortUnreachable for other reasons.
	Inlet(ctx context.Context) (Inlet, error)
}

// Inlet is a port of a space that leads to the daemon. Only processes of this space reach it. Every method may
// be called from any goroutine.
type Inlet interface {
	// Accept waits for the next connection. It returns ErrPortClosed once the inlet is closed or the space has ended.
	Accept(ctx context.Context) (Conn, error)
	// Port returns the port, on 127.0.0.1.
	Port() int
	// Close ends the port and every connection. It may be called again.
	Close()
}
