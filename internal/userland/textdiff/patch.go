package textdiff

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// patcher is a patch that runs.
type patcher struct {
	p        *program.Process
	out      *program.Output
	strip    int // -1 for the last element only
	reverse  bool
	dry      bool
	silent   bool
	forward  bool
	force    bool
	backup   bool
	mismatch bool // what did not fit exactly is kept as it was
	empty    bool // files that become empty are removed
	fuzz     int
	output   string
	rejects  string
	target   string
	failed   bool
}

// filePatch is the changes of one file.
type filePatch struct {
	old, new           string // as the head names them
	index              string
	renameOf, renameTo string
	copies             bool
	mode               string
	hunks              []hunk
}

// hunk is one place that is changed.
type hunk struct {
	at    int // line of the old file, from 1
	newAt int
	head  string
	lines []hunkLine
	end   int // how many lines of context end it
	begin int // and begin it
}

type hunkLine struct {
	kind byte // ' ', '-' or '+'
	text []byte
}

func patch(p *program.Process) int {
	s := &patcher{p: p, out: p.Out(), strip: -1, fuzz: 2, mismatch: true}
	opts, operands := p.Options(2, "p:i:RNfsEbo:r:d:F:tulncZTV:z:B:x:", "strip= p", "input= i", "reverse R", "dry-run", "forward N", "force f",
		"batch t", "silent s", "quiet s",
		"remove-empty-files E", "backup b", "output= o", "reject-file= r", "directory= d", "fuzz= F", "unified u", "no-backup-if-mismatch",
		"verbose", "binary",
		"ignore-whitespace l", "suffix= z", "posix", "merge=?", "follow-symlinks")
	source := "-"
	for _, o := range opts {
		switch o.Name {
		case "p":
			s.strip = gnu.ParseCount(p, 2, o.Value, "strip count is not a number")
		case "i":
			source = o.Value
		case "R":
			s.reverse = true
		case "dry-run":
			s.dry = true
		case "N":
			s.forward = true
		case "f", "t":
			s.force = true
		case "s":
			s.silent = true
		case "E":
			s.empty = true
		case "b":
			s.backup = true
		case "o":
			s.output = o.Value
		case "r":
			s.rejects = o.Value
		case "F":
			s.fuzz = gnu.ParseCount(p, 2, o.Value, "fuzz factor is not a number")
		case "d":
			dir, err := p.FS.Lookup(p.At(), o.Value, true)
			if err != nil || dir.Kind() != vfs.Directory {
				p.Errorf("**** Can't change to directory %s : %s", o.Value, vfs.ENOENT.Error())
				return 2
			}
			if source != "-" && !strings.HasPrefix(source, "/") {
				if cwd, err := p.Cwd.Path(); err == nil {
					source = gnu.Join(cwd, source)
				}
			}
			p.Cwd = dir
		case "no-backup-if-mismatch":
			s.mismatch = false
		case "u", "verbose", "binary", "posix", "n", "c", "T", "Z", "follow-symlinks":
		default:
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here", o.Name)
			return 2
		}
	}
	if len(operands) > 0 {
		s.target = operands[0]
	}
	if len(operands) > 1 {
		source = operands[1]
	}
	data, err := gnu.ReadWhole(p, source)
	if err != nil {
		p.Errorf("**** Can't open patch file %s : %s", source, program.Message(err))
		return 2
	}
	if len(data) > 0 && data[len(data)-1] != '\n' {
		s.out.WriteString("patch unexpectedly ends in middle of line\n")
	}
	files, err := parsePatch(p, data)
	if err != nil {
		p.Errorf("**** %s", err.Error())
		return 2
	}
	if len(files) == 0 {
		if len(bytes.TrimSpace(data)) > 0 {
			p.Errorf("**** Only garbage was found in the patch input.")
			return 2
		}
		return 0
	}
	for _, f := range files {
		s.file(f)
	}
	if s.failed {
		return 1
	}
	return 0
}

