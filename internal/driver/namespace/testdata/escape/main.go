//go:build linux

// Command escape tries one way out of a space. It prints "out:" and what it got, or "held:" and why not.
package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// try tries one thing; without an error the space did not hold.
type try func(arg string) error

func main() {
	if len(os.Args) < 2 {
		fmt.Println("escape NAME [ARGUMENT]")
		os.Exit(2)
	}
	if os.Args[1] == "swap" {
		swap(os.Args[2:])
	}
	arg := ""
	if len(os.Args) > 2 {
		arg = os.Args[2]
	}
	for _, table := range []map[string][]try{namespaceTries, processTries, fileTries, kernelTries, networkTries} {
		if tries, ok := table[os.Args[1]]; ok {
			report(tries, arg)
			return
		}
	}
	fmt.Println("no such way:", os.Args[1])
	os.Exit(2)
}

// swap exchanges pairs of names for ever, for a test that looks at them from outside meanwhile.
func swap(pairs []string) {
	fmt.Println("swapping")
	for {
		for i := 0; i+1 < len(pairs); i += 2 {
			_ = unix.Renameat2(unix.AT_FDCWD, pairs[i], unix.AT_FDCWD, pairs[i+1], unix.RENAME_EXCHANGE)
		}
	}
}

// report makes all tries of a way, for one that works is enough.
func report(tries []try, arg string) {
	var held error
	for i, t := range tries {
		err := t(arg)
		if err == nil {
			fmt.Printf("out: try %d\n", i+1)
			return
		}
		held = errors.Join(held, fmt.Errorf("try %d: %w", i+1, err))
	}
	fmt.Printf("held: %v\n", held)
}

// call makes a system call.
func call(nr uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := syscall.Syscall6(nr, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

// system is call as a try.
func system(nr uintptr, args ...uintptr) try {
	return func(string) error { return call(nr, args...) }
}

// open is a try to open a file.
func open(path string, flags int) try {
	return func(string) error { return openNow(path, flags) }
}

func openNow(path string, flags int) error {
	fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return syscall.Close(fd)
}

// readSome is a try to read at least a byte of a file.
func readSome(path string) try {
	return func(string) error {
		fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		defer func() { _ = syscall.Close(fd) }()
		n, err := syscall.Read(fd, make([]byte, 64))
		if err == nil && n == 0 {
			err = errors.New("empty")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
}
