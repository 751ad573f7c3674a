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

// verdict is what became of a mutant.
type verdict string

const (
	killed    verdict = "killed"
	timedOut  verdict = "timed out"
	survived  verdict = "survived"
	same      verdict = "never differs" // tests reach it, and each time the value is the one that it is without the mutant
	unreached verdict = "not reached"
)

// trial is the test binary of a package, compiled once with all of its mutants.
type trial struct {
	dir     string // of what the trial makes
	source  string // the folder of the package
	folder  string // the same, relative to the module
	flags   []string
	mutants []*mutant
	tests   []*test
	refused map[string]bool // file and line where a mutant does not compile

	untested bool
}

type test struct {
	name string
	took time.Duration
	seen map[int]int // by mutant: 1 where the test reaches it, 2 where it makes a difference
}

var refusal = regexp.MustCompile(`(?m)^(\S+\.go):(\d+):\d+: `)

// build compiles the package. Where the compiler refuses a line, for example for the type of a constant, its mutants are left out; nil stands for a
// package without files.
func build(module string, pkg *packages.Package, files []string) (*trial, error) {
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
	for {
		if err := t.weave(pkg, files); err != nil {
			return nil, err
		}
		command := exec.Command("go", "test", "-c", "-gcflags=-e", "-overlay", filepath.Join(dir, "overlay.json"), "-o", filepath.Join(dir, "tests"), "./"+t.folder)
		command.Dir = module
		output, err := command.CombinedOutput()
		if err == nil {
			break
		}
		before := len(t.refused)
		for _, match := range refusal.FindAllStringSubmatch(string(output), -1) {
			t.refused[path.Join(t.folder, filepath.Base(match[1]))+":"+match[2]] = true
		}
		if len(t.refused) == before {
			t.close()
			return nil, fmt.Errorf("go test -c: %w\n%s", err, output)
		}
	}
	_, err = os.Stat(filepath.Join(dir, "tests"))
	t.untested = errors.Is(err, os.ErrNotExist)
	return t, nil
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
		if err := os.WriteFile(woven, []byte(weave(pkg, pkg.Syntax[i], path.Join(t.folder, filepath.Base(name)), src, t.refused, &t.mutants)), 0o600); err != nil {
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
	if t.untested {
		return nil
	}
	help, _ := t.run(time.Minute, nil, "-h")
	if bytes.Contains(help, []byte("-rapid.nofailfile")) {
		t.flags = []string{"-rapid.seed=1", "-rapid.nofailfile"} // the same each time, and no files in the tree
	}
	names, err := t.run(time.Minute, nil, "-test.list", "^(Test|Fuzz|Example)")
	if err != nil {
		return fmt.Errorf("list the tests: %w\n%s", err, names)
	}
	for _, name := range strings.Fields(string(names)) {
		seen := filepath.Join(t.dir, "seen")
		if err := os.RemoveAll(seen); err != nil {
			return err
		}
		began := time.Now()
		output, err := t.run(10*time.Minute, []string{"AGENTBOX_MUTANTS_SEEN=" + seen}, "-test.run", "^"+name+"$")
		if err != nil {
			return fmt.Errorf("%s fails alone and without a mutant: %w\n%s", name, err, output)
		}
		one := &test{name: name, took: time.Since(began), seen: map[int]int{}}
		text, err := os.ReadFile(seen)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		for line := range strings.Lines(string(text)) {
			which, state, _ := strings.Cut(strings.TrimSpace(line), " ")
			id, err := strconv.Atoi(which)
			if err != nil {
				return fmt.Errorf("what %s reached: %w", name, err)
			}
			one.seen[id] = max(one.seen[id], 1)
			if state == "2" {
				one.seen[id] = 2
			}
		}
		t.tests = append(t.tests, one)
	}
	slices.SortStableFunc(t.tests, func(a, b *test) int { return int(a.took - b.took) })
	return nil
}

// try runs the tests to which the mutant makes a difference: first the quickest ones, then the others.
func (t *trial) try(m *mutant) (verdict, error) {
	var names []string
	var took time.Duration
	reached, first := false, 0
	for _, one := range t.tests {
		reached = reached || one.seen[m.id] > 0
		if one.seen[m.id] < 2 {
			continue
		}
		names = append(names, one.name)
		took += one.took
		if took < time.Second/2 || first == 0 {
			first = len(names)
		}
	}
	if len(names) == 0 && reached {
		return same, nil
	} else if len(names) == 0 {
		return unreached, nil
	}
	for _, some := range [][]string{names[:first], names[first:]} {
		if len(some) == 0 {
			continue
		}
		limit := 10*time.Second + 10*took
		_, err := t.run(limit, []string{"AGENTBOX_MUTANT=" + strconv.Itoa(m.id)}, "-test.failfast", "-test.run", "^("+strings.Join(some, "|")+")$")
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
	return survived, nil
}

// run runs the tests in the package's folder, in a group of processes of their own that ends with them, and with bounded memory: a mutant may never end.
func (t *trial) run(limit time.Duration, env []string, arguments ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	temporary, err := os.MkdirTemp(t.dir, "run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temporary)
	arguments = append([]string{"-c", `ulimit -d 6000000; exec "$0" "$@"`, filepath.Join(t.dir, "tests")}, append(slices.Clone(t.flags), arguments...)...)
	command := exec.CommandContext(ctx, "sh", arguments...)
	command.Dir = t.source
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
