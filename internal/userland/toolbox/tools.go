// Package toolbox has the commands outside coreutils in one table.
//
// The commands lie in packages by their subject.
package toolbox

import (
	"io"

	"agentbox/internal/userland/awk"
	"agentbox/internal/userland/calc"
	"agentbox/internal/userland/dump"
	"agentbox/internal/userland/files"
	"agentbox/internal/userland/find"
	"agentbox/internal/userland/grep"
	"agentbox/internal/userland/jq"
	"agentbox/internal/userland/layout"
	"agentbox/internal/userland/lines"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/sed"
	"agentbox/internal/userland/textdiff"
)

// Programs returns the commands by their names, with sed and awk.
func Programs() program.Table {
	return program.Functions(map[string]program.Func{
		"bunzip2": bzip2Command, "bzcat": bzip2Command, "bzip2": bzip2Command, "gunzip": gzipCommand, "gzip": gzipCommand, "tar": tarCommand,
		"xz": xzCommand, "unxz": xzCommand, "xzcat": xzCommand,
		"unzip": unzip, "zcat": gzipCommand, "zip": zipCommand, "chgrp": refuses("there are no other owners here"),
		"chown": refuses("there are no other owners here"), "mkfifo": refuses("pipes with names are not supported here: use |"),
		"mknod": refuses("devices cannot be made here"), "ionice": runs, "nice": runs, "nohup": runs, "setsid": runs, "stdbuf": runs, "tty": tty,
	}).Add(program.Table{"sed": sed.Program(), "awk": awk.Program(), "gawk": awk.Program(), "mawk": awk.Program()},
		textdiff.Programs(), calc.Programs(), jq.Programs(), find.Programs(), grep.Programs(), files.Programs(),
		dump.Programs(), layout.Programs(), lines.Programs())
}

// charger charges gas for the bytes that a library's reader or writer moves.
type charger struct {
	p *program.Process
	r io.Reader
	w io.Writer
	n int // gas for a byte
}

func (c *charger) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.p.Charge(n * c.n)
	return n, err
}

func (c *charger) Write(b []byte) (int, error) {
	c.p.Charge(len(b) * c.n)
	return c.w.Write(b)
}
