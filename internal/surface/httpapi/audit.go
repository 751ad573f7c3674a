package httpapi

import (
	"context"
	"net/http"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/auditor"
	"agentbox/internal/surface/httpapi/wire"
)

// AuditQuery selects what is verified.
type AuditQuery struct {
	StreamType string `query:"stream_type" enum:"workspace,room" doc:"With stream_id: only this stream; without both, every stream of the workspace"`
	StreamID   string `query:"stream_id" maxLength:"100"`
	Limit      int    `query:"limit" minimum:"1" maximum:"10000" default:"2000" doc:"The most events of the one stream that are checked, from its first on"`
}

// auditReport is what a verification found.
type auditReport struct {
	Checked  int             `json:"checked" doc:"Events that were held against their hashes"`
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

func (s *Server) registerAudit() {
	wire.Handle(s.Server, wire.Operation{
		ID: "verify-hash-chain", Method: http.MethodGet, Path: "/v1/audit/hash-chain/verify", Tag: "audit", Summary: "Verify the log",
		Detail: "Recomputes the commitment and the hash of every event and its tie to the one before it, and names the first that is wrong.",
	}, s.verifyChain)
}

func (s *Server) verifyChain(ctx context.Context, c wire.Call, in *AuditQuery) (*struct{ Body auditReport }, error) {
	var report auditor.Report
	var err error
	switch {
	case (in.StreamType == "") != (in.StreamID == ""):
		return nil, fault.New(fault.Invalid, "stream_type_and_stream_id_required_together", "stream_type and stream_id name a stream together; send both or none")
	case in.StreamType == "":
		report, err = auditor.Verify(ctx, s.services.Log, c.Caller.Workspace)
	default:
		report, err = auditor.VerifyStream(ctx, s.services.Log, c.Caller.Workspace, event.Stream{Type: in.StreamType, ID: in.StreamID}, in.Limit)
	}
	if err != nil {
		return nil, err
	}
	out := auditReport{Checked: report.Checked, Valid: report.OK, Streams: []verifiedChain{}}
	for _, chain := range report.Streams {
		out.Streams = append(out.Streams, verifiedChain{Stream: chain.Stream, Events: chain.Events, LastHash: chain.LastHash})
		out.LastHash = chain.LastHash
	}
	if len(report.Findings) > 0 {
		f := report.Findings[0]
		out.Mismatch = &auditMismatch{
			Seq: f.Seq, StreamType: f.Stream.Type, StreamID: f.Stream.ID, StreamSeq: f.StreamSeq, Event: f.Event, Kind: f.Kind, Expected: f.Expected, Actual: f.Actual, Detail: f.Detail,
		}
	}
	return &struct{ Body auditReport }{out}, nil
}
