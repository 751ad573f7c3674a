package meter

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// onEach runs a test on each engine.
func onEach(t *testing.T, test func(t *testing.T, h *host)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { test(t, newHost(t, e.config())) })
	}
}

// TestGasIsExact says what small functions cost, counted by hand.
func TestGasIsExact(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		arg        uint64
		want       int64
	}{
		{"empty", `i32.const 0`, 0, 1 + 1},
		{"leaf", `(i32.add (local.get 0) (i32.const 1))`, 0, 1 + 3},
		{"locals", `(local i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64) i32.const 0`, 0, 1 + 2 + 1},
		{"loop", `(loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))) i32.const 0`, 10, 1 + 10*5 + 1},
		{"taken", `(if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.popcnt (i32.const 2))))`, 1, 1 + 2 + 1},
		{"not taken", `(if (result i32) (local.get 0) (then (i32.const 1)) (else (i32.popcnt (i32.const 2))))`, 0, 1 + 2 + 2},
		{"branch", `(block (br_if 0 (local.get 0)) (local.set 0 (i32.const 5))) local.get 0`, 1, 1 + 2 + 1},
		{"no branch", `(block (br_if 0 (local.get 0)) (local.set 0 (i32.const 5))) local.get 0`, 0, 1 + 2 + 2 + 1},
		{"table of branches", `(block (block (br_table 0 1 (local.get 0))) (local.set 0 (i32.const 5))) local.get 0`, 0, 1 + 3 + 2 + 1},
		{"dead code", `(return (i32.const 1)) (i32.add (i32.const 1) (i32.const 2))`, 0, 1 + 2},
		{"call", `(call $leaf (i32.const 1))`, 0, 1 + 1 + 3 + 4},
		{"indirect call", `(call_indirect (type $f) (i32.const 1) (i32.const 0))`, 0, 1 + 2 + 5 + 4},
		{"tail call", `(return_call $leaf (i32.const 1))`, 0, 1 + 1 + 3 + 4},
		{"division", `(i32.div_u (i32.const 6) (i32.const 3))`, 0, 1 + 2 + 8},
		{"floats", `(i32.trunc_f64_s (f64.mul (f64.const 2) (f64.const 3)))`, 0, 1 + 2 + 2 + 1},
		{"fill", `(memory.fill (i32.const 0) (i32.const 1) (i32.const 800)) i32.const 0`, 0, 1 + 3 + 4 + 100 + 1},
		{"copy", `(memory.copy (i32.const 0) (i32.const 1) (i32.const 807)) i32.const 0`, 0, 1 + 3 + 4 + 100 + 1},
		{"init", `(memory.init $d (i32.const 0) (i32.const 0) (i32.const 16)) i32.const 0`, 0, 1 + 3 + 4 + 2 + 1},
		{"grow", `(memory.grow (i32.const 2))`, 0, 1 + 1 + 64 + 2*PageGas},
		{"grow too far", `(memory.grow (i32.const 2000))`, 0, 1 + 1 + 64},
		{"table.grow", `(table.grow $t (ref.null func) (i32.const 3))`, 0, 1 + 2 + 64 + 3},
		{"table.grow too far", `(table.grow $t (ref.null func) (i32.const 9))`, 0, 1 + 2 + 64},
		{"table.copy", `(table.copy $t $t (i32.const 0) (i32.const 1) (i32.const 1)) i32.const 0`, 0, 1 + 3 + 4 + 1 + 1},
		{"table.fill", `(table.fill $t (i32.const 0) (ref.null func) (i32.const 2)) i32.const 0`, 0, 1 + 3 + 4 + 2 + 1},
		{"table.init", `(table.init $t $e (i32.const 0) (i32.const 0) (i32.const 2)) i32.const 0`, 0, 1 + 3 + 4 + 2 + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			wasm := metered(t, `(module (type $f (func (param i32) (result i32))) (memory 1 8) (table $t 2 8 funcref)
				(elem (i32.const 0) $leaf) (elem $e func $leaf $leaf) (data $d "sixteen bytes...")
				(func $leaf (type $f) (i32.add (local.get 0) (i32.const 1)))
				(func (export "run") (param i32) (result i32) %s))`, tc.body)
			onEach(t, func(t *testing.T, h *host) {
				if got := h.call(t, wasm, 1<<40, "run", tc.arg); got.Gas != tc.want || got.Trap != "" {
					t.Errorf("got %d %s, want %d", got.Gas, got.Trap, tc.want)
				}
				if got := h.call(t, wasm, tc.want-1, "run", tc.arg); tc.want > leaf && got.Trap == "" && h.overshoot == 0 && h.yields == 0 {
					t.Errorf("nothing looked at the gas")
				}
			})
		})
	}
}

