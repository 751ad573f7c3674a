package tools

import (
	"bytes"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/driver/wasm/program"
	"agentbox/internal/driver/wasm/vfs"
)

// dd copies blocks.
func dd(p *program.Process) int {
	from, to := "", ""
	ibs, obs, blockCount, skip, seek := int64(512), int64(512), int64(-1), int64(0), int64(0)
	notrunc, appends, quiet, noxfer, upper, lower, swab, sync, excl, nocreat, bytesCount, bytesSkip, bytesSeek := false, false, false, false, false, false, false, false, false, false, false, false, false
	fail := func(format string, args ...any) int {
		p.Errorf(format, args...)
		return 1
	}
	number := func(s string) int64 {
		total := int64(1)
		for _, part := range strings.Split(s, "x") {
			n, err := size(part)
			if err != nil {
				p.Errorf("invalid number: %s", quote(s))
				p.Exit(1)
			}
			total *= n
		}
		return total
	}
	for _, a := range p.Args[1:] {
		k, v, ok := strings.Cut(a, "=")
		if !ok {
			if a == "--" {
				continue
			}
			p.Errorf("unrecognized operand %s", quote(a))
			p.Stderrf("Try 'dd --help' for more information.\n")
			return 1
		}
		switch k {
		case "if":
			from = v
		case "of":
			to = v
		case "bs":
			ibs = number(v)
			obs = ibs
		case "ibs":
			ibs = number(v)
		case "obs":
			obs = number(v)
		case "count":
			if s, ok := strings.CutSuffix(v, "B"); ok && strings.Trim(s, "0123456789") == "" {
				v, bytesCount = s, true
			}
			blockCount = number(v)
		case "skip", "iseek":
			skip = number(v)
		case "seek", "oseek":
			seek = number(v)
		case "status":
			quiet, noxfer = v == "none", v == "noxfer"
		case "conv":
			for _, c := range strings.Split(v, ",") {
				switch c {
				case "notrunc":
					notrunc = true
				case "ucase":
					upper = true
				case "lcase":
					lower = true
				case "swab":
					swab = true
				case "sync":
					sync = true
				case "excl":
					excl = true
				case "nocreat":
					nocreat = true
				case "noerror", "fsync", "fdatasync", "sparse":
				default:
					p.Lack(program.LackOption, "conv="+c)
					return fail("invalid conversion: %s", quote(c))
				}
			}
		case "iflag", "oflag":
			for _, f := range strings.Split(v, ",") {
				switch f {
				case "append":
					appends = true
				case "count_bytes":
					bytesCount = true
				case "skip_bytes":
					bytesSkip = true
				case "seek_bytes":
					bytesSeek = true
				}
			}
		default:
			p.Errorf("unrecognized operand %s", quote(a))
			p.Stderrf("Try 'dd --help' for more information.\n")
			return 1
		}
	}
	if ibs <= 0 || obs <= 0 || ibs > 64<<20 || obs > 64<<20 {
		return fail("invalid number: %s", quote("0"))
	}
	in, out := p.Stdin, p.Stdout
	if from != "" {
		var err error
		if in, err = p.Open(from, vfs.Read); err != nil {
			return fail("failed to open '%s': %s", from, program.Message(err))
		}
	}
	if to != "" {
		flags := vfs.Write | vfs.Create
		if nocreat {
			flags = vfs.Write
		}
		if excl {
			flags |= vfs.Exclusive
		}
		if !notrunc && seek == 0 && !appends {
			flags |= vfs.Truncate
		}
		if appends {
			flags |= vfs.Append
		}
		var err error
		if out, err = p.Open(to, flags); err != nil {
			return fail("failed to open '%s': %s", to, program.Message(err))
		}
		if seek > 0 {
			at := seek * obs
			if bytesSeek {
				at = seek
			}
			if !notrunc && out.Kind() == vfs.Regular {
				if err := out.Truncate(at); err != nil {
					return fail("failed to truncate to %d bytes in output file '%s': %s", at, to, program.Message(err))
				}
			}
			if _, err := out.Seek(at, io.SeekStart); err != nil {
				return fail("'%s': cannot seek: %s", to, program.Message(err))
			}
		}
	}
	if in == nil || out == nil {
		return fail("error reading 'standard input': %s", vfs.EBADF.Error())
	}
	p.Hold(int(ibs + obs))
	buf := make([]byte, ibs)
	left := skip * ibs
	if bytesSkip {
		left = skip
	}
	for left > 0 {
		n, err := in.Read(buf[:min(left, ibs)])
		left -= int64(n)
		if err != nil || n == 0 {
			break
		}
	}
	var fullIn, partIn, fullOut, partOut, copied int64
	var pending []byte
	code := 0
	write := func(b []byte) bool {
		n, err := out.Write(b)
		copied += int64(n)
		if err != nil {
			p.Charge(0)
			if errors.Is(err, vfs.EPIPE) {
				p.Kill(program.SIGPIPE)
			}
			name := to
			if name == "" {
				name = "standard output"
			}
			p.Errorf("error writing '%s': %s", name, program.Message(err))
			code = 1
			return false
		}
		if int64(len(b)) == obs {
			fullOut++
		} else {
			partOut++
		}
		return true
	}
	limit := blockCount
	for code == 0 && (blockCount < 0 || (!bytesCount && fullIn+partIn < blockCount) || bytesCount && limit > 0) {
		want := ibs
		if bytesCount && blockCount >= 0 {
			want = min(want, limit)
		}
		n, err := in.Read(buf[:want])
		if n == 0 {
			if err != nil && !ended(err) {
				p.Charge(0)
				name := from
				if name == "" {
					name = "standard input"
				}
				p.Errorf("error reading '%s': %s", name, program.Message(err))
				code = 1
			}
			break
		}
		limit -= int64(n)
		if int64(n) == ibs {
			fullIn++
		} else {
			partIn++
		}
		b := buf[:n]
		if sync && int64(n) < ibs {
			clear(buf[n:])
			b = buf
		}
		p.Charge(n / 8)
		switch {
		case upper:
			b = bytes.ToUpper(b)
		case lower:
			b = bytes.ToLower(b)
		}
		if swab {
			b = bytes.Clone(b)
			for i := 0; i+1 < len(b); i += 2 {
				b[i], b[i+1] = b[i+1], b[i]
			}
		}
		if ibs == obs {
			if !write(b) {
				break
			}
			continue
		}
		pending = append(pending, b...)
		for int64(len(pending)) >= obs {
			if !write(pending[:obs]) {
				break
			}
			pending = pending[obs:]
		}
	}
	if len(pending) > 0 && code == 0 {
		write(pending)
	}
	if !quiet {
		p.Stderrf("%d+%d records in\n%d+%d records out\n", fullIn, partIn, fullOut, partOut)
		if !noxfer {
			unit := "bytes"
			if copied == 1 {
				unit = "byte"
			}
			human := ""
			if copied >= 1000 {
				human = " (" + humanSize(copied, 1000, " ", "B")
				if copied >= 1024 {
					human += ", " + humanSize(copied, 1024, " ", "iB")
				}
				human += ")"
			}
			p.Stderrf("%d %s%s copied, 0.001 s, %s/s\n", copied, unit, human, humanSize(copied*1000, 1000, " ", "B"))
		}
	}
	return code
}

