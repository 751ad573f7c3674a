// Package spaceapi has the operations for spaces, their files and their snapshots.
package spaceapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/query"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/policyapi"
	"agentbox/internal/surface/httpapi/wire"
)

// maxSpaceBody is the most that a request for a space may have; most of it is the archive from which it starts.
const maxSpaceBody = 32 << 20

// spaceRequest asks for a space. Missing fields take their defaults.
type spaceRequest struct {
	Name        string            `json:"name,omitempty" maxLength:"100"`
	Description string            `json:"description,omitempty" maxLength:"1000"`
	Policy      string            `json:"policy,omitempty" enum:"restrictive,standard,permissive" doc:"Policy preset; standard by default"`
	Overrides   json.RawMessage   `json:"policy_overrides,omitempty" doc:"Sections that replace those of the preset"`
	Bundle      *policy.Bundle    `json:"policy_bundle,omitempty" doc:"A policy as it is, with the hash that it must have, instead of a preset"`
	Runtime     string            `json:"runtime,omitempty" doc:"What its code runs in: auto, by default, begins in nano where that is there and is promoted when a command needs more; heavy is the strongest tier; a tier's name is that tier and no other"`
	Tier        string            `json:"tier,omitempty" doc:"The older name of runtime"`
	Room        id.Room           `json:"room_id,omitempty" doc:"The room to which it belongs; the workspace's default one unless named"`
	Env         map[string]string `json:"env,omitempty" doc:"Environment of every command. A value that looks like a secret is sealed: answers and events show a mask instead of it"`
	Metadata    map[string]string `json:"metadata,omitempty" doc:"The client's own notes"`
	TTL         int64             `json:"ttl_seconds,omitempty" minimum:"10" maximum:"2592000" doc:"How long it lives; 12 hours by default"`
	Limits      *spaceBounds      `json:"limits,omitempty" doc:"Its bounds"`
	PauseAtEnd  bool              `json:"pause_at_end,omitempty" doc:"At the end of its time it is paused for at most 30 days, not destroyed"`
	BestEffort  bool              `json:"best_effort,omitempty" doc:"Accept a host that cannot enforce every bound"`
	From        *spaceSeed        `json:"from,omitempty" doc:"What its files begin with"`
}

// spaceBounds are the bounds of a space; one that is left out takes its default.
type spaceBounds struct {
	MemoryBytes int64 `json:"memory_bytes,omitempty" minimum:"1" doc:"Of all its processes together"`
	CPUMillis   int64 `json:"cpu_millis,omitempty" minimum:"1" doc:"Thousandths of one core"`
	Pids        int64 `json:"pids,omitempty" minimum:"1" doc:"Processes and threads at once"`
	DiskBytes   int64 `json:"disk_bytes,omitempty" minimum:"1" doc:"Of its files"`
	FileBytes   int64 `json:"file_bytes,omitempty" minimum:"1" doc:"Of one file"`
	OutputBytes int64 `json:"output_bytes,omitempty" minimum:"1" doc:"Of what one command prints"`
	OpenFiles   int64 `json:"open_files,omitempty" minimum:"1" doc:"Per process"`
	TmpBytes    int64 `json:"tmp_bytes,omitempty" minimum:"1" doc:"Of its private /tmp"`
}

type spaceSeed struct {
	Path    string `json:"path,omitempty" doc:"A folder of the daemon's host, below one that its configuration allows"`
	Archive []byte `json:"archive,omitempty" doc:"A zip, tar or tar.gz file, in base64"`
}

// spaceChange changes a space; missing fields stay as they are.
type spaceChange struct {
	Name        *string            `json:"name,omitempty" minLength:"1" maxLength:"100"`
	Description *string            `json:"description,omitempty" maxLength:"1000"`
	Env         *map[string]string `json:"env,omitempty" doc:"Replaces the environment as a whole. The mask of a variable, as the space shows it, keeps its value"`
	Metadata    *map[string]string `json:"metadata,omitempty" doc:"Replaces the notes as a whole"`
}

type spaceExtension struct {
	TTL      int64 `json:"ttl_seconds,omitempty" minimum:"10" maximum:"2592000" doc:"How many seconds it lives from now; needed"`
	Duration int64 `json:"duration_seconds,omitempty" minimum:"10" maximum:"2592000" deprecated:"true" doc:"The older name of ttl_seconds, in seconds too"`
}

