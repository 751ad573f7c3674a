package spaces

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"strconv"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Files reads and changes the files of spaces for callers: people, agents and services. Each action passes the gate.
type Files struct {
	catalog   *Catalog
	ownership *Ownership
	withheld  *withheld
	acts      policy.Client
	gate      policy.Gate
	log       journal.Journal
	docs      projection.Reader
	store     space.Store
	system    id.Principal
}

// MaxUpload is the most that one file may have that is written over the API; policy may say less.
const MaxUpload = 1 << 30

// ListEntries is the most entries of one listing.
const ListEntries = 10_000

// Read opens a file of a space for reading: the one that code sees or, if which says so, the withheld one. If which is empty and code
// has no file of that name, a person gets the withheld one.
func (f *Files) Read(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, which Which) (space.File,
	error) {
	var file space.File
	err := f.either(ctx, origin, ws, s, path, which, func(aside bool) error {
		return f.look(ctx, origin, ws, s, policy.FileRead, path, aside, func(files space.Files, p policy.Permit) (err error) {
			file, err = files.Read(ctx, p)
			return err
		})
	})
	return file, err
}

// List returns the entries of a folder of a space; "." is its top. A person is shown those that are withheld from code as well.
func (f *Files) List(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string,
	recursive bool) ([]space.Entry, error) {
	list := func(aside bool) (entries []space.Entry, err error) {
		err = f.look(ctx, origin, ws, s, policy.FileList, path, aside, func(files space.Files, p policy.Permit) (err error) {
			entries, err = files.List(ctx, p, recursive, ListEntries)
			return err
		})
		return entries, err
	}
	entries, err := list(false)
	if err != nil && !absent(err) || !f.withheld.holds(ctx, origin, ws, s, path) {
		return entries, err
	}
	held, failed := list(true)
	if failed != nil {
		return nil, failed
	}
	return merged(entries, held), nil
}

// Archive returns a function that writes a folder of a space as a zip file, once. It leaves out files that the caller may not read one
// by one, and files that are withheld from code. If which asks for withheld files, it writes only those.
func (f *Files) Archive(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string,
	which Which) (func(io.Writer) error, error) {
	if err := which.may(origin); err != nil {
		return nil, err
	}
	var write func(io.Writer) error
	err := f.look(ctx, origin, ws, s, policy.FileArchive, path, which == Held, func(files space.Files, p policy.Permit) error {
		may := func(path string) bool {
			ruling, err := f.gate.Judge(ctx, policy.Action{Type: policy.FileRead, Workspace: ws, Principal: origin.Principal, Token: origin.Token,
				Space: s, Path: path})
			return err == nil && ruling.Decision.Allowed()
		}
		write = func(w io.Writer) error { return files.Archive(ctx, p, w, may) }
		return nil
	})
	return write, err
}

// look takes a reading action through the gate, does it and records it.
func (f *Files) look(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, typ, path string, aside bool,
	do func(space.Files, policy.Permit) error) error {
	return f.lookAs(ctx, origin, ws, s, space.FileRead{Action: typ, Path: path, Withheld: aside}, do)
}

// lookAs is look for an event that says more.
func (f *Files) lookAs(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, as space.FileRead,
	do func(space.Files, policy.Permit) error) error {
	origin.Key = "" // looking changes nothing; a key is that of a change
	doc, files, action, err := f.reach(ctx, origin, ws, s, as.Action, as.Path, as.Withheld)
	if err != nil {
		return err
	}
	ruling, approval, err := f.acts.Ask(ctx, origin, action)
	if err != nil {
		return err
	}
	if approval != "" || ruling.Standing != "" { // the use of an approval is an intent
		_, err := f.begin(ctx, origin, unmade, doc, files, ruling, approval, func(files space.Files, p policy.Permit) (space.Entry, error) {
			return space.Entry{}, do(files, p)
		})
		return err
	}
	permit, err := f.gate.Glance(ruling)
	if err != nil {
		return err
	}
	if err := do(files, permit); err != nil {
		return err
	}
	as.Space, as.Path, as.Hash = s, action.Path, ruling.Decision.Action
	drafts := []event.Draft{fileDraft(space.EventFileRead, origin, doc, as, event.Beginning)}
	if ruling.Decision.Shadow {
		drafts = append(drafts, policy.RefusedDraft(origin, ruling))
	}
	_, err = f.log.Append(ctx, event.Batch{Workspace: ws, Drafts: drafts})
	return err
}

// RefuseWrite returns the refusal of a file that may not be written whatever its content is. So the caller need not read the content first.
// The size is 0 if it is not known.
func (f *Files) RefuseWrite(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, overwrite bool,
	mode string, size int64) error {
	aside, err := f.withheld.broughtIn(ctx, origin, ws, s, path)
	if err != nil {
		return err
	}
	_, _, action, err := f.reach(ctx, origin, ws, s, policy.FileCreate, path, aside)
	if err != nil {
		return err
	}
	if err := space.CheckFileMode(mode); err != nil {
		return err
	}
	action.Size, action.Overwrite, action.Mode = size, overwrite, mode
	return f.acts.Early(ctx, origin, action)
}

