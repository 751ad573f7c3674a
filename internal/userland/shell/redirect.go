package shell

import (
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// redirections remembers what descriptors were before.
type redirections struct {
	saved []savedFile
	held  int64
}

type savedFile struct {
	fd   int
	old  *vfs.Handle
	keep bool // a descriptor in a variable outlives the command
}

// restore gives back the descriptors.
func (r *redirections) restore(sh *shell) {
	for i := len(r.saved) - 1; i >= 0; i-- {
		s := r.saved[i]
		if s.keep {
			continue
		}
		if s.fd >= len(sh.fds) {
			continue // the shell was killed
		}
		if h := sh.fds[s.fd]; h != nil {
			_ = h.Close()
		}
		sh.fds[s.fd] = s.old
	}
	sh.hold(-r.held)
	*r = redirections{}
}

// forget lets the descriptors in variables end with the others, where a later redirection has failed.
func (r *redirections) forget() {
	for i := range r.saved {
		r.saved[i].keep = false
	}
}

// keep makes the redirections last, as exec does.
func (r *redirections) keep(sh *shell) {
	r.release()
	sh.w.account.Release(r.held)
	sh.held -= r.held
	*r = redirections{}
}

// release closes what the descriptors were before; the redirections last as long as the shell.
func (r *redirections) release() {
	for _, s := range r.saved {
		if s.old != nil {
			_ = s.old.Close()
		}
	}
	r.saved = nil
}

// maxFD is one more than the highest descriptor.
const maxFD = 1024

// put sets a descriptor and remembers what it was.
func (r *redirections) put(sh *shell, fd int, h *vfs.Handle) {
	for len(sh.fds) <= fd {
		sh.fds = append(sh.fds, nil)
	}
	r.saved = append(r.saved, savedFile{fd: fd, old: sh.fds[fd]})
	sh.fds[fd] = h
}

// redirect does redirections in order; when one fails the others are not done.
func (sh *shell) redirect(list []*syntax.Redirect) (redirections, bool) {
	var r redirections
	for _, rd := range list {
		if !redirectOne(sh, &r, rd) {
			return r, false
		}
	}
	return r, true
}

func redirectOne(sh *shell, r *redirections, rd *syntax.Redirect) bool {
	fd, variable := 1, ""
	switch rd.Op {
	case syntax.RdrIn, syntax.RdrInOut, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		fd = 0
	}
	if rd.N != nil {
		n, err := strconv.Atoi(rd.N.Value)
		switch {
		case strings.HasPrefix(rd.N.Value, "{"):
			variable = strings.Trim(rd.N.Value, "{}")
			if fd = 10; rd.Op == syntax.DplIn || rd.Op == syntax.DplOut {
				if target := sh.literal(rd.Word); target == "-" {
					n, err := strconv.Atoi(redirectDescriptor(sh, variable))
					if err == nil && n < len(sh.fds) && sh.fds[n] != nil {
						_ = sh.fds[n].Close()
						sh.fds[n] = nil
					}
					return true
				}
			}
			for fd < len(sh.fds) && sh.fds[fd] != nil {
				fd++
			}
		case err != nil || n >= maxFD:
			sh.complain("", "%s: Bad file descriptor", rd.N.Value)
			return false
		default:
			fd = n
		}
	}
	h, ok := redirectTarget(sh, r, rd, &fd)
	if !ok {
		return false
	}
	if rd.Op == syntax.RdrAll || rd.Op == syntax.AppAll || rd.Op == syntax.DplOut && fd == -1 {
		r.put(sh, 1, h)
		r.put(sh, 2, h.Dup())
		return true
	}
	r.put(sh, fd, h)
	if variable != "" {
		r.saved[len(r.saved)-1].keep = true
		if err := assignTo(sh, variable, strconv.Itoa(fd)); err != nil {
			sh.complain("", "%s", err)
			return false
		}
	}
	return true
}

// redirectDescriptor returns the value of a variable or an element that names a descriptor.
func redirectDescriptor(sh *shell, variable string) string {
	if base, sub, ok := splitSubscript(variable); ok {
		return elementOf(sh, base, sub, false).s
	}
	return sh.str(variable)
}

// assignTo sets a variable or an element.
func assignTo(sh *shell, variable, val string) error {
	if base, sub, ok := splitSubscript(variable); ok {
		return assignElement(sh, base, sub, val, false)
	}
	sh.set(variable, val)
	return nil
}

// elementDescriptor is the end of a word like {a[1]}, which names a descriptor where a redirection follows at once. The parser knows
// plain names only.
var elementDescriptor = regexp.MustCompile(`^\{[A-Za-z_][A-Za-z_0-9]*\[[^\]\s]+\]\}$`)

// withDescriptor takes such a word from a command and gives it to the redirection.
func withDescriptor(sh *shell, s *syntax.Stmt, c *syntax.CallExpr) (*syntax.Stmt, *syntax.CallExpr) {
	if len(c.Args) == 0 || len(s.Redirs) == 0 || s.Redirs[0].N != nil {
		return s, c
	}
	last := c.Args[len(c.Args)-1]
	if last.End() != s.Redirs[0].OpPos || !elementDescriptor.MatchString(codeOf(sh, last)) {
		return s, c
	}
	rd, stmt, call := *s.Redirs[0], *s, *c
	rd.N = &syntax.Lit{Value: codeOf(sh, last)}
	stmt.Redirs = append([]*syntax.Redirect{&rd}, s.Redirs[1:]...)
	call.Args = c.Args[:len(c.Args)-1]
	return &stmt, &call
}

// redirectTarget returns what a redirection leads to; nil is closed. *fd becomes -1 where both outputs are meant.
func redirectTarget(sh *shell, r *redirections, rd *syntax.Redirect, fd *int) (*vfs.Handle, bool) {
	switch rd.Op {
	case syntax.Hdoc, syntax.DashHdoc:
		return hereFile(sh, r, hereDocument(sh, rd)), true
	case syntax.WordHdoc:
		return hereFile(sh, r, sh.one(rd.Word, modeLiteral, false)+"\n"), true
	}
	words := sh.fields([]*syntax.Word{rd.Word})
	if len(words) != 1 {
		sh.complain("", "%s: ambiguous redirect", codeOf(sh, rd.Word))
		return nil, false
	}
	path := words[0]
	flags := vfs.Flags(0)
	switch rd.Op {
	case syntax.RdrIn:
		flags = vfs.Read
	case syntax.RdrInOut:
		flags = vfs.Read | vfs.Write | vfs.Create
	case syntax.RdrOut, syntax.RdrClob, syntax.RdrAll:
		flags = vfs.Write | vfs.Create | vfs.Truncate
		if sh.on[optNoclobber] && rd.Op != syntax.RdrClob {
			n, err := sh.w.fs.Lookup(sh.at(), path, true)
			sh.w.stop(err)
			if err == nil && n.Kind() == vfs.Regular {
				sh.complain("", "%s: cannot overwrite existing file", path)
				return nil, false
			}
		}
	case syntax.AppOut, syntax.AppAll:
		flags = vfs.Write | vfs.Create | vfs.Append
	case syntax.DplIn, syntax.DplOut:
		if path == "-" {
			return nil, true
		}
		digits, move := strings.CutSuffix(path, "-")
		n, err := strconv.Atoi(digits)
		if err != nil || n < 0 {
			if rd.Op == syntax.DplIn || rd.N != nil {
				sh.complain("", "%s: ambiguous redirect", codeOf(sh, rd.Word))
				return nil, false
			}
			*fd = -1
			flags = vfs.Write | vfs.Create | vfs.Truncate
			break
		}
		h := sh.fd(n)
		if h == nil {
			sh.complain("", "%s: Bad file descriptor", path)
			return nil, false
		}
		h = h.Dup()
		if move {
			r.put(sh, n, nil)
		}
		return h, true
	default:
		unsupported(sh, "redirection "+rd.Op.String())
		return nil, false
	}
	h, err := openFile(sh, path, flags)
	if err != nil {
		sh.w.stop(err)
		if rest, ok := strings.CutPrefix(path, "/dev/"); ok && (strings.HasPrefix(rest, "tcp/") || strings.HasPrefix(rest, "udp/")) {
			host, _, _ := strings.Cut(rest[len("tcp/"):], "/")
			sh.w.Report(program.Lack{Kind: program.LackFeature, Name: "bash", Detail: strings.TrimSuffix("network "+host, " ")})
		}
		sh.complain("", "%s: %s", path, err)
		return nil, false
	}
	return h, true
}

// openFile opens a path for the shell itself.
func openFile(sh *shell, path string, flags vfs.Flags) (*vfs.Handle, error) {
	if n, ok := program.Descriptor(path); ok {
		if h := sh.fd(n); h != nil {
			return h.Dup(), nil
		}
		return nil, vfs.ENOENT
	}
	return sh.w.fs.Open(sh.at(), path, flags, 0o666&^sh.umask)
}

// hereFile returns a handle that reads a text.
func hereFile(sh *shell, r *redirections, s string) *vfs.Handle {
	sh.hold(int64(len(s)))
	r.held += int64(len(s))
	return sh.w.fs.Stream(&document{rest: s}, vfs.Read)
}

type document struct{ rest string }

func (d *document) Read(p []byte) (int, error) {
	if d.rest == "" {
		return 0, io.EOF
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *document) Write([]byte) (int, error) { return 0, vfs.EBADF }

// hereDocument returns the body of a here-document.
func hereDocument(sh *shell, rd *syntax.Redirect) string {
	if rd.Hdoc == nil {
		return ""
	}
	body := rd.Hdoc
	if rd.Op == syntax.DashHdoc {
		body = stripTabs(body)
	}
	if quotedWord(rd.Word) {
		var b strings.Builder
		for _, p := range body.Parts {
			if lit, ok := p.(*syntax.Lit); ok {
				b.WriteString(lit.Value)
			}
		}
		return b.String()
	}
	return expandDocument(sh, body)
}

func quotedWord(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.SglQuoted, *syntax.DblQuoted:
			return true
		case *syntax.Lit:
			if strings.Contains(p.Value, `\`) {
				return true
			}
		}
	}
	return false
}

// stripTabs removes the tabs with which lines begin.
func stripTabs(w *syntax.Word) *syntax.Word {
	parts := make([]syntax.WordPart, len(w.Parts))
	begin := true
	for i, p := range w.Parts {
		parts[i] = p
		lit, ok := p.(*syntax.Lit)
		if !ok {
			begin = false
			continue
		}
		lines := strings.SplitAfter(lit.Value, "\n")
		for j := range lines {
			if j > 0 || begin {
				lines[j] = strings.TrimLeft(lines[j], "\t")
			}
		}
		begin = strings.HasSuffix(lit.Value, "\n")
		parts[i] = &syntax.Lit{ValuePos: lit.ValuePos, ValueEnd: lit.ValueEnd, Value: strings.Join(lines, "")}
	}
	return &syntax.Word{Parts: parts}
}

// readByte reads one byte, as read does so that nothing is read ahead.
func readByte(h *vfs.Handle) (byte, error) {
	var b [1]byte
	n, err := h.Read(b[:])
	if n == 1 {
		return b[0], nil
	}
	if err == nil {
		err = io.EOF
	}
	return 0, err
}

// readLine reads up to a delimiter; ended says that it was there. If the file has a position, it reads more at once and seeks back.
func readLine(sh *shell, h *vfs.Handle, delim byte, limit int, more func(c byte) bool) (line []byte, ended bool, err error) {
	_, seekErr := h.Seek(0, io.SeekCurrent)
	seekable := seekErr == nil && h.Kind() == vfs.Regular
	var buf [512]byte
	escaped := false
	for {
		n := 1
		if seekable {
			n = len(buf)
		}
		got, err := h.Read(buf[:n])
		sh.w.stop(err)
		for i, c := range buf[:got] {
			stop := c == delim && !escaped
			if !stop {
				line = append(line, c)
			}
			escaped = more(c) && !escaped
			if stop || limit > 0 && len(line) >= limit {
				if seekable && i+1 < got {
					_, _ = h.Seek(int64(i+1-got), io.SeekCurrent)
				}
				return line, stop, nil
			}
		}
		if len(line) > 1<<16 && len(line)%(1<<14) < got {
			spareMemory(sh, len(line))
		}
		if got == 0 || err != nil {
			if errors.Is(err, io.EOF) || err == nil {
				return line, false, nil
			}
			return line, false, err
		}
	}
}
