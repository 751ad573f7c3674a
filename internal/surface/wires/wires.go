// Package wires answers the vendors' requests to a model: chat completions and responses of OpenAI, messages of Anthropic.
//
// It only translates; the function Ask of a Server answers. A question has no key and no endpoint. A Server ignores the Authorization
// header, because it belongs to the one run whose space can reach it.
package wires

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
)

// The bounds of a Server.
const (
	MaxBody   = 16 << 20 // bytes of one request
	MaxValues = 200_000  // of its JSON: a short one takes a hundred times its bytes when it is decoded
	MaxAtOne  = 4        // concurrent questions; a further one gets the vendor's rate limit error
)

// Question is a request of a client to a model.
type Question struct {
	Request model.Request
	Model   string // as the client names it
	Wire    string // chat, messages or responses
}

// Ask answers a question. It calls emit with the pieces of the answer while they come, as model.Ask.Emit says.
type Ask func(ctx context.Context, q Question, emit func(model.Delta) error) (model.Reply, error)

// Server answers the requests of the programs of one run. Make it with New; it is an http.Handler.
type Server struct {
	ask    Ask
	models []string
	mux    *http.ServeMux

	mu      sync.Mutex
	asking  int
	thought memory
}

// New returns a server whose questions ask answers. models are the names in its list of models.
func New(ask Ask, models []string) *Server {
	s := &Server{ask: ask, models: models, mux: http.NewServeMux(), thought: memory{held: map[string][]model.Part{}}}
	for path, v := range map[string]vendor{"chat/completions": chat{}, "messages": messages{}, "responses": responses{}} {
		s.mux.HandleFunc("POST /v1/"+path, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, v) })
	}
	s.mux.HandleFunc("GET /v1/models", s.list)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // claude checks whether the server is there
			return
		}
		refuse(w, vendorOf(r), fault.New(fault.NotFound, "not_found", "there is no %.100s here: this daemon answers POST /v1/chat/completions, "+
			"/v1/messages and /v1/responses, and GET /v1/models", r.URL.Path))
	})
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// vendor is one wire.
type vendor interface {
	// name is the word of the wire.
	name() string
	// read reads the body of a request.
	read(body []byte) (*asked, error)
	// stream begins a stream of events.
	stream(e *events, a *asked) stream
	// whole returns the answer in one piece.
	whole(a *asked, r model.Reply) any
	// problem returns an error in the vendor's form.
	problem(p problem) any
}

// stream writes an answer as the events of a vendor.
type stream interface {
	// piece writes a piece of text or reasoning.
	piece(t model.PartType, text string)
	// end writes the calls of the answer, its end and its usage.
	end(r model.Reply)
	// fail ends the stream with an error.
	fail(p problem)
}

// asked is the request that a wire has read.
type asked struct {
	Question
	id     string // of the answer
	stream bool
	usage  bool            // chat: the last event has the usage
	tools  map[string]tool // responses: by the name for the model
}

// tool is a client's name of a tool. The model gets every tool as a plain function.
type tool struct {
	name, namespace string
	custom          bool // its input is a text
}

// answer answers one request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, v vendor) {
	if !s.enter() { // before its body takes memory
		refuse(w, v, fault.New(fault.Unavailable, codeBusy, "%d requests of this run are being answered; wait for one", MaxAtOne))
		return
	}
	defer s.leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		refuse(w, v, fault.New(fault.Invalid, codeTooLarge, "the request has more than %d bytes", large.Limit))
		return
	}
	if err != nil {
		return // the client has gone
	}
	a, err := v.read(body)
	if err != nil {
		refuse(w, v, err)
		return
	}
	a.Wire = v.name()
	s.remember(&a.Request)
	e := &events{w: w}
	var to stream
	begin := func() stream {
		if to == nil {
			to = v.stream(e, a)
		}
		return to
	}
	reply, err := s.ask(r.Context(), a.Question, func(d model.Delta) error {
		switch {
		case d.Again && to != nil:
			return errAgain
		case !a.stream || d.Again || d.Text == "" || d.Type != model.TextPart && d.Type != model.ReasoningPart:
			return nil
		}
		begin().piece(d.Type, d.Text)
		return e.err
	})
	switch {
	case err != nil && to != nil:
		to.fail(problemOf(err))
	case err != nil:
		refuse(w, v, err)
	case !a.stream:
		s.keep(reply)
		write(w, http.StatusOK, v.whole(a, reply))
	default:
		s.keep(reply)
		if to == nil { // no piece was sent: the answer was recorded before, or has only calls
			to = begin()
			for _, p := range reply.Parts {
				switch p.Type {
				case model.TextPart:
					to.piece(p.Type, p.Text)
				case model.ReasoningPart:
					to.piece(p.Type, p.Reasoning.Text)
				}
			}
		}
		to.end(reply)
	}
}

// errAgain ends a stream whose endpoint broke off, because a vendor's stream cannot take pieces back.
var errAgain = fault.New(fault.Unavailable, codeBusy, "the model broke off its answer; ask again")

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asking >= MaxAtOne {
		return false
	}
	s.asking++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asking--
}

// list answers with the names of models.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	list := make([]any, 0, len(s.models))
	for _, name := range s.models {
		if vendorOf(r).name() == blueprint.WireMessages {
			list = append(list, map[string]any{"type": "model", "id": name, "display_name": name, "created_at": "1970-01-01T00:00:00Z"})
		} else {
			list = append(list, map[string]any{"object": "model", "id": name, "created": 0, "owned_by": "agentbox"})
		}
	}
	if vendorOf(r).name() == blueprint.WireMessages {
		write(w, http.StatusOK, map[string]any{"data": list, "has_more": false})
		return
	}
	write(w, http.StatusOK, map[string]any{"object": "list", "data": list})
}

// vendorOf returns the vendor of a request that is not a question.
func vendorOf(r *http.Request) vendor {
	if r.Header.Get("Anthropic-Version") != "" || strings.HasPrefix(r.URL.Path, "/v1/messages") {
		return messages{}
	}
	return chat{}
}

func write(w http.ResponseWriter, status int, body any) {
	raw, err := json.Marshal(body)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(raw) // a client that has gone reads nothing
}

// events writes server-sent events. After the first error it writes nothing.
type events struct {
	w    http.ResponseWriter
	open bool
	err  error
}

// send writes an event. The name may be "".
func (e *events) send(name string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		e.err = errors.Join(e.err, err)
		return
	}
	e.text(name, string(raw))
}

func (e *events) text(name, data string) {
	if e.err != nil {
		return
	}
	if !e.open {
		e.open = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.Header().Set("Cache-Control", "no-store")
		e.w.WriteHeader(http.StatusOK)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	if _, e.err = io.WriteString(e.w, name+"data: "+data+"\n\n"); e.err == nil {
		e.err = http.NewResponseController(e.w).Flush()
	}
}
