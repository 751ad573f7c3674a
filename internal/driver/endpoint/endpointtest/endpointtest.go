// Package endpointtest stands in for a vendor: a server that answers with the bytes that a test gives, and the permits to ask it.
package endpointtest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
)

// Vendor is a server that answers every request alike, and keeps the requests.
type Vendor struct {
	*httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	heads  []http.Header
	paths  []string
}

// Serve starts a vendor. The function answers each request.
func Serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request)) *Vendor {
	t.Helper()
	v := &Vendor{}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		v.mu.Lock()
		v.bodies, v.heads, v.paths = append(v.bodies, raw), append(v.heads, r.Header), append(v.paths, r.URL.Path)
		v.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(v.Close)
	return v
}

// Say answers with a stream of these bytes.
func Say(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}
}

// Refuse answers with a status, a body, and headers in pairs.
func Refuse(status int, body string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Break answers with the beginning of a stream and then breaks the connection.
func Break(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		Say(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// Stall answers with the beginning of a stream and then says nothing until the client goes.
func Stall(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		Say(text)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

// Body returns the last request.
func (v *Vendor) Body() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bodies[len(v.bodies)-1]
}

// Header returns the headers of the last request.
func (v *Vendor) Header() http.Header {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.heads[len(v.heads)-1]
}

// Path returns the path of the last request.
func (v *Vendor) Path() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.paths[len(v.paths)-1]
}

// Issue makes a permit, as policy.Issue does. A test gives it, because nothing but the gate and tests may make one.
type Issue func(canonical []byte, revoked func() error) policy.Permit

// Permit returns a permit for a request.
func (issue Issue) Permit(t testing.TB, e model.Entry, r model.Request) policy.Permit {
	t.Helper()
	hash, err := r.Hash()
	if err != nil {
		t.Fatal(err)
	}
	canonical, err := policy.Action{Type: policy.ModelCall, Workspace: "ws_dev", Principal: "agt_1", Subject: e.Name, Target: e.Target(),
		Tool: e.Model, Content: hash}.Canonical()
	if err != nil {
		t.Fatal(err)
	}
	return issue(canonical, nil)
}

// Ask asks an endpoint once, under a permit of its own, and collects the pieces.
func (issue Issue) Ask(ctx context.Context, t testing.TB, to model.Endpoint, e model.Entry, key string,
	r model.Request) (model.Answer, []model.Delta, error) {
	t.Helper()
	var seen []model.Delta
	a, err := to.Stream(ctx, issue.Permit(t, e, r), model.Target{Entry: e, Key: model.NewSecret(key)}, r, func(d model.Delta) error {
		seen = append(seen, d)
		return nil
	})
	return a, seen, err
}

// Hello returns the smallest request.
func Hello() model.Request {
	return model.Request{Messages: []model.Message{{Role: model.User, Parts: []model.Part{model.Text("Hello")}}}}
}
