package coreutils

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// stat prints what is known of files.
func stat(p *program.Process) int {
	opts, names := p.Options(1, "Lfc:t", "dereference L", "file-system f", "format c", "printf=", "terse t", "cached=")
	follow, format, newline, escapes := false, "", true, false
	for _, o := range opts {
		switch o.Name {
		case "L":
			follow = true
		case "c":
			format = o.Value
		case "printf":
			format, newline, escapes = o.Value, false, true
		case "f":
			p.Lack(program.LackOption, "-f")
			gnu.FailUsage(p, 1, "option -f is not supported in a nano space")
		case "t":
			format = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o"
		}
	}
	if len(names) == 0 {
		gnu.FailUsage(p, 1, "missing operand")
	}
	status := 0
	for _, name := range names {
		n, err := gnu.Lookup(p, name, follow)
		if !gnu.Try(p, err, "cannot statx %s", gnu.QuoteName(name)) {
			status = 1
			continue
		}
		f := format
		if f == "" {
			f = "  File: %N\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: %-11i Links: %h\nAccess: (%04a/%10.10A)  " +
				"Uid: (%5u/%8U)   Gid: (%5g/%8G)\n" +
				"Access: %x\nModify: %y\nChange: %z\n Birth: %w"
			if n.Kind() != vfs.Symlink {
				f = strings.Replace(f, "%N", "%n", 1)
			} else {
				f = strings.Replace(f, "%N", "%n -> "+strings.ReplaceAll(n.Target(), "%", "%%"), 1)
			}
		}
		if escapes {
			f = unescaped(f)
		}
		_, _ = p.Out().WriteString(statFormat(name, n, f, gnu.User(p), p.Zone()))
		if newline {
			_ = p.Out().WriteByte('\n')
		}
	}
	return status
}

func kindName(i vfs.Info) string {
	switch i.Kind {
	case vfs.Directory:
		return "directory"
	case vfs.Symlink:
		return "symbolic link"
	case vfs.Device:
		return "character special file"
	case vfs.Pipe:
		return "fifo"
	case vfs.Other:
		return "socket"
	}
	if i.Size == 0 {
		return "regular empty file"
	}
	return "regular file"
}

// statFormat writes the conversions of stat -c. It is long because it is one switch over the letters of these.
//
//nolint:cyclop // one case for each directive
func statFormat(name string, n *vfs.Node, format, owner string, zone *time.Location) string {
	i := n.Info()
	var b strings.Builder
	for at := 0; at < len(format); at++ {
		if format[at] != '%' || at+1 == len(format) {
			b.WriteByte(format[at])
			continue
		}
		begin := at
		at++
		for at < len(format) && strings.IndexByte("-+ #0123456789.", format[at]) >= 0 {
			at++
		}
		flags := format[begin+1 : at]
		if at+1 < len(format) && (format[at] == 'H' || format[at] == 'L') && (format[at+1] == 'd' || format[at+1] == 'r') {
			at++
		}
		if at == len(format) {
			b.WriteString(format[begin:])
			break
		}
		c := format[at]
		stamp := func(t time.Time) string { return program.Strftime("%Y-%m-%d %H:%M:%S.%N %z", t.In(zone)) }
		text, isText := "", true
		number := int64(0)
		switch c {
		case '%':
			b.WriteByte('%')
			continue
		case 'a':
			text = strconv.FormatUint(uint64(i.Mode), 8)
			if strings.HasPrefix(flags, "0") {
				text = fmt.Sprintf("%"+flags+"o", i.Mode)
				flags = ""
			}
		case 'A':
			text = letter(i.Kind) + permissions(i.Mode)
			flags = ""
		case 'b':
			isText, number = false, blocks(i)*2
		case 'B':
			isText, number = false, 512
		case 'C':
			text = "?"
		case 'd':
			isText, number = false, int64(i.Device)
		case 'D':
			text = strconv.FormatUint(i.Device, 16)
		case 'f':
			text = strconv.FormatUint(uint64(i.Mode)|map[vfs.Kind]uint64{vfs.Regular: 0o100000, vfs.Directory: 0o40000, vfs.Symlink: 0o120000,
				vfs.Device: 0o20000, vfs.Pipe: 0o10000}[i.Kind], 16)
		case 'F':
			text = kindName(i)
		case 'g', 'u':
			isText, number = false, 0
		case 'G', 'U':
			text = owner
		case 'h':
			isText, number = false, int64(i.Links)
		case 'i':
			text = strconv.FormatUint(i.ID, 10)
		case 'm':
			text = "/"
		case 'n':
			text = name
		case 'N':
			if text = gnu.QuoteName(name); i.Kind == vfs.Symlink {
				text += " -> " + gnu.QuoteName(n.Target())
			}
		case 'o':
			isText, number = false, 4096
		case 's':
			isText, number = false, i.Size
		case 't', 'T', 'r', 'R':
			text = "0"
		case 'w':
			text = "-"
		case 'W':
			text = "0"
		case 'x':
			text = stamp(i.Accessed)
		case 'X':
			isText, number = false, i.Accessed.Unix()
		case 'y':
			text = stamp(i.Modified)
		case 'Y':
			isText, number = false, i.Modified.Unix()
		case 'z':
			text = stamp(i.Changed)
		case 'Z':
			isText, number = false, i.Changed.Unix()
		default:
			b.WriteByte('?')
			continue
		}
		if isText {
			fmt.Fprintf(&b, "%"+strings.Trim(flags, "+# ")+"s", text)
		} else {
			fmt.Fprintf(&b, "%"+flags+"d", number)
		}
	}
	return b.String()
}

// unescaped returns a format of --printf with its escapes as the bytes that they mean.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte("abefnrtv\\\"", s[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\f\n\r\t\v\\\""[at])
			continue
		}
		begin, base, most := i, 8, 3
		if s[i] == 'x' {
			begin, base, most = i+1, 16, 2
		}
		end := begin
		for end < len(s) && end < begin+most && (s[end] >= '0' && s[end] <= '7' || base == 16 && gnu.ByteClass("xdigit", s[end])) {
			end++
		}
		if end == begin {
			b.WriteByte(s[i])
			continue
		}
		n, _ := strconv.ParseUint(s[begin:end], base, 16)
		b.WriteByte(byte(n))
		i = end - 1
	}
	return b.String()
}
