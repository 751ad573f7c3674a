package policyapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gate/approvals"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// AnswerRequest answers a question.
type AnswerRequest struct {
	Decision  string    `json:"decision" enum:"approve,deny,hold,approved,denied" doc:"approve or deny; hold says that somebody looks into it, and a final answer follows. approved and denied are older names that a resume had"`
	Reason    string    `json:"reason,omitempty" maxLength:"2000"`
	Scope     string    `json:"scope,omitempty" enum:"once,run,room,workspace,template" doc:"once by default; every other scope makes a standing approval and needs expires_at and uses"`
	ExpiresAt time.Time `json:"expires_at,omitzero" doc:"Until when the answer, or the standing approval, holds"`
	Uses      int       `json:"uses,omitempty" minimum:"1" doc:"How often the standing approval may be used"`

	Saw *event.Digest `json:"action_sha256,omitempty" doc:"Of the action that the person saw; where the approval is about another one, the answer is 409 action_mismatch"`
}

// withdrawRequest takes a question back.
type withdrawRequest struct {
	Reason string `json:"reason,omitempty" maxLength:"2000"`
}

type approvalList struct {
	Approvals []policy.Approval `json:"approvals" nullable:"false"`
	Next      string            `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type standingList struct {
	Standing []policy.Standing `json:"standing_approvals" nullable:"false"`
	Next     string            `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type approvalAnswer struct{ Body policy.Approval }

// ApprovalPath names an approval.
type ApprovalPath struct {
	Approval string `path:"approval_id" doc:"The approval"`
}

// Approvals are the operations for approvals.
type Approvals struct {
	access.Part
	gate *gate.Gate
}

// NewApprovals returns the operations for approvals.
func NewApprovals(p access.Part, gate *gate.Gate) *Approvals {
	return &Approvals{p, gate}
}

// Register adds the operations to the server.
func (s *Approvals) Register() {
	wire.Handle(s.Server, wire.Operation{ID: "list-approvals", Needs: wire.Shows("approval", "run_id", "space_id", "room_id"),
		Method: http.MethodGet, Path: "/v1/approvals", Tag: "approvals", Summary: "List approvals, the newest first"}, s.listApprovals)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-approval", Needs: wire.Shows("approval", "approval_id"), Method: http.MethodGet, Path: "/v1/approvals/{approval_id}",
		Tag: "approvals", Summary: "Show an approval",
		Detail: "`question` is what the daemon wrote about the action: what, why and impact. `agent_words` are the agent's own.",
	}, func(ctx context.Context, c wire.Call, in *ApprovalPath) (*approvalAnswer, error) {
		found, err := s.gate.Approvals.Get(ctx, c.Caller.Workspace, id.Approval(in.Approval))
		return &approvalAnswer{found}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "decide-approval", Needs: wire.Does(policy.ApprovalDecide, "approval_id"), Method: http.MethodPost,
		Path: "/v1/approvals/{approval_id}/decide", Tag: "approvals", Summary: "Answer a question",
		Repeat: wire.RepeatRecalled,
		Detail: "Decided once: approve and deny are final. Nobody approves what they requested themselves, or with a key or token that was " +
			"issued " +
			"by whoever requested it or has approved it before.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ApprovalPath
		Body AnswerRequest
	}) (*approvalAnswer, error) {
		decided, err := wire.Once(c, func() (policy.Approval, error) {
			return access.Then[policy.Approval](ctx, s.Access, c, query.Subject{Projection: policy.ApprovalProjection,
				EntityType: policy.ApprovalEntity, Key: in.Approval})
		}, func() (policy.Approval, error) { return s.Decide(ctx, c, id.Approval(in.Approval), in.Body) })
		return &approvalAnswer{decided}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "withdraw-approval", Needs: wire.Does(policy.ApprovalRequest, "approval_id"), Method: http.MethodPost,
		Path: "/v1/approvals/{approval_id}/withdraw", Tag: "approvals", Summary: "Take a question back",
		Repeat: wire.RepeatHarmless,
		Detail: "For who requested it, or sent it for who acts, while nobody has given a final answer. To withdraw it again changes nothing. " +
			"What a run in a space asks ends with the run: cancel that.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ApprovalPath
		Body *withdrawRequest
	}) (*approvalAnswer, error) {
		reason := ""
		if in.Body != nil {
			reason = in.Body.Reason
		}
		found, err := s.gate.Approvals.TakeBack(ctx, c.Origin(), c.Caller.Workspace, id.Approval(in.Approval), reason)
		return &approvalAnswer{found}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "list-standing-approvals", Needs: wire.Shows("standing_approval"), Method: http.MethodGet, Path: "/v1/standing-approvals",
		Tag: "approvals", Summary: "List standing approvals, the newest first",
	}, func(ctx context.Context, c wire.Call, in *access.Page[id.Standing]) (*struct{ Body standingList }, error) {
		found, err := s.gate.Approvals.Standings(ctx, c.Caller.Workspace, in.Cursor.After, in.Limit+1)
		if err != nil {
			return nil, err
		}
		out := standingList{}
		out.Standing, out.Next = access.Cut(found, in.Limit, func(a policy.Standing) string { return string(a.ID) })
		out.Standing, err = access.Visible(ctx, s.Access, c, out.Standing, func(x policy.Standing) label.Resource {
			return label.Resource{Type: label.OfApproval, ID: string(x.Approval)}
		})
		return &struct{ Body standingList }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "revoke-standing-approval", Needs: wire.Does(policy.StandingRevoke), Method: http.MethodDelete,
		Path: "/v1/standing-approvals/{standing_id}", Tag: "approvals", Summary: "End a standing approval",
		Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *struct {
		Standing string `path:"standing_id" doc:"The standing approval"`
		Reason   string `query:"reason" maxLength:"2000"`
	}) (*struct{}, error) {
		return nil, s.gate.Approvals.Revoke(ctx, c.Origin(), c.Caller.Workspace, id.Standing(in.Standing), in.Reason)
	})
}

