package policyapi

import (
	"context"
	"encoding/json"
	"net/http"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// blueprintText is the text of a blueprint.
type blueprintText struct {
	Text string `json:"text" maxLength:"131072" doc:"The blueprint as YAML or JSON, at most 128 KiB"`
}

type blueprintList struct {
	Blueprints []blueprint.Entry `json:"blueprints" nullable:"false"`
	Next       string            `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
	Floating   bool              `json:"floating_pins" doc:"Whether agents run also when a pin is missing or does not fit: agentbox up --floating-pins"`
}

type blueprintShown struct {
	blueprint.Entry
	Source blueprint.Source `json:"source" doc:"The text of the version that was asked for"`
}

// blueprintChecked is the result of checking a text. An invalid text is an answer and no error, so that the answer lists all problems at
// once.
type blueprintChecked struct {
	Valid    bool                  `json:"valid"`
	Problems []blueprint.Problem   `json:"problems" nullable:"false" doc:"Everything that is wrong, in the order of the text"`
	Name     string                `json:"name,omitempty"`
	Hash     event.Digest          `json:"blueprint_sha256,omitzero"`
	Unpinned []blueprint.Reference `json:"unpinned,omitempty" nullable:"false" doc:"What it refers to without a pin"`
	Drift    []blueprint.Drift     `json:"drift,omitempty" nullable:"false" doc:"References whose pins do not fit what is there now, the unpinned ones too"`
}

type blueprintLocked struct {
	Text string         `json:"text" doc:"The text with pins; everything else of it is as it was"`
	Pins blueprint.Pins `json:"pins"`
}

type blueprintPair struct {
	From string `json:"from" maxLength:"131072"`
	To   string `json:"to" maxLength:"131072"`
}

type blueprintChanges struct {
	Changes []blueprint.Change `json:"changes" nullable:"false"`
}

type blueprintAnswer struct{ Body blueprint.Entry }

// BlueprintPath names a blueprint.
type BlueprintPath struct {
	Name string `path:"blueprint" maxLength:"63" doc:"The blueprint's name"`
}

// Blueprints are the operations for blueprints.
type Blueprints struct {
	access.Part
	blueprints *blueprints.Service
	floating   bool
}

// NewBlueprints returns the operations for blueprints.
// Floating means that agents run also when a pin does not fit.
func NewBlueprints(p access.Part, of *blueprints.Service, floating bool) *Blueprints {
	return &Blueprints{p, of, floating}
}

// Register adds the operations to the server.
func (s *Blueprints) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-blueprints", Needs: wire.Shows("blueprint"), Method: http.MethodGet, Path: "/v1/blueprints", Tag: "blueprints",
		Summary: "List the blueprints of the workspace, by name",
	}, s.list)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-blueprint-schema", Needs: wire.Shows("blueprint"), Method: http.MethodGet, Path: "/v1/schemas/blueprint", Tag: "blueprints",
		Summary: "Get the JSON Schema of a blueprint, for editors",
	}, func(context.Context, wire.Call, *struct{}) (*struct{ Body json.RawMessage }, error) {
		raw, err := blueprint.Schema()
		return &struct{ Body json.RawMessage }{raw}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "check-blueprint", Needs: wire.Shows("blueprint"), Method: http.MethodPost, Path: "/v1/blueprints/check", Tag: "blueprints",
		Summary: "Check the text of a blueprint, and whether its pins fit", Repeat: wire.RepeatHarmless,
		Detail: "Says everything that is wrong with line and column. Registers nothing.",
	}, s.check)
	wire.Handle(s.Server, wire.Operation{
		ID: "lock-blueprint", Needs: wire.Shows("blueprint"), Method: http.MethodPost, Path: "/v1/blueprints/lock", Tag: "blueprints",
		Summary: "Pin everything that a blueprint refers to", Repeat: wire.RepeatHarmless,
		Detail: "Answers with the text and its pins: the content hashes of the policy, the tools, the models and the blueprints of sub-agents " +
			"as they are now. Registers nothing.",
	}, func(ctx context.Context, c wire.Call, in *struct{ Body blueprintText }) (*struct{ Body blueprintLocked }, error) {
		text, pins, err := s.blueprints.Lock(ctx, c.Caller.Workspace, []byte(in.Body.Text))
		return &struct{ Body blueprintLocked }{blueprintLocked{string(text), pins}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "compare-blueprints", Needs: wire.Shows("blueprint"), Method: http.MethodPost, Path: "/v1/blueprints/compare", Tag: "blueprints",
		Summary: "Compare two texts of blueprints, value by value", Repeat: wire.RepeatHarmless,
	}, s.compare)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-blueprint", Needs: wire.Shows("blueprint"), Method: http.MethodGet, Path: "/v1/blueprints/{blueprint}", Tag: "blueprints",
		Summary: "Show a blueprint with the text of one of its versions",
	}, s.show)
	wire.Handle(s.Server, wire.Operation{
		ID: "put-blueprint", Needs: wire.Does(policy.BlueprintRegister), Method: http.MethodPut, Path: "/v1/blueprints/{blueprint}",
		Tag: "blueprints", Summary: "Register a blueprint, or a new version of it", Repeat: wire.RepeatRecalled,
		Detail: "A text that says what the newest version says makes no new version. Old versions stay to be read.",
	}, s.put)
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-blueprint", Needs: wire.Does(policy.BlueprintRemove), Method: http.MethodDelete, Path: "/v1/blueprints/{blueprint}",
		Tag: "blueprints", Summary: "Remove a blueprint from the index", Repeat: wire.RepeatRecalled, Status: http.StatusNoContent,
		Detail: "No session of it begins from now on. Running sessions go on.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		BlueprintPath
		Reason string `query:"reason" maxLength:"2000"`
	}) (*struct{}, error) {
		return wire.Once(c, func() (*struct{}, error) { return nil, nil }, func() (*struct{}, error) {
			_, err := s.blueprints.Remove(ctx, c.Once(), c.Caller.Workspace, in.Name, in.Reason)
			return nil, err
		})
	})
}

func (s *Blueprints) list(ctx context.Context, c wire.Call, in *struct {
	Removed bool                               `query:"removed" doc:"The removed ones, too"`
	Limit   int                                `query:"limit" minimum:"1" maximum:"200" default:"100" doc:"How many at most"`
	After   access.Cursor[access.BlueprintKey] `query:"cursor" maxLength:"256" doc:"The next_cursor of the page before"`
}) (*struct{ Body blueprintList }, error) {
	found, err := s.blueprints.List(ctx, c.Caller.Workspace, in.Removed, in.After.After.Name(), in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := blueprintList{Floating: s.floating}
	out.Blueprints, out.Next = access.Cut(found, in.Limit, func(e blueprint.Entry) string { return string(access.AfterBlueprint(e.Name)) })
	return &struct{ Body blueprintList }{out}, nil
}

func (s *Blueprints) show(ctx context.Context, c wire.Call, in *struct {
	BlueprintPath
	Version int `query:"version" minimum:"0" doc:"The newest unless named"`
}) (*struct{ Body blueprintShown }, error) {
	entry, err := s.blueprints.Get(ctx, c.Caller.Workspace, in.Name)
	if err != nil {
		return nil, err
	}
	source, err := s.blueprints.Text(ctx, c.Caller.Workspace, in.Name, in.Version)
	return &struct{ Body blueprintShown }{blueprintShown{entry, source}}, err
}

func (s *Blueprints) check(ctx context.Context, c wire.Call, in *struct{ Body blueprintText }) (*struct{ Body blueprintChecked },
	error) {
	b, problems := blueprints.Read([]byte(in.Body.Text))
	out := blueprintChecked{Valid: len(problems) == 0, Problems: problems, Name: b.Name}
	if !out.Valid {
		return &struct{ Body blueprintChecked }{out}, nil
	}
	var err error
	if out.Hash, err = b.Hash(); err != nil {
		return nil, err
	}
	out.Problems, out.Unpinned = []blueprint.Problem{}, b.Unpinned()
	out.Drift, err = s.blueprints.Verify(ctx, c.Caller.Workspace, b)
	return &struct{ Body blueprintChecked }{out}, err
}

func (s *Blueprints) compare(_ context.Context, _ wire.Call, in *struct{ Body blueprintPair }) (*struct{ Body blueprintChanges },
	error) {
	var both [2]blueprint.Blueprint
	for i, text := range []string{in.Body.From, in.Body.To} {
		var problems []blueprint.Problem
		if both[i], problems = blueprints.Read([]byte(text)); len(problems) > 0 {
			return nil, fault.Wrap(blueprints.Refusal(problems), fault.Invalid, "blueprint_invalid", "%s cannot be read",
				[]string{"from", "to"}[i])
		}
	}
	changes := blueprint.Diff(both[0], both[1])
	if changes == nil {
		changes = []blueprint.Change{}
	}
	return &struct{ Body blueprintChanges }{blueprintChanges{changes}}, nil
}

func (s *Blueprints) put(ctx context.Context, c wire.Call, in *struct {
	BlueprintPath
	Body blueprintText
}) (*blueprintAnswer, error) {
	made, err := wire.Once(c, func() (blueprint.Entry, error) {
		return access.Then[blueprint.Entry](ctx, s.Access, c, query.Subject{Projection: blueprint.Projection, EntityType: blueprint.Entity,
			Key: in.Name})
	}, func() (blueprint.Entry, error) {
		b, problems := blueprints.Read([]byte(in.Body.Text))
		if err := blueprints.Refusal(problems); err != nil {
			return blueprint.Entry{}, err
		}
		if b.Name != in.Name {
			return blueprint.Entry{}, fault.New(fault.Invalid, "blueprint_name", "the text names the blueprint %s, and the path %s",
				b.Name, in.Name)
		}
		return s.blueprints.Register(ctx, c.Once(), c.Caller.Workspace, []byte(in.Body.Text))
	})
	return &blueprintAnswer{made}, err
}
