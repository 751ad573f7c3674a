package transfer

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/merkle"
)

// checkpoint opens the checkpoint of a note; the zero Checkpoint where it has none.
func (n note) checkpoint(key merkle.PublicKey) (merkle.Checkpoint, error) {
	if n.Checkpoint == "" {
		if key != "" {
			return merkle.Checkpoint{}, damaged("it has no checkpoint, and one was to be signed by %s", key)
		}
		return merkle.Checkpoint{}, nil
	}
	if key == "" {
		var err error
		if key, err = merkle.ParsePublicKey(string(n.PublicKey)); err != nil {
			return merkle.Checkpoint{}, err
		}
	}
	c, err := merkle.Open([]byte(n.Checkpoint), key)
	if err != nil {
		return c, err
	}
	if ws, err := c.Workspace(); err != nil || ws != n.Workspace || c.Size > n.Head {
		return c, damaged("its checkpoint is not one of this log")
	}
	return c, nil
}

// Read adopts a workspace from a file. It stores the contents first, which has no visible effect. It adopts the log in one step after
// everything matches its hashes and the checkpoint in the file, or not at all. It may be repeated after any error.
func Read(ctx context.Context, from io.Reader, to Target) (_ Moved, err error) {
	zipped, err := gzip.NewReader(bufio.NewReaderSize(from, 1<<16))
	if err != nil {
		return Moved{}, damaged("it is not compressed with gzip")
	}
	whole := &bounded{Reader: zipped, left: to.Most}
	if to.Most == 0 {
		whole.left = math.MaxInt64 - 1
	}
	defer func() {
		if err != nil && whole.over {
			err = ErrTooLarge
		}
	}()
	r := &reader{ctx: ctx, to: to, tar: tar.NewReader(whole), entries: newList()}
	if err := r.begin(); err != nil {
		return Moved{}, err
	}
	if err := r.contents(); err != nil {
		return Moved{}, err
	}
	if _, err := to.Log.Adopt(ctx, r.note.Workspace, r.events, r.keys); err != nil {
		return Moved{}, err
	}
	return moved(r.note, r.end, r.log.want.Size), nil
}

type reader struct {
	ctx     context.Context
	to      Target
	tar     *tar.Reader
	entries list
	header  *tar.Header // of the entry that is next
	note    note
	end     end
	named   int
	keyed   int
	log     signed
}

// next goes on to the next entry.
func (r *reader) next() error {
	h, err := r.tar.Next()
	switch {
	case errors.Is(err, io.EOF):
		return damaged("its end is missing")
	case err != nil:
		return damaged("%v", err)
	case h.Typeflag != tar.TypeReg || h.Size < 0:
		return damaged("it holds %.80q, which is not a file", h.Name)
	}
	r.header = h
	return r.ctx.Err()
}

// whole reads the entry, which may have at most most bytes.
func (r *reader) whole(most int64) ([]byte, error) {
	if r.header.Size > most {
		return nil, damaged("%.80q has %d bytes; at most %d are read", r.header.Name, r.header.Size, most)
	}
	raw, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, damaged("%.80q breaks off", r.header.Name)
	}
	sum := sha256.Sum256(raw)
	r.entries.add(r.header.Name, r.header.Size, sum[:])
	return raw, nil
}

func (r *reader) begin() error {
	if err := r.next(); err != nil {
		return err
	}
	if r.header.Name != "workspace.json" {
		return damaged("it does not begin as an export of a workspace does")
	}
	raw, err := r.whole(maxNoteBytes)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &r.note); err != nil {
		return damaged("workspace.json cannot be read")
	}
	if r.note.Format != format && r.note.Format != formatFirst {
		return fault.New(fault.Invalid, "workspace_file_version", "the file has the form %.40q, and %s is read here", r.note.Format, format).
			With("read it with the version of agentbox that wrote it, or a newer one")
	}
	if _, err := id.ParseWorkspace(string(r.note.Workspace)); err != nil {
		return damaged("it names no workspace")
	}
	if r.to.Only != "" && r.note.Workspace != r.to.Only {
		return damaged("it is of %s, and was to be of %s", r.note.Workspace, r.to.Only)
	}
	if r.log.want, err = r.note.checkpoint(r.to.Key); err != nil {
		return err
	}
	return r.next()
}

