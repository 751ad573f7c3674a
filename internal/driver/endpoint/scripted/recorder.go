package scripted

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
)

// Recorder forwards requests to another endpoint. It writes requests and answers into the cassette that an entry names.
type Recorder struct {
	next   model.Endpoint
	folder string
	mu     *sync.Mutex // of all recorders of a folder: one line is written at a time
}

var _ model.Endpoint = (*Recorder)(nil)

// Recorders wraps endpoints so that they record into the cassettes of a folder.
func Recorders(folder string, of map[string]model.Endpoint) map[string]model.Endpoint {
	wrapped, mu := make(map[string]model.Endpoint, len(of)), &sync.Mutex{}
	for provider, next := range of {
		wrapped[provider] = &Recorder{next, folder, mu}
	}
	return wrapped
}

// Stream implements model.Endpoint. The endpoint behind it redeems the permit. It records answers and no failures. An answer that cannot be
// written down is an error, because a cassette with a hole plays something else.
func (r *Recorder) Stream(ctx context.Context, permit policy.Permit, to model.Target, q model.Request,
	emit func(model.Delta) error) (model.Answer, error) {
	answer, err := r.next.Stream(ctx, permit, to, q, emit)
	if err != nil {
		return answer, err
	}
	if to.Entry.Record == "" {
		return answer, nil
	}
	line, err := model.Record(q, &answer, nil)
	if err != nil {
		return answer, err
	}
	return answer, r.write(to.Entry, line)
}

// write appends a line to a cassette, which it makes where there is none.
func (r *Recorder) write(e model.Entry, line model.Recording) (err error) {
	defer func() {
		if err != nil {
			err = fault.Wrap(err, fault.Unavailable, "cassette_unwritable", "the cassette %s cannot be written", e.Record)
		}
	}()
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(r.folder, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(r.folder, e.Record+".jsonl"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		head, err := json.Marshal(model.CassetteHead{Version: model.CassetteVersion, Model: e.Model})
		if err != nil {
			return err
		}
		raw = append(append(head, '\n'), raw...)
	}
	if info.Size()+int64(len(raw)) > model.MaxCassetteBytes {
		return fmt.Errorf("it would have more than %d MiB", model.MaxCassetteBytes>>20)
	}
	_, err = f.Write(append(raw, '\n'))
	return err
}
