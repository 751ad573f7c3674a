// Package modelapi has the operations for models: the catalogue, their keys, their tests, and their use.
package modelapi

import (
	"context"
	"net/http"
	"strings"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/models"
	"agentbox/internal/service/query"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// modelSpec is the definition of a model in a request.
type modelSpec struct {
	Provider     string            `json:"provider,omitempty" enum:"openai,anthropic,scripted" doc:"The wire; openai unless named"`
	Dialect      string            `json:"dialect,omitempty" doc:"For openai: openai, zai, deepseek, qwen, ollama, vllm, llamacpp or generic; zai where neither provider nor dialect is named"`
	BaseURL      string            `json:"base_url,omitempty" maxLength:"2000" doc:"The endpoint; that of the preset unless named. For scripted: the name of the cassette"`
	Model        string            `json:"model" maxLength:"200" doc:"As the endpoint calls the model"`
	Key          string            `json:"key,omitempty" maxLength:"64" doc:"The name of a key, never the key"`
	AllowPrivate bool              `json:"allow_private,omitempty" doc:"Permits a private address, and http"`
	Context      int               `json:"context_tokens,omitempty" minimum:"0" doc:"The size of its window"`
	MaxOutput    int               `json:"max_output_tokens,omitempty" minimum:"0" doc:"8192 unless named"`
	IdleMS       int               `json:"idle_ms,omitempty" minimum:"0" doc:"The most between two pieces of an answer; 120000 unless named"`
	TotalMS      int               `json:"total_ms,omitempty" minimum:"0" doc:"The most for one answer; 600000 unless named"`
	NoTools      bool              `json:"no_tools,omitempty" doc:"It knows no tool calls: agents call tools in plain text"`
	Images       bool              `json:"images,omitempty" doc:"It takes pictures; anthropic and the dialect openai do without this"`
	Classes      []model.TaskClass `json:"classes,omitempty" maxItems:"32" doc:"Task classes for which it answers where no route does"`
	Record       string            `json:"record,omitempty" maxLength:"64" doc:"The cassette into which requests and answers are written; none unless named"`
}

func (m modelSpec) entry(name string) model.Entry {
	return model.Entry{Name: name, Provider: m.Provider, Dialect: m.Dialect, BaseURL: m.BaseURL, Model: m.Model, Key: m.Key,
		AllowPrivate: m.AllowPrivate, Context: m.Context, MaxOutput: m.MaxOutput, IdleMS: m.IdleMS, TotalMS: m.TotalMS, NoTools: m.NoTools,
		Images: m.Images, Classes: m.Classes, Record: m.Record}
}

// ModelShown is a model with its price.
type ModelShown struct {
	model.Held
	Price  *model.Price `json:"price,omitempty" doc:"Per million tokens; absent where the file of prices does not say it"`
	Priced bool         `json:"priced" doc:"Whether its price is known"`
}

type modelList struct {
	Models   []ModelShown    `json:"models" nullable:"false"`
	Routes   []model.Route   `json:"routes" nullable:"false" doc:"Which models answer which task class, the best first"`
	Budgets  []model.Budget  `json:"budgets" nullable:"false"`
	Keys     []model.KeyName `json:"keys" nullable:"false" doc:"Names of keys that are set; no operation shows a key"`
	Date     string          `json:"prices_date,omitempty" doc:"Of the file of prices"`
	Currency string          `json:"currency,omitempty"`
	Problem  string          `json:"file_problem,omitempty" doc:"Why the present file models.yaml or prices.yaml is not used, with its line; what was read of it before holds"`
}

type modelSettings struct {
	Routes  []model.Route  `json:"routes" nullable:"false" maxItems:"200"`
	Budgets []model.Budget `json:"budgets" nullable:"false" maxItems:"200"`
}

type modelKey struct {
	Value string `json:"value" maxLength:"4096" doc:"The key: printable ASCII without spaces. It is sealed, and shown by no operation"`
}

type usageList struct {
	Usage    []model.Used `json:"usage" nullable:"false"`
	Currency string       `json:"currency,omitempty"`
}

// ModelPath names a model.
type ModelPath struct {
	Name string `path:"model" maxLength:"64" doc:"The model's name"`
}

// KeyPath names a key.
type KeyPath struct {
	Name string `path:"model_key" maxLength:"64" doc:"The key's name"`
}

// Models are the operations for models.
type Models struct {
	access.Part
	models *models.Service
	files  func(ws id.Workspace) []string // why files about models are not used
}

// New returns the operations for models. The function says why files about models are not used; it may be nil.
func New(p access.Part, of *models.Service, files func(ws id.Workspace) []string) *Models {
	return &Models{p, of, files}
}

// Register adds the operations to the server.
func (s *Models) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-models", Needs: wire.Shows("model"), Method: http.MethodGet, Path: "/v1/models", Tag: "models",
		Summary: "List the models of the workspace, with routes, budgets and names of keys",
	}, s.list)
	wire.Handle(s.Server, wire.Operation{
		ID: "get-model", Needs: wire.Shows("model"), Method: http.MethodGet, Path: "/v1/models/{model}", Tag: "models", Summary: "Show a model",
	}, func(ctx context.Context, c wire.Call, in *ModelPath) (*struct{ Body ModelShown }, error) {
		held, err := s.models.Get(ctx, c.Caller.Workspace, in.Name)
		if err != nil {
			return nil, err
		}
		return s.shown(held)
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-model", Needs: wire.Does(policy.ModelConfigure), Method: http.MethodPut, Path: "/v1/models/{model}", Tag: "models",
		Summary: "Add a model to the catalogue, or change it", Repeat: wire.RepeatRecalled,
		Detail: "What is not named gets its default. A model that the file models.yaml names is changed there.",
	}, s.put)
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-model", Needs: wire.Does(policy.ModelConfigure), Method: http.MethodDelete, Path: "/v1/models/{model}", Tag: "models",
		Summary: "Remove a model from the catalogue", Repeat: wire.RepeatRecalled, Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *struct {
		ModelPath
		Reason string `query:"reason" maxLength:"2000"`
	}) (*struct{}, error) {
		return wire.Once(c, func() (*struct{}, error) { return nil, nil }, func() (*struct{}, error) {
			return nil, s.models.Remove(ctx, c.Once(), c.Caller.Workspace, in.Name, in.Reason)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "test-model", Needs: wire.Does(policy.ModelCall), Method: http.MethodPost, Path: "/v1/models/{model}/test", Tag: "models",
		Summary: "Ask a model a few short questions, and say what it can do", Repeat: wire.RepeatRefused,
		Detail: "Tries streaming, tools, images, structured output, reasoning and caching. Each question is a request to the model: it costs " +
			"what it costs, and counts against the budgets. A model that does not answer is an answer, not an error.",
	}, func(ctx context.Context, c wire.Call, in *ModelPath) (*struct{ Body models.Tested }, error) {
		out, err := s.models.Test(ctx, c.Origin(), c.Caller.Workspace, in.Name)
		return &struct{ Body models.Tested }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-model-settings", Needs: wire.Does(policy.ModelConfigure), Method: http.MethodPut, Path: "/v1/model-settings", Tag: "models",
		Summary: "Set the routes and the budgets of models", Repeat: wire.RepeatRecalled,
		Detail: "Replaces both. A budget holds before a request is sent: what it could use at most is reserved until its outcome is known.",
	}, s.settings)
	wire.Handle(s.Server, wire.Operation{
		ID: "put-model-key", Needs: wire.Does(policy.ModelKey), Method: http.MethodPut, Path: "/v1/model-keys/{model_key}", Tag: "models",
		Summary: "Set a key for endpoints of models", Repeat: wire.RepeatRefused, Status: http.StatusNoContent,
		Detail: "Models name it by its name. The event has the name only.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		KeyPath
		Body modelKey
	}) (*struct{}, error) {
		return nil, s.models.SetKey(ctx, c.Origin(), c.Caller.Workspace, in.Name, model.NewSecret(in.Body.Value))
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-model-key", Needs: wire.Does(policy.ModelKey), Method: http.MethodDelete, Path: "/v1/model-keys/{model_key}", Tag: "models",
		Summary: "Destroy a key for endpoints of models", Repeat: wire.RepeatRefused, Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *KeyPath) (*struct{}, error) {
		return nil, s.models.RemoveKey(ctx, c.Origin(), c.Caller.Workspace, in.Name)
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "list-usage", Needs: wire.Shows("model"), Method: http.MethodGet, Path: "/v1/usage", Tag: "models",
		Summary: "List what models were used for, by run, agent, room, model or day",
	}, s.usage)
}

