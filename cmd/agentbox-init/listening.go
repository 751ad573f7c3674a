//go:build linux

package main

import (
	"encoding/hex"
	"os"
	"strconv"
	"strings"

	"agentbox/internal/spaceinit"
)

// maxTable is how many bytes of the kernel's table of sockets are read at most: about six thousand sockets.
const maxTable = 1 << 20

// listening returns the listening sockets of TCP in the space.
func listening() []spaceinit.Listening {
	seen := map[spaceinit.Listening]bool{}
	var all []spaceinit.Listening
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		for line := range strings.Lines(head(file)) {
			l, ok := socketOf(line)
			if !ok || seen[l] || len(all) == spaceinit.MaxListening {
				continue
			}
			seen[l] = true
			all = append(all, l)
		}
	}
	return all
}

// head reads at most maxTable bytes of a file, and whole lines of it.
func head(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return "" // a kernel without IPv6 has no such table
	}
	defer func() { _ = f.Close() }()
	text := make([]byte, maxTable)
	n := 0
	for n < len(text) {
		more, err := f.Read(text[n:])
		n += more
		if err != nil || more == 0 {
			break
		}
	}
	return string(text[:n])
}

// socketOf reads a line of the table: number, address:port, address:port, state, in hexadecimal digits.
func socketOf(line string) (l spaceinit.Listening, ok bool) {
	const listens = "0A"
	fields := strings.Fields(line)
	if len(fields) < 4 || fields[3] != listens {
		return l, false
	}
	address, digits, _ := strings.Cut(fields[1], ":")
	port, err := strconv.ParseUint(digits, 16, 16)
	raw, bad := hex.DecodeString(address)
	if err != nil || bad != nil || port == 0 {
		return l, false
	}
	l = spaceinit.Listening{Port: uint16(port), Six: len(raw) == 16, Any: strings.Trim(address, "0") == ""}
	return l, true
}
