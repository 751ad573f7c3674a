// Package tiering sees before a command runs whether the lightest tier has what it needs.
//
// It reads the command and the files that it names, and is bounded. What it does not see is found out while the command runs, so that nothing of it
// decides what is permitted: a mistake costs time, not safety.
package tiering

import (
	"maps"
	"path"
	"slices"
	"strings"

	"agentbox/internal/domain/space"
)

// The bounds of one look. What lies beyond is not looked at.
const (
	MaxFiles     = 64      // of the space that are read, or looked for in vain
	MaxFileBytes = 1 << 20 // of one file
	maxText      = 1 << 20 // bytes of one text of a shell
	maxDepth     = 16      // of texts in texts
	maxCommands  = 10_000
	maxNeeds     = 32
)

// Has is what the tier nano says that it has.
type Has struct {
	Commands []string
	Modules  []string // of Python's own library, at the top
	Builtins []string // of Node's own library, without node:
}

// Service knows what nano has and what needs more. It is safe for concurrent use.
type Service struct {
	rules    Rules
	commands map[string]bool
	modules  map[string]bool
	builtins map[string]bool
	node     map[string]bool // modules of Node's own, whether nano has them or not
	packages map[string]bool
}

// New returns a placer.
func New(rules Rules, has Has) *Service {
	return &Service{
		rules: rules, commands: set(has.Commands, rules.Nano.Commands, strings.Fields(builtins), interpreters), modules: set(has.Modules, rules.Nano.Modules),
		builtins: set(has.Builtins), node: set(strings.Fields(nodeModules)), packages: set(rules.Nano.Packages),
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

// Place implements space.Place: it finds what a command needs that nano has not.
func (p *Service) Place(c space.Command, read space.Read) []space.Need {
	s := &look{Service: p, read: read, cwd: path.Clean("/" + c.Cwd), left: p.rules.Bounds.Files, seen: map[string]bool{}, written: map[string]string{}, functions: map[string]bool{}}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		s.variable(name, c.Env[name])
	}
	s.text(c.Text, "", 0)
	return s.needs
}

// look is one look at a command.
type look struct {
	*Service
	read      space.Read
	cwd       string            // with a slash before it, which is the folder of the space's files
	left      int               // files that may still be read
	count     int               // that were looked at
	seen      map[string]bool   // files that were looked into
	written   map[string]string // what the command itself puts into files before it uses them
	functions map[string]bool   // of the command
	needs     []space.Need
}

// need notes what a command needs, once.
func (s *look) need(n space.Need) {
	if len(n.Name) > maxEntry {
		n.Name = strings.ToValidUTF8(n.Name[:maxEntry], "")
	}
	same := func(o space.Need) bool { return o.Kind == n.Kind && o.Name == n.Name }
	if len(s.needs) < maxNeeds && !slices.ContainsFunc(s.needs, same) {
		s.needs = append(s.needs, n)
	}
}

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

// variable looks at what a command's environment holds.
func (s *look) variable(name, value string) {
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
