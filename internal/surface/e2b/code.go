package e2b

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The languages of contexts. TypeScript runs in the context of JavaScript, which takes its types away.
const (
	python     = "python"
	javascript = "javascript"
	typescript = "typescript"
)

// display is one form of a value that a cell has shown.
type display struct {
	Artifact string `json:"artifact_id"`
	Value    int    `json:"value"`
	Result   bool   `json:"result"`
	Media    string `json:"mime_type"`
}

// forms are the fields of a result by the media types of /v1.
var forms = map[string]string{
	"text/plain": "text", "text/html": "html", "text/markdown": "markdown", "text/latex": "latex", "image/svg+xml": "svg", "image/png": "png",
	"image/jpeg": "jpeg", "application/json": "json", "application/vnd.agentbox.chart+json": "chart",
}

// language returns the language of a context in /v1.
func language(asked string) (string, error) {
	switch strings.ToLower(asked) {
	case "", python, "python3", "py":
		return python, nil
	case javascript, "js", typescript, "ts":
		return javascript, nil
	}
	return "", invalid("there are no contexts of the language %.32q; there are python, javascript and typescript", asked)
}

// codeInterpreter runs cells in the interpreter contexts of a sandbox.
type codeInterpreter struct {
	api       api
	clock     event.Clock
	ids       *id.Source
	sandboxes *sandboxes
	counts    *table[string, int]    // executions of a context, by sandbox and context
	folders   *table[string, string] // of contexts, by sandbox and context
}

func (ci *codeInterpreter) routes(add func(pattern string, h handler)) {
	add("POST /execute", ci.execute)
	add("GET /contexts", ci.contexts)
	add("POST /contexts", ci.createContext)
	add("POST /contexts/{id}/restart", ci.restartContext)
	add("DELETE /contexts/{id}", ci.deleteContext)
}

// contextOf returns the language and the folder of a context by its id, which says the language.
func (ci *codeInterpreter) contextOf(c *caller, name string) (language, cwd string) {
	cwd, _ = ci.folders.get(c.sandbox + " " + name)
	if strings.HasPrefix(name, "js-") {
		return javascript, cwd
	}
	return python, cwd
}

