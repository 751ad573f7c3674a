package tiering

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/command"
	"agentbox/internal/domain/space"
)

// python checks what Python would run.
func (s *look) python(name string, rest []word, stdin *string, where string) {
	if contextual(rest) {
		return
	}
	text, option, ok := given(rest, command.OptionsOf(name), func(o string) bool { return o == "-c" || o == "-m" })
	switch {
	case ok && option.Text == "-m" && text.Known:
		s.pythonModule(text.Text, where, rest[slices.Index(rest, text)+1:])
	case ok:
		s.pythonText(text.Text, s.cwd, where)
	}
	if ok {
		return
	}
	switch file, _ := command.OptionsOf(name).Operand(rest); {
	case file.Text != "" && file.Text != "-":
		if at, ok := s.once(file.Text); ok {
			if text, ok := s.file(at); ok {
				s.pythonText(text, path.Dir(at), strings.TrimPrefix(at, "/"))
			}
		}
	case stdin != nil:
		s.pythonText(*stdin, s.cwd, where)
	}
}

// contextual reports whether an interpreter would run in a context. Only nano has contexts: whatever else the code needs, a heavier
// tier has no use for it.
func contextual(rest []word) bool {
	for _, w := range rest {
		switch {
		case !w.Known || len(w.Text) < 2 || w.Text[0] != '-' || w.Text == "-c":
			return false
		case w.Text == "--context" || strings.HasPrefix(w.Text, "--context="):
			return true
		}
	}
	return false
}

// pythonModule looks at a module that is run.
func (s *look) pythonModule(name, where string, rest []word) {
	if name == "pip" {
		s.pip(name, rest, where)
		return
	}
	s.imported(name, nil, s.cwd, where)
	s.followed(path.Join(s.cwd, strings.ReplaceAll(name, ".", "/"), "__main__.py"))
}

// An import of Python: of a module, and of names out of it.
type pythonImport struct {
	module string // with a dot in front for each folder up, less one
	names  []string
	line   int
}

// pythonText looks at the imports of a text whose first place to look for modules is a folder.
func (s *look) pythonText(text, folder, where string) {
	if s.reach {
		return
	}
	for _, i := range imports(text) {
		at := fmt.Sprintf("%s:%d", where, i.line)
		if dots := len(i.module) - len(strings.TrimLeft(i.module, ".")); dots > 0 {
			up := folder
			for range dots - 1 {
				up = path.Dir(up)
			}
			s.local(up, strings.TrimLeft(i.module, "."), i.names)
			continue
		}
		s.imported(i.module, i.names, folder, at)
	}
}

// imported looks at a module that is imported by its full name.
func (s *look) imported(module string, names []string, folder, where string) {
	top, _, _ := strings.Cut(module, ".")
	heavy := func(name string) bool {
		return s.nano && slices.ContainsFunc(s.rules.Heavy.Modules, func(m string) bool { return name == m || strings.HasPrefix(name, m+".") })
	}
	switch {
	case slices.ContainsFunc(names, func(n string) bool { return heavy(module + "." + n) }) || heavy(module):
		if !s.local(folder, module, names) {
			s.need(space.Need{Kind: space.LackModule, Name: module, Of: space.Python, Where: where, Why: "the rules say so"})
		}
	case s.has.Module(top) || s.nano && (s.modules[top] || s.modules[module]):
	case !s.local(folder, module, names):
		s.need(space.Need{Kind: space.LackModule, Name: top, Of: space.Python, Where: where})
	}
}

// local looks into the files of a module that is one of the space's; false where it is none.
func (s *look) local(folder, module string, names []string) bool {
	found := false
	at := folder
	if module != "" {
		for part := range strings.SplitSeq(module, ".") {
			at = path.Join(at, part)
			found = s.followed(at+".py") || s.followed(path.Join(at, "__init__.py")) || found
		}
	}
	for _, name := range names {
		if name != "*" {
			found = s.followed(path.Join(at, name+".py")) || found
		}
	}
	return found
}

// followed looks into a file of a module, if it is there.
func (s *look) followed(at string) bool {
	if there, seen := s.seen[at]; seen {
		return there
	}
	text, ok := s.file(at)
	if s.seen[at] = ok; ok {
		s.pythonText(text, path.Dir(at), strings.TrimPrefix(at, "/"))
	}
	return ok
}

