package nano

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/nano/worker"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// TestFunctionsCallEachOtherSoDeep takes functions of the shell as deep as they go, and one call deeper. The program bash is the first of
// a thousand.
func TestFunctionsCallEachOtherSoDeep(t *testing.T) {
	if maxDepth != 1000 {
		t.Errorf("the bound is %d", maxDepth)
	}
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	deep := func(n int) spacetest.Command {
		return spacetest.Shell(spec.ID, fmt.Sprintf(`f() { if [ $1 -gt 1 ]; then f $(($1-1)); else echo bottom; fi; }; f %d`, n))
	}
	if r := h.Exec(t, s, deep(maxDepth-1)); r.Stdout != "bottom\n" || r.Code != 0 {
		t.Errorf("%d functions: got %+v", maxDepth-1, r)
	}
	if r := h.Exec(t, s, deep(maxDepth)); r.Stdout != "" || r.Code == 0 || r.Limit != bound.Depth || !strings.Contains(r.Stderr,
		"maximum function nesting level exceeded") {
		t.Errorf("%d functions: got %+v", maxDepth, r)
	}
}

// padded makes a module as long as is asked for.
func padded(module []byte, size int) []byte {
	const head = 1 + 5 + 2 // a section's kind, its length in as many bytes as there may be, its name of one character
	n := uint32(size - len(module) - 6)
	out := append(bytes.Clone(module), 0, byte(n)|0x80, byte(n>>7)|0x80, byte(n>>14)|0x80, byte(n>>21)|0x80, byte(n>>28), 1, 'x')
	return append(out, make([]byte, size-len(module)-head)...)
}

// TestModulesAreSoLong runs a module of as many bytes as one may have, and of one more.
func TestModulesAreSoLong(t *testing.T) {
	t.Parallel()
	if maxModule != 32<<20 {
		t.Errorf("the bound is %d", maxModule)
	}
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes, spec.Limits.DiskBytes, spec.Limits.FileBytes = 1<<30, 64<<20, 64<<20
	s := h.Create(t, spec)
	for _, x := range []struct {
		size, code int
		says       string
	}{{maxModule, 0, ""}, {maxModule + 1, 126, "it has 33554433 bytes; at most 33554432 are taken"}} {
		if err := os.WriteFile(filepath.Join(spec.Dir, "m"), padded(plain(nil), x.size), 0o755); err != nil {
			t.Fatal(err)
		}
		if r := h.Exec(t, s, spacetest.Shell(spec.ID, "./m")); r.Code != x.code || !strings.Contains(r.Stderr, x.says) {
			t.Errorf("%d bytes: got %+v", x.size, r)
		}
	}
}

// alone executes in this process what a worker would, with modules but without interpreters.
type alone struct {
	t       *testing.T
	system  *system
	foreign *foreign
}

func newAlone(t *testing.T) *alone {
	f, err := openForeign(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.close(t.Context()) })
	return &alone{t, newSystem(&guests{table: program.Table{}, module: f}), f}
}

// limits are those of the conformance suite's spaces, with so much time that nothing ends by it.
func limits() bound.Limits {
	return bound.Limits{Gas: 1 << 40, Time: time.Hour, MemoryBytes: 512 << 20, OutputBytes: 1 << 20, FileBytes: 32 << 20, OpenFiles: 256,
		Depth: maxDepth}
}

// shell runs a script; pace is called while it computes, and may be nil.
func (a *alone) shell(l bound.Limits, files memory, script string, pace func(used int64)) (o worker.Outcome, account *bound.Account,
	stdout string) {
	account = bound.New(l, [32]byte{1}, time.Unix(1_000_000_000, 0))
	if pace != nil {
		account.SetPace(func() { pace(account.Used()) })
	}
	var out strings.Builder
	o, _ = a.system.Execute(worker.Order{
		Argv: []string{"bash", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "HOME=" + home}, Cwd: workspace, Limits: l,
		Mounts: []worker.Mount{{Path: workspace, Disk: true}, {Path: "/tmp"}},
	}, account, []vfs.Source{files, memory{}}, func(channel int, p []byte) error {
		out.Write(p)
		return nil
	})
	if o.Crash != "" {
		a.t.Errorf("%s: %s", script, o.Crash)
	}
	return o, account, out.String()
}

// memory is a folder of files, each of which can be executed.
type memory map[string][]byte

func (m memory) List(dir string) (all []vfs.Found, err error) {
	if dir != "." {
		return nil, vfs.ENOENT
	}
	for name, content := range m {
		all = append(all, vfs.Found{Name: name, Kind: vfs.Regular, Mode: 0o755, Size: int64(len(content))})
	}
	return all, nil
}

func (m memory) Read(path string, p []byte, off int64) (int, error) {
	return bytes.NewReader(m[path]).ReadAt(p, off)
}

func (m memory) Room() (int64, int64, error) { return 1 << 30, 16384, nil }