type spacePromotion struct {
	Tier   string `json:"tier,omitempty" maxLength:"32" doc:"A heavier tier than the space's; the strongest by default"`
	Reason string `json:"reason,omitempty" maxLength:"500" doc:"Why; it stands in the log"`
}

type pauseRequest struct {
	Reason      string `json:"reason,omitempty" maxLength:"500" doc:"Why; it stands in the log"`
	ResumeOnRun bool   `json:"resume_on_run,omitempty" doc:"A run that is sent to the space resumes it; else it waits until somebody does"`
}

type spaceResumption struct {
	TTL int64 `json:"ttl_seconds,omitempty" minimum:"10" maximum:"2592000" doc:"How many seconds it lives from now; without it, the end of its life stays"`
}

type routedCommand struct {
	Command string `json:"command" minLength:"1" maxLength:"1048576" doc:"The text of a shell operation"`
	Cwd     string `json:"cwd,omitempty" maxLength:"4096" doc:"Where it would run, relative to the space's files"`
}

type spaceAnswer struct {
	Location string `header:"Location"`
	Body     space.Space
}

// answered is the answer with a space. It leaves out the sealed values of the environment, which nobody but the daemon can open.
func answered(location string, s space.Space) *spaceAnswer {
	s.Secrets = nil
	return &spaceAnswer{Location: location, Body: s}
}

// SpacePath names a space.
type SpacePath struct {
	Space string `path:"space_id" doc:"The space"`
}

// Spaces are the operations for spaces.
type Spaces struct {
	access.Part
	gate   *gate.Gate
	spaces *spaces.Service
}

// NewSpaces returns the operations for spaces.
func NewSpaces(p access.Part, gate *gate.Gate, spaces *spaces.Service) *Spaces {
	return &Spaces{p, gate, spaces}
}

// Register adds the operations to the server.
func (s *Spaces) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "create-space", Needs: wire.DoesThere(policy.SpaceCreate), Method: http.MethodPost, Path: "/v1/spaces", Tag: "spaces",
		Summary: "Make a space", Status: http.StatusCreated,
		Rate: wire.RateSpaces, MaxBody: maxSpaceBody, Repeat: wire.RepeatByService,
		Detail: "Creation fails rather than downgrades: where the host cannot enforce a bound, the answer is bound_not_enforceable unless " +
			"best_effort is set.",
	}, s.createSpace)
	wire.Handle(s.Server, wire.Operation{ID: "list-spaces", Needs: wire.Shows("space"), Method: http.MethodGet, Path: "/v1/spaces",
		Tag: "spaces", Summary: "List spaces, the newest first"}, s.listSpaces)
	wire.Handle(s.Server, wire.Operation{ID: "get-space", Needs: wire.Shows("space", "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}", Tag: "spaces", Summary: "Show a space"}, s.getSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "update-space", Needs: wire.Does(policy.SpaceUpdate, "space_id"), Method: http.MethodPatch, Path: "/v1/spaces/{space_id}",
		Tag: "spaces", Summary: "Change a space", Repeat: wire.RepeatRecalled,
		Detail: "A field that is left out stays; env and metadata are replaced as a whole. Commands that begin from now on see the new " +
			"environment.",
	}, s.updateSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceDestroy, "space_id").PastLabels(), Method: http.MethodDelete,
		Path: "/v1/spaces/{space_id}", Tag: "spaces", Summary: "Destroy a space",
		Detail: "Ends its runs and processes and removes its files. Its events stay in the log.",
	}, s.destroySpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "extend-space", Needs: wire.Does(policy.SpaceUpdate, "space_id"), Method: http.MethodPost, Path: "/v1/spaces/{space_id}/extend",
		Tag: "spaces", Summary: "Set how long a space lives, from now on",
		Repeat: wire.RepeatRecalled,
	}, s.extendSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "promote-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpacePromote, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/promote", Tag: "spaces",
		Summary: "Run a space's code in a heavier tier from now on", Repeat: wire.RepeatRecalled,
		Detail: "Its files, its environment and its limits stay; what lies in its private /tmp goes. It never goes back. A space with the " +
			"runtime auto is promoted by itself when a command needs it; one that was asked to run in one tier stays there. While an operation is " +
			"under way it is refused: space_busy.",
	}, s.promoteSpace)
	s.registerPauses()
	wire.Handle(s.Server, wire.Operation{
		ID: "get-space-policy", Needs: wire.Shows("space", "space_id"), Method: http.MethodGet, Path: "/v1/spaces/{space_id}/policy",
		Tag: "spaces", Summary: "Show the policy of a space",
		Detail: "Its rules in Cedar, and its limits.",
	}, s.spacePolicy)
	wire.Handle(s.Server, wire.Operation{
		ID: "set-space-policy", Home: wire.AtSpace, Needs: wire.Does(policy.SpacePolicy, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/policy", Tag: "spaces",
		Summary: "Pin another policy to a space", Repeat: wire.RepeatRecalled,
		Detail: "What is done in the space from now on is judged under it. It takes an operator. While a run of the space is under way, or " +
			"waits for a person, it is refused: space_busy.",
	}, s.repinSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "route-command", Home: wire.AtSpace, Needs: wire.Shows("space", "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/route", Tag: "spaces",
		Summary: "Say in which tier a command would run, and why", Rate: wire.RateFiles, Repeat: wire.RepeatHarmless,
		Detail: "It reads the command and the files that it names and that the caller may read, and runs nothing. What cannot be seen before " +
			"is found out while the command runs: then it is run again, in the heavier tier, and has left nothing behind in the lighter one.",
	}, s.routeCommand)
}

