package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"agentbox/internal/domain/fault"
)

// TestFreeze: what goes on from a frozen instance does as that one, also twice frozen and through bytes.
func TestFreeze(t *testing.T) {
	_, c := start(t, "state")
	im := build(t, c)
	in := open(t, im, account())
	var deltas []Delta
	for i := range 3 {
		call(t, in, "count")
		call(t, in, "poke", uint64(10_000*i), 9)
		call(t, in, "grow", 1)
		call(t, in, "poke", uint64(len(in.Memory())-100), 8)
		d, err := in.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		deltas = append(deltas, d)
		encoded, err := d.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var back Delta
		if err := back.UnmarshalBinary(encoded); err != nil {
			t.Fatal(err)
		}
		next, err := im.With(back)
		if err != nil {
			t.Fatal(err)
		}
		defer next.Close()
		copied := open(t, next, account())
		if !bytes.Equal(copied.Memory(), in.Memory()) {
			t.Error("the memory differs")
		}
		if again, err := copied.Freeze(); err != nil || !equal(again, d) {
			t.Errorf("frozen again it differs: %v", err)
		}
		a, b := call(t, copied, "count"), call(t, copied, "count")
		if a != uint64(14+i) || b != a+1 {
			t.Errorf("it counts %d, %d", a, b)
		}
		if n := d.Bytes(); n > 10*grain {
			t.Errorf("%d bytes are different", n)
		}
		in.Close(context.Background())
		in = open(t, next, account())
		defer in.Close(context.Background())
		defer copied.Close(context.Background())
	}
	if deltas[2].Size != 6*pageSize {
		t.Errorf("the memory has %d bytes", deltas[2].Size)
	}
	wrong := deltas[0]
	wrong.Base[0]++
	if _, err := im.With(wrong); !errors.Is(err, ErrImage) {
		t.Errorf("a delta of another image: %v", err)
	}
	wrong = deltas[0]
	wrong.Pieces = []Piece{{Offset: wrong.Size, Bytes: make([]byte, pieceSize)}}
	if _, err := im.With(wrong); !errors.Is(err, ErrImage) {
		t.Errorf("a piece beyond the memory: %v", err)
	}
	wrong = deltas[0]
	if wrong.Globals = slices.Clone(wrong.Globals); c.meta.Globals[0].Type != I32 {
		t.Fatal("the first global of the module is of another type")
	}
	wrong.Globals[0] |= 1 << 32
	if _, err := im.With(wrong); !errors.Is(err, ErrImage) {
		t.Errorf("a global beyond its type: %v", err)
	}
	if err := im.Close(); fault.CodeOf(err) != "wasm_in_use" {
		t.Errorf("an image in use is closed: %v", err)
	}
}

// TestWhatWasWritten: whether the system tells what was written or all is compared, the delta is the same.
func TestWhatWasWritten(t *testing.T) {
	e, c := start(t, "state")
	im := build(t, c)
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		in := open(t, im, account())
		call(t, in, "grow", uint64(random.IntN(20)))
		m := in.Memory()
		for range random.IntN(30) {
			at := random.IntN(len(m))
			m[at] += byte(random.IntN(2)) // some writes change nothing
			_ = m[random.IntN(len(m))]
		}
		fast, err := in.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		known := e.marks
		e.marks = marks{}
		slow, err := in.Freeze()
		e.marks = known
		if err != nil || !equal(fast, slow) {
			t.Fatalf("%d bytes where the system tells, %d where all is compared: %v", fast.Bytes(), slow.Bytes(), err)
		}
		in.Close(context.Background())
	}
}

func equal(a, b Delta) bool {
	x, _ := a.MarshalBinary()
	y, _ := b.MarshalBinary()
	return bytes.Equal(x, y)
}

func FuzzDelta(f *testing.F) {
	d := Delta{Size: 2 * pageSize, Globals: []uint64{1}, Pieces: []Piece{{Offset: pieceSize, Bytes: make([]byte, pieceSize)}}}
	encoded, _ := d.MarshalBinary()
	f.Add(encoded)
	f.Add(binary.LittleEndian.AppendUint64(encoded[:60:60], 1<<62))
	f.Fuzz(func(t *testing.T, b []byte) {
		var d Delta
		if d.UnmarshalBinary(b) != nil {
			return
		}
		if again, _ := d.MarshalBinary(); !bytes.Equal(again, b) {
			t.Error("it has two encodings")
		}
	})
}
