package term

import (
	"bytes"
	"context"
	"io"
	"sync"
)

const (
	interruptKey = 0x03
	maxAhead     = 64 << 10 // bytes that are typed while a command runs and kept for the next line

	dropLine = "\x05\x15\r" // to its end, delete all before the cursor, done
)

// Typed is the input of a terminal in raw mode. While a line is edited, the editor reads it. While a command runs, typed watches for the
// interrupt key, and all other keys wait for the next line. One goroutine calls all methods except Pump.
type Typed struct {
	Out    io.Writer
	Pieces chan []byte // closed when nothing comes any more
	ahead  []byte      // typed, and not read yet
	Broken bool        // the line that is edited was interrupted

	Over  <-chan struct{} // closing it ends the line that is edited and drops it; nil never does
	Ended bool            // that has happened
}

// Pump reads the terminal until ctx ends or the terminal is gone. A terminal answers a read after a moment, whether or not something was
// typed.
func (t *Typed) Pump(ctx context.Context, in io.Reader) {
	defer close(t.Pieces)
	buffer := make([]byte, 256)
	for ctx.Err() == nil {
		n, err := in.Read(buffer)
		if err != nil && err != io.EOF {
			return
		}
		if n == 0 {
			continue
		}
		select {
		case t.Pieces <- bytes.Clone(buffer[:n]):
		case <-ctx.Done():
			return
		}
	}
}

// Read gives at most one line at a time, so that what is typed behind it waits here and not in the editor. The key that interrupts
// empties the line and ends it.
func (t *Typed) Read(p []byte) (int, error) {
	for len(t.ahead) == 0 {
		select {
		case piece, ok := <-t.Pieces:
			if !ok {
				return 0, io.EOF
			}
			t.ahead = piece
		case <-t.Over:
			t.Over, t.Ended = nil, true
			return copy(p, dropLine), nil
		}
	}
	if t.ahead[0] == interruptKey {
		t.ahead, t.Broken = t.ahead[1:], true
		return copy(p, dropLine), nil
	}
	n := min(len(p), len(t.ahead))
	if end := bytes.IndexAny(t.ahead[:n], "\r\n"); end >= 0 {
		n = end + 1
	}
	if key := bytes.IndexByte(t.ahead[:n], interruptKey); key >= 0 {
		n = key
	}
	copy(p, t.ahead[:n])
	t.ahead = t.ahead[n:]
	return n, nil
}

// Write writes the editor's drawing.
func (t *Typed) Write(p []byte) (int, error) { return t.Out.Write(p) }

// Watch calls interrupt when that key is pressed, until stop is called. It calls typed each time that other keys wait for the next line; a
// line that is empty does not. typed is nil where nobody reads lines meanwhile.
func (t *Typed) Watch(interrupt, typed func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			if typed != nil && len(t.ahead) > 0 {
				if t.ahead = bytes.TrimLeft(t.ahead, "\r\n"); len(t.ahead) > 0 {
					typed()
				}
			}
			select {
			case piece, ok := <-t.Pieces:
				if !ok {
					interrupt() // nobody is there any more
					return
				}
				if key := bytes.LastIndexByte(piece, interruptKey); key >= 0 {
					t.ahead, piece = nil, piece[key+1:] // the key discards the text before it
					interrupt()
				}
				t.ahead = append(t.ahead, piece[:min(len(piece), maxAhead-min(maxAhead, len(t.ahead)))]...)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// Take returns the keys that wait for the next line, and forgets them: they were pressed before the question that is asked now.
func (t *Typed) Take() []byte {
	taken := t.ahead
	select {
	case piece := <-t.Pieces: // the one that Pump has read already
		taken = append(taken, piece...)
	default:
	}
	t.ahead = nil
	return taken
}

// Unread puts keys in front of those that wait for the next line, as if the person had pressed them first.
func (t *Typed) Unread(keys []byte) { t.ahead = append(bytes.Clone(keys), t.ahead...) }
