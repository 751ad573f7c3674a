package nano

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// TestAModuleIsRunByItsName runs a module that may not be executed, and one whose files and folders get what the umask leaves.
func TestAModuleIsRunByItsName(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	calls := []wasiCall{{"path_create_directory", "iii"}, {"path_open", "iiiiiIIii"}, {"proc_exit", "i"}}
	types, imports := [][]byte{typeOf("")}, [][]byte{}
	for i, c := range calls {
		result := []byte{vI32}
		if c.name == "proc_exit" {
			result = nil
		}
		types = append(types, typeOf(c.params, result...))
		imports = append(imports, text("wasi_snapshot_preview1"), text(c.name), []byte{0}, leb(uint64(i+1)))
	}
	code := slices.Concat(
		i32(3), i32(0), i32(1), call(0), []byte{opDrop},
		i32(3), i32(0), i32(1), i32(1), i32(1), i64(0), i64(0), i32(0), i32(8), call(1), []byte{opDrop},
		i32(7), call(2))
	module := moduleOf(section(1, counts(len(types), types...)), section(2, counts(len(calls), imports...)), section(3, counts(1, leb(0))),
		section(5, []byte{1, 0, 1}),
		section(7, counts(2, text("_start"), []byte{0}, leb(uint64(len(calls))), text("memory"), []byte{2, 0})),
		section(10, counts(1, sized([]byte{0}, code, []byte{opEnd}))), section(11, counts(1, []byte{0, 0x41, 0, opEnd}, sized([]byte("df")))))
	if err := os.WriteFile(filepath.Join(spec.Dir, "m.wasm"), module, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		command, stdout string
		code            int
	}{
		{"./m.wasm", "", 126},
		{"wasm m.wasm a b; echo $?; stat -c '%a %n' d f; rm -r d f; umask 077; wasm -- ./m.wasm; stat -c '%a %n' d f",
			"7\n755 d\n644 f\n700 d\n600 f\n", 0},
		{"wasm", "", 2}, {"wasm -x m.wasm", "", 2}, {"wasm nothing.wasm", "", 127}, {"wasm .", "", 127}, {"echo x >text; wasm text", "", 126},
	} {
		if r := h.Exec(t, s, spacetest.Shell(spec.ID, x.command)); r.Stdout != x.stdout || r.Code != x.code {
			t.Errorf("%s: got %q, exit code %d (%s), want %q, %d", x.command, r.Stdout, r.Code, r.Stderr, x.stdout, x.code)
		}
	}
	if !slices.Contains(Commands(), "wasm") {
		t.Error("the router does not know the command")
	}
}

// TestModulesFindTheWorkingFolder looks for paths among the folders of a module as the C library of WASI does.
func TestModulesFindTheWorkingFolder(t *testing.T) {
	account := bound.New(bound.Limits{Gas: 1 << 30, Time: time.Hour, MemoryBytes: 1 << 20, OutputBytes: 1 << 10, FileBytes: 1 << 10,
		OpenFiles: 64, Depth: 8}, [32]byte{}, time.Now())
	fiber.Run(func(g *fiber.Group) {
		fs := vfs.New(account, g)
		root := vfs.At{Dir: fs.Root()}
		for _, dir := range []string{"/workspace", "/tmp", "/etc"} {
			if err := fs.Mount(dir, vfs.Options{Bytes: 1 << 20, Files: 10}); err != nil {
				t.Fatal(err)
			}
		}
		if err := fs.Mkdir(root, "/workspace/sub", 0o755); err != nil {
			t.Fatal(err)
		}
		cwd, err := fs.Lookup(root, "/workspace/sub", true)
		if err != nil {
			t.Fatal(err)
		}
		folders := preopens(&program.Process{FS: fs, Cwd: cwd, Account: account})
		if folders[0].Name != "." || folders[0].Dir != cwd {
			t.Errorf("the first folder is %q", folders[0].Name)
		}
		find := func(path string) string {
			path = strings.TrimPrefix(strings.TrimLeft(path, "/"), "./")
			best, at := -1, ""
			for _, f := range slices.Backward(folders) {
				prefix := strings.TrimPrefix(strings.TrimLeft(f.Name, "/"), ".")
				if len(prefix) > best && (prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")) {
					name, err := f.Dir.Path()
					if err != nil {
						t.Fatal(err)
					}
					best, at = len(prefix), strings.TrimSuffix(filepath.Join(name, path[len(prefix):]), "/")
				}
			}
			return at
		}
		for path, want := range map[string]string{
			"a": "/workspace/sub/a", "./a": "/workspace/sub/a", "d/a": "/workspace/sub/d/a",
			"/workspace/a": "/workspace/a", "/tmp/a": "/tmp/a", "/etc": "/etc", "/workspace": "/workspace",
			"temporary/a": "/workspace/sub/temporary/a",
		} {
			if got := find(path); got != want {
				t.Errorf("%s is %s, not %s", path, got, want)
			}
		}
	})
}

// TestModesOfWhatJavaScriptMakes holds creation modes and the umask to Node's.
func TestModesOfWhatJavaScriptMakes(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	const program = `const fs = require("fs");
const mode = (name) => console.log((fs.statSync(name).mode & 0o777).toString(8), name);
fs.writeFileSync("a", "", { mode: 0o600 }); mode("a");
fs.closeSync(fs.openSync("a", "a", 0o644)); mode("a");
fs.mkdirSync("b", 0o700); mode("b");
console.log(process.umask().toString(8), process.umask(0o027).toString(8), process.umask("077").toString(8), process.umask().toString(8));
fs.writeFileSync("c", ""); mode("c");
try { process.umask({}); } catch (e) { console.log(e.code); }
`
	if err := os.WriteFile(filepath.Join(spec.Dir, "x.js"), []byte(program), 0o644); err != nil {
		t.Fatal(err)
	}
	const want = "600 a\n600 a\n700 b\n22 22 27 77\n600 c\nERR_INVALID_ARG_TYPE\n"
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "node x.js")); r.Stdout != want || r.Code != 0 {
		t.Errorf("got %q, exit code %d (%s), want %q", r.Stdout, r.Code, r.Stderr, want)
	}
}
