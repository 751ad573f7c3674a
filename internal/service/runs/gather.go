package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/step"
)

// kindFile is the kind of an artifact that is a file of the space.
const kindFile = "file"

// Kept names the files of a space that a run keeps as artifacts when it ends, and in whose name they are read.
type Kept struct {
	Workspace id.Workspace
	Room      id.Room
	Run       id.Run
	Space     id.Space
	Patterns  run.Patterns
	Agent     id.Principal // reads the files
	Token     id.Token     // under which; "" for none
	Step      id.Step      // to which the artifacts belong; "" for none
	Origin    event.Origin // of their events
}

// gather keeps the files that the run named as artifacts. It returns nil for a run that named none or has not begun.
func (r *record) gather(ctx context.Context, at id.Step) ([]event.Draft, *run.Gathered) {
	d := r.doc
	if len(d.Patterns) == 0 || d.StartedAt.IsZero() {
		return nil, nil
	}
	return r.x.Keep(ctx, Kept{Workspace: d.Workspace, Room: d.Room, Run: d.ID, Space: d.Space, Patterns: d.Patterns, Agent: d.Agent,
		Token: d.Token, Step: at, Origin: r.origin})
}

// KeepFor keeps files of a space for a run that is not one of this service. The space's own agent reads them.
func (x *shared) KeepFor(ctx context.Context, k Kept) ([]event.Draft, *run.Gathered) {
	agent, err := x.Agents.Agent(ctx, event.Origin{Principal: k.Origin.Principal, Correlation: k.Origin.Correlation}, k.Workspace,
		principal.SpaceAgent+string(k.Space))
	if err != nil {
		return nil, &run.Gathered{Error: x.whyLeft(k.Run, err)}
	}
	k.Agent = agent
	return x.Keep(ctx, k)
}

// Keep stores files of a space, and returns the events of their artifacts and what the end of their run says of them. The agent needs a
// permit for each file. Keep leaves out a file that it cannot keep, because the run ends whatever happens. The caller protects the stored
// contents until it has recorded the events.
func (x *shared) Keep(ctx context.Context, k Kept) ([]event.Draft, *run.Gathered) {
	ctx = context.WithoutCancel(ctx)
	g := &gathering{Kept: k, x: x}
	if err := g.open(ctx); err != nil {
		g.told.Error = x.whyLeft(k.Run, err)
		return nil, &g.told
	}
	for _, path := range g.find(ctx) {
		reason := ""
		if g.told.Files == run.MaxArtifacts {
			reason = run.ReasonTooManyArtifacts
		} else if err := g.keep(ctx, path); err != nil {
			reason = x.whyLeft(k.Run, err)
		}
		if reason != "" {
			clean, _ := g.known.Text(path)
			g.told.Leave(clean, reason)
		}
	}
	return g.drafts, &g.told
}

// gathering is the work of keeping files of a space.
type gathering struct {
	Kept
	x     *shared
	space space.Space
	files space.Files
	held  policy.Withhold
	known leak.Known

	told   run.Gathered
	drafts []event.Draft
}

// whyLeft returns the code of an error for which a file was left out. An error without words for the client goes to the daemon's own log.
func (x *shared) whyLeft(r id.Run, err error) string {
	if code := fault.CodeOf(err); code != "" && fault.KindOf(err) != fault.Internal {
		return code
	}
	x.Logger.Error("keep files of a space as artifacts", "code", "artifact_not_kept", "run", r, "error", err)
	return "internal_error"
}

// open prepares the reading of the space's files.
func (g *gathering) open(ctx context.Context) (err error) {
	x := g.x
	if g.space, err = x.Spaces.Space(ctx, g.Workspace, g.Space); err != nil {
		return err
	}
	if g.files, err = x.Spaces.Files(g.space); err != nil {
		return err
	}
	bundle, err := x.Bundles.Bundle(ctx, g.Workspace, g.space.Bundle)
	if err != nil {
		return err
	}
	if bundle.Limits.Withhold != nil {
		g.held = *bundle.Limits.Withhold
	}
	env, err := x.variables(g.space) // without its values nobody can keep them out of the names
	g.known = leak.Values(env)
	return err
}

