package localengine

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/tools"
	"agentbox/internal/service/webpages"
)

// Limits of texts for a model.
const (
	maxTold  = 40 << 10 // bytes of the recorded text of an outcome; a longer text is an artifact
	maxShown = 16 << 10 // bytes of a value that code shows, as a text

	toolResult = "tool_result" // the kind of the artifact of a long result
)

// use is one call of a tool of the daemon.
type use struct {
	*agentDesk
	work  errand.Work
	asked run.Run // the agent's run
	call  id.ToolCall
	space id.Space
	name  string // of the tool
	args  json.RawMessage
	left  errand.Left // of the time of the call and of the run
}

// doer does what a tool of the daemon is called for.
type doer struct {
	do func(use, context.Context) (errand.Outcome, error)
	// waits says that a call may wait: for a person, a command or another agent. Then do holds the call's time, and says how long it worked.
	waits bool
	// operates says that a call is an operation in the space, which people who watch the run are shown.
	operates bool
}

// doers are the tools of the daemon, by their names in the table of tools.
func doers() map[string]doer {
	return map[string]doer{
		tools.CodeTool:    {use.code, true, true},
		tools.MDReadTool:  {use.mdRead, true, true},
		tools.MDWriteTool: {use.mdWrite, true, true},
		tools.FetchTool:   {use.fetch, true, false},
		tools.AskTool:     {use.ask, true, false},
		tools.SpawnTool:   {use.spawn, true, false},
		tools.MessageTool: {use.message, false, false},
		tools.SearchTool:  {use.search, false, false},
		tools.HTMLTool:    {use.markdown, false, false},

		tools.CapsuleWriteTool: {among(relatives.capsuleWrite), false, false},
		tools.CapsuleReadTool:  {among(relatives.capsuleRead), false, false},
		tools.ArtifactReadTool: {among(relatives.artifactRead), false, false},
	}
}

// doer returns what does the call; false for an operation of the protocol.
func (u use) doer() (doer, bool) {
	if _, _, served := mcp.Split(u.name); served {
		return doer{do: use.serve, waits: true}, true
	}
	one, ok := doers()[u.name]
	return one, ok
}

// Operate implements agents.Records.
func (d *agentDesk) Operate(ctx context.Context, w errand.Work, call id.ToolCall, in id.Space, task json.RawMessage,
	left errand.Left) (errand.Outcome, error) {
	var named struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(task, &named); err != nil {
		return errand.Outcome{}, err
	}
	u := use{agentDesk: d, work: w, call: call, space: in, name: named.Type, args: task, left: left}
	if _, own := u.doer(); !own {
		timed, err := timedCommand(named.Type, task, left.Most())
		if err != nil {
			return errand.Outcome{}, err
		}
		return d.inSpace(ctx, w, call, in, timed)
	}
	asked, err := d.Engines.Find(ctx, w.Workspace, w.Run)
	if err != nil {
		return errand.Outcome{}, err
	}
	u.asked = asked
	if doer, _ := u.doer(); doer.operates {
		return u.own(ctx)
	}
	if err := u.announce(ctx); err != nil {
		return errand.Outcome{}, err
	}
	o, err := u.own(ctx)
	if err == nil {
		err = u.show(ctx, o)
	}
	return o, err
}

// own executes a call of a tool of the daemon. A mistake of the call itself is its outcome, and no error.
func (u use) own(ctx context.Context) (errand.Outcome, error) {
	o, err := u.do(ctx)
	switch kind := fault.KindOf(err); {
	case err == nil || fault.CodeOf(err) == policy.ReasonKillSwitch: // it waits until the switch is lifted
	case kind == fault.Denied:
		var refused *fault.Error
		o = errand.Outcome{Status: errand.Refused, Code: fault.CodeOf(err), Reason: err.Error(), Worked: o.Worked}
		if errors.As(err, &refused) {
			o.Reason, o.Instead = refused.Msg, refused.Suggestion
		}
		return o, nil
	case kind == fault.Invalid || kind == fault.NotFound || kind == fault.Conflict || errors.Is(err, errToolLate):
		said, err := u.say(ctx, u.work, u.call, u.name, failed(err))
		said.Worked = o.Worked
		return said, err
	}
	return o, err
}

// failed tells a model of a call that was permitted and did not succeed.
func failed(err error) tool.Result {
	text := "failed: " + err.Error()
	var why *fault.Error
	if errors.As(err, &why) && why.Suggestion != "" {
		text = "failed: " + why.Msg + "\ninstead: " + why.Suggestion
	}
	return tool.Result{Text: text}
}

// requester is in whose name the agent works.
func (u use) requester() event.Origin {
	return event.Origin{Principal: u.asked.CreatedBy, Token: u.asked.Token, Correlation: u.asked.Correlation}
}

