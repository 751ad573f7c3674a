package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/nano/meter"
	"agentbox/internal/userland/bound"
)

func account(change ...func(*bound.Limits)) *bound.Account {
	l := bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 256 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 20, OpenFiles: 10,
		Depth: 10}
	for _, c := range change {
		c(&l)
	}
	return bound.New(l, [32]byte{1}, time.Unix(1_700_000_000, 0))
}

// fixture reads a module of testdata. Its text lies beside it; `make generate` is not needed to change one, but wat2wasm is.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestFixtures compares the modules with their texts.
func TestFixtures(t *testing.T) {
	tool, err := exec.LookPath("wat2wasm")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("wat2wasm is missing: install the package wabt")
		}
		t.Skip("wat2wasm is missing: install the package wabt")
	}
	texts, _ := filepath.Glob("testdata/*.wat")
	for _, text := range texts {
		out := filepath.Join(t.TempDir(), "out.wasm")
		if said, err := exec.Command(tool, text, "-o", out).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", text, err, said)
		}
		got, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if want := fixture(t, strings.TrimSuffix(filepath.Base(text), ".wat")); !bytes.Equal(got, want) {
			t.Errorf("%s is not what its .wasm says", text)
		}
	}
}

type thrown struct{ what string }

// start makes an engine with the host functions of the tests, and the code of a fixture.
func start(t testing.TB, name string, change ...func(*Options)) (*Engine, *Code) {
	t.Helper()
	ctx := context.Background()
	o := Options{MemoryPages: 1024}
	for _, c := range change {
		c(&o)
	}
	e, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	i32 := []api.ValueType{I32}
	if err := e.Define(ctx, "host",
		Function{Name: "exit", Params: i32, Call: func(_ *Instance, stack []uint64) { panic(&Exit{Code: uint32(stack[0])}) }},
		Function{Name: "throw", Params: i32, Call: func(_ *Instance, stack []uint64) {
			switch stack[0] {
			case 0:
				panic(thrown{"a value"})
			case 1:
				panic(errors.New("an error"))
			default:
				var none *thrown
				none.what = "a defect"
			}
		}},
		Function{Name: "charge", Params: []api.ValueType{I64}, Call: func(in *Instance, stack []uint64) {
			if err := in.Account().Charge(int64(stack[0])); err != nil {
				panic(err)
			}
		}},
		Function{Name: "again", Params: i32, Results: i32, Call: func(in *Instance, stack []uint64) {
			out, err := in.Call(context.Background(), "down", stack[0])
			if err != nil {
				if in.State == "swallow" {
					stack[0] = 77
					return
				}
				panic(err)
			}
			stack[0] = out[0]
		}},
		Function{Name: "nothing", Call: func(*Instance, []uint64) {}},
	); err != nil {
		t.Fatal(err)
	}
	c, err := e.Compile(ctx, fixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(ctx), e.Close(ctx)); err != nil {
			t.Error(err)
		}
	})
	return e, c
}

func open(t testing.TB, im *Image, a *bound.Account) *Instance {
	t.Helper()
	in, err := im.New(context.Background(), a, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(context.Background()) })
	return in
}

func call(t testing.TB, in *Instance, name string, args ...uint64) uint64 {
	t.Helper()
	out, err := in.Call(context.Background(), name, args...)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if len(out) == 0 {
		return 0
	}
	return out[0]
}

func fail(t testing.TB, in *Instance, want error, name string, args ...uint64) {
	t.Helper()
	if _, err := in.Call(context.Background(), name, args...); !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", name, err, want)
	}
}

// build makes an image of the fixture "state" in which its counter is 5 and its memory has 3 pages.
func build(t testing.TB, c *Code) *Image {
	t.Helper()
	im, err := c.Build(context.Background(), account(), nil, func(in *Instance) error {
		for range 5 {
			call(t, in, "count")
		}
		if call(t, in, "grow", 1) != 2 {
			t.Error("the memory did not grow")
		}
		call(t, in, "poke", 150_000, 42)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := im.Close(); err != nil {
			t.Error(err)
		}
	})
	return im
}

