package javascript

import (
	"context"
	"testing"
	"time"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
)

// BenchmarkContext measures what a cell adds to a run: to restore the state that the one before left, and to freeze it again.
func BenchmarkContext(b *testing.B) {
	var state *wasm.Delta
	execute(b, world{args: []string{"js"}, cells: func(r *Runtime, p *program.Process) int {
		c, err := r.Cell(p, nil, "var x = Array.from({ length: 10000 }, (_, i) => ({ i }))")
		if err != nil {
			b.Error(err)
		}
		state = c.State
		return 0
	}})
	r := runtimeOf(b)
	encoded, _ := state.MarshalBinary()
	var restore, freeze time.Duration
	n := 0
	for b.Loop() {
		began := time.Now()
		var d wasm.Delta
		if err := d.UnmarshalBinary(encoded); err != nil {
			b.Fatal(err)
		}
		im, err := r.image.With(d)
		if err != nil {
			b.Fatal(err)
		}
		in, err := im.New(context.Background(), bound.New(plenty, [32]byte{}, begin), nil)
		if err != nil {
			b.Fatal(err)
		}
		restore += time.Since(began)
		began = time.Now()
		after, err := in.Freeze()
		if err != nil || after.Bytes() != state.Bytes() {
			b.Fatal(err)
		}
		if _, err := after.MarshalBinary(); err != nil {
			b.Fatal(err)
		}
		freeze += time.Since(began)
		if err := in.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := im.Close(); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(restore.Microseconds())/1000/float64(n), "restore-ms")
	b.ReportMetric(float64(freeze.Microseconds())/1000/float64(n), "freeze-ms")
	b.ReportMetric(float64(len(encoded))/(1<<20), "MiB")
}
