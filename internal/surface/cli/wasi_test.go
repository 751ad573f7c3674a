package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/fault"
)

// TestAModuleIsGivenWhatTheFlagsSay runs the command without a module.
func TestAModuleIsGivenWhatTheFlagsSay(t *testing.T) {
	for _, x := range []struct {
		args    string
		folders []ModuleFolder
		env     []string
		more    []string
	}{
		{"m.wasm", nil, nil, nil},
		{"m.wasm -x --dir a -- b", nil, nil, []string{"-x", "--dir", "a", "--", "b"}},
		{"-- m.wasm -x", nil, nil, []string{"-x"}},
		{"--dir a/b m.wasm", []ModuleFolder{{"a/b", []string{"/", "a/b"}}}, nil, nil},
		{"--dir . m.wasm", []ModuleFolder{{".", []string{"/", "."}}}, nil, nil},
		{"--dir / m.wasm", []ModuleFolder{{"/", []string{"/"}}}, nil, nil},
		{"--dir a::b m.wasm", []ModuleFolder{{"a", []string{"b"}}}, nil, nil},
		{"--dir a --dir b::/ m.wasm", []ModuleFolder{{"a", []string{"a"}}, {"b", []string{"/"}}}, nil, nil},
		{"--env A=1 --env B= --env SET --env UNSET --env C=a=b m.wasm", nil, []string{"A=1", "B=", "SET=here", "C=a=b"}, nil},
	} {
		var got Module
		host := Host{
			Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Clock: clock{}, Getenv: func(name string) string {
				return map[string]string{"SET": "here"}[name]
			},
			RunModule: func(_ context.Context, m Module) (ModuleEnd, error) { got = m; return ModuleEnd{}, nil },
		}
		if code := Run(t.Context(), host, append([]string{"wasi", "run"}, strings.Fields(x.args)...)); code != ExitOK {
			t.Errorf("%s: exit code %d", x.args, code)
		}
		if diff := cmp.Diff(x.folders, got.Folders); diff != "" {
			t.Errorf("%s: want -, got +:\n%s", x.args, diff)
		}
		if strings.Join(got.Env, "|") != strings.Join(x.env, "|") || strings.Join(got.Args, "|") != strings.Join(x.more, "|") ||
			got.File != "m.wasm" {
			t.Errorf("%s: %s %v with %v", x.args, got.File, got.Args, got.Env)
		}
	}
}

// TestHowAModuleEndsIsTheExitCode has a module end in each way.
func TestHowAModuleEndsIsTheExitCode(t *testing.T) {
	for _, x := range []struct {
		end  ModuleEnd
		err  error
		want int
	}{
		{ModuleEnd{}, nil, 0},
		{ModuleEnd{ExitCode: 7}, nil, 7},
		{ModuleEnd{}, fault.New(fault.Internal, "wasm_trapped", "the module trapped"), 134},
		{ModuleEnd{}, fault.New(fault.Exhausted, "wasm_stopped", "the module was stopped"), ExitExhausted},
		{ModuleEnd{}, context.Canceled, ExitInterrupted},
	} {
		host := Host{
			Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Clock: clock{}, Getenv: func(string) string { return "" },
			RunModule: func(context.Context, Module) (ModuleEnd, error) { return x.end, x.err },
		}
		if code := Run(t.Context(), host, []string{"wasi", "run", "m.wasm"}); code != x.want {
			t.Errorf("%+v, %v: exit code %d, want %d", x.end, x.err, code, x.want)
		}
	}
}
