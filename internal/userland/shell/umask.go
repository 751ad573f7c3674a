package shell

import (
	"fmt"
	"strconv"
	"strings"
)

// biUmask is the builtin umask.
func biUmask(sh *shell, args []string) int {
	symbolic, print := false, false
	args = args[1:]
	for len(args) > 0 && len(args[0]) > 1 && args[0][0] == '-' {
		for _, c := range []byte(args[0][1:]) {
			switch c {
			case 'S':
				symbolic = true
			case 'p':
				print = true
			case '-':
			default:
				sh.complain("umask", "-%c: invalid option", c)
				sh.stderr("umask: usage: umask [-p] [-S] [mode]\n")
				return 2
			}
		}
		args = args[1:]
	}
	if len(args) == 0 {
		s := umaskText(sh, symbolic)
		if print {
			s = "umask " + map[bool]string{true: "-S "}[symbolic] + s
		}
		return sh.stdout("umask", s+"\n")
	}
	mode := args[0]
	if mode != "" && mode[0] >= '0' && mode[0] <= '9' {
		n, err := strconv.ParseUint(mode, 8, 32)
		if err != nil || n > 0o7777 {
			sh.complain("umask", "%s: octal number out of range", mode)
			return 1
		}
		sh.umask = uint32(n) & 0o777
	} else {
		allowed, wrong := symbolicMode(mode, 0o777&^sh.umask)
		if wrong != "" {
			sh.complain("umask", "%s", wrong)
			return 1
		}
		sh.umask = 0o777 &^ allowed
	}
	if symbolic {
		return sh.stdout("umask", umaskText(sh, true)+"\n")
	}
	return 0
}

// umaskText writes the mask in octal, or what it allows as symbols.
func umaskText(sh *shell, symbolic bool) string {
	if !symbolic {
		return fmt.Sprintf("%04o", sh.umask)
	}
	s := ""
	for i, who := range []string{"u=", ",g=", ",o="} {
		bits := ^sh.umask >> (6 - 3*i) & 7
		s += who
		for j, c := range "rwx" {
			if bits&(4>>j) != 0 {
				s += string(c)
			}
		}
	}
	return s
}

// symbolicMode applies a symbolic mode, as the builtin umask reads it, to the bits that are allowed. It returns the reason for an invalid
// mode.
func symbolicMode(mode string, allowed uint32) (bits uint32, wrong string) {
	bits = allowed
	for i := 0; ; i++ {
		who := uint32(0)
		for ; i < len(mode) && strings.IndexByte("agou", mode[i]) >= 0; i++ {
			who |= map[byte]uint32{'a': 0o777, 'g': 0o070, 'o': 0o007, 'u': 0o700}[mode[i]]
		}
		if who == 0 {
			who = 0o777
		}
		op := byte(0)
		if i < len(mode) {
			op = mode[i]
		}
		if strings.IndexByte("+-=", op) < 0 {
			return 0, fmt.Sprintf("`%c': invalid symbolic mode operator", op)
		}
		perm := uint32(0)
		for i++; i < len(mode) && strings.IndexByte("rwx", mode[i]) >= 0; i++ {
			perm |= map[byte]uint32{'r': 0o444, 'w': 0o222, 'x': 0o111}[mode[i]]
		}
		if i < len(mode) && mode[i] != ',' {
			return 0, fmt.Sprintf("`%c': invalid symbolic mode character", mode[i])
		}
		switch op {
		case '+':
			bits |= perm & who
		case '-':
			bits &^= perm & who
		default:
			bits = bits&^who | perm&who
		}
		if i >= len(mode) {
			return bits, ""
		}
	}
}
