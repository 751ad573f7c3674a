// Package shelltest compares scripts of the virtual shell with what this machine's real programs do with them.
package shelltest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/vfs"
)

// Limits are those under which cases run.
var Limits = bound.Limits{Gas: 2_000_000_000, Time: time.Hour, MemoryBytes: 256 << 20, OutputBytes: 16 << 20, FileBytes: 64 << 20,
	OpenFiles: 256, Depth: 256}

// Start is where the virtual clock of cases begins.
func Start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// Result is what a script did.
type Result struct {
	Out, Err string
	Code     int
	Gas      int64
	Late     int64 // gas that was asked for after a stop
	Stopped  error
	Lacks    []program.Lack
}

// sink is a stream into a buffer, counted as output.
type sink struct {
	a *bound.Account
	bytes.Buffer
}

func (s *sink) Read([]byte) (int, error) { return 0, os.ErrInvalid }

func (s *sink) Write(p []byte) (int, error) {
	n, err := s.a.Print(len(p))
	s.Buffer.Write(p[:n])
	return n, err
}

// Execute runs a script with programs in an empty folder.
func Execute(programs program.Table, limits bound.Limits, script string) Result {
	return ExecuteWith(bound.New(limits, [32]byte{1}, Start()), programs, script)
}

// ExecuteWith is Execute with an account of the caller's, which may stop it.
func ExecuteWith(a *bound.Account, programs program.Table, script string) (r Result) {
	fiber.Run(func(g *fiber.Group) {
		ready := false
		defer func() { // it may be stopped before the script begins
			if x := recover(); x != nil {
				stopped, ok := x.(*bound.Stopped)
				if ready || !ok {
					panic(x)
				}
				r.Stopped = stopped
			}
		}()
		fs := vfs.New(a, g)
		fail := func(err error) {
			if err != nil {
				panic(err)
			}
		}
		fail(shell.Install(fs, programs))
		fail(fs.Mount("/proj", vfs.Options{Bytes: 256 << 20, Files: 10_000}))
		fail(fs.Mount("/tmp", vfs.Options{Bytes: 256 << 20, Files: 10_000}))
		in, err := fs.Open(vfs.At{Dir: fs.Root()}, "/dev/null", vfs.Read, 0)
		fail(err)
		out, errs := &sink{a: a}, &sink{a: a}
		sh := shell.New(shell.Options{
			FS: fs, Account: a, Programs: programs, Env: environment("/proj"), Cwd: "/proj", Umask: 0o022,
			Stdin: in, Stdout: fs.Stream(out, vfs.Write), Stderr: fs.Stream(errs, vfs.Write), Report: func(l program.Lack) {
				r.Lacks = append(r.Lacks, l)
			},
		})
		ready = true
		result := sh.Run(script)
		r.Out, r.Err, r.Code, r.Gas, r.Stopped = out.String(), errs.String(), result.Code, a.Used(), result.Err
	})
	r.Late = a.Late()
	return r
}

func environment(home string) []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + home, "LC_ALL=C.UTF-8", "TZ=UTC", "USER=root", "TERM=dumb"}
}

// real runs a script by the real shell.
func real(t *testing.T, script string) Result {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("/bin/bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = environment(dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		t.Fatal(err)
	}
	return Result{Out: out.String(), Err: errs.String(), Code: cmd.ProcessState.ExitCode()}
}

// transcript writes what a script did.
func (r Result) transcript() string {
	var b strings.Builder
	part := func(text string) {
		b.WriteString(strings.ToValidUTF8(text, "\ufffd"))
		if text != "" && !strings.HasSuffix(text, "\n") {
			b.WriteString("<no newline>\n")
		}
	}
	part(r.Out)
	if r.Err != "" {
		b.WriteString("<stderr>\n")
		part(r.Err)
	}
	if r.Stopped != nil {
		b.WriteString("<stopped: " + r.Stopped.Error() + ">\n")
	} else if r.Code != 0 {
		b.WriteString("<exit " + strconv.Itoa(r.Code) + ">\n")
	}
	return b.String()
}

// Transcripts runs the cases of the archives that a pattern names. A case is a script NAME and what the real programs do with it,
// NAME.real, which an update writes. Where the virtual shell does something else on purpose, that is NAME.ours, whose first line says
// why.
func Transcripts(t *testing.T, programs program.Table, pattern string, update bool) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts fit %s: %v", pattern, err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parts := map[string]string{}
		for _, f := range archive.Files {
			parts[f.Name] = string(f.Data)
		}
		var fresh []txtar.File
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			for _, f := range archive.Files {
				if strings.HasSuffix(f.Name, ".real") || strings.HasSuffix(f.Name, ".ours") {
					continue
				}
				t.Run(f.Name, func(t *testing.T) {
					script := strings.TrimSuffix(string(f.Data), "\n")
					want, known := parts[f.Name+".real"]
					if update {
						want, known = real(t, script).transcript(), true
					}
					fresh = append(fresh, f, txtar.File{Name: f.Name + ".real", Data: []byte(want)})
					ours, differs := parts[f.Name+".ours"]
					if differs {
						fresh = append(fresh, txtar.File{Name: f.Name + ".ours", Data: []byte(ours)})
						_, want, _ = strings.Cut(ours, "\n")
					}
					if !known && !differs {
						t.Fatal("nobody has run the real programs yet: use -update")
					}
					got := Execute(programs, Limits, script)
					if text := got.transcript(); text != want {
						t.Errorf("%s\ngot:\n%s\nwant:\n%s", script, text, want)
					}
				})
			}
		})
		if update && len(fresh) > 0 { // an archive whose cases -run leaves out stays
			archive.Files = fresh
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