// humanSize writes a size with a unit, rounded as dd does.
func humanSize(n, factor int64, sep, unit string) string {
	v, i := float64(n), 0
	for v >= float64(factor) && i < len(unitLetters) {
		v /= float64(factor)
		i++
	}
	letter := ""
	if i > 0 {
		if letter = unitLetters[i-1 : i]; factor == 1000 && i == 1 {
			letter = "k"
		}
	} else {
		unit = "B"
	}
	if i == 0 || v >= 10 {
		return strconv.FormatFloat(v, 'f', 0, 64) + sep + letter + unit
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + sep + letter + unit
}

// truncate sets the sizes of files.
func truncate(p *program.Process) int {
	opts, operands := p.Options(1, "cor:s:", "no-create c", "io-blocks o", "reference= r", "size= s")
	spec, create, reference := "", true, ""
	for _, o := range opts {
		switch o.Name {
		case "c":
			create = false
		case "s":
			spec = strings.TrimSpace(o.Value)
		case "r":
			reference = o.Value
		}
	}
	try := func() int {
		p.Stderrf("Try 'truncate --help' for more information.\n")
		return 1
	}
	if spec == "" && reference == "" {
		p.Errorf("you must specify either ‘--size’ or ‘--reference’")
		return try()
	}
	if len(operands) == 0 {
		p.Errorf("missing file operand")
		return try()
	}
	mode := byte(0)
	n := int64(0)
	if reference != "" {
		i, err := p.FS.Stat(p.At(), reference, true)
		if err != nil {
			p.Errorf("cannot stat '%s': %s", reference, program.Message(err))
			return 1
		}
		n = i.Size
	}
	if spec != "" {
		digits := spec
		if strings.IndexByte("+-<>/%", spec[0]) >= 0 {
			mode, digits = spec[0], spec[1:]
		}
		v, err := size(digits)
		if err != nil || mode == '/' && v == 0 || mode == '%' && v == 0 {
			p.Errorf("Invalid number: %s", quote(spec))
			return 1
		}
		if reference != "" && mode != 0 {
			if mode == '-' {
				v = -v
			}
			n, mode = max(n+v, 0), 0
		} else {
			n = v
		}
	}
	code := 0
	for _, name := range operands {
		flags := vfs.Write
		if create {
			flags |= vfs.Create
		}
		h, err := p.Open(name, flags)
		if err != nil {
			if !create && errors.Is(err, vfs.ENOENT) {
				continue
			}
			p.Errorf("cannot open '%s' for writing: %s", name, program.Message(err))
			code = 1
			continue
		}
		old := h.Info().Size
		to := n
		switch mode {
		case '+':
			to = old + n
		case '-':
			to = max(old-n, 0)
		case '<':
			to = min(old, n)
		case '>':
			to = max(old, n)
		case '/':
			to = old / n * n
		case '%':
			to = (old + n - 1) / n * n
		}
		if err := h.Truncate(to); err != nil {
			p.Charge(0)
			p.Errorf("failed to truncate '%s' at %d bytes: %s", name, to, program.Message(err))
			code = 1
		}
		_ = p.Close(h)
	}
	return code
}

// install copies files and sets their modes.
func install(p *program.Process) int {
	opts, operands := p.Options(1, "bcCdDg:m:o:pst:TvS:", "directory d", "mode= m", "preserve-timestamps p", "target-directory= t", "no-target-directory T", "verbose v",
		"group= g", "owner= o", "compare C", "strip s")
	dirs, parents, mode, keep, verbose, target, noTarget := false, false, "755", false, false, "", false
	for _, o := range opts {
		switch o.Name {
		case "d":
			dirs = true
		case "D":
			parents = true
		case "m":
			mode = o.Value
		case "p":
			keep = true
		case "v":
			verbose = true
		case "t":
			target = o.Value
		case "T":
			noTarget = true
		}
	}
	bits, ok := program.Mode(mode, 0, 0, false)
	if !ok {
		p.Errorf("invalid mode %s", quote(mode))
		return 1
	}
	out := p.Out()
	at := p.At()
	makeDirs := func(path string, perm uint32) error {
		for i := range path + "/" {
			if (path + "/")[i] != '/' || i == 0 {
				continue
			}
			err := p.FS.Mkdir(at, path[:i], 0o755)
			if err == nil && verbose {
				out.Printf("install: creating directory '%s'\n", path[:i])
			}
			if err != nil && !errors.Is(err, vfs.EEXIST) {
				return err
			}
		}
		return p.FS.Chmod(at, path, perm, true)
	}
	code := 0
	if dirs {
		for _, d := range operands {
			if err := makeDirs(strings.TrimRight(d, "/"), bits); err != nil {
				p.Errorf("cannot create directory '%s': %s", d, program.Message(err))
				code = 1
			}
		}
		return code
	}
	isDir := false
	if target == "" {
		if len(operands) < 2 {
			if len(operands) == 0 {
				p.Errorf("missing file operand")
			} else {
				p.Errorf("missing destination file operand after '%s'", operands[0])
			}
			p.Stderrf("Try 'install --help' for more information.\n")
			return 1
		}
		target = operands[len(operands)-1]
		operands = operands[:len(operands)-1]
		i, err := p.FS.Stat(at, target, true)
		isDir = err == nil && i.IsDir() && !noTarget
		if !isDir && len(operands) > 1 {
			p.Errorf("target '%s' is not a directory", target)
			return 1
		}
		if parents && !isDir {
			if i := strings.LastIndexByte(target, '/'); i > 0 {
				if err := makeDirs(target[:i], 0o755); err != nil {
					p.Errorf("cannot create directory '%s': %s", target[:i], program.Message(err))
					return 1
				}
			}
		}
	} else {
		isDir = true
		if parents {
			if err := makeDirs(target, 0o755); err != nil {
				p.Errorf("cannot create directory '%s': %s", target, program.Message(err))
				return 1
			}
		}
	}
	for _, name := range operands {
		to := target
		if isDir {
			to = join(target, base(name))
		}
		in, done, err := input(p, name)
		if err != nil {
			p.Errorf("cannot stat '%s': %s", name, program.Message(err))
			code = 1
			continue
		}
		info, _ := p.FS.Stat(at, name, true)
		if info.IsDir() {
			p.Errorf("omitting directory '%s'", name)
			code = 1
			done()
			continue
		}
		_ = p.FS.Unlink(at, to)
		h, w, err := create(p, to)
		if err != nil {
			p.Errorf("cannot create regular file '%s': %s", to, program.Message(err))
			code = 1
			done()
			continue
		}
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			_, _ = w.Write(b)
		}
		w.Flush()
		_ = h.Node().Chmod(bits)
		if keep {
			_ = h.Node().Utimes(info.Accessed, info.Modified)
		}
		if verbose {
			out.Printf("'%s' -> '%s'\n", name, to)
		}
		_ = p.Close(h)
		done()
	}
	return code
}