// Write makes a file of a space from content whose hash and size are known. It is idempotent: a repeat with the same idempotency key
// does not write again, also after a restart of the daemon. The mode is space.ModePlain, space.ModeExecutable or "". If policy withholds
// the name, a file that a person writes is withheld from code, and the entry says so.
func (f *Files) Write(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, overwrite bool, mode string,
	hash event.Digest, size int64, content io.Reader) (space.Entry, error) {
	if err := space.CheckFileMode(mode); err != nil {
		return space.Entry{}, err
	}
	aside, err := f.withheld.broughtIn(ctx, origin, ws, s, path)
	if err != nil {
		return space.Entry{}, err
	}
	return f.change(ctx, origin, ws, s, policy.FileCreate, path, aside, func(a *policy.Action) {
		a.Content, a.Size, a.Overwrite, a.Mode = hash, size, overwrite, mode
	}, func(files space.Files, p policy.Permit) (space.Entry, error) { return files.Write(ctx, p, content) })
}

// Delete removes a file of a space, which one as ReadFile has it.
func (f *Files) Delete(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, which Which) error {
	return f.either(ctx, origin, ws, s, path, which, func(aside bool) error {
		_, err := f.change(ctx, origin, ws, s, policy.FileDelete, path, aside, func(*policy.Action) {}, func(files space.Files,
			p policy.Permit) (space.Entry, error) {
			return space.Entry{}, files.Delete(ctx, p)
		})
		return err
	})
}

// change takes a changing action through the gate, records its intent, does it and records how it went.
func (f *Files) change(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, typ, path string, aside bool,
	fill func(*policy.Action), do func(space.Files, policy.Permit) (space.Entry, error)) (space.Entry, error) {
	done, before, err := f.changed(ctx, &origin, ws)
	if err != nil || before == made {
		return done, err
	}
	doc, files, action, err := f.reach(ctx, origin, ws, s, typ, path, aside)
	if err != nil {
		return done, err
	}
	fill(&action)
	ruling, approval, err := f.acts.Ask(ctx, origin, action)
	if err != nil {
		return done, err
	}
	return f.begin(ctx, origin, before, doc, files, ruling, approval, do)
}

// begin records the intent of an action, does it and records the outcome. Before is the result of an earlier request with the same key.
func (f *Files) begin(ctx context.Context, origin event.Origin, before earlier, doc space.Space, files space.Files, ruling policy.Ruling,
	approval id.Approval, do func(space.Files, policy.Permit) (space.Entry, error)) (done space.Entry, err error) {
	ws, a := doc.Workspace, ruling.Action
	begun := space.FileBegun{Space: doc.ID, Action: a.Type, Path: a.Path, Content: a.Content, Size: a.Size, Mode: a.Mode,
		Hash: ruling.Decision.Action, Withheld: a.Method == space.MethodWithheld}
	permit, receipt, err := f.gate.Begin(ctx, ruling, approval, origin.Once(event.Batch{Workspace: ws,
		Drafts: []event.Draft{fileDraft(space.EventFileBegun, origin, doc, begun, asked(approval))}}))
	if err != nil {
		return done, err
	}
	if receipt.Replayed {
		return done, errUnderWay
	}
	change, err := begunBy(receipt.Events)
	if err != nil {
		return done, err
	}
	ended := space.FileEnded{Space: doc.ID, Change: change}
	entry, failed := do(files, permit)
	if failed != nil && before == unknown {
		entry, failed = f.tookEffect(ctx, origin, a, failed)
	}
	if ended.OK, ended.Error = failed == nil, fault.CodeOf(failed); ended.OK && entry.Path != "" {
		ended.Entry = &entry
	}
	_, err = f.log.Append(context.WithoutCancel(ctx), event.Batch{Workspace: ws, Drafts: []event.Draft{fileDraft(space.EventFileEnded,
		origin, doc, ended, space.ChangeOn(change))}})
	return entry, errors.Join(failed, err)
}

var errUnderWay = fault.New(fault.Conflict, "idempotency_in_progress",
	"a request with this idempotency key is under way; ask again when it has ended")

// earlier says what became of the change that an earlier request with the same idempotency key asked for.
type earlier int

const (
	unmade  earlier = iota // there was none, or it was refused, or it failed
	made                   // it was made
	unknown                // it may have been made: the daemon ended meanwhile
)

// changed looks for the change that an earlier request with origin's key made. A refused or failed change has not used up the key: the
// origin gets the next key of the request. A change with an unknown outcome, because the daemon ended, is made again: the whole file
// appears in one step, so the outcome is the same.
func (f *Files) changed(ctx context.Context, origin *event.Origin, ws id.Workspace) (entry space.Entry, before earlier, err error) {
	if origin.Key == "" {
		return entry, unmade, nil
	}
	first := origin.Key
	for try := 1; ; try++ {
		events, known, err := journal.Recall(ctx, f.log, ws, origin.Key, origin.Command)
		if err != nil || !known {
			return entry, before, err
		}
		change, err := begunBy(events)
		if err != nil {
			return entry, before, err
		}
		c, _, err := projection.Load[space.Change](ctx, f.docs, ws, space.ChangeProjection, string(change))
		switch {
		case err != nil:
			return entry, before, err
		case c.Open:
			return entry, before, errUnderWay
		case c.OK && c.Entry != nil:
			return *c.Entry, made, nil
		case c.OK:
			return entry, made, nil
		case c.Unknown:
			before = unknown
		}
		origin.Key = first + "~" + strconv.Itoa(try)
	}
}