func (s *Models) shown(held model.Held) (*struct{ Body ModelShown }, error) {
	price, known := s.models.Price(held.Entry)
	return &struct{ Body ModelShown }{priced(held, price, known)}, nil
}

func priced(held model.Held, price model.Price, known bool) ModelShown {
	out := ModelShown{Held: held, Priced: known}
	if known {
		out.Price = &price
	}
	return out
}

func (s *Models) list(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body modelList }, error) {
	held, err := s.models.List(ctx, c.Caller.Workspace, "", model.MaxEntries)
	if err != nil {
		return nil, err
	}
	settings, err := s.models.Settings(ctx, c.Caller.Workspace)
	if err != nil {
		return nil, err
	}
	prices := s.models.Prices()
	out := modelList{Models: []ModelShown{}, Routes: settings.Routes, Budgets: settings.Budgets, Keys: settings.Keys, Date: prices.Date,
		Currency: prices.Currency}
	if s.files != nil {
		out.Problem = strings.Join(s.files(c.Caller.Workspace), "; ")
	}
	for _, h := range held {
		price, known := prices.Of(h.Entry)
		out.Models = append(out.Models, priced(h, price, known))
	}
	if out.Routes == nil {
		out.Routes = []model.Route{}
	}
	if out.Budgets == nil {
		out.Budgets = []model.Budget{}
	}
	if out.Keys == nil {
		out.Keys = []model.KeyName{}
	}
	return &struct{ Body modelList }{out}, nil
}

