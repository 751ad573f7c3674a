package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/tools/go/packages"
)

//go:embed switch.go.txt
var switchboard string

// verdict is the result of the tests on a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timedOut  verdict = "timed out"
	survived  verdict = "survived"
	same      verdict = "never differs" // tests reach it, and each time the value is the one that it is without the mutant
	unreached verdict = "not reached"
)

// trial is a package, compiled once with all of its mutants, and the tests that are to notice them.
type trial struct {
	dir     string // of what the trial makes
	source  string // the folder of the package
	folder  string // the same, relative to the module
	mutants []*mutant
	suites  []*suite // its own tests and those of other packages
	tests   []*test
	refused map[string]bool // file and line where a mutant does not compile
}

// suite is the test binary of a package.
type suite struct {
	program, folder string
	flags           []string
}

type test struct {
	name string
	in   *suite
	took time.Duration
	seen map[int]int // by mutant: 1 where the test reaches it, 2 where it makes a difference
}

var refusal = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// build compiles the tests of the package and those of others, by their folders in the module. Where the compiler refuses a line,
// for example for the type of a constant, its mutants are left out; nil stands for a package without files.
func build(module string, pkg *packages.Package, files, others []string) (*trial, error) {
	if len(pkg.CompiledGoFiles) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return nil, err
	}
	t := &trial{dir: dir, source: filepath.Dir(pkg.CompiledGoFiles[0]), refused: map[string]bool{}}
	if t.folder, err = filepath.Rel(module, t.source); err != nil {
		return nil, err
	}
	t.folder = filepath.ToSlash(t.folder)
	for i, folder := range append([]string{t.folder}, others...) {
		one := &suite{program: filepath.Join(dir, fmt.Sprintf("tests%d", i)), folder: filepath.Join(module, folder)}
		if err := t.compile(module, pkg, files, one); err != nil {
			t.close()
			return nil, err
		}
		if _, err := os.Stat(one.program); err == nil {
			t.suites = append(t.suites, one)
		} else if i > 0 {
			t.close()
			return nil, fmt.Errorf("%s has no tests", folder)
		}
	}
	return t, nil
}

func (t *trial) compile(module string, pkg *packages.Package, files []string, one *suite) error {
	for {
		if err := t.weave(pkg, files); err != nil {
			return err
		}
		command := exec.Command("go", "test", "-c", "-gcflags="+pkg.PkgPath+"=-e", "-overlay", filepath.Join(t.dir, "overlay.json"), "-o",
			one.program, one.folder)
		command.Dir = module
		output, err := command.CombinedOutput()
		if err == nil {
			return nil
		}
		before := len(t.refused)
		for _, match := range refusal.FindAllStringSubmatch(string(output), -1) {
			t.refused[path.Join(t.folder, filepath.Base(match[1]))+":"+match[2]] = true
		}
		if len(t.refused) == before {
			return fmt.Errorf("go test -c: %w\n%s", err, output)
		}
	}
}

func (t *trial) close() { os.RemoveAll(t.dir) }

// weave writes the files with mutants, and what lays them over those of the package.
func (t *trial) weave(pkg *packages.Package, files []string) error {
	t.mutants = nil
	overlay := map[string]string{}
	for i, name := range pkg.CompiledGoFiles {
		if len(files) > 0 && !slices.Contains(files, filepath.Base(name)) {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		woven := filepath.Join(t.dir, filepath.Base(name))
		if err := os.WriteFile(woven, []byte(weave(pkg, pkg.Syntax[i], path.Join(t.folder, filepath.Base(name)), src, t.refused, &t.mutants)),
			0o600); err != nil {
			return err
		}
		overlay[name] = woven
	}
	times := map[string]int{}
	for _, m := range t.mutants {
		if times[m.key()]++; times[m.key()] > 1 {
			m.change += fmt.Sprintf(" #%d", times[m.key()])
		}
	}
	text := fmt.Sprintf("package %s\n\n%s\n\nconst mutantCount = %d\n", pkg.Name, switchboard, len(t.mutants))
	woven := filepath.Join(t.dir, "mutant_switch.go")
	if err := os.WriteFile(woven, []byte(text), 0o600); err != nil {
		return err
	}
	overlay[filepath.Join(t.source, "mutant_switch.go")] = woven
	raw, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(t.dir, "overlay.json"), raw, 0o600)
}

