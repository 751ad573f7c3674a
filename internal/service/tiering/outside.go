package tiering

import (
	"path"
	"slices"
	"strings"

	"agentbox/internal/command"
)

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
		s.fetch(rest, command.OptionsOf(name), curlFlags, where)
	case "wget":
		s.fetch(rest, command.Options{Letters: wgetLetters}, wgetFlags, where)
	case "git":
		s.git(rest, where)
	case "npx", "bunx", "pnpx":
		s.fetched(rest, where)
	case "uv":
		s.uv(rest, where)
	case "uvx":
		s.uv(append([]word{{Text: "tool", Known: true}, {Text: "run", Known: true}}, rest...), where)
	case "scp", "rsync":
		for _, w := range rest {
			if host, ok := remote(w.Text); w.Known && ok && host != "" {
				s.network(host, where)
			}
		}
	default:
		verb, behind := command.OptionsOf(name).Operand(rest)
		here := len(behind) > 0 && !slices.ContainsFunc(behind, func(w word) bool { // of files that lie in the space
			return w.Known && !strings.HasPrefix(w.Text, "-") && !lies(w.Text)
		})
		if command.Fetches(name, verb.Text) && !here {
			s.network(name+" "+verb.Text, where)
		}
	}
	if letters, ok := connectors[name]; ok {
		first, _ := command.Options{Letters: letters}.Operand(rest)
		if first.Text != "" && !slices.ContainsFunc(rest, func(w word) bool { return !w.Known || own(w.Text) }) {
			_, host, at := strings.Cut(first.Text, "@")
			if !at || host == "" {
				host = first.Text
			}
			s.network(host, where)
		}
	}
}

// The options of wget that are letters and take an argument, and the long ones of curl and wget that take none. The word after another
// long option may be its argument.
const (
	curlFlags = `--silent --location --fail --fail-with-body --show-error --insecure --head --verbose --compressed --remote-name
		--remote-header-name --include --get --globoff --http1.1 --http2 --ipv4 --ipv6 --progress-bar --no-progress-meter
		--create-dirs --location-trusted --no-buffer --parallel --tlsv1.2 --tlsv1.3`
	wgetLetters = "oaetOPUBiTwQDIXARl"
	wgetFlags   = `--quiet --no-check-certificate --spider --continue --recursive --no-parent --mirror --no-verbose --show-progress
		--content-disposition --timestamping --no-clobber --page-requisites --convert-links --server-response --https-only --inet4-only`
)

// fetch looks at the addresses that curl or wget is given.
func (s *look) fetch(rest []word, letters command.Options, flags, where string) {
	var found []string
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		switch {
		case !w.Known:
		case strings.HasSuffix(w.Text, "unix-socket") || strings.HasPrefix(w.Text, "--proxy") || w.Text == "-x":
			return // what stands behind that, may be of the space
		case w.Text == "--url" && i+1 < len(rest):
			i++
			if host, ok := remote(rest[i].Text); ok && host != "" {
				found = append(found, host)
			}
		case strings.HasPrefix(w.Text, "--"):
			if !strings.Contains(w.Text, "=") && !slices.Contains(strings.Fields(flags), w.Text) {
				i++
			}
		case len(w.Text) > 1 && w.Text[0] == '-':
			if letters.Takes(w.Text) {
				i++
			}
		default:
			text := w.Text
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

// git checks the repositories that git would reach.
func (s *look) git(rest []word, where string) {
	verb, behind := command.OptionsOf("git").Operand(rest)
	switch verb.Text {
	case "clone", "ls-remote", "fetch", "pull", "push":
	default:
		return
	}
	first, _ := command.Options{Letters: "bojcu"}.Operand(behind)
	if strings.HasPrefix(verb.Text, "ls") || verb.Text == "clone" {
		for _, w := range behind { // its options have arguments of their own
			if host, ok := remote(w.Text); w.Known && ok && host != "" {
				s.network(host, where)
				return
			}
		}
		if verb.Text == "clone" {
			return
		}
	}
	if host, ok := remote(first.Text); ok {
		if host != "" {
			s.network(host, where)
		}
		return
	}
	elsewhere := func(w word) bool { return w.Text == "-C" }
	if slices.ContainsFunc(rest[:len(rest)-len(behind)], elsewhere) || slices.ContainsFunc(behind, func(w word) bool { return !w.Known }) {
		return
	}
	if host := s.origin(first.Text); host != "" {
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

// uv checks what uv would install or run.
func (s *look) uv(rest []word, where string) {
	if slices.ContainsFunc(rest, func(w word) bool {
		return !w.Known || slices.Contains([]string{"--offline", "--no-index", "--help", "-h"}, w.Text)
	}) {
		return
	}
	verb, behind := operand(rest)
	switch verb.Text {
	case "pip":
		s.pip("pip", behind, where)
	case "tool":
		if what, more := operand(behind); (what.Text == "run" || what.Text == "install") && len(more) > 0 {
			if first, _ := operand(more); first.Text != "" {
				s.network("the package "+pythonPackage(first.Text), where)
			}
		}
	case "add":
		if first, _ := operand(behind); first.Text != "" && len(wantedOf(first.Text, where)) > 0 {
			s.network("the package "+pythonPackage(first.Text), where)
		}
	case "python":
		if what, _ := operand(behind); what.Text == "install" {
			s.network("uv python install", where)
		}
	}
}

// remote returns the host of an address that names one, without a user; the host is "" for this machine. ok is false for a text without a
// host.
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
