package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// fileCommand tells what files hold, by their first bytes.
func fileCommand(p *program.Process) int {
	opts, operands := p.Options(1, "bikLhf:F:m:z0s", "brief b", "mime i", "mime-type", "mime-encoding", "dereference L", "no-dereference h",
		"separator= F", "extension")
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
	{"", "\x89PNG\r\n\x1a\n", "PNG image data", "image/png"}, {"", "\xff\xd8\xff", "JPEG image data", "image/jpeg"}, {"", "GIF87a",
		"GIF image data, version 87a,", "image/gif"},
	{"", "GIF89a", "GIF image data, version 89a,", "image/gif"}, {"", "%PDF-", "PDF document", "application/pdf"}, {"", "PK\x03\x04",
		"Zip archive data, at least v2.0 to extract, compression method=deflate", "application/zip"},
	{"", "PK\x05\x06", "Zip archive data (empty)", "application/zip"}, {"", "\x1f\x8b", "gzip compressed data", "application/gzip"},
	{"", "BZh", "bzip2 compressed data", "application/x-bzip2"},
	{"", "\xfd7zXZ\x00", "XZ compressed data", "application/x-xz"}, {"", "\x28\xb5\x2f\xfd", "Zstandard compressed data", "application/zstd"},
	{"", "\x7fELF", "ELF", "application/x-executable"},
	{"", "\x00asm", "WebAssembly (wasm) binary module version 0x1 (MVP)", "application/wasm"}, {"", "SQLite format 3\x00",
		"SQLite 3.x database", "application/vnd.sqlite3"},
	{"", "RIFF", "RIFF (little-endian) data", "application/octet-stream"}, {"", "OggS", "Ogg data", "application/ogg"},
	{"", "ID3", "Audio file with ID3 version 2", "audio/mpeg"},
	{"", "7z\xbc\xaf\x27\x1c", "7-zip archive data", "application/x-7z-compressed"}, {"", "Rar!\x1a\x07", "RAR archive data",
		"application/x-rar"}, {"", "\xca\xfe\xba\xbe", "compiled Java class data", "application/x-java-applet"},
	{"", "!<arch>\n", "current ar archive", "application/x-archive"}, {"", "wOFF", "Web Open Font Format", "font/woff"},
	{"", "wOF2", "Web Open Font Format (Version 2)", "font/woff2"},
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
			prog := gnu.LastName(fields[0])
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