// parsePatch reads the unified changes of a text.
func parsePatch(p *program.Process, data []byte) ([]*filePatch, error) {
	all := gnu.Lines(data)
	p.Hold(len(all) * 64)
	var files []*filePatch
	var f *filePatch
	git := false
	fresh := func() {
		f = &filePatch{}
		files = append(files, f)
	}
	for i := 0; i < len(all); i++ {
		p.Charge(20 + len(all[i])/8)
		line := strings.TrimRight(string(all[i]), "\r\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			fresh()
			git = true
			if a, b, ok := strings.Cut(line[len("diff --git "):], " "); ok {
				f.index = b
				_ = a
			}
		case git && strings.HasPrefix(line, "rename from "):
			f.renameOf = line[len("rename from "):]
		case git && strings.HasPrefix(line, "rename to "):
			f.renameTo = line[len("rename to "):]
		case git && strings.HasPrefix(line, "copy from "):
			f.renameOf, f.copies = line[len("copy from "):], true
		case git && strings.HasPrefix(line, "copy to "):
			f.renameTo = line[len("copy to "):]
		case git && strings.HasPrefix(line, "new file mode "):
			f.mode = line[len("new file mode "):]
			f.old = "/dev/null"
		case git && strings.HasPrefix(line, "new mode "):
			f.mode = line[len("new mode "):]
		case git && strings.HasPrefix(line, "deleted file mode "):
			f.new = "/dev/null"
		case strings.HasPrefix(line, "GIT binary patch"):
			return nil, errors.New("git binary diffs are not supported.")
		case strings.HasPrefix(line, "Index: ") && !git:
			fresh()
			f.index = strings.TrimSpace(line[len("Index: "):])
		case strings.HasPrefix(line, "--- ") && i+1 < len(all) && bytes.HasPrefix(all[i+1], []byte("+++ ")):
			if f == nil || len(f.hunks) > 0 || !git && f.index == "" {
				fresh()
			}
			f.old = patchName(line[4:])
			f.new = patchName(strings.TrimRight(string(all[i+1][4:]), "\r\n"))
			i++
		case strings.HasPrefix(line, "*** ") && i+1 < len(all) && bytes.HasPrefix(all[i+1], []byte("--- ")):
			p.Lack(program.LackFeature, "patches in the context form")
			return nil, errors.New("patches in the context form are not supported here: make it with diff -u")
		case strings.HasPrefix(line, "@@ -") && f != nil:
			h, next, err := parseHunk(all, i)
			if err != nil {
				return nil, err
			}
			f.hunks = append(f.hunks, h)
			i = next - 1
		}
	}
	kept := files[:0]
	for _, f := range files {
		if len(f.hunks) > 0 || f.renameTo != "" || f.mode != "" || git && f.new == "/dev/null" {
			kept = append(kept, f)
		}
	}
	return kept, nil
}

// patchName cuts the time behind a name.
func patchName(s string) string {
	if i := strings.IndexByte(s, '\t'); i >= 0 {
		s = s[:i]
	}
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, `"`) {
		if u, err := strconv.Unquote(s); err == nil {
			return u
		}
	}
	return s
}

func parseHunk(all [][]byte, i int) (hunk, int, error) {
	head := strings.TrimRight(string(all[i]), "\r\n")
	bad := errors.New("malformed patch at line " + strconv.Itoa(i+1) + ": " + head)
	ranges, _, ok := strings.Cut(head[3:], " @@")
	a, b, ok2 := strings.Cut(ranges, " +")
	if !ok || !ok2 {
		return hunk{}, 0, bad
	}
	h := hunk{head: head}
	number := func(s string) (at, n int, err error) {
		first, count, ok := strings.Cut(s, ",")
		if at, err = strconv.Atoi(first); err != nil {
			return 0, 0, err
		}
		if n = 1; ok {
			n, err = strconv.Atoi(count)
		}
		return at, n, err
	}
	at, old, err := number(strings.TrimPrefix(a, "-"))
	if err != nil {
		return h, 0, bad
	}
	newAt, fresh, err := number(b)
	if err != nil || old < 0 || fresh < 0 {
		return h, 0, bad
	}
	h.at, h.newAt = at, newAt
	for i++; i < len(all) && (old > 0 || fresh > 0); i++ {
		line := all[i]
		kind := line[0]
		text := line[1:]
		switch kind {
		case '\n', '\r':
			kind, text = ' ', line
		case '\t':
			kind, text = ' ', line
		}
		switch kind {
		case ' ':
			old--
			fresh--
		case '-':
			old--
		case '+':
			fresh--
		case '\\':
			chop(&h)
			continue
		default:
			return h, 0, errors.New("malformed patch at line " + strconv.Itoa(i+1) + ": " + string(line))
		}
		h.lines = append(h.lines, hunkLine{kind, text})
	}
	if old > 0 || fresh > 0 {
		return h, 0, errors.New("unexpected end of file in patch")
	}
	if i < len(all) && all[i][0] == '\\' {
		chop(&h)
		i++
	}
	h.measure()
	return h, i, nil
}

