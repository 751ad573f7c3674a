package host

import "golang.org/x/sys/unix"

const (
	getTermios    = unix.TCGETS
	setTermios    = unix.TCSETS
	forgetTermios = unix.TCSETSF // sets them, and drops what was typed and not read
)
