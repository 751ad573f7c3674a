// Package inittest builds the init's program for tests, so that they need no build before them.
package inittest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// Build builds the init and returns its program. The go command caches the work.
func Build() ([]byte, error) {
	return BuildPackage("agentbox/cmd/agentbox-init")
}

// BuildPackage builds a static program of this module.
func BuildPackage(pkg string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "agentbox-build-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "program")
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return nil, errors.New("this module's folder is not known")
	}
	if err := watch(here); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, pkg)
	cmd.Dir = filepath.Dir(here) // so that it is this module also where another one's tests run
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return os.ReadFile(file)
}

// watch looks at what the init is built from, so that the go command, which keeps the results of tests whose files did not change, knows.
func watch(here string) error {
	for _, folder := range []string{"..", "../../../cmd/agentbox-init"} {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(here), folder, "*.go"))
		if err != nil {
			return err
		}
		for _, f := range files {
			if _, err := os.Stat(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// Hostile returns an init that does not keep to its protocol in spaces with a file called hostile, whose words say how: those of the
// tables of the package that is named. It carries the real init, with which it begins every other space.
func Hostile(pkg string, honest []byte) ([]byte, error) {
	program, err := BuildPackage(pkg)
	if err != nil {
		return nil, err
	}
	program = append(program, honest...)
	return binary.LittleEndian.AppendUint64(program, uint64(len(honest))), nil
}
