package wire

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"time"

	"agentbox/internal/domain/fault"
)

// Patient reads a body of any length; only the sender's silence has a limit.
func (s *Server) Patient(w http.ResponseWriter, r *http.Request) io.Reader {
	return &patientReader{r.Body, http.NewResponseController(w), s.Clock.Now}
}

type patientReader struct {
	body    io.Reader
	control *http.ResponseController
	now     func() time.Time
}

func (p *patientReader) Read(b []byte) (int, error) {
	_ = p.control.SetReadDeadline(p.now().Add(bodyTimeout)) // a writer without deadlines has no slow sender
	return p.body.Read(b)
}

// Boolean reads a parameter that is true or false.
func Boolean(r *http.Request, name string, standard bool) (bool, error) {
	sent := r.URL.Query().Get(name)
	if sent == "" {
		return standard, nil
	}
	v, err := strconv.ParseBool(sent)
	if err != nil {
		return false, fault.New(fault.Invalid, "invalid_parameter", "%s is true or false, not %.32q", name, sent)
	}
	return v, nil
}

// AnswerJSON sends a value.
func AnswerJSON(w http.ResponseWriter, status int, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the caller has gone
	return nil
}