// find returns the paths of the files that match, in order.
func (g *gathering) find(ctx context.Context) (found []string) {
	for _, folder := range g.Patterns.Folders() {
		entries, err := g.list(ctx, folder)
		switch {
		case errors.Is(err, space.ErrFileNotFound):
			continue
		case errors.Is(err, space.ErrNotADirectory):
			entries = []space.Entry{{Path: folder, Type: kindFile}} // reading it tells what it is
		case err != nil:
			g.told.Error = g.x.whyLeft(g.Run, err)
			continue
		}
		if len(entries) > run.MaxArtifactsSeen {
			entries, g.told.Error = entries[:run.MaxArtifactsSeen], run.ReasonArtifactsUnseen
		}
		for _, e := range entries {
			if e.Type == kindFile && g.Patterns.Match(e.Path) {
				found = append(found, e.Path)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// list returns the entries of a folder: one more than are searched, where it has more.
func (g *gathering) list(ctx context.Context, folder string) ([]space.Entry, error) {
	permit, err := g.permit(ctx, policy.Action{Type: policy.FileList, Path: folder})
	if err != nil {
		return nil, err
	}
	return g.files.List(ctx, permit, true, run.MaxArtifactsSeen+1)
}

// permit returns a permit for an action of the run's agent that changes nothing. It asks nobody: an action that needs an answer is refused.
func (g *gathering) permit(ctx context.Context, a policy.Action) (policy.Permit, error) {
	a.Workspace, a.Room, a.Principal, a.Token, a.Space, a.Run = g.Workspace, g.Room, g.Agent, g.Token, g.Kept.Space, g.Run
	a.Step, a.Bundle = g.Step, g.space.Bundle
	ruling, err := g.x.Gate.Judge(ctx, a)
	if err != nil {
		return policy.Permit{}, err
	}
	if d := ruling.Decision; !d.Allowed() || ruling.Standing != "" {
		return policy.Permit{}, fault.New(fault.Denied, cmp.Or(d.ReasonCode, "policy_denied"), "policy does not let the run read %.200q", a.Path)
	}
	return g.x.Gate.Glance(ruling)
}

// keep stores a file and drafts the events of its artifact.
func (g *gathering) keep(ctx context.Context, path string) error {
	if _, withheld := g.held.Match(path); withheld {
		return space.ErrWithheld
	}
	permit, err := g.permit(ctx, policy.Action{Type: policy.FileRead, Path: path})
	if err != nil {
		return err
	}
	file, err := g.files.Read(ctx, permit)
	if err != nil {
		return err
	}
	defer file.Close()
	room := run.MaxArtifactBytes - g.told.Bytes
	if file.Entry().Size > room {
		return errArtifactsTooLarge
	}
	if err := g.x.contentRoom(ctx, g.Workspace, g.told.Bytes+file.Entry().Size); err != nil {
		return err
	}
	begin := &firstBytes{}
	stored, err := g.x.Blobs.Put(ctx, io.TeeReader(file, begin), room)
	if err != nil {
		return err
	}
	if stored.Size > file.Entry().Size { // it grew while it was read
		if err := g.x.contentRoom(ctx, g.Workspace, g.told.Bytes+stored.Size); err != nil {
			return err
		}
	}
	g.told.Files, g.told.Bytes = g.told.Files+1, g.told.Bytes+stored.Size
	clean, _ := g.known.Text(path)
	g.record(clean, space.MediaOf(path, begin.bytes), step.Stored{Digest: stored.Digest, Size: stored.Size})
	return nil
}

// errArtifactsTooLarge leaves out a file with which the artifacts of a run would be too large.
var errArtifactsTooLarge = fault.New(fault.Exhausted, run.ReasonArtifactsTooLarge, "the artifacts of a run have at most %d bytes together",
	run.MaxArtifactBytes)

// record drafts the events of an artifact.
func (g *gathering) record(path, media string, stored step.Stored) {
	a := id.New[id.Artifact](g.x.IDs)
	created := step.ArtifactCreated{
		Artifact: a, Run: g.Run, Kind: kindFile, Title: title(path), Media: media, Size: &stored.Size, Digest: stored.Digest,
		Content: step.Content{Type: step.None}, Metadata: json.RawMessage(`{}`), Path: path, Taken: true,
	}
	kept := step.ArtifactStored{Artifact: a, Run: g.Run, Content: stored}
	for _, made := range []struct {
		typ  string
		data any
	}{{step.EventArtifactCreated, created}, {step.EventArtifactStored, kept}} {
		g.drafts = append(g.drafts, event.New(made.typ, g.Origin, g.Workspace, g.Room, made.data).
			About(step.ArtifactEntity, string(a)).In(g.Run, g.Step))
	}
}

// title returns the name of a file, at most step.MaxTitle characters of it.
func title(path string) string {
	name := []rune(path[strings.LastIndexByte(path, '/')+1:])
	return string(name[:min(len(name), step.MaxTitle)])
}

// firstBytes keeps the beginning of its input.
type firstBytes struct{ bytes []byte }

// Write implements io.Writer.
func (f *firstBytes) Write(p []byte) (int, error) {
	f.bytes = append(f.bytes, p[:min(len(p), space.MediaBytes-len(f.bytes))]...)
	return len(p), nil
}

// lastStep returns the step of the last operation that has one.
func (r *record) lastStep() id.Step {
	for _, p := range slices.Backward(r.doc.Operations) {
		if p.Step != "" {
			return p.Step
		}
	}
	return ""
}
