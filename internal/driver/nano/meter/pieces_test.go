package meter

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// bulk copies and fills a memory of two pages whose bytes differ from their neighbours.
const bulk = `(module (memory (export "memory") 2) (global $i (mut i32) (i32.const 0))
	(func $mark (loop (i32.store (i32.shl (global.get $i) (i32.const 2)) (i32.mul (global.get $i) (i32.const 0x9e3779b1)))
		(br_if 0 (i32.lt_u (global.get $i) (i32.const 32767)) (global.set $i (i32.add (global.get $i) (i32.const 1))))))
	(func (export "copy") (param i32 i32 i32) (call $mark) (memory.copy (local.get 0) (local.get 1) (local.get 2)))
	(func (export "fill") (param i32 i32 i32) (call $mark) (memory.fill (local.get 0) (local.get 1) (local.get 2))))`

// TestBulkInPiecesDoesTheSame copies and fills ranges of a memory, in pieces of eight bytes, in large ones and as the module says it. The
// memory, the trap and the gas are the same.
func TestBulkInPiecesDoesTheSame(t *testing.T) {
	plain := assemble(t, bulk)
	var versions [][]byte
	for _, piece := range []uint32{0, 8, 4096} {
		m, err := Instrument(plain, Options{piece: piece})
		if err != nil {
			t.Fatal(err)
		}
		versions = append(versions, m.Wasm)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const size = 2 << 16
	near := func() uint64 { // the ends of the memory, of pieces and of numbers
		switch r.IntN(6) {
		case 0:
			return uint64(r.IntN(20))
		case 1:
			return uint64(size - 10 + r.IntN(20))
		case 2:
			return uint64(max(r.IntN(40)*4096-3+r.IntN(6), 0))
		case 3:
			return 0xffff_ffff - uint64(r.IntN(10))
		}
		return uint64(r.IntN(size))
	}
	onEach(t, func(t *testing.T, h *host) {
		trapped := 0
		for i := range 300 {
			name := []string{"copy", "fill"}[i%2]
			args := []uint64{near() & 0xffff_ffff, near() & 0xffff_ffff, near() & 0xffff_ffff}
			if i%3 == 0 { // a copy onto itself, a little further
				args[1] = args[0] + uint64(r.IntN(40)) - 20&0xffff_ffff
			}
			want := h.call(t, plain, 1<<40, name, args...)
			if want.Trap != "" {
				trapped++
			}
			for j, wasm := range versions {
				got := h.call(t, wasm, 1<<40, name, args...)
				if j == 0 {
					want.Gas = got.Gas
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s%v in pieces of number %d: -want +got\n%s", name, args, j, diff)
				}
			}
		}
		if trapped < 30 || trapped > 270 {
			t.Errorf("%d of 300 end by a trap", trapped)
		}
	})
}

// TestBulkIsLookedAtOnItsWay: between two looks no more is copied or filled than a piece.
func TestBulkIsLookedAtOnItsWay(t *testing.T) {
	for name, body := range map[string]string{
		"fill":           `(memory.fill (i32.const 0) (i32.const 1) (i32.const 4194304))`,
		"copy forwards":  `(memory.copy (i32.const 0) (i32.const 1) (i32.const 4194303))`,
		"copy backwards": `(memory.copy (i32.const 1) (i32.const 0) (i32.const 4194303))`,
	} {
		wasm := metered(t, `(module (memory (export "memory") 64) (func (export "run") %s))`, body)
		onEach(t, func(t *testing.T, h *host) {
			h.slice = 1
			if got := h.call(t, wasm, 1<<40, "run"); got.Trap != "" || h.yields < 4 || h.overshoot > bulkPiece>>bytesShift+stretch {
				t.Errorf("%s: %q after %d looks, %d gas without one", name, got.Trap, h.yields, h.overshoot)
			}
			// Of an operation beyond the gas, only charged pieces are done.
			if got := h.call(t, wasm, bulkPiece>>bytesShift*5/2, "run"); got.Trap == "" || got.Gas > bulkPiece>>bytesShift*5/2+bulkPiece>>bytesShift+
				stretch {
				t.Errorf("%s with little gas: %q after %d", name, got.Trap, got.Gas)
			}
		})
	}
}
