package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/termtest"
)

// TestAModuleIsGivenWhatTheFlagsSay runs the command without a module.
func TestAModuleIsGivenWhatTheFlagsSay(t *testing.T) {
	for _, x := range []struct {
		args    string
		folders []cmdline.ModuleFolder
		env     []string
		more    []string
	}{
		{"m.wasm", nil, nil, nil},
		{"m.wasm -x --dir a -- b", nil, nil, []string{"-x", "--dir", "a", "--", "b"}},
		{"-- m.wasm -x", nil, nil, []string{"-x"}},
		{"--dir a/b m.wasm", []cmdline.ModuleFolder{{Host: "a/b", Guests: []string{"/", "a/b"}}}, nil, nil},
		{"--dir . m.wasm", []cmdline.ModuleFolder{{Host: ".", Guests: []string{"/", "."}}}, nil, nil},
		{"--dir / m.wasm", []cmdline.ModuleFolder{{Host: "/", Guests: []string{"/"}}}, nil, nil},
		{"--dir a::b m.wasm", []cmdline.ModuleFolder{{Host: "a", Guests: []string{"b"}}}, nil, nil},
		{"--dir a --dir b::/ m.wasm", []cmdline.ModuleFolder{{Host: "a", Guests: []string{"a"}}, {Host: "b", Guests: []string{"/"}}}, nil, nil},
		{"--env A=1 --env B= --env SET --env UNSET --env C=a=b m.wasm", nil, []string{"A=1", "B=", "SET=here", "C=a=b"}, nil},
	} {
		var got cmdline.Module
		host := cmdline.Host{
			Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Clock: termtest.Clock{}, Getenv: func(name string) string {
				return map[string]string{"SET": "here"}[name]
			},
			RunModule: func(_ context.Context, m cmdline.Module) (cmdline.ModuleEnd, error) {
				got = m
				return cmdline.ModuleEnd{}, nil
			},
		}
		if code := Run(t.Context(), host, append([]string{"wasi", "run"}, strings.Fields(x.args)...)); code != cmdline.ExitOK {
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
		end  cmdline.ModuleEnd
		err  error
		want int
	}{
		{cmdline.ModuleEnd{}, nil, 0},
		{cmdline.ModuleEnd{ExitCode: 7}, nil, 7},
		{cmdline.ModuleEnd{}, fault.New(fault.Internal, "wasm_trapped", "the module trapped"), 134},
		{cmdline.ModuleEnd{}, fault.New(fault.Exhausted, "wasm_stopped", "the module was stopped"), cmdline.ExitExhausted},
		{cmdline.ModuleEnd{}, context.Canceled, cmdline.ExitInterrupted},
	} {
		host := cmdline.Host{
			Out: &bytes.Buffer{}, Err: &bytes.Buffer{}, Clock: termtest.Clock{}, Getenv: func(string) string { return "" },
			RunModule: func(context.Context, cmdline.Module) (cmdline.ModuleEnd, error) { return x.end, x.err },
		}
		if code := Run(t.Context(), host, []string{"wasi", "run", "m.wasm"}); code != x.want {
			t.Errorf("%+v, %v: exit code %d, want %d", x.end, x.err, code, x.want)
		}
	}
}
