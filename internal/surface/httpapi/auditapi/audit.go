package auditapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// AuditQuery selects the parts of a verification.
type AuditQuery struct {
	StreamType string `query:"stream_type" enum:"workspace,room" doc:"With stream_id: only this stream; without both, every stream of the workspace"`
	StreamID   string `query:"stream_id" maxLength:"100"`
	Limit      int    `query:"limit" minimum:"1" maximum:"10000" default:"2000" doc:"The most events of the one stream that are checked, from its first on"`
}

// auditReport is the result of a verification.
type auditReport struct {
	Checked  int             `json:"checked" doc:"Events that were held against their hashes"`
	Redacted int             `json:"redacted,omitempty" doc:"Of them, whose data were destroyed, as the log says: their headers were checked"`
	Sealed   int             `json:"sealed,omitempty" doc:"Of them, whose data could not be opened, for their key is not here or was destroyed since: not checked either"`
	Valid    bool            `json:"valid"`
	Mismatch *auditMismatch  `json:"first_mismatch,omitempty"`
	LastHash event.Digest    `json:"last_event_hash" doc:"Of the last event that was checked, in the last of the streams"`
	Streams  []verifiedChain `json:"streams" nullable:"false"`
}

type auditMismatch struct {
	Seq        uint64       `json:"seq,omitempty"`
	StreamType string       `json:"stream_type"`
	StreamID   string       `json:"stream_id"`
	StreamSeq  uint64       `json:"stream_seq"`
	Event      id.Event     `json:"event_id"`
	Kind       string       `json:"kind"`
	Expected   event.Digest `json:"expected"`
	Actual     event.Digest `json:"actual"`
	Detail     string       `json:"detail"`
}

type verifiedChain struct {
	event.Stream
	Events   int          `json:"events"`
	LastHash event.Digest `json:"last_event_hash"`
}

// Audit are the operations for the proofs of the log.
type Audit struct {
	access.Part
	query  *query.Service
	log    journal.Journal
	prover *audit.Prover
}

// NewAudit returns the operations for the proofs of the log.
func NewAudit(p access.Part, query *query.Service, log journal.Journal, prover *audit.Prover) *Audit {
	return &Audit{p, query, log, prover}
}

// Register adds the operations to the server.
func (s *Audit) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "verify-hash-chain", Needs: wire.Shows("audit", "stream_id").PastLabels(), Method: http.MethodGet,
		Path: "/v1/audit/hash-chain/verify", Tag: "audit", Summary: "Verify the log", Waits: true,
		Detail: "Recomputes the commitment and the hash of every event and its tie to the one before it, and names the first that is wrong.",
	}, s.verifyChain)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-audit-key", Needs: wire.Shows("audit"), Method: http.MethodGet, Path: "/v1/audit/key", Tag: "audit",
		Summary: "The public key of the checkpoints",
		Detail: "In the form of C2SP signed-note, and as the 32 bytes of the Ed25519 key in base64. Keep it where this daemon's host cannot " +
			"change it.",
	}, s.auditKey)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-checkpoint", Needs: wire.Shows("audit"), Method: http.MethodGet, Path: "/v1/audit/checkpoint", Tag: "audit",
		Summary: "The last signed checkpoint",
		Detail:  "How many events the workspace's log has and the root of the tree over them, as a note of the C2SP form tlog-checkpoint.",
	}, s.checkpoint)
	wire.Handle(s.Server, wire.Operation{
		ID: "prove-inclusion", Needs: wire.Shows("audit"), Method: http.MethodGet, Path: "/v1/audit/proofs/inclusion", Tag: "audit",
		Summary: "Prove that an event is in the log",
		Detail:  "The proof holds under the last checkpoint and is checked without this daemon; docs/PROOFS.md shows how.",
	}, s.inclusion)
	wire.Handle(s.Server, wire.Operation{
		ID: "prove-consistency", Needs: wire.Shows("audit"), Method: http.MethodGet, Path: "/v1/audit/proofs/consistency", Tag: "audit",
		Summary: "Prove that the log continues an earlier one",
		Detail:  "Proves that the log of the last checkpoint begins with the events that an earlier checkpoint was signed for.",
	}, s.consistency)
}

// auditKey is the public key of an installation.
type auditKey struct {
	Name      string `json:"name" doc:"Of the installation; the origin of each checkpoint begins with it"`
	PublicKey string `json:"public_key" doc:"C2SP signed-note: name+hash+key"`
	Ed25519   []byte `json:"ed25519" doc:"The key alone, in base64"`
}