// TestErrors says what each way to end is.
func TestErrors(t *testing.T) {
	ctx := context.Background()
	for name, interpreter := range map[string]bool{"compiler": false, "interpreter": true} {
		t.Run(name, func(t *testing.T) {
			_, c := start(t, "ends", func(o *Options) { o.Interpreter, o.Depth = interpreter, 1500 })
			a := account()
			in := open(t, c.Initial(), a)
			for range 2 { // and an instance can be used after each
				fail(t, in, &Trap{Kind: Unreachable}, "unreachable")
				fail(t, in, &Trap{Kind: OutOfBounds}, "load", 1<<20)
				fail(t, in, &Trap{Kind: Integer}, "divide", 0)
				fail(t, in, &Trap{Kind: Indirect}, "indirect", 0)
				fail(t, in, &Trap{Kind: Indirect}, "indirect", 9)
				fail(t, in, &Trap{Kind: StackOverflow}, "down", 1<<20)
				fail(t, in, ErrExport, "no such function")
				fail(t, in, ErrExport, "down")
				if got := call(t, in, "down", 1000); got != 0 {
					t.Errorf("got %d, want 0", got)
				}
				var exit *Exit
				if _, err := in.Call(ctx, "exit", 3); !errors.As(err, &exit) || exit.Code != 3 {
					t.Errorf("got %v, want exit 3", err)
				}
				if _, err := in.Call(ctx, "throw", 1); err == nil || err.Error() != "an error" {
					t.Errorf("got %v, want the error that was thrown", err)
				}
				if _, err := in.Call(ctx, "throw", 2); fault.KindOf(err) != fault.Internal || !strings.Contains(err.Error(), "nil pointer") {
					t.Errorf("got %v, want a defect", err)
				}
				func() {
					defer func() {
						if r := recover(); r != (thrown{"a value"}) {
							t.Errorf("got %v, want the value that was thrown", r)
						}
					}()
					in.Call(ctx, "throw", 0)
				}()
			}
			if got := call(t, in, "again", 100); got != 0 {
				t.Errorf("a call within a call: got %d, want 0", got)
			}
			fail(t, in, &Trap{Kind: StackOverflow}, "again", 1<<20)
			in.State = "swallow" // the depth is as it was after a trap in a call within
			if got := call(t, in, "again", 1<<20); got != 77 {
				t.Errorf("got %d, want 77", got)
			}
			if got := call(t, in, "twice", 1<<20); got != 0 {
				t.Errorf("got %d, want 0", got)
			}
		})
	}
}

// TestGas: the account holds exactly what was used, however the execution ends, and nothing goes beyond it.
func TestGas(t *testing.T) {
	_, c := start(t, "ends", func(o *Options) { o.Slice = 1000 })
	a := account()
	in := open(t, c.Initial(), a)
	call(t, in, "spin", 100_000)
	used := a.Used()
	if used < 400_000 || used > 800_000 {
		t.Errorf("%d gas for a loop of 100,000", used)
	}
	call(t, in, "spin", 100_000)
	if a.Used() != 2*used {
		t.Errorf("the second time took %d, and the first %d", a.Used()-used, used)
	}
	// The exact amount is enough, and one less is not.
	for less, want := range []error{nil, &bound.Stopped{}} {
		a := account(func(l *bound.Limits) { l.Gas = used - int64(less) })
		_, err := open(t, c.Initial(), a).Call(context.Background(), "spin", 100_000)
		if want == nil && err != nil {
			t.Errorf("just enough: %v", err)
		}
		if stopped := (*bound.Stopped)(nil); want != nil && err != nil && (!errors.As(err, &stopped) || stopped.Limit != bound.Gas) {
			t.Errorf("one less: %v", err)
		}
	}
	a = account(func(l *bound.Limits) { l.Gas = used / 2 })
	var stopped *bound.Stopped
	if _, err := open(t, c.Initial(), a).Call(context.Background(), "spin", 100_000); !errors.As(err, &stopped) || stopped.Limit != bound.Gas {
		t.Errorf("half: %v", err)
	}
	if over := a.Used() - used/2; over < 0 || over > 100 {
		t.Errorf("%d gas over the bound", over)
	}
	// A host function has the whole account before it.
	a = account(func(l *bound.Limits) { l.Gas = 2000 })
	in = open(t, c.Initial(), a)
	call(t, in, "charge", 1900)
	if _, err := in.Call(context.Background(), "charge", 200); !errors.As(err, &stopped) {
		t.Errorf("a charge beyond: %v", err)
	}
}

