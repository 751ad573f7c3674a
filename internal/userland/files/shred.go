package files

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Limits of shred: the default number of passes, the block size to which a file is rounded up, and the largest number of passes.
const (
	shredPasses    = 3
	shredBlock     = 4096
	maxShredPasses = 1 << 16
)

// shredder is a shred that runs.
type shredder struct {
	p                            *program.Process
	passes                       int
	size                         int64 // -1 where that of the file counts
	exact, zero, verbose, remove bool
	force                        bool
	how                          string
	source                       *program.Input // of random bytes, nil for the seed of the execution
	from                         string
}

// shred writes over files, and removes them.
func shred(p *program.Process) int {
	opts, operands := p.Options(1, "fn:s:uvxz", "force f", "iterations n", "size s", "remove=?", "verbose v", "exact x", "zero z",
		"random-source=")
	s := &shredder{p: p, passes: shredPasses, size: -1, how: "wipesync"}
	for _, o := range opts {
		switch o.Name {
		case "f":
			s.force = true
		case "n":
			n, err := gnu.ParseSize(o.Value)
			if err != nil || strings.Trim(o.Value, "0123456789") != "" || n > maxShredPasses {
				p.Errorf("invalid number of passes: %s", gnu.Quote(o.Value))
				return 1
			}
			s.passes = int(n)
		case "s":
			n, err := gnu.ParseSize(o.Value)
			if err != nil {
				p.Errorf("invalid file size: %s", gnu.Quote(o.Value))
				return 1
			}
			s.size = n
		case "u":
			s.remove = true
		case "remove":
			s.remove = true
			if o.Given && !s.setHow(o.Value) {
				return 1
			}
		case "v":
			s.verbose = true
		case "x":
			s.exact = true
		case "z":
			s.zero = true
		case "random-source":
			h, err := p.Open(o.Value, vfs.Read)
			if err != nil {
				p.Errorf("%s: %s", gnu.BareOrQuoted(o.Value), program.Message(err))
				return 1
			}
			s.source, s.from = p.Reader(h), o.Value
		}
	}
	if len(operands) == 0 {
		return gnu.WrongUsage(p, "missing file operand")
	}
	code := 0
	for _, name := range operands {
		if !s.file(name) {
			code = 1
		}
	}
	return code
}

// setHow says how names are removed, and reports whether there is such a way.
func (s *shredder) setHow(how string) bool {
	for _, known := range []string{"unlink", "wipe", "wipesync"} {
		if how != "" && strings.HasPrefix(known, how) && (how != "wipes" || known == "wipesync") {
			s.how = known
			return true
		}
	}
	s.p.Errorf("invalid argument %s for %s\nValid arguments are:\n  - %s\n  - %s\n  - %s", gnu.Quote(how),
		gnu.Quote("--remove"), gnu.Quote("unlink"),
		gnu.Quote("wipe"), gnu.Quote("wipesync"))
	s.p.Stderrf("Try '%s --help' for more information.\n", s.p.Name())
	return false
}

func (s *shredder) file(name string) bool {
	p := s.p
	shown := gnu.BareOrQuoted(name)
	h := p.Stdout
	if name != "-" {
		var err error
		if h, err = p.Open(name, vfs.Write); err != nil && s.force {
			if p.FS.Chmod(p.At(), name, 0o200, true) == nil {
				h, err = p.Open(name, vfs.Write)
			}
		}
		if err != nil {
			p.Errorf("%s: failed to open for writing: %s", shown, program.Message(err))
			return false
		}
		defer func() { _ = p.Close(h) }()
	}
	if h == nil || h.Kind() != vfs.Regular {
		p.Errorf("%s: invalid file type", shown)
		return false
	}
	if name == "-" && h.Flags()&vfs.Append != 0 {
		p.Errorf("%s: cannot shred append-only file descriptor", shown)
		return false
	}
	length := s.size
	if length < 0 {
		if length = h.Info().Size; !s.exact {
			length = (length + shredBlock - 1) / shredBlock * shredBlock
		}
	}
	if !s.overwrite(h, shown, length) {
		return false
	}
	if !s.remove || name == "-" {
		return true
	}
	if err := h.Truncate(0); err != nil {
		p.Errorf("%s: error truncating: %s", shown, program.Message(err))
		return false
	}
	return s.wipe(name)
}

// overwrite goes over the file with random bytes. With many passes, those between the first and the last also write patterns.
func (s *shredder) overwrite(h *vfs.Handle, shown string, length int64) bool {
	passes := s.passes
	if s.zero {
		passes++
	}
	block := make([]byte, shredBlock)
	for pass := 1; pass <= passes && length > 0; pass++ {
		kind := "random"
		pattern := byte(0)
		switch {
		case s.zero && pass == passes:
			kind = "000000"
		case s.passes > shredPasses && pass > 1 && pass < s.passes && pass%10 != 0:
			var chance [1]byte
			s.p.Account.Entropy(chance[:])
			pattern = chance[0] % 16 * 0x11
			kind = strings.Repeat(string("0123456789abcdef"[pattern&15]), 6)
		}
		if s.verbose {
			s.p.Errorf("%s: pass %d/%d (%s)...", shown, pass, passes, kind)
		}
		for at := int64(0); at < length; {
			part := block[:min(int64(len(block)), length-at)]
			s.p.Charge(len(part))
			if kind == "random" {
				if !s.random(part) {
					return false
				}
			} else {
				for i := range part {
					part[i] = pattern
				}
			}
			n, err := h.WriteAt(part, at)
			s.p.Check(err)
			if err != nil {
				s.p.Errorf("%s: error writing at offset %d: %s", shown, at+int64(n), program.Message(err))
				return false
			}
			at += int64(n)
		}
	}
	return true
}

// random fills a block by chance, or from the source that was named.
func (s *shredder) random(block []byte) bool {
	if s.source == nil {
		s.p.Account.Entropy(block)
		return true
	}
	for len(block) > 0 {
		n, err := s.source.Read(block)
		if err != nil {
			s.p.Errorf("%s: end of file", gnu.Quote(s.from))
			return false
		}
		block = block[n:]
	}
	return true
}

// wipe gives a file shorter and shorter names, and removes it.
func (s *shredder) wipe(name string) bool {
	p := s.p
	if s.verbose {
		p.Errorf("%s: removing", gnu.BareOrQuoted(name))
	}
	trimmed := strings.TrimRight(name, "/")
	at := strings.LastIndexByte(trimmed, '/') + 1
	dir, old := trimmed[:at], trimmed
	for n := len(trimmed) - at; n > 0 && s.how != "unlink"; n-- {
		p.Charge(1000)
		for i := range 10_000 { // names of digits, of which there may be some already
			text := strconv.Itoa(i)
			if len(text) > n {
				break
			}
			next := dir + strings.Repeat("0", n-len(text)) + text
			if _, err := p.FS.Stat(p.At(), next, false); err == nil {
				p.Charge(200)
				continue
			}
			if err := p.FS.Rename(p.At(), old, p.At(), next); err != nil {
				break
			}
			if s.verbose {
				p.Errorf("%s: renamed to %s", gnu.BareOrQuoted(old), gnu.BareOrQuoted(next))
			}
			old = next
			break
		}
	}
	if err := p.FS.Unlink(p.At(), old); err != nil {
		p.Errorf("%s: failed to remove: %s", gnu.BareOrQuoted(old), program.Message(err))
		return false
	}
	if s.verbose {
		p.Errorf("%s: removed", gnu.BareOrQuoted(name))
	}
	return true
}
