package coreutils

import (
	"encoding/base64"
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

func base64Command(p *program.Process) int {
	opts, files := p.Options(1, "diw:", "decode d", "ignore-garbage i", "wrap w")
	decode, garbage, wrap := false, false, int64(76)
	for _, o := range opts {
		switch o.Name {
		case "d":
			decode = true
		case "i":
			garbage = true
		case "w":
			n, ok := suffixed(o.Value)
			if !ok {
				p.Errorf("invalid wrap size: ‘%s’", o.Value)
				return 1
			}
			wrap = n
		}
	}
	if len(files) > 1 {
		usage(p, 1, "extra operand ‘%s’", files[1])
	}
	name := orStdin(files)[0]
	in := input(p, name)
	if in == nil {
		return 1
	}
	out := p.Out()
	if decode {
		return decodeBase64(p, in, garbage)
	}
	column := int64(0)
	put := func(s string) {
		for s != "" {
			n := int64(len(s))
			if wrap > 0 {
				n = min(n, wrap-column)
			}
			_, _ = out.WriteString(s[:n])
			s = s[n:]
			if column += n; wrap > 0 && column == wrap {
				_ = out.WriteByte('\n')
				column = 0
			}
		}
	}
	var rest []byte
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(len(chunk))
		rest = append(rest, chunk...)
		n := len(rest) / 3 * 3
		put(base64.StdEncoding.EncodeToString(rest[:n]))
		rest = append(rest[:0], rest[n:]...)
	}
	put(base64.StdEncoding.EncodeToString(rest))
	if wrap > 0 && column > 0 {
		_ = out.WriteByte('\n')
	}
	if !ended(p, name, in) {
		return 1
	}
	return 0
}

func decodeBase64(p *program.Process, in *program.Input, garbage bool) int {
	var rest []byte
	for {
		chunk := in.Chunk()
		if chunk == nil {
			break
		}
		p.Charge(len(chunk))
		for _, c := range chunk {
			letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
			if c == '\n' || garbage && !letter {
				continue
			}
			rest = append(rest, c)
			if len(rest) < 4 {
				continue
			}
			got, err := base64.StdEncoding.DecodeString(string(rest))
			if err != nil {
				_, _ = p.Out().Write(got)
				p.Errorf("invalid input")
				return 1
			}
			_, _ = p.Out().Write(got)
			rest = rest[:0]
		}
	}
	if len(rest) > 0 {
		got, _ := base64.RawStdEncoding.DecodeString(string(rest))
		_, _ = p.Out().Write(got)
		p.Errorf("invalid input")
		return 1
	}
	return 0
}
