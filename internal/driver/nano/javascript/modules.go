package javascript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"agentbox/internal/userland/program"
	"agentbox/internal/userland/vfs"
)

// modules finds the files that a program loads, and turns each into text that the interpreter can run.
type modules struct{ run *run }

// format is how a file's text is meant.
type format uint8

const (
	cjs format = iota + 1
	esm
	jsonText
)

// source is a file that can be evaluated.
type source struct {
	file   string
	text   string
	format format
}

// gasPerByte is the cost of reading and transforming a byte of a program.
const (
	gasPerByte       = 1
	transformPerByte = 60
)

// maxSource is how large a file of a program may be.
const maxSource = 32 << 20

// syntaxError is the name of errors of a transformation, in the place of a code.
const syntaxError = "SyntaxError"

// typed are the extensions that need a transformation, and how.
var typed = map[string]api.Loader{".ts": api.LoaderTS, ".mts": api.LoaderTS, ".cts": api.LoaderTS, ".tsx": api.LoaderTSX,
	".jsx": api.LoaderJSX}

// tried are the extensions that an import may leave out.
var tried = []string{".ts", ".tsx", ".mts", ".cts", ".js", ".mjs", ".cjs", ".jsx", ".json"}

// written matches what only a module holds, at the beginning of a line.
var written = regexp.MustCompile(
	`(?m)^[ ` +
		`\t]*(?:import\s*(?:[\w$*{"']|\{)|export\s*(?:[{*]|default\b|const\b|let\b|var\b|function\b|class\b|async\b|type\b|enum\b|interface\b))|\bimport\.meta\b`)

// imported matches an import that is an expression, which a script may have as well.
var imported = regexp.MustCompile(`^[ \t]*import\s*\(`)

// awaits matches text that may await at its top.
var awaits = regexp.MustCompile(
	`(?m)^(?:(?:const|let|var)\s[^=\n]*=\s*|[\w.$\[\]]+\s*=\s*|console\.\w+\(.*|\w+\(.*|if\s*\(.*|for\s+)?\s*await\b`)

// source reads a file of the program and makes of it what can be evaluated.
func (ms modules) source(file string) (source, error) {
	text, err := ms.read(file)
	if err != nil {
		return source{}, err
	}
	return ms.prepare(text, file, false)
}

func (ms modules) read(file string) (string, error) {
	h, err := ms.run.p.Open(file, vfs.Read)
	if err != nil {
		return "", err
	}
	defer func() { _ = ms.run.p.Close(h) }()
	if h.Info().Size > maxSource {
		return "", vfs.EFBIG
	}
	raw, err := h.ReadAll()
	if err != nil {
		return "", err
	}
	ms.run.account.Release(int64(len(raw)))
	ms.run.p.Charge(len(raw) * gasPerByte)
	return strings.TrimPrefix(string(raw), "\ufeff"), nil
}

// awaitless has async functions written with promises, whose callbacks the prelude can follow.
var awaitless = map[string]bool{"async-await": false, "async-generator": false, "for-await": false, "top-level-await": true}

// The awaits at the top of a module stay, for nothing is before them that could be followed. esbuild refuses them beside functions that it
// rewrites: they are written as topAwait meanwhile, which has the same place in the grammar and which nobody writes.
const topAwait = "void void void void "

// withTopAwaits transforms a module again whose top awaits were refused. Where that is not possible its functions are not followed.
func (ms modules) withTopAwaits(text string, options api.TransformOptions, failed api.TransformResult) (string, api.TransformResult) {
	lines := strings.SplitAfter(text, "\n")
	for n := len(failed.Errors) - 1; n >= 0; n-- {
		at := failed.Errors[n].Location
		if at == nil || at.Line > len(lines) || !strings.HasPrefix(lines[at.Line-1][at.Column:], "await") ||
			strings.HasSuffix(strings.TrimSpace(lines[at.Line-1][:at.Column]), "for") {
			break
		}
		line := lines[at.Line-1]
		lines[at.Line-1] = line[:at.Column] + topAwait + strings.TrimPrefix(line[at.Column:], "await")
	}
	marked := strings.Join(lines, "")
	result := api.Transform(marked, options)
	if len(result.Errors) == 0 {
		result.Code = bytes.ReplaceAll(result.Code, []byte(topAwait), []byte("await "))
		return marked, result
	}
	ms.run.awaited = true
	options.Supported = lowered
	return text, api.Transform(text, options)
}

// lowers reports whether async functions of a text are rewritten: from the first file on that names the module that follows them.
func (ms modules) lowers(text string) bool {
	ms.run.follows = ms.run.follows || !ms.run.cell && strings.Contains(text, "async_hooks")
	if !strings.Contains(text, "async") && !strings.Contains(text, "await") {
		return false
	}
	ms.run.awaited = ms.run.awaited || !ms.run.follows
	return ms.run.follows
}

