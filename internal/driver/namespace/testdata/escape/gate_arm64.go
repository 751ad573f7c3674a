//go:build linux

package main

import "golang.org/x/sys/unix"

var otherInterfaces = []try{refusedWith(unix.ENOSYS, func() error { return call(0x3fffffff) })}
