package transfer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
)

// Contents opens stored content.
type Contents interface {
	Open(ctx context.Context, d event.Digest) (io.ReadSeekCloser, error)
}

// Write writes a workspace as a file: its present log, and the contents that the log names. It refuses a log that fails its checks. Others
// may append meanwhile; their events are not in the file.
func Write(ctx context.Context, to io.Writer, from Source, ws id.Workspace, made time.Time, program string) (Moved, error) {
	head, err := from.Log.Head(ctx, ws)
	if err != nil {
		return Moved{}, err
	}
	if head == 0 {
		return Moved{}, fault.New(fault.NotFound, "workspace_not_found", "there is no workspace %.64s in this log", ws)
	}
	n := note{Format: format, Workspace: ws, Made: made, Program: program, Head: head, Checkpoint: from.Checkpoint, PublicKey: from.PublicKey}
	zipped := gzip.NewWriter(to)
	w := &writer{ctx: ctx, from: from, ws: ws, head: head, made: made, tar: tar.NewWriter(zipped), entries: newList()}
	if w.log.want, err = n.checkpoint(""); err != nil {
		return Moved{}, err
	}
	if err := w.note("workspace.json", n); err != nil {
		return Moved{}, err
	}
	if err := w.contents(); err != nil {
		return Moved{}, err
	}
	if err := w.events(); err != nil {
		return Moved{}, err
	}
	if err := w.keys(); err != nil {
		return Moved{}, err
	}
	w.entries.add("missing", int64(w.missing), nil)
	e := end{Events: head, Contents: w.named, Missing: w.missing, Keys: w.keyed, Root: w.log.edge.Root().String(), Entries: w.entries.digest()}
	err = w.note("end.json", e)
	return moved(n, e, w.log.want.Size), errors.Join(err, w.tar.Close(), zipped.Close())
}

func moved(n note, e end, size uint64) Moved {
	return Moved{Workspace: n.Workspace, Made: n.Made, Events: e.Events, Contents: e.Contents, Missing: e.Missing, Keys: e.Keys, Root: e.Root,
		Size: size, PublicKey: n.PublicKey}
}

type writer struct {
	ctx     context.Context
	from    Source
	ws      id.Workspace
	head    uint64
	made    time.Time
	tar     *tar.Writer
	entries list
	named   int
	missing int
	keyed   int
	log     signed
}

func (w *writer) entry(name string, size int64, content io.Reader) error {
	if err := w.tar.WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o600, ModTime: w.made, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w.tar, sum), content)
	if err == nil && n != size {
		err = fmt.Errorf("%s has %d bytes and was to have %d", name, n, size)
	}
	w.entries.add(name, size, sum.Sum(nil))
	return err
}

func (w *writer) note(name string, v any) error {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return w.entry(name, int64(len(raw)), bytes.NewReader(raw))
}

// walk shows the events up to the head, in pages.
func (w *writer) walk(types []string, see func([]event.Event) error) error {
	q := journal.Query{Workspace: w.ws, From: 1, Before: w.head + 1, Types: types, Limit: journal.MaxRead}
	for {
		page, err := w.from.Log.Read(w.ctx, q)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		if err := see(page); err != nil {
			return err
		}
		q.From = page[len(page)-1].Seq + 1
	}
}

// contents writes each content that an event names, once.
func (w *writer) contents() error {
	written := map[event.Digest]bool{}
	return w.walk(run.NamingEvents(), func(page []event.Event) error {
		for i := range page {
			named, err := run.ContentsOf(page[i])
			if err != nil {
				return err
			}
			for _, c := range named {
				if written[c.Digest] {
					continue
				}
				written[c.Digest] = true
				if err := w.content(c); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (w *writer) content(c run.Input) error {
	content, err := w.from.Contents.Open(w.ctx, c.Digest)
	if errors.Is(err, blob.ErrNotFound) {
		w.missing++
		return nil
	}
	if err != nil {
		return err
	}
	defer content.Close()
	w.named++
	return w.entry("contents/"+c.Digest.Hex(), c.Size, content)
}

// events writes the log, and holds it against itself on the way.
func (w *writer) events() error {
	var log journal.Continuity
	var file bytes.Buffer
	lines := json.NewEncoder(&file)
	lines.SetEscapeHTML(false) // canonical bytes stay as they are
	first, count, data := uint64(1), 0, 0
	flush := func(next uint64) error {
		err := w.entry(fmt.Sprintf("events/%012d.jsonl", first), int64(file.Len()), bytes.NewReader(slices.Clone(file.Bytes())))
		file.Reset()
		first, count, data = next, 0, 0
		return err
	}
	err := w.walk(nil, func(page []event.Event) error {
		if err := log.Next(w.ws, page); err != nil {
			return err
		}
		for _, e := range page {
			if count == journal.MaxBatch || count > 0 && data+len(e.Data) > chunkBytes {
				if err := flush(e.Seq); err != nil {
					return err
				}
			}
			w.log.add(&e)
			l := line{Event: e, Data: e.Data}
			l.Event.Data = nil
			if err := lines.Encode(l); err != nil {
				return err
			}
			count, data = count+1, data+len(e.Data)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if log.Head() != w.head {
		return damaged("the log ends at event %d and had %d", log.Head(), w.head)
	}
	return errors.Join(flush(0), log.End(), w.log.settle())
}

// keys writes the idempotency keys of batches that are in the file as a whole.
func (w *writer) keys() error {
	for after := ""; ; {
		page, err := w.from.Log.Keys(w.ctx, w.ws, after, journal.MaxBatch)
		if err != nil || len(page) == 0 {
			return err
		}
		after = page[len(page)-1].Key
		var file bytes.Buffer
		lines := json.NewEncoder(&file)
		first := w.keyed + 1
		for _, k := range page {
			if k.First+uint64(k.Count)-1 > w.head {
				continue // of other work in the meantime
			}
			if err := lines.Encode(k); err != nil {
				return err
			}
			w.keyed++
		}
		if file.Len() == 0 {
			continue
		}
		if err := w.entry(fmt.Sprintf("keys/%012d.jsonl", first), int64(file.Len()), &file); err != nil {
			return err
		}
	}
}
