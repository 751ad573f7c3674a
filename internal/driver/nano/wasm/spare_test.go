package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"math/rand/v2"
	"testing"

	"agentbox/internal/userland/bound"
)

// whole is the hash that the image of an instance has if the instance is in its first state.
func whole(in *Instance) (sum [32]byte) {
	h := sha256.New()
	h.Write(in.image.code.hash[:])
	h.Write(in.image.head())
	h.Write(in.Memory())
	h.Sum(sum[:0])
	return sum
}

// TestWarm: what one instance leaves to the next is as if it were made anew, whatever was written and how often Warm was called in between.
func TestWarm(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	im := build(t, c)
	if err := im.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	kept := 0
	for i := range 1000 {
		if random.IntN(2) == 0 {
			if err := im.Warm(ctx); err != nil {
				t.Fatal(err)
			}
		}
		spare := im.spare
		a := account()
		in, err := im.New(ctx, a, nil)
		if err != nil {
			t.Fatal(err)
		}
		if in.body == spare {
			kept++
		}
		if in.Image() == im && whole(in) != im.Hash() {
			t.Fatalf("instance %d is not as the image", i)
		}
		if now, _ := a.Memory(); now != int64(im.Size()) {
			t.Fatalf("instance %d counts %d bytes, want %d", i, now, im.Size())
		}
		if got := call(t, in, "count"); got != 13 {
			t.Fatalf("the counter of instance %d is %d, want 13", i, got)
		}
		memory := in.Memory()
		for j := range random.IntN(50) {
			memory[random.IntN(len(memory))] = byte(j)
		}
		if i%10 == 0 {
			clear(memory)
		}
		if i%7 == 0 {
			call(t, in, "grow", 1)
		}
		if err := in.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if now, _ := a.Memory(); now != 0 {
			t.Fatalf("%d bytes of instance %d are still counted", now, i)
		}
	}
	if kept < 700 {
		t.Errorf("%d instances of 1000 were made of what others had left, want most", kept)
	}
}

// TestWarmSettles: the pages that are kept at hand are those of all instances before Settle and of none after it, and an instance is the
// same either way.
func TestWarmSettles(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	im := build(t, c)
	use := func(page int) {
		t.Helper()
		if err := im.Warm(ctx); err != nil {
			t.Fatal(err)
		}
		in, err := im.New(ctx, account(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if whole(in) != im.Hash() {
			t.Fatalf("before page %d: an instance is not as the image", page)
		}
		in.Memory()[page*pieceSize] ^= 1
		if err := in.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	use(3)
	use(5)
	if im.hot == nil {
		t.Skip("this system does not tell what was written")
	}
	im.Settle()
	use(7)
	use(3)
	for page, want := range map[int]bool{3: true, 5: true, 7: false} {
		if im.isHot(page) != want {
			t.Errorf("page %d is kept at hand: %v, want %v", page, !want, want)
		}
	}
}

// TestWarmBelow: instances of an image that stands on a warm one take what that has kept, and leave nothing of theirs in it.
func TestWarmBelow(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	im := build(t, c)
	if err := im.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	in, err := im.New(ctx, account(), nil)
	if err != nil {
		t.Fatal(err)
	}
	call(t, in, "poke", 5000, 99)
	d, err := in.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	in.Close(ctx)
	next, err := im.With(d)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	for i := range 10 {
		above, err := next.New(ctx, account(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if above.Memory()[5000] != 99 {
			t.Fatalf("instance %d lacks what the image above has", i)
		}
		above.Close(ctx)
		below, err := im.New(ctx, account(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if whole(below) != im.Hash() {
			t.Fatalf("instance %d of the image below is not as the image", i)
		}
		below.Close(ctx)
	}
}

// TestWarmKeepsNothingOfTheBroken: an instance that was ended by a trap, by its account or by what the host threw leaves nothing, one
// that exits may.
func TestWarmKeepsNothingOfTheBroken(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "ends")
	im, err := c.Build(ctx, account(), nil, func(*Instance) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	for name, x := range map[string]struct {
		args []uint64
		kept bool
	}{
		"unreachable": {nil, false}, "load": {[]uint64{1 << 20}, false}, "throw": {[]uint64{1}, false}, "forever": {nil, false},
		"exit": {[]uint64{3}, true}, "spin": {[]uint64{3}, true},
	} {
		if err := im.Warm(ctx); err != nil {
			t.Fatal(err)
		}
		spare := im.spare
		in, err := im.New(ctx, account(func(l *bound.Limits) { l.Gas = 1 << 20 }), nil)
		if err != nil {
			t.Fatal(err)
		}
		if in.body != spare || im.spare != nil {
			t.Errorf("%s: the instance is not made of what was kept", name)
		}
		_, err = in.Call(ctx, name, x.args...)
		if (err == nil) != (name == "spin") {
			t.Errorf("%s: %v", name, err)
		}
		if err := in.Close(ctx); err != nil {
			t.Fatal(err)
		}
		if (im.spare != nil) != x.kept {
			t.Errorf("after %s something is kept: %t, want %t", name, im.spare != nil, x.kept)
		}
	}
}

// TestWarmIsBounded: an image keeps one body, of instances that do not fit none is made of it, and a closed image keeps none.
func TestWarmIsBounded(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	im := build(t, c)
	if err := im.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	spare := im.spare
	if _, err := im.New(ctx, account(func(l *bound.Limits) { l.MemoryBytes = int64(im.Size()) - 1 }), nil); err == nil {
		t.Error("an instance that does not fit into its account")
	}
	if im.spare != spare {
		t.Error("what an instance could not use is not kept")
	}
	one, err := im.New(ctx, account(), nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := im.New(ctx, account(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if one.body == two.body {
		t.Fatal("two instances share a body")
	}
	copy(one.Memory(), bytes.Repeat([]byte{1}, 100))
	if two.Memory()[0] != 0 {
		t.Error("two instances share their memory")
	}
	one.Close(ctx)
	two.Close(ctx)
	if im.spare != spare {
		t.Error("the second that was closed has taken the place of the first")
	}
	if err := one.Close(ctx); err != nil || one.Memory() != nil {
		t.Errorf("an instance that is closed twice: %v", err)
	}
}
