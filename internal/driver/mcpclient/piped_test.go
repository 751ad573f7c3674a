package mcpclient

import (
	"net"
	"testing"
	"time"

	"agentbox/internal/domain/mcp"
)

// TestAProcessThatReadsNothing does not hold a call for ever: a message to it is given up.
func TestAProcessThatReadsNothing(t *testing.T) {
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	p := &piped{ReadWriteCloser: ours, patience: time.Millisecond}
	if _, err := p.Write([]byte("hello")); err == nil {
		t.Error("nobody has read it, and it is written")
	}
	s := begun(mcp.Target{})
	s.piped = p
	s.asks()
	if p.left.Load() != maxPiped {
		t.Error("a request does not give the process its bytes")
	}
}
