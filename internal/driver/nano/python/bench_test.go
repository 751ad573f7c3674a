package python_test

import (
	"os/exec"
	"testing"

	"agentbox/internal/driver/nano/wasm"
	"agentbox/internal/userland/program"
)

// BenchmarkPrint runs `python3 -c 'print(1)'` in a fresh interpreter, with its world.
func BenchmarkPrint(b *testing.B) {
	guest(b)
	for b.Loop() {
		w := &world{}
		if w.python(b, "-c", "print(1)"); w.stdout.String() != "1\n" {
			b.Fatal(w.stderr.String())
		}
	}
}

// BenchmarkLibrary imports modules that are not in the image: they are read from the library.
func BenchmarkLibrary(b *testing.B) {
	guest(b)
	for b.Loop() {
		w := &world{}
		if w.python(b, "-c", "import sqlite3, unittest, xml.etree.ElementTree, email.message"); w.status.Code != 0 {
			b.Fatal(w.stderr.String())
		}
	}
}

// BenchmarkLoop computes; the yardstick runs the same on the host.
func BenchmarkLoop(b *testing.B) {
	guest(b)
	for b.Loop() {
		w := &world{}
		if w.python(b, "-c", loop); w.status.Code != 0 {
			b.Fatal(w.stderr.String())
		}
	}
}

const loop = "def f():\n  x = 0\n  for i in range(1000000): x += i * i % 7\n  return x\nf()"

// BenchmarkHostLoop is its yardstick.
func BenchmarkHostLoop(b *testing.B) {
	python := hostPython(b)
	for b.Loop() {
		if err := exec.Command(python, "-I", "-S", "-c", loop).Run(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCell runs a cell in a context that is thawed before and frozen after it.
func BenchmarkCell(b *testing.B) {
	g := guest(b)
	var state *wasm.Delta
	for b.Loop() {
		w := &world{}
		w.within(b, func(p *program.Process) {
			var err error
			if _, state, err = g.Cell(p, "<cell>", "x = globals().get('x', 0) + 1\nx", state); err != nil {
				b.Fatal(err)
			}
		})
	}
	b.ReportMetric(float64(state.Bytes()), "bytes/context")
}

// BenchmarkStart makes a guest from a module that was compiled before and an image that was made before, as a worker does when it starts.
func BenchmarkStart(b *testing.B) {
	encoded, err := guest(b).Encode()
	if err != nil {
		b.Fatal(err)
	}
	r := load(b)
	b.ReportMetric(float64(len(encoded)), "bytes/image")
	for b.Loop() {
		g, err := start(r, encoded)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHostPrint is the yardstick: the same on the host, without its site packages.
func BenchmarkHostPrint(b *testing.B) {
	python := hostPython(b)
	for b.Loop() {
		if out, err := exec.Command(python, "-I", "-S", "-c", "print(1)").Output(); err != nil || string(out) != "1\n" {
			b.Fatal(err)
		}
	}
}

// hostPython returns the interpreter of the host, not a wrapper of it.
func hostPython(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		b.Skip("there is no Python on the host: ", err)
	}
	return string(out)
}
