package bench

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentbox/internal/driver/namespace"
)

// medianOf reports the median of what once takes, in milliseconds.
func medianOf(b *testing.B, once func()) {
	b.Helper()
	var all []time.Duration
	for b.Loop() {
		began := time.Now()
		once()
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, "p50-ms")
}

// BenchmarkContextCell is print(1) in a warm interpreter context of a namespace space. The yardstick is a process of the same Python that
// executes a line that comes over a pipe and answers over another.
func BenchmarkContextCell(b *testing.B) {
	b.Run("yardstick", func(b *testing.B) {
		python := "/usr/bin/python3"
		if root := rootFS(); root != namespace.HostRoot {
			python = filepath.Join(root, python)
		}
		c := exec.Command(python, "-uc", "import sys\nfor line in sys.stdin: exec(line)")
		in, err := c.StdinPipe()
		out, failed := c.StdoutPipe()
		if err = errors.Join(err, failed); err == nil {
			err = c.Start()
		}
		if err != nil {
			b.Fatal(err)
		}
		said := bufio.NewReader(out)
		once := func() {
			_, err := io.WriteString(in, "print(1)\n")
			line, failed := said.ReadString('\n')
			if err := errors.Join(err, failed); err != nil || line != "1\n" {
				b.Fatalf("got %q, %v", line, err)
			}
		}
		once()
		medianOf(b, once)
		if err := errors.Join(in.Close(), c.Wait()); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("ours", func(b *testing.B) {
		s := openSpaces(b)
		spec, create := s.spec(b)
		instance, err := s.tier.Create(b.Context(), create, spec)
		if err != nil {
			b.Fatal(err)
		}
		once := func() {
			said := ""
			p := command(b, spec.ID, "/bin/bash", "-c", "python3 --context=c -c 'print(1)'")
			exit, err := instance.Exec(b.Context(), p, nil, func(_ string, data []byte) error {
				said += string(data)
				return nil
			})
			if err != nil || exit.Code != 0 || said != "1\n" {
				b.Fatalf("got %q, %+v, %v", said, exit, err)
			}
		}
		once()
		medianOf(b, once)
		if err := instance.Close(); err != nil {
			b.Fatal(err)
		}
	})
}
