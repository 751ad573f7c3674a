package frames

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/kernel/livestream"
)

// Printer shows the output of a command as it comes, without secrets, on both of its channels. One goroutine at a time uses it.
type Printer struct {
	clock   event.Clock
	show    func(kind string, data []byte)
	streams map[string]*leak.Stream
}

// Printer returns a printer for an operation of a run. It replaces the known values and the texts that the rules find.
func (x *Service) Printer(ctx context.Context, runID id.Run, operation string, known leak.Known) *Printer {
	return &Printer{
		clock: x.clock, show: func(kind string, data []byte) { x.output(ctx, runID, kind, operation, data) },
		streams: map[string]*leak.Stream{livestream.Stdout: leak.NewStream(known), livestream.Stderr: leak.NewStream(known)},
	}
}

// Write shows output of one kind: livestream.Stdout or livestream.Stderr. It holds back text that may be the beginning of a secret.
func (p *Printer) Write(kind string, data []byte) {
	for piece := range slices.Chunk(p.streams[kind].Next(data), livestream.MaxFrameBytes) {
		p.show(kind, piece)
	}
}

// Rest shows the text that was held back, when the command has ended.
func (p *Printer) Rest() {
	for _, kind := range []string{livestream.Stdout, livestream.Stderr} {
		for piece := range slices.Chunk(p.streams[kind].Rest(), livestream.MaxFrameBytes) {
			p.show(kind, piece)
		}
	}
}

// heldBack is how long the output of a terminal is held back because it may be the beginning of a secret. A program prints a secret faster,
// and a person who types waits for each character.
const heldBack = 200 * time.Millisecond

// Promptly returns functions to write to the viewers of a terminal and to end that. Held-back output is shown when nothing follows.
func (p *Printer) Promptly() (write func(kind string, data []byte), rest func()) {
	var mu sync.Mutex
	wrote, done := make(chan struct{}, 1), make(chan struct{})
	var showing sync.WaitGroup
	showing.Go(func() {
		var over <-chan time.Time
		stop := func() {}
		for {
			select {
			case <-wrote:
				stop()
				over, stop = p.clock.NewTimer(heldBack)
			case <-over:
				over = nil
				mu.Lock()
				p.Rest()
				mu.Unlock()
			case <-done:
				stop()
				return
			}
		}
	})
	return func(kind string, data []byte) {
			mu.Lock()
			p.Write(kind, data)
			mu.Unlock()
			select {
			case wrote <- struct{}{}:
			default:
			}
		}, func() {
			close(done)
			showing.Wait()
			p.Rest()
		}
}
