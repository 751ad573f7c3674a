package tiering

import (
	"path"
	"slices"
	"strings"
)

// fetchers are programs that fetch packages, with their verbs.
var fetchers = map[string]string{
	"apt":        "install update upgrade full-upgrade source download",
	"apt-get":    "install update upgrade dist-upgrade source download build-dep",
	"aptitude":   "install update upgrade",
	"dnf":        "install update upgrade",
	"yum":        "install update upgrade",
	"apk":        "add update upgrade",
	"zypper":     "install in refresh update",
	"brew":       "install update upgrade tap",
	"snap":       "install refresh",
	"flatpak":    "install update",
	"conda":      "install create update",
	"mamba":      "install create update",
	"micromamba": "install create update",
	"cargo":      "install add fetch search publish",
	"go":         "get install",
	"gem":        "install update",
	"bundle":     "install update",
	"composer":   "install require update",
	"docker":     "pull push run login",
	"podman":     "pull push run login",
	"poetry":     "add install update",
	"pipenv":     "install update",
	"pipx":       "install run",
	"gh":         "api auth clone gist issue pr release repo",
}

// connectors are programs that reach the host that they name, with the letters of their options that take an argument.
var connectors = map[string]string{
	"ssh":        "bcDEeFIiJLlmOopQRSWw",
	"sftp":       "bcDFiJloPRSs",
	"telnet":     "lnb",
	"ftp":        "",
	"ping":       "ciWswIlMpQStTm",
	"nslookup":   "",
	"host":       "",
	"dig":        "",
	"whois":      "hp",
	"traceroute": "fimpqwz",
}

// outside looks at what programs want of other hosts.
func (s *look) outside(name string, rest []word, where string) {
	switch name {
	case "curl":
		s.fetch(rest, curlLetters, curlFlags, where)
	case "wget":
		s.fetch(rest, wgetLetters, wgetFlags, where)
	case "git":
		s.git(rest, where)
	case "npx", "bunx", "pnpx":
		s.fetched(rest, where)
	case "uv":
		s.uv(rest, where)
	case "uvx":
		s.uv(append([]word{{"tool", true}, {"run", true}}, rest...), where)
	case "scp", "rsync":
		for _, w := range rest {
			if host, ok := remote(w.text); w.known && ok && host != "" {
				s.network(host, where)
			}
		}
	}
	if verbs, ok := fetchers[name]; ok {
		verb, behind := operand(rest, "")
		here := len(behind) > 0 && !slices.ContainsFunc(behind, func(w word) bool { // of files that lie in the space
			return w.known && !strings.HasPrefix(w.text, "-") && !lies(w.text)
		})
		if verb.known && slices.Contains(strings.Fields(verbs), verb.text) && !here {
			s.network(name+" "+verb.text, where)
		}
	}
	if letters, ok := connectors[name]; ok {
		first, _ := operand(rest, letters)
		if first.text != "" && !slices.ContainsFunc(rest, func(w word) bool { return !w.known || own(w.text) }) {
			_, host, at := strings.Cut(first.text, "@")
			if !at || host == "" {
				host = first.text
			}
			s.network(host, where)
		}
	}
}

// The options of curl and wget: letters that take an argument, and long ones that take none. What follows another long one may be its
// argument.
const (
	curlLetters = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"
	curlFlags   = `--silent --location --fail --fail-with-body --show-error --insecure --head --verbose --compressed --remote-name
		--remote-header-name --include --get --globoff --http1.1 --http2 --ipv4 --ipv6 --progress-bar --no-progress-meter --create-dirs --location-trusted --no-buffer --parallel --tlsv1.2 --tlsv1.3`
	wgetLetters = "oaetOPUBiTwQDIXARl"
	wgetFlags   = `--quiet --no-check-certificate --spider --continue --recursive --no-parent --mirror --no-verbose --show-progress
		--content-disposition --timestamping --no-clobber --page-requisites --convert-links --server-response --https-only --inet4-only`
)

