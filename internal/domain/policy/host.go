package policy

import "strings"

// Unreadable is the host of a target in which two programs could read different ones, or none. No scope of a token names it but *.
const Unreadable = "?"

// Host returns the host of a target (a URL, a host or an address) in the form that a token uses; Unreadable if it has none.
func Host(target string) string {
	_, name, _ := hostOf(target)
	return name
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

// hostOf takes a target apart.
func hostOf(target string) (scheme, name, port string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
	scheme, rest, found := strings.Cut(target, "://")
	if !found {
		scheme, rest = "", target
	}
	end := strings.IndexAny(rest, "/?#\\")
	if strings.Trim(scheme, letters+"+") != "" || end >= 0 && !found && strings.Contains(target, "@") {
		return "", Unreadable, "" // text after the address may name other recipients
	}
	if end >= 0 {
		rest = rest[:end]
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		if strings.Trim(rest[:at], letters+"_+%~!$&'*=:") != "" {
			return "", Unreadable, ""
		}
		rest = rest[at+1:]
	}
	name, port, _ = strings.Cut(rest, ":")
	if name = strings.TrimSuffix(name, "."); name == "" || strings.Trim(name, letters+"_") != "" || strings.Trim(port, "0123456789") != "" {
		return "", Unreadable, ""
	}
	return scheme, strings.ToLower(name), port
}
