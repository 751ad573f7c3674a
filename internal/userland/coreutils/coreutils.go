// Package coreutils is the part of GNU's coreutils, and of what lies beside it in /bin, that scripts use for files, text and their
// surroundings.
package coreutils

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
)

// Programs returns the programs of this package.
func Programs() program.Table {
	t := program.Table{}
	for name, f := range map[string]program.Func{
		"cat": cat, "head": head, "tail": tail, "wc": wc, "sort": sortCommand, "uniq": uniq, "tr": tr, "cut": cut, "seq": seq, "yes": yes,
		"tee": tee,
		"ls":  ls, "dir": ls, "mkdir": mkdir, "rmdir": rmdir, "rm": rm, "unlink": unlink, "cp": cp, "mv": mv, "ln": ln, "touch": touch,
		"chmod": chmod, "chown": chown, "chgrp": chown,
		"stat": stat, "readlink": readlink, "realpath": realpath, "basename": basename, "dirname": dirname, "mktemp": mktemp, "pwd": pwd,
		"sleep": sleep, "env": env, "printenv": printenv, "date": date, "timeout": timeout, "id": id, "whoami": whoami, "uname": uname,
		"hostname": hostname, "nproc": nproc,
		"which": which, "xargs": xargs, "base32": basenc, "base64": basenc, "basenc": basenc, "nice": wrapper("n:"), "nohup": wrapper(""),
		"setsid": wrapper("cfw"), "stdbuf": wrapper("i:o:e:"),
		"tree": tree, "ps": ps, "who": nobody, "users": nobody, "pinky": nobody, "hostid": hostid, "vdir": vdir, "link": link,
		"arch": arch, "logname": whoami, "groups": groups, "tty": tty, "sync": sync,
		"md5sum": sums("md5"), "sha1sum": sums("sha1"), "sha224sum": sums("sha224"), "sha256sum": sums("sha256"), "sha384sum": sums("sha384"),
		"sha512sum": sums("sha512"),
		"b2sum":     b2sum, "cksum": cksum, "sum": sum,
	} {
		t[name] = f
	}
	return t
}

// usage tells that the arguments are wrong and ends the program.
func usage(p *program.Process, code int, format string, args ...any) {
	p.Errorf(format, args...)
	p.Stderrf("Try '%s --help' for more information.\n", p.Name())
	p.Exit(code)
}

// quoteName writes a name as messages have it: in single quotes, escaped where it has to be.
func quoteName(s string) string {
	if strings.ContainsAny(s, "'") {
		if !strings.ContainsAny(s, "\"$`\\!") {
			return `"` + s + `"`
		}
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	if strings.ContainsAny(s, "\n\t\r") {
		return "'" + strings.NewReplacer("\n", `'$'\n''`, "\t", `'$'\t''`, "\r", `'$'\r''`).Replace(s) + "'"
	}
	return "'" + s + "'"
}

// quoteIfNeeded writes a name as messages of cat and wc have it: in quotes only where it needs them.
func quoteIfNeeded(s string) string {
	if s == "" || strings.ContainsAny(s, " '\"\\|&;()<>!*?[]$`#~=\n\t:") {
		return quoteName(s)
	}
	return s
}

// suffixed reads a number with a unit, as head, tail and sleep of sizes have them.
func suffixed(s string) (int64, bool) {
	end := 0
	for end < len(s) && s[end] >= '0' && s[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(s[:end], 10, 64)
	if err != nil {
		return 0, false
	}
	unit := int64(1)
	switch s[end:] {
	case "":
	case "b":
		unit = 512
	case "k", "K", "KiB":
		unit = 1 << 10
	case "kB", "KB":
		unit = 1000
	case "m", "M", "MiB":
		unit = 1 << 20
	case "MB":
		unit = 1000 * 1000
	case "G", "GiB":
		unit = 1 << 30
	case "GB":
		unit = 1000 * 1000 * 1000
	default:
		return 0, false
	}
	return n * unit, n <= (1<<62)/unit
}
