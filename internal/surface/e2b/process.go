package e2b

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// pid names a command of a sandbox.
type pid struct {
	sandbox string
	number  uint32
}

// numberOf is the number of a run: the same each time, without a table that a restart would lose.
func numberOf(run string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(run)) // it never fails
	return h.Sum32()&0x3fffffff | 1
}

// The bounds of a command.
const (
	maxCommand = 4000                   // characters of a command of a run; longer ones become a script
	notYet     = 250 * time.Millisecond // between two tries to reach a command that has not started
	keepalive  = 45 * time.Second       // the packages give up after 300 seconds of silence, and ask for a sign every 50
)

type process struct {
	Cmd  string            `json:"cmd"`
	Args []string          `json:"args"`
	Env  map[string]string `json:"envs"`
	Cwd  string            `json:"cwd"`
}

type terminal struct {
	Size struct {
		Cols int `json:"cols"`
		Rows int `json:"rows"`
	} `json:"size"`
}

type selector struct {
	Process struct {
		PID uint32 `json:"pid"`
		Tag string `json:"tag"`
	} `json:"process"`
}

type input struct {
	Stdin string `json:"stdin"`
	PTY   string `json:"pty"`
}

// line returns the command line of a process. The packages run every command in a login shell, which a run's command has already.
func (p process) line() string {
	shell := p.Cmd == "/bin/bash" || p.Cmd == "bash" || p.Cmd == "/bin/sh"
	if n := len(p.Args); shell && n >= 2 && strings.HasSuffix(p.Args[n-2], "c") && strings.HasPrefix(p.Args[n-2], "-") {
		return p.Args[n-1]
	}
	words := []string{quoted(p.Cmd)}
	if shell {
		words[0] = p.Cmd
	}
	for _, a := range p.Args {
		if strings.Trim(a, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:") != "" || a == "" {
			a = quoted(a)
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// operation returns the operation of a run for a command line in a folder.
func operation(line, cwd string, env map[string]string) map[string]any {
	op := map[string]any{"type": "shell", "id": "command"}
	if env == nil {
		env = map[string]string{}
	}
	at, inside := locate(cwd)
	if inside && at != "." {
		op["cwd"] = at
	}
	if !inside {
		line = "cd -- " + quoted(at) + " && { " + line + "\n}"
	}
	op["command"], op["env"] = line, env
	return op
}

// processes starts the commands of a sandbox, follows them, and gives them input and signals.
type processes struct {
	api       api
	clock     event.Clock
	ids       *id.Source
	sandboxes *sandboxes
	files     *fileSystem // takes the script of a command that is too long
	runs      *table[pid, string]
}

func (ps *processes) routes(add func(pattern string, h handler)) {
	const calls = "POST /process.Process/"
	add(calls+"Start", ps.start)
	add(calls+"Connect", ps.follow)
	add(calls+"List", ps.list)
	add(calls+"SendInput", ps.sendInput)
	add(calls+"StreamInput", ps.streamInput)
	add(calls+"CloseStdin", ps.give(func(json.RawMessage) (map[string]any, error) { return map[string]any{"close": true}, nil }))
	add(calls+"SendSignal", ps.signal)
	add(calls+"Update", ps.give(resize))
}

func (ps *processes) start(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Process process   `json:"process"`
		PTY     *terminal `json:"pty"`
		Tag     string    `json:"tag"`
		Stdin   *bool     `json:"stdin"`
	}
	if err := first(r, &q); err != nil {
		return err
	}
	if err := ps.sandboxes.awake(r, c); err != nil {
		return err
	}
	line, err := ps.short(r.Context(), c, q.Process.line())
	if err != nil {
		return gone(err)
	}
	op := operation(line, q.Process.Cwd, q.Process.Env)
	switch {
	case q.PTY != nil:
		op["pty"] = map[string]int{"cols": q.PTY.Size.Cols, "rows": q.PTY.Size.Rows}
	case q.Stdin != nil && *q.Stdin:
		op["stdin"] = true
	}
	if q.Tag != "" {
		op["tag"] = q.Tag
	}
	ctx, expired, stop := limit(ps.clock, r)
	defer stop()
	run, err := ps.begin(context.WithoutCancel(ctx), c, map[string]any{"protocolVersion": "1.0", "operations": []any{op}, "background": true})
	if err != nil {
		return gone(err)
	}
	out := newStream(w)
	err = ps.tell(ctx, out, r, c, run, q.PTY != nil)
	if expired() {
		_ = ps.api.ask(context.WithoutCancel(ctx), c, http.MethodPost, c.runURL(run)+"/cancel",
			map[string]any{"reason": "its time was over"}, nil)
	}
	finish(out, err, expired())
	return nil
}

// short returns a command line that fits a run. A longer one becomes a script among the space's files, which removes itself.
func (ps *processes) short(ctx context.Context, c *caller, line string) (string, error) {
	if utf8.RuneCountInString(line) <= maxCommand {
		return line, nil
	}
	name := ".e2b-command-" + string(id.New[id.Request](ps.ids)) + ".sh"
	if err := ps.files.store(ctx, c, name, strings.NewReader("rm -f -- "+workspace+"/"+name+"\n"+line+"\n")); err != nil {
		return "", err
	}
	return "bash " + workspace + "/" + name, nil
}

// finish ends the stream of a command.
func finish(out *stream, err error, expired bool) {
	if expired {
		err = &refusal{Code: "deadline_exceeded", Message: "the time of the command is over"}
	}
	out.end(err)
}

// begin starts a run and returns its id.
func (ps *processes) begin(ctx context.Context, c *caller, message map[string]any) (string, error) {
	var begun struct {
		Run string `json:"runId"`
	}
	err := ps.api.ask(ctx, c, http.MethodPost, "/v1/spaces/"+url.PathEscape(c.sandbox)+"/runs", message, &begun)
	if err == nil {
		ps.runs.put(pid{c.sandbox, numberOf(begun.Run)}, begun.Run)
	}
	return begun.Run, err
}

// limit returns a context that ends with the time of a call, and a function that says whether that is why it ended.
func limit(clock event.Clock, r *http.Request) (ctx context.Context, expired func() bool, stop func()) {
	ctx, cancel := context.WithCancelCause(r.Context())
	unset := func() {}
	began, most := clock.Now(), time.Duration(0)
	if ms, err := strconv.ParseInt(r.Header.Get("Connect-Timeout-Ms"), 10, 64); err == nil && ms > 0 {
		most = time.Duration(min(ms, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
		unset = after(clock, most, func() { cancel(errTime) })
	}
	expired = func() bool { // a package that counts the time itself may go a moment before
		return errors.Is(context.Cause(ctx), errTime) || ctx.Err() != nil && most > 0 && clock.Now().Sub(began) > most-most/10
	}
	return ctx, expired, func() { unset(); cancel(nil) }
}

var errTime = errors.New("the time of the call is over")

// occurs is an event of a command.
func occurs(kind string, v any) map[string]any {
	return map[string]any{"event": map[string]any{kind: v}}
}

// tell sends the output of a run until its end.
func (ps *processes) tell(ctx context.Context, out *stream, r *http.Request, c *caller, run string, pty bool) error {
	if err := out.send(occurs("start", map[string]any{"pid": numberOf(run)})); err != nil {
		return err
	}
	defer beat(ps.clock, r, func() { _ = out.send(occurs("keepalive", map[string]any{})) })()
	var last result
	for f, err := range ps.api.frames(ctx, c, run) {
		if err != nil {
			return err
		}
		switch f.kind {
		case "stdout", "stderr":
			kind := f.kind
			if pty {
				kind = "pty"
			}
			raw, err := f.output()
			if err != nil {
				return err
			}
			if err := out.send(occurs("data", map[string]any{kind: base64.StdEncoding.EncodeToString(raw)})); err != nil {
				return err
			}
		case "event":
			if err := json.Unmarshal(f.data, &last); err != nil {
				return err
			}
		}
	}
	end, err := last.end()
	if e, refused := errors.AsType[*refusal](err); refused && e.Code == "permission_denied" {
		said := base64.StdEncoding.EncodeToString([]byte(err.Error() + "\n"))
		if err := out.send(occurs("data", map[string]any{"stderr": said})); err != nil {
			return err
		}
		end, err = result{Type: "shell", ExitCode: last.notRun()}.end()
	}
	if err != nil {
		return err
	}
	return out.send(occurs("end", end))
}

// output returns the bytes of a frame of output.
func (f frame) output() ([]byte, error) {
	var o output
	if err := json.Unmarshal(f.data, &o); err != nil {
		return nil, err
	}
	if o.Encoding == "base64" {
		return base64.StdEncoding.DecodeString(o.Data)
	}
	return []byte(o.Data), nil
}

// result is the result event of a command.
type result struct {
	Type     string    `json:"type"`
	ExitCode *int      `json:"exitCode"`
	Stdout   *string   `json:"stdout"`
	Stderr   *string   `json:"stderr"`
	Error    string    `json:"error"`
	Limit    string    `json:"limit"`
	Reason   string    `json:"reason"`
	Word     string    `json:"reasonCode"`
	Message  string    `json:"message"`
	Advice   string    `json:"suggestion"`
	Displays []display `json:"displays"`
}

// notRun is with which code a shell ends a command that it does not run: 127 where there is no such program, else 126. A command that has
// started for the package ends like this, because frameworks wait for ever for one that breaks off instead.
func (r result) notRun() *int {
	code := 126
	if r.Word == space.NoProgramCode {
		code = 127
	}
	return &code
}

// end returns the end event of a command, or the reason why it did not run.
func (r result) end() (map[string]any, error) {
	if r.ExitCode != nil {
		end := map[string]any{"exitCode": *r.ExitCode, "exited": true, "status": "exit status " + strconv.Itoa(*r.ExitCode)}
		if r.Error != "" {
			end["error"] = r.Error
		}
		return end, nil
	}
	said := r.Reason
	for _, more := range []string{r.Message, r.Error} {
		if said == "" {
			said = more
		}
	}
	switch {
	case r.Type == "" || r.Word == "run_cancelled" || r.Type == "shell" && said == "":
		return map[string]any{"exitCode": 137, "exited": false, "status": "signal: killed", "error": "signal: killed"}, nil
	case r.Type == "approvalRequired":
		return nil, &refusal{Status: http.StatusForbidden, Code: "permission_denied", Message: "a person was asked and has not approved: " + said}
	}
	if r.Advice != "" {
		said += " (" + r.Advice + ")"
	}
	return nil, &refusal{Status: http.StatusForbidden, Code: "permission_denied", Word: r.Word, Message: said}
}

func (ps *processes) follow(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q selector
	if err := first(r, &q); err != nil {
		return err
	}
	found, err := ps.command(r.Context(), c, q)
	if err != nil {
		return err
	}
	ctx, expired, stop := limit(ps.clock, r)
	defer stop()
	out := newStream(w)
	err = ps.tell(ctx, out, r, c, found.ID, found.PTY != nil)
	finish(out, err, expired())
	return nil
}

// runDoc is a run, as far as the surface needs it.
type runDoc struct {
	ID         string          `json:"run_id"`
	Status     string          `json:"status"`
	Tag        string          `json:"tag"`
	PTY        json.RawMessage `json:"pty"`
	Operations []struct {
		Summary string `json:"summary"`
	} `json:"operations"`
}

func (d runDoc) ended() bool {
	return d.Status == "succeeded" || d.Status == "failed" || d.Status == "cancelled"
}

// command returns the command that a request selects.
func (ps *processes) command(ctx context.Context, c *caller, q selector) (runDoc, error) {
	if run, ok := ps.runs.get(pid{c.sandbox, q.Process.PID}); ok && q.Process.Tag == "" {
		var d runDoc
		return d, ps.api.ask(ctx, c, http.MethodGet, c.runURL(run), nil, &d)
	}
	var found *runDoc
	err := ps.commands(ctx, c, "", func(d runDoc) bool {
		if q.Process.Tag == "" && numberOf(d.ID) == q.Process.PID || q.Process.Tag != "" && d.Tag == q.Process.Tag {
			found = &d
		}
		return found == nil
	})
	if err != nil {
		return runDoc{}, err
	}
	if found == nil {
		return runDoc{}, notFound("there is no process %d in the sandbox", q.Process.PID)
	}
	return *found, nil
}

// commands reads the commands of a sandbox, the newest first, until take has enough.
func (ps *processes) commands(ctx context.Context, c *caller, status string, take func(runDoc) (more bool)) error {
	for cursor := ""; ; {
		q := url.Values{"background": {"true"}, "limit": {"100"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if status != "" {
			q.Set("status", status)
		}
		var page struct {
			Runs []runDoc `json:"runs"`
			Next string   `json:"next_cursor"`
		}
		if err := ps.api.ask(ctx, c, http.MethodGet, "/v1/spaces/"+url.PathEscape(c.sandbox)+"/runs?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		for _, d := range page.Runs {
			if !take(d) {
				return nil
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

func (ps *processes) list(w http.ResponseWriter, r *http.Request, c *caller) error {
	all := []map[string]any{}
	for _, status := range []string{"queued", "running", "awaiting_approval"} {
		err := ps.commands(r.Context(), c, status, func(d runDoc) bool {
			line := ""
			if len(d.Operations) > 0 {
				line = d.Operations[0].Summary
			}
			p := map[string]any{"pid": numberOf(d.ID), "config": map[string]any{"cmd": "/bin/bash", "args": []string{"-l", "-c", line},
				"envs": map[string]string{}, "cwd": home}}
			if d.Tag != "" {
				p["tag"] = d.Tag
			}
			all = append(all, p)
			return true
		})
		if err != nil {
			return err
		}
	}
	return answer(w, http.StatusOK, map[string]any{"processes": all})
}

// give answers a call that gives a command something, which build makes from the request.
func (ps *processes) give(build func(json.RawMessage) (map[string]any, error)) handler {
	return func(w http.ResponseWriter, r *http.Request, c *caller) error {
		var raw json.RawMessage
		if err := read(r, &raw); err != nil {
			return err
		}
		var q selector
		if err := json.Unmarshal(raw, &q); err != nil {
			return invalid("the body names no process")
		}
		given, err := build(raw)
		if err != nil {
			return err
		}
		if err := ps.given(r.Context(), c, q, given); err != nil {
			return err
		}
		return answer(w, http.StatusOK, map[string]any{})
	}
}

// given gives a command something.
func (ps *processes) given(ctx context.Context, c *caller, q selector, given map[string]any) error {
	found, err := ps.command(ctx, c, q)
	if err == nil && found.ended() {
		err = notFound("the process %d has ended", q.Process.PID)
	}
	if err != nil {
		return err
	}
	for {
		err = ps.api.ask(ctx, c, http.MethodPost, "/v1/runs/"+url.PathEscape(found.ID)+"/input", given, nil)
		e, ok := errors.AsType[*refusal](err)
		if ok && e.Word == "run_already_ended" {
			return notFound("the process %d has ended", q.Process.PID)
		}
		if !ok || e.Word != "run_not_started" || given["signal"] != nil {
			return err
		}
		again, stop := ps.clock.NewTimer(notYet) // a person may be asked about the command; it gets its input once it runs
		select {
		case <-again:
			stop()
		case <-ctx.Done():
			stop()
			return err
		}
	}
}

func resize(raw json.RawMessage) (map[string]any, error) {
	var q struct {
		PTY *terminal `json:"pty"`
	}
	if err := json.Unmarshal(raw, &q); err != nil || q.PTY == nil {
		return nil, invalid("the body names no size of a terminal")
	}
	return map[string]any{"resize": map[string]int{"cols": q.PTY.Size.Cols, "rows": q.PTY.Size.Rows}}, nil
}

// maxGiven is how many bytes /v1 takes at once.
const maxGiven = 65_536

// put gives a command bytes, in pieces that /v1 takes.
func (ps *processes) put(ctx context.Context, c *caller, q selector, in input) error {
	kind, text := "stdin", in.Stdin
	if in.PTY != "" {
		kind, text = "pty", in.PTY
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return invalid("the input is not base64")
	}
	for len(raw) > 0 {
		n := min(len(raw), maxGiven)
		if err := ps.given(ctx, c, q, map[string]any{kind: base64.StdEncoding.EncodeToString(raw[:n])}); err != nil {
			return err
		}
		raw = raw[n:]
	}
	return nil
}

func (ps *processes) sendInput(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		selector
		Input input `json:"input"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if err := ps.put(r.Context(), c, q.selector, q.Input); err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{})
}

func (ps *processes) streamInput(w http.ResponseWriter, r *http.Request, c *caller) error {
	var to selector
	for {
		raw, err := nextFrame(r.Body)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		var m struct {
			Start *selector `json:"start"`
			Data  *struct {
				Input input `json:"input"`
			} `json:"data"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return invalid("a message of the input is not JSON")
		}
		if m.Start != nil {
			to = *m.Start
		}
		if m.Data != nil {
			if err := ps.put(r.Context(), c, to, m.Data.Input); err != nil {
				return err
			}
		}
	}
	out := newStream(w)
	err := out.send(map[string]any{})
	out.end(nil)
	return err
}

func (ps *processes) signal(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		selector
		Signal json.RawMessage `json:"signal"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	name := strings.TrimPrefix(strings.Trim(string(q.Signal), `"`), "SIGNAL_")
	if n, ok := map[string]string{"9": "SIGKILL", "15": "SIGTERM"}[name]; ok {
		name = n
	}
	err := ps.given(r.Context(), c, q.selector, map[string]any{"signal": name})
	e, refused := errors.AsType[*refusal](err)
	if refused && name == "SIGKILL" && e.Code != "not_found" { // a tier without signals, or a command that needs an approval
		var found runDoc
		if found, err = ps.command(r.Context(), c, q.selector); err == nil {
			err = ps.api.ask(r.Context(), c, http.MethodPost, c.runURL(found.ID)+"/cancel", map[string]any{"reason": "killed"}, nil)
		}
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{})
}
