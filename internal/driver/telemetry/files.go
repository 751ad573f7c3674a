package telemetry

import (
	"context"
	"io"

	"go.opentelemetry.io/otel/attribute"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Store is a store of spaces' files that traces each use. A trace holds no path and no content of a file.
type Store struct {
	space.Store
	clock  event.Clock
	tracer *Tracer
}

var _ space.Store = (*Store)(nil)

// WrapStore returns a store that reports its operations to the tracer; with a nil tracer it returns the same store.
func WrapStore(s space.Store, clock event.Clock, t *Tracer) space.Store {
	if t == nil {
		return s
	}
	return &Store{s, clock, t}
}

// Open implements space.Store.
func (s *Store) Open(which id.Space, uid int, limits space.Limits) (space.Files, string, error) {
	opened, dir, err := s.Store.Open(which, uid, limits)
	if err != nil {
		return nil, "", err
	}
	return &files{opened, s}, dir, nil
}

// files are the files of one space.
type files struct {
	space.Files
	store *Store
}

// work begins something that a permit is for. The function that it returns tells of it.
func (f *files) work(ctx context.Context, p policy.Permit, verb string) (done func(err error, figures ...attribute.KeyValue)) {
	at, followed := f.store.tracer.redeem(ctx, p.Digest())
	if !followed {
		return func(error, ...attribute.KeyValue) {}
	}
	began := f.store.clock.Now()
	return func(err error, figures ...attribute.KeyValue) {
		f.store.tracer.moment(at, "space file "+verb, began, f.store.clock.Now(), fault.CodeOf(err), figures...)
	}
}

// size is how many bytes a file has, or an archive.
func size(bytes int64) attribute.KeyValue { return attribute.Int64("agentbox.file.bytes", bytes) }

// Read implements space.Files. Reading lasts until the file is closed.
func (f *files) Read(ctx context.Context, p policy.Permit) (space.File, error) {
	done := f.work(ctx, p, "read")
	file, err := f.Files.Read(ctx, p)
	if err != nil {
		done(err)
		return nil, err
	}
	return &reading{file, done}, nil
}

// List implements space.Files.
func (f *files) List(ctx context.Context, p policy.Permit, recursive bool, limit int) ([]space.Entry, error) {
	done := f.work(ctx, p, "list")
	entries, err := f.Files.List(ctx, p, recursive, limit)
	done(err, attribute.Int("agentbox.file.entries", len(entries)))
	return entries, err
}

// Write implements space.Files.
func (f *files) Write(ctx context.Context, p policy.Permit, content io.Reader) (space.Entry, error) {
	done := f.work(ctx, p, "create")
	made, err := f.Files.Write(ctx, p, content)
	done(err, size(made.Size))
	return made, err
}

// Edit implements space.Files.
func (f *files) Edit(ctx context.Context, p policy.Permit, edits []space.Edit) (space.Entry, error) {
	done := f.work(ctx, p, "edit")
	edited, err := f.Files.Edit(ctx, p, edits)
	done(err, size(edited.Size))
	return edited, err
}

// Delete implements space.Files.
func (f *files) Delete(ctx context.Context, p policy.Permit) error {
	done := f.work(ctx, p, "delete")
	err := f.Files.Delete(ctx, p)
	done(err)
	return err
}

// Archive implements space.Files.
func (f *files) Archive(ctx context.Context, p policy.Permit, w io.Writer, may func(path string) bool) error {
	done, counted := f.work(ctx, p, "archive"), &counter{to: w}
	err := f.Files.Archive(ctx, p, counted, may)
	done(err, size(counted.written))
	return err
}

// Watch implements space.Files. Later events belong to no span, because a watch has no end of its own.
func (f *files) Watch(ctx context.Context, p policy.Permit, recursive bool) (space.Watch, error) {
	done := f.work(ctx, p, "watch")
	w, err := f.Files.Watch(ctx, p, recursive)
	done(err)
	return w, err
}

// counter counts the written bytes.
type counter struct {
	to      io.Writer
	written int64
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.to.Write(b)
	c.written += int64(n)
	return n, err
}

// reading is a file that is being read.
type reading struct {
	space.File
	done func(err error, figures ...attribute.KeyValue)
}

// Close implements io.Closer.
func (r *reading) Close() error {
	err := r.File.Close()
	r.done(err, size(r.Entry().Size))
	return err
}
