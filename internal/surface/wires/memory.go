package wires

import (
	"slices"
	"strings"

	"agentbox/internal/domain/model"
)

// maxThought is the largest size of the reasoning that a Server remembers, with the names of its calls, in bytes. It forgets the oldest
// first; then a vendor may refuse the turn.
const maxThought = 32 << 20

// memory holds the reasoning of answers with calls. Most vendors require it back unchanged, and only a vendor's own wire can carry it.
type memory struct {
	held  map[string][]model.Part // by the calls of the answer
	order []string
	size  int
}

// nameOf returns the name of an answer, made of its calls; "" for an answer without calls.
func nameOf(parts []model.Part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Type == model.CallPart {
			b.WriteString(p.Call.ID + "\x00" + p.Call.Name + "\x00")
		}
	}
	return b.String()
}

func sizeOf(name string, parts []model.Part) (n int) {
	n = 2 * len(name) // of the answer, in both of memory's fields
	for _, p := range parts {
		n += len(p.Reasoning.Text) + len(p.Reasoning.Opaque)
	}
	return n
}

// keep stores the reasoning of an answer with calls.
func (s *Server) keep(r model.Reply) {
	name := nameOf(r.Parts)
	var thought []model.Part
	for _, p := range r.Parts {
		if p.Type == model.ReasoningPart {
			thought = append(thought, p)
		}
	}
	if name == "" || len(thought) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &s.thought
	if _, known := m.held[name]; known {
		return
	}
	m.held[name], m.order, m.size = thought, append(m.order, name), m.size+sizeOf(name, thought)
	for m.size > maxThought {
		oldest := m.order[0]
		m.size -= sizeOf(oldest, m.held[oldest])
		delete(m.held, oldest)
		m.order = m.order[1:]
	}
}

// remember adds the stored reasoning to the answers of a request.
func (s *Server) remember(r *model.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, m := range r.Messages {
		if m.Role != model.Assistant {
			continue
		}
		if thought := s.thought.held[nameOf(m.Parts)]; len(thought) > 0 {
			r.Messages[i].Parts = slices.Concat(thought, m.Parts)
		}
	}
}
