package worker

import (
	"bufio"
	"bytes"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// slow is a system whose code works until it is stopped and then a while longer, and which tells what it was asked in which order.
type slow struct {
	gas    int64         // that its code uses, or it works until its time is over
	after  time.Duration // that its code takes to end
	listed chan struct{} // what has changed is known when this is closed
	done   []string
}

func (*slow) Version() string { return "" }

func (s *slow) Rest() { s.done = append(s.done, "rest") }

func (s *slow) Execute(_ Order, a *bound.Account, _ []vfs.Source, _ func(int, []byte) error) (Outcome, func() ([][]vfs.Change, error)) {
	if err := a.Charge(s.gas); err != nil || s.gas == 0 {
		<-a.Context().Done()
		time.Sleep(s.after)
	}
	a.Afterwards(func() { s.done = append(s.done, "afterwards") })
	return Outcome{TimedOut: s.gas == 0}, func() ([][]vfs.Change, error) {
		<-s.listed
		s.done = append(s.done, "changes")
		return [][]vfs.Change{{{Op: vfs.MakeDir, Path: "d"}}}, nil
	}
}

// TestTheEndIsToldBeforeItIsKnownWhatHasChanged serves an execution whose changes are known only after its end was reported. The worker
// frees its memory last, and reports how late it was.
func TestTheEndIsToldBeforeItIsKnownWhatHasChanged(t *testing.T) {
	for _, x := range []struct {
		name string
		s    slow
		want time.Duration
		done []string
	}{
		{"it was stopped", slow{after: 3 * time.Millisecond}, 3 * time.Millisecond, []string{"changes", "afterwards", "rest"}},
		{"it has worked for long", slow{gas: longGas + 1}, 0, []string{"afterwards", "changes", "rest"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			x.s.listed = make(chan struct{})
			orders, in := io.Pipe()
			out, said := io.Pipe()
			ended := make(chan error, 1)
			go func() {
				ended <- Serve(orders, said, &x.s, func() {})
				_ = said.Close()
			}()
			o := Order{Argv: []string{"x"}, Limits: bound.Limits{Gas: 1 << 40, Time: time.Second, MemoryBytes: 1 << 20}}
			go func() {
				w := bufio.NewWriter(in)
				_ = writeFrame(w, frameOrder, o.encode())
				_ = w.Flush()
			}()
			var kinds []byte
			var last Outcome
			r := bufio.NewReader(out)
			for !slices.Contains(kinds, frameEnd) {
				kind, payload, _, err := readFrame(r, nil)
				if err != nil {
					t.Fatal(err)
				}
				if kinds = append(kinds, kind); kind == frameEnded {
					close(x.s.listed)
				}
				if kind == frameEnd {
					if last, err = decodeOutcome(payload); err != nil {
						t.Fatal(err)
					}
				}
			}
			if want := []byte{frameReady, frameEnded, frameChange, frameEnd}; !bytes.Equal(kinds, want) {
				t.Errorf("%s: it said %v, want %v", x.name, kinds, want)
			}
			if last.Late != x.want {
				t.Errorf("%s: it was %s late, want %s", x.name, last.Late, x.want)
			}
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if !slices.Equal(x.s.done, x.done) {
				t.Errorf("%s: %v, want %v", x.name, x.s.done, x.done)
			}
			time.Sleep(stubborn)
		})
	}
}
