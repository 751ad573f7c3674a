// Package wasitest compiles the probes of WASI that are written in C: for each function of preview 1 what it does, what it refuses, and
// what its flags mean.
package wasitest

import (
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

//go:embed probes
var sources embed.FS

// Probes returns the file of a module that runs the probe of the function that its first argument names. It exits with 1 where something
// is not as it should be, and says on stderr what. It is compiled for each caller, by clang; without that the test is skipped, but not
// where CI runs it.
func Probes(t testing.TB) string {
	t.Helper()
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil {
			if os.Getenv("CI") != "" {
				t.Fatalf("%s is missing: install the packages clang and lld", tool)
			}
			t.Skipf("%s is missing: install the packages clang and lld", tool)
		}
	}
	file, err := compile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func compile(dir string) (string, error) {
	if err := os.CopyFS(dir, sources); err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "probes", "*.c"))
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "probes.wasm")
	flags := []string{"--target=wasm32", "-nostdlib", "-ffreestanding", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,--no-entry",
		"-Wl,--strip-all", "-o", out}
	if said, err := exec.Command("clang", append(flags, files...)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the probes: %w", errors.Join(err, errors.New(string(said))))
	}
	return out, nil
}
