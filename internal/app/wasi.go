package app

import (
	"context"

	"agentbox/internal/driver/wasm"
)

// Module is a WebAssembly module to be run on this machine; the others say which folders it has, and how it ended.
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
