package simulation

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// spaceFiles are the files of one space.
type spaceFiles struct {
	h     *host
	space id.Space
}

// change redeems a permit, takes a moment, and changes the files in one step.
func (f *spaceFiles) change(ctx context.Context, p policy.Permit, typ string, do func(files map[string]string,
	a policy.Action) error) (space.Entry, error) {
	a, err := p.Redeem(typ)
	if err != nil {
		return space.Entry{}, err
	}
	f.h.w.s.pause(f.h.w.deed(a), fileTime)
	if err := f.h.gone(ctx); err != nil {
		return space.Entry{}, err
	}
	if f.h.w.s.happens(f.h.w.deed(a), 0.02) {
		return space.Entry{}, space.ErrDiskFull
	}
	f.h.w.mu.Lock()
	err = do(f.h.w.files[f.space], a)
	f.h.w.mu.Unlock()
	if err == nil {
		f.h.w.do(a)
	}
	return space.Entry{Path: a.Path, Type: "file"}, err
}

// Read implements space.Files.
func (f *spaceFiles) Read(ctx context.Context, p policy.Permit) (space.File, error) {
	a, err := p.Redeem(policy.FileRead)
	if err != nil {
		return nil, err
	}
	f.h.w.s.pause(f.h.w.deed(a), fileTime)
	if err := f.h.gone(ctx); err != nil {
		return nil, err
	}
	f.h.w.mu.Lock()
	defer f.h.w.mu.Unlock()
	text, ok := f.h.w.files[f.space][a.Path]
	if !ok {
		return nil, space.ErrFileNotFound
	}
	return file{bytes.NewReader([]byte(text)), space.Entry{Path: a.Path, Type: "file", Size: int64(len(text))}}, nil
}

// List implements space.Files.
func (f *spaceFiles) List(_ context.Context, p policy.Permit, _ bool, _ int) ([]space.Entry, error) {
	_, err := p.Redeem(policy.FileList)
	return nil, err
}

// Write implements space.Files.
func (f *spaceFiles) Write(ctx context.Context, p policy.Permit, content io.Reader) (space.Entry, error) {
	text, err := io.ReadAll(content)
	if err != nil {
		return space.Entry{}, err
	}
	return f.change(ctx, p, policy.FileCreate, func(files map[string]string, a policy.Action) error {
		if _, there := files[a.Path]; there && !a.Overwrite {
			return space.ErrFileExists
		}
		files[a.Path] = string(text)
		return nil
	})
}

// Edit implements space.Files.
func (f *spaceFiles) Edit(ctx context.Context, p policy.Permit, edits []space.Edit) (space.Entry, error) {
	return f.change(ctx, p, policy.FileEdit, func(files map[string]string, a policy.Action) error {
		text := files[a.Path]
		for _, e := range edits {
			if !strings.Contains(text, e.Old) {
				return space.ErrEditNotFound
			}
			text = strings.Replace(text, e.Old, e.New, 1)
		}
		files[a.Path] = text
		return nil
	})
}

// Delete implements space.Files.
func (f *spaceFiles) Delete(ctx context.Context, p policy.Permit) error {
	_, err := f.change(ctx, p, policy.FileDelete, func(files map[string]string, a policy.Action) error {
		if _, there := files[a.Path]; !there {
			return space.ErrFileNotFound
		}
		delete(files, a.Path)
		return nil
	})
	return err
}

// Archive implements space.Files.
func (f *spaceFiles) Archive(_ context.Context, p policy.Permit, _ io.Writer, _ func(string) bool) error {
	_, err := p.Redeem(policy.FileArchive)
	return err
}

// file is an open file.
type file struct {
	*bytes.Reader
	entry space.Entry
}

// Entry implements space.File.
func (f file) Entry() space.Entry { return f.entry }

// Close implements io.Closer.
func (f file) Close() error { return nil }

func (d deed) String() string { return fmt.Sprintf("%s of %s", d.operation, d.run) }