func (s *Approvals) listApprovals(ctx context.Context, c wire.Call, in *struct {
	Status string `query:"status" enum:"pending,held,approved,denied,expired,withdrawn" doc:"Only approvals in this state"`
	Run    string `query:"run_id" maxLength:"100"`
	Space  string `query:"space_id" maxLength:"100"`
	Room   string `query:"room_id" maxLength:"100" doc:"Only approvals of this room: its inbox, with status=pending"`
	access.Page[id.Approval]
}) (*struct{ Body approvalList }, error) {
	found, err := s.gate.Approvals.List(ctx, c.Caller.Workspace, approvals.Filter{
		Status: policy.ApprovalStatus(in.Status), Run: id.Run(in.Run), Space: id.Space(in.Space), Room: id.Room(in.Room), After: in.Cursor.After,
		Limit: in.Limit + 1,
	})
	if err != nil {
		return nil, err
	}
	out := approvalList{}
	out.Approvals, out.Next = access.Cut(found, in.Limit, func(a policy.Approval) string { return string(a.ID) })
	out.Approvals = slices.DeleteFunc(out.Approvals, func(a policy.Approval) bool { // of a run or a space of another room
		return in.Room != "" && string(a.Room) != in.Room
	})
	out.Approvals, err = access.Visible(ctx, s.Access, c, out.Approvals, func(x policy.Approval) label.Resource {
		return label.Resource{Type: label.OfApproval, ID: string(x.ID)}
	})
	return &struct{ Body approvalList }{out}, err
}

// olderDecision are the words for decisions that resume-run had before it had those of decide-approval.
var olderDecision = map[string]string{"approved": "approve", "denied": "deny"}

// Decide answers an approval on behalf of the caller.
func (s *Approvals) Decide(ctx context.Context, c wire.Call, approval id.Approval, a AnswerRequest) (policy.Approval, error) {
	return s.gate.Approvals.Decide(ctx, c.Once(), c.Caller.Workspace, approval, policy.Answer{
		Decision: policy.DecisionWord(cmp.Or(olderDecision[a.Decision], a.Decision)), Reason: a.Reason, Scope: policy.Scope(a.Scope),
		ExpiresAt: a.ExpiresAt, Uses: a.Uses, Saw: a.Saw,
	})
}