var (
	plainImport = regexp.MustCompile(`^import\s+(.+)$`)
	fromImport  = regexp.MustCompile(`^from\s+(\.*[\w.]*)\s*import\s+(.+)$`)
	dynamic     = regexp.MustCompile(`(?:__import__|import_module)\(\s*["']([\w.]+)["']`)
)

// imports returns the imports of a text of Python: those that may fail, for they are tried, are left out.
func imports(text string) []pythonImport {
	var found []pythonImport
	tried := -1 // the indentation of the try that is open
	for _, l := range logical(text) {
		if tried >= 0 && l.indent <= tried {
			tried = -1
		}
		if l.text == "try:" || strings.HasPrefix(l.text, "except") || strings.HasPrefix(l.text, "if ") && strings.Contains(l.text,
			"TYPE_CHECKING") {
			if tried < 0 {
				tried = l.indent
			}
			continue
		}
		if tried >= 0 {
			continue
		}
		for statement := range strings.SplitSeq(l.text, ";") {
			statement = strings.TrimSpace(statement)
			if m := plainImport.FindStringSubmatch(statement); m != nil {
				for part := range strings.SplitSeq(m[1], ",") {
					if words := strings.Fields(part); len(words) > 0 {
						found = append(found, pythonImport{module: words[0], line: l.line})
					}
				}
			}
			if m := fromImport.FindStringSubmatch(statement); len(m) == 3 && m[1] != "" {
				i := pythonImport{module: m[1], line: l.line}
				for part := range strings.SplitSeq(strings.Trim(m[2], "() "), ",") {
					if words := strings.Fields(part); len(words) > 0 {
						i.names = append(i.names, words[0])
					}
				}
				found = append(found, i)
			}
		}
		for _, m := range dynamic.FindAllStringSubmatch(l.code, -1) {
			found = append(found, pythonImport{module: m[1], line: l.line})
		}
	}
	return found
}

// line is a logical line of Python.
type line struct {
	text   string // without comments, and with "" for each string
	code   string // without comments
	indent int
	line   int
}

// logical splits a text of Python into its logical lines: what brackets, a backslash or a string of three quotes hold together is one.
func logical(text string) []line {
	var lines []line
	var bare, code strings.Builder
	depth, number, first := 0, 1, 1
	end := func() {
		trimmed := strings.TrimLeft(bare.String(), " \t\f")
		if indent := bare.Len() - len(trimmed); strings.TrimSpace(trimmed) != "" {
			lines = append(lines, line{strings.TrimSpace(trimmed), code.String(), indent, first})
		}
		bare.Reset()
		code.Reset()
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '#':
			for i+1 < len(text) && text[i+1] != '\n' {
				i++
			}
			continue
		case c == '\\' && i+1 < len(text) && text[i+1] == '\n':
			i++
			number++
			bare.WriteByte(' ')
			continue
		case c == '"' || c == '\'':
			length := quoted(text[i:])
			number += strings.Count(text[i:i+length], "\n")
			bare.WriteString(`""`)
			code.WriteString(text[i : i+length])
			i += length - 1
			continue
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth = max(0, depth-1)
		case c == '\n':
			number++
			if depth == 0 {
				end()
				first = number
				continue
			}
			c = ' '
		}
		bare.WriteByte(c)
		code.WriteByte(c)
	}
	end()
	return lines
}

// quoted returns how many bytes the string has that a text begins with.
func quoted(text string) int {
	quote := text[:1]
	if long := strings.Repeat(quote, 3); strings.HasPrefix(text, long) {
		quote = long
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		case text[i] == '\n' && len(quote) == 1:
			return i // it was not closed
		}
	}
	return len(text)
}

// pipValued are options of pip that take the next word, which names no package.
var pipValued = []string{
	"-c", "-t", "-d", "-w", "-e", "--constraint", "--target", "--dest", "--wheel-dir", "--prefix", "--root", "--platform", "--python-version",
	"--editable",
	"--only-binary", "--no-binary",
}

