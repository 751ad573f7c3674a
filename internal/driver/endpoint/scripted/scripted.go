// Package scripted is a model that plays a cassette: recorded answers to recorded requests, and to no others.
package scripted

import (
	"context"
	"io"
	"os"
	"sync"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
)

// Endpoint plays the cassettes of a folder. A request that was recorded several times gets its recordings in turn, the last one ever after.
type Endpoint struct {
	folder string

	mu     sync.Mutex
	played map[spot]int
}

// spot is a request of a cassette.
type spot struct {
	cassette string
	hash     event.Digest
}

var _ model.Endpoint = (*Endpoint)(nil)

// New returns an endpoint of the cassettes NAME.jsonl of a folder.
func New(folder string) *Endpoint { return &Endpoint{folder: folder, played: map[spot]int{}} }

// Stream implements model.Endpoint.
func (s *Endpoint) Stream(ctx context.Context, permit policy.Permit, to model.Target, r model.Request,
	emit func(model.Delta) error) (model.Answer, error) {
	if err := endpoint.Redeem(permit, to, r); err != nil {
		return model.Answer{}, err
	}
	raw, err := s.read(to.Entry.BaseURL)
	if err != nil {
		return model.Answer{}, err
	}
	c, err := model.ParseCassette(raw)
	if err != nil {
		return model.Answer{}, err
	}
	found, err := c.Find(r)
	if err != nil {
		return model.Answer{}, err
	}
	at := spot{to.Entry.BaseURL, found[0].Hash}
	s.mu.Lock()
	n := s.played[at]
	s.played[at] = min(n+1, len(found)-1)
	s.mu.Unlock()
	one := found[min(n, len(found)-1)]
	if one.Failure != nil {
		return model.Answer{}, one.Failure
	}
	for _, p := range one.Answer.Parts {
		if err := ctx.Err(); err != nil {
			return model.Answer{}, context.Cause(ctx)
		}
		if emit == nil {
			continue
		}
		d := model.Delta{Type: p.Type, Text: p.Text}
		switch {
		case p.Reasoning != nil:
			d.Text = p.Reasoning.Text
		case p.Call != nil:
			d.Text, d.ID, d.Name = p.Call.Arguments, p.Call.ID, p.Call.Name
		}
		if err := emit(d); err != nil {
			return model.Answer{}, err
		}
	}
	return *one.Answer, nil
}

// read returns a cassette of the folder. A name cannot lead out of it.
func (s *Endpoint) read(name string) ([]byte, error) {
	missing := func(err error) error {
		return fault.Wrap(err, fault.NotFound, "cassette_not_found", "there is no cassette %q", name)
	}
	root, err := os.OpenRoot(s.folder)
	if err != nil {
		return nil, missing(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(name + ".jsonl")
	if err != nil {
		return nil, missing(err)
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, model.MaxCassetteBytes+1))
}
