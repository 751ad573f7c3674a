// Package outside answers programs that ask before they act outside of Agentbox.
//
// Such a program acts by itself, so there is no driver and no permit: only the answer holds it back. An answer that
// rests on an approval uses it up in the same step, so that one approval is never the ground of two.
package outside

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Parts are the dependencies of the service.
type Parts struct {
	Log  journal.Journal
	Docs projection.Reader // of approvals, runs and spaces
	Gate policy.Gate

	Clock   event.Clock
	Counted bool // the gate counts effects, so an allowed action begins there

	// Place refuses a room and a thread that are not there, or not together; either may be empty.
	Place func(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error
}

// Service judges actions outside. Make it with New; every method may be called from any goroutine.
type Service struct{ Parts }

// New returns a service of the given parts.
func New(p Parts) *Service { return &Service{p} }

// Question is an action that a caller intends, for itself or for a principal whom it names.
type Question struct {
	Action  string   // a name of the registry, or an alias
	Text    string   // of a plain question, instead of an action
	Space   id.Space // under whose policy it is judged, too; empty for none
	Room    id.Room
	Thread  id.Thread
	Run     id.Run
	Step    id.Step
	Token   id.Token
	Zone    event.Zone      // empty means supervised
	Request json.RawMessage // an object that describes the request in full; nil for none
	Target  string          // host or recipient
	Method  string
	Tool    string

	Principal id.Principal // the acting principal; empty for the caller
	ActorType string       // the same in words of another system, which have to agree
	ActorID   string
}

// Answer is a decision together with its basis.
type Answer struct {
	Decision policy.Decision
	Blocked  bool         // it must not be done now
	Preview  bool         // nothing was used up
	Approval id.Approval  // the one that allows it, or the one that is open about it
	Standing id.Standing  // the standing approval that allows it
	Event    id.Event     // of the log: the proof that an approval was used for it, or that it was refused
	Actor    id.Principal // the acting principal
}

// The refusals of a question that cannot be judged at all.
var (
	// ErrMissingAction refuses a question about nothing.
	ErrMissingAction = fault.New(fault.Invalid, "missing_action",
		"name the action, or ask a question; GET /v1/action-registry lists the actions")
	// ErrInvalidZone refuses a zone that is none.
	ErrInvalidZone = fault.New(fault.Invalid, "invalid_zone", "the zone must be sandbox, supervised or high_stakes")
	// ErrInvalidRequest refuses a request that is not an object or too large.
	ErrInvalidRequest = fault.New(fault.Invalid, "invalid_request", "request is a JSON object of at most %d bytes", policy.MaxRequestBytes)
	// ErrSecret refuses what holds a secret: it would have to be recorded and shown as it is.
	ErrSecret = fault.New(fault.Invalid, "request_holds_secret",
		"the request holds a secret, which would be recorded and shown; name the secret instead of sending it")
	// ErrMayNotAct refuses a caller who names somebody for whom it may not act.
	ErrMayNotAct = fault.New(fault.Denied, "may_not_act_for",
		"you may only act for yourself; owners, admins and services act for the agents of their workspace")
	// ErrRunNotFound means that the workspace has no such run.
	ErrRunNotFound = fault.New(fault.NotFound, "run_not_found", "there is no such run in this workspace")
	// ErrRunRoom refuses a run together with another room than its own.
	ErrRunRoom = fault.New(fault.Invalid, "run_room_mismatch", "the run belongs to another room")
	// ErrSpaceNotFound means that the workspace has no such space.
	ErrSpaceNotFound = fault.New(fault.NotFound, "space_not_found", "there is no such space in this workspace")
	// ErrSpaceRoom refuses a space together with another room, or another run, than its own.
	ErrSpaceRoom = fault.New(fault.Invalid, "space_room_mismatch", "the space belongs to another room, or the run to another space")
	// ErrNotRequired refuses to ask a person about what policy permits.
	ErrNotRequired = fault.New(fault.Conflict, "approval_not_required", "policy permits it, so there is nothing to approve")
)

// tries bounds how often Evaluate judges again because somebody else used what the answer rested on.
const tries = 16

// Evaluate judges a question. An answer that an approval allows has used it up once, unless preview is set. Every other answer changes
// nothing. A refusal is recorded.
func (a *Service) Evaluate(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, preview bool) (Answer, error) {
	action, reason, err := a.action(ctx, caller, q)
	if err != nil {
		return Answer{}, err
	}
	if reason != "" {
		return a.refuse(ctx, origin, caller, q, unjudged(action, reason), "", preview)
	}
	for try := 1; ; try++ {
		answer, err := a.evaluate(ctx, origin, caller, q, action, preview)
		if err == nil || try == tries || !overtaken(err) {
			return answer, err
		}
	}
}

// overtaken reports whether somebody else used what the answer rested on, so that Evaluate must judge again. That may be an approval, the
// last use of a standing approval, or the last effect of the hour.
func overtaken(err error) bool {
	switch fault.KindOf(err) {
	case fault.Denied, fault.Waiting, fault.Exhausted:
		return true
	}
	return errors.Is(err, journal.ErrConflict)
}

func (a *Service) evaluate(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, action policy.Action,
	preview bool) (Answer, error) {
	kind, known := policy.KindOf(action.Type)
	if known && !kind.Outside && kind.SideEffect != policy.Record {
		return a.refuse(ctx, origin, caller, q, unjudged(action, policy.ReasonNotOutside), "", preview)
	}
	r, err := a.Gate.Judge(ctx, action)
	if err != nil {
		return Answer{}, err
	}
	d := r.Decision
	if d.Outcome == policy.Allow && r.Standing == "" {
		if kind, _ = r.Action.Kind(); preview || !a.Counted || !kind.Outside {
			return a.answer(r, d, preview), nil
		}
		return a.begin(ctx, origin, caller, q, r, "", d)
	}
	if d.Outcome == policy.Allow {
		d.ReasonCode = policy.ReasonApprovalAllows
		return a.begun(ctx, origin, caller, q, r, "", d, preview)
	}
	if d.Outcome == policy.Deny || d.Shadow { // mode shadow permits the action and names the decision that it would have made
		return a.refuse(ctx, origin, caller, q, r, "", preview)
	}
	approval, usable, err := a.approval(ctx, r)
	if err != nil {
		return Answer{}, err
	}
	if !usable {
		return a.refuse(ctx, origin, caller, q, r, approval, preview)
	}
	d.Outcome, d.ReasonCode, d.Reason, d.Suggestion = policy.Allow, policy.ReasonApprovalAllows, "a person has approved exactly this, once", ""
	return a.begun(ctx, origin, caller, q, r, approval, d, preview)
}

// begun is the answer that rests on an approval: it is used up, unless nothing but a preview is wanted.
func (a *Service) begun(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, r policy.Ruling,
	approval id.Approval, d policy.Decision, preview bool) (Answer, error) {
	if preview {
		answer := a.answer(r, d, true)
		answer.Approval = approval
		return answer, nil
	}
	return a.begin(ctx, origin, caller, q, r, approval, d)
}

// begin records that the action is begun, and with it the use of its approval. Nobody uses the permit, because no driver of ours does the
// action.
func (a *Service) begin(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, r policy.Ruling,
	approval id.Approval, d policy.Decision) (Answer, error) {
	said := r
	said.Decision = d
	origin.Principal = r.Action.Principal
	draft := policy.BegunOutside(origin, said, approval, through(caller, r.Action.Principal))
	draft.Thread = q.Thread
	_, receipt, err := a.Gate.Begin(ctx, r, approval, origin.Once(event.Batch{Workspace: r.Action.Workspace, Drafts: []event.Draft{draft}}))
	if err != nil {
		return Answer{}, err
	}
	answer := a.answer(r, d, false)
	answer.Approval = approval
	if len(receipt.Events) > 0 {
		answer.Event = receipt.Events[0].ID
	}
	return answer, nil
}

// refuse records an answer that is not an allowance and returns it.
func (a *Service) refuse(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, r policy.Ruling,
	approval id.Approval, preview bool) (Answer, error) {
	answer := a.answer(r, r.Decision, preview)
	answer.Approval = approval
	if preview {
		return answer, nil
	}
	if archived, err := a.archived(ctx, caller.Workspace); archived || err != nil {
		return answer, err // it takes no more records
	}
	by := caller.Principal
	if r.Action.Principal.Kind() != "" && r.Decision.ReasonCode != policy.ReasonPrincipalNotFound {
		by = r.Action.Principal
	}
	origin.Principal = by
	draft := policy.RefusedOutside(origin, r, approval, through(caller, by))
	draft.Thread = q.Thread
	// Without the key of the request: a refusal does not use it up, so that a repeated request is judged again when something has changed.
	receipt, err := a.Log.Append(ctx, event.Batch{Workspace: caller.Workspace, Drafts: []event.Draft{draft}})
	if err != nil {
		return Answer{}, err
	}
	answer.Event = receipt.Events[0].ID
	return answer, nil
}

// archived reports whether a workspace is archived.
func (a *Service) archived(ctx context.Context, ws id.Workspace) (bool, error) {
	doc, _, err := projection.Load[workspace.Workspace](ctx, a.Docs, ws, workspace.Workspaces, string(ws))
	if errors.Is(err, projection.ErrNotFound) {
		err = nil
	}
	return doc.Archived(), err
}

func (a *Service) answer(r policy.Ruling, d policy.Decision, preview bool) Answer {
	return Answer{Decision: d, Blocked: !d.Allowed(), Preview: preview, Standing: r.Standing, Actor: r.Action.Principal}
}

// through names the caller where it acts for another one.
func through(caller principal.Caller, acts id.Principal) id.Principal {
	if caller.Principal == acts {
		return caller.By
	}
	return cmp.Or(caller.By, caller.Principal)
}

// latest is how many approvals of one request are checked.
const latest = 20

// approval returns the newest approval of exactly this action that can be used, true, or else one that is open about it, false.
func (a *Service) approval(ctx context.Context, r policy.Ruling) (id.Approval, bool, error) {
	found, err := projection.List[policy.Approval](ctx, a.Docs, projection.Query{
		Workspace: r.Action.Workspace, Name: policy.ApprovalProjection, Index: projection.Index{Name: "request",
			Value: r.Decision.Action.String()},
		Newest: true, Limit: latest,
	})
	if err != nil {
		return "", false, err
	}
	open := id.Approval("")
	for _, doc := range found {
		if _, err := doc.Use(r.Canonical, r.Action, a.Clock.Now()); err == nil && doc.Counts(a.Clock.Now()) {
			return doc.ID, true, nil
		}
		if open == "" && doc.Open() && doc.Counts(a.Clock.Now()) {
			open = doc.ID
		}
	}
	return open, false, nil
}

// Recall returns the answer that was given to a request, of which the event at a place of the log is the last.
func (a *Service) Recall(ctx context.Context, ws id.Workspace, place uint64) (Answer, error) {
	const most = 4 // events of one answer: it is begun, an approval is used, it counts
	found, err := a.Log.Read(ctx, journal.Query{Workspace: ws, From: max(place, most) - most + 1, Before: place + 1, Limit: most})
	if err != nil {
		return Answer{}, err
	}
	for i := len(found) - 1; i >= 0; i-- {
		e := found[i]
		switch e.Type {
		case policy.BegunType:
			d, err := event.Decode[policy.Begun](e)
			return Answer{Decision: d.Decision, Blocked: !d.Decision.Allowed(), Approval: d.Approval, Standing: d.Standing, Event: e.ID,
				Actor: e.Principal}, err
		case policy.DeniedType, policy.RequiresApprovalType:
			d, err := event.Decode[policy.Refused](e)
			return Answer{Decision: d.Decision, Blocked: !d.Decision.Allowed(), Approval: d.Approval, Event: e.ID, Actor: e.Principal}, err
		}
	}
	return Answer{}, fault.New(fault.Internal, "answer_lost", "the answer to the first request is not where it was recorded")
}

// Words are the requester's own words about it: shown to a person separately, and marked.
type Words struct {
	Title   string
	Context json.RawMessage
}

// MaxTitle is the most bytes that the title of a question may have.
const MaxTitle = 200

// Ask asks a person about an action outside that a caller intends.
func (a *Service) Ask(ctx context.Context, origin event.Origin, caller principal.Caller, q Question, words Words,
	ask policy.Ask) (policy.Approval, error) {
	said, err := words.text()
	if err != nil {
		return policy.Approval{}, err
	}
	action, reason, err := a.action(ctx, caller, q)
	if err != nil {
		return policy.Approval{}, err
	}
	var r policy.Ruling
	if kind, known := policy.KindOf(action.Type); reason != "" {
		r = unjudged(action, reason)
	} else if known && !kind.Outside {
		r = unjudged(action, policy.ReasonNotOutside)
	} else if r, err = a.Gate.Judge(ctx, action); err != nil {
		return policy.Approval{}, err
	}
	d := r.Decision
	switch {
	case d.Outcome == policy.Allow && r.Standing == "":
		return policy.Approval{}, ErrNotRequired
	case d.Outcome == policy.Allow:
		return policy.Approval{}, fault.New(fault.Conflict, ErrNotRequired.Code, "a standing approval covers it, so there is nothing to approve")
	case d.Outcome == policy.Deny:
		if _, err := a.refuse(ctx, origin, caller, q, r, "", false); err != nil {
			return policy.Approval{}, err
		}
		return policy.Approval{}, fault.New(fault.Denied, d.ReasonCode, "%s", d.Reason).With(d.Suggestion)
	}
	origin.Principal = action.Principal
	ask.AgentTitle, ask.AgentWords, ask.Thread, ask.Through = words.Title, said, q.Thread, through(caller, action.Principal)
	return a.Gate.Ask(ctx, origin, r, ask, origin.Once(event.Batch{Workspace: action.Workspace}))
}

// text returns the words as they are shown.
func (w Words) text() (string, error) {
	if len(w.Title) > MaxTitle {
		return "", fault.New(fault.Invalid, "invalid_title", "a title has at most %d bytes", MaxTitle)
	}
	text := w.Title
	if len(w.Context) > 0 && string(w.Context) != "null" {
		canonical, err := policy.Canonicalize(w.Context)
		if err != nil {
			return "", err
		}
		if text != "" {
			text += " "
		}
		text += string(canonical)
	}
	if len(text) > policy.MaxAgentWords {
		return "", fault.New(fault.Invalid, "context_too_large", "title and context together have at most %d bytes", policy.MaxAgentWords)
	}
	return text, nil
}

// action returns the action to judge, or the code of a refusal without judgement.
func (a *Service) action(ctx context.Context, caller principal.Caller, q Question) (policy.Action, string, error) {
	if err := q.plain(); err != nil {
		return policy.Action{}, "", err
	}
	if q.Action == "" {
		return policy.Action{}, "", ErrMissingAction
	}
	switch q.Zone {
	case "":
		q.Zone = event.Supervised
	case event.Sandbox, event.Supervised, event.HighStakes:
	default:
		return policy.Action{}, "", ErrInvalidZone
	}
	who, reason, err := acting(caller, q)
	if err != nil {
		return policy.Action{}, "", err
	}
	token := cmp.Or(q.Token, caller.Token)
	if caller.Token != "" && token != caller.Token && reason == "" { // a caller under a token cannot escape it by naming another one
		reason = policy.ReasonTokenMismatch
	}
	action := policy.Action{
		Type: policy.TypeOf(q.Action), Workspace: caller.Workspace, Room: q.Room, Principal: who, Token: token, Space: q.Space, Run: q.Run,
		Step: q.Step,
		Zone: q.Zone, Target: q.Target, Method: q.Method, Tool: q.Tool,
	}
	if len(q.Request) > 0 && string(q.Request) != "null" {
		if action.Request, err = policy.Canonicalize(q.Request); err != nil {
			return policy.Action{}, "", err
		}
		if len(action.Request) > policy.MaxRequestBytes || action.Request[0] != '{' {
			return policy.Action{}, "", ErrInvalidRequest
		}
	}
	for _, text := range []string{q.Target, q.Method, q.Tool, string(q.Space), string(action.Request), string(q.Run), string(q.Step)} {
		if _, found := leak.Text(text); len(found) > 0 {
			return policy.Action{}, "", ErrSecret
		}
	}
	if err := a.house(ctx, &action); err != nil {
		return policy.Action{}, "", err
	}
	if err := a.Place(ctx, caller.Workspace, action.Room, q.Thread); err != nil {
		return policy.Action{}, "", err
	}
	if _, builtIn := policy.KindOf(action.Type); action.Target == "" && (action.Type == policy.QuestionAsk || !builtIn) {
		action.Subject = cmp.Or(string(action.Run), string(action.Room), string(action.Workspace)) // the subject of the action
	}
	return action, reason, nil
}

// Preview returns the action that a question is about, for a caller that only wants to know how it would be judged.
func (a *Service) Preview(ctx context.Context, caller principal.Caller, q Question) (policy.Action, error) {
	action, reason, err := a.action(ctx, caller, q)
	if err == nil && reason != "" {
		d := unjudged(action, reason).Decision
		err = fault.New(fault.Denied, d.ReasonCode, "%s", d.Reason).With(d.Suggestion)
	}
	if kind, known := policy.KindOf(action.Type); err == nil && known && !kind.Outside {
		err = fault.New(fault.Invalid, policy.ReasonNotOutside, "%s", unjudged(action, policy.ReasonNotOutside).Decision.Reason).With(
			"Name the operation instead.")
	}
	return action, err
}

// plain turns a plain question into the action that puts it to a person, and refuses it together with what only something that is done
// has.
func (q *Question) plain() error {
	if q.Action != "" && q.Action != policy.QuestionAsk {
		if q.Text != "" {
			return policy.ErrQuestionWithAction
		}
		return nil
	}
	if q.Action == "" && q.Text == "" {
		return nil
	}
	var said struct {
		Question string `json:"question"`
	}
	if len(q.Request) > 0 && string(q.Request) != "null" { // the request of the question, as an approval shows it
		dec := json.NewDecoder(bytes.NewReader(q.Request))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&said); err != nil || q.Text != "" && said.Question != q.Text {
			return policy.ErrQuestionWithTarget
		}
	}
	if q.Target != "" || q.Method != "" || q.Tool != "" || q.Space != "" || q.Zone != "" && q.Zone != event.Supervised {
		return policy.ErrQuestionWithTarget
	}
	if q.Step != "" && q.Run == "" {
		return policy.ErrSubjectStep
	}
	request, err := policy.Questioned(cmp.Or(q.Text, said.Question))
	q.Action, q.Request = policy.QuestionAsk, request
	return err
}

