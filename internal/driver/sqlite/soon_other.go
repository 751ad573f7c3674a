//go:build !linux

package sqlite

// soon asks for nothing where nothing is known that would help.
func soon() {}