// say returns the outcome of a call that the daemon itself has executed. It removes secrets first, so that the model reads the same text
// now and after a crash. A long text becomes an artifact of the run.
func (d *agentDesk) say(ctx context.Context, w errand.Work, call id.ToolCall, name string, said tool.Result) (errand.Outcome, error) {
	text, _ := leak.Text(said.Text)
	o := errand.Outcome{Status: "failed", OK: said.OK, Text: text}
	if said.OK {
		o.Status = string(run.Succeeded)
	}
	if raw, err := json.Marshal(o); err != nil || len(raw) <= maxTold {
		return o, err
	}
	made, err := d.Engines.Look.Call(ctx, w.Workspace, call)
	if err != nil {
		return o, err
	}
	kept, err := d.Engines.Artifacts.Keep(ctx, d.origin(), w.Workspace, w.Token, engines.ArtifactRequest{
		Step: made.Step, Kind: toolResult, Title: name, Media: "text/plain; charset=utf-8",
	}, []byte(text), nil)
	o.Text, o.Artifact = "", kept.ID
	return o, err
}

// Result implements agents.Records.
func (d *agentDesk) Result(ctx context.Context, w errand.Work, o errand.Outcome) (tool.Result, error) {
	switch {
	case o.Artifact != "":
		text, err := d.read(ctx, w, o.Artifact, step.MaxArtifact)
		return tool.Result{OK: o.OK, Text: text}, err
	case o.Text != "":
		return tool.Result{OK: o.OK, Text: o.Text}, nil
	}
	doc, err := d.Runs.History.Find(ctx, w.Workspace, o.Child)
	if err != nil {
		return tool.Result{}, err
	}
	told, err := d.Runs.History.Events(ctx, doc)
	if err != nil {
		return tool.Result{}, err
	}
	for _, e := range told.Events {
		if e.Type != run.ResApprovalRequired {
			var failed error
			said := tools.Tell(e, func(shown run.Display) (string, bool) {
				if shown.Size > maxShown {
					return "", false
				}
				text, err := d.read(ctx, w, shown.Artifact, maxShown)
				failed = errors.Join(failed, err)
				return text, err == nil
			})
			return said, failed
		}
	}
	return tool.Result{Text: "failed: the call ended as " + string(doc.Status) + ", without a result"}, nil
}

// read returns the content of an artifact.
func (d *agentDesk) read(ctx context.Context, w errand.Work, a id.Artifact, most int64) (string, error) {
	_, content, err := d.Engines.Artifacts.Open(ctx, w.Workspace, a)
	if err != nil {
		return "", err
	}
	raw, err := io.ReadAll(io.LimitReader(content, most))
	return string(raw), errors.Join(err, content.Close())
}

// code runs code in an interpreter context of the agent's space: a command like any other.
func (u use) code(ctx context.Context) (errand.Outcome, error) {
	c, err := tools.ReadCode(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	in, err := u.Spaces.Catalog.Space(ctx, u.work.Workspace, u.space)
	if err == nil {
		err = u.Spaces.Contexts.Has(in)
	}
	if err != nil {
		return errand.Outcome{}, err
	}
	op, err := runs.Cell{Context: c.Context, Language: c.Language, Code: c.Code, Timeout: shorter(c.Timeout, u.left.Most())}.Operation()
	if err != nil {
		return errand.Outcome{}, err
	}
	raw, err := json.Marshal(op)
	if err != nil {
		return errand.Outcome{}, err
	}
	return u.inSpace(ctx, u.work, u.call, u.space, raw)
}

// told is the outcome of a call that succeeded.
func (u use) told(ctx context.Context, text string) (errand.Outcome, error) {
	return u.say(ctx, u.work, u.call, u.name, tool.Result{OK: true, Text: text})
}

// fetch fetches a page of the web.
func (u use) fetch(ctx context.Context) (errand.Outcome, error) {
	f, err := tools.ReadFetch(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	page, err := u.Pages.Get(ctx, webpages.Query{
		Origin: u.requester(), Workspace: u.work.Workspace, Room: u.asked.Room, Space: u.space, Run: u.work.Run, Call: u.call, Tool: u.name,
		URL: f.URL, Method: f.Method, Most: u.left.Most(),
	})
	worked := page.Worked.Milliseconds()
	if err != nil {
		return errand.Outcome{Worked: worked}, err
	}
	text, err := tools.Page(page.Answer, page.URL, f)
	if err != nil {
		return errand.Outcome{Worked: worked}, err
	}
	o, err := u.say(ctx, u.work, u.call, u.name, tool.Result{OK: page.Status < 400, Text: text})
	o.Worked = worked
	return o, err
}

// markdown turns HTML into Markdown.
func (u use) markdown(ctx context.Context) (errand.Outcome, error) {
	h, err := tools.ReadHTML(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	text, err := tools.Markdown(h.HTML, h.Base)
	if err != nil {
		return errand.Outcome{}, err
	}
	return u.told(ctx, text)
}
