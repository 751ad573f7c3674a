package tiering

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/command"
	"agentbox/internal/domain/space"
)

// javascript checks what Node or a similar program would run.
func (s *look) javascript(name string, rest []word, stdin *string, where string) {
	if contextual(rest) {
		return
	}
	text, _, ok := given(rest, command.OptionsOf(name), func(o string) bool {
		return slices.Contains([]string{"-e", "-p", "-pe", "--eval", "--print"}, o)
	})
	if ok {
		s.scriptText(text.Text, s.cwd, where)
		return
	}
	file, behind := command.OptionsOf(name).Operand(rest)
	if file.Text == "run" || file.Text == "test" {
		file, _ = operand(behind)
	}
	switch {
	case file.Text != "" && file.Text != "-":
		if at, ok := s.at(file.Text); ok {
			s.script(at)
		}
	case stdin != nil:
		s.scriptText(*stdin, s.cwd, where)
	}
}

// endings are the endings that an import may omit from the name of a file.
var endings = []string{"", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".json", "/index.js", "/index.ts"}

// script looks into a file of JavaScript or TypeScript, if it is there.
func (s *look) script(at string) bool {
	for _, ending := range endings {
		name := at + ending
		if there, seen := s.seen[name]; seen {
			if there {
				return true
			}
			continue
		}
		text, ok := s.file(name)
		if s.seen[name] = ok; !ok {
			continue
		}
		if !strings.HasSuffix(name, ".json") {
			s.scriptText(text, path.Dir(name), strings.TrimPrefix(name, "/"))
		}
		return true
	}
	return false
}

var specifiers = regexp.MustCompile(`(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)(["'])([^"'\n]+)["']`)

// scriptText looks at the imports of a text of JavaScript.
func (s *look) scriptText(text, folder, where string) {
	if s.reach {
		return
	}
	text = uncommented(text)
	for _, m := range specifiers.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[4]:m[5]]
		at := fmt.Sprintf("%s:%d", where, 1+strings.Count(text[:m[0]], "\n"))
		bare, builtin := strings.CutPrefix(name, "node:")
		top, _, _ := strings.Cut(bare, "/")
		switch {
		case strings.HasPrefix(name, "."):
			s.script(path.Join(folder, name))
		case strings.HasPrefix(name, "/"):
			if place, ok := s.at(name); ok {
				s.script(place)
			}
		case s.heavy(s.rules.Heavy.Modules, "node:"+bare):
			s.need(space.Need{Kind: space.LackModule, Name: "node:" + bare, Of: space.JavaScript, Where: at, Why: "the rules say so"})
		case (builtin || s.node[top]) && s.has.Builtin(bare) || s.nano && s.modules["node:"+bare]:
		case builtin || s.node[top]:
			s.need(space.Need{Kind: space.LackModule, Name: "node:" + bare, Of: space.JavaScript, Where: at})
		default:
			s.scriptPackage(name, folder, at)
		}
	}
}

// nodeModules are the modules that Node has itself, whether nano has them or not.
const nodeModules = `assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events
	fs http http2 https
	inspector module net os path perf_hooks process punycode querystring readline repl stream string_decoder sys timers tls trace_events tty
	url util v8 vm
	wasi worker_threads zlib`

// scriptPackage looks for a package among the files of the space; one that is not there is wanted.
func (s *look) scriptPackage(name, folder, where string) {
	parts := strings.SplitN(name, "/", 3)
	if strings.HasPrefix(name, "@") && len(parts) > 1 {
		name = parts[0] + "/" + parts[1]
	} else {
		name = parts[0]
	}
	heavy := s.heavy(s.rules.Heavy.Packages, name)
	if s.nano && s.packages[name] && !heavy {
		return
	}
	for !heavy {
		if _, ok := s.file(path.Join(folder, "node_modules", name, "package.json")); ok {
			return
		}
		if folder == "/" {
			break
		}
		folder = path.Dir(folder)
	}
	s.need(space.Need{Kind: space.LackPackage, Name: name, Of: space.JavaScript, Where: where})
}

// uncommented returns a text of JavaScript with blanks for its comments.
func uncommented(text string) string {
	out := []byte(text)
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"' || text[i] == '\'':
			i += quoted1(text[i:]) - 1
		case text[i] == '`':
			for i++; i < len(text) && text[i] != '`'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case strings.HasPrefix(text[i:], "//"):
			for ; i < len(text) && text[i] != '\n'; i++ {
				out[i] = ' '
			}
		case strings.HasPrefix(text[i:], "/*"):
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				end = len(text) - i - 4
			}
			for stop := min(i+end+4, len(text)); i < stop; i++ {
				if out[i] != '\n' {
					out[i] = ' '
				}
			}
			i--
		}
	}
	return string(out)
}

// quoted1 returns how many bytes the string of one line has that a text begins with.
func quoted1(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '\n':
			return i
		case text[0]:
			return i + 1
		}
	}
	return len(text)
}