func (s *Spaces) createSpace(ctx context.Context, c wire.Call, in *struct{ Body spaceRequest }) (*spaceAnswer, error) {
	b := in.Body
	if b.Room != "" {
		if _, err := id.Parse[id.Room](string(b.Room)); err != nil {
			return nil, fault.New(fault.Invalid, "invalid_field", "room_id: %v", err)
		}
	}
	q := spaces.Request{
		Workspace: c.Caller.Workspace, Room: b.Room, Name: b.Name, Description: b.Description, Preset: b.Policy, Overrides: b.Overrides,
		Bundle:  b.Bundle,
		Runtime: b.Runtime, Tier: b.Tier, Env: b.Env, Metadata: b.Metadata, TTL: time.Duration(b.TTL) * time.Second, BestEffort: b.BestEffort,
		PauseAtEnd: b.PauseAtEnd,
		Key:        c.ServiceKey(),
	}
	if b.Limits != nil {
		q.Limits = space.Limits(*b.Limits)
	}
	if b.From != nil {
		q.Folder = b.From.Path
		if len(b.From.Archive) > 0 {
			q.Archive, q.ArchiveHash = bytes.NewReader(b.From.Archive), event.DigestOf(b.From.Archive)
		}
	}
	made, err := s.spaces.Creation.Create(ctx, c.Origin(), q)
	if err != nil {
		return nil, err
	}
	made.Warnings = s.gate.Bundles.EnvironmentWarnings(made.Env)
	if b.Overrides != nil || b.Bundle != nil { // of a preset as it is, nobody wrote what has no effect
		own, err := s.gate.Bundles.Bundle(ctx, c.Caller.Workspace, made.Bundle)
		if err != nil {
			return nil, err
		}
		said, err := s.gate.Bundles.Warnings(ctx, c.Caller.Workspace, own)
		if err != nil {
			return nil, err
		}
		made.Warnings = append(made.Warnings, said...)
	}
	return answered("/v1/spaces/"+string(made.ID), made), nil
}