func (s *Models) put(ctx context.Context, c wire.Call, in *struct {
	ModelPath
	Body modelSpec
}) (*struct{ Body ModelShown }, error) {
	held, err := wire.Once(c, func() (model.Held, error) {
		return access.Then[model.Held](ctx, s.Access, c, query.Subject{Projection: model.Projection, EntityType: model.Entity, Key: in.Name})
	}, func() (model.Held, error) {
		return s.models.Put(ctx, c.Once(), c.Caller.Workspace, in.Body.entry(in.Name))
	})
	if err != nil {
		return nil, err
	}
	return s.shown(held)
}

func (s *Models) settings(ctx context.Context, c wire.Call, in *struct{ Body modelSettings }) (*struct{ Body modelSettings }, error) {
	_, err := wire.Once(c, func() (struct{}, error) { return struct{}{}, nil }, func() (struct{}, error) {
		return struct{}{}, s.models.Configure(ctx, c.Once(), c.Caller.Workspace, in.Body.Routes, in.Body.Budgets)
	})
	return &struct{ Body modelSettings }{in.Body}, err
}

func (s *Models) usage(ctx context.Context, c wire.Call, in *struct {
	Scope string `query:"scope" enum:"workspace,run,agent,room,model" default:"workspace" doc:"What is counted: each day of the workspace, each run, or each agent, room or model in a day"`
	Day   string `query:"day" pattern:"^[0-9]{4}-[0-9]{2}-[0-9]{2}$" doc:"A day of UTC; of runs that on which they began"`
	Run   id.Run `query:"run_id" maxLength:"100" doc:"This run only"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many at most"`
}) (*struct{ Body usageList }, error) {
	out := usageList{Usage: []model.Used{}, Currency: s.models.Prices().Currency}
	if in.Run != "" {
		used, err := s.models.UsageOf(ctx, c.Caller.Workspace, model.ScopeRun, string(in.Run), "")
		if err != nil {
			return nil, err
		}
		if used.Requests > 0 {
			out.Usage = append(out.Usage, used)
		}
		return &struct{ Body usageList }{out}, nil
	}
	found, err := s.models.Usage(ctx, c.Caller.Workspace, in.Scope, in.Day, "", in.Limit)
	out.Usage = append(out.Usage, found...)
	return &struct{ Body usageList }{out}, err
}