func (ci *codeInterpreter) createContext(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Language string `json:"language"`
		Cwd      string `json:"cwd"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	lang, err := language(q.Language)
	if err != nil {
		return err
	}
	if _, err := ci.sandboxes.find(r, c, c.sandbox); err != nil {
		return err
	}
	name := map[string]string{python: "py-", javascript: "js-"}[lang] + strings.ToLower(strings.TrimPrefix(string(id.New[id.Request](ci.ids)),
		"req_"))
	if q.Cwd == "" {
		q.Cwd = home
	}
	ci.folders.put(c.sandbox+" "+name, q.Cwd)
	return answer(w, http.StatusCreated, map[string]string{"id": name, "language": lang, "cwd": q.Cwd})
}

func (ci *codeInterpreter) contexts(w http.ResponseWriter, r *http.Request, c *caller) error {
	var found struct {
		Contexts []struct {
			Name     string `json:"name"`
			Language string `json:"language"`
		} `json:"contexts"`
	}
	if err := ci.api.ask(r.Context(), c, http.MethodGet, c.contextURL(""), nil, &found); err != nil {
		return err
	}
	all, seen := []map[string]string{}, map[string]bool{}
	for _, f := range found.Contexts {
		_, cwd := ci.contextOf(c, f.Name)
		if cwd == "" {
			cwd = home
		}
		seen[f.Name] = true
		all = append(all, map[string]string{"id": f.Name, "language": f.Language, "cwd": cwd})
	}
	for key, cwd := range ci.folders.all() { // those in which nothing has run yet have no file
		sandbox, name, _ := strings.Cut(key, " ")
		if sandbox == c.sandbox && !seen[name] {
			lang := python
			if strings.HasPrefix(name, "js-") {
				lang = javascript
			}
			all = append(all, map[string]string{"id": name, "language": lang, "cwd": cwd})
		}
	}
	return answer(w, http.StatusOK, all)
}

func (c *caller) contextURL(rest string) string {
	return "/v1/spaces/" + url.PathEscape(c.sandbox) + "/contexts" + rest
}

// forget removes the variables of a context.
func (ci *codeInterpreter) forget(r *http.Request, c *caller) error {
	name := r.PathValue("id")
	lang, _ := ci.contextOf(c, name)
	err := ci.api.ask(r.Context(), c, http.MethodDelete, c.contextURL("/"+url.PathEscape(name)+"?language="+lang), nil, nil)
	_, known := ci.folders.get(c.sandbox + " " + name)
	if e, ok := errors.AsType[*refusal](err); ok && e.Status == http.StatusNotFound && known {
		return nil // nothing has run in it
	}
	return err
}

func (ci *codeInterpreter) restartContext(w http.ResponseWriter, r *http.Request, c *caller) error {
	if err := ci.forget(r, c); err != nil {
		return err
	}
	return nothing(w)
}

func (ci *codeInterpreter) deleteContext(w http.ResponseWriter, r *http.Request, c *caller) error {
	if err := ci.forget(r, c); err != nil {
		return err
	}
	ci.folders.remove(c.sandbox + " " + r.PathValue("id"))
	return nothing(w)
}

func (ci *codeInterpreter) execute(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Code     string            `json:"code"`
		Context  string            `json:"context_id"`
		Language string            `json:"language"`
		Env      map[string]string `json:"env_vars"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if err := ci.sandboxes.awake(r, c); err != nil {
		return err
	}
	name, lang, cwd := q.Context, "", ""
	if name == "" {
		var err error
		if lang, err = language(q.Language); err != nil {
			return err
		}
		name = map[string]string{python: "default", javascript: "js-default"}[lang]
	} else {
		lang, cwd = ci.contextOf(c, name)
	}
	if cwd == "" {
		cwd = home
	}
	e := &execution{ci: ci, c: c, context: name, language: lang, cwd: cwd, env: q.Env}
	commands, code := []string(nil), q.Code
	if lang == python {
		commands, code = leading(q.Code)
	}
	// A refusal before anything runs is the answer to the request itself.
	begin := func() error { return e.cell(r.Context(), code) }
	if len(commands) > 0 {
		begin = func() error { return e.command(r.Context(), commands[0]) }
	}
	if err := begin(); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	e.out = &lines{stream: &stream{w: w}}
	_ = http.NewResponseController(w).Flush() // the packages wait for the headers
	defer beat(ci.clock, r, func() { _ = e.out.say(map[string]any{"type": "keepalive"}) })()
	if err := e.tell(r.Context(), commands, code); err != nil {
		if r.Context().Err() != nil { // the caller's time is over: so is the cell's
			return ci.api.ask(context.WithoutCancel(r.Context()), c, http.MethodPost, c.runURL(e.run)+"/cancel",
				map[string]any{"reason": "the caller went away"}, nil)
		}
		_ = e.out.say(map[string]any{"type": "error", "name": "AgentboxError", "value": err.Error(), "traceback": err.Error()})
	}
	return nil
}

// execution is the work of one request for code: commands, which are lines that begin with an exclamation mark, and then a cell.
type execution struct {
	ci                     *codeInterpreter
	c                      *caller
	context, language, cwd string
	env                    map[string]string
	run                    string // of the last command or cell that has begun
	out                    *lines
}

// leading returns the commands with which code begins, as notebooks write them: lines that begin with an exclamation mark, and %pip. A
// command goes on in the next line behind a backslash. The rest keeps the numbers of its lines.
func leading(code string) (commands []string, rest string) {
	all, n := strings.Split(code, "\n"), 0
	for ; n < len(all); n++ {
		line := strings.TrimSpace(all[n])
		if line == "" {
			continue
		}
		command, marked := strings.CutPrefix(line, "!")
		if pip, ok := strings.CutPrefix(line, "%pip "); ok {
			command, marked = "pip "+pip, true
		}
		if !marked {
			break
		}
		for strings.HasSuffix(command, "\\") && n+1 < len(all) {
			n++
			command = strings.TrimSuffix(command, "\\") + " " + strings.TrimSpace(all[n])
		}
		commands = append(commands, strings.TrimSpace(command))
	}
	if len(commands) == 0 {
		return nil, code
	}
	return commands, strings.Repeat("\n", n) + strings.Join(all[n:], "\n")
}