// usage is a du that runs.
type usage struct {
	p                             *program.Process
	human, si, all, sum, apparent bool
	total                         bool
	depth                         int
	block                         int64
	exclude                       []string
	seen                          map[*vfs.Node]bool
	threshold                     int64
}

func du(p *program.Process) int {
	u := &usage{p: p, depth: 1 << 30, block: 1024, seen: map[*vfs.Node]bool{}}
	opts, operands := p.Options(1, "0abB:cd:DhHkLlmPsSt:xX:", "all a", "apparent-size", "bytes b", "block-size= B", "total c", "max-depth= d", "human-readable h", "si", "summarize s",
		"exclude=", "separate-dirs S", "dereference L", "one-file-system x", "threshold= t", "null 0")
	for _, o := range opts {
		switch o.Name {
		case "a":
			u.all = true
		case "apparent-size":
			u.apparent = true
		case "b":
			u.apparent, u.block = true, 1
		case "B":
			n, err := size(o.Value)
			if err != nil {
				if n, err = size("1" + o.Value); err != nil {
					p.Errorf("invalid -B argument '%s'", o.Value)
					return 1
				}
			}
			u.block = max(n, 1)
		case "c":
			u.total = true
		case "d":
			u.depth = count(p, 1, o.Value, "invalid maximum depth")
		case "h":
			u.human = true
		case "si", "H":
			u.human, u.si = true, true
		case "k":
			u.block = 1024
		case "m":
			u.block = 1 << 20
		case "s":
			u.sum, u.depth = true, 0
		case "exclude":
			u.exclude = append(u.exclude, o.Value)
		case "t":
			u.threshold, _ = size(o.Value)
		}
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	code, total := 0, int64(0)
	for _, name := range operands {
		node, err := p.FS.Lookup(p.At(), name, false)
		if err != nil {
			p.Charge(0)
			p.Errorf("cannot access '%s': %s", name, program.Message(err))
			code = 1
			continue
		}
		total += u.visit(name, node, 0)
	}
	if u.total {
		u.show(total, "total")
	}
	return code
}

func (u *usage) visit(path string, node *vfs.Node, depth int) int64 {
	u.p.Charge(100)
	for _, x := range u.exclude {
		if glob(x, base(path), false) || glob(x, path, false) {
			return 0
		}
	}
	i := node.Info()
	if i.Links > 1 && i.Kind == vfs.Regular {
		if u.seen[node] {
			return 0
		}
		u.seen[node] = true
	}
	n := blocks(i) * 512
	if u.apparent {
		n = i.Size
	}
	if i.Kind == vfs.Directory && depth < vfs.MaxDepth {
		entries, err := node.List()
		if err != nil {
			u.p.Charge(0)
			u.p.Errorf("cannot read directory '%s': %s", path, program.Message(err))
		}
		for _, e := range entries {
			n += u.visit(join(path, e.Name), e.Node, depth+1)
		}
	}
	if (i.Kind == vfs.Directory && depth <= u.depth) || depth == 0 || u.all && depth <= u.depth {
		if n >= u.threshold {
			u.show(n, path)
		}
	}
	return n
}

func (u *usage) show(n int64, path string) {
	u.p.Out().WriteString(sized(n, u.block, u.human, u.si) + "\t" + path + "\n")
}

// sized writes a size in blocks, or with a unit, rounded up.
func sized(n, block int64, human, si bool) string {
	if !human {
		return strconv.FormatInt((n+block-1)/block, 10)
	}
	factor := int64(1024)
	if si {
		factor = 1000
	}
	v, i, rest := n, 0, false
	tenths := n * 10
	for v >= factor && i < len(unitLetters) {
		rest = rest || tenths%factor != 0
		tenths /= factor
		v /= factor
		i++
	}
	if i == 0 {
		return strconv.FormatInt(n, 10)
	}
	if rest {
		tenths++
	}
	letter := unitLetters[i-1 : i]
	if si && i == 1 {
		letter = "k"
	}
	if tenths < 100 {
		return fmt.Sprintf("%d.%d%s", tenths/10, tenths%10, letter)
	}
	return strconv.FormatInt((tenths+9)/10, 10) + letter
}

// df tells how much room there is, as far as the execution knows.
func df(p *program.Process) int {
	opts, operands := p.Options(1, "aB:hHikPTt:x:l", "human-readable h", "si H", "block-size= B", "portability P", "print-type T", "inodes i", "output=?", "total", "all a")
	human, si, block := false, false, int64(1024)
	for _, o := range opts {
		switch o.Name {
		case "h":
			human = true
		case "H":
			human, si = true, true
		case "B":
			if n, err := size(o.Value); err == nil && n > 0 {
				block = n
			}
		case "i", "output", "T":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here", o.Name)
			return 1
		}
	}
	out := p.Out()
	if human {
		out.WriteString("Filesystem      Size  Used Avail Use% Mounted on\n")
	} else {
		out.WriteString("Filesystem     1K-blocks      Used Available Use% Mounted on\n")
	}
	room := p.Account.Limits().MemoryBytes
	free := max(p.Account.Spare(), 0)
	if len(operands) == 0 {
		operands = []string{"/"}
	}
	for _, name := range operands {
		if _, err := p.FS.Stat(p.At(), name, true); err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			return 1
		}
		used := int64(0)
		if room > 0 {
			used = (room - free) * 100 / room
		}
		if human {
			out.Printf("%-14s %5s %5s %5s %3d%% %s\n", "space", sized(room, block, true, si), sized(room-free, block, true, si), sized(free, block, true, si), used, "/")
		} else {
			out.Printf("%-14s %9s %9s %9s %3d%% %s\n", "space", sized(room, block, false, si), sized(room-free, block, false, si), sized(free, block, false, si), used, "/")
		}
	}
	return 0
}