// TestStops: a guest in an endless loop is stopped from outside.
func TestStops(t *testing.T) {
	_, c := start(t, "ends")
	a := account(func(l *bound.Limits) { l.Gas = 1 << 60 })
	in := open(t, c.Initial(), a)
	go a.Stop(&bound.Stopped{TimedOut: true})
	var stopped *bound.Stopped
	if _, err := in.Call(context.Background(), "forever"); !errors.As(err, &stopped) || !stopped.TimedOut {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		runtime.GC() // needs all goroutines to stop for a moment, also that which runs the guest
		cancel()
	}()
	in = open(t, c.Initial(), account(func(l *bound.Limits) { l.Gas = 1 << 60 }))
	if _, err := in.Call(ctx, "forever"); !errors.As(err, &stopped) || !stopped.Canceled {
		t.Errorf("got %v", err)
	}
}

// TestMemoryIsBounded: by the account and by the engine, and the guest sees it.
func TestMemoryIsBounded(t *testing.T) {
	_, c := start(t, "state", func(o *Options) { o.MemoryPages = 10 })
	a := account(func(l *bound.Limits) { l.MemoryBytes = 5 * pageSize })
	in := open(t, c.Initial(), a)
	for _, tc := range []struct{ pages, want int32 }{{1, 2}, {3, -1}, {2, 3}, {1, -1}, {0, 5}} {
		if got := int32(call(t, in, "grow", uint64(tc.pages))); got != tc.want {
			t.Errorf("growing by %d: got %d, want %d", tc.pages, got, tc.want)
		}
	}
	if now, _ := a.Memory(); now != 5*pageSize || a.WasHit() != bound.Memory {
		t.Errorf("%d bytes are counted, and %q was hit", now, a.WasHit())
	}
	if err := in.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if now, peak := a.Memory(); now != 0 || peak != 5*pageSize {
		t.Errorf("%d bytes are counted after the end, and %d at the most", now, peak)
	}
	in = open(t, c.Initial(), account())
	if got := int32(call(t, in, "grow", 9)); got != -1 {
		t.Errorf("beyond the engine's bound: got %d", got)
	}
	if got := int32(call(t, in, "grow", 8)); got != 2 {
		t.Errorf("up to the engine's bound: got %d", got)
	}
	a = account(func(l *bound.Limits) { l.MemoryBytes = 2*pageSize - 1 })
	if _, err := c.Initial().New(context.Background(), a, nil); !errors.Is(err, bound.ErrMemory) {
		t.Errorf("too little at first: got %v", err)
	}
}

