//go:build darwin || freebsd || netbsd || openbsd || dragonfly

package host

import "golang.org/x/sys/unix"

const (
	getTermios    = unix.TIOCGETA
	setTermios    = unix.TIOCSETA
	forgetTermios = unix.TIOCSETAF // sets them, and drops what was typed and not read
)
