// Package agents is the loop of an agent: it asks a model, makes the tool calls that the model proposes, and goes on to the task's end.
//
// A Conversation decides. It is pure: the same answers and results in the same order lead to the same requests. So the loop resumes an
// interrupted run by replaying its record, and a replay needs no model.
package agents

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Bounds of a conversation.
const (
	maxCut      = 3 // cut answers in a row
	maxEmpty    = 2 // empty answers in a row
	warnSame    = 3 // equal turns in a row, after which the loop warns the model
	maxSame     = 6 // equal turns in a row, after which the run ends
	maxCalls    = errand.MaxCalls
	maxSummary  = 2_000     // characters of the report that a list shows
	bytesAToken = 3         // estimates the length of a context; a token of English has about four bytes
	stub        = 200       // characters of a shortened result
	maxRead     = 1_000_000 // characters of one read_result; the blueprint may say less
)

// The failures with which the loop ends a run.
const (
	FailSteps    = "step_limit"
	FailTokens   = "token_limit"
	FailTime     = "time_limit"
	FailContext  = "context_overflow"
	FailLoop     = "loop_detected"
	FailEmpty    = "empty_answer"
	FailCut      = "answer_cut"
	FailRefused  = "model_refused"
	FailFiltered = "model_filtered"
)

// Conversation is the state of an agent's run. Make it with Begin. Then repeat: do what Next asks for, and report it with Answered,
// Overflowed or Acted.
type Conversation struct {
	def     blueprint.Blueprint // with its defaults
	tools   []tool.Tool
	offered []model.Tool // the tools as requests offer them
	key     string
	task    string
	plain   bool // the model calls tools in plain text

	pictures []model.Part // of the task

	before    []turn // of the earlier runs whose conversation this is
	leftOut   bool   // the requests leave some of them out
	turns     []turn
	heard     []string // since the last request
	end       *errand.Result
	used      model.Usage
	worked    time.Duration // of models and tools
	cut       int           // answers in a row that were cut
	empty     int           // answers in a row that said nothing
	same      int           // turns in a row that were the same
	last      event.Digest  // of the calls and results of the last turn
	shortened int           // the results of so many turns from the first on are sent shortened
	budget    int           // of the context, in tokens
	sent      int           // tokens of the last request
	over      int           // tokens of the last request that did not fit into the model's window; 0 for none
}

// turn is one answer of a model, with the results of its calls.
type turn struct {
	first   bool         // it begins an earlier run, whose task is heard[0]
	shown   []model.Part // the pictures of that task
	heard   []string     // messages of people before it
	answer  model.Answer
	calls   []model.Call // that the answer wants
	plain   bool         // it wants them in plain text
	results []model.Result
	note    string // the loop's own message after it
}

// Next is the next step of a conversation. One of the fields is set.
type Next struct {
	Request *model.Request // ask a model
	Calls   []model.Call   // make these calls
	End     *errand.Result // end the run with this result
}

// Begin returns the conversation of a new run. The key identifies it for the endpoint's prompt cache.
func Begin(def blueprint.Blueprint, tools []tool.Tool, key, task string) *Conversation {
	def = def.Effective()
	c := &Conversation{def: def, tools: tools, key: key, task: task, budget: def.Context.Tokens}
	for _, t := range tools {
		c.offered = append(c.offered, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Input}.Prepared())
	}
	return c
}

// Turn returns the number of the next request, from 0 on. While the calls of an answer have no results, it is the number of that request.
func (c *Conversation) Turn() int {
	if n := len(c.turns); n > 0 && c.waiting() {
		return n - 1
	}
	return len(c.turns)
}

// Work tells how long a model or tools have worked for the last answer or its calls.
func (c *Conversation) Work(d time.Duration) { c.worked += max(d, 0) }

// Left returns how long models and tools may still work.
func (c *Conversation) Left() time.Duration {
	return time.Duration(c.def.Limits.Seconds)*time.Second - c.worked
}

