package policy

import (
	"encoding/json"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// Cost is how much an action costs the person who bears it: effort, money, trust.
type Cost string

// The costs.
const (
	LowCost    Cost = "low"
	MediumCost Cost = "medium"
	HighCost   Cost = "high"
)

// Recovery is how hard it is to undo an action.
type Recovery string

// The recoveries.
const (
	EasyRecovery Recovery = "easy"
	HardRecovery Recovery = "hard"
)

// The actions outside of Agentbox, by programs that ask before they act, besides ExternalWrite.
const (
	EmailSend         = "email.send"
	PaymentExecute    = "payment.execute"
	APICallIdempotent = "api.call.idempotent"
	APICallMutating   = "api.call.mutating"

	// QuestionAsk is a plain question to a person about a room, a run or the workspace. Nothing is done; the answer is all that comes of it.
	QuestionAsk = "question.ask"
)

// MaxRequestBytes is the most that the request of an action outside may have in canonical form; a person has to read it in full.
const MaxRequestBytes = 32 << 10

// risky describes an action outside that cannot be undone.
func risky(typ, title string, cost Cost) Kind {
	return Kind{
		Type: typ, SideEffect: Network, Zone: event.HighStakes, PreApproval: true, Title: title, Cost: cost, Outside: true,
		Role: "member", Agents: true, Services: true, Rules: RulesRole, Template: TemplateRequest,
	}
}

// aliases are other names of actions, which a caller may use.
var aliases = map[string]string{"external_write": ExternalWrite}

// TypeOf returns the action type for a name.
func TypeOf(name string) string {
	if typ, ok := aliases[name]; ok {
		return typ
	}
	return name
}

// graded returns the kind with all fields that the registry shows. A kind without grades gets them from its zone and from whether it can be
// undone.
func (k Kind) graded() Kind {
	k.PostReview = k.Zone == event.Supervised
	if k.Cost == "" {
		switch {
		case k.Zone == event.HighStakes:
			k.Cost = HighCost
		case k.Reversible || k.Zone == event.Sandbox:
			k.Cost = LowCost
		default:
			k.Cost = MediumCost
		}
	}
	k.Recovery = HardRecovery
	if k.Reversible {
		k.Recovery = EasyRecovery
	}
	return k
}

// BegunOutside drafts action.begun for an action outside. Approval allows it; it may be empty. Through is the principal who sent it for the
// acting one.
func BegunOutside(origin event.Origin, r Ruling, approval id.Approval, through id.Principal) event.Draft {
	a := r.Action
	return event.New(BegunType, origin, a.Workspace, a.Room, Begun{
		Action: a.Type, Title: Title(a), Space: a.Space, Decision: r.Decision, Approval: approval, Standing: r.Standing, Through: through,
	}).In(a.Run, a.Step).About(ActionEntity, r.Decision.Action.String())
}

// RefusedOutside drafts the event of a refused action outside. Approval is the open question about it, if any. The event is about the
// action, if that has canonical bytes.
func RefusedOutside(origin event.Origin, r Ruling, approval id.Approval, through id.Principal) event.Draft {
	typ := DeniedType
	if r.Decision.Outcome == RequireApproval {
		typ = RequiresApprovalType
	}
	a := r.Action
	return aboutAction(event.New(typ, origin, a.Workspace, a.Room, Refused{
		Action: a.Type, Title: Title(a), Space: a.Space, Decision: r.Decision, Bundle: a.Bundle, Approval: approval, Through: through,
	}).In(a.Run, a.Step), r.Decision)
}

// shape returns a request with every value replaced by the name of its kind. Two requests that differ only in values have equal shapes.
func shape(raw json.RawMessage) (string, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", err
	}
	bare, err := json.Marshal(kindsIn(v))
	return string(bare), err
}

func kindsIn(v any) any {
	switch v := v.(type) {
	case map[string]any:
		bare := make(map[string]any, len(v))
		for name, value := range v {
			bare[name] = kindsIn(value)
		}
		return bare
	case []any:
		bare := make([]any, len(v))
		for i, value := range v {
			bare[i] = kindsIn(value)
		}
		return bare
	}
	return fmt.Sprintf("%T", v)
}
