package command

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/domain/policy"
)

// places are where the command line goes: folders that it changes into, and what it moves and links.
type places struct {
	line    *reader
	dirs    []string // folders that the command line changes into
	folders []arg    // the same, as they stand there
	moves   []moving
	links   [][]arg // what each ln is given
}

// A space keeps the files below Mount. A file moved elsewhere, such as to /tmp, is in no snapshot, fork or archive, and goes when the
// processes of the space end. That is deletion in effect, and nobody sees on a command line whether mv moves a file or a folder. So mv
// out of the space's files counts as the removal of a tree, and so does mv into a link that the command line makes and that leads out.
// Links that are there already are not looked at: the command line alone is read.

// maxStandings bounds the folders in which a command line may stand.
const maxStandings = 64

// moving is a mv of the command line, whose words may be variables that are given their values further on.
type moving struct {
	command int // its place in the reading
	rest    []arg
}

// unkept are the folders that a space can write to and does not keep. $HOME is in /tmp.
var unkept = []string{"/tmp", "/var/tmp", "/dev/shm"}

// home is the value of $HOME and ~.
const home = "/tmp/home"

// writable are the folders of the root in which something may be writable. The root itself is read-only, so that who goes up too far
// moves nothing.
var writable = names("tmp var dev proc run home root")

// leaves gives the commands that move something out of the space's files the trait of those that delete a tree.
func (pl *places) leaves() {
	if len(pl.moves) == 0 {
		return
	}
	standings := pl.standings()
	links := pl.linksOut(slices.Clone(standings))
	for _, m := range pl.moves {
		to, from := pl.moved(m.rest)
		if slices.ContainsFunc(standings, func(dir string) bool {
			return slices.ContainsFunc(to, func(name string) bool { return leaves(dir, name) || passes(dir, name, links) }) &&
				slices.ContainsFunc(from, func(name string) bool { return keeps(dir, name) })
		}) {
			c := &pl.line.out.Commands[m.command]
			c.Traits = add(c.Traits, policy.TraitDeletesTree)
			pl.line.out.Leaves = true
		}
	}
}

// linksOut returns the names of the links that the command line makes, where one of them may lead out of the space's files: another may
// lead to that one.
func (pl *places) linksOut(standings []string) (names []string) {
	var targets, at []string
	for _, rest := range pl.links {
		to, links := pl.linked(rest)
		targets, at = append(targets, to...), append(at, links...)
	}
	slices.Sort(targets)
	slices.Sort(at)
	targets, at = slices.Compact(targets), slices.Compact(at)
	for _, link := range at {
		if len(standings) == maxStandings {
			break
		}
		standings = append(standings, path.Dir(place(standings[0], link))) // from there it leads on
	}
	if !slices.ContainsFunc(standings, func(dir string) bool {
		return slices.ContainsFunc(targets, func(target string) bool { return leaves(dir, target) })
	}) {
		return nil
	}
	for _, link := range at {
		if base := path.Base(link); base != "." && base != "/" && base != ".." {
			names = append(names, base)
		}
	}
	return names
}

// linked returns to what ln may make links, and where: within a folder, or where nothing else is said, a link has its target's name.
func (pl *places) linked(rest []arg) (targets, at []string) {
	for _, i := range items("ln", rest) {
		switch i.takes {
		case nothing:
			targets = append(targets, pl.mayBe(i.arg)...)
		case writing:
			at = append(at, pl.mayBe(i.arg)...)
		}
	}
	return targets, append(at, targets...)
}

// passes reports whether a name leads through one of the links.
func passes(dir, name string, links []string) bool {
	if len(links) == 0 {
		return false
	}
	return slices.ContainsFunc(strings.Split(place(dir, name), "/"), func(part string) bool { return slices.Contains(links, part) })
}

