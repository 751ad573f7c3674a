package toolbox_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/shelltest"
)

// busy says of each command what keeps it at work for longer than a small bound of gas. Those of "" do a few operations, whatever they
// are given.
var busy = map[string]string{
	"[": "", "test": "", "true": "", "false": "", "arch": "", "hostid": "", "hostname": "", "logname": "", "whoami": "", "nproc": "",
	"pinky": "", "users": "", "who": "", "groups": "",
	"id": "", "tty": "", "uname": "", "sync": "", "pwd": "", "sleep": "", "mkfifo": "", "mknod": "", "truncate": "", "df": "", "ps": "",
	"date": "", "readlink": "", "link": "",
	"dircolors": `yes '.a 1' | dircolors -b -`,
	"awk":       `awk 'BEGIN { while (1) ; }'`, "gawk": `yes | gawk '{ s = s $0 }'`, "mawk": `yes | mawk '{ gsub(/y/, "yy") }'`,
	"base32": `yes | base32`, "base64": `yes | base64`, "basenc": `yes | tr -d '\n' | basenc --base2lsbf`,
	"basename": many("basename -a"), "dirname": many("dirname"), "echo": many("/bin/echo"), "printf": many(`/bin/printf %s`),
	"printenv": many("printenv"), "expr": many("expr 1 +"),
	"env": many("env -i"), "which": many("which"), "mkdir": many("mkdir -p"), "rmdir": many("rmdir"), "rm": many("rm -f"),
	"unlink": loop("unlink a"), "touch": many("touch"),
	"chmod": many("chmod 644"), "chown": many("chown -R x"), "chgrp": many("chgrp -R x"), "stat": many("stat"), "ls": many("ls -d"),
	"dir": many("dir -d"), "vdir": many("vdir -d"),
	"realpath": many("realpath"), "pathchk": many("pathchk -p"), "mktemp": loop("mktemp"), "mv": loop("touch a; mv a b"),
	"ln": loop("ln -sf a b"), "cp": loop("cp /bin/ls b"),
	"install": loop("install /bin/ls b"), "file": loop("file /bin/*"), "tree": tree("tree"), "find": tree("find . -name '*a*b'"),
	"du":    tree("du -a"),
	"bzip2": bz + `; while :; do bzip2 -dc z; done`, "bunzip2": bz + `; while :; do bunzip2 -t z; done`, "bzcat": bz +
		`; while :; do bzcat z; done`,
	"xz": packedByXZ + `; while :; do xz -dc z.xz; done`, "unxz": packedByXZ + `; while :; do unxz -t z.xz; done`, "xzcat": packedByXZ +
		`; while :; do xzcat z.xz; done`,
	"bc": `echo 'while (1) { i }' | bc`, "b2sum": `yes | b2sum`, "cksum": `yes | cksum`, "md5sum": `yes | md5sum`, "sum": `yes | sum`,
	"sha1sum":   `yes | sha1sum`,
	"sha224sum": `yes | sha224sum`, "sha256sum": `yes | sha256sum`, "sha384sum": `yes | sha384sum`, "sha512sum": `yes | sha512sum -c`,
	"cat": `yes | cat -A`, "cmp": `cmp <(yes) <(yes)`, "column": `yes | column -t`, "comm": `comm <(yes) <(yes)`,
	"csplit": `yes | csplit - /x/`, "cut": `yes | cut -c1`,
	"dd": `dd if=/dev/zero of=/dev/null bs=1k`, "diff": `diff <(yes) <(yes no)`, "egrep": `yes | egrep -c 'x|z'`, "fgrep": `yes | fgrep -c x`,
	"grep":      `yes | grep -P '(?=x)z'`,
	"fallocate": loop("fallocate -l 100000 a; rm a"), "sdiff": `sdiff <(yes) <(yes no)`,
	"expand": `yes | expand`, "factor": `factor 18446744030759878681`, "fmt": `yes | fmt`, "fold": `yes | tr -d '\n' | fold`,
	"gzip":   `yes | gzip`,
	"gunzip": `yes | gzip | gunzip`, "zcat": `yes | gzip | zcat`, "hd": `yes | hd -v`, "head": `yes | head -c 1G`,
	"hexdump": `yes | hexdump -v`, "ionice": `ionice yes`,
	"nice": `nice yes`, "nohup": `nohup yes`, "setsid": `setsid yes`, "stdbuf": `stdbuf -oL yes`, "timeout": `timeout 1000 yes`,
	"join": `join <(yes) <(yes)`,
	"jq":   `jq -n 'def f: f; f'`, "nl": `yes | nl`, "numfmt": `yes 1000 | numfmt --to=si`, "od": `yes | od -v`, "paste": `yes | paste - -`,
	"patch": `yes | patch x`,
	"pr":    `yes | pr`, "ptx": `yes | ptx`, "rev": `yes | rev`, "sed": `echo | sed ':a; ba'`, "seq": `seq 1 1000000000`,
	"shred": `touch a; shred -n 60000 -s 1M a`, "shuf": `shuf -r -e x`,
	"sort": `yes | sort`, "split": `yes | split -l 100000 - /tmp/x`, "strings": `yes | strings`, "tac": `yes | tac`, "tail": `yes | tail -n 5`,
	"tar": loop("tar cf a.tar /bin/ls; tar tf a.tar"),
	"tee": `yes | tee`, "tr": `yes | tr y x`, "tsort": `yes 'a b' | tsort`, "unexpand": `yes | unexpand -a`, "uniq": `yes | uniq -c`,
	"zip":   loop("zip -q a.zip /bin/ls"),
	"unzip": `zip -q a.zip /bin/ls; while :; do unzip -qo a.zip -d d; done`, "wc": `yes | wc`, "xargs": `yes | xargs -n1 true`,
	"xxd": `yes | xxd`, "yes": `yes`,
}

