package nano

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/nano/python"
)

// TestCompiledCodeOfOthersIsNotExecuted: who may write where compiled code lies is who is executed.
func TestCompiledCodeOfOthersIsNotExecuted(t *testing.T) {
	for _, x := range []struct {
		name string
		mode os.FileMode
		uid  int
	}{{"one where others may write", 0o770, os.Geteuid()}, {"another user's", 0o700, os.Geteuid() + 12345}} {
		cache := filepath.Join(t.TempDir(), "cache")
		if err := os.Mkdir(cache, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(cache, x.uid, -1); err != nil {
			t.Logf("%s: not tested: %v", x.name, err)
			continue
		}
		if err := os.Chmod(cache, x.mode); err != nil {
			t.Fatal(err)
		}
		g := &guests{cache: cache}
		if err := errors.Join(g.open(t.Context(), false), g.close(t.Context())); fault.CodeOf(err) != "wasm_cache" {
			t.Errorf("a worker begins with a folder that is %s: %v", x.name, err)
		}
		if err := ownFolder(cache); fault.CodeOf(err) != "cache_unusable" {
			t.Errorf("a module is compiled into a folder that is %s: %v", x.name, err)
		}
	}
}

// TestACacheThatWasClearedIsFilledAgain removes one of the files of Python, and not what says that they were made.
func TestACacheThatWasClearedIsFilledAgain(t *testing.T) {
	needPython(t)
	tier := openTier(t, 1)
	tier.warm()
	<-tier.prepared
	cache := t.TempDir()
	files, err := os.ReadDir(tier.o.Cache)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), imageFile) {
			continue
		}
		if err := os.Symlink(filepath.Join(tier.o.Cache, f.Name()), filepath.Join(cache, f.Name())); err != nil {
			t.Fatal(err)
		}
	}
	tier.o.Cache = cache
	if _, err := os.Stat(tier.mark()); err != nil {
		t.Fatal(err)
	}
	again, err := New(Options{
		Command: tier.o.Command, Cache: cache, Workers: 1, Scratch: filepath.Join(t.TempDir(), "nano"), Entropy: rand.Reader, Clock: wall{},
		Logger: tier.o.Logger,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	h := spacetest.Host{Tier: again, Permit: issue, Place: place, IDs: id.NewSource(time.Now, rand.Reader)}
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, `python3 -c 'print(6*7)'`)); r.Stdout != "42\n" {
		t.Errorf("got %+v", r)
	}
}

// TestPython runs the interpreter through the whole way of a command.
func TestPython(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	for range 3 {
		r := h.Exec(t, s, spacetest.Shell(spec.ID, `echo begin; python3 -c 'print(6*7); open("f","w").write("x")'; echo $?; read x <f; echo $x`))
		if r.Stdout != "begin\n42\n0\n" && r.Stdout != "begin\n42\n0\nx\n" {
			t.Errorf("got %+v", r)
		}
		t.Log(r.Duration, r.Gas)
	}
}

// TestJavaScript runs the interpreter through the whole way of a command.
func TestJavaScript(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	for _, x := range []struct{ script, want string }{
		{`js -e 'console.log(1+1)'`, "2\n"},
		{`node -e 'console.log(require("child_process").execSync("echo hi | tr a-z A-Z", { encoding: "utf8" }))'`, "HI\n\n"},
		{`node -e 'const r = require("child_process").spawnSync("sh", ["-c", "cat; echo err >&2; exit 2"], { input: "in", encoding: "utf8" }); ` +
			`console.log(r.status, r.stdout, r.stderr)'`, "2 in err\n\n"},
		{`node -e 'try { require("child_process").execSync("exit 3") } catch (e) { console.log(e.status, e.message) }'`,
			"3 Command failed: exit 3\n"},
		{`node -e 'console.log(require("child_process").spawnSync("nonesuch").error.code)'`, "ENOENT\n"},
		{`node -e 'const c = require("child_process").spawn("wc", ["-c"]); c.stdout.on("data", (d) => console.log(+d)); c.on("close", (n) => ` +
			`console.log("close", n)); c.stdin.write("hel"); c.stdin.end("lo")'`, "5\nclose 0\n"},
		{`node -e 'require("child_process").exec("echo $X; exit 4", { env: { X: "y" } }, (e, out) => console.log(e.code, out))'`, "4 y\n\n"},
		{`node -e 'require("child_process").spawn("nonesuch").on("error", (e) => console.log(e.code))'`, "ENOENT\n"},
		{`node -e 'const o = [], c = require("child_process").spawn("sh", ["-c", "echo out; exit 3"]); c.on("spawn", () => o.push("spawn")); ` +
			`c.stdout.on("data", () => o.push("data")); c.stdout.on("end", () => o.push("end")); c.on("exit", (n) => o.push("exit", n)); ` +
			`c.on("close", (n) => { o.push("close", n); console.log(o.join(" ")); })'`, "spawn data exit 3 end " +
			"close 3\n"},
		{`node -e 'console.log(require("child_process").spawnSync("sleep", ["60"], { timeout: 50 }).error.code)'`, "ETIMEDOUT\n"},
		{`printf 'const { test } = require("node:test");test("a", () => {});test("b", async (t) => { await t.test("c", () => {}) });' >t.js; ` +
			`node t.js | sed 's/ ([0-9.]*ms)//' | head -6`, "✔ a\n▶ b\n  ✔ c\n✔ b\nℹ " +
			"tests 3\nℹ suites 0\n"},
		{`printf 'require("node:test")("a", () => { throw new Error("no") })' >t.js; node t.js >out; echo $?; grep -c "Error: no" out`, "1\n1\n"},
		{`echo 'const x: number = 6; enum E { A = 7 }; console.log(x * E.A)' >f.ts; bun f.ts`, "42\n"},
		{`echo 'import { readFileSync } from "node:fs"; console.log(readFileSync("f.ts", "utf8").length > 10)' >g.mjs; node g.mjs`, "true\n"},
	} {
		for range 3 {
			r := h.Exec(t, s, spacetest.Shell(spec.ID, x.script))
			if r.Stdout != x.want || r.Code != 0 {
				t.Errorf("%s: got %+v", x.script, r)
			}
			t.Log(r.Duration, r.Gas)
		}
	}
}