// waiting reports whether calls of the last answer have no results yet.
func (c *Conversation) waiting() bool {
	if len(c.turns) == 0 {
		return false
	}
	t := c.turns[len(c.turns)-1]
	return t.results == nil && len(t.calls) > 0
}

// Speak says by which protocol the model calls tools. It is called before anything else.
func (c *Conversation) Speak(protocol string) { c.plain = protocol == errand.ByText }

// calls returns the calls of the last answer.
func (c *Conversation) calls() []model.Call { return c.turns[len(c.turns)-1].calls }

// Hear adds a message that a person sends while the agent works. The next request contains it.
func (c *Conversation) Hear(said string) { c.heard = append(c.heard, said) }

// Next returns the next step of the conversation.
func (c *Conversation) Next() Next {
	switch {
	case c.end != nil:
		return Next{End: c.end}
	case c.waiting():
		return Next{Calls: c.calls()}
	case len(c.turns) >= c.def.Limits.Steps:
		return c.fail(FailSteps, "the limit of %d requests to a model was reached", c.def.Limits.Steps)
	case c.def.Limits.Tokens > 0 && total(c.used) >= c.def.Limits.Tokens:
		return c.fail(FailTokens, "the limit of %d tokens was reached: %d were used", c.def.Limits.Tokens, total(c.used))
	}
	if c.Left() <= 0 {
		return c.late()
	}
	r, ok := c.request()
	c.sent = tokens(r)
	if !ok {
		return c.fail(FailContext, "the context does not fit into %d tokens, even with its results shortened", c.budget)
	}
	return Next{Request: &r}
}

func total(u model.Usage) int { return u.Input + u.CacheRead + u.CacheWrite + u.Output }

func (c *Conversation) fail(code, format string, args ...any) Next {
	c.end = &errand.Result{Failure: code, Message: fmt.Sprintf(format, args...), Output: c.output("")}
	return Next{End: c.end}
}

// late ends the run at the limit of its time.
func (c *Conversation) late() Next {
	return c.fail(FailTime, "models and tools have worked for the %d seconds that limits.seconds permits", c.def.Limits.Seconds)
}

// Answered tells the answer to the last request.
func (c *Conversation) Answered(a model.Answer) {
	c.used = c.used.Add(a.Usage)
	t := turn{heard: c.heard, answer: a, calls: a.Calls(), plain: c.plain}
	c.heard = nil
	text := a.Text()
	if c.plain && (a.Stop == model.StopEnd || a.Stop == model.StopTools) { // the calls of an incomplete answer are not made
		t.calls = append(t.calls, operationsIn(text)...)
	}
	calls := t.calls
	blank := strings.TrimSpace(text) == ""
	if a.Stop != model.StopLength {
		c.cut = 0
	}
	if !blank || len(calls) > 0 {
		c.empty = 0
	}
	switch {
	case a.Stop == model.StopRefusal:
		c.turns = append(c.turns, t)
		c.fail(FailRefused, "the model will not do this: %.500s", text)
		return
	case a.Stop == model.StopFilter:
		c.turns = append(c.turns, t)
		c.fail(FailFiltered, "a filter of the endpoint cut the answer")
		return
	case a.Stop == model.StopOverflow:
		c.narrow()
		if !blank { // else the next request would end with the model's own words
			t.note = saidCut
		}
	case a.Stop == model.StopLength:
		if c.cut++; c.cut > maxCut {
			c.turns = append(c.turns, t)
			c.fail(FailCut, "%d answers in a row were cut at their limit", c.cut)
			return
		}
		t.note = saidCut
	case len(calls) > maxCalls:
		t.results = make([]model.Result, len(calls))
		for i, call := range calls {
			t.results[i] = model.Result{ID: call.ID, Failed: true, Text: fmt.Sprintf("not made: an answer has at most %d calls", maxCalls)}
		}
	case len(calls) > 0: // their results follow
	case blank:
		if c.empty++; c.empty > maxEmpty {
			c.turns = append(c.turns, t)
			c.fail(FailEmpty, "%d answers in a row were empty", c.empty)
			return
		}
		t.note = saidEmpty
	default:
		c.turns = append(c.turns, t)
		summary, _ := tool.Excerpt(text, maxSummary, "The output holds all of it.")
		c.end = &errand.Result{Summary: summary, Output: c.output(text)}
		return
	}
	c.turns = append(c.turns, t)
}

