package worker

import (
	"bufio"
	"io"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// messy is a system whose executions leave rubbish.
type messy struct{}

const rubbish = 128 << 20

func (messy) Version() string { return "" }
func (messy) Rest()           {}

func (messy) Execute(Order, *bound.Account, []vfs.Source, func(int, []byte) error) (Outcome, func() ([][]vfs.Change, error)) {
	for range rubbish >> 20 {
		runtime.KeepAlive(make([]byte, 1<<20))
	}
	return Outcome{}, nil
}

// TestAWorkerAtRestGivesRubbishBack has a worker execute something that takes much memory: when nothing came for some seconds the system
// has it again.
func TestAWorkerAtRestGivesRubbishBack(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(-1))
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it lies there until somebody collects it
	kept := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapSys - m.HeapReleased
	}
	synctest.Test(t, func(t *testing.T) {
		orders, in := io.Pipe()
		out, said := io.Pipe()
		told := make(chan byte, 10)
		go func() {
			defer close(told)
			for r := bufio.NewReader(out); ; {
				kind, _, _, err := readFrame(r, nil)
				if err != nil {
					return
				}
				told <- kind
			}
		}()
		ended := make(chan error, 1)
		go func() {
			ended <- Serve(orders, said, messy{}, func() {})
			_ = said.Close()
		}()
		if kind := <-told; kind != frameReady {
			t.Fatalf("it said %d", kind)
		}
		before := kept()
		o := Order{Argv: []string{"x"}, Limits: bound.Limits{Gas: 1, Time: time.Minute, MemoryBytes: 1 << 30}}
		w := bufio.NewWriter(in)
		if err := writeFrame(w, frameOrder, o.encode()); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		for _, want := range []byte{frameEnded, frameEnd} {
			if kind := <-told; kind != want {
				t.Fatalf("it said %d", kind)
			}
		}
		if held := kept(); held < before+rubbish/2 {
			t.Errorf("there is no rubbish: the heap keeps %d bytes", held)
		}
		time.Sleep(restAfter + time.Second)
		synctest.Wait()
		if held := kept(); held > before+rubbish/8 {
			t.Errorf("the heap keeps %d bytes, and kept %d before", held, before)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for range told { // until it is closed
		}
		time.Sleep(stubborn)
	})
}