// prepare finds out what a text is and transforms it where it has to be.
func (ms modules) prepare(text, file string, typescript bool) (source, error) {
	if strings.HasPrefix(text, "#!") {
		text = "//" + text[2:]
	}
	ext := path.Ext(file)
	if ext == ".json" {
		return source{file, text, jsonText}, nil
	}
	if ext == ".node" || ext == ".wasm" {
		ms.lack("a native module")
		return source{}, &thrown{"ERR_UNKNOWN_FILE_EXTENSION", fmt.Sprintf("%s is a native module; a nano space has none", file)}
	}
	loader, transforms := typed[ext]
	if typescript && ext == "" {
		loader, transforms = api.LoaderTS, true
	}
	if !transforms && ms.lowers(text) {
		loader, transforms = api.LoaderJS, true
	}
	if transforms {
		var err error
		if text, err = ms.transform(text, file, loader, api.FormatDefault); err != nil {
			return source{}, err
		}
	}
	s := source{file, text, cjs}
	switch {
	case ext == ".mjs" || ext == ".mts":
		s.format = esm
	case ext == ".cjs" || ext == ".cts":
	case isModule(text), ms.packageType(file) == "module":
		s.format = esm
	case awaits.MatchString(text) && !strings.Contains(text, "module.exports") && awaitsAtTop(text):
		s.format = esm
	}
	if s.format == esm {
		s.text = introduce(file, s.text)
	}
	return s, nil
}

func isModule(text string) bool {
	for _, at := range written.FindAllStringIndex(text, -1) {
		if !imported.MatchString(text[at[0]:min(at[1]+2, len(text))]) {
			return true
		}
	}
	return false
}

// introduce gives a module what import.meta says of it and, where it uses them, the names of CommonJS, without moving a line.
func introduce(file, text string) string {
	var b strings.Builder
	name, _ := json.Marshal(file)
	if strings.Contains(text, "import.meta") {
		fmt.Fprintf(&b, "__agentbox.meta(import.meta,%s);", name)
	}
	if usesRequire.MatchString(text) && !strings.Contains(text, "createRequire") {
		fmt.Fprintf(&b, "const require=__agentbox.requireFrom(%s);", name)
	}
	for _, n := range [...]string{"__dirname", "__filename"} {
		if strings.Contains(text, n) && !strings.Contains(text, "const "+n) && !strings.Contains(text, "let "+n) && !strings.Contains(text,
			"var "+n) {
			value := file
			if n == "__dirname" {
				value = path.Dir(file)
			}
			quoted, _ := json.Marshal(value)
			fmt.Fprintf(&b, "const %s=%s;", n, quoted)
		}
	}
	return b.String() + text
}

var usesRequire = regexp.MustCompile(`(?:^|[^\w.$])require\s*[(.]`)

// cellConfig keeps the unused imports of a cell, which a later cell may use.
const cellConfig = `{"compilerOptions": {"verbatimModuleSyntax": true}}`

// lowered corrects esbuild's table of features: the interpreter lacks some, and has some that esbuild thinks it lacks.
var lowered = map[string]bool{"using": false, "decorators": false, "import-attributes": true}

// plain is like lowered, and has templates become strings in one line.
var plain = map[string]bool{"using": false, "decorators": false, "import-attributes": true, "template-literal": false}

// transform makes JavaScript of a text, and keeps where each part of it came from.
func (ms modules) transform(text, file string, loader api.Loader, to api.Format) (string, error) {
	ms.run.p.Charge(len(text) * transformPerByte)
	options := api.TransformOptions{
		Loader: loader, Format: to, Sourcefile: file, Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude,
		Target:   api.ESNext,
		LogLevel: api.LogLevelSilent, Supported: lowered,
	}
	if ms.run.cell { // a later cell may use what this one imports
		options.TsconfigRaw, options.Supported = cellConfig, supported(text)
	}
	if ms.lowers(text) {
		options.Supported = maps.Clone(options.Supported)
		maps.Copy(options.Supported, awaitless)
	}
	if !ms.run.cell { // few programs tell of a place: then it is transformed once more
		options.Sourcemap = api.SourceMapNone
	}
	result := api.Transform(text, options)
	if ms.lowers(text) && len(result.Errors) > 0 {
		text, result = ms.withTopAwaits(text, options, result)
	}
	if len(result.Errors) > 0 {
		m := result.Errors[0]
		at := file
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d:%d", file, m.Location.Line, m.Location.Column+1)
		}
		return "", &thrown{syntaxError, m.Text + "\n    at " + at}
	}
	m := &sourceMap{raw: result.Map}
	if !ms.run.cell {
		m.again = func() []byte {
			ms.run.p.Charge(len(text) * transformPerByte)
			options.Sourcemap = api.SourceMapExternal
			return api.Transform(text, options).Map
		}
	}
	ms.run.maps[file] = m
	return string(result.Code), nil
}