// house fills in the room of the run and the space of an action, and refuses those that do not belong together.
func (a *Service) house(ctx context.Context, action *policy.Action) error {
	var in id.Space
	if action.Run != "" {
		doc, _, err := projection.Load[run.Run](ctx, a.Docs, action.Workspace, run.Projection, string(action.Run))
		switch {
		case errors.Is(err, projection.ErrNotFound):
			return ErrRunNotFound
		case err != nil:
			return err
		case action.Room != "" && action.Room != doc.Room:
			return ErrRunRoom
		}
		action.Room, in = doc.Room, doc.Space
	}
	if action.Space == "" {
		return nil
	}
	doc, _, err := projection.Load[space.Space](ctx, a.Docs, action.Workspace, space.Projection, string(action.Space))
	switch {
	case errors.Is(err, projection.ErrNotFound):
		return ErrSpaceNotFound
	case err != nil:
		return err
	case action.Room != "" && action.Room != doc.Room, in != "" && in != action.Space:
		return ErrSpaceRoom
	}
	action.Room = doc.Room
	return nil
}

// acting returns the acting principal. Identity comes from the caller. The question must agree with it, or the caller must be one who
// acts for the agents of the workspace.
func acting(caller principal.Caller, q Question) (id.Principal, string, error) {
	who := q.Principal
	if who == "" {
		if p, err := id.ParsePrincipal(q.ActorID); err == nil {
			who = p
		} else if q.ActorType == string(id.Agent) && caller.Principal.Kind() != id.Agent {
			return caller.Principal, policy.ReasonAgentRequired, nil
		} else {
			who = caller.Principal
		}
	}
	if who != caller.Principal {
		may := caller.Principal.Kind() == id.Service || caller.Principal.Kind() == id.User && caller.Role.AtLeast(principal.Admin)
		if !may || who.Kind() != id.Agent {
			return "", "", ErrMayNotAct
		}
	}
	if q.ActorID != "" && q.ActorID != string(who) || q.ActorType != "" && q.ActorType != string(who.Kind()) {
		return who, policy.ReasonActorMismatch, nil
	}
	return who, "", nil
}

