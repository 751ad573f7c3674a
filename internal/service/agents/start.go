package agents

import (
	"context"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/tool"
)

// Task is an order of a person to an agent.
type Task struct {
	Workspace id.Workspace
	Blueprint string    // its name
	Version   int       // 0 for the newest
	Text      string    // 1 to errand.MaxTask bytes
	Space     id.Space  // where the agent works; "" for a new one, as the blueprint says
	Room      id.Room   // "" for that of the space
	Thread    id.Thread // the agent reads messages that people post there while it works; "" for a new one
	After     id.Run    // an ended run whose conversation the task continues; "" for none
	Model     string    // the model that answers; "" for that of the blueprint
	Title     string    // of the run; "" for the beginning of the text
	Pictures  []Picture // at most model.MaxImages
	Key       string    // idempotency key of the request; "" for none

	Lineage *errand.Lineage // of a sub-agent; nil for an agent that a person starts
}

// Picture is a picture that belongs to a task.
type Picture struct {
	Name string // at most MaxName characters; "" for none
	Data []byte // 1 to model.MaxImage bytes of PNG, JPEG, GIF or WebP
}

// MaxName bounds the name of a picture, in characters.
const MaxName = 200

// The refusals of a task.
var (
	ErrNoTask  = fault.New(fault.Invalid, "invalid_field", "task has 1 to %d bytes of text", errand.MaxTask)
	ErrAdapter = fault.New(fault.Invalid, "adapter_unsupported", "this daemon runs agents whose adapter is internal or external_cli")
	ErrNoAgent = fault.New(fault.Invalid, "not_an_agent", "the run whose conversation is to go on is not the run of an agent")
	ErrGoesOn  = fault.New(fault.Conflict, "run_not_ended", "the run whose conversation is to go on has not ended").
			With("tell it something while it works: agentbox agent steer RUN TEXT; or end it: agentbox agent stop RUN")
	ErrProgram = fault.New(fault.Invalid, "conversation_unsupported",
		"an agent whose adapter is external_cli goes on no conversation, and takes no other model").With("give it one whole task")
	ErrProgramImages = fault.New(fault.Invalid, "pictures_unsupported", "an agent whose adapter is external_cli takes no pictures").
				With("put the file into its space: agentbox files put")
	ErrUnpinned = fault.New(fault.Conflict, "blueprint_unpinned", "the blueprint has a reference that is not pinned, or that changed since")
)

// Starter begins runs of agents. Its fields are set once; any goroutine may call Start.
type Starter struct {
	// Read returns a version of a registered blueprint (0 for the newest), the version's number, and its content hash with its pins.
	Read func(ctx context.Context, ws id.Workspace, name string, version int) (blueprint.Blueprint, int, event.Digest, error)
	// Drift returns the references whose pins do not match.
	Drift func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]blueprint.Drift, error)
	// Pins returns the present content hashes of everything that a blueprint refers to.
	Pins func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) (blueprint.Pins, error)
	// Tools returns the tools that the agent is offered, and the content hash of their set.
	Tools func(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) ([]tool.Tool, event.Digest, error)
	// Before returns a run of an agent, and its mission.
	Before func(ctx context.Context, ws id.Workspace, r id.Run) (run.Run, errand.Mission, error)
	// Space makes the space of an agent, and returns it with its room. A repeat with the task's key returns the same space.
	Space func(ctx context.Context, origin event.Origin, t Task, b blueprint.Blueprint) (id.Space, id.Room, error)
	// Thread begins the thread in which people talk to the agent, in the room of the task. It returns "" if the caller may not begin
	// threads.
	Thread func(ctx context.Context, origin event.Origin, t Task) (id.Thread, error)
	// Create records the run.
	Create func(ctx context.Context, origin event.Origin, t Task, input json.RawMessage) (run.Run, error)
	// External refuses a task that the program of a blueprint cannot get. It returns the hash of the start commands, which the run records.
	External func(b blueprint.Blueprint, task string) (event.Digest, error)
	// NoTools reports whether a model of the catalogue knows no tool calls; nil where all know them.
	NoTools func(ctx context.Context, ws id.Workspace, name string) (bool, error)
	// NoImages reports whether a model of the catalogue takes no pictures; nil where all take them.
	NoImages func(ctx context.Context, ws id.Workspace, name string) (bool, error)
	// Floating lets blueprints run whose pins are missing or do not fit. It is a setting of the daemon.
	Floating bool
}

