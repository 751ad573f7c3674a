package toolbox_test

import (
	"flag"
	"testing"

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
