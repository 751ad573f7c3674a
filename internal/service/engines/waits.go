package engines

import (
	"context"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/domain/tool"
	"agentbox/internal/kernel/projection"
)

// What a run of an engine waits for.
const (
	ForApproval = "approval" // somebody has to approve or deny an action
	ForAnswer   = "answer"   // the tool ask_person has asked the people of its thread
)

// Waits says what a run of an engine waits for: a person. The zero value waits for nobody.
type Waits struct {
	For       string        `json:"waits_for,omitempty" enum:"approval,answer" doc:"Of a run that an engine executes: what it, or a run of one of its tool calls, waits for: a person who approves or denies, or one who answers the tool ask_person. Absent while it waits for nobody"`
	Approvals []id.Approval `json:"approval_ids,omitempty" doc:"The open questions that it waits for"`
}

// Waits returns what a run of an engine waits for. The runs that are executed for its open tool calls count, those of sub-agents too: its
// call goes on when they do.
func (lo *Look) Waits(ctx context.Context, doc run.Run) (w Waits, err error) {
	if !doc.Engine || doc.Status.Ended() {
		return w, nil
	}
	docs, ws, asks := lo.service.Docs, doc.Workspace, false
	for runs := []id.Run{doc.ID}; len(runs) > 0; runs = runs[1:] {
		for _, status := range []policy.ApprovalStatus{policy.Pending, policy.Held} {
			open, err := projection.List[policy.Approval](ctx, docs, projection.Query{Workspace: ws, Name: policy.ApprovalProjection,
				Index: projection.Index{Name: "run_status", Value: string(runs[0]) + " " + string(status)}, Limit: mostAtOnce})
			if err != nil {
				return Waits{}, err
			}
			for _, a := range open {
				w.Approvals = append(w.Approvals, a.ID)
			}
		}
		calls, err := projection.List[step.Call](ctx, docs, projection.Query{Workspace: ws, Name: step.CallProjection,
			Index: projection.Index{Name: indexOpen, Value: string(runs[0])}, Limit: mostAtOnce})
		if err != nil {
			return Waits{}, err
		}
		for _, c := range calls {
			asks = asks || c.Tool == tool.AskPerson
			if c.Child != "" {
				runs = append(runs, c.Child)
			}
		}
	}
	switch {
	case len(w.Approvals) > 0:
		w.For = ForApproval
	case asks:
		w.For = ForAnswer
	}
	return w, nil
}

// mostAtOnce bounds the open questions and the open tool calls of one run that Waits looks at.
const mostAtOnce = 100
