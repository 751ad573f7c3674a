package runs

import (
	"context"
	"errors"
	"io"
	"sync"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
)

// Pipe is the standard input and output of the command of a background run. One goroutine reads, and one writes.
type Pipe struct {
	x      *Service
	origin event.Origin
	ws     id.Workspace
	run    id.Run
	ctx    context.Context
	stop   context.CancelFunc
	ends   sync.Once

	seen uint64 // the last frame of its output
	left []byte // what was read and not taken
	over error
}

var errPipeLong = errors.New("the command has printed more than is kept of the output of a run")

// Pipe starts a background run whose command takes input, and returns the pipe to it. The run goes on after ctx ends, until the pipe is
// closed.
func (x *Service) Pipe(ctx context.Context, origin event.Origin, q Request) (*Pipe, error) {
	doc, err := x.Start(context.WithoutCancel(ctx), origin, q)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	return &Pipe{x: x, origin: origin, ws: q.Workspace, run: doc.ID, ctx: ctx, stop: stop}, nil
}

// Read implements io.Reader: what the command prints.
func (p *Pipe) Read(into []byte) (int, error) {
	const page = 64
	for len(p.left) == 0 {
		if p.over != nil {
			return 0, p.over
		}
		if err := p.x.Live.Wait(p.ctx, p.run, p.seen); err != nil {
			return 0, err
		}
		if p.ctx.Err() != nil {
			return 0, io.EOF
		}
		frames, err := p.x.Live.Read(p.ctx, p.run, p.seen+1, page)
		if err != nil {
			return 0, err
		}
		for _, f := range frames {
			p.seen = f.N
			switch f.Kind {
			case livestream.Stdout:
				p.left = append(p.left, f.Data...)
			case livestream.Cut:
				p.over = errPipeLong
			case livestream.Complete:
				p.over = io.EOF
			}
		}
	}
	n := copy(into, p.left)
	p.left = p.left[n:]
	return n, nil
}

// Write implements io.Writer: the command gets the bytes as its input. While a person is asked about the command it waits.
func (p *Pipe) Write(input []byte) (int, error) {
	for n := 0; n < len(input); {
		piece := input[n:min(len(input), n+space.MaxInputBytes)]
		err := p.x.Input.Give(p.ctx, p.origin, p.ws, p.run, Given{Stdin: piece})
		if errors.Is(err, ErrNotStarted) && errand.Pause(p.ctx, p.x.Clock, errand.Ask) {
			continue
		}
		if err != nil {
			return n, err
		}
		n += len(piece)
	}
	return len(input), nil
}

// Close implements io.Closer: it ends the command with all its children.
func (p *Pipe) Close() error {
	var err error
	p.ends.Do(func() {
		err = p.x.Cancel(context.WithoutCancel(p.ctx), p.origin, p.ws, p.run, "nobody uses its input and output any more")
		if errors.Is(err, ErrEnded) {
			err = nil
		}
		p.stop()
	})
	return err
}
