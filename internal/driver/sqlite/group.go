package sqlite

import (
	"slices"

	"agentbox/internal/kernel/projection"
)

// encoded is a document of the present group, as it will lie in the file.
type encoded struct {
	ref     projection.Ref
	folio   *folio
	body    []byte
	indexes []projection.Index
}

// encode returns the documents that the group changes, each once however many of its events changed it.
func (l *ledger) encode() ([]encoded, error) {
	docs := make([]encoded, len(l.dirtyFolios))
	for i, ref := range l.dirtyFolios {
		f := l.folios[ref]
		body, indexes, err := f.state.Encode()
		if err != nil {
			return nil, err
		}
		docs[i] = encoded{ref, f, body, indexes}
	}
	return docs, nil
}

// write puts a planned group into the open transaction.
func (j *Journal) write(group []*request, docs []encoded) error {
	l, w := &j.ledger, j.w
	for _, name := range l.newTypes {
		if err := w.exec(`INSERT INTO types (no, name) VALUES (?, ?)`, l.types[name], name); err != nil {
			return err
		}
	}
	for _, r := range group {
		if r.err != nil || r.use != nil {
			continue
		}
		if err := j.writeBatch(r); err != nil {
			return err
		}
	}
	for _, ref := range l.dirtyStreams {
		at, sql := l.streams[ref], `UPDATE streams SET head = ?, hash = ? WHERE no = ?`
		args := []any{at.tip.Seq, at.tip.Hash[:], at.no}
		if !at.made {
			sql = `INSERT INTO streams (head, hash, no, workspace, type, id) VALUES (?, ?, ?, ?, ?, ?)`
			args = append(args, l.tenants[ref.workspace].no, ref.stream.Type, ref.stream.ID)
		}
		if err := w.exec(sql, args...); err != nil {
			return err
		}
	}
	for _, ws := range l.dirtyTenants {
		t := l.tenants[ws]
		if err := w.exec(`INSERT INTO workspaces (no, name, head) VALUES (?, ?, ?) ON CONFLICT (no) DO UPDATE SET head = excluded.head`, t.no, string(ws), t.head); err != nil {
			return err
		}
	}
	for _, d := range docs {
		if err := l.writeDocument(d, l.projections[d.ref.Name]); err != nil {
			return err
		}
	}
	return nil
}

func (j *Journal) writeBatch(r *request) error {
	l, w := &j.ledger, j.w
	no := l.tenants[r.batch.Workspace].no
	for i := range r.events {
		e := &r.events[i]
		at := l.streams[streamRef{r.batch.Workspace, e.Stream}]
		if err := w.insertEvent(placed{Event: e, place: placeOf(no, e.Seq), stream: at.no, typ: l.types[e.Type]}); err != nil {
			return err
		}
		if e.IdempotencyKey != "" {
			if err := w.exec(`INSERT INTO event_keys (workspace, key, seq) VALUES (?, ?, ?)`, no, e.IdempotencyKey, e.Seq); err != nil {
				return err
			}
		}
	}
	if r.batch.Key == "" {
		return nil
	}
	return w.exec(`INSERT INTO batches (workspace, key, digest, first, count) VALUES (?, ?, ?, ?, ?)`,
		no, r.batch.Key, r.batch.Digest[:], r.events[0].Seq, int64(len(r.events)))
}

// writeDocument writes a document and what of its index entries has changed.
func (l *ledger) writeDocument(d encoded, projectionNo int64) error {
	f, w, tenantNo := d.folio, l.w, l.tenants[d.ref.Workspace].no
	if f.no != 0 {
		if err := w.exec(`UPDATE documents SET version = ?, seq = ?, body = ? WHERE no = ?`, f.state.Version, f.state.Seq, d.body, f.no); err != nil {
			return err
		}
	} else {
		l.nextFolio++
		f.no = l.nextFolio
		if err := w.exec(`INSERT INTO documents (no, projection, workspace, key, version, seq, body) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			f.no, projectionNo, tenantNo, d.ref.Key, f.state.Version, f.state.Seq, d.body); err != nil {
			return err
		}
	}
	l.kept += len(d.body) - f.size
	f.size = len(d.body)
	if slices.Equal(f.indexes, d.indexes) {
		return nil
	}
	for _, old := range f.indexes {
		if !slices.Contains(d.indexes, old) {
			if err := w.exec(`DELETE FROM entries WHERE projection = ? AND workspace = ? AND name = ? AND value = ? AND key = ?`, projectionNo, tenantNo, old.Name, old.Value, d.ref.Key); err != nil {
				return err
			}
		}
	}
	for _, added := range d.indexes {
		if !slices.Contains(f.indexes, added) {
			if err := w.exec(`INSERT INTO entries (projection, workspace, name, value, key) VALUES (?, ?, ?, ?, ?)`, projectionNo, tenantNo, added.Name, added.Value, d.ref.Key); err != nil {
				return err
			}
		}
	}
	f.indexes = d.indexes
	return nil
}

func placeOf(tenantNo int64, seq uint64) int64 { return tenantNo<<seqBits | int64(seq) }
