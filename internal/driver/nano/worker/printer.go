package worker

import (
	"errors"
	"sync"
	"time"
)

// printer passes on the output in a goroutine of its own, so that a slow reader holds no worker.
type printer struct {
	out    func(channel string, p []byte) error
	refuse func() // called once, when out has failed
	left   int64  // bytes that may yet come

	mu    sync.Mutex // guards the fields below
	queue []printed
	more  sync.Cond
	begun bool
	hold  time.Duration // from the first byte on
	held  int           // bytes that wait for the decision whether they are wanted; -1 if nothing is held back
	over  bool
	err   error
	done  chan struct{}
}

// Limits for the output of a tentative execution that is held back: a number of bytes and, by default, a time. After either, the output is
// shown, and the execution is no longer tentative.
const (
	heldBytes = 256 << 10
	heldFor   = time.Second
)

type printed struct {
	channel byte
	data    []byte
}

// errFlood means more output than the order allows. A correct worker never sends it.
var errFlood = errors.New("the worker prints more than the execution may")

func newPrinter(out func(channel string, p []byte) error, left int64, hold time.Duration) *printer {
	p := &printer{out: out, left: left, done: make(chan struct{}), held: -1, hold: hold}
	p.more.L = &p.mu
	if hold > 0 {
		p.held = 0
	}
	return p
}

// release shows the held output.
func (p *printer) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held >= 0 {
		p.held = -1
		p.begin()
	}
}

// drop forgets the held output, and reports false if it was shown already.
func (p *printer) drop() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held < 0 {
		return false
	}
	p.queue, p.held = nil, -1
	return true
}

// print takes a piece.
func (p *printer) print(channel byte, data []byte) error {
	if p.left -= int64(len(data)); p.left < 0 {
		return errFlood
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.queue); n > 0 && p.queue[n-1].channel == channel && len(p.queue[n-1].data) < piece {
		p.queue[n-1].data = append(p.queue[n-1].data, data...)
	} else {
		p.queue = append(p.queue, printed{channel, append([]byte(nil), data...)})
	}
	if p.held == 0 {
		time.AfterFunc(p.hold, p.release)
	}
	if p.held >= 0 {
		if p.held += len(data); p.held > heldBytes {
			p.held = -1
		}
	}
	p.begin()
	p.more.Signal()
	return nil
}

// begin starts the goroutine, where there is something to show. The lock is held.
func (p *printer) begin() {
	if p.begun || p.held >= 0 || len(p.queue) == 0 {
		return
	}
	p.begun = true
	go func() {
		defer close(p.done)
		for {
			p.mu.Lock()
			for len(p.queue) == 0 && !p.over {
				p.more.Wait()
			}
			pieces := p.queue
			p.queue = nil
			failed := p.err
			p.mu.Unlock()
			if len(pieces) == 0 {
				return
			}
			for _, x := range pieces {
				if failed != nil {
					break
				}
				name := "stdout"
				if x.channel == 2 {
					name = "stderr"
				}
				if failed = p.out(name, x.data); failed != nil {
					p.mu.Lock()
					p.err = failed
					p.mu.Unlock()
					p.refuse()
				}
			}
		}
	}()
}

// wait returns when the receiver has taken all output, with the receiver's error.
func (p *printer) wait() error {
	p.release()
	p.mu.Lock()
	begun := p.begun
	p.over = true
	p.more.Signal()
	p.mu.Unlock()
	if begun {
		<-p.done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