// tell tells what the commands and the cell print. The first of them has begun.
func (e *execution) tell(ctx context.Context, commands []string, code string) error {
	for i, command := range commands {
		if i > 0 {
			if err := e.command(ctx, command); err != nil {
				return err
			}
		}
		if err := e.printed(ctx); err != nil {
			return err
		}
	}
	if len(commands) > 0 {
		if strings.TrimSpace(code) == "" {
			return e.counted()
		}
		if err := e.cell(ctx, code); err != nil {
			return err
		}
	}
	return e.shown(ctx)
}

// cell begins a cell.
func (e *execution) cell(ctx context.Context, code string) error {
	cell := map[string]any{"language": e.language, "code": code, "env": e.env, "wait_seconds": 0}
	if at, inside := locate(e.cwd); inside && at != "." {
		cell["cwd"] = at
	}
	return e.begin(ctx, e.c.contextURL("/"+url.PathEscape(e.context)+"/cells"), cell)
}

// command begins a command.
func (e *execution) command(ctx context.Context, line string) error {
	return e.begin(ctx, "/v1/spaces/"+url.PathEscape(e.c.sandbox)+"/runs", map[string]any{"protocolVersion": "1.0", "background": true,
		"operations": []any{operation(line, e.cwd, e.env)}})
}

func (e *execution) begin(ctx context.Context, path string, body map[string]any) error {
	var begun struct {
		Run string `json:"runId"`
	}
	err := e.ci.api.ask(context.WithoutCancel(ctx), e.c, http.MethodPost, path, body, &begun)
	if err == nil {
		e.run = begun.Run
	}
	return err
}

// printed tells what a command prints, until its end. As in a notebook, one that fails or is refused says so on standard error, and is no
// error.
func (e *execution) printed(ctx context.Context) error {
	var last result
	for f, err := range e.ci.api.frames(ctx, e.c, e.run) {
		if err != nil {
			return err
		}
		switch f.kind {
		case "stdout", "stderr":
			raw, err := f.output()
			if err != nil {
				return err
			}
			if err := e.out.text(f.kind, raw, stamp(e.ci.clock.Now())); err != nil {
				return err
			}
		case "event":
			if err := json.Unmarshal(f.data, &last); err != nil {
				return err
			}
		}
	}
	_, err := last.end()
	if refused, ok := errors.AsType[*refusal](err); ok && refused.Code == "permission_denied" {
		return e.out.text("stderr", []byte("the command was not run: "+err.Error()+"\n"), stamp(e.ci.clock.Now()))
	}
	return err
}

// counted tells how often the context was used.
func (e *execution) counted() error {
	key := e.c.sandbox + " " + e.context
	n, _ := e.ci.counts.get(key)
	e.ci.counts.put(key, n+1)
	return e.out.say(map[string]any{"type": "number_of_executions", "execution_count": n + 1})
}

// shown tells what a cell prints, shows and fails with.
func (e *execution) shown(ctx context.Context) error {
	ci, c, out := e.ci, e.c, e.out
	var last result
	var failure bytes.Buffer // possible trace of an error, which the answer reports as the error
	for f, err := range ci.api.frames(ctx, c, e.run) {
		if err != nil {
			return err
		}
		switch f.kind {
		case "stdout", "stderr":
			raw, err := f.output()
			if err != nil {
				return err
			}
			if f.kind == "stderr" {
				failure.Write(raw)
				continue
			}
			if err := out.text("stdout", raw, stamp(ci.clock.Now())); err != nil {
				return err
			}
		case "event":
			if err := json.Unmarshal(f.data, &last); err != nil {
				return err
			}
		}
	}
	if _, err := last.end(); err != nil {
		return err
	}
	trace := ""
	printed := failure.String()
	if last.ExitCode == nil || *last.ExitCode != 0 {
		printed, trace = traceOf(e.language, printed)
	}
	if printed != "" {
		if err := out.text("stderr", []byte(printed), stamp(ci.clock.Now())); err != nil {
			return err
		}
	}
	if err := ci.results(ctx, c, last.Displays, out); err != nil {
		return err
	}
	if last.ExitCode == nil || *last.ExitCode != 0 {
		if err := out.say(failed(trace, last)); err != nil {
			return err
		}
	}
	return e.counted()
}

