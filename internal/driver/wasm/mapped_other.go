//go:build !unix

package wasm

import (
	"io/fs"
	"os"
)

// mapped returns the content of a file that nobody changes, only to be read.
func mapped(name string) ([]byte, error) { return os.ReadFile(name) }

// foreignOwner is not known here: rights are no bits of a file.
func foreignOwner(fs.FileInfo) bool { return false }
