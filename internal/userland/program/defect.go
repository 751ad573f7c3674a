package program

import (
	"fmt"
	"path"
	"runtime"
	"strconv"
	"strings"

	"agentbox/internal/userland/bound"
)

// DefectCode is the exit code of a command that ended by a defect of its own: EX_SOFTWARE of sysexits.h.
const DefectCode = 70

// Defect is a panic of Go's own in the code of a command: a mistake of this program, not of the script.
type Defect struct {
	What  string
	Where string // the file and line
}

func (d *Defect) Error() string { return "internal error: " + d.What + " (" + d.Where + ")" }

// module begins the names of all functions of this program.
const module = "agentbox/"

// own are the packages whose code works for one command only: what one of its functions leaves half done is forgotten with the command. A
// panic that has come through any other code of this program, of the file system, of an interpreter or of the worker, ends the execution:
// what those share may be broken.
var own = map[string]bool{"awk": true, "coreutils": true, "posix": true, "program": true, "sed": true, "shell": true, "tools": true}

// maxFrames bounds how far the origin of a panic is followed.
const maxFrames = 4096

// CatchDefect is Catch for code of one command. It returns a *Defect for a panic of Go's own that has gone only through packages whose
// state ends with the command.
func CatchDefect(f func()) (thrown any) {
	defer func() {
		x := recover()
		if isDefect(x) {
			d := defect(x)
			if d == nil {
				panic(x)
			}
			x = d
		}
		thrown = x
	}()
	f()
	return nil
}

// isDefect reports whether a panic is one of Go or its libraries.
func isDefect(x any) bool {
	switch e := x.(type) {
	case runtime.Error, string:
		return true
	case *bound.Stopped, *Defect:
		return false
	case error:
		return fmt.Sprintf("%T", e) == "*errors.errorString" // as libraries panic
	}
	return false
}

// defect returns what has panicked; nil where it has come through code that is shared. It is called while the panic goes on.
func defect(x any) *Defect {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	where, begun := "", false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			begun, where = true, "" // where one was thrown on, its origin comes behind
		case !begun || !strings.HasPrefix(f.Function, module):
		case f.Function == module+"internal/userland/program.CatchDefect":
			return &Defect{What: strings.TrimPrefix(fmt.Sprint(x), "runtime error: "), Where: where}
		default:
			name, _, _ := strings.Cut(path.Base(f.Function), ".")
			if !own[strings.TrimSuffix(name, "_test")] || !strings.Contains(f.Function, "/internal/userland/") {
				return nil
			}
			if where == "" {
				where = path.Base(f.File) + ":" + strconv.Itoa(f.Line)
			}
		}
		if !more {
			return nil
		}
	}
}
