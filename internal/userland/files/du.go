package files

import (
	"fmt"
	"strconv"

	"agentbox/internal/userland/gnu"
	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// usage is a du that runs.
type usage struct {
	p                             *program.Process
	human, si, all, sum, apparent bool
	total                         bool
	depth                         int
	block                         int64
	exclude                       []string
	seen                          map[*vfs.Node]bool
	threshold                     int64
}

func du(p *program.Process) int {
	u := &usage{p: p, depth: 1 << 30, block: 1024, seen: map[*vfs.Node]bool{}}
	opts, operands := p.Options(1, "0abB:cd:DhHkLlmPsSt:xX:", "all a", "apparent-size", "bytes b", "block-size= B", "total c", "max-depth= d",
		"human-readable h", "si", "summarize s",
		"exclude=", "separate-dirs S", "dereference L", "one-file-system x", "threshold= t", "null 0", "files0-from=")
	list := ""
	for _, o := range opts {
		switch o.Name {
		case "a":
			u.all = true
		case "apparent-size":
			u.apparent = true
		case "b":
			u.apparent, u.block = true, 1
		case "B":
			n, err := gnu.ParseSize(o.Value)
			if err != nil {
				if n, err = gnu.ParseSize("1" + o.Value); err != nil {
					p.Errorf("invalid -B argument '%s'", o.Value)
					return 1
				}
			}
			u.block = max(n, 1)
		case "c":
			u.total = true
		case "d":
			u.depth = gnu.ParseCount(p, 1, o.Value, "invalid maximum depth")
		case "h":
			u.human = true
		case "si", "H":
			u.human, u.si = true, true
		case "k":
			u.block = 1024
		case "m":
			u.block = 1 << 20
		case "s":
			u.sum, u.depth = true, 0
		case "exclude":
			u.exclude = append(u.exclude, o.Value)
		case "files0-from":
			list = o.Value
		case "t":
			u.threshold, _ = gnu.ParseSize(o.Value)
		}
	}
	code, total := 0, int64(0)
	if list != "" {
		var wrong int
		if operands, wrong = p.NamesFrom(1, list, operands); wrong > 0 {
			code = 1
		}
	} else if len(operands) == 0 {
		operands = []string{"."}
	}
	for _, name := range operands {
		node, err := p.FS.Lookup(p.At(), name, false)
		if err != nil {
			p.Charge(0)
			p.Errorf("cannot access '%s': %s", name, program.Message(err))
			code = 1
			continue
		}
		total += u.visit(name, node, 0)
	}
	if u.total {
		u.show(total, "total")
	}
	return code
}

func (u *usage) visit(path string, node *vfs.Node, depth int) int64 {
	u.p.Charge(100)
	for _, x := range u.exclude {
		if gnu.Glob(x, gnu.LastName(path), false) || gnu.Glob(x, path, false) {
			return 0
		}
	}
	i := node.Info()
	if depth == 0 || i.Links > 1 && i.Kind == vfs.Regular {
		if u.seen[node] {
			return 0
		}
		u.seen[node] = true
	}
	n := gnu.Blocks(i) * 512
	if u.apparent {
		n = i.Size
	}
	if i.Kind == vfs.Directory && depth < vfs.MaxDepth {
		entries, err := node.List()
		if err != nil {
			u.p.Charge(0)
			u.p.Errorf("cannot read directory '%s': %s", path, program.Message(err))
		}
		for _, e := range entries {
			n += u.visit(gnu.Join(path, e.Name), e.Node, depth+1)
		}
	}
	if (i.Kind == vfs.Directory && depth <= u.depth) || depth == 0 || u.all && depth <= u.depth {
		if n >= u.threshold {
			u.show(n, path)
		}
	}
	return n
}

func (u *usage) show(n int64, path string) {
	u.p.Out().WriteString(sized(n, u.block, u.human, u.si) + "\t" + path + "\n")
}

// sized writes a size in blocks, or with a unit, rounded up.
func sized(n, block int64, human, si bool) string {
	if !human {
		return strconv.FormatInt((n+block-1)/block, 10)
	}
	factor := int64(1024)
	if si {
		factor = 1000
	}
	v, i, rest := n, 0, false
	tenths := n * 10
	for v >= factor && i < len(gnu.UnitLetters) {
		rest = rest || tenths%factor != 0
		tenths /= factor
		v /= factor
		i++
	}
	if i == 0 {
		return strconv.FormatInt(n, 10)
	}
	if rest {
		tenths++
	}
	letter := gnu.UnitLetters[i-1 : i]
	if si && i == 1 {
		letter = "k"
	}
	if tenths < 100 {
		return fmt.Sprintf("%d.%d%s", tenths/10, tenths%10, letter)
	}
	return strconv.FormatInt((tenths+9)/10, 10) + letter
}

// df tells how much room there is, as far as the execution knows.
func df(p *program.Process) int {
	opts, operands := p.Options(1, "aB:hHikPTt:x:l", "human-readable h", "si H", "block-size= B", "portability P", "print-type T", "inodes i",
		"output=?", "total", "all a")
	human, si, block := false, false, int64(1024)
	for _, o := range opts {
		switch o.Name {
		case "h":
			human = true
		case "H":
			human, si = true, true
		case "B":
			if n, err := gnu.ParseSize(o.Value); err == nil && n > 0 {
				block = n
			}
		case "i", "output", "T":
			p.Lack(program.LackOption, "-"+o.Name)
			p.Errorf("the option %s is not supported here", o.Name)
			return 1
		}
	}
	out := p.Out()
	if human {
		out.WriteString("Filesystem      Size  Used Avail Use% Mounted on\n")
	} else {
		out.WriteString("Filesystem     1K-blocks      Used Available Use% Mounted on\n")
	}
	room := p.Account.Limits().MemoryBytes
	free := max(p.Account.Spare(), 0)
	if len(operands) == 0 {
		operands = []string{"/"}
	}
	for _, name := range operands {
		if _, err := p.FS.Stat(p.At(), name, true); err != nil {
			p.Errorf("%s: %s", name, program.Message(err))
			return 1
		}
		used := int64(0)
		if room > 0 {
			used = (room - free) * 100 / room
		}
		if human {
			out.Printf("%-14s %5s %5s %5s %3d%% %s\n", "space", sized(room, block, true, si), sized(room-free, block, true, si), sized(free, block,
				true, si), used, "/")
		} else {
			out.Printf("%-14s %9s %9s %9s %3d%% %s\n", "space", sized(room, block, false, si), sized(room-free, block, false, si), sized(free, block,
				false, si), used, "/")
		}
	}
	return 0
}
