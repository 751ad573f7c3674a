package policy

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Unreadable is the host of a target in which two programs could read different ones, or none. No scope of a token names it but *.
const Unreadable = "?"

// Host returns the host of a target (a URL, a host or an address) in the form that a token uses; Unreadable if it has none.
func Host(target string) string {
	_, name, _ := hostOf(target)
	return name
}

// IsEndpoint reports whether a text is a host with a port, as localhost:8080, in the one form in which a URL that was cleaned has it.
func IsEndpoint(text string) bool {
	name, port, ok := strings.Cut(text, ":")
	n, err := strconv.Atoi(port)
	return ok && name != Unreadable && name != "" && Host(name) == name && err == nil && n > 0 && n < 1<<16 && strconv.Itoa(n) == port
}

// place returns the destination of a target without the path: its scheme, host and port as the target writes them; "" if it has no readable
// host.
func place(target string) string {
	scheme, name, port := hostOf(target)
	if name == Unreadable {
		return ""
	}
	if scheme != "" {
		name = strings.ToLower(scheme) + "://" + name
	}
	if port != "" {
		name += ":" + port
	}
	return name
}

// hostOf takes a target apart. It reads a host only where every program reads the same one. Programs end a host at a backslash or go on,
// drop a tab or not, and take a name before an @ for the host or not. So no such target has a readable host; only an address has an @.
func hostOf(target string) (scheme, name, port string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
	scheme, rest, isURL := strings.Cut(target, "://")
	if !isURL {
		scheme, rest = "", target
	}
	end := strings.IndexAny(rest, "/?#")
	switch {
	case strings.ContainsFunc(target, readTwice), isURL && (scheme == "" || strings.Trim(scheme, letters+"+") != ""),
		end >= 0 && !isURL && strings.Contains(target, "@"): // text behind an address may name more recipients
		return "", Unreadable, ""
	case end >= 0:
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		user := rest[:at]
		if first, after, found := strings.Cut(user, ":"); found && strings.EqualFold(first, "mailto") {
			user = after
		}
		if isURL || strings.Trim(user, letters+"_+%~!$&'*=") != "" {
			return "", Unreadable, ""
		}
		rest = rest[at+1:]
	}
	name, port, colon := strings.Cut(rest, ":")
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if strings.Trim(name, letters+"_") != "" || slices.Contains(strings.Split(name, "."), "") || strings.Trim(port, "0123456789") != "" ||
		colon && !isURL && (port == "" || slices.Contains(schemes, name)) {
		return "", Unreadable, ""
	}
	return scheme, name, port
}

// schemes are those behind whose colon some programs read a host without slashes: https:/evil.example, http:2130706433.
var schemes = []string{"http", "https", "ws", "wss", "ftp", "file"}

// readTwice reports whether one program drops a character, or ends a host at it, and another does not.
func readTwice(r rune) bool { return r == '\\' || unicode.IsControl(r) || unicode.IsSpace(r) }
