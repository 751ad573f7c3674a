package audit

import (
	"context"
	"errors"
	"fmt"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
)

// The kinds of finding about contents that events name by their hash.
const (
	ContentMissing = "content_missing" // it is not there
	ContentCorrupt = "content_corrupt" // it is not what was stored
)

// ContentsReport is the result of verifying the contents that a workspace's events name.
type ContentsReport struct {
	Workspace id.Workspace `json:"workspace_id"`
	OK        bool         `json:"ok"`
	Contents  int          `json:"contents"`         // that were read and held against their hashes
	Sealed    int          `json:"sealed,omitempty"` // that cannot be read, for their keys are not here or were destroyed
	Count     int          `json:"findings_count"`
	Findings  []Finding    `json:"findings"` // the first MaxFindings, in the order of the log

	lacking []Finding // the first MaxFindings of those whose key is not here
	missing int       // contents whose key is not here
}

// VerifyContents reads the operations of every run, and every result that was too long for its event. It checks them against the hashes in
// the log. Others may append meanwhile.
func VerifyContents(ctx context.Context, log journal.Journal, blobs blob.Store, ws id.Workspace) (ContentsReport, error) {
	report := ContentsReport{Workspace: ws, OK: true, Findings: []Finding{}}
	q := journal.Query{
		Workspace: ws, From: 1, Limit: journal.MaxRead,
		Types: run.NamingEvents(),
	}
	for {
		events, err := log.Read(ctx, q)
		if err != nil {
			return report, err
		}
		for i := range events {
			if err := report.hold(ctx, blobs, &events[i]); err != nil {
				return report, err
			}
			q.From = events[i].Seq + 1
		}
		if len(events) < q.Limit {
			report.settleKeys()
			return report, nil
		}
	}
}

// hold holds the contents that an event names against their hashes.
func (r *ContentsReport) hold(ctx context.Context, blobs blob.Store, e *event.Event) error {
	if e.Withheld != "" {
		return nil // it names nothing any more
	}
	named, err := run.ContentsOf(*e)
	for _, one := range named {
		err = errors.Join(err, r.holdOne(ctx, blobs, e, one))
	}
	return err
}

func (r *ContentsReport) holdOne(ctx context.Context, blobs blob.Store, e *event.Event, named run.Input) error {
	r.Contents++
	content, err := blobs.Open(ctx, named.Digest) // which reads it as a whole
	f := Finding{Seq: e.Seq, Stream: e.Stream, StreamSeq: e.StreamSeq, Event: e.ID, Expected: named.Digest}
	switch {
	case err == nil:
		return content.Close()
	case errors.Is(err, vault.ErrMissing):
		r.Contents--
		r.Sealed++
		f.Kind, f.Detail = KeyMissing, fmt.Sprintf("the key of the %d bytes that the event names is not here, while keys of other contents are",
			named.Size)
		if r.missing++; len(r.lacking) < MaxFindings {
			r.lacking = append(r.lacking, f)
		}
		return nil
	case errors.Is(err, vault.ErrForgotten):
		r.Contents--
		r.Sealed++
		return nil
	case errors.Is(err, blob.ErrNotFound):
		f.Kind, f.Detail = ContentMissing, fmt.Sprintf("the %d bytes that the event names are not there", named.Size)
	case fault.CodeOf(err) == ContentCorrupt:
		f.Kind, f.Detail = ContentCorrupt, fmt.Sprintf("the %d bytes that the event names were changed since", named.Size)
	default:
		return err
	}
	r.OK = false
	if r.Count++; len(r.Findings) < MaxFindings {
		r.Findings = append(r.Findings, f)
	}
	return nil
}

// settleKeys reports the contents whose keys are not here, where at least one other content could be opened.
func (r *ContentsReport) settleKeys() {
	if r.missing == 0 || r.Contents == 0 {
		return
	}
	r.OK = false
	r.Count += r.missing
	r.Findings = append(r.Findings, r.lacking...)
	r.Findings = r.Findings[:min(len(r.Findings), MaxFindings)]
}
