package runs_test

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"

	"agentbox/internal/spaceinit/inittest"
	"agentbox/internal/testkit"
)

// program is the init, built once for all tests of this package.
var program []byte

// sideBySide is how many tests run at once. Most of them wait: for a limit, for an init that misbehaves, for a daemon that starts.
const sideBySide = 8

func TestMain(m *testing.M) {
	flag.Parse()
	err := flag.Set("test.parallel", strconv.Itoa(max(sideBySide, runtime.GOMAXPROCS(0))))
	if err != nil {
		panic(err)
	}
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
