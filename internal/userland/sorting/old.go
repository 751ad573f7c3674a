package sorting

import (
	"strconv"
	"strings"
)

// withoutOldKeys writes the keys of old, "+1 -2" with fields counted from 0, as -k has them.
func withoutOldKeys(args []string) []string {
	var all []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(all, args[i:]...)
		}
		from, ok := oldPlace(args[i], '+', 1)
		if !ok || i == 0 {
			all = append(all, args[i])
			continue
		}
		if i+1 < len(args) {
			if to, ok := oldPlace(args[i+1], '-', 0); ok {
				from += "," + to
				i++
			}
		}
		all = append(all, "-k", from)
	}
	return all
}

// oldPlace writes +F.C or -F.C and its letters as a place of -k. An end of a key without a first character means the field before.
func oldPlace(arg string, sign byte, first int) (string, bool) {
	if len(arg) < 2 || arg[0] != sign || arg[1] < '0' || arg[1] > '9' {
		return "", false
	}
	spec := arg[1:]
	end := strings.IndexFunc(spec, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if end < 0 {
		end = len(spec)
	}
	spec, letters := spec[:end], spec[end:]
	field, char, _ := strings.Cut(spec, ".")
	f, err := strconv.Atoi(field)
	c, notNumber := strconv.Atoi(char)
	if err != nil || char != "" && notNumber != nil || strings.Trim(letters, "bdfghiMnRrV") != "" {
		return "", false
	}
	switch {
	case first > 0:
		return strconv.Itoa(f+1) + "." + strconv.Itoa(c+1) + letters, true
	case c > 0:
		return strconv.Itoa(f+1) + "." + strconv.Itoa(c) + letters, true
	case f == 0:
		return "", false
	}
	return strconv.Itoa(f) + letters, true
}
