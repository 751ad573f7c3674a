// Package coreutils is the part of GNU's coreutils, and of what lies beside it in /bin, that scripts use for files, text and their surroundings.
package coreutils

import (
	"agentbox/internal/driver/wasm/program"
)

// Programs returns the programs of this package.
func Programs() program.Table {
	return program.Table{
		"cat": program.Func(cat),
	}
}
