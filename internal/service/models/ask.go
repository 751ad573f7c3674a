package models

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/deadline"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/livestream"
)

// How often and how long the service retries a request.
const (
	MaxTries  = 3                      // of one model for one request
	firstWait = 500 * time.Millisecond // before the second try; it doubles, and chance takes up to half of it away
	mostWait  = 8 * time.Second
	patience  = 5 * time.Second // if an endpoint asks to wait longer, the next model of the route answers
	MaxWait   = time.Minute     // if an endpoint asks to wait longer and there is no other model, the request fails
)

// MaxAnswerBytes bounds the JSON of an answer, which is part of one event.
const MaxAnswerBytes = 8 << 20

// asking is the work on one request.
type asking struct {
	s       *Service
	ask     model.Ask
	trial   bool // of what a model can do, whatever its entry says
	call    string
	hash    event.Digest
	doc     model.Called
	version uint64 // of doc
	prices  model.Prices
	passed  []model.Passed
	last    error // of the last model that was called or skipped

	tries  map[string]int   // requests that were sent, by entry
	spent  map[string]error // entries that are asked no more, and why
	open   *deferral        // the open circuit that ends first
	probes int              // waits for a request of another one that tries a model
	waited time.Duration    // for an open circuit, before the next request
	spared time.Duration    // of the recorded waits: answers cut them short, and the next request records it
}

// Ask implements model.Asker.
func (s *Service) Ask(ctx context.Context, a model.Ask) (model.Reply, error) {
	return s.seek(ctx, a, false)
}

// seek gets the answer to a request. A trial calls only the first model of the route, also with a picture that its entry does not promise.
func (s *Service) seek(ctx context.Context, a model.Ask, trial bool) (model.Reply, error) {
	if err := a.Check(); err != nil {
		return model.Reply{}, err
	}
	hash, err := a.Request.Hash()
	if err != nil {
		return model.Reply{}, err
	}
	c := &asking{s: s, ask: a, trial: trial, call: a.Name(), hash: hash, tries: map[string]int{}, spent: map[string]error{}}
	if c.call == "" {
		c.call = string(id.New[id.Request](s.IDs))
	} else {
		release, err := s.names.lock(ctx, string(a.Workspace)+" "+c.call)
		if err != nil {
			return model.Reply{}, err
		}
		defer release()
		if reply, done, err := c.resume(ctx); done || err != nil {
			return reply, err
		}
	}
	c.prices = s.Prices()
	for {
		reply, done, err := c.round(ctx)
		if done || err != nil {
			reply.Took = c.took()
			return reply, err
		}
		again, err := c.awaits(ctx)
		if err != nil {
			return model.Reply{Took: c.took()}, err
		}
		if !again {
			return model.Reply{Took: c.took()}, c.unsent(ctx)
		}
	}
}

// round calls the models of the route, one after the other, until one answers. done is false if none could be called.
func (c *asking) round(ctx context.Context) (_ model.Reply, done bool, _ error) {
	entries, reason, err := c.s.route(ctx, c.ask)
	if err != nil {
		return model.Reply{}, false, err
	}
	if c.trial {
		entries = entries[:1]
	}
	if c.waited > 0 {
		reason = fmt.Sprintf("it was left alone for %s: %s", c.waited, reason)
	}
	c.passed, c.last, c.open = nil, nil, nil
	for i, e := range entries {
		reply, done, err := c.try(ctx, e, reason, i+1 < len(entries))
		if done || err != nil {
			return reply, done, err
		}
		reason = fmt.Sprintf("fallback: %s", c.passed[len(c.passed)-1].Reason)
	}
	return model.Reply{}, false, nil
}

// took returns how long models have worked on the request, and how long it has waited for them, as far as it is recorded.
func (c *asking) took() time.Duration {
	return time.Duration(c.doc.Millis+c.doc.Waited) * time.Millisecond
}

// counted is took without what the request was spared of its waits.
func (c *asking) counted() time.Duration { return c.took() - c.spared }

