//go:build linux && !nocow

package wasm

import (
	"context"
	"os"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
)

// mapped counts the mappings of images and of the address space that is reserved for 1,024 pages, and the files that are open.
func mapped(t *testing.T) (images, reserved, files int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "agentbox-image") {
			images++
		}
		if strings.Contains(line, " ---p 00000000 00:00 0") {
			reserved++
		}
	}
	return images, reserved, len(open)
}

// TestNothingLeaks: however an instance begins and ends, its memory is unmapped, and a closed image leaves nothing.
func TestNothingLeaks(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "ends")
	_, state := start(t, "state")
	im := build(t, state)
	other, err := New(ctx, Options{MemoryPages: 1024})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(ctx)
	lacking, err := other.Compile(ctx, fixture(t, "ends")) // nothing provides what it imports
	if err != nil {
		t.Fatal(err)
	}
	defer lacking.Close(ctx)
	images, reserved, files := mapped(t)
	for range 20 {
		for name, arg := range map[string]uint64{"unreachable": 0, "exit": 1, "throw": 1, "down": 1 << 20, "spin": 10, "charge": 1 << 30} {
			a := account(func(l *bound.Limits) { l.Gas = 10_000_000 })
			in, err := c.Initial().New(ctx, a, nil)
			if err != nil {
				t.Fatal(err)
			}
			if name == "unreachable" {
				_, err = in.Call(ctx, name)
			} else {
				_, err = in.Call(ctx, name, arg)
			}
			if (err == nil) != (name == "spin") {
				t.Errorf("%s: %v", name, err)
			}
			in.Close(ctx)
			if now, _ := a.Memory(); now != 0 {
				t.Errorf("%s: %d bytes are still counted", name, now)
			}
		}
		a := account()
		if _, err := lacking.Initial().New(ctx, a, nil); err == nil {
			t.Error("an instance without its imports")
		}
		if now, _ := a.Memory(); now != 0 {
			t.Errorf("%d bytes are still counted", now)
		}
		a = account(func(l *bound.Limits) { l.MemoryBytes = pageSize })
		if _, err := im.New(ctx, a, nil); err == nil {
			t.Error("an instance without memory")
		}
		in, err := im.New(ctx, account(), nil)
		if err != nil {
			t.Fatal(err)
		}
		call(t, in, "grow", 100)
		d, err := in.Freeze()
		if err != nil {
			t.Fatal(err)
		}
		in.Close(ctx)
		next, err := im.With(d)
		if err != nil {
			t.Fatal(err)
		}
		if in, err = next.New(ctx, account(), nil); err != nil {
			t.Fatal(err)
		}
		in.Close(ctx)
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		encoded, _ := im.Encode()
		back, err := state.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if err := back.Warm(ctx); err != nil {
			t.Error(err)
		}
		if in, err = back.New(ctx, account(), nil); err != nil {
			t.Fatal(err)
		}
		in.Close(ctx)
		if err := back.Close(); err != nil {
			t.Error(err)
		}
		if _, err := state.Build(ctx, account(), nil, func(*Instance) error { return bound.ErrMemory }); err == nil {
			t.Error("an image whose beginning failed")
		}
	}
	i, r, f := mapped(t)
	if i != images || f != files || r > reserved+2 { // the Go runtime has some of its own
		t.Errorf("%d images, %d reserved, %d files; before %d, %d, %d", i, r, f, images, reserved, files)
	}
}

// TestAStoppedGuestsMemoryIsGivenBackAfterwards closes an instance whose execution was stopped: its memory counts no more, and is
// unmapped when its end was told of.
func TestAStoppedGuestsMemoryIsGivenBackAfterwards(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	images, _, _ := mapped(t)
	a := account()
	a.Promise()
	in, err := c.Initial().New(ctx, a, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.Stop(&bound.Stopped{TimedOut: true})
	if err := in.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if held, _ := a.Memory(); held != 0 {
		t.Errorf("%d bytes are still counted", held)
	}
	if now, _, _ := mapped(t); now != images+1 {
		t.Error("its memory was unmapped before the end was told of")
	}
	a.Finish()
	if now, _, _ := mapped(t); now != images {
		t.Errorf("%d images are mapped, and were %d before", now, images)
	}
}
