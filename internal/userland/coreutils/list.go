package coreutils

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// permissions writes permission bits as ls does.
func permissions(mode uint32) string {
	b := []byte("rwxrwxrwx")
	for i := range b {
		if mode&(1<<(8-i)) == 0 {
			b[i] = '-'
		}
	}
	for _, special := range []struct {
		bit uint32
		at  int
		c   byte
	}{{0o4000, 2, 's'}, {0o2000, 5, 's'}, {0o1000, 8, 't'}} {
		if mode&special.bit != 0 {
			if b[special.at] == '-' {
				b[special.at] = special.c - 32
			} else {
				b[special.at] = special.c
			}
		}
	}
	return string(b)
}

// letter returns how ls marks a kind.
func letter(k vfs.Kind) string {
	switch k {
	case vfs.Directory:
		return "d"
	case vfs.Symlink:
		return "l"
	case vfs.Device:
		return "c"
	case vfs.Pipe:
		return "p"
	case vfs.Other:
		return "s"
	}
	return "-"
}

// listed is one thing that ls shows.
type listed struct {
	name   string
	path   string
	node   *vfs.Node
	info   vfs.Info
	target string
}

type lister struct {
	first                                          bool // folders come first
	p                                              *program.Process
	all, almost, long, recursive, folders, human   bool
	reverse, classify, slash, inode, size, numeric bool
	noGroup, noOwner, quote, si, comma             bool
	order                                          byte // 't', 'S', 'X', 'v', 'U' or 0
	field                                          byte // of the time: 'm', 'a' or 'c'
	style                                          string
	escape                                         bool
	ignore, hide                                   []string
	status                                         int
	zone                                           *time.Location
	printed                                        bool
}