// pip checks what pip or a similar program would install.
func (s *look) pip(program string, rest []word, where string) {
	verb, behind := command.OptionsOf(program).Operand(rest)
	switch verb.Text {
	case "install", "download", "wheel":
	default:
		if command.Fetches(program, verb.Text) {
			s.network("pip "+verb.Text, where)
		}
		return
	}
	if value := s.env["PIP_NO_INDEX"]; value != "" && value != "0" && value != "false" {
		return
	}
	fresh := verb.Text == "download"
	var names []space.Need
	for i := 0; i < len(behind); i++ {
		w := behind[i]
		option, value, valued := strings.Cut(w.Text, "=")
		next := func() word {
			if !valued && i+1 < len(behind) {
				i++
				return behind[i]
			}
			return word{Text: value, Known: w.Known}
		}
		switch {
		case !w.Known:
		case option == "--no-index" || option == "--help" || option == "-h" || option == "-f" || option == "--find-links":
			return // it takes what lies in the space, or fails by itself
		case option == "-r" || option == "--requirement":
			names = append(names, s.requirements(next())...)
		case slices.Contains([]string{"-i", "--index-url", "--extra-index-url", "--proxy"}, option):
			if host, ok := remote(next().Text); !ok || host == "" {
				return // an index of the space's own
			}
		case slices.Contains(pipValued, option):
			next()
		case option == "-U" || option == "--upgrade" || option == "--force-reinstall":
			fresh = true
		case strings.HasPrefix(w.Text, "-"):
		default:
			names = append(names, wantedOf(w.Text, where)...)
		}
	}
	for _, n := range names {
		if fresh && n.Kind == space.LackPackage {
			n.Kind, n.Name, n.Of, n.Remote = space.LackNetwork, "the package "+n.Name, "", false
		}
		s.wanted(n)
	}
}

// wantedOf returns what an argument makes pip fetch: a package, another host, or nothing if it lies in the space.
func wantedOf(text, where string) []space.Need {
	_, url, direct := strings.Cut(text, " @ ")
	if !direct {
		url = text
	}
	url = strings.TrimPrefix(strings.TrimPrefix(url, "git+"), "hg+")
	if host, ok := remote(url); ok {
		if host == "" {
			return nil
		}
		return []space.Need{{Kind: space.LackNetwork, Name: host, Where: where}}
	}
	for _, ending := range []string{".whl", ".zip", ".tar.gz", ".tar.bz2"} {
		if strings.HasSuffix(text, ending) {
			return nil
		}
	}
	if text == "" || direct || strings.ContainsAny(text, "/\\") || strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") {
		return nil
	}
	return []space.Need{{Kind: space.LackPackage, Name: pythonPackage(text), Of: space.Python, Remote: true, Where: where}}
}

// requirements are the packages of a file of requirements.
func (s *look) requirements(name word) (found []space.Need) {
	at, ok := s.at(name.Text)
	if !ok || !name.Known {
		return nil
	}
	text, ok := s.file(at)
	if !ok {
		return nil
	}
	for i, l := range strings.Split(text, "\n") {
		l, _, _ = strings.Cut(l, " #")
		if l = strings.TrimSpace(l); strings.HasPrefix(l, "--no-index") || strings.HasPrefix(l, "--find-links") || strings.HasPrefix(l, "-f ") {
			return nil
		}
		if l != "" && l[0] != '-' && l[0] != '#' {
			found = append(found, wantedOf(l, fmt.Sprintf("%s:%d", strings.TrimPrefix(at, "/"), i+1))...)
		}
	}
	return found
}

// pythonPackage returns the name of a package from an argument such as name[extra]>=1.0; marker.
func pythonPackage(text string) string {
	if i := strings.IndexAny(text, "[<>=!~; @"); i > 0 {
		text = text[:i]
	}
	return text
}

// wanted notes a package to install, unless the tier has it.
func (s *look) wanted(n space.Need) {
	switch {
	case n.Kind == space.LackPackage && s.heavy(s.rules.Heavy.Packages, n.Name):
	case n.Kind == space.LackPackage && s.nano && s.packages[n.Name]:
		return
	case n.Kind == space.LackPackage && n.Of == space.Python && s.has.Known() && s.has.Package(n.Name):
		return
	}
	s.need(n)
}