func (s *Spaces) listSpaces(ctx context.Context, c wire.Call, in *struct {
	Status string `query:"status" enum:"creating,ready,running,paused,destroyed" doc:"Only those; without it, all that are not destroyed"`
	access.Page[id.Space]
}) (*struct{ Body spaceList }, error) {
	found, err := s.spaces.Catalog.List(ctx, c.Caller.Workspace, space.Status(in.Status), in.Cursor.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := spaceList{}
	out.Spaces, out.Next = access.Cut(found, in.Limit, func(sp space.Space) string { return string(sp.ID) })
	for i := range out.Spaces {
		out.Spaces[i].Secrets = nil
	}
	out.Spaces, err = access.Visible(ctx, s.Access, c, out.Spaces, func(x space.Space) label.Resource {
		return label.Resource{Type: label.OfSpace, ID: string(x.ID)}
	})
	return &struct{ Body spaceList }{out}, err
}

type spaceList struct {
	Spaces []space.Space `json:"spaces" nullable:"false"`
	Next   string        `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

func (s *Spaces) getSpace(ctx context.Context, c wire.Call, in *SpacePath) (*spaceAnswer, error) {
	found, err := s.spaces.Catalog.Space(ctx, c.Caller.Workspace, id.Space(in.Space))
	return answered("", found), err
}

func (s *Spaces) updateSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spaceChange
}) (*spaceAnswer, error) {
	return s.once(ctx, c, in.Space, func() (space.Space, error) {
		return s.spaces.Settings.Update(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), spaces.Change(in.Body))
	})
}

func (s *Spaces) destroySpace(ctx context.Context, c wire.Call, in *SpacePath) (*spaceAnswer, error) {
	gone, err := s.spaces.Ending.Destroy(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space))
	if err != nil {
		return nil, err
	}
	hidden, err := s.Hidden(ctx, c, label.Resource{Type: label.OfSpace, ID: in.Space})
	if hidden {
		gone = space.Space{ID: gone.ID, SpaceID: gone.ID, Workspace: gone.Workspace, Room: gone.Room, Status: gone.Status,
			CreatedAt: gone.CreatedAt, UpdatedAt: gone.UpdatedAt}
	}
	return answered("", gone), err
}

func (s *Spaces) extendSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spaceExtension
}) (*spaceAnswer, error) {
	return s.once(ctx, c, in.Space, func() (space.Space, error) {
		if (in.Body.TTL == 0) == (in.Body.Duration == 0) {
			return space.Space{}, fault.New(fault.Invalid, "missing_field",
				"the field \"ttl_seconds\" is missing; or send duration_seconds, its older name, and not both")
		}
		by := time.Duration(in.Body.TTL+in.Body.Duration) * time.Second
		return s.spaces.Settings.Extend(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), by)
	})
}

func (s *Spaces) promoteSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spacePromotion
}) (*spaceAnswer, error) {
	return s.once(ctx, c, in.Space, func() (space.Space, error) {
		why := space.Why{Code: space.WhyRequested, Reason: in.Body.Reason}
		return s.spaces.Routing.Promote(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), in.Body.Tier, why)
	})
}

func (s *Spaces) spacePolicy(ctx context.Context, c wire.Call, in *SpacePath) (*struct{ Body policy.Bundle }, error) {
	found, err := s.spaces.Catalog.Space(ctx, c.Caller.Workspace, id.Space(in.Space))
	if err != nil {
		return nil, err
	}
	b, err := s.gate.Bundles.Bundle(ctx, c.Caller.Workspace, found.Bundle)
	return &struct{ Body policy.Bundle }{b}, err
}

func (s *Spaces) repinSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body policyapi.PolicyChoice
}) (*spaceAnswer, error) {
	b, err := policyapi.Bundle(s.gate, in.Body)
	if err != nil {
		return nil, err
	}
	var said []string
	if p := in.Body; p.Overrides != nil || p.YAML != "" || p.Cedar != "" {
		if said, err = s.gate.Bundles.Warnings(ctx, c.Caller.Workspace, b); err != nil {
			return nil, err
		}
	}
	changed, err := wire.Once(c, func() (space.Space, error) {
		doc, err := s.then(ctx, c, in.Space)
		if err != nil {
			return space.Space{}, err
		}
		e, err := s.Query.At(ctx, c.Caller.Workspace, c.Repeated)
		if err != nil {
			return space.Space{}, err
		}
		changed, err := event.Decode[space.PolicyChanged](e) // the only event of the request with its key
		doc.Warnings = append(doc.Warnings, spaces.RepinWarnings(changed)...)
		return doc, err
	}, func() (space.Space, error) {
		return s.spaces.Settings.Repin(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), b)
	})
	changed.Warnings = slices.Concat(changed.Warnings, said)
	return answered("", changed), err
}

func (s *Spaces) routeCommand(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body routedCommand
}) (*struct{ Body space.Route }, error) {
	found, err := s.spaces.Routing.Route(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space), space.Command{Text: in.Body.Command,
		Cwd: in.Body.Cwd})
	return &struct{ Body space.Route }{found}, err
}

// once changes a space; a repeat is answered with the space as the first request left it.
func (s *Spaces) once(ctx context.Context, c wire.Call, sp string, change func() (space.Space, error)) (*spaceAnswer, error) {
	changed, err := wire.Once(c, func() (space.Space, error) { return s.then(ctx, c, sp) }, change)
	return answered("", changed), err
}

// then is the space as the first request of this repeat left it.
func (s *Spaces) then(ctx context.Context, c wire.Call, sp string) (space.Space, error) {
	return access.Then[space.Space](ctx, s.Access, c, query.Subject{Projection: space.Projection, EntityType: space.EntityType, Key: sp})
}