// TestModulesAreThoseOfTheInterpreters compares the names by which is decided where a command runs with what the interpreters have.
func TestModulesAreThoseOfTheInterpreters(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	for _, x := range []struct {
		argv []string
		told []string
	}{
		{[]string{"python3", "-c", `
import pkgutil, sys
names = set(sys.builtin_module_names) | {m.name for m in pkgutil.iter_modules()}
def has(name):
    try:
        return __import__(name) is not None
    except ImportError:
        return False
sys.stdout = sys.stderr  # what modules print when they are imported
names = sorted(n for n in names if (n[0] != "_" or n in ("__future__", "_io", "_thread")) and n not in ("antigravity", "pydoc_data") and has(n))
print("\n".join(names), file=sys.__stdout__)
`}, Modules()},
		{[]string{"js", "-e", `
const useless = ["cluster", "dgram", "http2", "inspector", "repl", "sqlite", "test", "tls", "wasi"]; // there by name, so that they can say what they lack
console.log(require("module").builtinModules.filter((n) => !n.includes("/") && !useless.includes(n)).sort().join("\n"))`}, Builtins()},
	} {
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: x.argv, MS: 60_000})
		has := strings.Fields(r.Stdout)
		if r.Code != 0 || len(has) < 10 {
			t.Fatalf("%s: %+v", x.argv[0], r)
		}
		for _, name := range has {
			if !slices.Contains(x.told, name) {
				t.Errorf("%s has %s, and it is not told", x.argv[0], name)
			}
		}
		for _, name := range x.told {
			if !slices.Contains(has, name) {
				t.Errorf("%s has no %s, and it is told", x.argv[0], name)
			}
		}
	}
}

// TestPythonIsPreparedOnce makes an interpreter in an empty folder, loads what it has left there, and goes on where that is damaged. It
// is the same each time.
func TestPythonIsPreparedOnce(t *testing.T) {
	needPython(t)
	compiled, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	compiled = filepath.Join(compiled, "agentbox", "wasm-test") // it takes seconds
	if err := Prepare(t.Context(), compiled, nil); err != nil {
		t.Fatal(err)
	}
	code, err := filepath.Glob(filepath.Join(compiled, "wazero-*"))
	if err != nil || len(code) == 0 {
		t.Fatal(code, err)
	}
	cache := t.TempDir()
	for _, dir := range code {
		if err := os.Symlink(dir, filepath.Join(cache, filepath.Base(dir))); err != nil {
			t.Fatal(err)
		}
	}
	open := func(make bool) (g *guests) {
		t.Helper()
		g = &guests{cache: cache}
		if err := g.open(t.Context(), make); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := g.close(context.Background()); err != nil {
				t.Error(err)
			}
		})
		return g
	}
	prints := func(g *guests, want bool) {
		t.Helper()
		if err := newSystem(g).rehearse(); (err == nil) != want {
			t.Errorf("a rehearsal: got %v, want success %v", err, want)
		}
	}
	if g := open(false); g.python != nil {
		t.Error("it is there, though nobody has prepared it")
	}
	made := open(true)
	prints(made, true)
	loaded := open(false)
	prints(loaded, true)
	if made.version != loaded.version || made.python.Hash() != loaded.python.Hash() || !bytes.Equal(made.files[0].data, loaded.files[0].data) {
		t.Errorf("what was made is %s %x, what was loaded is %s %x", made.version, made.python.Hash(), loaded.version, loaded.python.Hash())
	}
	for _, part := range []string{libraryFile, moduleFile, imageFile} {
		found, err := filepath.Glob(filepath.Join(cache, "python-*"+part))
		if err != nil || len(found) != 1 {
			t.Fatal(part, found, err)
		}
	}
	module, err := filepath.Glob(filepath.Join(cache, "python-*"+moduleFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(module[0]); err != nil { // not changed where it is, as workers read it
		t.Fatal(err)
	}
	if err := os.WriteFile(module[0], []byte("no module"), 0o600); err != nil {
		t.Fatal(err)
	}
	mended := open(false)
	prints(mended, true)
	if mended.version != made.version || mended.python.Hash() != made.python.Hash() {
		t.Errorf("beside a damaged file it is %s, want %s", mended.version, made.version)
	}
}

// needPython leaves a test out where this build holds no Python, but not in CI.
func needPython(t *testing.T) {
	t.Helper()
	_, err := python.Key()
	if fault.CodeOf(err) == "runtime_unavailable" && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