// TestImage: each fresh instance is what was saved, and 1,000 that write over everything leave no trace.
func TestImage(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	im := build(t, c)
	if im.Size() != 3*pageSize {
		t.Fatalf("the image has %d bytes", im.Size())
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		in, err := im.New(ctx, account(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		h.Write(c.hash[:])
		h.Write(im.head())
		h.Write(in.Memory())
		if [32]byte(h.Sum(nil)) != im.Hash() {
			t.Fatalf("instance %d is not as the image", i)
		}
		if got := call(t, in, "count"); got != 13 { // 7 at first, 8 by the start function, 5 counted
			t.Fatalf("the counter of instance %d is %d, want 13", i, got)
		}
		call(t, in, "grow", uint64(random.IntN(3)))
		memory := in.Memory()
		for j := range 20 {
			memory[random.IntN(len(memory))] = byte(j)
		}
		if i%10 == 0 {
			clear(memory)
		}
		if i%2 == 0 {
			if err := in.Close(ctx); err != nil {
				t.Fatal(err)
			}
			continue
		}
		t.Cleanup(func() { in.Close(ctx) })
	}
}

// TestImagesAreReproducible: the same calls make the same image, and another call another one.
func TestImagesAreReproducible(t *testing.T) {
	_, c := start(t, "state")
	im, again := build(t, c), build(t, c)
	if im.Hash() != again.Hash() {
		t.Error("two images of the same calls differ")
	}
	other, err := c.Build(context.Background(), account(), nil, func(in *Instance) error { call(t, in, "count"); return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Hash() == im.Hash() || c.Initial().Hash() == im.Hash() {
		t.Error("images of other calls have the same hash")
	}
	encoded, err := im.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := c.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	defer back.Close()
	if back.Hash() != im.Hash() {
		t.Error("an image that was encoded and decoded has another hash")
	}
	if len(encoded) > 10*pieceSize {
		t.Errorf("%d bytes for an image of few pieces", len(encoded))
	}
	for i := range 200 { // broken ones are refused, or are another image
		broken := bytes.Clone(encoded)
		broken[i] ^= 0x41
		if im, err := c.Decode(broken); err == nil {
			if im.Hash() == back.Hash() {
				t.Errorf("byte %d does not count", i)
			}
			im.Close()
		}
		if _, err := c.Decode(encoded[:len(encoded)*i/200]); err == nil {
			t.Errorf("%d of 200 parts of an image are taken", i)
		}
	}
}

// TestUnsaved: of what an image cannot hold none is made.
func TestUnsaved(t *testing.T) {
	_, c := start(t, "tables")
	if _, err := c.Build(context.Background(), account(), nil, func(*Instance) error { return nil }); !errors.Is(err, ErrUnsaved) {
		t.Errorf("got %v, want %v", err, ErrUnsaved)
	}
	in := open(t, c.Initial(), account())
	call(t, in, "run")
	if _, err := in.Freeze(); !errors.Is(err, ErrUnsaved) {
		t.Errorf("got %v, want %v", err, ErrUnsaved)
	}
}

// TestCache: compiled code is kept in the folder, and found there.
func TestCache(t *testing.T) {
	dir := t.TempDir()
	start(t, "state", func(o *Options) { o.Cache = dir })
	files, _ := filepath.Glob(filepath.Join(dir, "*", "*"))
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("nothing is compiled on this machine")
	}
	if len(files) == 0 {
		t.Error("nothing is kept")
	}
	_, c := start(t, "state", func(o *Options) { o.Cache = dir })
	if again, _ := filepath.Glob(filepath.Join(dir, "*", "*")); len(again) != len(files) {
		t.Errorf("%d files are kept, and before %d", len(again), len(files))
	}
	if got := call(t, open(t, c.Initial(), account()), "count"); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}

// TestImportsThatAreMissing are told.
func TestImportsThatAreMissing(t *testing.T) {
	ctx := context.Background()
	e, err := New(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	c, err := e.Compile(ctx, fixture(t, "ends"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Initial().New(ctx, account(), nil); !errors.Is(err, ErrImport) {
		t.Errorf("got %v, want %v", err, ErrImport)
	}
	if _, err := e.Compile(ctx,
		[]byte("\x00asm\x01\x00\x00\x00\x01\x05\x01\x60\x00\x01\x7f\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b")); !errors.Is(err, ErrModule) {
		t.Errorf("got %v, want %v", err, ErrModule)
	}
	if _, err := e.Compile(ctx, []byte("no module")); !errors.Is(err, meter.ErrMalformed) {
		t.Errorf("got %v, want %v", err, meter.ErrMalformed)
	}
}

// TestUseAfterClose is refused, not a fault of the process.
func TestUseAfterClose(t *testing.T) {
	ctx := context.Background()
	_, c := start(t, "state")
	in := open(t, c.Initial(), account())
	for range 2 {
		if err := in.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	fail(t, in, ErrClosed, "count")
	if _, err := in.Freeze(); !errors.Is(err, ErrClosed) || in.Memory() != nil {
		t.Errorf("got %v", err)
	}
	if _, ok := in.Bytes(0, 1); ok {
		t.Error("its memory can be read")
	}
}