// look reads the document of the request.
func (c *asking) look(ctx context.Context) (err error) {
	c.doc, c.version, err = load[model.Called](ctx, c.s.Docs, c.ask.Workspace, model.CallProjection, c.call)
	return err
}

// resume continues a request that the run sent before. It returns the recorded answer, or records the end of an attempt that a crash
// interrupted.
func (c *asking) resume(ctx context.Context) (model.Reply, bool, error) {
	if err := c.look(ctx); err != nil || c.doc.Attempts == 0 { // a request that was only refused was never asked
		return model.Reply{}, false, err
	}
	if c.doc.Request != c.hash || c.doc.Principal != c.ask.Origin.Principal {
		return model.Reply{}, false, fault.Wrap(model.ErrDiffers, fault.Conflict, model.ErrDiffers.Code,
			"the run asked the request %s under the name %s before, and %s now", c.doc.Request, c.call, c.hash)
	}
	if c.doc.Answered != "" {
		d, err := c.answer(ctx)
		if err != nil {
			return model.Reply{}, false, err
		}
		return c.reply(*d.Answer, d.Entry, true), true, nil
	}
	if last := c.doc.Last(); last.Open() {
		f := &model.Failure{Class: model.Retry, Code: "interrupted", Message: "the daemon ended before the outcome was recorded"}
		_, err := c.settle(ctx, last, model.Outcome{Usage: model.Usage{Input: last.Reserve.Tokens}, Cost: last.Reserve.Cost,
			Priced: last.Reserve.Priced, Guessed: true, Failure: f, Next: model.NextRetry, Why: "the request changes nothing, so it is sent again"},
			model.EventFailed)
		if err != nil {
			return model.Reply{}, false, err
		}
	}
	// Earlier pieces do not count: the daemon has ended since, or the run has been given to another one.
	return model.Reply{}, false, c.tell(ctx, model.Delta{Type: model.TextPart, Again: true})
}

// Recorded returns the recorded answer to the request of a step of a run, and false if there is none. It returns model_answer_redacted for
// a redacted answer.
func (s *Service) Recorded(ctx context.Context, ws id.Workspace, r id.Run, step int) (model.Answer, bool, error) {
	c := &asking{s: s, ask: model.Ask{Workspace: ws, Run: r, Step: step}}
	c.call = c.ask.Name()
	if err := c.look(ctx); err != nil || c.doc.Answered == "" {
		return model.Answer{}, false, err
	}
	d, err := c.answer(ctx)
	if err != nil {
		return model.Answer{}, false, err
	}
	return *d.Answer, true, nil
}

// answer reads the recorded answer to the request.
func (c *asking) answer(ctx context.Context) (model.Outcome, error) {
	e, err := c.s.Log.Get(ctx, c.ask.Workspace, c.doc.Answered)
	if err != nil {
		return model.Outcome{}, err
	}
	if e.Withheld != "" {
		return model.Outcome{}, fault.New(fault.NotFound, "model_answer_redacted", "the answer to %s was redacted", c.call)
	}
	d, err := event.Decode[model.Outcome](e)
	if err != nil || d.Answer == nil {
		return model.Outcome{}, errors.Join(err, fmt.Errorf("event %s holds no answer", e.ID))
	}
	return d, nil
}

func (c *asking) reply(a model.Answer, entry string, repeated bool) model.Reply {
	return model.Reply{Answer: a, Entry: entry, Attempts: c.doc.Attempts, Cost: c.doc.Cost, Priced: !c.doc.Unpriced, Repeated: repeated,
		Took: c.took()}
}

// pass notes that a model does not answer, and why.
func (c *asking) pass(e model.Held, code string, err error) {
	c.passed = append(c.passed, model.Passed{Entry: e.Name, Code: code, Reason: fmt.Sprintf("%s: %s", e.Name, sentence(err))})
	c.last = err
}

