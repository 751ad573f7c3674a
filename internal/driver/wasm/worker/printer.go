package worker

import (
	"errors"
	"sync"
)

// printer hands on what is printed, in a goroutine of its own, so that who takes it slowly holds no worker.
type printer struct {
	out    func(channel string, p []byte) error
	refuse func() // called once, when out has failed
	room   int64  // bytes that may yet come

	mu    sync.Mutex // guards what follows
	queue []printed
	more  sync.Cond
	over  bool
	err   error
	done  chan struct{}
}

type printed struct {
	channel byte
	data    []byte
}

// errFlood is more output than the order allows, which no worker of ours sends.
var errFlood = errors.New("the worker prints more than the execution may")

func newPrinter(out func(channel string, p []byte) error, room int64) *printer {
	p := &printer{out: out, room: room, done: make(chan struct{})}
	p.more.L = &p.mu
	return p
}

// print takes a piece.
func (p *printer) print(channel byte, data []byte) error {
	if p.room -= int64(len(data)); p.room < 0 {
		return errFlood
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue == nil && !p.over {
		p.begin()
	}
	if n := len(p.queue); n > 0 && p.queue[n-1].channel == channel && len(p.queue[n-1].data) < piece {
		p.queue[n-1].data = append(p.queue[n-1].data, data...)
	} else {
		p.queue = append(p.queue, printed{channel, append([]byte(nil), data...)})
	}
	p.more.Signal()
	return nil
}

// begin starts the goroutine, with the first piece. The lock is held.
func (p *printer) begin() {
	p.queue = []printed{}
	go func() {
		defer close(p.done)
		for {
			p.mu.Lock()
			for len(p.queue) == 0 && !p.over {
				p.more.Wait()
			}
			pieces := p.queue
			p.queue = []printed{}
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

// wait returns when everything has been taken, with the error of who took it.
func (p *printer) wait() error {
	p.mu.Lock()
	begun := p.queue != nil
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