// look runs each test alone and without a mutant, to learn which mutants it reaches, and how long it takes.
func (t *trial) look() error {
	for _, in := range t.suites {
		help, _ := t.run(in, time.Minute, nil, "-h")
		if bytes.Contains(help, []byte("-rapid.nofailfile")) {
			in.flags = []string{"-rapid.seed=1", "-rapid.nofailfile"} // the same each time, and no files in the tree
		}
		names, err := t.run(in, time.Minute, nil, "-test.list", "^(Test|Fuzz|Example)")
		if err != nil {
			return fmt.Errorf("list the tests: %w\n%s", err, names)
		}
		for _, name := range strings.Fields(string(names)) {
			if err := t.lookAt(&test{name: name, in: in, seen: map[int]int{}}); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	slices.SortStableFunc(t.tests, func(a, b *test) int { return int(a.took - b.took) })
	return nil
}

func (t *trial) lookAt(one *test) error {
	seen := filepath.Join(t.dir, "seen")
	if err := os.RemoveAll(seen); err != nil {
		return err
	}
	began := time.Now()
	output, err := t.run(one.in, 10*time.Minute, []string{"AGENTBOX_MUTANTS_SEEN=" + seen}, "-test.run", "^"+one.name+"$")
	if err != nil {
		return fmt.Errorf("it fails alone and without a mutant: %w\n%s", err, output)
	}
	one.took = time.Since(began)
	text, err := os.ReadFile(seen)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for line := range strings.Lines(string(text)) {
		which, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, err := strconv.Atoi(which)
		if err != nil {
			return fmt.Errorf("what it reached: %w", err)
		}
		one.seen[id] = max(one.seen[id], 1)
		if state == "2" {
			one.seen[id] = 2
		}
	}
	t.tests = append(t.tests, one)
	return nil
}

// try runs the tests to which the mutant makes a difference: first the quickest ones, then the others.
func (t *trial) try(m *mutant) (verdict, error) {
	var quick, slow []*test
	var took time.Duration
	reached := false
	for _, one := range t.tests {
		reached = reached || one.seen[m.id] > 0
		if one.seen[m.id] < 2 {
			continue
		}
		if took += one.took; took < time.Second/2 || len(quick) == 0 {
			quick = append(quick, one)
		} else {
			slow = append(slow, one)
		}
	}
	if took == 0 && reached {
		return same, nil
	} else if took == 0 {
		return unreached, nil
	}
	for _, some := range [][]*test{quick, slow} {
		for _, in := range t.suites {
			var names []string
			var usual time.Duration
			for _, one := range some {
				if one.in == in {
					names = append(names, one.name)
					usual += one.took
				}
			}
			if len(names) == 0 {
				continue
			}
			_, err := t.run(in, 10*time.Second+10*usual, []string{"AGENTBOX_MUTANT=" + strconv.Itoa(m.id)}, "-test.failfast", "-test.run",
				"^("+strings.Join(names, "|")+")$")
			var exit *exec.ExitError
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return timedOut, nil
			case errors.As(err, &exit):
				return killed, nil
			case err != nil:
				return "", err
			}
		}
	}
	return survived, nil
}

// run runs a suite in its package's folder, in a group of processes of their own that ends with them, and with bounded memory: a
// mutant may never end.
func (t *trial) run(in *suite, limit time.Duration, env []string, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	temporary, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	arguments = append([]string{"-c", `ulimit -d 6000000; exec "$0" "$@"`, in.program}, append(slices.Clone(in.flags), arguments...)...)
	command := exec.CommandContext(ctx, "sh", arguments...)
	command.Dir = in.folder
	command.Env = append(append(os.Environ(), "TMPDIR="+temporary), env...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	output, err := command.CombinedOutput()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return output, err
}