// auditCheckpoint is a signed checkpoint and its values.
type auditCheckpoint struct {
	Origin    string `json:"origin"`
	Size      uint64 `json:"size" doc:"Events that it was signed for"`
	Root      string `json:"root_hash" doc:"In base64"`
	Note      string `json:"checkpoint" doc:"The signed note, byte for byte"`
	PublicKey string `json:"public_key"`
}

func (s *Audit) auditKey(context.Context, wire.Call, *struct{}) (*struct{ Body auditKey }, error) {
	key := s.prover.PublicKey()
	return &struct{ Body auditKey }{auditKey{key.Name(), string(key), key.Raw()}}, nil
}

func (s *Audit) checkpoint(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body auditCheckpoint }, error) {
	signed, err := s.prover.Checkpoint(ctx, c.Caller.Workspace)
	if err != nil {
		return nil, err
	}
	said := signed.Checkpoint
	return &struct{ Body auditCheckpoint }{auditCheckpoint{said.Origin, said.Size, said.Root.String(), signed.Note, string(signed.PublicKey)}},
		nil
}

// InclusionQuery names an event.
type InclusionQuery struct {
	Event id.Event `query:"event_id" maxLength:"36" doc:"This, or seq"`
	Seq   uint64   `query:"seq" doc:"The event's place in the workspace"`
}

func (s *Audit) inclusion(ctx context.Context, c wire.Call, in *InclusionQuery) (_ *struct{ Body audit.Evidence }, err error) {
	var evidence audit.Evidence
	switch {
	case (in.Event == "") == (in.Seq == 0):
		return nil, fault.New(fault.Invalid, "event_required", "name the event by event_id or by seq")
	case in.Event != "":
		evidence, err = s.prover.Evidence(ctx, c.Caller.Workspace, in.Event)
	default:
		evidence, err = s.prover.EvidenceAt(ctx, c.Caller.Workspace, in.Seq)
	}
	if err != nil {
		return nil, err
	}
	// The proof holds without the data, which stay where a label keeps them.
	e, err := s.query.At(ctx, c.Caller.Workspace, evidence.Proof.Seq)
	if err != nil {
		return nil, err
	}
	sight, err := s.Sight(ctx, c)
	if err != nil {
		return nil, err
	}
	if e, err = sight.Event(ctx, e); err == nil && e.Withheld == event.Labelled {
		evidence.Salt, evidence.Data = nil, nil
	}
	return &struct{ Body audit.Evidence }{evidence}, err
}

// ConsistencyQuery names an earlier log.
type ConsistencyQuery struct {
	Old uint64 `query:"old_size" required:"true" doc:"Events that the earlier checkpoint was signed for"`
}

func (s *Audit) consistency(ctx context.Context, c wire.Call, in *ConsistencyQuery) (*struct{ Body merkle.Consistency }, error) {
	proof, err := s.prover.Consistency(ctx, c.Caller.Workspace, in.Old)
	if err != nil {
		return nil, err
	}
	return &struct{ Body merkle.Consistency }{proof}, nil
}

func (s *Audit) verifyChain(ctx context.Context, c wire.Call, in *AuditQuery) (*struct{ Body auditReport }, error) {
	var report audit.Report
	var err error
	switch {
	case (in.StreamType == "") != (in.StreamID == ""):
		return nil, fault.New(fault.Invalid, "stream_type_and_stream_id_required_together",
			"stream_type and stream_id name a stream together; send both or none")
	case in.StreamType == "":
		report, err = audit.Verify(ctx, s.log, c.Caller.Workspace)
	default:
		report, err = audit.VerifyStream(ctx, s.log, c.Caller.Workspace, event.Stream{Type: in.StreamType, ID: in.StreamID}, in.Limit)
	}
	if err != nil {
		return nil, err
	}
	out := auditReport{Checked: report.Checked, Redacted: report.Redacted, Sealed: report.Sealed, Valid: report.OK, Streams: []verifiedChain{}}
	for _, chain := range report.Streams {
		out.Streams = append(out.Streams, verifiedChain{Stream: chain.Stream, Events: chain.Events, LastHash: chain.LastHash})
		out.LastHash = chain.LastHash
	}
	if len(report.Findings) > 0 {
		f := report.Findings[0]
		out.Mismatch = &auditMismatch{
			Seq: f.Seq, StreamType: f.Stream.Type, StreamID: f.Stream.ID, StreamSeq: f.StreamSeq, Event: f.Event, Kind: f.Kind, Expected: f.Expected,
			Actual: f.Actual, Detail: f.Detail,
		}
	}
	return &struct{ Body auditReport }{out}, nil
}
