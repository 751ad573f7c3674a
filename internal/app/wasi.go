package app

import (
	"context"

	"agentbox/internal/driver/nano"
)

// Module is a WebAssembly module for this machine, with the bounds of its use.
type Module = nano.Module

// ModuleFolder is a folder of the host, and the names under which a module finds it open.
type ModuleFolder = nano.Folder

// ModuleEnd is how a module ended.
type ModuleEnd = nano.End

// RunModule runs a WebAssembly module, without a daemon. Its clock begins now by default.
func RunModule(ctx context.Context, m Module) (ModuleEnd, error) {
	if m.Start.IsZero() {
		m.Start = Clock{}.Now()
	}
	return nano.Run(ctx, m)
}
