package wasm

import (
	"maps"
	"slices"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/shell"
	"agentbox/internal/driver/wasm/shell/coreutils"
	"agentbox/internal/driver/wasm/tools"
)

// Commands returns the names of the commands that a nano space has, in order: those of the shell and of the interpreters, whether this build has them or not.
func Commands() []string {
	t := program.Table{}.Add(shell.Programs(), coreutils.Programs(), tools.Programs())
	names := append(slices.Collect(maps.Keys(t)), "bash", "sh", "dash", "python", "python3", "python3.13", "js", "node", "bun")
	slices.Sort(names)
	return slices.Compact(names)
}
