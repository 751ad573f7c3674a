package sed_test

import (
	"errors"
	"flag"
	"strings"
	"testing"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/coreutils"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/shell"
	"agentbox/internal/userland/shelltest"
	"agentbox/internal/userland/toolbox"
)

var update = flag.Bool("update", false, "run the real programs and write what they print")

func programs() program.Table {
	return program.Table{}.Add(shell.Programs(), coreutils.Programs(), toolbox.Programs())
}

func TestTranscripts(t *testing.T) { shelltest.Transcripts(t, programs(), "testdata/*.txtar", *update) }

// Every script ends, and only a bound ends it from outside.
func FuzzSed(f *testing.F) {
	for _, s := range []string{`s/a/b/g`, `$!N;P;D`, `/x/,/y/{s/\(.\)\1/&&/;t;d}`, `y/abc/xyz/`, `1~2!{=;l}`, "a\\\nx", `s/.*/\U&\E\n/2p`} {
		f.Add(s, "a b c\nxyx yy\n\nlast")
	}
	limits := shelltest.Limits
	limits.Gas, limits.MemoryBytes, limits.OutputBytes = 5_000_000, 4<<20, 1<<16
	quote := strings.NewReplacer("'", `'\''`, "\x00", "")
	f.Fuzz(func(t *testing.T, script, input string) {
		r := shelltest.Execute(programs(), limits, "printf '%s' '"+quote.Replace(input)+"' | sed '"+quote.Replace(script)+"'")
		if _, ok := errors.AsType[*bound.Stopped](r.Stopped); r.Stopped != nil && !ok {
			t.Fatal(r.Stopped)
		}
	})
}
