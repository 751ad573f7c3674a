package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"agentbox/internal/driver/nano/meter"
)

// bodies is a module of functions with these bodies.
func bodies(all ...[]byte) []byte {
	sized := func(p ...[]byte) []byte {
		b := slices.Concat(p...)
		return append(binary.AppendUvarint(nil, uint64(len(b))), b...)
	}
	count := binary.AppendUvarint(nil, uint64(len(all)))
	code := bytes.Clone(count)
	for _, b := range all {
		code = append(code, sized(b)...)
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"), []byte{1}, sized([]byte{1, 0x60, 0, 0}), []byte{3},
		sized(count, make([]byte, len(all))), []byte{10}, sized(code))
}

// TestFunctionsOfForeignModulesAreBounded compiles functions of just so much as is taken while an execution waits, and of one more.
func TestFunctionsOfForeignModulesAreBounded(t *testing.T) {
	if ForeignFunction != 256<<10 || ForeignBlocks != 4096 {
		t.Errorf("the bounds are %d and %d", ForeignFunction, ForeignBlocks)
	}
	own, err := New(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close(t.Context())
	foreign, err := New(t.Context(), Options{Foreign: true})
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close(t.Context())
	for name, f := range map[string]func(n int) []byte{
		"bytes": func(n int) []byte {
			return append(append([]byte{0}, bytes.Repeat([]byte{1}, ForeignFunction-3+n)...), 0x0b)
		},
		"blocks": func(n int) []byte {
			return append(append([]byte{0}, bytes.Repeat([]byte{2, 0x40, 0x0b}, ForeignBlocks-1+n)...), 0x0b)
		},
	} {
		for _, x := range []struct {
			e  *Engine
			n  int
			ok bool
		}{{foreign, 1, true}, {foreign, 2, false}, {own, 2, true}} {
			code, err := x.e.Compile(t.Context(), bodies(f(x.n)))
			if x.ok != (err == nil) || !x.ok && !errors.Is(err, meter.ErrTooLarge) {
				t.Errorf("%s, %d: got %v", name, x.n, err)
			}
			if err == nil {
				_ = code.Close(t.Context())
			}
		}
	}
}

// countdown is a context that ends when it was looked at so many times.
type countdown struct {
	context.Context
	left chan struct{}
}

func (c countdown) Err() error {
	select {
	case c.left <- struct{}{}:
		return nil
	default:
		return context.Canceled
	}
}

// TestCompilingEndsWithItsContext ends a compilation in the pass that meters.
func TestCompilingEndsWithItsContext(t *testing.T) {
	e, err := New(t.Context(), Options{Foreign: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(t.Context())
	module := bodies(slices.Repeat([][]byte{{0, 0x0b}}, 10_000)...)
	if _, err := e.Compile(countdown{t.Context(), make(chan struct{}, 3)}, module); !errors.Is(err, context.Canceled) {
		t.Errorf("in the pass: got %v, want that it was cancelled", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.runtimeCompile(over, module); !errors.Is(err, context.Canceled) {
		t.Errorf("in the compiler: got %v, want that it was cancelled", err)
	}
	code, err := e.Compile(t.Context(), module)
	if err != nil {
		t.Fatal(err)
	}
	_ = code.Close(t.Context())
}
