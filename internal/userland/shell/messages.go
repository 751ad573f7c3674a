package shell

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// stdout writes for a builtin. It prints a failure and makes it the status.
func (sh *shell) stdout(name, s string) int {
	h := sh.fd(1)
	if s == "" && h != nil {
		return 0
	}
	err := error(vfs.EBADF)
	if h != nil {
		_, err = h.Write([]byte(s))
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(err, vfs.EPIPE):
		if t, ok := sh.traps[program.SIGPIPE]; !ok || t != "" {
			panic(program.Killed{Signal: program.SIGPIPE})
		}
	}
	sh.w.stop(err)
	sh.complain(name, "write error: %s", program.Message(err))
	return 1
}

// stderr writes a message.
func (sh *shell) stderr(s string) {
	h := sh.fd(2)
	if h == nil {
		return
	}
	_, err := h.Write([]byte(s))
	sh.w.stop(err)
	if errors.Is(err, vfs.EPIPE) {
		panic(program.Killed{Signal: program.SIGPIPE})
	}
}

// complain prints a message as bash does: behind the name of the script, the line and the builtin.
func (sh *shell) complain(builtin, format string, args ...any) {
	name := sh.name
	if n := sh.source.name; n != "" {
		name = n
	}
	if len(sh.frames) > 0 {
		name = sh.frames[len(sh.frames)-1].source
	}
	prefix := fmt.Sprintf("%s: line %d: ", name, sh.line)
	if builtin != "" {
		prefix += builtin + ": "
	}
	sh.stderr(prefix + fmt.Sprintf(format, args...) + "\n")
}

// trace prints a command for set -x.
func (sh *shell) trace(s string) {
	prefix := "+ "
	if ps4, ok := sh.get("PS4"); ok {
		prefix = ps4
		if strings.ContainsAny(prefix, "$`") {
			sh.on[optXtrace] = false
			status := sh.status
			prefix = sh.documentText(prefix)
			sh.status = status
			sh.on[optXtrace] = true
		}
	}
	if prefix != "" {
		prefix = strings.Repeat(prefix[:1], sh.evals) + prefix
	}
	if fd, ok := sh.get("BASH_XTRACEFD"); ok {
		if n, err := strconv.Atoi(fd); err == nil && sh.fd(n) != nil {
			_, err := sh.fd(n).Write([]byte(prefix + s + "\n"))
			sh.w.stop(err)
			return
		}
	}
	sh.stderr(prefix + s + "\n")
}

func traceWords(sh *shell, args []string) {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quoteTrace(a)
	}
	sh.trace(strings.Join(words, " "))
}

func traceFor(sh *shell, l *syntax.WordIter, words []string) {
	s := "for " + l.Name.Value
	if l.InPos.IsValid() {
		var raw []string
		for _, w := range l.Items {
			raw = append(raw, codeOf(sh, w))
		}
		s += " in " + strings.Join(raw, " ")
	} else {
		s += ` in "$@"`
	}
	sh.trace(s)
}
