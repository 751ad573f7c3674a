package python_test

import (
	"os/exec"
	"testing"
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

// BenchmarkHostPrint is the yardstick: the same on the host, without its site packages.
func BenchmarkHostPrint(b *testing.B) {
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output() // not a wrapper of it
	if err != nil {
		b.Skip("there is no Python on the host: ", err)
	}
	for b.Loop() {
		if out, err := exec.Command(string(python), "-I", "-S", "-c", "print(1)").Output(); err != nil || string(out) != "1\n" {
			b.Fatal(err)
		}
	}
}
