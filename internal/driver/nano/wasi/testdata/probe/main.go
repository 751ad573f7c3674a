//go:build wasip1

// Probe calls each function of WASI preview 1 as it is, and checks what it does, what it refuses and what its flags mean.
//
//	probe list             the names of the probes
//	probe all              every probe that leaves the program as it was
//	probe NAME [ARG...]    one probe
//	probe copy FROM TO ... copies files, one behind the other
//
// It exits with 1 where something is not as it should be, and says on stderr what.
package main

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
)

// probe is a set of checks in a folder of its own, which it leaves empty.
type probe struct {
	name string
	do   func(dir uint32)
	ends bool // the program cannot go on behind it
}

var (
	root   uint32 = 3
	failed bool
	now    string
)

func wrong(format string, args ...any) {
	failed = true
	_, _, line, _ := runtime.Caller(2)
	fmt.Fprintf(os.Stderr, "%s: line %d: %s\n", now, line, fmt.Sprintf(format, args...))
}

// want checks that an error is one of those.
func want(got errno, any ...errno) {
	if !slices.Contains(any, got) {
		wrong("errno %d, want %v", got, any)
	}
}

func equal[T comparable](got, want T) {
	if got != want {
		wrong("got %v, want %v", got, want)
	}
}

func yes(is bool, what string) {
	if !is {
		wrong("%s", what)
	}
}

// must is the value of a call that has to succeed.
func must[T any](v T, e errno) T {
	if e != ok {
		wrong("errno %d", e)
	}
	return v
}

// file makes a file with content.
func file(dir uint32, name, content string) {
	fd := must(open(dir, 0, name, creat|trunc, fdWrite, 0, 0))
	if content != "" {
		must(write(fd, content))
	}
	want(rawFdClose(fd), ok)
}

func run(p probe) {
	now = p.name
	scratch := strings.ReplaceAll(p.name, " ", "_") + ".scratch"
	want(mkdir(root, scratch), ok)
	dir := must(open(root, 0, scratch, directory, everything&^(fdWrite|fdAllocate), everything, 0))
	p.do(dir)
	if p.ends {
		return
	}
	want(rawFdClose(dir), ok)
	want(rmdir(root, scratch), ok)
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: probe list | all | NAME")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "list":
		for _, p := range probes {
			fmt.Println(p.name)
		}
	case "filter":
		filter()
	case "copy":
		for pair := range slices.Chunk(os.Args[2:], 2) {
			content, err := os.ReadFile(pair[0])
			if err == nil {
				err = os.WriteFile(pair[1], content, 0o600)
			}
			if err != nil {
				now = "copy"
				wrong("%v", err)
			}
		}
	case "all":
		for _, p := range probes {
			if !p.ends {
				run(p)
			}
		}
	default:
		i := slices.IndexFunc(probes, func(p probe) bool { return p.name == os.Args[1] })
		if i < 0 {
			fmt.Fprintln(os.Stderr, "there is no probe", os.Args[1])
			os.Exit(2)
		}
		run(probes[i])
	}
	if failed {
		rawProcExit(1)
	}
	rawProcExit(0)
}
