package engines

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/kernel/journal"
)

// Request asks for a run that an engine executes.
type Request struct {
	Workspace  id.Workspace
	Room       id.Room
	Thread     id.Thread
	Experiment id.Experiment
	Title      string          // at most run.MaxTitle characters
	Goal       string          // at most run.MaxGoal characters
	Input      json.RawMessage // any JSON, at most run.MaxGiven bytes; nil for none
	Files      []File          // of the requester, which become artifacts of the run
	Tags       []string        // at most run.MaxTags words of run.MaxTag characters

	// Under is asked for the tool call for which the run is made, again before each try to record it; nil for a run of nobody's call. One call
	// has one run: a repeat returns it.
	Under func(ctx context.Context) (run.Under, error)
}

// File is a file that belongs to the request for a run.
type File struct {
	Title   string // at most step.MaxTitle characters
	Media   string
	Content []byte
}

// kindGiven is the kind of the artifacts that are files of a request.
const kindGiven = "attachment"

// The errors of a request for a run.
var (
	ErrExperimentNotFound = fault.New(fault.NotFound, "experiment_not_found", "there is no such experiment in this workspace")
	ErrLineage            = fault.New(fault.Denied, "lineage_not_yours", "only a tool call of an agent makes a sub-agent").
				With("leave lineage out of the input")
	ErrPictures = fault.New(fault.Denied, "pictures_not_yours", "a task names a picture by its hash, and the request does not bring it").
			With("give the agent its task with POST /v1/blueprints/{blueprint}/runs, which takes the pictures themselves")
)

// brings reports whether the files of the request are the pictures of its task. A hash alone would show the model content of somebody else.
func (q Request) brings(pictures []errand.Picture) bool {
	for _, p := range pictures {
		if !slices.ContainsFunc(q.Files, func(f File) bool { return event.DigestOf(f.Content) == p.Digest }) {
			return false
		}
	}
	return true
}

func (q Request) check() error {
	if q.Experiment != "" {
		return ErrExperimentNotFound // there are none
	}
	if err := texts(text{"title", q.Title, run.MaxTitle}, text{"goal", q.Goal, run.MaxGoal}); err != nil {
		return err
	}
	if len(q.Tags) > run.MaxTags {
		return fault.New(fault.Invalid, "invalid_field", "%d tags were sent; at most %d are taken", len(q.Tags), run.MaxTags)
	}
	for _, tag := range q.Tags {
		if tag == "" || strings.ContainsFunc(tag, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
			return fault.New(fault.Invalid, "invalid_field", "the tag %.120q is not a word", tag)
		}
		if err := texts(text{"tags", tag, run.MaxTag}); err != nil {
			return err
		}
	}
	for _, f := range q.Files {
		if err := texts(text{"name", f.Title, step.MaxTitle}, text{"mime_type", f.Media, step.MaxMedia}); err != nil {
			return err
		}
	}
	return fits("input", q.Input, run.MaxGiven)
}

// size returns how many bytes of content the request brings.
func (q Request) size() int64 {
	n := int64(len(q.Input))
	for _, f := range q.Files {
		n += int64(len(f.Content))
	}
	return n
}

// attach stores the files of a request and drafts their artifacts.
func (d *Service) attach(ctx context.Context, origin event.Origin, q Request, r id.Run) ([]event.Draft, error) {
	var drafts []event.Draft
	for _, f := range q.Files {
		stored, err := d.Blobs.Put(ctx, bytes.NewReader(f.Content), int64(len(f.Content)))
		if err != nil {
			return nil, err
		}
		a := id.New[id.Artifact](d.IDs)
		title, _ := leak.Text(f.Title)
		for _, made := range []struct {
			typ  string
			data any
		}{
			{step.EventArtifactCreated, step.ArtifactCreated{Artifact: a, Run: r, Kind: kindGiven, Title: title, Media: f.Media,
				Size: &stored.Size, Digest: stored.Digest, Content: step.Content{Type: step.None}, Metadata: json.RawMessage(`{}`)}},
			{step.EventArtifactStored, step.ArtifactStored{Artifact: a, Run: r, Content: step.Stored{Digest: stored.Digest, Size: stored.Size}}},
		} {
			drafts = append(drafts, draft(made.typ, origin, run.Run{ID: r, Workspace: q.Workspace, Room: q.Room}, made.data).
				About(step.ArtifactEntity, string(a)))
		}
	}
	return drafts, nil
}

// text is a text that was sent, and how many characters it may have.
type text struct {
	name, sent string
	most       int
}

func texts(sent ...text) error {
	for _, t := range sent {
		if !utf8.ValidString(t.sent) {
			return fault.New(fault.Invalid, "invalid_field", "%s is not UTF-8", t.name)
		}
		if n := utf8.RuneCountInString(t.sent); n > t.most {
			return fault.New(fault.Invalid, "invalid_field", "%s has %d characters; it may have %d", t.name, n, t.most)
		}
	}
	return nil
}

// fits refuses a JSON value that is too long.
func fits(name string, sent json.RawMessage, most int) error {
	if len(sent) > most {
		return fault.New(fault.Exhausted, "field_too_large", "%s has %d bytes; it may have %d", name, len(sent),
			most).With("keep what is longer as an artifact")
	}
	return nil
}