// TestWhatRunsBesideEndsWhenTheEndWasTold stops a shell that has started many others: it is told without waiting for them. They end in
// Finish.
func TestWhatRunsBesideEndsWhenTheEndWasTold(t *testing.T) {
	a := newAlone(t)
	l := limits()
	l.Gas, l.OpenFiles = 200_000_000, 4096
	account := bound.New(l, [32]byte{1}, time.Unix(1_000_000_000, 0))
	account.Promise()
	living := func() int {
		stacks := make([]byte, 8<<20)
		return bytes.Count(stacks[:runtime.Stack(stacks, true)], []byte("created by agentbox/internal/userland/fiber."))
	}
	before := living()
	o, _ := a.system.Execute(worker.Order{
		Argv: []string{"bash", "-c", `for i in {1..300}; do sleep 1000 & done; while :; do sleep 0.001; done`},
		Env:  []string{"PATH=/usr/bin:/bin"}, Cwd: workspace,
		Limits: l, Mounts: []worker.Mount{{Path: workspace, Disk: true}, {Path: "/tmp"}},
	}, account, []vfs.Source{memory{}, memory{}}, func(int, []byte) error { return nil })
	if o.Limit != bound.Gas {
		t.Fatalf("got %+v", o)
	}
	if living() < before+300 {
		t.Error("the others have ended before its end is told")
	}
	account.Finish()
	for living() > before+30 { // each ends at once
		runtime.Gosched()
	}
}

// TestOnlySoManyModulesAreKept runs one module more than are kept compiled, and then as many bytes of them and one more.
func TestOnlySoManyModulesAreKept(t *testing.T) {
	if keptModules != 8 || keptBytes != 32<<20 {
		t.Errorf("the bounds are %d and %d", keptModules, keptBytes)
	}
	a := newAlone(t)
	files := memory{}
	var names []string
	for i := range keptModules + 1 {
		name := fmt.Sprint("m", i)
		names, files[name] = append(names, name), padded(plain(nil), 1000+i)
	}
	files["half"], files["other"], files["more"] = padded(plain(nil), keptBytes/2), padded(plain(nil), keptBytes/2-1), padded(plain(nil),
		keptBytes/2+1)
	kept := func(script string) string {
		t.Helper()
		if o, _, out := a.shell(limits(), files, script, nil); o.Code != 0 {
			t.Fatalf("%s: got %+v, %s", script, o, out)
		}
		var sizes []string
		for _, c := range a.foreign.kept {
			sizes = append(sizes, fmt.Sprint(c.size-1000))
		}
		return strings.Join(sizes, " ")
	}
	if got := kept("./" + strings.Join(names[:keptModules], "; ./")); got != "0 1 2 3 4 5 6 7" {
		t.Errorf("all that fit: kept %s", got)
	}
	if got := kept("./m0"); got != "1 2 3 4 5 6 7 0" {
		t.Errorf("one again: kept %s", got)
	}
	if got := kept("./m8"); got != "2 3 4 5 6 7 0 8" {
		t.Errorf("one more: kept %s", got)
	}
	size := func(n int) string { return fmt.Sprint(n - 1000) }
	if got, want := kept("./half; ./other"), size(keptBytes/2)+" "+size(keptBytes/2-1); got != want {
		t.Errorf("32 MiB: kept %s, want %s", got, want)
	}
	if got, want := kept("./half; ./more"), size(keptBytes/2+1); got != want {
		t.Errorf("a byte more: kept %s, want %s", got, want)
	}
}

// TestASpaceHasSoManyFiles makes as many files as a space of little space may have, and one more.
func TestASpaceHasSoManyFiles(t *testing.T) {
	t.Parallel()
	const minFiles, perFile = 16384, 4096
	if space.MaxFiles(minFiles*perFile) != minFiles || space.MaxFiles((minFiles+1)*perFile) != minFiles+1 || space.MaxFiles(1) != minFiles {
		t.Errorf("the bounds are not %d and %d", minFiles, perFile)
	}
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.DiskBytes = minFiles * perFile
	s := h.Create(t, spec)
	for i := range minFiles - 4 { // the folder itself counts
		if err := os.WriteFile(filepath.Join(spec.Dir, fmt.Sprint("f", i)), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "touch a b; mkdir c")); r.Code != 0 {
		t.Errorf("as many as may be: got %+v", r)
	}
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "touch d")); r.Limit != bound.Disk || r.Code != 137 {
		t.Errorf("one more: got %+v, want %s", r, bound.Disk)
	}
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "rm a; touch d")); r.Code != 0 {
		t.Errorf("one instead of another one: got %+v", r)
	}
}

// TestOpenFilesUpToTheirBound opens as many files as may be open at once, and one more.
func TestOpenFilesUpToTheirBound(t *testing.T) {
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.OpenFiles = 64
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	count := func(n int) spacetest.Command {
		return spacetest.Command{Space: spec.ID, MS: 60_000, Argv: []string{"python3", "-c",
			fmt.Sprintf("l = [open('f', 'a') for _ in range(%d)]; print(len(l))", n)}}
	}
	most := 0
	for n := 64; n > 40 && most == 0; n-- {
		if r := h.Exec(t, s, count(n)); r.Code == 0 {
			most = n
		} else if !strings.Contains(r.Stderr, "Too many open files") && !strings.Contains(r.Stderr, "No file descriptors available") {
			t.Fatalf("%d files: got %+v", n, r)
		}
	}
	if most < 50 || most == 64 {
		t.Errorf("%d files beside the standard ones and the library's, of 64", most)
	}
}