func (r *reader) contents() error {
	for {
		name, ok := strings.CutPrefix(r.header.Name, "contents/")
		if !ok {
			return nil
		}
		want, err := event.ParseDigest("sha256:" + name)
		if err != nil {
			return damaged("the content %.80q is not named by a hash", name)
		}
		if r.header.Size > maxContent {
			return damaged("the content %.80q has %d bytes; at most %d are read", name, r.header.Size, maxContent)
		}
		source := &source{Reader: r.tar}
		stored, err := r.to.Contents.Put(r.ctx, source, maxContent)
		if source.broken {
			return damaged("the content %.80q breaks off", name)
		}
		if err != nil {
			return err
		}
		if stored.Digest != want || stored.Size != r.header.Size {
			return damaged("the content %.80q is not what its name says", name)
		}
		r.entries.add(r.header.Name, r.header.Size, want[:])
		r.named++
		if err := r.next(); err != nil {
			return err
		}
	}
}

// source remembers its read error, because a writer of its content only reports that it could not store it.
type source struct {
	io.Reader
	broken bool
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.broken = s.broken || err != nil && !errors.Is(err, io.EOF)
	return n, err
}

// events yields the events to their end.
func (r *reader) events(yield func([]event.Event, error) bool) {
	for next := uint64(1); r.header.Name != "end.json" && !strings.HasPrefix(r.header.Name, "keys/"); {
		if r.header.Name != fmt.Sprintf("events/%012d.jsonl", next) {
			yield(nil, damaged("%.80q stands where event %d belongs", r.header.Name, next))
			return
		}
		events, err := r.chunk()
		if err == nil {
			next += uint64(len(events))
		}
		if !yield(events, err) || err != nil {
			return
		}
		for i := range events {
			r.log.add(&events[i])
		}
		if err := r.next(); err != nil {
			yield(nil, err)
			return
		}
	}
}

// keys yields the idempotency keys to their end; behind the last it holds everything against the end of the file.
func (r *reader) keys(yield func([]journal.KeyUse, error) bool) {
	for r.header.Name != "end.json" {
		if r.header.Name != fmt.Sprintf("keys/%012d.jsonl", r.keyed+1) {
			yield(nil, damaged("%.80q stands where key %d belongs", r.header.Name, r.keyed+1))
			return
		}
		raw, err := r.whole(maxKeyBytes)
		var keys []journal.KeyUse
		for one := range strings.Lines(string(raw)) {
			var k journal.KeyUse
			if json.Unmarshal([]byte(one), &k) != nil {
				err = damaged("%s holds something that is not a key", r.header.Name)
				break
			}
			keys = append(keys, k)
		}
		if r.keyed += len(keys); !yield(keys, err) || err != nil {
			return
		}
		if err := r.next(); err != nil {
			yield(nil, err)
			return
		}
	}
	if err := r.settle(); err != nil {
		yield(nil, err)
	}
}

func (r *reader) chunk() ([]event.Event, error) {
	raw, err := r.whole(maxChunkBytes)
	if err != nil {
		return nil, err
	}
	var events []event.Event
	for one := range strings.Lines(string(raw)) {
		if len(events) == journal.MaxBatch {
			return nil, damaged("%s holds more than %d events", r.header.Name, journal.MaxBatch)
		}
		var l line
		if err := json.Unmarshal([]byte(one), &l); err != nil {
			return nil, damaged("%s holds something that is not an event", r.header.Name)
		}
		l.Event.Data = l.Data
		events = append(events, l.Event)
	}
	return events, nil
}

// settle reads the end and holds the file against it.
func (r *reader) settle() error {
	if r.header.Size > maxNoteBytes {
		return damaged("end.json has %d bytes; at most %d are read", r.header.Size, maxNoteBytes)
	}
	fields := json.NewDecoder(r.tar)
	fields.DisallowUnknownFields()
	if err := fields.Decode(&r.end); err != nil {
		return damaged("end.json cannot be read")
	}
	r.entries.add("missing", int64(r.end.Missing), nil)
	if r.end.Entries != r.entries.digest() || r.end.Events != r.log.edge.Size() || r.end.Events != r.note.Head || r.end.Contents != r.named ||
		r.end.Keys != r.keyed || r.end.Root != r.log.edge.Root().String() {
		return damaged("it is not the file that was written: its end tells of another")
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		return damaged("there is more behind its end")
	}
	return r.log.settle()
}