// Overflowed notes that the request did not fit into the model's window. That is a turn without an answer. The next request is shorter.
func (c *Conversation) Overflowed() {
	c.narrow()
	c.turns = append(c.turns, turn{heard: c.heard})
	c.heard = nil
}

// narrow makes the next request shorter than the last one, whatever the window is.
func (c *Conversation) narrow() {
	if c.sent > 0 {
		c.budget, c.over = min(c.budget, c.sent), c.sent
	}
	c.budget = c.budget * 7 / 10
}

// Acted adds the results of the calls, in the order of the calls.
func (c *Conversation) Acted(results []model.Result) {
	t := &c.turns[len(c.turns)-1]
	t.results = results
	if now := signature(t.calls, results); now == c.last {
		c.same++
	} else {
		c.same, c.last = 1, now
	}
	switch {
	case c.same >= maxSame:
		c.fail(FailLoop, "%d turns in a row made the same calls with the same results", c.same)
	case c.same >= warnSame:
		t.note = saidSame
	}
}

// signature hashes the calls and results of a turn. Equal turns have the same signature.
func signature(calls []model.Call, results []model.Result) event.Digest {
	var b strings.Builder
	for i, call := range calls {
		fmt.Fprintf(&b, "%q %q %q\n", call.Name, call.Arguments, results[i].Text)
	}
	return event.DigestOf([]byte(b.String()))
}

// output returns the output of the run as JSON. It cuts the middle out of a report that is too long.
func (c *Conversation) output(report string) json.RawMessage {
	for limit := utf8.RuneCountInString(report); ; limit /= 2 {
		shown, _ := tool.Excerpt(report, limit, "The last answer of the run holds all of it.")
		raw, err := json.Marshal(struct {
			Report string      `json:"report,omitempty"`
			Turns  int         `json:"turns"`
			Usage  model.Usage `json:"usage"`
			Worked int64       `json:"worked_ms"`
		}{shown, len(c.turns), c.used, c.worked.Milliseconds()})
		if err != nil {
			return nil
		}
		if len(raw) <= run.MaxReport {
			return raw
		}
	}
}

// request returns the next request, and false if it does not fit into the context.
func (c *Conversation) request() (model.Request, bool) {
	r := c.build()
	if tokens(r) <= c.budget {
		return r, true
	}
	// Shorten enough for several turns at once, so that the beginning of the requests stays the same for the endpoint's cache.
	for c.shortened < len(c.before)+len(c.turns) && tokens(r) > c.budget*6/10 {
		c.shortened++
		r = c.build()
	}
	for tokens(r) > c.budget && c.leaveOut() {
		r = c.build()
	}
	// A request above the estimated limit may still fit if it is shorter than the one that did not.
	return r, tokens(r) <= c.budget || tokens(r) < c.over
}

// tokens estimates the length of a request.
func tokens(r model.Request) int { return r.MostTokens() / bytesAToken }

