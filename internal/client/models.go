package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// ModelSpec is the definition of a model. Zero values stand for defaults.
type ModelSpec struct {
	Provider     string            `json:"provider,omitempty"`
	Dialect      string            `json:"dialect,omitempty"`
	BaseURL      string            `json:"base_url,omitempty"`
	Model        string            `json:"model"`
	Key          string            `json:"key,omitempty"`
	AllowPrivate bool              `json:"allow_private,omitempty"`
	Context      int               `json:"context_tokens,omitempty"`
	MaxOutput    int               `json:"max_output_tokens,omitempty"`
	IdleMS       int               `json:"idle_ms,omitempty"`
	TotalMS      int               `json:"total_ms,omitempty"`
	NoTools      bool              `json:"no_tools,omitempty"`
	Images       bool              `json:"images,omitempty"`
	Classes      []model.TaskClass `json:"classes,omitempty"`
	Record       string            `json:"record,omitempty"`
}

// SpecOf returns what an entry says.
func SpecOf(e model.Entry) ModelSpec {
	return ModelSpec{e.Provider, e.Dialect, e.BaseURL, e.Model, e.Key, e.AllowPrivate, e.Context, e.MaxOutput, e.IdleMS, e.TotalMS, e.NoTools,
		e.Images, e.Classes, e.Record}
}

// ShownModel is a model with its price, nil where that is not known.
type ShownModel struct {
	model.Held
	Price  *model.Price `json:"price,omitempty"`
	Priced bool         `json:"priced"`
}

// ModelList is the catalogue of a workspace.
type ModelList struct {
	Models   []ShownModel    `json:"models"`
	Routes   []model.Route   `json:"routes"`
	Budgets  []model.Budget  `json:"budgets"`
	Keys     []model.KeyName `json:"keys"`
	Date     string          `json:"prices_date,omitempty"`
	Currency string          `json:"currency,omitempty"`
	Problem  string          `json:"file_problem,omitempty"` // why the file of models is not used
}

// TestedModel is the result of a test of a model.
type TestedModel struct {
	Model        string `json:"model"`
	Reachable    bool   `json:"reachable"`
	Failure      string `json:"failure,omitempty"`
	Class        string `json:"failure_class,omitempty"`
	First        int64  `json:"first_piece_ms"`
	Capabilities []struct {
		Name   string `json:"capability"`
		Works  bool   `json:"works"`
		Detail string `json:"detail"`
	} `json:"capabilities"`
	Usage  model.Usage  `json:"usage"`
	Cost   model.Amount `json:"cost"`
	Priced bool         `json:"priced"`
}

// ModelUsage is the use of models.
type ModelUsage struct {
	Usage    []model.Used `json:"usage"`
	Currency string       `json:"currency,omitempty"`
}

// Models returns the catalogue of the workspace.
func (c *Client) Models(ctx context.Context) (ModelList, error) {
	var l ModelList
	err := c.get(ctx, "/v1/models", nil, &l)
	return l, err
}

// Model returns a model.
func (c *Client) Model(ctx context.Context, name string) (ShownModel, error) {
	var m ShownModel
	err := c.get(ctx, join("/v1/models/", escape(name)), nil, &m)
	return m, err
}

// PutModel adds a model or changes it.
func (c *Client) PutModel(ctx context.Context, name string, m ModelSpec) (ShownModel, error) {
	var made ShownModel
	err := c.call(ctx, http.MethodPut, join("/v1/models/", escape(name)), nil, m, &made, nil)
	return made, err
}

// RemoveModel takes a model out of the catalogue.
func (c *Client) RemoveModel(ctx context.Context, name, reason string) error {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	return c.call(ctx, http.MethodDelete, join("/v1/models/", escape(name)), query, nil, nil, nil)
}

// TestModel asks a model a few short questions, and says what it can do.
func (c *Client) TestModel(ctx context.Context, name string) (TestedModel, error) {
	var out TestedModel
	err := c.call(ctx, http.MethodPost, join("/v1/models/", escape(name)+"/test"), nil, nil, &out, nil)
	return out, err
}

// SetModelKey sets a key for endpoints of models.
func (c *Client) SetModelKey(ctx context.Context, name string, key model.Secret) error {
	return c.call(ctx, http.MethodPut, join("/v1/model-keys/", escape(name)), nil, map[string]string{"value": key.Reveal()}, nil, nil)
}

// RemoveModelKey destroys a key for endpoints of models.
func (c *Client) RemoveModelKey(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodDelete, join("/v1/model-keys/", escape(name)), nil, nil, nil, nil)
}

// ModelUsage returns what models were used for: by scope, in a day where one is named, or by one run.
func (c *Client) ModelUsage(ctx context.Context, scope, day string, run id.Run, limit int) (ModelUsage, error) {
	query := url.Values{}
	for name, value := range map[string]string{"scope": scope, "day": day, "run_id": string(run)} {
		if value != "" {
			query.Set(name, value)
		}
	}
	if limit > 0 {
		query.Set("limit", strconv.Itoa(limit))
	}
	var out ModelUsage
	err := c.get(ctx, "/v1/usage", query, &out)
	return out, err
}
