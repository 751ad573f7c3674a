package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// BlueprintList is a page of blueprints.
type BlueprintList struct {
	Blueprints []blueprint.Entry `json:"blueprints"`
	Floating   bool              `json:"floating_pins"` // the daemon was started with --floating-pins
	Next       string            `json:"next_cursor"`   // empty at the end
}

// ShownBlueprint is a blueprint with the text of one of its versions.
type ShownBlueprint struct {
	blueprint.Entry
	Source blueprint.Source `json:"source"`
}

// CheckedBlueprint is the daemon's check of a text.
type CheckedBlueprint struct {
	Valid    bool                  `json:"valid"`
	Problems []blueprint.Problem   `json:"problems"`
	Name     string                `json:"name,omitempty"`
	Hash     string                `json:"blueprint_sha256,omitempty"`
	Unpinned []blueprint.Reference `json:"unpinned,omitempty"`
	Drift    []blueprint.Drift     `json:"drift,omitempty"` // references whose pins do not fit what is there now
}

// LockedBlueprint is a text with its pins.
type LockedBlueprint struct {
	Text string         `json:"text"`
	Pins blueprint.Pins `json:"pins"`
}

// BlueprintChanges lists the differences between two blueprints.
type BlueprintChanges struct {
	Changes []blueprint.Change `json:"changes"`
}

type blueprintText struct {
	Text string `json:"text"`
}

// AgentTask is a task for the agent that a blueprint defines.
type AgentTask struct {
	Task    string    `json:"task"`
	Version int       `json:"version,omitempty"` // of the blueprint; 0 for the newest
	Space   id.Space  `json:"space_id,omitempty"`
	Room    id.Room   `json:"room_id,omitempty"`
	Thread  id.Thread `json:"thread_id,omitempty"`
	After   id.Run    `json:"after_run_id,omitempty"` // a run that has ended, whose conversation goes on
	Model   string    `json:"model,omitempty"`        // that answers; empty for that of the blueprint
	Title   string    `json:"title,omitempty"`

	Pictures []Picture `json:"pictures,omitempty"` // for a model that takes them

	// IdempotencyKey is the same for a task that is sent again. The daemon then answers with the run that it has made.
	IdempotencyKey string `json:"-"`
}

// Picture is a picture that belongs to a task: PNG, JPEG, GIF or WebP.
type Picture struct {
	Name string `json:"name,omitempty"` // of its file
	Data []byte `json:"data"`
}

// RunBlueprint gives an agent a task. The daemon's loop executes the run that it returns.
func (c *Client) RunBlueprint(ctx context.Context, name string, t AgentTask) (run.Run, error) {
	var made run.Run
	err := c.call(ctx, http.MethodPost, join("/v1/blueprints/", escape(name), "/runs"), nil, t, &made, idempotent(t.IdempotencyKey))
	return made, err
}

// Blueprints lists the blueprints of the workspace. The caller can include the removed ones.
func (c *Client) Blueprints(ctx context.Context, removed bool, p Page) (BlueprintList, error) {
	all := ""
	if removed {
		all = "true"
	}
	var l BlueprintList
	err := c.get(ctx, "/v1/blueprints", p.values("removed", all), &l)
	return l, err
}

// Blueprint returns a blueprint with the text of a version; 0 is the newest.
func (c *Client) Blueprint(ctx context.Context, name string, version int) (ShownBlueprint, error) {
	query := url.Values{}
	if version != 0 {
		query.Set("version", strconv.Itoa(version))
	}
	var found ShownBlueprint
	err := c.get(ctx, join("/v1/blueprints/", escape(name)), query, &found)
	return found, err
}

// RegisterBlueprint registers a text, or makes it the next version of its name.
func (c *Client) RegisterBlueprint(ctx context.Context, name, text string) (blueprint.Entry, error) {
	var made blueprint.Entry
	err := c.call(ctx, http.MethodPut, join("/v1/blueprints/", escape(name)), nil, blueprintText{text}, &made, nil)
	return made, err
}

// RemoveBlueprint takes a blueprint out of the index.
func (c *Client) RemoveBlueprint(ctx context.Context, name, reason string) error {
	query := url.Values{}
	if reason != "" {
		query.Set("reason", reason)
	}
	return c.call(ctx, http.MethodDelete, join("/v1/blueprints/", escape(name)), query, nil, nil, nil)
}

// CheckBlueprint says what is wrong with a text, and which of its pins do not fit what is there now.
func (c *Client) CheckBlueprint(ctx context.Context, text string) (CheckedBlueprint, error) {
	var out CheckedBlueprint
	err := c.post(ctx, "/v1/blueprints/check", blueprintText{text}, &out)
	return out, err
}

// LockBlueprint returns a text with everything pinned to which it refers.
func (c *Client) LockBlueprint(ctx context.Context, text string) (LockedBlueprint, error) {
	var out LockedBlueprint
	err := c.post(ctx, "/v1/blueprints/lock", blueprintText{text}, &out)
	return out, err
}

// CompareBlueprints returns what differs between two texts.
func (c *Client) CompareBlueprints(ctx context.Context, from, to string) (BlueprintChanges, error) {
	var out BlueprintChanges
	err := c.post(ctx, "/v1/blueprints/compare", map[string]string{"from": from, "to": to}, &out)
	return out, err
}