// TestEndlessThingsStop: whatever repeats without end comes to a look at the gas, not far below zero.
func TestEndlessThingsStop(t *testing.T) {
	straight := strings.Repeat("(local.set 0 (i32.mul (local.get 0) (i32.const 3)))", 5000)
	leaves := strings.Repeat("(call $leaf)", 5_000)
	// Arms in which something looks, and ways past them that take more than may be taken without a look, all together.
	looked, few := "(loop (local.set 1 (i32.const 1)))", strings.Repeat("(local.set 1 (i32.const 3))", 50)
	arms := strings.Repeat("(if (local.get 0) (then "+few+") (else "+few+"))", 400)
	past := strings.Repeat(few+"(if (local.get 0) (then "+looked+"))", 400)
	otherwise := strings.Repeat("(if (local.get 0) (then "+looked+") (else "+few+"))", 400)
	out := strings.Repeat(few+"(block (br_if 0 (i32.eqz (local.get 0))) "+looked+")", 400)
	for name, body := range map[string]string{
		"loop":            `(loop (br 0))`,
		"loop of a block": `(loop (block (block (br_if 1 (i32.const 1)))) (br 0))`,
		"loops":           `(loop (loop (block (br 2))))`,
		"table":           `(loop (br_table 0 0 (i32.const 0)))`,
		"straight":        `(loop ` + straight + `(br 0))`,
		"arms":            `(local i32) (loop ` + arms + `(br 0))`,
		"past a look":     `(local i32) (loop ` + past + `(br 0))`,
		"otherwise":       `(local i32) (loop ` + otherwise + `(br 0))`,
		"out of a block":  `(local i32) (loop ` + out + `(br 0))`,
		"leaves":          `(loop ` + leaves + `(br 0))`,
		"big leaves":      `(loop (call $straight) (br 0))`,
		"tail call":       `(return_call $run (i32.const 0))`,
		"tail call to 0":  `(return_call_indirect (param i32) (i32.const 0) (i32.const 0))`,
		"host":            `(loop (drop (call $twist (i32.const 1))) (br 0))`,
	} {
		t.Run(name, func(t *testing.T) {
			wasm := metered(t, `(module (import "host" "twist" (func $twist (param i32) (result i32))) (memory 1) (table 1 1 funcref) (elem (i32.const 0) $run)
				(func $leaf %s) (func $straight (local i32) %s) (func $run (export "run") (param i32) %s))`, strings.Repeat("(drop (i32.const 1))", 15),
				straight, body)
			onEach(t, func(t *testing.T, h *host) {
				got := h.call(t, wasm, 1_000_000, "run", 0)
				if !strings.Contains(got.Trap, errGas.Error()) || h.overshoot > 4*stretch {
					t.Errorf("%q, %d below zero", got.Trap, h.overshoot)
				}
			})
		})
	}
}