// chop takes the newline from the last line: it has none.
func chop(h *hunk) {
	if n := len(h.lines); n > 0 {
		h.lines[n-1].text = bytes.TrimSuffix(h.lines[n-1].text, []byte("\n"))
	}
}

func (h *hunk) measure() {
	h.begin, h.end = 0, 0
	for h.begin < len(h.lines) && h.lines[h.begin].kind == ' ' {
		h.begin++
	}
	for h.end < len(h.lines)-h.begin && h.lines[len(h.lines)-1-h.end].kind == ' ' {
		h.end++
	}
}

// reversed turns a hunk around.
func (h hunk) reversed() hunk {
	r := h
	r.at, r.newAt = h.newAt, h.at
	r.lines = nil
	var added []hunkLine
	for _, l := range h.lines {
		switch l.kind {
		case '+':
			r.lines = append(r.lines, hunkLine{'-', l.text})
			continue
		case '-':
			added = append(added, hunkLine{'+', l.text})
			continue
		}
		r.lines = append(append(r.lines, added...), l)
		added = nil
	}
	r.lines = append(r.lines, added...)
	return r
}

// name strips folders from a name of the patch.
func (s *patcher) name(name string) string {
	if name == "/dev/null" || name == "" {
		return name
	}
	if s.strip < 0 {
		return gnu.LastName(name)
	}
	for range s.strip {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return ""
		}
		name = strings.TrimLeft(rest, "/")
	}
	return name
}

func (s *patcher) exists(name string) bool {
	if name == "" || name == "/dev/null" {
		return false
	}
	_, err := s.p.FS.Stat(s.p.At(), name, true)
	return err == nil
}

func (s *patcher) say(format string, args ...any) {
	if !s.silent {
		s.out.Printf(format, args...)
	}
}

func (s *patcher) file(f *filePatch) {
	old, fresh := f.old, f.new
	if s.reverse {
		old, fresh = fresh, old
		f.renameOf, f.renameTo = f.renameTo, f.renameOf
		for i := range f.hunks {
			f.hunks[i] = f.hunks[i].reversed()
		}
	}
	name, creates := s.choose(f, old, fresh)
	deletes := fresh == "/dev/null"
	if name == "" || name == "/dev/null" {
		s.out.WriteString("can't find file to patch at input line 1\nPerhaps you used the wrong -p or --strip option?\nNo file to patch.  " +
			"Skipping patch.\n")
		if n := len(f.hunks); n > 0 {
			s.out.Printf("%d out of %d hunk%s ignored\n", n, n, gnu.Plural(n))
		}
		s.failed = true
		return
	}
	var data []byte
	mode := uint32(0o666) &^ s.p.Umask
	if s.exists(name) {
		var err error
		if data, err = gnu.ReadWhole(s.p, name); err != nil {
			s.p.Errorf("**** Can't open file %s : %s", name, program.Message(err))
			s.p.Exit(2)
		}
		defer s.p.Drop(len(data))
		if i, err := s.p.FS.Stat(s.p.At(), name, true); err == nil {
			mode = i.Mode
		}
	} else if !creates && len(f.hunks) > 0 && f.hunks[0].at != 0 {
		creates = false
	}
	if len(f.mode) >= 4 {
		if m, err := strconv.ParseUint(f.mode[len(f.mode)-4:], 8, 32); err == nil {
			mode = uint32(m)
		}
	}
	verb := "patching"
	if s.dry {
		verb = "checking"
	}
	to := name
	if f.renameTo != "" && f.renameOf != "" && s.target == "" {
		to = f.renameTo
		how := "renamed"
		if f.copies {
			how = "copied"
		}
		s.say("%s file %s (%s from %s)\n", verb, to, how, name)
	} else {
		s.say("%s file %s\n", verb, name)
	}
	text := gnu.Lines(data)
	if len(data) == 0 {
		text = nil
	}
	if s.applied(text, f, creates) {
		s.say("Reversed (or previously applied) patch detected!  Skipping patch.\n")
		n := len(f.hunks)
		if !s.dry {
			s.writeRejects(to, f, f.hunks)
			s.say("%d out of %d hunk%s ignored -- saving rejects to file %s\n", n, n, gnu.Plural(n), s.rejectName(to))
		} else {
			s.say("%d out of %d hunk%s ignored\n", n, n, gnu.Plural(n))
		}
		s.failed = true
		return
	}
	result, rejected, mismatch := s.apply(text, f.hunks)
	if n := len(rejected); n > 0 {
		s.failed = true
		all := len(f.hunks)
		if s.dry {
			s.say("%d out of %d hunk%s FAILED\n", n, all, gnu.Plural(all))
		} else {
			s.say("%d out of %d hunk%s FAILED -- saving rejects to file %s\n", n, all, gnu.Plural(all), s.rejectName(to))
			s.writeRejects(to, f, rejected)
		}
	}
	if s.dry {
		return
	}
	if (s.backup || s.mismatch && (mismatch || len(rejected) > 0)) && s.exists(name) {
		s.write(name+".orig", data, mode)
	}
	if len(rejected) == len(f.hunks) && len(f.hunks) > 0 {
		return
	}
	s.finish(name, to, f, result, mode, deletes && len(rejected) == 0)
}

