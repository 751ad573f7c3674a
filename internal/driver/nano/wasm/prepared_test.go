package wasm

import (
	"bytes"
	"context"
	"testing"

	"agentbox/internal/driver/nano/meter"
)

// TestPreparedModules compiles modules that were encoded and decoded: they are what the modules themselves become.
func TestPreparedModules(t *testing.T) {
	for _, name := range []string{"ends", "state", "tables"} {
		e, code := start(t, name)
		p, err := Prepare(fixture(t, name))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var q Prepared
		if err := q.UnmarshalBinary(encoded); err != nil {
			t.Fatal(err)
		}
		if again, err := q.MarshalBinary(); err != nil || !bytes.Equal(again, encoded) {
			t.Errorf("%s: what was decoded is encoded otherwise, %v", name, err)
		}
		same, err := e.CompilePrepared(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		if same.Hash() != code.Hash() || same.Initial().Hash() != code.Initial().Hash() || same.meta.MemoryMax != code.meta.MemoryMax ||
			same.meta.Started != code.meta.Started {
			t.Errorf("%s: got %+v, want %+v", name, same.meta, code.meta)
		}
		if len(same.meta.Wasm)+len(same.meta.Data) > 0 {
			t.Errorf("%s: the code keeps the module", name)
		}
		if err := same.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

// TestBrokenPreparedModules decodes what is cut short, or goes on.
func TestBrokenPreparedModules(t *testing.T) {
	p := &Prepared{meta: meter.Module{
		Wasm: []byte("wasm"), HasMemory: true, MemoryMin: 1, MemoryMax: 2, Unsaved: "why", Started: true,
		Globals: []meter.Global{{Name: "g", Type: I32}}, Data: []meter.Segment{{Offset: 3, Bytes: []byte("data")}},
	}}
	encoded, err := p.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	var q Prepared
	for n := range encoded {
		if err := q.UnmarshalBinary(encoded[:n]); err == nil {
			t.Errorf("%d of %d bytes are taken", n, len(encoded))
		}
	}
	if err := q.UnmarshalBinary(append(encoded, 0)); err == nil {
		t.Error("a byte too many is taken")
	}
	if err := q.UnmarshalBinary(encoded); err != nil {
		t.Error(err)
	}
}