// TestReturningIsLooked: calls that return one after the other, and do something each, cannot take more than a little without a look.
func TestReturningIsLooked(t *testing.T) {
	const deep = 1800 // the interpreter's limit is 2000
	wasm := metered(t, `(module (func $down (export "run") (param i32)
		(if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1)))))
		%s))`, strings.Repeat("(local.set 0 (i32.mul (local.get 0) (i32.const 3)))", 1000))
	onEach(t, func(t *testing.T, h *host) {
		h.slice = 1
		if got := h.call(t, wasm, 1<<40, "run", deep); got.Trap != "" || h.overshoot > 4*stretch {
			t.Errorf("%q, %d below zero", got.Trap, h.overshoot)
		}
	})
}

// TestBulkIsChargedBefore holds that an operation beyond the gas does not begin.
func TestBulkIsChargedBefore(t *testing.T) {
	wasm := metered(t, `(module (memory (export "memory") 16) (func (export "run")
		(memory.fill (i32.const 0) (i32.const 1) (i32.const 1048576))))`)
	untouched := metered(t, `(module (memory 16) (func (export "run")))`)
	onEach(t, func(t *testing.T, h *host) {
		got := h.call(t, wasm, 100_000, "run")
		want := h.call(t, untouched, 100_000, "run")
		if !strings.Contains(got.Trap, errGas.Error()) || got.Memory != want.Memory {
			t.Errorf("%q, and the memory was filled: %v", got.Trap, got.Memory != want.Memory)
		}
	})
}

// TestDepth: all ways to call count, all ways to return give back, and a trap leaves an instance usable.
func TestDepth(t *testing.T) {
	for name, body := range map[string]string{
		"direct":    `(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1)))))`,
		"return":    `(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1))) (return)))`,
		"branch":    `(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1))) (br 1)))`,
		"branch if": `(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1))) (br_if 1 (i32.const 1))))`,
		"table":     `(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1))) (br_table 0 1 1 (local.get 0))))`,
		"indirect":  `(if (local.get 0) (then (call_indirect (param i32) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))))`,
		"reference": `(if (local.get 0) (then (table.set 0 (i32.const 0) (ref.func $run)) (call_indirect (param i32) (i32.sub (local.get 0) ` +
			`(i32.const 1)) (i32.const 0))))`,
		"wide tail": `(if (local.get 0) (then (return_call $wide (i32.sub (local.get 0) (i32.const 1)) (local.get 0) (local.get 0) (local.get ` +
			`0) (local.get 0) (local.get 0) (local.get 0))))`,
	} {
		t.Run(name, func(t *testing.T) {
			wasm := metered(t, `(module (table 1 1 funcref) (elem (i32.const 0) $run)
				(func $wide (param i32 i32 i32 i32 i32 i32 i32) (if (local.get 0) (then
					(return_call $wide (i32.sub (local.get 0) (i32.const 1)) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0) (local.get 0)))))
				(func $run (export "run") (param i32) %s))`, body)
			onEach(t, func(t *testing.T, h *host) {
				const limit = 100
				h.depth, h.budget, h.granted = limit, 1<<40, 0
				m := h.instantiate(t, wasm)
				for range 3 { // a trap leaves no trace
					if o := h.callIn(m, "run", limit-1); o.Trap != "" || depthOf(m) != limit {
						t.Errorf("%d calls: %q, and %d are left of %d", limit, o.Trap, depthOf(m), limit)
					}
					if o := h.callIn(m, "run", limit); !strings.Contains(o.Trap, errDepth.Error()) {
						t.Errorf("%d calls: %q", limit+1, o.Trap)
					}
				}
			})
		})
	}
}

// TestTailCallsNeedNoDepth calls on for a million times.
func TestTailCallsNeedNoDepth(t *testing.T) {
	wasm := metered(t, `(module (table 1 1 funcref) (elem (i32.const 0) $odd)
		(func $even (export "run") (param i32) (result i32)
			(if (i32.eqz (local.get 0)) (then (return (i32.const 1)))) (return_call $odd (i32.sub (local.get 0) (i32.const 1))))
		(func $odd (param i32) (result i32)
			(if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
			(return_call_indirect (param i32) (result i32) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0))))`)
	onEach(t, func(t *testing.T, h *host) {
		h.depth = 2
		if o := h.call(t, wasm, 1<<40, "run", 1_000_000); o.Trap != "" || o.Results[0] != 0 {
			t.Errorf("%v %q", o.Results, o.Trap)
		}
	})
}

