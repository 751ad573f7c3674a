package meter

import (
	"context"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// BenchmarkInstrument measures the pass over random modules.
func BenchmarkInstrument(b *testing.B) {
	var modules [][]byte
	total := 0
	for seed := range uint64(100) {
		m := generate(seed, false)
		modules = append(modules, m)
		total += len(m)
	}
	b.SetBytes(int64(total))
	b.ReportAllocs()
	grown := 0
	for b.Loop() {
		grown = 0
		for _, m := range modules {
			out, err := Instrument(m, Options{})
			if err != nil {
				b.Fatal(err)
			}
			grown += len(out.Wasm)
		}
	}
	b.ReportMetric(float64(grown)/float64(total), "size-ratio")
}

// programs are what the overhead is measured on.
var programs = map[string]string{
	"loop": `(module (func (export "run") (param i32) (result i32) (local i32 i32)
		(local.set 1 (i32.const 12345)) (local.set 2 (i32.mul (local.get 0) (i32.const 1000000)))
		(loop
			(local.set 1 (i32.xor (local.get 1) (i32.shl (local.get 1) (i32.const 13))))
			(local.set 1 (i32.xor (local.get 1) (i32.shr_u (local.get 1) (i32.const 17))))
			(local.set 1 (i32.xor (local.get 1) (i32.shl (local.get 1) (i32.const 5))))
			(br_if 0 (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
		(local.get 1)))`,
	"fib": `(module (func $fib (param i32) (result i32)
		(if (result i32) (i32.lt_s (local.get 0) (i32.const 2)) (then (local.get 0))
			(else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1))) (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
		(func (export "run") (param i32) (result i32) (call $fib (i32.const 27))))`,
	"matmul": `(module (memory 16) (func (export "run") (param i32) (result i32) (local $i i32) (local $j i32) (local $k i32) (local $s f64)
		(loop $ii (local.set $j (i32.const 0))
			(loop $jj (local.set $k (i32.const 0)) (local.set $s (f64.const 0))
				(loop $kk
					(local.set $s (f64.add (local.get $s) (f64.mul
						(f64.load (i32.shl (i32.add (i32.mul (local.get $i) (i32.const 128)) (local.get $k)) (i32.const 3)))
						(f64.load offset=131072 (i32.shl (i32.add (i32.mul (local.get $k) (i32.const 128)) (local.get $j)) (i32.const 3))))))
					(br_if $kk (i32.lt_u (local.tee $k (i32.add (local.get $k) (i32.const 1))) (i32.const 128))))
				(f64.store offset=262144 (i32.shl (i32.add (i32.mul (local.get $i) (i32.const 128)) (local.get $j)) (i32.const 3)) (local.get $s))
				(br_if $jj (i32.lt_u (local.tee $j (i32.add (local.get $j) (i32.const 1))) (i32.const 128))))
			(br_if $ii (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 128))))
		(i32.const 0)))`,
	"sieve": `(module (memory 16) (func (export "run") (param i32) (result i32) (local $i i32) (local $j i32) (local $n i32)
		(memory.fill (i32.const 0) (i32.const 0) (i32.const 1000000)) (local.set $i (i32.const 2))
		(loop $next
			(if (i32.eqz (i32.load8_u (local.get $i))) (then
				(local.set $n (i32.add (local.get $n) (i32.const 1)))
				(if (i32.lt_u (local.tee $j (i32.shl (local.get $i) (i32.const 1))) (i32.const 1000000)) (then
					(loop $mark (i32.store8 (local.get $j) (i32.const 1))
						(br_if $mark (i32.lt_u (local.tee $j (i32.add (local.get $j) (local.get $i))) (i32.const 1000000))))))))
			(br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1000000))))
		(local.get $n)))`,
}

// BenchmarkOverhead runs each program metered, and beside it plain: the ratio is what metering costs.
func BenchmarkOverhead(b *testing.B) {
	ctx := context.Background()
	for _, name := range []string{"loop", "fib", "matmul", "sieve"} {
		b.Run(name, func(b *testing.B) {
			h := newHost(b, wazero.NewRuntimeConfigCompiler())
			h.slice = 1_000_000
			load := func(wasm []byte) func() {
				m, err := h.runtime.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithName(""))
				if err != nil {
					b.Fatal(err)
				}
				run := m.ExportedFunction("run")
				return func() {
					h.budget, h.granted = 1<<50, 0
					if depth, ok := m.ExportedGlobal(Depth).(api.MutableGlobal); ok {
						depth.Set(SafeDepth)
					}
					if _, err := run.Call(ctx, 3); err != nil {
						b.Fatal(err)
					}
				}
			}
			text := assemble(b, programs[name])
			plain, with := load(text), load(instrument(b, text))
			var plainTime, withTime time.Duration
			for b.Loop() {
				begun := time.Now()
				plain()
				middle := time.Now()
				with()
				plainTime, withTime = plainTime+middle.Sub(begun), withTime+time.Since(middle)
			}
			b.ReportMetric(float64(withTime)/float64(plainTime), "metered/plain")
			b.ReportMetric(float64(plainTime.Microseconds())/float64(b.N), "plain-us")
		})
	}
}
