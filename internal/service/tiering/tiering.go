// Package tiering checks before a command runs whether a tier has what it needs, and whether it wants other hosts.
//
// It reads the command and the files that it names, within bounds. Needs that it misses show while the command runs. So nothing in this
// package decides what is permitted: a mistake costs time, not safety.
package tiering

import (
	"maps"
	"path"
	"slices"
	"strings"

	"agentbox/internal/domain/space"
)

// The bounds of one check. Text and files beyond them are not checked.
const (
	MaxFiles     = 64      // of the space that are read, or are missing
	MaxFileBytes = 1 << 20 // of one file
	maxText      = 1 << 20 // bytes of one text of a shell
	maxDepth     = 16      // of texts in texts
	maxCommands  = 10_000
	maxNeeds     = 32
)

// Service finds what commands need. Tiers list their own contents; the rules add to them for nano. It is safe for concurrent use.
type Service struct {
	rules    Rules
	commands map[string]bool // of the rules, for nano
	modules  map[string]bool
	packages map[string]bool
	node     map[string]bool // modules of Node's own, whether a tier has them or not
}

// New returns a service with the given rules.
func New(rules Rules) *Service {
	return &Service{
		rules: rules, commands: set(rules.Nano.Commands), modules: set(rules.Nano.Modules), packages: set(rules.Nano.Packages),
		node: set(strings.Fields(nodeModules)),
	}
}

func set(lists ...[]string) map[string]bool {
	all := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			all[name] = true
		}
	}
	return all
}

// Place implements space.Place: it finds the needs of a command that a tier lacks.
func (p *Service) Place(has space.Offer, c space.Command, read space.Read) []space.Need {
	s := &look{
		Service: p, has: has, nano: has.Tier == space.Nano, reach: c.Reach, env: c.Env, read: read, cwd: path.Clean("/" + c.Cwd),
		left: p.rules.Bounds.Files,
		seen: map[string]bool{}, written: map[string]string{}, functions: map[string]bool{},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		s.variable(name, c.Env[name])
	}
	s.alone = alone(c.Text)
	s.text(c.Text, "", 0)
	return s.needs
}

// look is one look at a command.
type look struct {
	*Service
	has       space.Offer
	nano      bool   // the tier is nano, of which the rules speak
	reach     bool   // only needs of other hosts count, and the one program of the command
	alone     string // the program that is all of the command
	env       map[string]string
	tried     bool // the code may not run, or the command handles its failure
	read      space.Read
	cwd       string            // with a slash before it, which is the folder of the space's files
	left      int               // files that may still be read
	count     int               // that were checked
	seen      map[string]bool   // files that were looked into
	written   map[string]string // contents that the command itself writes to files before it uses them
	functions map[string]bool   // of the command
	needs     []space.Need
}

// need notes a need of a command, once.
func (s *look) need(n space.Need) {
	if n.Tried = s.tried; s.reach && (n.Tried || n.Kind != space.LackNetwork && !n.Remote && !n.Alone) {
		return
	}
	if len(n.Name) > maxEntry {
		n.Name = strings.ToValidUTF8(n.Name[:maxEntry], "")
	}
	same := func(o space.Need) bool { return o.Kind == n.Kind && o.Name == n.Name }
	if i := slices.IndexFunc(s.needs, same); i >= 0 {
		s.needs[i].Tried, s.needs[i].Remote = s.needs[i].Tried && n.Tried, s.needs[i].Remote || n.Remote && !n.Tried
	} else if len(s.needs) < maxNeeds {
		s.needs = append(s.needs, n)
	}
}

// network notes that another host is wanted.
func (s *look) network(name, where string) {
	s.need(space.Need{Kind: space.LackNetwork, Name: name, Where: where})
}

// heavy reports whether the rules want a heavier tier for a name of one of their lists.
func (s *look) heavy(list []string, name string) bool { return s.nano && slices.Contains(list, name) }

// file returns the content of a file by its path from the folder of the space's files on, as far as it may be read.
func (s *look) file(name string) (string, bool) {
	name = path.Clean("/" + name)
	if text, ok := s.written[name]; ok {
		return text, true
	}
	if s.left == 0 || s.read == nil {
		return "", false
	}
	s.left--
	content, err := s.read(strings.TrimPrefix(name, "/"), s.rules.Bounds.FileBytes)
	return string(content), err == nil
}

// workspace is where a space's files are for its commands.
const workspace = "/workspace"

// at returns the place of a file that a command names, from the folder of the space's files on; not ok for one that is none of them.
func (s *look) at(name string) (string, bool) {
	switch {
	case name == "":
		return "", false
	case strings.HasPrefix(name, workspace+"/"):
		return path.Clean(strings.TrimPrefix(name, workspace)), true
	case strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~"):
		return "", false
	}
	return path.Join(s.cwd, name), true
}

// variable checks a variable of a command's environment.
func (s *look) variable(name, value string) {
	if !s.nano {
		return
	}
	for _, pattern := range s.rules.Heavy.Env {
		wanted, text, valued := strings.Cut(pattern, "=")
		if fits(wanted, name) && (!valued || fits(text, value)) {
			s.need(space.Need{Kind: space.LackFeature, Name: name, Why: "the variable " + pattern + " needs it by the rules"})
		}
	}
}

// fits reports whether a text fits a pattern in which * is anything.
func fits(pattern, text string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == text
	}
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(text, part)
		}
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text, rest = text[i+len(part):], more
	}
}
