package runs

import (
	"slices"
	"sync"
	"time"

	"agentbox/internal/domain/leak"
	"agentbox/internal/kernel/livestream"
)

// heldBack is how long the output of a terminal is held back because it may be the beginning of a secret. A program prints a secret faster,
// and a person who types waits for each character.
const heldBack = 200 * time.Millisecond

// promptly returns how to write to the viewers of a terminal, and how to end that. What is held back is shown when nothing follows.
func (x *Service) promptly(shows *printed) (write func(kind string, data []byte), rest func()) {
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
				over, stop = x.Clock.NewTimer(heldBack)
			case <-over:
				over = nil
				mu.Lock()
				shows.rest()
				mu.Unlock()
			case <-done:
				stop()
				return
			}
		}
	})
	return func(kind string, data []byte) {
			mu.Lock()
			shows.write(kind, data)
			mu.Unlock()
			select {
			case wrote <- struct{}{}:
			default:
			}
		}, func() {
			close(done)
			showing.Wait()
			shows.rest()
		}
}

// beginning is the first part of a long output.
type beginning struct {
	bytes []byte
	more  bool // it is not all
}

func (b *beginning) add(data []byte) {
	n := min(len(data), mostShown-len(b.bytes))
	b.bytes, b.more = append(b.bytes, data[:n]...), b.more || n < len(data)
}

// printed cleans the output of a command as it comes, on both of its channels.
type printed struct {
	show    func(kind string, data []byte)
	streams map[string]*leak.Stream
}

func newPrinted(known leak.Known, show func(kind string, data []byte)) *printed {
	return &printed{show: show, streams: map[string]*leak.Stream{livestream.Stdout: leak.NewStream(known),
		livestream.Stderr: leak.NewStream(known)}}
}

func (p *printed) write(kind string, data []byte) {
	for piece := range slices.Chunk(p.streams[kind].Next(data), livestream.MaxFrameBytes) {
		p.show(kind, piece)
	}
}

// rest shows the text that was held back, when the command has ended.
func (p *printed) rest() {
	for _, kind := range []string{livestream.Stdout, livestream.Stderr} {
		for piece := range slices.Chunk(p.streams[kind].Rest(), livestream.MaxFrameBytes) {
			p.show(kind, piece)
		}
	}
}
