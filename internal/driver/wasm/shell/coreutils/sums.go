package coreutils

import (
	"encoding/hex"
	"hash"
	"regexp"
	"strings"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// gasPerHashedByte is what a byte that is hashed costs.
const gasPerHashedByte = 4

// digest hashes a file; what does not succeed is told.
func digest(p *program.Process, name string, h hash.Hash, quiet bool) (string, bool) {
	in := p.Reader(p.Stdin)
	if name != "-" {
		file, err := p.Open(name, vfs.Read)
		if err != nil {
			if !quiet {
				p.Errorf("%s: %s", name, program.Message(err))
			}
			return "", false
		}
		defer func() { _ = p.Close(file) }()
		in = p.Reader(file)
	}
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(gasPerHashedByte * len(chunk))
		_, _ = h.Write(chunk)
	}
	if !ended(p, name, in) {
		return "", false
	}
	return hex.EncodeToString(h.Sum(nil)), true
}

// sums is a command that prints or checks the digests of files.
func sums(name string, fresh func() hash.Hash) program.Func {
	return func(p *program.Process) int {
		opts, files := p.Options(1, "bctwz", "binary b", "check c", "tag", "text t", "zero z", "ignore-missing", "quiet", "status", "strict", "warn w")
		check, tag, end, mark := false, false, "\n", " "
		c := checker{p: p, name: name, fresh: fresh}
		for _, o := range opts {
			switch o.Name {
			case "b":
				mark = "*"
			case "c":
				check = true
			case "tag":
				tag = true
			case "z":
				end = "\x00"
			case "ignore-missing":
				c.ignore = true
			case "quiet":
				c.quiet = true
			case "status":
				c.silent = true
			case "strict":
				c.strict = true
			case "w":
				c.warn = true
			}
		}
		status := 0
		for _, file := range orStdin(files) {
			if check {
				if !c.check(file) {
					status = 1
				}
				continue
			}
			sum, ok := digest(p, file, fresh(), false)
			if !ok {
				status = 1
				continue
			}
			if tag {
				_, _ = p.Out().WriteString(name + " (" + file + ") = " + sum + end)
				continue
			}
			shown, escape := file, ""
			if end == "\n" && strings.ContainsAny(file, "\\\n\r") {
				shown, escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(file), `\`
			}
			_, _ = p.Out().WriteString(escape + sum + " " + mark + shown + end)
		}
		return status
	}
}

type checker struct {
	p                                   *program.Process
	name                                string
	fresh                               func() hash.Hash
	ignore, quiet, silent, strict, warn bool
}

var (
	sumLine = regexp.MustCompile(`^\\?([0-9a-fA-F]+) [ *]?(.+)$`)
	tagLine = regexp.MustCompile(`^([A-Z0-9]+) ?\((.+)\) ?= ([0-9a-fA-F]+)$`)
)

// check compares files with a list of digests.
func (c *checker) check(list string) bool {
	p := c.p
	in := input(p, list)
	if in == nil {
		return false
	}
	good, bad, failed, unread, verified := 0, 0, 0, 0, 0
	digits := c.fresh().Size() * 2
	for {
		line, _, ok := in.Line('\n')
		if !ok {
			break
		}
		text := strings.TrimRight(string(line), "\r")
		if strings.HasPrefix(text, "#") || text == "" {
			if text == "" {
				bad++
			}
			continue
		}
		want, file := "", ""
		if m := tagLine.FindStringSubmatch(text); len(m) > 3 && m[1] == c.name {
			want, file = m[3], m[2]
		} else if m := sumLine.FindStringSubmatch(text); len(m) > 2 {
			want, file = m[1], m[2]
		}
		if len(want) != digits {
			bad++
			continue
		}
		good++
		if c.ignore {
			if _, err := lookup(p, file, true); err != nil {
				continue
			}
		}
		sum, ok := digest(p, file, c.fresh(), false)
		switch {
		case !ok:
			unread++
			if !c.silent {
				_, _ = p.Out().WriteString(file + ": FAILED open or read\n")
			}
		case sum != strings.ToLower(want):
			failed++
			if !c.silent {
				_, _ = p.Out().WriteString(file + ": FAILED\n")
			}
		default:
			verified++
			if !c.silent && !c.quiet {
				_, _ = p.Out().WriteString(file + ": OK\n")
			}
		}
	}
	if good == 0 {
		p.Errorf("%s: no properly formatted checksum lines found", stdinName(list))
		return false
	}
	plural := func(n int, one, many string) string {
		if n == 1 {
			return one
		}
		return many
	}
	if !c.silent {
		if bad > 0 {
			p.Errorf("WARNING: %d %s improperly formatted", bad, plural(bad, "line is", "lines are"))
		}
		if unread > 0 {
			p.Errorf("WARNING: %d listed %s could not be read", unread, plural(unread, "file", "files"))
		}
		if failed > 0 {
			p.Errorf("WARNING: %d computed %s did NOT match", failed, plural(failed, "checksum", "checksums"))
		}
		if c.ignore && verified == 0 {
			p.Errorf("%s: no file was verified", list)
		}
	}
	return failed == 0 && unread == 0 && (!c.strict || bad == 0) && (!c.ignore || verified > 0)
}