// TestDeepFramesCountMore: a function with many locals takes more of the depth.
func TestDeepFramesCountMore(t *testing.T) {
	wasm := metered(t, `(module (func $run (export "run") (param i32) (local %s)
		(if (local.get 0) (then (call $run (i32.sub (local.get 0) (i32.const 1)))))))`, strings.Repeat("i64 ", 640))
	onEach(t, func(t *testing.T, h *host) {
		h.depth = 110 // 1 + (641*16+17)/1024 units each
		if o := h.call(t, wasm, 1<<40, "run", 9); o.Trap != "" {
			t.Error(o.Trap)
		}
		if o := h.call(t, wasm, 1<<40, "run", 10); !strings.Contains(o.Trap, errDepth.Error()) {
			t.Error(o.Trap)
		}
	})
}

// TestSafeDepthIsSafe goes as deep as it may with frames that are as large as they may be for their units: the compiler's stack suffices.
func TestSafeDepthIsSafe(t *testing.T) {
	for name, tc := range map[string]struct{ locals, body string }{
		"small": {},
		"values": {body: strings.Repeat("(f64x2.neg (f64x2.splat (f64.convert_i32_u (local.get 0))))", 90) +
			`(call $run (i32.sub (local.get 0) (i32.const 1)))` + strings.Repeat("(drop)", 90)},
		"locals": {locals: "(local " + strings.Repeat("v128 ", 63) + ")", body: func() string {
			var b strings.Builder
			for i := range 63 {
				fmt.Fprintf(&b, "(local.set %d (i32x4.splat (i32.add (local.get 0) (i32.const %d))))", i+1, i)
			}
			b.WriteString(`(call $run (i32.sub (local.get 0) (i32.const 1)))`)
			for i := range 63 {
				fmt.Fprintf(&b, "(drop (v128.any_true (local.get %d)))", i+1)
			}
			return b.String()
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			wasm := metered(t, `(module (memory 1) (func $run (export "run") (param i32) %s (if (local.get 0) (then %s (call $run (i32.sub `+
				`(local.get 0) (i32.const 1)))))))`, tc.locals, tc.body)
			h := newHost(t, wazero.NewRuntimeConfigCompiler())
			if o := h.call(t, wasm, 1<<40, "run", 1<<30); !strings.Contains(o.Trap, errDepth.Error()) {
				t.Error(o.Trap)
			}
		})
	}
}