// bz makes a file z that holds "hello\n", packed by bzip2.
const bz = `echo QlpoOTFBWSZTWcHAgOIAAAFBAAAQAkSgADDNAMNGKZcXckU4UJDBwIDi | base64 -d > z`

// packedByXZ makes a file z.xz that holds a million bytes of "y\n", packed by xz.
const packedByXZ = `echo /Td6WFoAAATm1rRGAgAhAQwAAACPmEGc70I/ANRdADyCq/wd//f/1IEKn3RzhPowEaZpp4+RC+RFpEO932qwFnAeVi0L6rgnHZslAj+o/1pyqZ` +
	`WiwsWqNBkGdox2aWWhLsiGGGVgsv9Nj/IFi2j0kUiMhwCUEpokNn9mQpATDv8Qk/hxeFn4C83/lShGD6n8fN77mjAuVsCPhfODgcBlxCVT+PWR` +
	`NjEFpbDub8FwTUcM0ZERqq1gHbrOsScYXFmG6WZSWL7pdqxZ5OVbBQj5x9qt/PtSK3TNHlsgQvndUz34KWQJO4DLKmzftTvwxLyzCWfjAGNizR` +
	`Xrp6x3AAHwAcCEPQCQ8T4RscRn+wIAAAAABFla` +
	` | base64 -d > z.xz`

// many calls a command with more arguments than it can look at.
func many(command string) string {
	return `set -- {1..4000}; while :; do ` + command + ` "$@"; done`
}

// loop calls commands again and again.
func loop(commands string) string { return `while :; do ` + commands + `; done` }

// tree has a command walk through many folders.
func tree(command string) string {
	return `for i in 1 2 3 4; do for j in 1 2 3 4; do mkdir -p $i/$j; touch $i/$j/{1..20}; done; done; while :; do ` + command + `; done`
}

// lateGas is what a command may try to do when it was stopped: 5 ms, at a third of a nanosecond for a unit.
const lateGas = 15_000_000

// TestEachCommandIsStoppedSoon runs each command on what keeps it busy until its gas is used up, and counts what it tries to do after that.
func TestEachCommandIsStoppedSoon(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(programs())) {
		script, known := busy[name]
		if !known {
			t.Errorf("%s: nothing says what keeps it busy", name)
		}
		if script == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(script, name) {
				t.Fatalf("%q does not run it", script)
			}
			l := small()
			l.MemoryBytes = 256 << 20
			r := shelltest.Execute(programs(), l, "("+script+") >/dev/null 2>&1")
			stopped, ok := errors.AsType[*bound.Stopped](r.Stopped)
			if !ok || stopped.Limit != bound.Gas {
				t.Fatalf("ended with %d, %v, %q %q; want the bound of gas", r.Code, r.Stopped, cut(r.Out), cut(r.Err))
			}
			if r.Late > lateGas {
				t.Errorf("tried to do %d units of work after it was stopped, want %d at most", r.Late, lateGas)
			}
		})
	}
}

// lateTime is what a command may go on when it is stopped from outside: 5 ms, and what a busy machine takes before it runs the fiber again.
const lateTime = 5*time.Millisecond + 20*time.Millisecond

// TestEachCommandIsStoppedFromOutside stops each command on the wall's clock, at several times, and asks that it end soon at the best of
// three.
func TestEachCommandIsStoppedFromOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it measures time")
	}
	l := small()
	l.Gas, l.MemoryBytes = 1<<40, 256<<20
	for name, script := range busy {
		if script == "" {
			continue
		}
		best := time.Hour
		for try := range 3 {
			a := bound.New(l, [32]byte{1}, shelltest.Start())
			stop := make(chan time.Time, 1)
			timer := time.AfterFunc(time.Duration(10+7*try)*time.Millisecond, func() {
				stop <- time.Now()
				a.Stop(&bound.Stopped{Canceled: true})
			})
			r := shelltest.ExecuteWith(a, programs(), "("+script+") >/dev/null 2>&1")
			end := time.Now()
			if timer.Stop() || r.Stopped == nil {
				t.Fatalf("%s: ended by itself with %d, %q %q", name, r.Code, cut(r.Out), cut(r.Err))
			}
			if best = min(best, end.Sub(<-stop)); best < lateTime/5 {
				break
			}
		}
		if best > lateTime {
			t.Errorf("%s: went on for %s after it was stopped, want %s at most", name, best, lateTime)
		}
	}
}