func ls(p *program.Process) int {
	opts, names := p.Options(2, "aAbBcCdfFghGiklLmnNopqQrRsSt1uUvw:XxT:I:HZ", "all a", "almost-all A", "author", "escape b", "block-size=",
		"ignore-backups B", "color=?", "directory d",
		"classify=?", "file-type", "format=", "full-time", "group-directories-first", "no-group G", "human-readable h", "si", "inode i",
		"literal N", "numeric-uid-gid n",
		"quote-name Q", "quoting-style=", "reverse r", "recursive R", "size s", "sort=", "time=", "time-style=", "width w", "hide=", "ignore I",
		"dereference L", "show-control-chars",
		"indicator-style=", "zero")
	l := &lister{p: p, field: 'm', zone: p.Zone()}

	for _, o := range opts {
		if code, done := l.option(o); done {
			return code
		}
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	var files, folders []listed
	for _, name := range names {
		n, err := gnu.Lookup(p, name, !l.long && !l.folders || strings.HasSuffix(name, "/"))
		if err != nil && !l.long && !l.folders {
			n, err = gnu.Lookup(p, name, false)
		}
		if err != nil {
			gnu.Try(p, err, "cannot access %s", gnu.QuoteName(name))
			l.status = 2
			continue
		}
		e := l.entry(name, name, n)
		if e.info.Kind == vfs.Directory && !l.folders || l.long && !l.classify && e.info.Kind == vfs.Symlink && !l.folders && false {
			folders = append(folders, e)
		} else {
			files = append(files, e)
		}
	}
	l.sort(files, l.first)
	l.sort(folders, l.first)
	if len(files) > 0 {
		l.show(files, false)
		l.printed = true
	}
	for _, f := range folders {
		l.folder(f, len(names) > 1 || l.recursive, l.first)
	}
	return l.status
}

// option takes one option. It returns whether the command ends with that, and the code. It is long because it is one switch over the
// options.
//
//nolint:cyclop // one case for each option
func (l *lister) option(o program.Option) (code int, done bool) {
	switch o.Name {
	case "a":
		l.all = true
	case "A":
		l.almost = true
	case "c", "u":
		l.field = map[string]byte{"c": 'c', "u": 'a'}[o.Name]
	case "d":
		l.folders = true
	case "f":
		l.all, l.order = true, 'U'
	case "F", "classify":
		l.classify = true
	case "g":
		l.long, l.noOwner = true, true
	case "G":
		l.noGroup = true
	case "h":
		l.human = true
	case "si":
		l.human, l.si = true, true
	case "i":
		l.inode = true
	case "l":
		l.long = true
	case "m":
		l.comma = true
	case "n":
		l.long, l.numeric = true, true
	case "o":
		l.long, l.noGroup = true, true
	case "p":
		l.slash = true
	case "file-type":
		l.slash = true
	case "indicator-style":
		l.slash, l.classify = o.Value == "slash", o.Value == "classify"
	case "Q":
		l.quote = true
	case "b":
		l.escape = true
	case "quoting-style":
		l.quote, l.escape = o.Value == "c", o.Value == "escape"
	case "r":
		l.reverse = true
	case "R":
		l.recursive = true
	case "s":
		l.size = true
	case "S", "t", "X", "v", "U":
		l.order = o.Name[0]
	case "sort":
		order, ok := map[string]byte{"size": 'S', "time": 't', "extension": 'X', "version": 'v', "none": 'U', "name": 0}[o.Value]
		if l.order = order; !ok {
			l.p.Errorf("invalid argument ‘%s’ for ‘--sort’", o.Value)
			l.p.Stderrf("Valid arguments are:\n  - ‘none’\n  - ‘time’\n  - ‘size’\n  - ‘extension’\n  - ‘version’\n  - ‘width’\n  - ‘name’\n")
			l.p.Stderrf("Try '%s --help' for more information.\n", l.p.Name())
			return 1, true
		}
	case "time":
		l.field = map[string]byte{"atime": 'a', "access": 'a', "use": 'a', "ctime": 'c', "status": 'c'}[o.Value]
	case "full-time":
		l.long, l.style = true, "full-iso"
	case "time-style":
		l.style = o.Value
	case "group-directories-first":
		l.first = true
	case "1", "C", "x", "color", "N", "q", "w", "k", "L", "H", "T", "show-control-chars", "author", "format", "zero", "block-size":
		if o.Name == "format" && (o.Value == "long" || o.Value == "verbose") {
			l.long = true
		}
		if o.Name == "color" && o.Value != "never" && o.Value != "auto" && o.Value != "" && o.Given {
			l.p.Lack(program.LackOption, "--color=always")
		}
	case "I":
		l.ignore = append(l.ignore, o.Value)
	case "hide":
		l.hide = append(l.hide, o.Value)
	case "B":
		l.ignore = append(l.ignore, "*~")
	case "Z":
		l.p.Lack(program.LackOption, "-Z")
		gnu.FailUsage(l.p, 2, "invalid option -- 'Z'")
	}
	return 0, false
}

func (l *lister) entry(name, path string, n *vfs.Node) listed {
	l.p.Charge(30)
	return listed{name: name, path: path, node: n, info: n.Info(), target: n.Target()}
}

func (l *lister) folder(f listed, title bool, first bool) {
	p := l.p
	entries, err := f.node.List()
	if err != nil {
		gnu.Try(p, err, "cannot open directory %s", gnu.QuoteName(f.path))
		l.status = max(l.status, 1)
		return
	}
	if l.printed {
		_ = p.Out().WriteByte('\n')
	}
	l.printed = true
	if title {
		p.Out().Printf("%s:\n", l.quoted(f.path))
	}
	var all []listed
	if l.all {
		all = append(all, l.entry(".", f.path, f.node))
		if up, err := p.FS.Lookup(vfs.At{Dir: f.node}, "..", true); err == nil {
			all = append(all, l.entry("..", gnu.Join(f.path, ".."), up))
		}
	}
	for _, e := range entries {
		if (e.Name[0] != '.' || l.all || l.almost) && !l.hidden(e.Name) {
			all = append(all, l.entry(e.Name, gnu.Join(f.path, e.Name), e.Node))
		}
	}
	l.sort(all, first)
	l.show(all, true)
	if !l.recursive {
		return
	}
	for _, e := range all {
		if e.info.Kind == vfs.Directory && e.name != "." && e.name != ".." {
			l.folder(e, true, first)
		}
	}
}

func (l *lister) sort(all []listed, foldersFirst bool) {
	if l.order == 'U' {
		return
	}
	slices.SortStableFunc(all, func(a, b listed) int {
		l.p.Charge(10)
		if foldersFirst {
			if x, y := a.info.IsDir(), b.info.IsDir(); x != y {
				if x {
					return -1
				}
				return 1
			}
		}
		c := 0
		switch l.order {
		case 'S':
			c = cmp.Compare(b.info.Size, a.info.Size)
		case 't':
			c = l.time(b).Compare(l.time(a))
		case 'X':
			c = cmp.Compare(extension(a.name), extension(b.name))
		case 'v':
			c = gnu.CompareVersion(a.name, b.name)
		}
		if c == 0 {
			c = strings.Compare(a.name, b.name)
		}
		if l.reverse {
			return -c
		}
		return c
	})
}

func extension(name string) string {
	if i := strings.LastIndexByte(name, '.'); i >= 0 {
		return name[i:]
	}
	return ""
}

// hidden reports whether an option hides a name in a folder.
func (l *lister) hidden(name string) bool {
	fits := func(list []string) bool {
		return slices.ContainsFunc(list, func(pattern string) bool {
			l.p.Charge(10)
			ok, err := path.Match(pattern, name)
			return ok && err == nil
		})
	}
	return fits(l.ignore) || !l.all && !l.almost && fits(l.hide)
}

func (l *lister) quoted(name string) string {
	if l.escape {
		return strings.NewReplacer(`\`, `\\`, " ", `\ `, "\n", `\n`, "\t", `\t`, "\r", `\r`, "\a", `\a`, "\b", `\b`, "\f", `\f`, "\v",
			`\v`).Replace(name)
	}
	if l.quote {
		return strconv.Quote(name)
	}
	return name
}

// humanSize writes a size with a unit, rounded up as GNU does.
func humanSize(n int64, unit int64) string {
	if n < unit {
		return strconv.FormatInt(n, 10)
	}
	letters := "KMGTPE"
	if unit == 1000 {
		letters = "kMGTPE"
	}
	power, i := unit, 0
	for n/power >= unit && i+1 < len(letters) {
		power *= unit
		i++
	}
	tenths := (n*10 + power - 1) / power
	if power > 1<<50 {
		tenths = n / (power / 10)
	}
	if tenths < 100 {
		return fmt.Sprintf("%d.%d%c", tenths/10, tenths%10, letters[i])
	}
	whole := (n + power - 1) / power
	if whole >= unit && i+1 < len(letters) {
		return fmt.Sprintf("1.0%c", letters[i+1])
	}
	return fmt.Sprintf("%d%c", whole, letters[i])
}

// blocks returns how many blocks of 1024 bytes something takes.
func blocks(i vfs.Info) int64 {
	switch i.Kind {
	case vfs.Regular:
		return (i.Size + 4095) / 4096 * 4
	case vfs.Directory:
		return 4
	}
	return 0
}

func (l *lister) show(all []listed, total bool) {
	p := l.p
	out := p.Out()
	unit := int64(1024)
	if l.si {
		unit = 1000
	}
	size := func(n int64) string {
		if l.human {
			return humanSize(n, unit)
		}
		return strconv.FormatInt(n, 10)
	}
	if total && (l.long || l.size) {
		sum := int64(0)
		for _, e := range all {
			sum += blocks(e.info)
		}
		if l.human {
			out.Printf("total %s\n", humanSize(sum*1024, unit))
		} else {
			out.Printf("total %d\n", sum)
		}
	}
	block := func(e listed) string {
		if l.human {
			return humanSize(blocks(e.info)*1024, unit)
		}
		return strconv.FormatInt(blocks(e.info), 10)
	}
	links, sizes, inodes, blockWidth := 0, 0, 0, 0
	for _, e := range all {
		links = max(links, len(strconv.Itoa(e.info.Links)))
		sizes = max(sizes, len(size(e.info.Size)))
		inodes = max(inodes, len(strconv.FormatUint(e.info.ID, 10)))
		blockWidth = max(blockWidth, len(block(e)))
	}
	times := make([]string, len(all))
	timeWidth := 0
	for i, e := range all {
		if l.long {
			times[i] = l.stamp(e)
			timeWidth = max(timeWidth, utf8.RuneCountInString(times[i]))
		}
	}
	for i, e := range all {
		if l.inode {
			out.Printf("%*d ", inodes, e.info.ID)
		}
		if l.size {
			out.Printf("%*s ", blockWidth, block(e))
		}
		if l.long {
			out.Printf("%s%s %*d ", letter(e.info.Kind), permissions(e.info.Mode), links, e.info.Links)
			owner := gnu.User(l.p)
			if l.numeric {
				owner = "0"
			}
			if !l.noOwner {
				_, _ = out.WriteString(owner + " ")
			}
			if !l.noGroup {
				_, _ = out.WriteString(owner + " ")
			}
			if e.info.Kind == vfs.Device {
				out.Printf("1, %d ", e.info.ID%256)
			} else {
				out.Printf("%*s ", sizes, size(e.info.Size))
			}
			_, _ = out.WriteString(times[i] + " ")
		}
		_, _ = out.WriteString(l.quoted(e.name))
		if l.long && e.info.Kind == vfs.Symlink {
			_, _ = out.WriteString(" -> " + l.quoted(e.target))
			if n, err := gnu.Lookup(p, e.path, true); err == nil && (l.classify || l.slash) {
				_, _ = out.WriteString(l.mark(n.Info()))
			}
		} else {
			_, _ = out.WriteString(l.mark(e.info))
		}
		if l.comma && i+1 < len(all) {
			_, _ = out.WriteString(", ")
		} else {
			_ = out.WriteByte('\n')
		}
	}
}

// mark returns what -F and -p append to a name.
func (l *lister) mark(i vfs.Info) string {
	switch {
	case i.Kind == vfs.Directory && (l.classify || l.slash):
		return "/"
	case !l.classify:
		return ""
	case i.Kind == vfs.Symlink:
		return "@"
	case i.Kind == vfs.Pipe:
		return "|"
	case i.Kind == vfs.Regular && i.Mode&0o111 != 0:
		return "*"
	}
	return ""
}

// vdir is ls -l.
func vdir(p *program.Process) int {
	p.Args = append([]string{p.Args[0], "-l"}, p.Args[1:]...)
	return ls(p)
}
