package gnu

import (
	"cmp"
	"strings"
)

// CompareVersion orders as GNU's version sort: runs of digits by their value, ~ before everything, letters before other characters.
func CompareVersion(a, b string) int {
	if c := versionRuns(trimExtension(a), trimExtension(b)); c != 0 {
		return c
	}
	return cmp.Or(versionRuns(a, b), strings.Compare(a, b))
}

func trimExtension(s string) string {
	end := len(s)
	for {
		dot := strings.LastIndexByte(s[:end], '.')
		if dot <= 0 || dot+1 >= end || !(ByteClass("alpha", s[dot+1]) || s[dot+1] == '~') {
			return s[:end]
		}
		for _, c := range []byte(s[dot+1 : end]) {
			if !ByteClass("alnum", c) && c != '~' {
				return s[:end]
			}
		}
		end = dot
	}
}

func versionOrder(s string, i int) int {
	if i >= len(s) {
		return -1
	}
	switch c := s[i]; {
	case ByteClass("digit", c):
		return 0
	case ByteClass("alpha", c):
		return int(c)
	case c == '~':
		return -2
	default:
		return int(c) + 256
	}
}

func versionRuns(a, b string) int {
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		for i < len(a) && !ByteClass("digit", a[i]) || j < len(b) && !ByteClass("digit", b[j]) {
			x, y := versionOrder(a, i), versionOrder(b, j)
			if x != y {
				return cmp.Compare(x, y)
			}
			i, j = i+1, j+1
		}
		for i < len(a) && a[i] == '0' {
			i++
		}
		for j < len(b) && b[j] == '0' {
			j++
		}
		x, y := i, j
		for i < len(a) && ByteClass("digit", a[i]) {
			i++
		}
		for j < len(b) && ByteClass("digit", b[j]) {
			j++
		}
		if c := cmp.Or(cmp.Compare(i-x, j-y), strings.Compare(a[x:i], b[y:j])); c != 0 {
			return c
		}
	}
	return 0
}