// build returns the request. The results of the first c.shortened turns are short.
func (c *Conversation) build() model.Request {
	r := model.Request{CacheKey: c.key}
	if !c.plain {
		r.Tools = slices.Clone(c.offered)
	}
	r.Messages = []model.Message{
		{Role: model.System, Parts: []model.Part{model.Text(c.system())}},
	}
	said := func(parts ...model.Part) { // it merges neighbouring messages of the user
		if last := &r.Messages[len(r.Messages)-1]; last.Role == model.User {
			last.Parts = append(last.Parts, parts...)
		} else if len(parts) > 0 {
			r.Messages = append(r.Messages, model.Message{Role: model.User, Parts: parts})
		}
	}
	if c.leftOut {
		said(model.Text(saidLeftOut))
	}
	for i, t := range c.everything() {
		if i == len(c.before) {
			said(c.asked()...)
		}
		for n, text := range t.heard {
			if said(model.Text(text)); n == 0 {
				said(t.shown...)
			}
		}
		inText := c.plain || t.plain
		m := t.answer.Message()
		if inText {
			m = writtenOut(t)
		}
		if len(m.Parts) > 0 {
			r.Messages = append(r.Messages, m)
		}
		for n, result := range t.results {
			result.Text = c.shown(result, i < c.shortened)
			if inText {
				said(model.Text(resultInText(t.calls[n], result)))
				continue
			}
			said(model.Part{Type: model.ResultPart, Result: &result})
		}
		if t.note != "" {
			said(model.Text(t.note))
		}
	}
	if len(c.turns) == 0 {
		said(c.asked()...)
	}
	for _, text := range c.heard {
		said(model.Text(text))
	}
	return r
}

// asked returns the task with its pictures.
func (c *Conversation) asked() []model.Part {
	return append([]model.Part{model.Text(c.task)}, c.pictures...)
}

// Show adds pictures to the task. It is called before anything else.
func (c *Conversation) Show(pictures []model.Image) { c.pictures = parts(pictures) }

// parts returns pictures as parts of a message.
func parts(pictures []model.Image) (list []model.Part) {
	for _, p := range pictures {
		list = append(list, model.Part{Type: model.ImagePart, Image: &p})
	}
	return list
}

// shown returns the text of a result for the model, shortened to the limit.
func (c *Conversation) shown(result model.Result, short bool) string {
	limit := c.def.Context.ToolResult
	if short {
		limit = min(limit, stub)
	}
	text, _ := tool.Excerpt(result.Text, limit, fmt.Sprintf("read_result with id %q shows them.", result.ID))
	return text
}

// readResult is the tool that shows the missing part of a shortened result.
const readResult = "read_result"

// ReadResult returns the tool by which a model reads a long result in pieces. It has no effect: the conversation answers it.
func ReadResult() tool.Tool {
	return tool.Tool{
		Name: readResult, Title: "Read a result", Source: tool.Builtin, Effect: "pure",
		Description: "Shows a piece of an earlier result that was shortened. The first character has the offset 0.",
		Input: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": ["id"], "properties": {` +
			`"id": {"type": "string", "description": "of the call whose result it is"}, ` +
			`"offset": {"type": "integer", "minimum": 0}, "length": {"type": "integer", "minimum": 1, "description": "characters"}}}`),
	}
}

// read answers a call of read_result.
func (c *Conversation) read(call model.Call) model.Result {
	var q struct {
		ID     string `json:"id"`
		Offset int    `json:"offset"`
		Length int    `json:"length"`
	}
	failed := func(format string, args ...any) model.Result {
		return model.Result{ID: call.ID, Failed: true, Text: fmt.Sprintf(format, args...)}
	}
	if err := strictly(call, &q); err != nil {
		return failed("%v", err)
	}
	if q.Offset < 0 || q.Length < 0 || q.Length > maxRead {
		return failed("offset is at least 0, and length 1 to %d", maxRead)
	}
	for _, t := range slices.Backward(c.everything()) {
		for _, result := range t.results {
			if result.ID != q.ID {
				continue
			}
			return model.Result{ID: call.ID, Text: tool.Piece(result.Text, q.Offset, q.Length, c.def.Context.ToolResult)}
		}
	}
	return failed("there is no result of a call %q", q.ID)
}

// strictly decodes the arguments of a call, and refuses unknown ones.
func strictly(call model.Call, into any) error {
	raw, err := call.Input()
	if err != nil {
		return err
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("the arguments of %s do not fit its schema: %w", call.Name, err)
	}
	return nil
}