// fileCommand tells what files hold, by their first bytes.
func fileCommand(p *program.Process) int {
	opts, operands := p.Options(1, "bikLhf:F:m:z0s", "brief b", "mime i", "mime-type", "mime-encoding", "dereference L", "no-dereference h", "separator= F", "extension")
	brief, mime, kindOnly, encodingOnly, follow, sep := false, false, false, false, false, ":"
	for _, o := range opts {
		switch o.Name {
		case "b":
			brief = true
		case "i":
			mime = true
		case "mime-type":
			mime, kindOnly = true, true
		case "mime-encoding":
			mime, encodingOnly = true, true
		case "L":
			follow = true
		case "F":
			sep = o.Value
		}
	}
	if len(operands) == 0 {
		p.Stderrf("Usage: file [-bchiklLNnprsvzZ0] [file ...]\n")
		return 1
	}
	longest := 0
	for _, name := range operands {
		longest = max(longest, utf8.RuneCountInString(name))
	}
	out := p.Out()
	for _, name := range operands {
		if !brief {
			out.WriteString(name + sep + " " + strings.Repeat(" ", longest-utf8.RuneCountInString(name)))
		}
		text, kind, encoding := describe(p, name, follow)
		switch {
		case encodingOnly:
			text = encoding
		case kindOnly:
			text = kind
		case mime:
			text = kind + "; charset=" + encoding
		}
		out.WriteString(text + "\n")
	}
	return 0
}