// module returns the text of a module that was resolved, as a module.
func (ms modules) module(id string) (string, error) {
	if name, ok := strings.CutPrefix(id, "node:"); ok {
		return ms.builtin(name), nil
	}
	s, err := ms.source(id)
	if err != nil {
		return "", err
	}
	quoted, _ := json.Marshal(id)
	switch s.format {
	case esm:
		return s.text, nil
	case jsonText:
		return fmt.Sprintf("export default __agentbox.requireFrom(%s)(%s);", quoted, quoted), nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "const m=__agentbox.requireFrom(%s)(%s);export default m&&m.__esModule&&'default' in m?m.default:m;", quoted, quoted)
	for _, name := range exportedNames(s.text) {
		fmt.Fprintf(&b, "const $%s=m.%s;export{$%s as %s};", name, name, name, name)
	}
	return b.String(), nil
}

// builtin is a module of Node's as an ES module.
func (ms modules) builtin(name string) string {
	var b strings.Builder
	quoted, _ := json.Marshal(name)
	fmt.Fprintf(&b, "const m=__agentbox.builtin(%s);export default m;", quoted)
	for _, n := range ms.run.runtime.exports[name] {
		fmt.Fprintf(&b, "const $%s=m.%s;export{$%s as %s};", n, n, n, n)
	}
	return b.String()
}

var (
	exportsName  = regexp.MustCompile(`(?:\bexports|module\.exports)\.([A-Za-z_$][\w$]*)\s*=[^=]`)
	exportsList  = regexp.MustCompile(`module\.exports\s*=\s*\{([^{}]*)\}`)
	definesName  = regexp.MustCompile(`Object\.defineProperty\(exports,\s*["']([A-Za-z_$][\w$]*)["']`)
	propertyName = regexp.MustCompile(`^\s*(?:async\s+)?([A-Za-z_$][\w$]*)\s*(?:$|[:(,])`)
	exportMap    = regexp.MustCompile(`(?s)__export\(\w+, \{(.*?)\n\}\)`)
)

// exportedNames guesses which names a CommonJS module exports, as Node does.
func exportedNames(text string) []string {
	found := map[string]bool{}
	for _, re := range []*regexp.Regexp{exportsName, definesName} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			found[m[1]] = true
		}
	}
	for _, re := range []*regexp.Regexp{exportsList, exportMap} {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			for part := range strings.SplitSeq(m[1], ",") {
				if p := propertyName.FindStringSubmatch(part); p != nil {
					found[p[1]] = true
				}
			}
		}
	}
	delete(found, "default")
	delete(found, "__esModule")
	return slices.Sorted(mapKeys(found))
}

// required returns the text of a file as CommonJS, for require.
func (ms modules) required(file string) (source, error) {
	if given := ms.run.given; given.file == file && file != "" {
		if path.IsAbs(file) { // the next time it may be another
			ms.run.given = source{}
		}
		return given, nil
	}
	s, err := ms.source(file)
	if err != nil || s.format != esm {
		return s, err
	}
	text, err := ms.read(file)
	if err != nil {
		return s, err
	}
	loader, ok := typed[path.Ext(file)]
	if !ok {
		loader = api.LoaderJS
	}
	s.format = cjs
	s.text, err = ms.transform(text, file, loader, api.FormatCommonJS)
	return s, err
}

// resolveMain finds the file of a program.
func (ms modules) resolveMain(name string) (string, error) {
	cwd, err := ms.run.p.Cwd.Path()
	if err != nil {
		cwd = "/"
	}
	file := name
	if !path.IsAbs(file) {
		file = path.Join(cwd, file)
	}
	if found, ok := ms.find(file); ok {
		return found, nil
	}
	return "", &thrown{"MODULE_NOT_FOUND", fmt.Sprintf("Cannot find module '%s'", file)}
}

