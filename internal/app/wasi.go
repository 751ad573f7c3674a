package app

import (
	"context"

	"agentbox/internal/driver/wasm"
)

// What a module is, and how it ends.
type (
	Module       = wasm.Module
	ModuleFolder = wasm.Folder
	ModuleEnd    = wasm.End
)

// RunModule runs a WebAssembly module, without a daemon. Its clock begins now where nothing else is said.
func RunModule(ctx context.Context, m Module) (ModuleEnd, error) {
	if m.Start.IsZero() {
		m.Start = Clock{}.Now()
	}
	return wasm.Run(ctx, m)
}
