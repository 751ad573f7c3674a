package wasi_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/driver/nano/wasi"
	"agentbox/internal/driver/nano/wasi/wasitest"
	"agentbox/internal/driver/nano/wasm"
)

// probed is an engine with the probes in C.
func probed(t testing.TB) *wasm.Code {
	t.Helper()
	wasm, err := os.ReadFile(wasitest.Probes(t))
	if err != nil {
		t.Fatal(err)
	}
	code, err := compileFor(wasm)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// runProbe runs one of the probes in C over an empty folder.
func runProbe(t testing.TB, code *wasm.Code, terminal bool, args ...string) ran {
	t.Helper()
	c := wasi.Config{
		Args: append([]string{"probes"}, args...), Env: []string{"HOME=/", "EMPTY=", "TWO=a b"}, Terminal: [3]bool{terminal, terminal, terminal},
	}
	r := runCode(t, code, limits, [32]byte{1}, "input\n", c, "/", "other")
	if r.left > 0 {
		t.Errorf("%v left %d files", args, r.left)
	}
	return r
}

// TestEachFunctionHasItsProbe runs the probe of every function of preview 1.
func TestEachFunctionHasItsProbe(t *testing.T) {
	code := probed(t)
	list := runProbe(t, code, false, "list")
	if list.code != 0 || list.err != nil {
		t.Fatal(list.code, list.err, list.stderr)
	}
	var want []string
	for _, f := range wasi.Functions(func(any) *wasi.Program { return nil }) {
		want = append(want, f.Name)
	}
	got := strings.Fields(list.out)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || len(want) != 46 {
		t.Fatalf("there are probes of %v, want %v", got, want)
	}
	for _, name := range want {
		t.Run(name, func(t *testing.T) {
			if r := runProbe(t, code, false, name); r.code != 0 || r.err != nil {
				t.Fatalf("exit code %d, %v\n%s", r.code, r.err, r.stderr)
			}
		})
	}
}

func TestAProbeIsGivenWhatItIsToBeginWith(t *testing.T) {
	code := probed(t)
	for _, x := range []struct {
		args     []string
		terminal bool
		code     uint32
		out      string
	}{
		{[]string{"args_get", "", "a b", "\"ü\"\n"}, false, 0, "[probes]\n[args_get]\n[]\n[a b]\n[\"ü\"\n]\n"},
		{[]string{"environ_get"}, false, 0, "[HOME=/]\n[EMPTY=]\n[TWO=a b]\n"},
		{[]string{"fd_prestat_dir_name"}, false, 0, "/\nother\n"},
		{[]string{"fd_read", "stdin"}, false, 0, "input\n"},
		{[]string{"fd_fdstat_get", "terminal"}, true, 0, ""},
		{[]string{"proc_exit", "0"}, false, 0, ""},
		{[]string{"proc_exit", "33"}, false, 33, ""},
		{[]string{"proc_exit", "256"}, false, 256, ""},
		{[]string{"proc_exit", "4294967295"}, false, 1<<32 - 1, ""},
		{[]string{"proc_raise", "abort"}, false, 128 + 6, ""},
		{[]string{"no_function"}, false, 2, ""},
	} {
		t.Run(fmt.Sprint(x.args), func(t *testing.T) {
			if r := runProbe(t, code, x.terminal, x.args...); r.code != x.code || r.err != nil || r.out != x.out {
				t.Fatalf("exit code %d, %v, output %q, want %d, %q\n%s", r.code, r.err, r.out, x.code, x.out, r.stderr)
			}
		})
	}
}

func compileFor(code []byte) (*wasm.Code, error) {
	ctx := context.Background()
	e, err := wasm.New(ctx, wasm.Options{})
	if err != nil {
		return nil, err
	}
	if err := e.Define(ctx, wasi.Module, wasi.Functions(func(state any) *wasi.Program { return state.(*wasi.Program) })...); err != nil {
		return nil, err
	}
	return e.Compile(ctx, code)
}
