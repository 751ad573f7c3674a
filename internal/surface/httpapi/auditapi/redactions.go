package auditapi

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/vault"
	redacting "agentbox/internal/service/redaction"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// redactionRequest names the data to redact.
type redactionRequest struct {
	Event  id.Event `json:"event_id,omitempty" maxLength:"36" doc:"The event whose data are destroyed; this, or run_id"`
	Run    id.Run   `json:"run_id,omitempty" maxLength:"100" doc:"The run, which has ended, of which the data of every event are destroyed"`
	Reason string   `json:"reason" minLength:"1" maxLength:"2000" doc:"Why; it stays in the log"`
}

// redaction is one redacted event, as the log says it.
type redaction struct {
	Event     id.Event     `json:"event_id" doc:"That was redacted"`
	Type      string       `json:"event_type" doc:"Of it"`
	Seq       uint64       `json:"seq" doc:"Its place in the workspace"`
	Run       id.Run       `json:"run_id,omitempty"`
	By        id.Event     `json:"redaction_event_id" doc:"The event.redacted that says so"`
	Principal id.Principal `json:"principal_id" doc:"Who asked for it; the daemon itself where its time was over"`
	Reason    string       `json:"reason"`
	At        time.Time    `json:"redacted_at"`
}

type redactions struct {
	Redactions []redaction    `json:"redactions" nullable:"false"`
	Contents   *vault.Remains `json:"contents,omitempty" doc:"What became of the content that the events had brought; only in the first answer to a request, and where they had brought any"`
	Next       string         `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

// Redactions are the operations for redactions.
type Redactions struct {
	access.Part
	redaction *redacting.Service
}

// NewRedactions returns the operations for redactions.
func NewRedactions(p access.Part, redaction *redacting.Service) *Redactions {
	return &Redactions{p, redaction}
}

// Register adds the operations to the server.
func (s *Redactions) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "redact-events", Home: wire.AtLeader, Needs: wire.Does(policy.AuditRedact).From(principal.Admin), Method: http.MethodPost,
		Path: "/v1/audit/redactions", Tag: "audit", Summary: "Destroy the data of events, for good",
		Repeat: wire.RepeatRecalled,
		Detail: "Of one event, or of every event of a run. The key under which the data are sealed is destroyed, and with it the data in every " +
			"backup that has not the keys; documents are folded anew. " +
			"The event itself stays, with its hash: chains and earlier proofs hold as before. Only owners and admins may. docs/FORGETTING.md says " +
			"what is forgotten and what cannot be.",
	}, s.redact)
	wire.Handle(s.Server, wire.Operation{
		ID: "list-redactions", Needs: wire.Shows("audit"), Method: http.MethodGet, Path: "/v1/audit/redactions", Tag: "audit",
		Summary: "List what was redacted, in the order of the log",
	}, s.listRedactions)
}

func (s *Redactions) redact(ctx context.Context, c wire.Call, in *struct{ Body redactionRequest }) (*struct{ Body redactions }, error) {
	q := redacting.Request{Event: in.Body.Event, Run: in.Body.Run, Reason: in.Body.Reason}
	receipt, err := wire.Once(c, func() (redacting.Receipt, error) { return s.redaction.Redacted(ctx, c.Caller.Workspace, q) },
		func() (redacting.Receipt, error) { return s.redaction.Redact(ctx, c.Once(), c.Caller.Workspace, q) })
	if err != nil {
		return nil, err
	}
	out := redactions{Redactions: said(receipt.Redactions)}
	if r := receipt.Remains; r.Forgotten+len(r.Shared)+len(r.Live)+len(r.Missed) > 0 {
		out.Contents = &r
	}
	return &struct{ Body redactions }{out}, nil
}

func (s *Redactions) listRedactions(ctx context.Context, c wire.Call,
	in *struct{ access.Page[access.LogPlace] }) (*struct{ Body redactions }, error) {
	found, upTo, err := s.redaction.List(ctx, c.Caller.Workspace, in.Cursor.After.Number(), in.Limit)
	if err != nil {
		return nil, err
	}
	out := redactions{Redactions: said(found)}
	if len(found) == in.Limit {
		out.Next = strconv.FormatUint(upTo, 10)
	}
	out.Redactions, err = access.Visible(ctx, s.Access, c, out.Redactions, func(x redaction) label.Resource {
		return label.Resource{Type: leak.Entity, ID: string(x.Event)}
	})
	return &struct{ Body redactions }{out}, err
}

func said(found []redacting.Redaction) []redaction {
	out := make([]redaction, len(found))
	for i, r := range found {
		out[i] = redaction{Event: r.Event, Type: r.Type, Seq: r.Seq, Run: r.Run, By: r.By, Principal: r.Principal, Reason: r.Reason, At: r.At}
	}
	return out
}
