package runs_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// program is the init, built once for all tests of this package.
var program []byte

func TestMain(m *testing.M) {
	var err error
	if program, err = inittest.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// open opens a stack in memory.
func open(t testing.TB) *testkit.Stack {
	t.Helper()
	return testkit.Open(t, testkit.Options{Program: program})
}
