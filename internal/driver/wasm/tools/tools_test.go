package tools_test

import (
	"flag"
	"testing"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/shell"
	"agentbox/internal/driver/wasm/shell/coreutils"
	"agentbox/internal/driver/wasm/shelltest"
	"agentbox/internal/driver/wasm/tools"
)

var update = flag.Bool("update", false, "run the real programs and write what they print")

func programs() program.Table {
	return program.Table{}.Add(shell.Programs(), coreutils.Programs(), tools.Programs())
}

func TestTranscripts(t *testing.T) { shelltest.Transcripts(t, programs(), "testdata/*.txtar", *update) }
