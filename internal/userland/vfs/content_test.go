package vfs_test

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentbox/internal/userland/vfs"
)

// TestWhatIsReadAsAWholeIsHeldOnce: memory for it is made once, and for what a source only says that it holds no more than a bound.
func TestWhatIsReadAsAWholeIsHeldOnce(t *testing.T) {
	d := &disk{}
	whole := strings.Repeat("0123456789abcdef", 3<<16)
	lies := d.file("lies", "abc")
	lies.Size = 1 << 40
	d.folders = map[string][]vfs.Found{".": {d.file("whole", whole), lies}}
	f, at := made(t, limits, vfs.Options{Source: d})
	h, err := f.Open(at, "whole", vfs.Read, 0)
	want(t, err, nil)
	all, err := h.ReadAll()
	want(t, err, nil)
	if string(all) != whole || cap(all) != len(all) {
		t.Errorf("got %d bytes in memory for %d, want %d", len(all), cap(all), len(whole))
	}
	want(t, h.Close(), nil)
	h, err = f.Open(at, "lies", vfs.Read, 0)
	want(t, err, nil)
	if all, err = h.ReadAll(); err == nil {
		t.Errorf("a file that holds less than its source says: got %d bytes", len(all))
	}
	want(t, h.Close(), nil)
}

// TestAFileThatGrowsIsNotCopied counts the memory that is made while a file of 64 MiB is written in small parts, and while it is read
// from its source.
func TestAFileThatGrowsIsNotCopied(t *testing.T) {
	const size, part = 64 << 20, 64 << 10
	roomy := limits
	roomy.FileBytes, roomy.MemoryBytes = size, 4*size
	made64 := func(do func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		do()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	f, at := made(t, roomy, vfs.Options{Bytes: 1 << 30, Files: 1 << 20})
	h, err := f.Open(at, "f", vfs.Write|vfs.Create, 0o644)
	want(t, err, nil)
	p := bytes.Repeat([]byte("x"), part)
	if bytes := made64(func() {
		for range size / part {
			if n, err := h.Write(p); n != part || err != nil {
				t.Fatal(n, err)
			}
		}
	}); bytes > size*5/4 {
		t.Errorf("written: %d bytes of memory were made for %d", bytes, size)
	}
	want(t, h.Close(), nil)

	f, at = made(t, roomy, vfs.Options{Source: zeros{}, Bytes: 1 << 30, Files: 1 << 20})
	if h, err = f.Open(at, "f", vfs.Read, 0); err != nil {
		t.Fatal(err)
	}
	if bytes := made64(func() {
		for range zerosSize / part {
			if n, err := h.Read(p); n != part || err != nil {
				t.Fatal(n, err)
			}
		}
	}); bytes > zerosSize*5/4 {
		t.Errorf("read: %d bytes of memory were made for %d", bytes, zerosSize)
	}
	want(t, h.Close(), nil)
}

// zeros is a source with one file.
type zeros struct{}

const zerosSize = 64 << 20

func (zeros) List(string) ([]vfs.Found, error) {
	return []vfs.Found{{Name: "f", Kind: vfs.Regular, Mode: 0o644, Size: zerosSize, Modified: began}}, nil
}

func (zeros) Read(_ string, p []byte, _ int64) (int, error) { clear(p); return len(p), nil }
func (zeros) Room() (int64, int64, error)                   { return 1 << 30, 1 << 20, nil }

// TestContentInPieces writes, cuts and reads a file around the ends of its pieces, as a text is that is kept as a whole.
func TestContentInPieces(t *testing.T) {
	const chunk = 256 << 10
	edges := []int64{0, 1, chunk - 1, chunk, chunk + 1, 2*chunk - 1, 2 * chunk, 3*chunk + 7}
	rapid.Check(t, func(r *rapid.T) {
		f, at := empty(t)
		h, err := f.Open(at, "f", vfs.Read|vfs.Write|vfs.Create, 0o644)
		want(t, err, nil)
		var model []byte
		grow := func(size int64) {
			if size > int64(len(model)) {
				model = append(model, make([]byte, size-int64(len(model)))...)
			}
		}
		place := func(name string) int64 {
			return max(0, rapid.SampledFrom(edges).Draw(r, name)+rapid.Int64Range(-2, 2).Draw(r, name+" beside"))
		}
		for range rapid.IntRange(1, 12).Draw(r, "steps") {
			at := place("at")
			if rapid.Bool().Draw(r, "cut") {
				want(t, h.Truncate(at), nil)
				grow(at)
				model = model[:at:at]
				continue
			}
			p := bytes.Repeat([]byte{byte(rapid.IntRange(1, 255).Draw(r, "byte"))}, int(place("length")))
			if n, err := h.WriteAt(p, at); n != len(p) || err != nil {
				r.Fatalf("wrote %d of %d: %v", n, len(p), err)
			}
			if len(p) > 0 {
				grow(at + int64(len(p)))
				copy(model[at:], p)
			}
		}
		got := make([]byte, len(model)+1)
		if n, err := h.ReadAt(got, 0); n != len(model) || err != nil && err != io.EOF || !bytes.Equal(got[:n], model) {
			r.Fatalf("read %d bytes of %d, %v; the same: %t", n, len(model), err, bytes.Equal(got[:n], model))
		}
		changes, err := f.Changes("/w")
		want(t, err, nil)
		if len(changes) != 1 || changes[0].Size != int64(len(model)) {
			r.Fatalf("got %d changes", len(changes))
		}
		told := bytes.Join(changes[0].Content, nil)
		if rest := model[min(len(told), len(model)):]; len(told) > len(model) || !bytes.Equal(told, model[:len(told)]) ||
			len(bytes.Trim(rest, "\x00")) > 0 {
			r.Fatalf("what is told has %d bytes of %d, or others", len(told), len(model))
		}
		want(t, h.Close(), nil)
	})
}