// unjudged is the refusal of an action that the gate did not judge.
func unjudged(a policy.Action, code string) policy.Ruling {
	d := policy.Decision{Outcome: policy.Deny, ReasonCode: code}
	switch code {
	case policy.ReasonAgentRequired:
		d.Reason, d.Suggestion = "an agent is to act, and nothing says which", "Send its principal_id."
	case policy.ReasonTokenMismatch:
		d.Reason, d.Suggestion = "whoever acts under a capability token asks under that one",
			"Leave capability_token_id out, or name a token that was derived from it."
	case policy.ReasonActorMismatch:
		d.Reason, d.Suggestion = "actor_type and actor_id name somebody else than who acts",
			"Leave them out, or let them agree with principal_id."
	default:
		d.Reason = "to " + titleOf(a.Type) + " is done by Agentbox itself, which decides on it then"
		d.Suggestion = "POST /v1/policies/explain tells what would be decided about an operation."
	}
	if canonical, err := a.Canonical(); err == nil {
		d.Action = event.DigestOf(canonical)
	}
	return policy.Ruling{Action: a, Decision: d}
}

func titleOf(typ string) string {
	kind, _ := policy.KindOf(typ)
	return kind.Title
}

// Know fills empty fields of a question from the members tool_name, egress_domain and method of its context.
func Know(q *Question, context json.RawMessage) error {
	if len(context) == 0 || string(context) == "null" {
		return nil
	}
	var said struct {
		Tool   string `json:"tool_name"`
		Target string `json:"egress_domain"`
		Method string `json:"method"`
	}
	if err := json.Unmarshal(context, &said); err != nil {
		return fault.New(fault.Invalid, "invalid_context", "context is a JSON object; tool_name, egress_domain and method in it are texts")
	}
	q.Tool, q.Target, q.Method = cmp.Or(q.Tool, said.Tool), cmp.Or(q.Target, said.Target), cmp.Or(q.Method, said.Method)
	return nil
}