// moved returns what mv may move, and where to.
func (pl *places) moved(rest []arg) (to, from []string) {
	var target *arg
	var operands []arg
	for _, i := range items("mv", rest) {
		switch i.takes {
		case nothing:
			operands = append(operands, i.arg)
		case writing:
			target = &i.arg
		}
	}
	if target == nil && len(operands) > 0 {
		target, operands = &operands[len(operands)-1], operands[:len(operands)-1]
		if !target.known && !target.one { // it may be all the words
			from = append(from, pl.mayBe(*target)...)
		}
	}
	if target == nil {
		return nil, nil
	}
	to = pl.mayBe(*target)
	if n := len(operands); n > 1 && !target.known && target.word == nil && target.shape == "" {
		// xargs puts it there, or puts its input elsewhere
		to = append(to, pl.mayBe(operands[n-1])...)
	}
	for _, a := range operands {
		may := pl.mayBe(a)
		from = append(from, may...)
		if !a.known && !a.one && slices.ContainsFunc(may, func(name string) bool {
			return strings.HasPrefix(name, "-") && strings.Contains(name, "t")
		}) {
			to = append(to, may...) // an option that names the folder, and the folder
		}
	}
	return to, from
}

// standings returns the folders in which a command of the line may be started.
func (pl *places) standings() []string {
	all := []string{path.Join(Mount, pl.line.cwd)}
	for _, a := range pl.folders {
		for _, name := range pl.mayBe(a) {
			for _, dir := range all[:len(all):len(all)] {
				if at := place(dir, name); len(all) < maxStandings && !slices.Contains(all, at) {
					all = append(all, at)
				}
			}
		}
	}
	return all
}

// mayBe returns the names that a word may stand for. An unknown word may be any name that the command line mentions. A variable that the
// line does not set comes from the environment, such as $TMPDIR, and may name anything.
func (pl *places) mayBe(a arg) []string {
	if a.known {
		return []string{a.text}
	}
	alternatives := []string{unknownPart}
	switch {
	case a.word != nil:
		alternatives = pl.line.joins.alternatives(a.word.Parts, 0)
	case a.shape != "":
		alternatives = []string{strings.ReplaceAll(a.shape, "*", unknownPart)}
	}
	var all []string
	for _, name := range alternatives {
		begin, _, cut := strings.Cut(name, unknownPart)
		switch {
		case cut && begin == "":
			if a.word != nil && pl.inherited(a.word.Parts, 0) {
				all = append(all, home)
			}
			all = append(all, ".")
			for _, m := range pl.line.mentions.words {
				for word := range strings.FieldsSeq(m.text) {
					if !m.known { // the text before it may be a folder of the space
						word = strings.TrimPrefix(word, "/")
					}
					all = append(all, word)
				}
			}
		case a.one:
			all = append(all, begin)
		default:
			all = append(all, strings.Fields(begin)...)
		}
	}
	return all
}

// inherited reports whether a word may begin with a value from the environment.
func (pl *places) inherited(parts []syntax.WordPart, depth int) bool {
	if len(parts) == 0 || depth > maxIndirections {
		return false
	}
	switch p := parts[0].(type) {
	case *syntax.DblQuoted:
		return pl.inherited(p.Parts, depth)
	case *syntax.ParamExp:
		if p.Param == nil || !syntax.ValidName(p.Param.Value) || p.Param.Value == "PWD" {
			return false
		}
		name := p.Param.Value
		for _, w := range pl.line.joins.values[name] {
			if pl.inherited(w.Parts, depth+1) {
				return true
			}
		}
		return pl.line.joins.values[name] == nil && !pl.line.math.known[name] && !pl.line.math.received[name]
	}
	return false
}

// place returns where a name leads from a folder.
func place(dir, name string) string {
	switch {
	case strings.HasPrefix(name, "~"):
		return path.Join(home, strings.TrimLeft(name, "~"))
	case strings.HasPrefix(name, "/"):
		return path.Clean(name)
	}
	return path.Join(dir, name)
}

// below reports whether a path is a folder, or is inside it.
func below(at, folder string) bool { return at == folder || strings.HasPrefix(at, folder+"/") }

// keeps reports whether a name, relative to a folder, may be a kept file of the space: any that is not certainly elsewhere.
func keeps(dir, name string) bool {
	at := place(dir, name)
	return !slices.ContainsFunc(unkept, func(folder string) bool { return below(at, folder) })
}

// leaves reports whether a name leads from a folder out of the space's files, to where something can be written.
func leaves(dir, name string) bool {
	at := place(dir, name)
	if below(at, Mount) {
		return false
	}
	if strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") {
		return true
	}
	first, _, _ := strings.Cut(strings.TrimPrefix(at, "/"), "/")
	return first == "" || writable[first] || strings.ContainsAny(first, "*?[")
}
