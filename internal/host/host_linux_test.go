package host

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestForget types lines into a terminal. What was typed before is not read, with its end or without.
func TestForget(t *testing.T) {
	opened := func(path string) *os.File {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	person := opened("/dev/ptmx")
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, line := opened(fmt.Sprintf("/dev/pts/%d", number)), make([]byte, 100)
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	types := func(text string) {
		t.Helper()
		if _, err := person.WriteString(text); err != nil {
			t.Fatal(err)
		}
		shown := make([]byte, len(strings.ReplaceAll(text, "\n", "\r\n")))
		if _, err := io.ReadFull(person, shown); err != nil { // what the terminal has shown, it has
			t.Fatal(err)
		}
	}
	for _, typed := range []string{"yes\n", "yes\nye", ""} {
		types(typed)
		if err := Forget(terminal); err != nil {
			t.Fatal(err)
		}
		types("no\n")
		if n, err := terminal.Read(line); err != nil || string(line[:n]) != "no\n" {
			t.Errorf("%q: got %q, %v, want the line after it", typed, line[:n], err)
		}
	}
	if after, err := unix.IoctlGetTermios(int(terminal.Fd()), getTermios); err != nil || *after != *before {
		t.Errorf("the terminal is another one: %+v, %v", after, err)
	}
	if err := Forget(opened(os.DevNull)); err == nil {
		t.Error("a file that is no terminal forgets")
	}
}
