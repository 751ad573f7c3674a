package localengine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/tool"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/tools"
)

// The refusals of documents.
var (
	errNoText        = fault.New(fault.Invalid, "document_not_text", "the file is not a text in UTF-8, so it has no sections")
	errLongDocument  = fault.New(fault.Invalid, "document_too_large", "a document has at most %d bytes", run.MaxContentBytes)
	errEmptyDocument = fault.New(fault.Conflict, "document_empty", "the document is empty").
				With("Write it with createFile and overwrite.")
	errSecretDocument = fault.New(fault.Conflict, "document_has_secrets",
		"the document has something that looks like a secret, which you are not shown").
		With("Change a section without a secret, or use editFile.")
)

// operation returns an operation of the protocol for a call.
func operation(fields map[string]any) (json.RawMessage, error) {
	fields["id"] = "call"
	return json.Marshal(fields)
}

// mdRead reads a section of a document, or lists its sections: an operation readFile like any other.
func (u use) mdRead(ctx context.Context) (errand.Outcome, error) {
	m, err := tools.ReadMDRead(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	read, err := operation(map[string]any{"type": run.OpReadFile, "path": m.Path})
	if err != nil {
		return errand.Outcome{}, err
	}
	o, err := u.inSpace(ctx, u.work, u.call, u.space, read)
	if err != nil || !o.OK {
		return o, err
	}
	text, err := u.contentOf(ctx, o)
	if err != nil {
		return errand.Outcome{}, err
	}
	text, _ = leak.Text(text) // a hash of what is not shown would let it be overwritten
	said := tool.Result{OK: true, Text: tools.Outline(text)}
	if m.Heading != "" {
		s, err := tools.Find(text, m.Heading)
		if said.Text = ""; err != nil {
			said = failed(err)
		} else {
			said.Text = tools.Show(text, s)
		}
	}
	told, err := u.say(ctx, u.work, u.call, u.name, said)
	told.Child = o.Child
	return told, err
}

// contentOf returns the text that an operation readFile has read.
func (u use) contentOf(ctx context.Context, o errand.Outcome) (string, error) {
	result, err := u.resultOf(ctx, o)
	switch {
	case err != nil:
		return "", err
	case result.Content == nil || result.Encoding != space.UTF8:
		return "", errNoText
	}
	return *result.Content, nil
}

// resultOf returns the result of the one operation of a run in a space.
func (u use) resultOf(ctx context.Context, o errand.Outcome) (run.Result, error) {
	doc, err := u.Runs.History.Find(ctx, u.work.Workspace, o.Child)
	if err != nil {
		return run.Result{}, err
	}
	told, err := u.Runs.History.Events(ctx, doc)
	if err != nil {
		return run.Result{}, err
	}
	for _, e := range told.Events {
		if e.Type != run.ResApprovalRequired {
			return e, nil
		}
	}
	return run.Result{}, nil
}

// mdWrite writes a section of a document. It reads the document, and then edits it: the edit replaces exactly what was read, so that it
// changes nothing where somebody has changed the section in between.
func (u use) mdWrite(ctx context.Context) (errand.Outcome, error) {
	m, err := tools.ReadMDWrite(u.args)
	if err != nil {
		return errand.Outcome{}, err
	}
	call, err := u.Engines.Look.Call(ctx, u.work.Workspace, u.call)
	if err != nil {
		return errand.Outcome{}, err
	}
	if call.Child != "" { // it was begun before a restart; the operation below is not executed again
		again, err := operation(map[string]any{"type": run.OpReadFile, "path": m.Path})
		if err != nil {
			return errand.Outcome{}, err
		}
		o, err := u.operate(ctx, u.work, u.call, u.space, again, false, func(run.Run) {})
		if err != nil {
			return o, err
		}
		return u.written(ctx, m, o)
	}
	write, err := u.change(ctx, m)
	if err != nil {
		return errand.Outcome{}, err
	}
	o, err := u.inSpace(ctx, u.work, u.call, u.space, write)
	if err != nil {
		return o, err
	}
	return u.written(ctx, m, o)
}

// written says what came of a section that was to be written.
func (u use) written(ctx context.Context, m tools.MDWrite, o errand.Outcome) (errand.Outcome, error) {
	result, err := u.resultOf(ctx, o)
	if err != nil {
		return o, err
	}
	said := tools.Tell(result, func(run.Display) (string, bool) { return "", false })
	if said.OK {
		said.Text = "written to " + m.Path + "\n"
	}
	told, err := u.say(ctx, u.work, u.call, u.name, said)
	told.Child, told.Worked = o.Child, o.Worked
	return told, err
}

// change returns the operation that writes a section.
func (u use) change(ctx context.Context, m tools.MDWrite) (json.RawMessage, error) {
	text, err := u.document(ctx, m.Path)
	if m.Heading == "" && fault.CodeOf(err) == space.ErrFileNotFound.Code {
		_, content, err := tools.Rewrite("", m)
		if err != nil {
			return nil, err
		}
		return operation(map[string]any{"type": run.OpCreateFile, "path": m.Path, "content": content})
	}
	if err != nil {
		return nil, err
	}
	if text == "" {
		return nil, errEmptyDocument
	}
	old, changed, err := tools.Rewrite(text, m)
	if errors.Is(err, tools.ErrSectionChanged) {
		if clean, _ := leak.Text(text); clean != text {
			err = errSecretDocument
		}
	}
	if err != nil {
		return nil, err
	}
	return operation(map[string]any{"type": run.OpEditFile, "path": m.Path, "edits": []run.Edit{{Old: old, New: changed}}})
}

// document reads a document as code of the space sees it, for as long as a person has not answered whether it may be read.
func (u use) document(ctx context.Context, path string) (string, error) {
	for {
		file, err := u.Spaces.Files.Read(ctx, u.requester(), u.work.Workspace, u.space, path, spaces.Seen)
		if fault.KindOf(err) == fault.Waiting {
			if !errand.Pause(ctx, u.Clock, errand.Ask) {
				return "", context.Cause(ctx)
			}
			continue
		}
		if fault.CodeOf(err) == space.ErrFileNotFound.Code {
			return "", fault.New(fault.NotFound, space.ErrFileNotFound.Code, "there is no %q", path)
		}
		if err != nil {
			return "", err
		}
		content, err := io.ReadAll(io.LimitReader(file, run.MaxContentBytes+1))
		switch err = errors.Join(err, file.Close()); {
		case err != nil:
			return "", err
		case len(content) > run.MaxContentBytes:
			return "", errLongDocument
		case !utf8.Valid(content):
			return "", errNoText
		}
		return string(content), nil
	}
}
