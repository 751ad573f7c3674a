// Package digest has the commands for checksums and encodings: cksum, md5sum and its like, base64 and base32.
package digest

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/blake2b"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// Programs returns the commands of this package by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"base32": basenc, "base64": basenc, "basenc": basenc, "b2sum": b2sum, "cksum": cksum, "sum": sum,
		"md5sum": sums("md5"), "sha1sum": sums("sha1"), "sha224sum": sums("sha224"), "sha256sum": sums("sha256"), "sha384sum": sums("sha384"),
		"sha512sum": sums("sha512"),
	})
}

// gasPerHashedByte is what a byte that is hashed costs.
const gasPerHashedByte = 4

// digestKind is an algorithm of digests.
type digestKind struct {
	tag  string // in lines that name it
	bits int    // of a digest
	make func(bits int) hash.Hash
}

func always(f func() hash.Hash) func(int) hash.Hash { return func(int) hash.Hash { return f() } }

// digestKinds are the algorithms of cksum by their names, without those that are no digests.
var digestKinds = map[string]digestKind{
	"md5":    {"MD5", 128, always(md5.New)},
	"sha1":   {"SHA1", 160, always(sha1.New)},
	"sha224": {"SHA224", 224, always(sha256.New224)},
	"sha256": {"SHA256", 256, always(sha256.New)},
	"sha384": {"SHA384", 384, always(sha512.New384)},
	"sha512": {"SHA512", 512, always(sha512.New)},
	"sm3":    {"SM3", 256, always(newSM3)},
	"blake2b": {"BLAKE2b", 512, func(bits int) hash.Hash {
		h, err := blake2b.New(bits/8, nil)
		if err != nil {
			panic("a digest of " + strconv.Itoa(bits) + " bits was asked for")
		}
		return h
	}},
}

