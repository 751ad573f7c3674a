package host

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ForgetProgram takes the pages of this program's own file out of the memory of the process, where they lie unchanged: its code, and what
// it holds besides. They stay in the system's cache of files, from which each that is needed again comes back within a microsecond; the
// system is free to give their memory to others. The start of a large program touches most of it, and what it does at rest a fifth.
func ForgetProgram() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	raw, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return err
	}
	var all error
	var from, to uintptr // of a part of the program that nobody may write to; to is 0 for none
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		line := lines.Bytes()
		if anonymous, ok := bytes.CutPrefix(line, []byte("Anonymous:")); ok {
			// A page that a debugger or a relocation has changed belongs to the process alone, and its content would be lost.
			if to != 0 && bytes.Equal(bytes.TrimSpace(anonymous), []byte("0 kB")) {
				if _, _, e := unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_DONTNEED); e != 0 {
					all = errors.Join(all, e)
				}
			}
			to = 0
			continue
		}
		var a, b uintptr
		var rights string
		if n, _ := fmt.Sscanf(string(line), "%x-%x %s", &a, &b, &rights); n != 3 {
			continue // it tells more of the part before
		}
		to = 0
		if (rights == "r-xp" || rights == "r--p") && bytes.HasSuffix(line, []byte(" "+self)) {
			from, to = a, b
		}
	}
	return all
}
