package wires

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"agentbox/internal/domain/fault"
)

// PermissionsPath is where a program asks before it uses one of its own tools.
const PermissionsPath = "/agentbox/permissions"

// The bounds of a permission.
const (
	MaxPermissions = 8   // that wait at one time; a further one is refused as a rate limit, and its program asks again
	maxIDBytes     = 200 // of the program's own name of its call
)

// Permission is what a program asks before it uses one of its tools.
type Permission struct {
	ID    string          `json:"id"`    // the program's own name of the call; the model's where it has one
	Tool  string          `json:"tool"`  // as the program names it
	Input json.RawMessage `json:"input"` // of the tool, an object
}

// Verdict is the answer to a Permission. Its reason is for the program and its model.
type Verdict struct {
	Allow  bool   `json:"allow"`
	Reason string `json:"reason,omitempty"`
}

// Permit decides about a Permission. It may wait for days. Its context ends when the program has gone.
type Permit func(ctx context.Context, p Permission) (Verdict, error)

// Offer lets programs ask for permissions. Call it before the server serves.
func (s *Server) Offer(permit Permit) {
	slots := make(chan struct{}, MaxPermissions)
	s.mux.HandleFunc("POST "+PermissionsPath, func(w http.ResponseWriter, r *http.Request) {
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			refuse(w, chat{}, fault.New(fault.Unavailable, codeBusy, "%d permissions of this run wait already; ask again in a second",
				MaxPermissions))
			return
		}
		p, err := readPermission(w, r)
		if err != nil {
			refuse(w, chat{}, err)
			return
		}
		v, err := permit(r.Context(), p)
		if err != nil {
			refuse(w, chat{}, err)
			return
		}
		write(w, http.StatusOK, v)
	})
}

// readPermission reads a question. Only this daemon's bridges and programs written for it ask, so what is unknown is refused.
func readPermission(w http.ResponseWriter, r *http.Request) (p Permission, err error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return p, fault.New(fault.Invalid, codeTooLarge, "the question has more than %d bytes", large.Limit)
	}
	if err != nil {
		return p, malformed("the question did not arrive: %v", err)
	}
	if err := few(body); err != nil {
		return p, err
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, malformed("a question is an object of id, tool and input: %v", err)
	}
	if dec.More() {
		return p, malformed("there is more than one question")
	}
	if p.ID == "" || len(p.ID) > maxIDBytes {
		return p, malformed("id is the name of the call, of 1 to %d bytes", maxIDBytes)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(p.Input), []byte("{")) {
		return p, malformed("input is the input of the tool, an object")
	}
	return p, nil
}