// fetch looks at the addresses that curl or wget is given.
func (s *look) fetch(rest []word, letters, flags, where string) {
	var found []string
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		switch {
		case !w.known:
		case strings.HasSuffix(w.text, "unix-socket") || strings.HasPrefix(w.text, "--proxy") || w.text == "-x":
			return // the text after it may come from the space
		case w.text == "--url" && i+1 < len(rest):
			i++
			if host, ok := remote(rest[i].text); ok && host != "" {
				found = append(found, host)
			}
		case strings.HasPrefix(w.text, "--"):
			if !strings.Contains(w.text, "=") && !slices.Contains(strings.Fields(flags), w.text) {
				i++
			}
		case len(w.text) > 1 && w.text[0] == '-':
			if strings.ContainsRune(letters, rune(w.text[len(w.text)-1])) && !strings.ContainsAny(w.text[1:len(w.text)-1], letters) {
				i++
			}
		default:
			text := w.text
			if !strings.Contains(text, "://") && strings.Contains(strings.SplitN(text, "/", 2)[0], ".") && !strings.HasPrefix(text, ".") {
				text = "http://" + text
			}
			if host, ok := remote(text); ok && host != "" {
				found = append(found, host)
			}
		}
	}
	for _, host := range found {
		s.network(host, where)
	}
}

// git checks the repositories that git is asked to reach.
func (s *look) git(rest []word, where string) {
	verb, behind := operand(rest, "Cc")
	switch verb.text {
	case "clone", "ls-remote", "fetch", "pull", "push":
	default:
		return
	}
	first, _ := operand(behind, "bojcu")
	if strings.HasPrefix(verb.text, "ls") || verb.text == "clone" {
		for _, w := range behind { // its options have arguments of their own
			if host, ok := remote(w.text); w.known && ok && host != "" {
				s.network(host, where)
				return
			}
		}
		if verb.text == "clone" {
			return
		}
	}
	if host, ok := remote(first.text); ok {
		if host != "" {
			s.network(host, where)
		}
		return
	}
	elsewhere := func(w word) bool { return w.text == "-C" }
	if slices.ContainsFunc(rest[:len(rest)-len(behind)], elsewhere) || slices.ContainsFunc(behind, func(w word) bool { return !w.known }) {
		return
	}
	if host := s.origin(first.text); host != "" {
		s.network(host, where)
	}
}

// origin returns the host of a remote of the repository in the working folder, "" for none that is known to be another host.
func (s *look) origin(name string) string {
	if name == "" {
		name = "origin"
	}
	text, ok := s.file(path.Join(s.cwd, ".git/config"))
	if !ok {
		return ""
	}
	inside := false
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if strings.HasPrefix(l, "[") {
			inside = l == `[remote "`+name+`"]`
		}
		key, value, _ := strings.Cut(l, "=")
		if inside && strings.TrimSpace(key) == "url" {
			host, _ := remote(strings.TrimSpace(value))
			return host
		}
	}
	return ""
}

// uv checks what uv is asked to install or to run.
func (s *look) uv(rest []word, where string) {
	if slices.ContainsFunc(rest, func(w word) bool {
		return !w.known || slices.Contains([]string{"--offline", "--no-index", "--help", "-h"}, w.text)
	}) {
		return
	}
	verb, behind := operand(rest, "")
	switch verb.text {
	case "pip":
		s.pip(behind, where)
	case "tool":
		if what, more := operand(behind, ""); (what.text == "run" || what.text == "install") && len(more) > 0 {
			if first, _ := operand(more, ""); first.text != "" {
				s.network("the package "+pythonPackage(first.text), where)
			}
		}
	case "add":
		if first, _ := operand(behind, ""); first.text != "" && len(wantedOf(first.text, where)) > 0 {
			s.network("the package "+pythonPackage(first.text), where)
		}
	case "python":
		if what, _ := operand(behind, ""); what.text == "install" {
			s.network("uv python install", where)
		}
	}
}

// remote returns the host of an address, without a user name; the host is "" if it is this one. Ok is false for an address without a host.
func remote(text string) (host string, ok bool) {
	scheme, rest, url := strings.Cut(text, "://")
	switch {
	case url && scheme == "file":
		return "", true
	case url && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-") != "":
		return "", false
	case !url:
		before, _, colon := strings.Cut(text, ":")
		if !colon || before == "" || strings.ContainsAny(before, "/= ") || strings.HasPrefix(text, "-") || !strings.ContainsAny(before, "@.") {
			return "", false
		}
		rest = before
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	host = rest[strings.LastIndexByte(rest, '@')+1:]
	if !strings.HasPrefix(host, "[") {
		host, _, _ = strings.Cut(host, ":")
	}
	if own(host) {
		return "", true
	}
	return host, host != ""
}

// own reports whether a name of a host is the space itself.
func own(host string) bool {
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasPrefix(host, "127.") || strings.HasPrefix(host,
		"[::1]") ||
		host == "::1" || host == "0.0.0.0"
}
