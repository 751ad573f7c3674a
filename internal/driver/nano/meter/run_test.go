package meter

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// engines are the two that wazero has.
var engines = []struct {
	name   string
	config func() wazero.RuntimeConfig
}{
	{"compiler", wazero.NewRuntimeConfigCompiler},
	{"interpreter", wazero.NewRuntimeConfigInterpreter},
}

var (
	errGas   = errors.New("out of gas")
	errDepth = errors.New("too deep")
)

// host is a runtime with the functions that the modules of the tests import.
type host struct {
	runtime wazero.Runtime

	budget, granted, slice, overshoot int64
	yields                            int
	depth                             uint64
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	ctx := context.Background()
	h := &host{slice: 10_000, depth: SafeDepth}
	h.runtime = wazero.NewRuntimeWithConfig(ctx,
		config.WithCoreFeatures(api.CoreFeaturesV2|experimental.CoreFeaturesTailCall).WithMemoryLimitPages(64))
	t.Cleanup(func() { h.runtime.Close(ctx) })
	builder := h.runtime.NewHostModuleBuilder(Namespace)
	builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(h.yield), nil, nil).Export(Yield)
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	builder = h.runtime.NewHostModuleBuilder("host")
	builder.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
		stack[0] = uint64(uint32(stack[0]) ^ 0x5a5a)
	}),
		[]api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).Export("twist")
	if _, err := builder.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) yield(_ context.Context, m api.Module, _ []uint64) {
	h.yields++
	gas := m.ExportedGlobal(Gas).(api.MutableGlobal)
	if int64(m.ExportedGlobal(Depth).Get()) < 0 {
		panic(errDepth)
	}
	left := int64(gas.Get())
	h.overshoot = max(h.overshoot, -left)
	for left < 0 {
		grant := min(h.slice, h.budget-h.granted)
		if grant <= 0 {
			panic(errGas)
		}
		h.granted += grant
		left += grant
	}
	gas.Set(uint64(left))
}

// outcome is what can be seen of a call.
type outcome struct {
	Results []uint64
	Trap    string
	Memory  [32]byte
	Gas     int64
}

// call runs an exported function of a fresh instance.
func (h *host) call(t testing.TB, wasm []byte, budget int64, name string, args ...uint64) outcome {
	t.Helper()
	ctx := context.Background()
	compiled, err := h.runtime.CompileModule(ctx, wasm)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	defer compiled.Close(ctx)
	h.budget, h.granted, h.overshoot, h.yields = budget, 0, 0, 0
	m, err := h.runtime.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return outcome{Trap: reason(err)}
	}
	defer m.Close(ctx)
	return h.callIn(m, name, args...)
}

func (h *host) callIn(m api.Module, name string, args ...uint64) outcome {
	if depth := m.ExportedGlobal(Depth); depth != nil {
		depth.(api.MutableGlobal).Set(h.depth)
	}
	var o outcome
	var err error
	f := m.ExportedFunction(name)
	o.Results, err = f.Call(context.Background(), args...)
	for i := range o.Results { // the compiler leaves in the upper half what was there
		if t := f.Definition().ResultTypes()[i]; t == api.ValueTypeF32 || t == api.ValueTypeI32 {
			o.Results[i] = uint64(uint32(o.Results[i]))
		}
	}
	o.Trap = reason(err)
	if memory := m.Memory(); !reflect.ValueOf(memory).IsNil() { // an interface around nothing where there is no memory
		all, _ := memory.Read(0, memory.Size())
		o.Memory = sha256.Sum256(all)
	}
	if gas := m.ExportedGlobal(Gas); gas != nil {
		o.Gas = h.granted - int64(gas.Get())
		h.overshoot = max(h.overshoot, -int64(gas.Get())) // also what nobody looked at
	}
	return o
}

// reason is the first line of an error.
func reason(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// tool returns a program of the package wabt. Without it a test is skipped, but not where CI runs it.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is missing: install the package wabt", name)
		}
		t.Skipf("%s is missing: install the package wabt", name)
	}
	return path
}

// assemble makes a module from its text.
func assemble(t testing.TB, text string) []byte {
	t.Helper()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.wat"), filepath.Join(dir, "out.wasm")
	if err := os.WriteFile(in, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(tool(t, "wat2wasm"), "--enable-tail-call", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("wat2wasm: %v\n%s", err, said)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// validate fails unless wabt finds a module valid.
func validate(t testing.TB, wasm []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.wasm")
	if err := os.WriteFile(path, wasm, 0o600); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(tool(t, "wasm-validate"), "--enable-tail-call", path).CombinedOutput(); err != nil {
		t.Errorf("wasm-validate: %v\n%s", err, said)
	}
}

func instrument(t testing.TB, wasm []byte) []byte {
	t.Helper()
	m, err := Instrument(wasm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Wasm
}

// metered makes a metered module from its text.
func metered(t testing.TB, format string, args ...any) []byte {
	t.Helper()
	wasm := instrument(t, assemble(t, fmt.Sprintf(format, args...)))
	validate(t, wasm)
	return wasm
}
