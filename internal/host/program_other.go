//go:build !linux

package host

// ForgetProgram does nothing here: the system takes the unchanged pages of a program by itself.
func ForgetProgram() error { return nil }
