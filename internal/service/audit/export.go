package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// exportFormat names the form of an export: JSON Lines, an exportHead and then one exported event in each line.
const exportFormat = "agentbox-audit-export/1"

// exportHead is the first line of an export.
type exportHead struct {
	Format     string           `json:"format"`
	Workspace  id.Workspace     `json:"workspace_id"`
	Complete   bool             `json:"complete"` // every event that the checkpoint was signed for is there, so that its root can be computed
	Checkpoint string           `json:"checkpoint"`
	PublicKey  merkle.PublicKey `json:"public_key"`
}

// exported is a line of an export: an event, and the hashes that prove it unless the export is complete.
type exported struct {
	Header string   `json:"header"`
	Salt   []byte   `json:"salt,omitempty"`
	Data   []byte   `json:"data,omitempty"`
	Hashes []string `json:"hashes,omitempty"`
}

// Selection says which events are exported; the zero Selection is all of them.
type Selection struct {
	Run         id.Run
	First, Last uint64 // places, inclusive; 0 for the ends
}

// Export writes the selected events, as far as the last checkpoint covers them, in a form that anybody can check without this log. It
// returns how many.
func (p *Prover) Export(ctx context.Context, ws id.Workspace, s Selection, to io.Writer) (int, error) {
	signed, err := p.Checkpoint(ctx, ws)
	if err != nil {
		return 0, err
	}
	size := signed.Checkpoint.Size
	q := journal.Query{Workspace: ws, Run: s.Run, From: max(s.First, 1), Before: size + 1, Limit: journal.MaxRead}
	if s.Last != 0 {
		q.Before = min(q.Before, s.Last+1)
	}
	complete := s.Run == "" && q.From == 1 && q.Before == size+1
	out := bufio.NewWriterSize(to, 1<<20)
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(exportHead{exportFormat, ws, complete, signed.Note, p.key}); err != nil {
		return 0, err
	}
	n := 0
	err = p.with(ctx, ws, signed, func(hashes tlog.HashReader) error {
		if n > 0 {
			return nil // the export has begun; other hashes would not repair it
		}
		for q.From < q.Before {
			events, err := p.log.Read(ctx, q)
			if err != nil {
				return err
			}
			for i := range events {
				e := &events[i]
				evidence := evidenceOf(e)
				line := exported{Header: evidence.Header, Salt: evidence.Salt, Data: evidence.Data}
				if !complete {
					proof, err := merkle.ProveInclusion(hashes, e.Seq, e.Chain.Hash, []byte(signed.Note), p.key)
					if err != nil {
						return err
					}
					line.Hashes = proof.Hashes
				}
				if err := encoder.Encode(line); err != nil {
					return err
				}
				n++
				q.From = e.Seq + 1
			}
			if len(events) < q.Limit {
				break
			}
		}
		return nil
	})
	return n, errors.Join(err, out.Flush())
}

// Checked is the result of a checked proof document.
type Checked struct {
	Kind       string            // event, consistency or export
	Checkpoint merkle.Checkpoint // under which it holds
	Old        uint64            // of a consistency: the earlier size
	OldRoot    string            // and its root, which the reader compares with the root that they hold
	Events     int               // that were proven
	Complete   bool              // of an export: no event of the log is missing
	Event      Proven            // of an event
}

// Check verifies a document of proof (of an event, of consistency, or an export) with a key that was got elsewhere, and needs nothing else.
func Check(r io.Reader, key merkle.PublicKey) (Checked, error) {
	decoder := json.NewDecoder(bufio.NewReaderSize(r, 1<<20))
	var first json.RawMessage
	if err := decoder.Decode(&first); err != nil {
		return Checked{}, unreadable(err)
	}
	var probe struct {
		Format string          `json:"format"`
		Proof  json.RawMessage `json:"proof"`
		Old    *uint64         `json:"old_size"`
	}
	if err := json.Unmarshal(first, &probe); err != nil {
		return Checked{}, unreadable(err)
	}
	switch {
	case probe.Format == exportFormat:
		return checkExport(first, decoder, key)
	case probe.Proof != nil:
		var e Evidence
		if err := strictly(first, &e); err != nil {
			return Checked{}, unreadable(err)
		}
		proven, err := e.Check(key)
		return Checked{Kind: "event", Checkpoint: proven.Checkpoint, Events: 1, Event: proven}, err
	case probe.Old != nil:
		var c merkle.Consistency
		if err := strictly(first, &c); err != nil {
			return Checked{}, unreadable(err)
		}
		if err := c.Check(key); err != nil {
			return Checked{}, err
		}
		checkpoint, err := merkle.Open([]byte(c.Checkpoint), key)
		return Checked{Kind: "consistency", Checkpoint: checkpoint, Old: c.Old, OldRoot: c.OldRoot}, err
	}
	return Checked{}, unreadable(nil)
}

// strictly reads a document and rejects unknown fields, because a field that we do not read is not proven.
func strictly(raw []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	return decoder.Decode(v)
}

func unreadable(err error) error {
	return fault.Wrap(err, fault.Invalid, "proof_unreadable", "that is no proof that agentbox audit prove or agentbox audit export wrote")
}

func checkExport(first []byte, lines *json.Decoder, key merkle.PublicKey) (Checked, error) {
	var head exportHead
	if err := strictly(first, &head); err != nil {
		return Checked{}, unreadable(err)
	}
	c, err := merkle.Open([]byte(head.Checkpoint), key)
	if err != nil {
		return Checked{}, err
	}
	checked := Checked{Kind: "export", Checkpoint: c, Complete: head.Complete}
	if ws, _ := c.Workspace(); ws != head.Workspace {
		return checked, merkle.ErrProof
	}
	var edge merkle.Edge
	var spare []merkle.Hash
	lines.DisallowUnknownFields()
	for {
		var line exported
		if err := lines.Decode(&line); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return checked, unreadable(err)
		}
		evidence := Evidence{Header: line.Header, Salt: line.Salt, Data: line.Data}
		proven, err := evidence.proven()
		if err != nil {
			return checked, err
		}
		hash := event.DigestOf([]byte(line.Header))
		if head.Complete {
			if proven.Workspace != head.Workspace || proven.Seq != edge.Size()+1 {
				return checked, fault.New(fault.Invalid, merkle.ErrProof.Code, "the export is not complete: event %d follows event %d", proven.Seq,
					edge.Size())
			}
			spare = edge.Add(merkle.LeafHash(proven.Seq, hash), spare[:0])
		} else {
			evidence.Proof = merkle.Inclusion{
				Seq: proven.Seq, EventHash: hash, Record: string(merkle.LeafOf(proven.Seq, hash)), Index: proven.Seq - 1,
				Hashes: line.Hashes, Checkpoint: head.Checkpoint, PublicKey: key,
			}
			if _, err := evidence.Check(key); err != nil {
				return checked, err
			}
		}
		checked.Events++
	}
	if head.Complete && (edge.Size() != c.Size || edge.Root() != c.Root) {
		return checked, fault.New(fault.Invalid, merkle.ErrProof.Code,
			"the export does not hold: its %d events are not the %d that the checkpoint was signed for", edge.Size(), c.Size)
	}
	return checked, nil
}
