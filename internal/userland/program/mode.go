package program

import (
	"strconv"
	"strings"
)

// Mode returns the permission bits that a mode of chmod makes of old: octal, or symbolic like u+x,go=r. umask counts where a symbolic
// mode names nobody.
func Mode(spec string, old, umask uint32, dir bool) (uint32, bool) {
	if spec == "" {
		return 0, false
	}
	if n, err := strconv.ParseUint(spec, 8, 32); err == nil {
		return uint32(n), n <= 0o7777
	}
	mode := old
	for clause := range strings.SplitSeq(spec, ",") {
		who := uint32(0)
		i := 0
		for ; i < len(clause) && strings.IndexByte("ugoa", clause[i]) >= 0; i++ {
			who |= map[byte]uint32{'u': 0o4700, 'g': 0o2070, 'o': 0o1007, 'a': 0o7777}[clause[i]]
		}
		mask := uint32(0)
		if who == 0 {
			who, mask = 0o7777, umask
		}
		if i == len(clause) {
			return 0, false
		}
		for i < len(clause) {
			op := clause[i]
			if op != '+' && op != '-' && op != '=' {
				return 0, false
			}
			bits := uint32(0)
			for i++; i < len(clause) && strings.IndexByte("+-=", clause[i]) < 0; i++ {
				switch clause[i] {
				case 'r':
					bits |= 0o444
				case 'w':
					bits |= 0o222
				case 'x':
					bits |= 0o111
				case 'X':
					if dir || mode&0o111 != 0 {
						bits |= 0o111
					}
				case 's':
					bits |= 0o6000
				case 't':
					bits |= 0o1000
				case 'u':
					bits |= mode >> 6 & 7 * 0o111
				case 'g':
					bits |= mode >> 3 & 7 * 0o111
				case 'o':
					bits |= mode & 7 * 0o111
				default:
					return 0, false
				}
			}
			bits &= who &^ mask
			switch op {
			case '+':
				mode |= bits
			case '-':
				mode &^= bits
			default:
				mode = mode&^(who&0o777) | bits
			}
		}
	}
	return mode, true
}
