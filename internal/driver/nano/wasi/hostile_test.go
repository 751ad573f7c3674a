package wasi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// onePage is a module with a memory of one page and nothing else.
var onePage = []byte("\x00asm\x01\x00\x00\x00\x05\x03\x01\x00\x01\x07\x0a\x01\x06memory\x02\x00")

type silent struct{}

func (silent) Read([]byte) (int, error)    { return 0, io.EOF }
func (silent) Write(p []byte) (int, error) { return len(p), nil }

// TestNoCallBreaksTheHost calls functions with whatever arguments over whatever lies in the memory.
func TestNoCallBreaksTheHost(t *testing.T) {
	ctx := context.Background()
	e, err := wasm.New(ctx, wasm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(ctx)
	code, err := e.Compile(ctx, onePage)
	if err != nil {
		t.Fatal(err)
	}
	known := []errno{success}
	for _, n := range errnos {
		known = append(known, n)
	}
	known = append(known, fault, ilseq, notsock, overflow)
	rapid.Check(t, func(t *rapid.T) {
		account := bound.New(bound.Limits{Gas: 1 << 30, Time: time.Hour, MemoryBytes: 8 << 20, OutputBytes: 1 << 20, FileBytes: 1 << 20,
			OpenFiles: 20, Depth: 9}, [32]byte{}, time.Unix(1e9, 0))
		fs := vfs.New(account, nil)
		if err := fs.Mount("/w", vfs.Options{Bytes: 4 << 20, Files: 50}); err != nil {
			t.Fatal(err)
		}
		dir, err := fs.Lookup(vfs.At{Dir: fs.Root()}, "/w", true)
		if err != nil {
			t.Fatal(err)
		}
		p, err := New(fs, Config{Args: []string{"a"}, Env: []string{"A=b"}, Stdio: [3]*vfs.Handle{
			fs.Stream(silent{}, vfs.Read), fs.Stream(silent{}, vfs.Write), fs.Stream(silent{}, vfs.Write),
		}, Preopens: []Preopen{{Name: "/", Dir: dir}}})
		if err != nil {
			t.Fatal(err)
		}
		in, err := code.Initial().New(ctx, account, p)
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close(ctx)
		memory := in.Memory()
		paths := []string{"a", "b", "a/b", "a/", ".", "..", "a/../b", "/", "", "\xff"}
		at := make([]uint32, len(paths))
		next := uint32(1024)
		for i, s := range paths {
			at[i] = next
			next += uint32(copy(memory[next:], s))
		}
		// Vectors and subscriptions, some of which lead somewhere.
		copy(memory[2048:], rapid.SliceOfN(rapid.SampledFrom([]byte{0, 0, 0, 1, 2, 3, 4, 16, 255}), 0, 512).Draw(t, "memory"))
		small := rapid.SampledFrom([]uint64{0, 1, 2, 3, 4, 5, 6, 8, 16})
		pointer := rapid.SampledFrom([]uint64{0, 1024, 2048, 2056, 3000, 4096, 8192, 65_528, 65_535, 65_536, 1 << 31, 1<<32 - 1})
		any64 := rapid.OneOf(small, pointer, rapid.Uint64(), rapid.SampledFrom([]uint64{1<<62 - 1, 1<<63 - 1, 1 << 63, 1<<64 - 1, allAsNumber}))
		for range rapid.IntRange(1, 60).Draw(t, "calls") {
			f := functions[rapid.IntRange(0, len(functions)-1).Draw(t, "function")]
			args := make([]uint64, max(len(f.params), 1))
			for i := range f.params {
				if f.params[i] == 'I' {
					args[i] = any64.Draw(t, "long")
				} else {
					args[i] = rapid.OneOf(small, small, pointer, rapid.Uint64Range(0, 1<<32-1)).Draw(t, "int")
				}
			}
			// Most calls with a path have one.
			if which := rapid.IntRange(0, 2*len(paths)).Draw(t, "path"); which < len(paths) && len(args) > 3 && f.name[:4] == "path" {
				i := 1
				if slices.Contains([]string{"path_filestat_get", "path_filestat_set_times", "path_link", "path_open"}, f.name) {
					i = 2
				}
				args[0], args[i], args[i+1] = 3, uint64(at[which]), uint64(len(paths[which]))
			}
			if stopped := safely(t, f, &call{Program: p, instance: in, args: args}, known); stopped {
				break
			}
			if now, _ := account.Memory(); now < 0 {
				t.Fatalf("%s: memory %d", f.name, now)
			}
			if len(p.fds) > 30 {
				t.Fatalf("%s: %d descriptors", f.name, len(p.fds))
			}
		}
		p.Close()
		if _, err := fs.Changes("/w"); err != nil {
			t.Fatal(err)
		}
	})
}

const allAsNumber = uint64(allRights)

// safely calls a function that may end the execution but not break it.
func safely(t *rapid.T, f function, c *call, known []errno) (stopped bool) {
	given := fmt.Sprint(c.args)
	defer func() {
		switch p := recover().(type) {
		case nil:
		case error:
			_, bounded := errors.AsType[*bound.Stopped](p)
			_, exited := errors.AsType[*wasm.Exit](p)
			if !bounded && !exited {
				panic(fmt.Sprintf("%s%s: %v", f.name, given, p))
			}
			stopped = bounded
		default:
			panic(p)
		}
	}()
	if e := f.do(c); !slices.Contains(known, e) {
		t.Fatalf("%s%s: errno %d", f.name, given, e)
	}
	return false
}

// TestEveryFunctionIsThere counts what preview 1 has.
func TestEveryFunctionIsThere(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range functions {
		seen[f.name] = true
	}
	if len(seen) != 46 || len(functions) != 46 {
		t.Fatalf("%d functions, want 46", len(seen))
	}
}