// choose returns the name of the file that a patch changes, "" where there is none, and whether the patch makes the file.
func (s *patcher) choose(f *filePatch, old, fresh string) (name string, creates bool) {
	creates = old == "/dev/null"
	deletes := fresh == "/dev/null"
	name = s.target
	if name == "" {
		a, b, c := s.name(old), s.name(fresh), s.name(f.index)
		switch {
		case f.renameTo != "" && f.renameOf != "":
			name = f.renameOf
		case creates:
			if name = b; name == "" || name == "/dev/null" {
				name = c
			}
		case s.exists(a) && (deletes || !s.exists(b) || len(strings.Split(a, "/")) < len(strings.Split(b, "/")) || len(a) <= len(b)):
			name = a
		case s.exists(b):
			name = b
		case s.exists(c):
			name = c
		case len(f.hunks) > 0 && f.hunks[0].at == 0 && len(f.hunks) == 1:
			name, creates = b, true
		}
		if name != "" && !gnu.SafeName(name) {
			s.out.Printf("Ignoring potentially dangerous file name %s\n", name)
			name = ""
		}
	}
	return name, creates
}

// finish writes the result, or removes what became empty.
func (s *patcher) finish(name, to string, f *filePatch, result []byte, mode uint32, deletes bool) {
	if s.output != "" {
		s.write(s.output, result, mode)
		return
	}
	if len(result) == 0 && (deletes || s.empty) {
		if err := s.p.FS.Unlink(s.p.At(), name); err != nil {
			s.p.Errorf("**** Can't remove file %s : %s", name, program.Message(err))
			s.p.Exit(2)
		}
		for dir := name; strings.Contains(dir, "/"); { // with folders that are empty now
			dir = dir[:strings.LastIndexByte(dir, '/')]
			if dir == "" || s.p.FS.Rmdir(s.p.At(), dir) != nil {
				break
			}
		}
		return
	}
	for i, c := range to {
		if c == '/' && i > 0 {
			_ = s.p.FS.Mkdir(s.p.At(), to[:i], 0o777&^s.p.Umask)
		}
	}
	s.write(to, result, mode)
	if to != name && !f.copies {
		_ = s.p.FS.Unlink(s.p.At(), name)
	}
}

func (s *patcher) write(name string, data []byte, mode uint32) {
	h, w, err := gnu.Create(s.p, name)
	if err != nil {
		s.p.Errorf("**** Can't create file %s : %s", name, program.Message(err))
		s.p.Exit(2)
	}
	_, _ = w.Write(data)
	w.Flush()
	if h.Node() != nil {
		_ = h.Node().Chmod(mode)
	}
	_ = s.p.Close(h)
}

func (s *patcher) rejectName(name string) string {
	if s.rejects != "" {
		return s.rejects
	}
	return name + ".rej"
}

func (s *patcher) writeRejects(name string, f *filePatch, rejected []hunk) {
	var b bytes.Buffer
	b.WriteString("--- " + f.old + "\n+++ " + f.new + "\n")
	for _, h := range rejected {
		b.WriteString(h.head + "\n")
		for _, l := range h.lines {
			b.WriteByte(l.kind)
			b.Write(l.text)
			if !bytes.HasSuffix(l.text, []byte("\n")) {
				b.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	s.write(s.rejectName(name), b.Bytes(), 0o666&^s.p.Umask)
}
