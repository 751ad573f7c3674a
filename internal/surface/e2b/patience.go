package e2b

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"agentbox/internal/domain/event"
)

// silence is how long the sender of a body may pause before the surface knows who they are. Without it anybody could keep connections.
const silence = 10 * time.Second

// patient is a body whose sender may pause for silence, until they are known.
type patient struct {
	io.ReadCloser
	control *http.ResponseController // a writer without deadlines has no slow sender
	clock   event.Clock

	mu      sync.Mutex // guards trusted and the order of the deadlines
	trusted bool
}

type patientKey struct{}

// awaited returns a request whose body is patient. net/http watches the connection once the body has ended, so that no deadline may be left
// then.
func (s *Surface) awaited(w http.ResponseWriter, r *http.Request) *http.Request {
	p := &patient{ReadCloser: r.Body, control: http.NewResponseController(w), clock: s.clock}
	if p.trusted = r.ContentLength == 0; p.trusted {
		p.wait(true)
		return r
	}
	p.wait(false)
	r = r.WithContext(context.WithValue(r.Context(), patientKey{}, p))
	r.Body = p
	return r
}

// trust takes the limit off the body of a caller who is known.
func trust(r *http.Request) {
	if p, ok := r.Context().Value(patientKey{}).(*patient); ok {
		p.mu.Lock()
		p.trusted = true
		p.mu.Unlock()
		p.wait(true)
	}
}

func (p *patient) wait(over bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	until := time.Time{}
	if !p.trusted && !over {
		until = p.clock.Now().Add(silence)
	}
	_ = p.control.SetReadDeadline(until)
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	p.wait(false)
	n, err := p.ReadCloser.Read(b)
	if err == io.EOF {
		p.wait(true)
	}
	return n, err
}