// algorithms are those of cksum in the order in which it lists them.
var algorithms = []string{"bsd", "sysv", "crc", "crc32b", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3"}

// summer is a command that prints or checks digests and checksums.
type summer struct {
	p     *program.Process
	cksum bool   // it is cksum, whose algorithm is an option
	kind  string // of algorithms
	named bool   // the algorithm was named
	bits  int

	tag, base64, raw, zero, debug bool
	mark                          string // before names that have no tag
}

// sums returns the command of one algorithm.
func sums(kind string) program.Func {
	return func(p *program.Process) int {
		s := &summer{p: p, kind: kind, mark: " "}
		return s.run("bctwz", "binary b", "text t", "tag")
	}
}

// b2sum is the command of blake2b.
func b2sum(p *program.Process) int {
	s := &summer{p: p, kind: "blake2b", mark: " "}
	return s.run("bctwzl:", "binary b", "text t", "tag", "length l")
}

// cksum is the command of all algorithms.
func cksum(p *program.Process) int {
	s := &summer{p: p, kind: "crc", cksum: true, tag: true, mark: " "}
	return s.run("a:bctwzl:", "algorithm a", "binary b", "text t", "tag", "untagged", "length l", "base64", "raw", "debug")
}

// sum is the command of the oldest checksums.
func sum(p *program.Process) int {
	opts, files := p.Options(1, "rs", "sysv s")
	s := &summer{p: p, kind: "bsd"}
	for _, o := range opts {
		s.kind = map[string]string{"r": "bsd", "s": "sysv"}[o.Name]
	}
	return s.print(files)
}

func (s *summer) run(short string, long ...string) int {
	p := s.p
	opts, files := p.Options(1, short, append(long, "check c", "zero z", "ignore-missing", "quiet", "status", "strict", "warn w")...)
	check, text, tagged, length := false, false, false, ""
	c := checker{summer: s}
	only := "" // the last option that is for checking
	for _, o := range opts {
		switch o.Name {
		case "a":
			s.named = true
			s.kind = s.algorithm(o.Value)
		case "b":
			s.mark = "*"
		case "t":
			text, s.mark = true, " "
		case "l":
			length = o.Value
		case "c":
			check = true
		case "tag":
			s.tag, tagged = true, true
		case "untagged":
			s.tag, tagged = false, false
		case "base64":
			s.base64 = true
		case "raw":
			s.raw = true
		case "debug":
			s.debug = true
		case "z":
			s.zero = true
		case "ignore-missing":
			c.ignore, only = true, o.Name
		case "quiet":
			c.quiet, c.silent, c.warn, only = true, false, false, o.Name
		case "status":
			c.silent, c.quiet, c.warn, only = true, false, false, o.Name
		case "strict":
			c.strict, only = true, o.Name
		case "w":
			c.warn, c.silent, c.quiet, only = true, false, false, "warn"
		}
	}
	if s.setLength(length); p.Stdout == nil && !check {
		p.Errorf("standard output: %s", vfs.EBADF.Error())
		return 1
	}
	if !s.agree(check, tagged, text, only, files) {
		return 1
	}
	if !check {
		return s.print(files)
	}
	code := 0
	for _, file := range gnu.OrStdin(files) {
		if !c.check(file) {
			code = 1
		}
	}
	return code
}

// agree reports whether the options fit together. It writes an error where they do not, and ends the program for wrong usage.
func (s *summer) agree(check, tagged, text bool, only string, files []string) bool {
	_, digests := digestKinds[s.kind]
	switch {
	case check && s.named && !digests:
		s.p.Errorf("--check is not supported with --algorithm={bsd,sysv,crc,crc32b}")
		return false
	case s.base64 && s.raw:
		gnu.FailUsage(s.p, 1, "the --base64 and --raw options are mutually exclusive")
	case tagged && text && !s.cksum:
		gnu.FailUsage(s.p, 1, "--tag does not support --text mode")
	case s.zero && check:
		gnu.FailUsage(s.p, 1, "the --zero option is not supported when verifying checksums")
	case check && tagged:
		gnu.FailUsage(s.p, 1, "the --tag option is meaningless when verifying checksums")
	case check && s.mark == "*":
		gnu.FailUsage(s.p, 1, "the --binary and --text options are meaningless when verifying checksums")
	case check && text:
		gnu.FailUsage(s.p, 1, "the --binary and --text options are meaningless when verifying checksums")
	case only != "" && !check:
		gnu.FailUsage(s.p, 1, "the --%s option is meaningful only when verifying checksums", only)
	case s.raw && len(files) > 1:
		s.p.Errorf("the --raw option is not supported with multiple files")
		return false
	}
	return true
}

// algorithm returns the one of a name, or ends the program.
func (s *summer) algorithm(name string) string {
	if !slices.Contains(algorithms, name) {
		gnu.FailUsage(s.p, 1, "invalid argument ‘%s’ for ‘--algorithm’\nValid arguments are:\n  - ‘%s’", name,
			strings.Join(algorithms, "’\n  - ‘"))
	}
	return name
}

// setLength says how many bits a digest has.
func (s *summer) setLength(length string) {
	p := s.p
	s.bits = digestKinds[s.kind].bits
	if length == "" {
		return
	}
	n, err := strconv.ParseUint(length, 10, 32)
	if err != nil {
		p.Errorf("invalid length: ‘%s’", length)
		p.Exit(1)
	}
	switch {
	case n > 0 && s.kind != "blake2b":
		p.Errorf("--length is only supported with --algorithm=blake2b")
		p.Exit(1)
	case n > 512:
		p.Errorf("invalid length: ‘%s’", length)
		p.Errorf("maximum digest length for ‘BLAKE2b’ is 512 bits")
		p.Exit(1)
	case n%8 != 0:
		p.Errorf("invalid length: ‘%s’", length)
		p.Errorf("length is not a multiple of 8")
		p.Exit(1)
	case n > 0:
		s.bits = int(n)
	}
}

// print prints the digests or checksums of files.
func (s *summer) print(files []string) int {
	p := s.p
	kind, isDigest := digestKinds[s.kind]
	if s.debug && s.kind == "crc" {
		p.Errorf("using generic hardware support")
	}
	code := 0
	for _, file := range gnu.OrStdin(files) {
		if !isDigest {
			if !s.checksum(file, len(files) > 0) {
				code = 1
			}
			continue
		}
		sum, ok := digest(p, file, kind.make(s.bits))
		if !ok {
			code = 1
			continue
		}
		s.line(file, sum)
	}
	return code
}

// line prints one digest.
func (s *summer) line(file string, sum []byte) {
	out := s.p.Out()
	if s.raw {
		_, _ = out.Write(sum)
		return
	}
	end := "\n"
	shown, escape := file, ""
	if s.zero {
		end = "\x00"
	} else if strings.ContainsAny(file, "\\\n\r") {
		shown, escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`).Replace(file), `\`
	}
	text := hex.EncodeToString(sum)
	if s.base64 {
		text = base64.StdEncoding.EncodeToString(sum)
	}
	if s.tag {
		kind := digestKinds[s.kind]
		name := kind.tag
		if s.bits != kind.bits {
			name += "-" + strconv.Itoa(s.bits)
		}
		out.WriteString(escape + name + " (" + shown + ") = " + text + end)
		return
	}
	out.WriteString(escape + text + " " + s.mark + shown + end)
}

// open opens a file to be summed, and tells what fails.
func open(p *program.Process, name string) (*program.Input, *vfs.Handle) {
	if name == "-" {
		return p.Reader(p.Stdin), nil
	}
	file, err := p.Open(name, vfs.Read)
	if err != nil {
		p.Errorf("%s: %s", gnu.QuoteIfNeeded(name), program.Message(err))
		return nil, nil
	}
	return p.Reader(file), file
}

// digest hashes a file and reports a failure.
func digest(p *program.Process, name string, h hash.Hash) ([]byte, bool) {
	in, file := open(p, name)
	if in == nil {
		return nil, false
	}
	if file != nil {
		defer func() { _ = p.Close(file) }()
	}
	for chunk := in.Chunk(); chunk != nil; chunk = in.Chunk() {
		p.Charge(gasPerHashedByte * len(chunk))
		_, _ = h.Write(chunk)
	}
	if !gnu.EndedWell(p, name, in) {
		return nil, false
	}
	return h.Sum(nil), true
}

// crcTable is that of POSIX's cksum.
func crcTable() *[256]uint32 {
	var t [256]uint32
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			if c&0x80000000 != 0 {
				c = c<<1 ^ 0x04c11db7
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return &t
}

// checksum prints one of the checksums that are no digests.
func (s *summer) checksum(name string, named bool) bool {
	p := s.p
	in, file := open(p, name)
	if in == nil {
		return false
	}
	if file != nil {
		defer func() { _ = p.Close(file) }()
	}
	p.Charge(2000)
	t := crcTable()
	crc, n := uint32(0), uint64(0)
	for b := in.Chunk(); b != nil; b = in.Chunk() {
		p.Charge(len(b) * 2)
		n += uint64(len(b))
		switch s.kind {
		case "crc":
			for _, c := range b {
				crc = crc<<8 ^ t[byte(crc>>24)^c]
			}
		case "crc32b":
			crc = crc32.Update(crc, crc32.IEEETable, b)
		case "bsd":
			for _, c := range b {
				crc = (crc>>1 + (crc&1)<<15 + uint32(c)) & 0xffff
			}
		default:
			for _, c := range b {
				crc += uint32(c)
			}
		}
	}
	if !gnu.EndedWell(p, name, in) {
		return false
	}
	out := p.Out()
	raw := 4
	text := ""
	switch s.kind {
	case "crc":
		for m := n; m > 0; m >>= 8 {
			crc = crc<<8 ^ t[byte(crc>>24)^byte(m)]
		}
		crc = ^crc
		text = strconv.FormatUint(uint64(crc), 10) + " " + strconv.FormatUint(n, 10)
	case "crc32b":
		text = strconv.FormatUint(uint64(crc), 10) + " " + strconv.FormatUint(n, 10)
	case "bsd":
		raw = 2
		blocks := strconv.FormatUint((n+1023)/1024, 10)
		digits := strconv.FormatUint(uint64(crc), 10)
		text = strings.Repeat("0", 5-len(digits)) + digits + " " + strings.Repeat(" ", max(5-len(blocks), 0)) + blocks
	default:
		raw = 2
		crc = crc&0xffff + crc>>16
		crc = crc&0xffff + crc>>16
		text = strconv.FormatUint(uint64(crc), 10) + " " + strconv.FormatUint((n+511)/512, 10)
	}
	if s.raw {
		_, _ = out.Write(binary.BigEndian.AppendUint32(nil, crc)[4-raw:])
		return true
	}
	end := "\n"
	if s.zero {
		end = "\x00"
	}
	if named {
		text += " " + name
	}
	out.WriteString(text + end)
	return true
}