func (h *host) instantiate(t *testing.T, wasm []byte) api.Module {
	t.Helper()
	m, err := h.runtime.InstantiateWithConfig(context.Background(), wasm, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func depthOf(m api.Module) int64 { return int64(m.ExportedGlobal(Depth).Get()) }

// nans are NaNs of all kinds, and what makes some.
var (
	nans64 = []uint64{0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000001, 0xfff0000000000001, 0x7ff8dead00000000, 0xffffffffffffffff,
		0x7ff4000000000000, 0x7ff0000000000000, 0xfff0000000000000, 0, 0x8000000000000000, 0xbff0000000000000, 0x3ff0000000000000}
	nans32 = []uint32{0x7fc00000, 0xffc00000, 0x7f800001, 0xff800001, 0x7fc0dead, 0xffffffff, 0x7fa00000, 0x7f800000, 0xff800000, 0,
		0x80000000, 0xbf800000, 0x3f800000}
)

// TestNaNs gives each operation that may return any NaN all kinds of them, scalar and in lanes: it returns the canonical one on both
// engines, also at the end of a chain. The operations that are exact keep every bit.
func TestNaNs(t *testing.T) {
	operand := func(code int) byte { // the scalar type that an operation takes
		switch {
		case code == 0xb6: // f32.demote_f64
			return typeF64
		case code == 0xbb:
			return typeF32
		case code >= 0x99 && code <= 0xa6 || code >= 0x61 && code <= 0x66:
			return typeF64
		default:
			return typeF32
		}
	}
	onEach(t, func(t *testing.T, h *host) {
		tested := 0
		for code, o := range newInstructions() {
			isExact := code == 0x8b || code == 0x8c || code == 0x98 || code == 0x99 || code == 0x9a || code == 0xa6 || // abs neg copysign
				code >= prefixVector && (code&0xff == 0xe0 || code&0xff == 0xe1 || code&0xff == 0xec || code&0xff == 0xed || // abs neg
					code&0xff == 0xea || code&0xff == 0xeb || code&0xff == 0xf6 || code&0xff == 0xf7) // pmin pmax
			if o.nan == exact && !isExact {
				continue
			}
			tested++
			two := o.pops == 2 || code == 0x98 || code == 0xa6 || code >= prefixVector && (code&0xff|1 == 0xeb || code&0xff|1 == 0xf7)
			var wasm []byte
			if code >= prefixVector {
				wasm = instrument(t, vectorProbe(byte(code), two))
			} else {
				wasm = instrument(t, scalarProbe(byte(code), operand(code), o.nan == float64Result || isExact && operand(code) == typeF64, two))
			}
			h.budget, h.granted = 1<<40, 0
			m := h.instantiate(t, wasm)
			for i := range nans64 {
				for j := range nans64 {
					a, b := nans64[i], nans64[j]
					if code < prefixVector && operand(code) == typeF32 || code >= prefixVector && (o.takes == float32x4Result || code&0xff >= 0xe0 &&
						code&0xff <= 0xeb) {
						a, b = uint64(nans32[i]), uint64(nans32[j])
						if code >= prefixVector {
							a, b = a|uint64(nans32[len(nans32)-1-i])<<32, b|b<<32
						}
					}
					out := h.callIn(m, "run", a, b)
					if out.Trap != "" {
						t.Fatalf("%#x: %s", code, out.Trap)
					}
					for _, r := range out.Results {
						switch {
						case isExact:
							if want := exactly(code, a, b); r != want {
								t.Errorf("%#x of %x and %x: got %x, want %x", code, a, b, r, want)
							}
						case o.nan == float64Result || o.nan == float64x2Result:
							if math.IsNaN(math.Float64frombits(r)) && r != 0x7ff8000000000000 {
								t.Errorf("%#x of %x and %x: %x", code, a, b, r)
							}
						default:
							for _, r := range []uint32{uint32(r), uint32(r >> 32)} {
								if r&0x7fffffff > 0x7f800000 && r != 0x7fc00000 {
									t.Errorf("%#x of %x and %x: %x", code, a, b, r)
								}
							}
						}
					}
				}
			}
			m.Close(context.Background())
		}
		if tested != 7+7+7+7+2+2+2+2+22 && tested < 50 {
			t.Errorf("%d operations were tested", tested)
		}
	})
}

// TestNaNsBetweenShapes: half of a wide NaN is not a NaN in the narrow lanes, so that all of its bits can be seen there.
func TestNaNsBetweenShapes(t *testing.T) {
	body := []byte{opLocalGet, 0, 0xfd, 0x12, opLocalGet, 0, 0xfd, 0x12, 0xfd, 0xf0, 0x01} // f64x2.add
	body = append(append(append(body, 0xfd, 12), make([]byte, 16)...), 0xfd, 0xe4, 0x01, 0xfd, 0x1d, 0)
	wasm := instrument(t, probe(append(body, opLocalGet, 1)))
	onEach(t, func(t *testing.T, h *host) {
		if o := h.call(t, wasm, 1<<40, "run", 0x7ff8dead0000beef, 0); o.Results[0] != 0x7fc0000000000000 {
			t.Errorf("got %x, %s", o.Results, o.Trap)
		}
	})
}

// exactly is what the exact operations on floats return, in all their bits.
func exactly(code int, a, b uint64) uint64 {
	wide := func(f func(a, b uint64) uint64) uint64 { return f(a, b) }
	narrow := func(f func(a, b uint32) uint32) uint64 {
		low := uint64(f(uint32(a), uint32(b)))
		if code < prefixVector {
			return low
		}
		return low | uint64(f(uint32(a>>32), uint32(b>>32)))<<32
	}
	const s32, s64 = 1 << 31, 1 << 63
	f32, f64 := math.Float32frombits, math.Float64frombits
	switch code {
	case 0x8b, prefixVector + 0xe0:
		return narrow(func(a, _ uint32) uint32 { return a &^ s32 })
	case 0x8c, prefixVector + 0xe1:
		return narrow(func(a, _ uint32) uint32 { return a ^ s32 })
	case 0x98:
		return narrow(func(a, b uint32) uint32 { return a&^s32 | b&s32 })
	case 0x99, prefixVector + 0xec:
		return wide(func(a, _ uint64) uint64 { return a &^ s64 })
	case 0x9a, prefixVector + 0xed:
		return wide(func(a, _ uint64) uint64 { return a ^ s64 })
	case 0xa6:
		return wide(func(a, b uint64) uint64 { return a&^s64 | b&s64 })
	case prefixVector + 0xea, prefixVector + 0xeb:
		return narrow(func(a, b uint32) uint32 {
			if code&1 == 0 && f32(b) < f32(a) || code&1 == 1 && f32(a) < f32(b) {
				return b
			}
			return a
		})
	default:
		return wide(func(a, b uint64) uint64 {
			if code&1 == 0 && f64(b) < f64(a) || code&1 == 1 && f64(a) < f64(b) {
				return b
			}
			return a
		})
	}
}

// scalarProbe exports "run" (i64 i64) -> (i64 i64): an operation on the bits of its parameters, and the same behind another in a chain.
func scalarProbe(code, operand byte, wide, two bool) []byte {
	take := func(b []byte, i byte) []byte {
		b = append(b, opLocalGet, i)
		if operand == typeF32 {
			return append(b, 0xa7, 0xbe) // wrap, reinterpret
		}
		return append(b, 0xbf)
	}
	give := func(b []byte) []byte {
		if wide {
			return append(b, 0xbd)
		}
		return append(b, 0xbc, 0xad)
	}
	var body []byte
	for range 2 {
		body = take(body, 0)
		if two {
			body = take(body, 1)
		}
		body = give(append(body, code))
	}
	return probe(body)
}

// vectorProbe does the same with vectors whose lanes are all a parameter.
func vectorProbe(code byte, two bool) []byte {
	var body []byte
	for lane := range byte(2) {
		body = append(body, opLocalGet, 0, 0xfd, 0x12)
		if two {
			body = append(body, opLocalGet, 1, 0xfd, 0x12)
		}
		body = append(body, 0xfd)
		body = append(appendU32(body, uint32(code)), 0xfd, 0x1d, lane)
		if lane == 1 && (code == 0x5e || code == 0x5f) { // of demotion only the low lanes tell
			break
		}
	}
	return probe(body)
}

func probe(body []byte) []byte {
	p := &pass{}
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = p.vector(out, sectionType, 1, []byte{0x60, 2, typeI64, typeI64, 2, typeI64, typeI64})
	out = p.vector(out, sectionFunction, 1, []byte{0})
	out = p.vector(out, sectionExport, 1, append(appendName(nil, "run"), 0, 0))
	body = append(append([]byte{0}, body...), opEnd)
	return p.vector(out, sectionCode, 1, append(appendU32(nil, uint32(len(body))), body...))
}