// results tells what a cell has shown: one result for each value, with all of its forms.
func (ci *codeInterpreter) results(ctx context.Context, c *caller, shown []display, out *lines) error {
	for i := 0; i < len(shown); {
		value := map[string]any{"type": "result", "is_main_result": shown[i].Result}
		first := shown[i].Value
		for ; i < len(shown) && shown[i].Value == first; i++ {
			field := forms[shown[i].Media]
			if field == "" {
				continue
			}
			in, err := c.inner(ctx, http.MethodGet, "/v1/artifacts/"+url.PathEscape(shown[i].Artifact)+"/content", nil)
			if err != nil {
				return err
			}
			w := &buffered{header: http.Header{}}
			ci.api.ServeHTTP(w, in)
			if w.status >= http.StatusBadRequest {
				return refusalOf(w.status, w.header, w.Bytes())
			}
			switch field {
			case "png", "jpeg":
				value[field] = base64.StdEncoding.EncodeToString(w.Bytes())
			case "json", "chart":
				value[field] = json.RawMessage(w.Bytes())
			default:
				value[field] = w.String()
			}
		}
		if err := out.say(value); err != nil {
			return err
		}
	}
	return nil
}

// named is the line of a trace that names the error, as in ValueError: no number. The name of its class may follow those of modules,
// classes and functions, of which E2B tells nothing.
var named = regexp.MustCompile(`^(?:Uncaught )?(?:[A-Za-z_]\w*(?:\.<locals>)?\.)*` +
	`([A-Za-z_]\w*(?:Error|Exception|Interrupt|Exit|Warning|Iteration)?)(?:: ?(.*))?$`)

// traceOf takes the trace of the error that ended a cell from what the cell printed.
func traceOf(lang, printed string) (rest, trace string) {
	begin := strings.LastIndex(printed, "Traceback (most recent call last):")
	if lang == javascript || begin < 0 {
		begin = 0
	}
	return printed[:begin], printed[begin:]
}

// failed is the error of a cell.
func failed(trace string, last result) map[string]any {
	e := map[string]any{"type": "error", "name": "Error", "value": last.Error, "traceback": trace}
	all := strings.Split(strings.TrimSpace(trace), "\n")
	for i := len(all) - 1; i >= 0; i-- {
		m := named.FindStringSubmatch(strings.TrimRight(all[i], "\r"))
		if m == nil || strings.HasPrefix(all[i], " ") || strings.HasPrefix(all[i], "agentbox: ") {
			continue
		}
		e["name"], e["value"] = m[1], strings.Join(append([]string{m[2]}, all[i+1:]...), "\n")
		break
	}
	if trace == "" {
		e["traceback"] = last.Error
	}
	return e
}

// lines writes one JSON object a line, as the code interpreter does.
type lines struct {
	*stream
	rest [4]byte // the beginning of a character whose end has not come
	n    int
}

// text sends output. A character that two frames share goes with the second.
func (l *lines) text(kind string, raw []byte, at string) error {
	raw = append(l.rest[:l.n:l.n], raw...)
	l.n = 0
	for back := 1; back < utf8.UTFMax && back <= len(raw); back++ {
		if tail := raw[len(raw)-back:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				l.n = copy(l.rest[:], tail)
				raw = raw[:len(raw)-back]
			}
			break
		}
	}
	if len(raw) == 0 {
		return nil
	}
	return l.say(map[string]any{"type": kind, "text": string(bytes.ToValidUTF8(raw, []byte("\uFFFD"))), "timestamp": at})
}

// say writes a line in ASCII: a package joins the pieces of a body without care for characters that two of them share.
func (l *lines) say(v map[string]any) error {
	var raw bytes.Buffer
	enc := json.NewEncoder(&raw)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	var out strings.Builder
	for _, r := range raw.String() {
		switch {
		case r < utf8.RuneSelf:
			out.WriteRune(r)
		case r > 0xffff:
			a, b := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, a, b)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.w.Write([]byte(out.String())); err != nil {
		return err
	}
	return http.NewResponseController(l.w).Flush()
}