// asked returns the cause of an action: the approval that permits it, or no recorded event.
func asked(approval id.Approval) event.Subject {
	if approval == "" {
		return event.Beginning
	}
	return event.Subject{Type: policy.ApprovalEntity, ID: string(approval)}
}

// begunBy returns the change that the events of an intent announce.
func begunBy(events []event.Event) (id.Event, error) {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == space.EventFileBegun })
	if i < 0 {
		return "", fault.New(fault.Internal, "event_missing", "the log did not return the change's intent")
	}
	return events[i].ID, nil
}

// tookEffect finds out whether a repeated change failed because an earlier try of the same request had succeeded. The end of the daemon may
// have left that outcome unknown. In that case the file exists with the same content, or is gone.
func (f *Files) tookEffect(ctx context.Context, origin event.Origin, a policy.Action, failed error) (space.Entry, error) {
	switch {
	case a.Type == policy.FileDelete && errors.Is(failed, space.ErrFileNotFound):
		return space.Entry{}, nil
	case a.Type == policy.FileCreate && errors.Is(failed, space.ErrFileExists):
		file, err := f.Read(ctx, origin, a.Workspace, a.Space, a.Path, whichOf(a))
		if err != nil {
			return space.Entry{}, failed
		}
		defer file.Close()
		hash := sha256.New()
		if _, err := io.Copy(hash, file); err == nil && event.Digest(hash.Sum(nil)) == a.Content {
			return file.Entry(), nil
		}
	}
	return space.Entry{}, failed
}

// reach returns a living space, its files, or those that are withheld, and the action on one of their paths.
func (f *Files) reach(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, typ, path string, aside bool) (space.Space,
	space.Files, policy.Action, error) {
	clean := space.CleanFilePath
	if typ == policy.FileList || typ == policy.FileArchive {
		clean = space.CleanPath
	}
	path, err := clean(path)
	if err != nil {
		return space.Space{}, nil, policy.Action{}, err
	}
	doc, err := f.catalog.alive(ctx, ws, s)
	if err != nil {
		return doc, nil, policy.Action{}, err
	}
	files, _, err := f.store.Open(doc.ID, doc.UID, doc.Limits)
	action := policy.Action{
		Type: typ, Workspace: ws, Room: doc.Room, Principal: origin.Principal, Token: origin.Token, Space: s, Path: path, Bundle: doc.Bundle,
	}
	if aside && err == nil {
		action.Method = space.MethodWithheld
		files, err = f.withheld.files(ctx, doc)
	}
	return doc, files, action, err
}

// closeChanges ends the changes that an earlier daemon began and did not finish: whether they took effect is not known.
func (f *Files) closeChanges(ctx context.Context, ws id.Workspace) error {
	for after := ""; ; {
		open, err := f.docs.Documents(ctx, projection.Query{
			Workspace: ws, Name: space.ChangeProjection, Index: projection.Index{Name: "open", Value: "true"}, After: after, Limit: 100,
		})
		if err != nil || len(open) == 0 {
			return err
		}
		for _, d := range open {
			after = d.Key
			c, _, err := projection.Load[space.Change](ctx, f.docs, ws, space.ChangeProjection, d.Key)
			if err != nil {
				return err
			}
			if mine, err := f.ownership.mineNow(ctx, ws, c.Space); err != nil || !mine {
				if err != nil {
					return err
				}
				continue
			}
			ended := space.FileEnded{Space: c.Space, Change: id.Event(d.Key), Unknown: true, Error: "daemon_stopped"}
			draft := event.New(space.EventFileEnded, event.Origin{Principal: f.system, Follows: space.ChangeOn(ended.Change)}, ws, c.Room,
				ended).About(space.EntityType, string(c.Space))
			if _, err := f.log.Append(ctx, event.Batch{Workspace: ws, Drafts: []event.Draft{draft}}); err != nil {
				return err
			}
		}
	}
}

// ChangeDefinition folds the documents of file changes.
func ChangeDefinition() projection.Definition {
	keys := func(e event.Event) []string {
		if key, err := space.ChangeOf(e); err == nil && key != "" {
			return []string{string(key)}
		}
		return nil
	}
	fold := func(c space.Change, _ string, e event.Event) (space.Change, error) { return space.EvolveChange(c, e) }
	return projection.Define(space.ChangeProjection, 3, keys, fold, func(c space.Change) []projection.Index {
		if !c.Open {
			return nil
		}
		return []projection.Index{{Name: "open", Value: "true"}}
	}).Leads(space.ChangeSubject, nil)
}