// magics are the files that their first bytes tell.
var magics = []struct{ at, magic, text, kind string }{
	{"", "\x89PNG\r\n\x1a\n", "PNG image data", "image/png"}, {"", "\xff\xd8\xff", "JPEG image data", "image/jpeg"}, {"", "GIF87a", "GIF image data, version 87a,", "image/gif"},
	{"", "GIF89a", "GIF image data, version 89a,", "image/gif"}, {"", "%PDF-", "PDF document", "application/pdf"}, {"", "PK\x03\x04", "Zip archive data, at least v2.0 to extract, compression method=deflate", "application/zip"},
	{"", "PK\x05\x06", "Zip archive data (empty)", "application/zip"}, {"", "\x1f\x8b", "gzip compressed data", "application/gzip"}, {"", "BZh", "bzip2 compressed data", "application/x-bzip2"},
	{"", "\xfd7zXZ\x00", "XZ compressed data", "application/x-xz"}, {"", "\x28\xb5\x2f\xfd", "Zstandard compressed data", "application/zstd"}, {"", "\x7fELF", "ELF", "application/x-executable"},
	{"", "\x00asm", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"}, {"", "SQLite format 3\x00", "SQLite 3.x database", "application/vnd.sqlite3"},
	{"", "RIFF", "RIFF (little-endian) data", "application/octet-stream"}, {"", "OggS", "Ogg data", "application/ogg"}, {"", "ID3", "Audio file with ID3 version 2", "audio/mpeg"},
	{"", "7z\xbc\xaf\x27\x1c", "7-zip archive data", "application/x-7z-compressed"}, {"", "Rar!\x1a\x07", "RAR archive data", "application/x-rar"}, {"", "\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"},
	{"", "!<arch>\n", "current ar archive", "application/x-archive"}, {"", "wOFF", "Web Open Font Format", "font/woff"}, {"", "wOF2", "Web Open Font Format (Version 2)", "font/woff2"},
}

func describe(p *program.Process, name string, follow bool) (text, kind, encoding string) {
	if name == "-" || name == "/dev/stdin" {
		in := p.Reader(p.Stdin)
		buf := make([]byte, 64<<10)
		n, _ := io.ReadFull(in, buf)
		return contents(p, buf[:n], true)
	}
	info, err := p.FS.Stat(p.At(), name, follow)
	if err != nil {
		p.Charge(0)
		text = fmt.Sprintf("cannot open `%s' (%s)", name, program.Message(err))
		return text, text, "binary"
	}
	switch info.Kind {
	case vfs.Directory:
		return "directory", "inode/directory", "binary"
	case vfs.Symlink:
		target, _ := p.FS.Readlink(p.At(), name)
		if _, err := p.FS.Stat(p.At(), name, true); err != nil {
			return "broken symbolic link to " + target, "inode/symlink", "binary"
		}
		return "symbolic link to " + target, "inode/symlink", "binary"
	case vfs.Device:
		return "character special", "inode/chardevice", "binary"
	}
	h, err := p.Open(name, vfs.Read)
	if err != nil {
		text = "regular file, no read permission"
		return text, text, "binary"
	}
	defer func() { _ = p.Close(h) }()
	buf := make([]byte, 64<<10)
	n, _ := io.ReadFull(h, buf)
	return contents(p, buf[:n], info.Size > int64(n))
}

// contents tells what bytes are; more says that there are others behind them.
func contents(p *program.Process, b []byte, more bool) (text, kind, encoding string) {
	n := len(b)
	p.Charge(n)
	if n == 0 {
		return "empty", "inode/x-empty", "binary"
	}
	for _, m := range magics {
		if bytes.HasPrefix(b, []byte(m.magic)) {
			return m.text, m.kind, "binary"
		}
	}
	if n > 262 && string(b[257:262]) == "ustar" {
		return "POSIX tar archive (GNU)", "application/x-tar", "binary"
	}
	return describeText(b, more)
}

func describeText(b []byte, cut bool) (text, kind, encoding string) {
	ascii, control := true, false
	for _, c := range b {
		if c >= 0x80 {
			ascii = false
		}
		if c < ' ' && strings.IndexByte("\t\n\r\f\b\x1b\a\v", c) < 0 || c == 0x7f {
			control = true
		}
	}
	valid := utf8.Valid(b)
	for k := 1; !valid && cut && k < 4 && k < len(b); k++ {
		valid = utf8.Valid(b[:len(b)-k])
	}
	if control || !ascii && !valid {
		if !control && !bytes.ContainsFunc(b, func(r rune) bool { return r == utf8.RuneError && false }) && !latinControls(b) {
			return "ISO-8859 text" + endings(b), "text/plain", "iso-8859-1"
		}
		return "data", "application/octet-stream", "binary"
	}
	name, encoding := "ASCII text", "us-ascii"
	word := "ASCII"
	if !ascii {
		name, encoding, word = "Unicode text, UTF-8 text", "utf-8", "Unicode text, UTF-8"
	}
	if bytes.HasPrefix(b, []byte("\xef\xbb\xbf")) {
		name, word = "Unicode text, UTF-8 (with BOM) text", "Unicode text, UTF-8 (with BOM)"
	}
	kind = "text/plain"
	trimmed := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case bytes.HasPrefix(b, []byte("#!")):
		line, _, _ := strings.Cut(string(b[2:]), "\n")
		line = strings.TrimSpace(line)
		what, kinds := line+" script", "text/plain"
		fields := strings.Fields(line)
		if len(fields) > 0 {
			prog := base(fields[0])
			if prog == "env" && len(fields) > 1 {
				prog = fields[1]
			}
			switch {
			case prog == "bash":
				what, kinds = "Bourne-Again shell script", "text/x-shellscript"
			case prog == "sh" || prog == "dash":
				what, kinds = "POSIX shell script", "text/x-shellscript"
			case strings.HasPrefix(prog, "python"):
				what, kinds = "Python script", "text/x-script.python"
			case prog == "perl":
				what, kinds = "Perl script text executable", "text/x-perl"
				return what, kinds, encoding
			case prog == "node":
				what, kinds = "Node.js script", "application/javascript"
			case prog == "awk":
				what, kinds = "awk script", "text/x-awk"
			}
		}
		return what + ", " + word + " text executable" + endings(b), kinds, encoding
	case bytes.HasPrefix(trimmed, []byte("<?xml")):
		return "XML 1.0 document, " + name + endings(b), "text/xml", encoding
	case hasPrefixFold(trimmed, "<!doctype html"), hasPrefixFold(trimmed, "<html"), hasPrefixFold(trimmed, "<head"):
		return "HTML document, " + name + endings(b), "text/html", encoding
	case len(trimmed) > 0 && (trimmed[0] == '{' || trimmed[0] == '[') && json.Valid(b):
		return "JSON text data", "application/json", encoding
	}
	return name + endings(b), kind, encoding
}