// sentence returns the message of an error for people.
func sentence(err error) string {
	if f, ok := model.FailureOf(err); ok {
		return f.Error()
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	return "it could not be asked"
}

// try calls one model until it answers or there are no retries left. done is false if the next model should answer.
func (c *asking) try(ctx context.Context, e model.Held, reason string, more bool) (_ model.Reply, done bool, _ error) {
	if c.ask.Request.HasImages() && !e.TakesImages() && !c.trial {
		c.pass(e, "no_images", fault.New(model.ErrNoImages.Kind, model.ErrNoImages.Code, "%s", model.ErrNoImages.Msg))
		return model.Reply{}, false, nil
	}
	if err := c.spent[e.Name]; err != nil {
		c.pass(e, "failed", err)
		return model.Reply{}, false, nil
	}
	at := named{c.ask.Workspace, e.Name, e.Hash}
	waited := c.waited
	for n := c.tries[e.Name] + 1; ; n++ {
		if c.ask.Time > 0 && c.counted() >= c.ask.Time {
			return model.Reply{}, true, model.ErrTime
		}
		if c.shut(e, at) {
			return model.Reply{}, false, nil
		}
		begun, err := c.begin(ctx, e, reason, waited)
		if err != nil {
			c.report(at, nil, false)
			code, next := passable(err)
			if !next {
				return model.Reply{}, true, err
			}
			c.pass(e, code, err)
			return model.Reply{}, false, nil
		}
		answer, f, err := c.send(ctx, e, begun)
		c.tries[e.Name], c.waited = n, 0
		c.report(at, f, err == nil || f != nil)
		if err == nil {
			return c.reply(answer, e.Name, false), true, nil
		}
		if f == nil {
			return model.Reply{}, true, err
		}
		d := c.s.decide(f, n, more)
		if _, err := c.settle(ctx, begun.attempt, begun.outcome(c, e, f, d), model.EventFailed); err != nil {
			return model.Reply{}, true, err
		}
		switch d.next {
		case model.NextFallback:
			c.spent[e.Name] = f
			c.pass(e, "failed", f)
			return model.Reply{}, false, nil
		case model.NextNothing:
			return model.Reply{}, true, f
		}
		if err := c.s.sleep(ctx, d.wait, nil); err != nil {
			return model.Reply{}, true, err
		}
		reason, waited = fmt.Sprintf("try %d of %d: %s", n+1, MaxTries, f.Error()), d.wait
		if begun.pieces > 0 {
			if err := c.tell(ctx, model.Delta{Type: model.TextPart, Again: true}); err != nil {
				return model.Reply{}, true, err
			}
		}
	}
}

// passable reports whether another model may answer after this error, and returns the code of the reason.
func passable(err error) (code string, next bool) {
	switch {
	case errors.Is(err, model.ErrPrice):
		return "price_unknown", true
	case errors.Is(err, model.ErrBudget):
		return "budget", true
	case errors.Is(err, model.ErrNoKey):
		return "key_missing", true
	case fault.CodeOf(err) == policy.ReasonKillSwitch:
		return "", false
	case fault.KindOf(err) == fault.Denied:
		return "refused", true
	}
	return "", false
}

// decision is the next step after a failure.
type decision struct {
	next, why string
	wait      time.Duration
}

// decide returns the next step after the n-th try of a model failed. more is true if the route names another model.
func (s *Service) decide(f *model.Failure, n int, more bool) decision {
	elsewhere := func(why string) decision {
		if more && f.Class.Elsewhere() {
			return decision{next: model.NextFallback, why: why}
		}
		return decision{next: model.NextNothing, why: why + ", and the route names no other model"}
	}
	switch {
	case !f.Class.Elsewhere():
		return decision{next: model.NextNothing, why: "the endpoint will not answer this request, and no other one is asked instead"}
	case !f.Class.Again():
		return elsewhere(fmt.Sprintf("the failure is of the class %s, so another try here fails again", f.Class))
	case n >= MaxTries:
		return elsewhere(fmt.Sprintf("it failed %d times", n))
	case f.After > MaxWait:
		return elsewhere(fmt.Sprintf("it asks to wait %s, and the limit is %s", f.After, MaxWait))
	case f.After > patience && more:
		return elsewhere(fmt.Sprintf("it asks to wait %s", f.After))
	case f.After > 0:
		return decision{model.NextRetry, "it asks to wait so long", f.After}
	}
	wait := min(firstWait<<(n-1), mostWait)
	return decision{model.NextRetry, fmt.Sprintf("a failure of the class %s may pass", f.Class), wait - s.chance(wait/2)}
}

// chance returns a duration from 0 to most.
func (s *Service) chance(most time.Duration) time.Duration {
	var raw [8]byte
	if _, err := io.ReadFull(s.Entropy, raw[:]); err != nil {
		return 0
	}
	return time.Duration(binary.BigEndian.Uint64(raw[:]) % uint64(most+1))
}

// begunRequest is a request that begin has recorded.
type begunRequest struct {
	attempt model.Attempt
	permit  policy.Permit
	key     model.Secret
	began   time.Time
	first   time.Time // of the first piece
	pieces  int       // of the answer, so far
}

// begin takes a request through the gate, reserves its largest possible use, and records it.
func (c *asking) begin(ctx context.Context, e model.Held, reason string, waited time.Duration) (*begunRequest, error) {
	s, a := c.s, c.ask
	out := &begunRequest{}
	if e.Key != "" {
		var err error
		if out.key, err = s.Keys.Key(ctx, a.Workspace, e.Key); err != nil {
			return nil, err
		}
	}
	action := policy.Action{Type: policy.ModelCall, Workspace: a.Workspace, Room: a.Room, Principal: a.Origin.Principal, Token: a.Origin.Token,
		Space: a.Space, Run: a.Run, Subject: e.Name, Target: e.Target(), Tool: e.Model, Content: c.hash}
	ruling, approval, err := policy.Client{Gate: s.Gate, Append: s.Log.Append}.Ask(ctx, a.Origin, action)
	if err != nil {
		return nil, err
	}
	settings, _, err := load[model.Settings](ctx, s.Docs, a.Workspace, model.SettingsProjection, string(a.Workspace))
	if err != nil {
		return nil, err
	}
	reserve := c.prices.Reserve(e.Entry, a.Request)
	now := s.Clock.Now().UTC()
	bounds := model.Bounds(settings.Budgets, a, a.Origin.Principal, model.Day(now))
	keys := make([]string, len(bounds))
	for i, b := range bounds {
		keys[i] = string(a.Workspace) + " " + b.Key
	}
	release, err := s.scopes.lock(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer release()
	err = journal.Again(func() error {
		expect, err := c.fits(ctx, bounds, reserve)
		if err != nil {
			return err
		}
		if err := c.look(ctx); err != nil {
			return err
		}
		out.attempt = model.Attempt{N: c.doc.Attempts + 1, Entry: e.Name, Reserve: reserve, Day: model.Day(now)}
		draft := event.New(model.EventAsked, a.Origin, a.Workspace, a.Room, model.Asked{
			Call: c.call, Step: a.Step, Part: a.Part, Class: a.Class, Attempt: out.attempt.N, Entry: e.Name, Model: e.Model, Request: c.hash,
			Reserve: reserve, Day: out.attempt.Day, Reason: reason, Passed: c.passed, Waited: waited.Milliseconds(),
			Spared: c.spared.Milliseconds(), Above: a.AboveRuns(),
		}).In(a.Run, "").About(model.CallEntity, c.call)
		draft.OccurredAt = now
		expect = append(expect, event.DocumentVersion{Projection: model.CallProjection, Key: c.call, Version: c.version})
		out.permit, _, err = s.Gate.Begin(ctx, ruling, approval, event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{draft},
			Documents: expect})
		return err
	})
	if err == nil { // it is recorded
		c.doc.Waited, c.spared = max(c.doc.Waited-c.spared.Milliseconds(), 0), 0
	}
	out.began = s.Clock.Now()
	return out, err
}

// fits refuses a request that could exceed a budget. If other daemons record into the same log, it returns the versions of the documents
// that it has read.
func (c *asking) fits(ctx context.Context, bounds []model.Bound, r model.Reserve) (expect []event.DocumentVersion, err error) {
	for _, b := range bounds {
		used, version, err := load[model.Used](ctx, c.s.Docs, c.ask.Workspace, model.UsageProjection, b.Key)
		if err != nil {
			return nil, err
		}
		if err := b.Fits(used, r); err != nil {
			return nil, err
		}
		if c.s.Together {
			expect = append(expect, event.DocumentVersion{Projection: model.UsageProjection, Key: b.Key, Version: version})
		}
	}
	return expect, nil
}

// send sends a request and records the answer. For an error of the endpoint it returns the failure too. It records any other error itself.
func (c *asking) send(ctx context.Context, e model.Held, f *begunRequest) (model.Answer, *model.Failure, error) {
	endpoint := c.s.Endpoints[e.Provider]
	if endpoint == nil {
		return model.Answer{}, &model.Failure{Class: model.Final, Message: "this daemon speaks with no " + e.Provider}, model.ErrNotFound
	}
	sending, release := c.s.haltable(ctx, c.ask.Workspace)
	sending, rest := c.within(sending)
	answer, err := endpoint.Stream(sending, f.permit, model.Target{Entry: e.Entry, Key: f.key}, c.ask.Request, func(d model.Delta) error {
		if f.pieces++; f.pieces == 1 {
			f.first = c.s.Clock.Now()
		}
		return c.tell(sending, d)
	})
	late := errors.Is(context.Cause(sending), model.ErrTime)
	rest()
	release()
	if err != nil {
		if late {
			err = model.ErrTime
		}
		if failure, ok := model.FailureOf(err); ok {
			return model.Answer{}, failure, err
		}
		own := &model.Failure{Class: model.Final, Code: "ended", Message: "the request was ended here: " + sentence(err), Begun: true}
		_, recordErr := c.settle(ctx, f.attempt, f.outcome(c, e, own, decision{next: model.NextNothing, why: "whoever asked ended it"}),
			model.EventFailed)
		return model.Answer{}, nil, errors.Join(err, recordErr)
	}
	if !answer.Usage.Credible() { // as if it had told nothing: the whole reserve counts
		answer.Usage, answer.Unknown = model.Usage{}, true
	}
	if raw, err := json.Marshal(answer); err != nil || len(raw) > MaxAnswerBytes {
		failure := &model.Failure{Class: model.Final, Code: "answer_too_large", Begun: true, Usage: answer.Usage,
			Message: fmt.Sprintf("the answer has more than %d MiB", MaxAnswerBytes>>20)}
		return model.Answer{}, failure, failure
	}
	out := f.outcome(c, e, nil, decision{})
	out.Answer, out.Usage = &answer, answer.Usage
	out = c.charge(out, e, f.attempt.Reserve, answer.Unknown)
	recorded, err := c.settle(ctx, f.attempt, out, model.EventAnswered)
	if err != nil {
		return model.Answer{}, nil, err
	}
	return *recorded.Answer, nil, nil
}

// within returns a context that ends when models have worked on the request for as long as they may, until rest is called.
func (c *asking) within(ctx context.Context) (_ context.Context, rest func()) {
	if c.ask.Time <= 0 {
		return ctx, func() {}
	}
	return deadline.Within(ctx, c.s.Clock, c.ask.Time-c.counted(), model.ErrTime)
}

// outcome is the outcome of a request. That of a failed request includes its usage.
func (f *begunRequest) outcome(c *asking, e model.Held, failure *model.Failure, d decision) model.Outcome {
	out := model.Outcome{Failure: failure, Next: d.next, Why: d.why, WaitMS: d.wait.Milliseconds(),
		Millis: c.s.Clock.Now().Sub(f.began).Milliseconds()}
	if f.pieces > 0 {
		out.First = f.first.Sub(f.began).Milliseconds()
	}
	if failure == nil {
		return out
	}
	if !failure.Usage.Credible() {
		failure.Usage, failure.Begun = model.Usage{}, true
	}
	out.Usage = failure.Usage
	told := failure.Usage.Tokens() > 0
	return c.charge(out, e, f.attempt.Reserve, !told && (failure.Begun || f.pieces > 0 || failure.Code == "timeout"))
}

// charge sets the cost of an outcome. If the use is unknown, the whole reserve counts.
func (c *asking) charge(out model.Outcome, e model.Held, r model.Reserve, unknown bool) model.Outcome {
	if unknown {
		output := min(e.Output(c.ask.Request), r.Tokens)
		out.Usage, out.Cost, out.Priced, out.Guessed = model.Usage{Input: r.Tokens - output, Output: output}, r.Cost, r.Priced, true
		return out
	}
	price, known := c.prices.Of(e.Entry)
	out.Cost, out.Priced = price.Cost(out.Usage), known
	return out
}

// settle records the outcome of an attempt and returns it as recorded, even if the caller has gone. It frees the reserve of the attempt
// once.
func (c *asking) settle(ctx context.Context, at model.Attempt, out model.Outcome, typ string) (model.Outcome, error) {
	ctx = context.WithoutCancel(ctx)
	out.Call, out.Attempt, out.Entry, out.Day, out.Above = c.call, at.N, at.Entry, at.Day, c.ask.AboveRuns()
	err := journal.Again(func() error {
		if err := c.look(ctx); err != nil {
			return err
		}
		out.Reserve = model.Reserve{}
		for _, t := range c.doc.Tries {
			if t.N == at.N && t.Open() {
				out.Reserve = t.Reserve
			}
		}
		draft := event.New(typ, c.ask.Origin, c.ask.Workspace, c.ask.Room, out).In(c.ask.Run, "").About(model.CallEntity, c.call)
		draft.OccurredAt = c.s.Clock.Now().UTC()
		receipt, err := c.s.Log.Append(ctx, event.Batch{Workspace: c.ask.Workspace, Drafts: []event.Draft{draft},
			Documents: []event.DocumentVersion{{Projection: model.CallProjection, Key: c.call, Version: c.version}}})
		if err != nil {
			return err
		}
		for _, e := range receipt.Events {
			if e.Type == typ {
				out, err = event.Decode[model.Outcome](e)
			}
		}
		return err
	})
	if err != nil {
		return out, err
	}
	return out, c.look(ctx)
}

// unsent records that no model could be called, and returns the reason.
func (c *asking) unsent(ctx context.Context) error {
	a := c.ask
	draft := event.New(model.EventRefused, a.Origin, a.Workspace, a.Room, model.Unsent{
		Call: c.call, Step: a.Step, Part: a.Part, Class: a.Class, Request: c.hash, Code: c.passed[len(c.passed)-1].Code,
		Reason: sentence(c.last), Passed: c.passed,
	}).In(a.Run, "").About(model.CallEntity, c.call)
	draft.OccurredAt = c.s.Clock.Now().UTC()
	_, err := c.s.Log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: a.Workspace, Drafts: []event.Draft{draft}})
	return errors.Join(c.last, err)
}

// tell gives a piece of an answer to those who watch the run, and to the caller.
func (c *asking) tell(ctx context.Context, d model.Delta) error {
	if ctx.Err() != nil { // one event of an endpoint can hold millions of pieces
		return context.Cause(ctx)
	}
	c.show(ctx, d)
	if c.ask.Emit == nil {
		return nil
	}
	return c.ask.Emit(d)
}

// show adds a piece of an answer to the live output of the run. A missing piece is not lost, because the log has the whole answer.
func (c *asking) show(ctx context.Context, d model.Delta) {
	if c.s.Live == nil || c.ask.Run == "" {
		return
	}
	raw, err := json.Marshal(d)
	if err == nil {
		_, err = c.s.Live.Append(ctx, c.ask.Run, livestream.Frame{Kind: livestream.Delta, Operation: c.call, Data: raw})
	}
	if err != nil && !errors.Is(err, livestream.ErrComplete) && ctx.Err() == nil {
		c.s.Logger.Warn("a piece of an answer is not shown", "code", "model_piece_not_shown", "run_id", c.ask.Run, "error", fault.CodeOf(err))
	}
}
