// Package coreutils is the part of GNU's coreutils, and of what lies beside it in /bin, that scripts use for files, text and their
// surroundings.
package coreutils

import (
	"strconv"
	"strings"

	"agentbox/internal/userland/program"
)

// Programs returns the commands by their names.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"ls": ls, "dir": ls, "vdir": vdir, "tree": tree, "mkdir": mkdir, "rmdir": rmdir, "rm": rm, "unlink": unlink, "cp": cp, "mv": mv,
		"ln": ln, "link": link, "touch": touch, "chmod": chmod, "chown": chown, "chgrp": chown,
		"stat": stat, "readlink": readlink, "realpath": realpath, "basename": basename, "dirname": dirname, "mktemp": mktemp, "pwd": pwd,
		"sleep": sleep, "env": env, "printenv": printenv, "timeout": timeout, "which": which, "xargs": xargs, "nice": wrapper("n:"),
		"nohup": wrapper(""), "setsid": wrapper("cfw"), "stdbuf": wrapper("i:o:e:"), "sync": sync, "tty": tty, "ps": ps,
		"arch": arch, "hostname": hostname, "hostid": hostid, "nproc": nproc, "uname": uname,
		"id": id, "groups": groups, "logname": whoami, "whoami": whoami, "who": nobody, "users": nobody, "pinky": nobody,
	}).Add(programsDates(), programsDigest(), programsSorting(), programsText())
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