// npm checks what npm or a similar program would install or run.
func (s *look) npm(program string, rest []word, where string, depth int) {
	options := command.OptionsOf(program)
	verb, behind := options.Operand(rest)
	if slices.ContainsFunc(rest[:len(rest)-len(behind)], func(w word) bool {
		return options.Takes(w.Text) && w.Text != "--loglevel" && w.Text != "--registry"
	}) {
		return // it is about another folder
	}
	switch verb.Text {
	case "":
		if program == "yarn" && len(rest) == 0 {
			s.install("install", nil, where)
		}
	case "install", "i", "add", "ci", "update", "up", "upgrade":
		before := rest[:len(rest)-len(behind)-1]
		s.install(verb.Text, slices.Concat(before, behind), where)
	case "exec", "x", "dlx":
		s.fetched(behind, where)
	case "create", "init":
		if first, _ := operand(behind); first.Text != "" {
			s.network("the package create-"+first.Text, where)
		}
	case "run", "run-script", "test", "t", "start":
		name := map[string]string{"test": "test", "t": "test", "start": "start"}[verb.Text]
		if name == "" && len(behind) > 0 {
			name = behind[0].Text
		}
		if m := s.manifest(); m.Scripts[name] != "" && !s.seen["npm run "+name] {
			s.seen["npm run "+name] = true
			s.text(m.Scripts[name], "package.json", depth+1)
		}
	default:
		if command.Fetches(program, verb.Text) {
			s.network(program+" "+verb.Text, where)
		}
	}
}

// valued are options of npm that take the next word.
var valued = []string{
	"--prefix", "--registry", "--omit", "--include", "--save-prefix", "--loglevel", "--workspace", "-w", "--tag", "--cache", "--userconfig",
	"-C", "--dir",
	"--cwd", "--filter",
}

// install notes the packages to install: the named ones, or those of the manifest that are not installed.
func (s *look) install(verb string, behind []word, where string) {
	var names []string
	for i := 0; i < len(behind); i++ {
		w := behind[i]
		option, value, given := strings.Cut(w.Text, "=")
		switch {
		case !w.Known:
			return // what it is, nobody knows
		case slices.Contains([]string{"--offline", "--prefer-offline", "--dry-run", "--package-lock-only", "--help", "-h"}, option):
			return // it takes what lies there, or fails by itself
		case slices.Contains(valued, option):
			if !given && i+1 < len(behind) {
				i++
				value = behind[i].Text
			}
			if !slices.Contains([]string{"--registry", "--omit", "--include", "--loglevel", "--tag", "--save-prefix"}, option) {
				return // it is about another folder
			}
			if host, ok := remote(value); option == "--registry" && (!ok || host == "") {
				return // a registry of the space's own
			}
		case strings.HasPrefix(w.Text, "-"):
		default:
			names = append(names, w.Text)
		}
	}
	for _, name := range names {
		if !lies(name) {
			s.wanted(space.Need{Kind: space.LackPackage, Name: nodePackage(name), Of: space.JavaScript, Remote: true, Where: where})
		}
	}
	if len(names) > 0 {
		return
	}
	m := s.manifest()
	for _, name := range slices.Sorted(maps.Keys(m.wants())) {
		if lies(m.wants()[name]) {
			continue
		}
		if _, there := s.file(path.Join(s.cwd, "node_modules", name, "package.json")); !there || verb == "ci" {
			s.wanted(space.Need{Kind: space.LackPackage, Name: name, Of: space.JavaScript, Remote: true, Where: "package.json"})
		}
	}
}

// lies reports whether the package that npm would install lies in the space.
func lies(spec string) bool {
	for _, start := range []string{"./", "../", "/", "~/", "file:", "link:", "workspace:", "portal:"} {
		if strings.HasPrefix(spec, start) {
			return true
		}
	}
	archive := strings.HasSuffix(spec, ".tgz") || strings.HasSuffix(spec, ".tar.gz")
	return spec == "." || spec == ".." || archive && !strings.Contains(spec, "://")
}

// fetched looks at a program of a package that is run: where it was not installed, it is fetched.
func (s *look) fetched(rest []word, where string) {
	for _, w := range rest {
		if slices.Contains([]string{"--no", "--no-install", "--offline", "-c", "--call", "-p", "--package"}, w.Text) || !w.Known {
			return
		}
	}
	first, _ := operand(rest)
	name := nodePackage(first.Text)
	if name == "" || lies(name) {
		return
	}
	for _, file := range []string{".bin/" + name, name + "/package.json", ".package-lock.json", ".yarn-integrity"} {
		if _, there := s.file(path.Join(s.cwd, "node_modules", file)); there {
			return // it may be there
		}
	}
	s.wanted(space.Need{Kind: space.LackPackage, Name: name, Of: space.JavaScript, Remote: true, Where: where})
}

type manifest struct {
	Scripts      map[string]string `json:"scripts"`
	Dependencies map[string]string `json:"dependencies"`
	Development  map[string]string `json:"devDependencies"`
}

func (m manifest) wants() map[string]string {
	all := map[string]string{}
	maps.Copy(all, m.Dependencies)
	maps.Copy(all, m.Development)
	return all
}

func (s *look) manifest() (m manifest) {
	if text, ok := s.file(path.Join(s.cwd, "package.json")); ok {
		_ = json.Unmarshal([]byte(text), &m) // what cannot be read says nothing
	}
	return m
}

// nodePackage returns the name of a package from an argument such as @scope/name@1.0.
func nodePackage(text string) string {
	if i := strings.LastIndexByte(text, '@'); i > 0 {
		text = text[:i]
	}
	return text
}