func latinControls(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 && c < 0xa0 {
			return true
		}
	}
	return false
}

func hasPrefixFold(b []byte, s string) bool {
	return len(b) >= len(s) && strings.EqualFold(string(b[:len(s)]), s)
}

// endings tells what is odd about the lines.
func endings(b []byte) string {
	s := ""
	longest := 0
	for _, line := range bytes.Split(b, []byte("\n")) {
		longest = max(longest, len(line))
	}
	if longest > 300 {
		s = fmt.Sprintf(", with very long lines (%d)", longest)
	}
	crlf := bytes.Count(b, []byte("\r\n"))
	lf := bytes.Count(b, []byte("\n")) - crlf
	cr := bytes.Count(b, []byte("\r")) - crlf
	var kinds []string
	if crlf > 0 {
		kinds = append(kinds, "CRLF")
	}
	if cr > 0 {
		kinds = append(kinds, "CR")
	}
	if lf > 0 {
		kinds = append(kinds, "LF")
	}
	switch {
	case len(kinds) == 0:
		s += ", with no line terminators"
	case len(kinds) > 1 || kinds[0] != "LF":
		s += ", with " + strings.Join(kinds, ", ") + " line terminators"
	}
	if bytes.IndexByte(b, 0x1b) >= 0 {
		s += ", with escape sequences"
	}
	if bytes.IndexByte(b, '\b') >= 0 {
		s += ", with overstriking"
	}
	return s
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

// cksum and sum write checksums of files.
func cksum(p *program.Process) int {
	opts, operands := p.Options(1, "a:rs", "algorithm= a", "sysv s")
	kind := "crc"
	if base(p.Name()) == "sum" {
		kind = "bsd"
	}
	for _, o := range opts {
		switch o.Name {
		case "a":
			kind = o.Value
		case "s":
			kind = "sysv"
		case "r":
			kind = "bsd"
		}
	}
	if kind != "crc" && kind != "bsd" && kind != "sysv" {
		p.Lack(program.LackOption, "-a "+kind)
		p.Errorf("the algorithm %s is not supported here: use %ssum", kind, kind)
		return 1
	}
	t := crcTable()
	out := p.Out()
	named := len(operands) > 0
	return each(p, operands, func(name string, in *program.Input) {
		crc, n := uint32(0), uint64(0)
		for b := in.Chunk(); b != nil; b = in.Chunk() {
			p.Charge(len(b) * 2)
			n += uint64(len(b))
			switch kind {
			case "crc":
				for _, c := range b {
					crc = crc<<8 ^ t[byte(crc>>24)^c]
				}
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
		switch kind {
		case "crc":
			for m := n; m > 0; m >>= 8 {
				crc = crc<<8 ^ t[byte(crc>>24)^byte(m)]
			}
			out.Printf("%d %d", ^crc, n)
		case "bsd":
			out.Printf("%05d %5d", crc, (n+1023)/1024)
		default:
			r := crc&0xffff + crc>>16
			r = r&0xffff + r>>16
			out.Printf("%d %d", r, (n+511)/512)
		}
		if named {
			out.WriteString(" " + name)
		}
		out.WriteString("\n")
	})
}

// base32Command encodes and decodes.
func base32Command(p *program.Process) int {
	opts, operands := p.Options(1, "diw:", "decode d", "ignore-garbage i", "wrap= w")
	decode, garbage, wrap := false, false, 76
	for _, o := range opts {
		switch o.Name {
		case "d":
			decode = true
		case "i":
			garbage = true
		case "w":
			wrap = count(p, 1, o.Value, "invalid wrap size")
		}
	}
	if len(operands) > 1 {
		p.Errorf("extra operand %s", quote(operands[1]))
		return 1
	}
	name := "-"
	if len(operands) == 1 {
		name = operands[0]
	}
	data, err := whole(p, name)
	if err != nil {
		p.Errorf("%s: %s", name, program.Message(err))
		return 1
	}
	p.Charge(len(data) * 4)
	p.Hold(len(data) * 2)
	out := p.Out()
	if decode {
		clean := bytes.Map(func(r rune) rune {
			if r == '\n' || garbage && !(r >= 'A' && r <= 'Z' || r >= '2' && r <= '7' || r == '=') {
				return -1
			}
			return r
		}, data)
		b := make([]byte, base32.StdEncoding.DecodedLen(len(clean)))
		n, err := base32.StdEncoding.Decode(b, clean)
		_, _ = out.Write(b[:n])
		if err != nil {
			p.Errorf("invalid input")
			return 1
		}
		return 0
	}
	s := base32.StdEncoding.EncodeToString(data)
	for wrap > 0 && len(s) > wrap {
		out.WriteString(s[:wrap] + "\n")
		s = s[wrap:]
	}
	if s != "" {
		out.WriteString(s)
		if wrap > 0 {
			out.WriteString("\n")
		}
	}
	return 0
}

// runs starts the program that its operands name, which is all that nice, nohup, setsid, stdbuf and ionice have to do here.
func runs(p *program.Process) int {
	short := map[string]string{"nice": "+n:", "nohup": "+", "setsid": "+cfw", "stdbuf": "+i:o:e:", "ionice": "+c:n:p:t"}[base(p.Name())]
	_, operands := p.Options(125, short, "adjustment= n", "input= i", "output= o", "error= e", "wait w", "fork f")
	if len(operands) == 0 {
		if base(p.Name()) == "nice" {
			p.Out().WriteString("0\n")
			return 0
		}
		p.Errorf("missing operand")
		p.Stderrf("Try '%s --help' for more information.\n", p.Name())
		return 125
	}
	s, err := p.Execute(p.Child(operands...))
	if err != nil {
		p.Errorf("failed to run command '%s': %s", operands[0], program.Message(err))
		if errors.Is(err, vfs.ENOENT) {
			return 127
		}
		return 126
	}
	return s.Exit()
}

// refuses is for what makes no sense in an execution of its own.
func refuses(why string) program.Func {
	return func(p *program.Process) int {
		p.Lack(program.LackFeature, why)
		p.Errorf("%s", why)
		return 1
	}
}

// tty tells that there is no terminal.
func tty(p *program.Process) int {
	opts, _ := p.Options(2, "s", "silent s", "quiet s")
	if len(opts) == 0 {
		p.Out().WriteString("not a tty\n")
	}
	return 1
}
