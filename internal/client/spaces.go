package client

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// SpaceRequest asks for a space; missing fields take the daemon's defaults.
type SpaceRequest struct {
	Name            string            `json:"name,omitempty"`
	Description     string            `json:"description,omitempty"`
	Policy          string            `json:"policy,omitempty"` // a preset
	PolicyOverrides json.RawMessage   `json:"policy_overrides,omitempty"`
	PolicyBundle    *policy.Bundle    `json:"policy_bundle,omitempty"` // instead of a preset
	Runtime         string            `json:"runtime,omitempty"`
	Tier            string            `json:"tier,omitempty"` // the older name of Runtime
	Room            id.Room           `json:"room_id,omitempty"`
	Env             map[string]string `json:"env,omitempty"`
	Metadata        map[string]string `json:"metadata,omitempty"`
	TTLSeconds      int64             `json:"ttl_seconds,omitempty"`
	Limits          *SpaceLimits      `json:"limits,omitempty"`
	BestEffort      bool              `json:"best_effort,omitempty"`
	From            *SpaceSeed        `json:"from,omitempty"`

	IdempotencyKey string `json:"-"`
}

// SpaceLimits are the bounds of a space; those that are zero take the daemon's default.
type SpaceLimits struct {
	MemoryBytes int64 `json:"memory_bytes,omitempty"`
	CPUMillis   int64 `json:"cpu_millis,omitempty"`
	Pids        int64 `json:"pids,omitempty"`
	DiskBytes   int64 `json:"disk_bytes,omitempty"`
	FileBytes   int64 `json:"file_bytes,omitempty"`
	OutputBytes int64 `json:"output_bytes,omitempty"`
	OpenFiles   int64 `json:"open_files,omitempty"`
	TmpBytes    int64 `json:"tmp_bytes,omitempty"`
}

// SpaceSeed is the source of a space's first files: a folder of the daemon's host, or a zip, tar or tar.gz file.
type SpaceSeed struct {
	Path    string `json:"path,omitempty"`
	Archive []byte `json:"archive,omitempty"`
}

// SpaceChange changes a space. Fields that are nil stay; maps are replaced as a whole.
type SpaceChange struct {
	Name        *string            `json:"name,omitempty"`
	Description *string            `json:"description,omitempty"`
	Env         *map[string]string `json:"env,omitempty"`
	Metadata    *map[string]string `json:"metadata,omitempty"`
}

// SpaceFilter selects spaces; without a status, those that are not destroyed.
type SpaceFilter struct {
	Status string
	Page
}

// SpaceList is a page of spaces, the newest first.
type SpaceList struct {
	Spaces []space.Space `json:"spaces"`
	Next   string        `json:"next_cursor"` // empty at the end
}

// CreateSpace makes a space.
func (c *Client) CreateSpace(ctx context.Context, q SpaceRequest) (space.Space, error) {
	var s space.Space
	err := c.call(ctx, http.MethodPost, "/v1/spaces", nil, q, &s, idempotent(q.IdempotencyKey))
	return s, err
}

// Spaces lists spaces.
func (c *Client) Spaces(ctx context.Context, f SpaceFilter) (SpaceList, error) {
	var l SpaceList
	err := c.get(ctx, "/v1/spaces", f.values("status", f.Status), &l)
	return l, err
}

// Space returns a space.
func (c *Client) Space(ctx context.Context, s id.Space) (space.Space, error) {
	var found space.Space
	err := c.get(ctx, spacePath(s), nil, &found)
	return found, err
}

// UpdateSpace changes a space.
func (c *Client) UpdateSpace(ctx context.Context, s id.Space, change SpaceChange) (space.Space, error) {
	var changed space.Space
	err := c.call(ctx, http.MethodPatch, spacePath(s), nil, change, &changed, nil)
	return changed, err
}

// ExtendSpace lets a space live for d from now.
func (c *Client) ExtendSpace(ctx context.Context, s id.Space, d time.Duration) (space.Space, error) {
	var longer space.Space
	body := map[string]int64{"ttl_seconds": int64(d / time.Second)}
	err := c.post(ctx, spacePath(s)+"/extend", body, &longer)
	return longer, err
}

// PromoteSpace makes a space one of a heavier tier: of the strongest where to is "". It never goes back.
func (c *Client) PromoteSpace(ctx context.Context, s id.Space, to, reason string) (space.Space, error) {
	var promoted space.Space
	err := c.post(ctx, spacePath(s)+"/promote", map[string]string{"tier": to, "reason": reason}, &promoted)
	return promoted, err
}

// PauseSpace stops the processes of a space until it is resumed. With resumeOnRun, a run that is sent to it resumes it.
func (c *Client) PauseSpace(ctx context.Context, s id.Space, reason string, resumeOnRun bool) (space.Space, error) {
	var paused space.Space
	body := map[string]any{"reason": reason, "resume_on_run": resumeOnRun}
	err := c.post(ctx, spacePath(s)+"/pause", body, &paused)
	return paused, err
}

// ResumeSpace lets a paused space go on, and live for ttl from now; 0 leaves the end of its life.
func (c *Client) ResumeSpace(ctx context.Context, s id.Space, ttl time.Duration) (space.Space, error) {
	var resumed space.Space
	body := map[string]int64{}
	if ttl > 0 {
		body["ttl_seconds"] = int64(ttl / time.Second)
	}
	err := c.post(ctx, spacePath(s)+"/resume", body, &resumed)
	return resumed, err
}

// SpacePolicy returns the policy of a space.
func (c *Client) SpacePolicy(ctx context.Context, s id.Space) (policy.Bundle, error) {
	var found policy.Bundle
	err := c.get(ctx, spacePath(s)+"/policy", nil, &found)
	return found, err
}

// SetSpacePolicy pins another policy to a space.
func (c *Client) SetSpacePolicy(ctx context.Context, s id.Space, choice PolicyChoice) (space.Space, error) {
	var changed space.Space
	err := c.post(ctx, spacePath(s)+"/policy", choice, &changed)
	return changed, err
}

// PolicyChoice names a policy: a preset, or a text in the short form or in Cedar.
type PolicyChoice struct {
	Policy string `json:"policy,omitempty"`
	YAML   string `json:"yaml,omitempty"`
	Cedar  string `json:"cedar,omitempty"`
}

// RouteCommand says in which tier a command of a space would run, and why. It runs nothing.
func (c *Client) RouteCommand(ctx context.Context, s id.Space, command, cwd string) (space.Route, error) {
	var found space.Route
	err := c.post(ctx, spacePath(s)+"/route", map[string]string{"command": command, "cwd": cwd}, &found)
	return found, err
}

// DestroySpace ends a space: its runs, its processes and its files.
func (c *Client) DestroySpace(ctx context.Context, s id.Space) (space.Space, error) {
	var gone space.Space
	err := c.call(ctx, http.MethodDelete, spacePath(s), nil, nil, &gone, nil)
	return gone, err
}

func spacePath(s id.Space) string { return join("/v1/spaces/", escape(string(s))) }

func idempotent(key string) map[string]string {
	if key == "" {
		return nil
	}
	return map[string]string{"Idempotency-Key": key}
}
