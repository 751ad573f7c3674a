package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// ProveRun proves the events of a run under the last checkpoint, as far as that covers them; nil where nothing was signed yet.
func (p *Prover) ProveRun(ctx context.Context, ws id.Workspace, r id.Run) (*run.Proof, error) {
	signed, err := p.Checkpoint(ctx, ws)
	if errors.Is(err, merkle.ErrNone) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	proof := run.Proof{Checkpoint: signed.Note, PublicKey: string(p.key)}
	err = p.with(ctx, ws, signed, func(hashes tlog.HashReader) error {
		proof.Inclusions = []run.Inclusion{}
		q := journal.Query{Workspace: ws, Run: r, Before: signed.Checkpoint.Size + 1, Limit: journal.MaxRead}
		for {
			events, err := p.log.Read(ctx, q)
			if err != nil {
				return err
			}
			for _, e := range events {
				shown, err := merkle.ProveInclusion(hashes, e.Seq, e.Chain.Hash, []byte(signed.Note), p.key)
				if err != nil {
					return err
				}
				proof.Inclusions = append(proof.Inclusions, run.Inclusion{Seq: e.Seq, Hashes: shown.Hashes})
				q.From = e.Seq + 1
			}
			if len(events) < q.Limit {
				return nil
			}
		}
	})
	return &proof, err
}

// Attest checks the events of a transcript against their own hashes and the enclosed proof, and its outcomes against the events. It needs
// only the transcript. The reader decides whether to trust the key's owner. Attest refuses a transcript that contradicts itself.
func Attest(t *run.Transcript) (run.Attestation, error) {
	a := run.Attestation{Events: len(t.Events)}
	told := fold{doc: run.Run{}, whole: true}
	results := map[id.Event]run.Ended{}
	places := map[uint64]*event.Event{}
	ends := map[event.Stream]*event.Event{}
	for i := range t.Events {
		e := &t.Events[i]
		whole, err := genuine(e, &t.Header.Run)
		if err != nil {
			return a, err
		}
		if last := ends[e.Stream]; last != nil && (e.Seq <= last.Seq || e.StreamSeq <= last.StreamSeq || e.StreamSeq == last.StreamSeq+1 &&
			e.Chain.Prev != last.Chain.Hash) {
			return a, contradicts("event %d does not follow event %d", e.Seq, last.Seq)
		}
		ends[e.Stream], places[e.Seq] = e, e
		if err := told.add(e, whole); err != nil {
			return a, err
		}
		if !whole {
			continue
		}
		a.Whole++
		switch e.Type {
		case run.EventCreated:
			err = boundInput(t, e)
		case run.EventStarted:
			err = boundStart(t, e)
		case run.EventSucceeded, run.EventErred, run.EventUnknown:
			results[e.ID], err = read[run.Ended](e)
		}
		if err != nil {
			return a, err
		}
	}
	if err := told.settle(&t.Header.Run); err != nil {
		return a, err
	}
	for _, o := range t.Outcomes {
		p := t.Header.Run.Operations[o.Index]
		if said := run.OutcomeOf(o.Index, p, o.Result); p.State != run.Done || !said.Like(o) {
			return a, contradicts("what it says of operation %s is not what it says of the run", o.ID)
		}
		ended, ok := results[p.Event]
		if !ok || o.Forgotten {
			continue
		}
		if err := boundOutcome(o, ended); err != nil {
			return a, err
		}
		a.Bound++
	}
	err := proven(t, places, &a) // it fills in a, which is read behind it
	return a, err
}

func contradicts(format string, args ...any) error {
	return fault.New(fault.Invalid, "transcript_forged", "the transcript contradicts itself: "+format, args...).
		With("it was changed after it was exported; get it again from where the run was executed")
}

// read decodes the data of an event. They came from outside with the transcript, so that it is the transcript's fault where they cannot
// be read.
func read[T any](e *event.Event) (T, error) {
	data, err := event.Decode[T](*e)
	if err != nil {
		err = contradicts("the data of event %d are not those of %s", e.Seq, e.Type)
	}
	return data, err
}

// genuine reports whether the event matches its hash, and whether its data are present and match the commitment.
func genuine(e *event.Event, of *run.Run) (whole bool, err error) {
	if e.Workspace != of.Workspace || e.Run != of.ID {
		return false, contradicts("event %d is of another run", e.Seq)
	}
	there := *e
	if whole = len(e.Chain.Salt) > 0; whole && journal.Commit(e.Chain.Salt, e.Data) != e.Chain.Commitment {
		// without its salt, nothing counts on the data
		return false, contradicts("the data of event %d are not those that it committed to", e.Seq)
	}
	if journal.HashOf(&there) == e.Chain.Hash {
		return whole, nil
	}
	if there.Redaction == event.RedactFull { // as it reads since it was redacted; the hash is of what was written before
		for _, before := range []event.Redaction{event.RedactNone, event.RedactPartial} {
			if there.Redaction = before; journal.HashOf(&there) == e.Chain.Hash {
				return whole, nil
			}
		}
	}
	return false, contradicts("event %d is not what its hash says", e.Seq)
}

