//go:build !unix

package wasm

import "os"

// mapped returns the content of a file that nobody changes, only to be read.
func mapped(name string) ([]byte, error) { return os.ReadFile(name) }