// resolve finds the module that a specifier of a file means.
func (ms modules) resolve(from, specifier string, isImport bool) (string, error) {
	name := strings.TrimPrefix(specifier, "node:")
	if _, ok := ms.run.runtime.exports[name]; ok && (name != specifier || !strings.HasPrefix(specifier, ".")) {
		return "node:" + name, nil
	}
	if name != specifier {
		ms.lack("the module " + specifier)
		return "", &thrown{"ERR_UNKNOWN_BUILTIN_MODULE", "No such built-in module: " + specifier}
	}
	folder := path.Dir(from)
	if !path.IsAbs(from) {
		folder, _ = ms.run.p.Cwd.Path()
	}
	if file, ok := strings.CutPrefix(specifier, "file://"); ok {
		specifier = file
	}
	if strings.HasPrefix(specifier, "/") || specifier == "." || specifier == ".." || strings.HasPrefix(specifier, "./") ||
		strings.HasPrefix(specifier, "../") {
		file, _, _ := strings.Cut(specifier, "?")
		if !path.IsAbs(file) {
			file = path.Join(folder, file)
		}
		if found, ok := ms.find(file); ok {
			return found, nil
		}
		return "", ms.missing("module", file, from, isImport)
	}
	if strings.HasPrefix(specifier, "http:") || strings.HasPrefix(specifier, "https:") {
		ms.lack("modules of the network")
		return "", &thrown{"ERR_UNSUPPORTED_ESM_URL_SCHEME", fmt.Sprintf("%s cannot be imported: a nano space has no network", specifier)}
	}
	if found, ok := ms.inPackages(folder, specifier, isImport); ok {
		return found, nil
	}
	pkg := packageName(specifier)
	ms.lack("the package " + pkg)
	return "", ms.missing("package", pkg, from, isImport)
}

func packageName(specifier string) string {
	parts := strings.SplitN(specifier, "/", 3)
	if strings.HasPrefix(specifier, "@") && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

func (ms modules) missing(what, name, from string, isImport bool) error {
	if isImport {
		return &thrown{"ERR_MODULE_NOT_FOUND", fmt.Sprintf("Cannot find %s '%s' imported from %s", what, name, from)}
	}
	return &thrown{"MODULE_NOT_FOUND", fmt.Sprintf("Cannot find module '%s'\nRequire stack:\n- %s", name, from)}
}

// lack reports something that the nano tier does not have, once.
func (ms modules) lack(what string) {
	if ms.run.cell { // it cannot be run elsewhere: a heavier tier has no contexts
		return
	}
	if !ms.run.lacks[what] {
		ms.run.lacks[what] = true
		ms.run.p.Lack(program.LackFeature, what)
	}
}

// find finds a file, with an extension or in a folder that a path leaves out.
func (ms modules) find(file string) (string, bool) {
	kind := ms.kind(file)
	if kind == vfs.Regular {
		return file, true
	}
	for _, ext := range tried {
		if ms.kind(file+ext) == vfs.Regular {
			return file + ext, true
		}
	}
	// TypeScript names the output file.
	for _, pair := range [...][2]string{{".js", ".ts"}, {".js", ".tsx"}, {".mjs", ".mts"}, {".cjs", ".cts"}, {".jsx", ".tsx"}} {
		if stem, ok := strings.CutSuffix(file, pair[0]); ok && ms.kind(stem+pair[1]) == vfs.Regular {
			return stem + pair[1], true
		}
	}
	if kind != vfs.Directory {
		return "", false
	}
	if p, ok := ms.manifest(file); ok && p.Main != "" {
		if main := path.Join(file, p.Main); main != file {
			if found, ok := ms.find(main); ok {
				return found, true
			}
		}
	}
	for _, ext := range tried {
		if ms.kind(file+"/index"+ext) == vfs.Regular {
			return file + "/index" + ext, true
		}
	}
	return "", false
}

func (ms modules) kind(file string) vfs.Kind {
	info, err := ms.run.p.FS.Stat(ms.run.p.At(), file, true)
	if err != nil {
		if ended(err) != nil {
			panic(err)
		}
		return 0
	}
	return info.Kind
}

// compile makes a function of a file's text, of which the first line begins behind the parameters.
func (ms modules) compile(a *arguments) (any, error) {
	file := a.text()
	if a.err != nil {
		return nil, a.err
	}
	s, err := ms.required(file)
	if err != nil {
		return nil, err
	}
	if s.format == jsonText {
		return s.text, nil
	}
	v, threw, err := ms.run.vm.eval("(function (exports, require, module, __filename, __dirname) {"+s.text+"\n})", file, 0)
	if err == nil && threw {
		return value(0), nil
	}
	return v, err
}

// position returns where a place in a file that was transformed came from.
func (ms modules) position(a *arguments) (any, error) {
	file, line, column := a.text(), a.int(), a.int()
	if m := ms.run.maps[file]; m != nil {
		if err := m.parse(); err != nil {
			return nil, err
		}
		line, column = m.original(line, column)
	}
	raw, err := json.Marshal([2]int{line, column})
	return string(raw), err
}

// line returns a line of a file, for an error that names it.
func (ms modules) line(a *arguments) (any, error) {
	file, n := a.text(), a.int()
	if a.err != nil || !path.IsAbs(file) {
		return "", a.err
	}
	text, err := ms.read(file)
	if err != nil {
		return "", nil //nolint:nilerr // the file is gone; the error does not quote it
	}
	for l := range strings.SplitSeq(text, "\n") {
		if n--; n == 0 {
			return strings.TrimSuffix(l, "\r"), nil
		}
	}
	return "", nil
}
