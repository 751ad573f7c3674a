package wasm

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkInstance makes and closes an instance of a small image.
func BenchmarkInstance(b *testing.B) {
	ctx := context.Background()
	_, c := start(b, "state")
	a := account()
	b.ReportAllocs()
	for b.Loop() {
		in, err := c.Initial().New(ctx, a, nil)
		if err != nil {
			b.Fatal(err)
		}
		in.Close(ctx)
	}
}

// large is an image of 12 MiB, of which seven pieces of eight are not zero, as that of an interpreter is.
func large(b *testing.B) *Image {
	b.Helper()
	_, c := start(b, "state")
	im, err := c.Build(context.Background(), account(), nil, func(in *Instance) error {
		call(b, in, "grow", 190)
		m := in.Memory()
		for i := 0; i < len(m); i += 64 {
			if i/pieceSize%8 != 0 {
				m[i] = byte(i>>6) | 1
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { im.Close() })
	return im
}

// BenchmarkRestore restores 12 MiB and writes to some of its pieces; beside it, the same after copying all of it.
func BenchmarkRestore(b *testing.B) {
	ctx := context.Background()
	im := large(b)
	a := account()
	for _, touched := range []int{0, 100, 500} {
		b.Run(fmt.Sprintf("touched=%d", touched), func(b *testing.B) {
			var restoring, copying time.Duration
			spare := make([]byte, im.Size())
			touch := func(m []byte) {
				for i := range touched {
					m[i*6*pieceSize%len(m)]++
				}
			}
			for b.Loop() {
				begun := time.Now()
				in, err := im.New(ctx, a, nil)
				if err != nil {
					b.Fatal(err)
				}
				touch(in.Memory())
				in.Close(ctx)
				middle := time.Now()
				copy(spare, im.store.bytes())
				touch(spare)
				restoring, copying = restoring+middle.Sub(begun), copying+time.Since(middle)
			}
			b.ReportMetric(float64(restoring.Nanoseconds())/float64(b.N), "restore-ns")
			b.ReportMetric(float64(copying.Nanoseconds())/float64(b.N), "memcpy-ns")
			b.ReportMetric(float64(restoring)/float64(copying), "restore/memcpy")
		})
	}
}

// BenchmarkFreeze finds 100 changed pieces of 12 MiB, and goes on from them.
func BenchmarkFreeze(b *testing.B) {
	ctx := context.Background()
	im := large(b)
	in, err := im.New(ctx, account(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close(ctx)
	m := in.Memory()
	for i := range 100 {
		m[i*29*pieceSize]++
	}
	var d Delta
	b.Run("freeze", func(b *testing.B) {
		for b.Loop() {
			if d, err = in.Freeze(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("restore", func(b *testing.B) {
		next, err := im.With(d)
		if err != nil {
			b.Fatal(err)
		}
		defer next.Close()
		for b.Loop() {
			in, err := next.New(ctx, account(), nil)
			if err != nil {
				b.Fatal(err)
			}
			in.Close(ctx)
		}
	})
}

// BenchmarkHostCall is a call from the guest into Go and back; beside it the loop around it without the call.
func BenchmarkHostCall(b *testing.B) {
	ctx := context.Background()
	_, c := start(b, "ends")
	const times = 10_000
	in, err := c.Initial().New(ctx, account(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close(ctx)
	var hosted, bare time.Duration
	for b.Loop() {
		begun := time.Now()
		call(b, in, "hosted", times)
		middle := time.Now()
		call(b, in, "spin", times)
		hosted, bare = hosted+middle.Sub(begun), bare+time.Since(middle)
	}
	b.ReportMetric(float64(hosted-bare)/float64(b.N)/times, "ns/host-call")
	b.ReportMetric(float64(bare)/float64(b.N)/times, "ns/turn")
}

// BenchmarkCall is a call from Go into the guest.
func BenchmarkCall(b *testing.B) {
	ctx := context.Background()
	_, c := start(b, "state")
	in, err := c.Initial().New(ctx, account(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close(ctx)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := in.Call(ctx, "count"); err != nil {
			b.Fatal(err)
		}
	}
}