// fold folds the events of a run again.
type fold struct {
	doc   run.Run
	whole bool // all of them have their data
	last  string
}

func (f *fold) add(e *event.Event, whole bool) error {
	if !run.Touches(*e) {
		return nil
	}
	if e.Type != run.EventRetained && e.Type != run.EventForgotten { // these two come after its end and do not change it
		f.last = e.Type
	}
	if f.whole = f.whole && whole; !f.whole {
		return nil
	}
	doc, err := run.Evolve(f.doc, *e)
	if err != nil {
		return contradicts("event %d does not fit to those before it: %v", e.Seq, err)
	}
	f.doc = doc
	return nil
}

// settle checks the transcript's statements about the run against its events. If their data are here it checks all, else whether and how it
// ended.
func (f *fold) settle(doc *run.Run) error {
	if end := run.EndedBy(f.last); end != doc.Status && (end != "" || doc.Status.Ended()) {
		return contradicts("it says that the status of the run is %s, and its last event is %s", doc.Status, f.last)
	}
	if !f.whole {
		return nil
	}
	was, err := json.Marshal(f.doc)
	if err != nil {
		return err
	}
	is, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	if !bytes.Equal(was, is) {
		return contradicts("what it says of the run is not what its events say")
	}
	return nil
}

// boundInput holds the operations against the hash of the message in run.created, where none of their text was taken out.
func boundInput(t *run.Transcript, e *event.Event) error {
	created, err := read[run.Created](e)
	if err != nil {
		return err
	}
	m := run.Message{ProtocolVersion: run.Protocol}
	for _, a := range t.Asked {
		if len(a.Removed) > 0 {
			return nil
		}
		m.Operations = append(m.Operations, a.Operation)
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if event.DigestOf(raw) != created.Input.Digest {
		return contradicts("its operations are not those that event %d names", e.Seq)
	}
	return nil
}

// boundStart holds the files that the run began with against run.started.
func boundStart(t *run.Transcript, e *event.Event) error {
	started, err := read[run.Started](e)
	if err != nil {
		return err
	}
	if said := t.Header.Start; said != nil && (started.Snapshot == nil || *said != *started.Snapshot) {
		return contradicts("the files that it says the run began with are not those of event %d", e.Seq)
	}
	return nil
}

// boundOutcome holds an outcome against the result in the data of its event.
func boundOutcome(o run.Outcome, ended run.Ended) error {
	raw, err := json.Marshal(o.Result)
	if err != nil {
		return err
	}
	same := ended.Stored != nil && event.DigestOf(raw) == ended.Stored.Digest
	if ended.Result != nil {
		recorded, err := json.Marshal(ended.Result)
		if err != nil {
			return err
		}
		same = bytes.Equal(raw, recorded)
	}
	if !same {
		return contradicts("the outcome of operation %s is not the one that its event holds", o.ID)
	}
	return nil
}

// proven checks the proof that came with a transcript.
func proven(t *run.Transcript, places map[uint64]*event.Event, a *run.Attestation) error {
	if t.Proof == nil {
		return nil
	}
	key, err := merkle.ParsePublicKey(t.Proof.PublicKey)
	if err != nil {
		return err
	}
	c, err := merkle.Open([]byte(t.Proof.Checkpoint), key)
	if err != nil {
		return err
	}
	if ws, err := c.Workspace(); err != nil || ws != t.Header.Run.Workspace {
		return contradicts("its checkpoint is one of another workspace")
	}
	for _, i := range t.Proof.Inclusions {
		e := places[i.Seq]
		if e == nil {
			return contradicts("it proves event %d, which it does not hold", i.Seq)
		}
		shown := merkle.Inclusion{
			Seq: e.Seq, EventHash: e.Chain.Hash, Record: string(merkle.LeafOf(e.Seq, e.Chain.Hash)), Index: e.Seq - 1, Hashes: i.Hashes,
			Checkpoint: t.Proof.Checkpoint, PublicKey: key,
		}
		if _, err := shown.Check(key); err != nil {
			return contradicts("the proof of event %d does not hold", e.Seq)
		}
		delete(places, i.Seq) // once is enough
		a.Proven++
	}
	a.Origin, a.Size, a.Root, a.PublicKey = c.Origin, c.Size, c.Root.String(), string(key)
	return nil
}
