// Package ondisk keeps the temporary files of a package's tests on a disk, where `make test` puts those of all others into memory.
package ondisk

import (
	"os"
	"testing"
)

// Variable names the folder on a disk; scripts/in-memory sets it.
const Variable = "AGENTBOX_TEST_DISK"

// Use has the temporary files of this process lie on a disk.
func Use() error {
	if dir := os.Getenv(Variable); dir != "" {
		return os.Setenv("TMPDIR", dir)
	}
	return nil
}

// Run is a TestMain of tests whose temporary files lie on a disk.
func Run(m *testing.M) {
	if err := Use(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
