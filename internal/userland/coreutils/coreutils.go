// Package coreutils has the commands for files, processes and the system, such as ls, cp, env and uname.
//
// Its table also has the commands of GNU's coreutils that lie in packages of their own: dates, digest, sorting and text.
package coreutils

import (
	"agentbox/internal/userland/dates"
	"agentbox/internal/userland/digest"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/sorting"
	"agentbox/internal/userland/text"
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
	}).Add(dates.Programs(), digest.Programs(), sorting.Programs(), text.Programs())
}