// Start records the run of an agent; the daemon's loop then executes it. It returns ErrNoTask, ErrAdapter, ErrProgram, ErrUnpinned,
// ErrGoesOn or ErrNoAgent for a task that cannot run.
func (s *Starter) Start(ctx context.Context, origin event.Origin, t Task) (run.Run, error) {
	if t.Text == "" || len(t.Text) > errand.MaxTask {
		return run.Run{}, ErrNoTask
	}
	pictures, err := described(t.Pictures)
	if err != nil {
		return run.Run{}, err
	}
	b, version, locked, err := s.Read(ctx, t.Workspace, t.Blueprint, t.Version)
	if err != nil {
		return run.Run{}, err
	}
	if err := run.Patterns(b.Artifacts).Check(); err != nil {
		return run.Run{}, err
	}
	loop := Hash()
	switch kind := b.Effective().Adapter.Kind; {
	case kind == blueprint.ExternalCLI && s.External != nil && (t.After != "" || t.Model != ""):
		return run.Run{}, ErrProgram
	case kind == blueprint.ExternalCLI && s.External != nil && len(pictures) > 0:
		return run.Run{}, ErrProgramImages
	case kind == blueprint.ExternalCLI && s.External != nil:
		if loop, err = s.External(b, t.Text); err != nil {
			return run.Run{}, err
		}
	case kind != blueprint.Internal:
		return run.Run{}, ErrAdapter
	}
	if !s.Floating {
		drift, err := s.Drift(ctx, t.Workspace, b)
		if err != nil {
			return run.Run{}, err
		}
		if len(drift) > 0 {
			return run.Run{}, fault.New(ErrUnpinned.Kind, ErrUnpinned.Code, "version %d of the blueprint %s cannot run: %s", version, b.Name,
				blueprint.Unfit(drift)).
				With("pin what is there now: agentbox blueprint lock FILE\nthen register the file: agentbox blueprint register FILE")
		}
	}
	if t, err = s.goOn(ctx, t); err != nil {
		return run.Run{}, err
	}
	b = b.Answering(t.Model)
	if len(pictures) > 0 && s.NoImages != nil {
		name := b.Model(blueprint.DefaultTask)
		none, err := s.NoImages(ctx, t.Workspace, name)
		if err == nil && none {
			err = fault.New(model.ErrNoImages.Kind, model.ErrNoImages.Code, "the model %s takes no pictures", name).
				With(model.ErrNoImages.Suggestion)
		}
		if err != nil {
			return run.Run{}, err
		}
	}
	pins, err := s.Pins(ctx, t.Workspace, b)
	if err != nil {
		return run.Run{}, err
	}
	_, tools, err := s.Tools(ctx, t.Workspace, b)
	if err != nil {
		return run.Run{}, err
	}
	protocol, err := s.protocol(ctx, t.Workspace, b)
	if err != nil {
		return run.Run{}, err
	}
	if t.Space == "" {
		room := t.Room
		if t.Space, t.Room, err = s.Space(ctx, origin, t, b); err != nil {
			return run.Run{}, err
		}
		if room != "" {
			t.Room = room
		}
	}
	input, err := json.Marshal(errand.Mission{Version: 1, Blueprint: b.Name, Edition: version, Locked: locked, Loop: loop, Tools: tools,
		Space: t.Space, Pins: pinned(b, pins), After: t.After, Model: t.Model, Artifacts: b.Artifacts,
		Protocol: protocol, Lineage: t.Lineage, Task: t.Text, Pictures: pictures})
	if err != nil {
		return run.Run{}, err
	}
	if t.Title == "" {
		t.Title = title(t.Text)
	}
	if t.Thread == "" {
		if t.Thread, err = s.Thread(ctx, origin, t); err != nil {
			return run.Run{}, err
		}
	}
	return s.Create(ctx, origin, t, input)
}

// described returns what the mission says of pictures. It refuses what no model takes.
func described(given []Picture) ([]errand.Picture, error) {
	bad := func(format string, args ...any) ([]errand.Picture, error) {
		return nil, fault.New(fault.Invalid, "invalid_picture", format, args...)
	}
	if len(given) > model.MaxImages {
		return bad("a task has at most %d pictures; %d were sent", model.MaxImages, len(given))
	}
	var out []errand.Picture
	for n, p := range given {
		media := model.MediaOf(p.Data)
		switch {
		case len(p.Data) > model.MaxImage:
			return bad("picture %d has %d bytes; a picture has at most %d", n+1, len(p.Data), model.MaxImage)
		case media == "":
			return bad("picture %d is no PNG, JPEG, GIF or WebP", n+1)
		case !utf8.ValidString(p.Name) || utf8.RuneCountInString(p.Name) > MaxName || strings.ContainsFunc(p.Name, unicode.IsControl):
			return bad("the name of picture %d has at most %d characters, and no control characters", n+1, MaxName)
		}
		out = append(out, errand.Picture{Name: p.Name, Media: media, Size: int64(len(p.Data)), Digest: event.DigestOf(p.Data)})
	}
	return out, nil
}

// protocol returns how the agent's model calls tools.
func (s *Starter) protocol(ctx context.Context, ws id.Workspace, b blueprint.Blueprint) (string, error) {
	name := b.Model(blueprint.DefaultTask)
	switch {
	case b.Effective().Adapter.Kind != blueprint.Internal || b.Tools.Protocol == "calls":
		return "", nil
	case b.Tools.Protocol == errand.ByText:
		return errand.ByText, nil
	case s.NoTools == nil:
		return "", nil
	}
	none, err := s.NoTools(ctx, ws, name)
	if err != nil || !none {
		return "", err
	}
	return errand.ByText, nil
}

// goOn returns a task that continues a conversation. It copies the space, room and thread of the earlier run where the task names none.
func (s *Starter) goOn(ctx context.Context, t Task) (Task, error) {
	if t.After == "" {
		return t, nil
	}
	before, m, err := s.Before(ctx, t.Workspace, t.After)
	if err != nil {
		return t, err
	}
	if !before.Status.Ended() {
		return t, ErrGoesOn
	}
	if t.Space == "" {
		t.Space = m.Space
	}
	if t.Room == "" && t.Thread == "" {
		t.Room, t.Thread = before.Room, before.Thread
	}
	return t, nil
}

// pinned returns the pins of all references of a blueprint, by the names in its text.
func pinned(b blueprint.Blueprint, pins blueprint.Pins) map[string]string {
	all := map[string]string{}
	for _, r := range b.References() {
		all[r.String()] = pins.Of(r)
	}
	return all
}

// title is the first line of a task, cut to 80 characters.
func title(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(first); len(runes) > 80 {
		first = string(runes[:79]) + "…"
	}
	return first
}