// Create records a run that waits for an engine.
func (d *Service) Create(ctx context.Context, origin event.Origin, q Request) (run.Run, error) {
	if q.Room == "" {
		q.Room = id.DefaultRoom
	}
	if err := q.check(); err != nil {
		return run.Run{}, err
	}
	if err := d.Place(ctx, q.Workspace, q.Room, q.Thread); err != nil {
		return run.Run{}, err
	}
	if origin.Correlation == "" {
		origin.Correlation = id.New[id.Correlation](d.IDs)
	}
	created := run.Created{
		Run: id.New[id.Run](d.IDs), Title: q.Title, Operations: []run.Outline{}, Trace: origin.Trace, Token: origin.Token,
		Order: run.Order{Engine: true, Thread: q.Thread, Experiment: q.Experiment, Goal: q.Goal, Tags: q.Tags},
	}
	created.Work = errand.KindOf(q.Input)
	if m, ok := errand.ReadMission(q.Input); ok {
		if created.Blueprint, created.Artifacts = m.Blueprint, m.Artifacts; m.Lineage != nil && q.Under == nil {
			return run.Run{}, ErrLineage
		}
		if !q.brings(m.Pictures) {
			return run.Run{}, ErrPictures
		}
	}
	order := created.Work == errand.Operations
	clean, found := leak.Scan(q.Input)
	if !order { // what an order says is executed as it is; of any other input the record is what counts, and engines get it as it was recorded
		q.Input = clean
	}
	action := policy.Action{
		Type: policy.RunCreate, Workspace: q.Workspace, Room: q.Room, Principal: origin.Principal, Token: origin.Token, Content: digest(q.Title,
			q.Goal, q.Input, q.Tags), Size: q.size(),
	}
	var room []event.DocumentVersion
	var attached []event.Draft
	if q.size() > 0 {
		// Judge before any content is stored for a request that may be refused.
		ruling, err := d.Gate.Judge(ctx, action)
		if err != nil {
			return run.Run{}, err
		}
		if ruling.Decision.Outcome != policy.Deny {
			if room, err = d.contentRoom(ctx, q.Workspace, q.size()); err != nil {
				return run.Run{}, err
			}
			defer d.Blobs.Hold()() // until the event names it
			stored, err := d.Blobs.Put(ctx, bytes.NewReader(q.Input), run.MaxGiven)
			if err != nil {
				return run.Run{}, err
			}
			created.Input = run.Input{Digest: stored.Digest, Size: stored.Size}
			if attached, err = d.attach(ctx, origin, q, created.Run); err != nil {
				return run.Run{}, err
			}
		}
	}
	drafts := []event.Draft{draft(run.EventCreated, origin, run.Run{ID: created.Run, Workspace: q.Workspace, Room: q.Room,
		Order: created.Order}, created)}
	if len(found) > 0 {
		marked, said := leak.Tell(drafts[0], "", func() id.Event { return id.NewEvent(d.IDs) }, leak.Named(found, "input"), !order)
		drafts = []event.Draft{marked, said}
	}
	drafts = append(drafts, attached...)
	var receipt event.Receipt
	for try := 1; ; try++ {
		expect, child, err := q.under(ctx, created, drafts)
		if err != nil {
			return run.Run{}, err
		}
		if child != "" {
			return d.Find(ctx, q.Workspace, child)
		}
		receipt, err = d.Gate.Record(ctx, origin, action, origin.Once(event.Batch{
			Workspace: q.Workspace, Drafts: drafts, Documents: slices.Concat(room, expect, []event.DocumentVersion{{Projection: run.Projection,
				Key: string(created.Run)}}),
		}))
		if err == nil {
			break
		}
		if !errors.Is(err, journal.ErrConflict) || len(room) == 0 && len(expect) == 0 || try == tries {
			return run.Run{}, err
		}
		if len(room) == 0 {
			continue
		}
		if room, err = d.contentRoom(ctx, q.Workspace, q.size()); err != nil {
			return run.Run{}, err
		}
	}
	if receipt.Replayed {
		return d.Find(ctx, q.Workspace, receipt.Events[0].Run)
	}
	doc, err := run.Evolve(run.Run{}, receipt.Events[0])
	if err == nil && doc.Parent == nil { // the engine whose call it is claims it at once
		d.bells.offer(doc)
	}
	return doc, err
}

// under names the tool call of the request in the event that makes the run, and returns what the log has to expect so that the call still
// is its engine's and has no run. It returns the run that the call has.
func (q Request) under(ctx context.Context, created run.Created, drafts []event.Draft) ([]event.DocumentVersion, id.Run, error) {
	if q.Under == nil {
		return nil, "", nil
	}
	under, err := q.Under(ctx)
	if err != nil || under.Child != "" {
		return nil, under.Child, err
	}
	created.Parent = &under.Parent
	if drafts[0].Data, err = json.Marshal(created); err != nil {
		return nil, "", err
	}
	drafts[0].Follows = event.Subject{Type: step.CallEntity, ID: string(under.Parent.Call)}
	return under.Expect, "", nil
}

// Given returns the input of a run, JSON as it was sent; null where there is none, or where it was redacted.
func (d *Service) Given(ctx context.Context, doc run.Run) (json.RawMessage, error) {
	if !doc.Engine || doc.Input.Digest.IsZero() {
		return json.RawMessage("null"), nil
	}
	stored, err := d.Blobs.Open(ctx, doc.Input.Digest)
	if err != nil {
		return nil, err
	}
	defer stored.Close()
	raw, err := io.ReadAll(io.LimitReader(stored, run.MaxGiven))
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "content_unreadable", "the input of the run cannot be read")
	}
	return raw, nil
}
