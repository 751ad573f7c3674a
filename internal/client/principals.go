package client

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/engine"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/token"
)

// PrincipalFilter selects principals.
type PrincipalFilter struct {
	Kind  string // user, agent or service; "" for all
	Name  string // a part of the name
	Named bool   // without the agents that spaces have for themselves
	Page
}

// PrincipalList is a page of principals.
type PrincipalList struct {
	Principals []principal.Principal `json:"principals"`
	Next       string                `json:"next_cursor"` // empty at the end
}

// Agent is an agent.
type Agent struct {
	ID          id.Principal `json:"agent_id"`
	Name        string       `json:"display_name"`
	Quarantined bool         `json:"quarantined"`
	Reason      string       `json:"quarantine_reason,omitempty"`
	CreatedBy   id.Principal `json:"created_by,omitempty"`
	CreatedAt   time.Time    `json:"created_at"`
}

// Key is an API key. Only the answer that made it has the Secret, which authenticates.
type Key struct {
	ID        id.Key       `json:"key_id"`
	Principal id.Principal `json:"principal_id"`
	Name      string       `json:"name"`
	CreatedAt time.Time    `json:"created_at"`
	RevokedAt time.Time    `json:"revoked_at,omitzero"`
	Secret    string       `json:"key,omitempty"`
}

// KeyList is a page of API keys.
type KeyList struct {
	Keys []Key  `json:"keys"`
	Next string `json:"next_cursor"` // empty at the end
}

// Grant asks for a capability token.
type Grant struct {
	IssuedTo   id.Principal `json:"issued_to_principal_id"`
	Parent     id.Token     `json:"parent_token_id,omitempty"`
	Scopes     token.Scopes `json:"scopes"`
	ValidUntil time.Time    `json:"valid_until,omitzero"`
}

// Capability is a capability token. Only the answer that made it has the Bearer, which authenticates.
type Capability struct {
	ID         id.Token     `json:"token_id"`
	IssuedTo   id.Principal `json:"issued_to_principal_id"`
	GrantedBy  id.Principal `json:"granted_by_principal_id"`
	Parent     id.Token     `json:"parent_token_id,omitempty"`
	Depth      int          `json:"depth"`
	Scopes     token.Scopes `json:"scopes"`
	ValidUntil time.Time    `json:"valid_until,omitzero"`
	Status     string       `json:"status"`
	RevokedAt  time.Time    `json:"revoked_at,omitzero"`
	Reason     string       `json:"reason,omitempty"`
	CreatedAt  time.Time    `json:"created_at"`
	Bearer     string       `json:"bearer,omitempty"`
	Dropped    []string     `json:"dropped,omitempty"` // requested rights that the parent does not permit
}

// CapabilityList is a page of capability tokens.
type CapabilityList struct {
	Tokens []Capability `json:"tokens"`
	Next   string       `json:"next_cursor"` // empty at the end
}

// DelegationList is a page of the steps by which authority was handed on.
type DelegationList struct {
	Edges []token.Edge `json:"edges"`
	Next  string       `json:"next_cursor"` // empty at the end
}

// EngineList is a page of engines.
type EngineList struct {
	Engines []engine.Engine `json:"engines"`
	Next    string          `json:"next_cursor"` // empty at the end
}

// EngineToken is a token of an engine. Secret is the token itself, in the answer that made it only.
type EngineToken struct {
	ID         id.EngineToken `json:"token_id"`
	Engine     id.Principal   `json:"engine_id"`
	Capability id.Token       `json:"capability_token_id"`
	ExpiresAt  time.Time      `json:"expires_at,omitzero"`
	CreatedAt  time.Time      `json:"created_at"`
	RevokedAt  time.Time      `json:"revoked_at,omitzero"`
	Reason     string         `json:"reason,omitempty"`
	Secret     string         `json:"token,omitempty"`
}

// EngineTokenList is a page of tokens of an engine.
type EngineTokenList struct {
	Tokens []EngineToken `json:"tokens"`
	Next   string        `json:"next_cursor"` // empty at the end
}

// Principals lists people, agents and services.
func (c *Client) Principals(ctx context.Context, f PrincipalFilter) (l PrincipalList, err error) {
	named := ""
	if f.Named {
		named = "true"
	}
	err = c.get(ctx, "/v1/principals", f.values("kind", f.Kind, "q", f.Name, "named", named), &l)
	return l, err
}

// Principal returns a principal.
func (c *Client) Principal(ctx context.Context, p id.Principal) (found principal.Principal, err error) {
	err = c.get(ctx, join("/v1/principals/", escape(string(p))), nil, &found)
	return found, err
}

// AddPrincipal adds a person of a role, or a service, which has none.
func (c *Client) AddPrincipal(ctx context.Context, kind id.PrincipalKind, name string, role principal.Role) (made principal.Principal,
	err error) {
	body := map[string]string{"kind": string(kind), "display_name": name}
	if role != "" {
		body["role"] = string(role)
	}
	err = c.post(ctx, "/v1/principals", body, &made)
	return made, err
}

// ChangeRole gives a person another role.
func (c *Client) ChangeRole(ctx context.Context, p id.Principal, role principal.Role) (changed principal.Principal, err error) {
	err = c.post(ctx, join("/v1/principals/", escape(string(p)), "/role"), map[string]string{"role": string(role)}, &changed)
	return changed, err
}

// RegisterAgent registers an agent.
func (c *Client) RegisterAgent(ctx context.Context, name string) (made Agent, err error) {
	err = c.post(ctx, "/v1/agents", map[string]string{"display_name": name}, &made)
	return made, err
}

// Quarantine stops an agent from doing anything, or ends that.
func (c *Client) Quarantine(ctx context.Context, agent id.Principal, on bool, reason string) (now Agent, err error) {
	way := "/unquarantine"
	if on {
		way = "/quarantine"
	}
	err = c.post(ctx, join("/v1/agents/", escape(string(agent)), way), map[string]string{"reason": reason}, &now)
	return now, err
}

// Keys lists API keys: of a principal, or all that the caller may see.
func (c *Client) Keys(ctx context.Context, of id.Principal, p Page) (l KeyList, err error) {
	err = c.get(ctx, "/v1/keys", p.values("principal_id", string(of)), &l)
	return l, err
}

// IssueKey makes an API key, for the caller where nobody is named.
func (c *Client) IssueKey(ctx context.Context, of id.Principal, name string) (made Key, err error) {
	body := map[string]string{"name": name}
	if of != "" {
		body["principal_id"] = string(of)
	}
	err = c.post(ctx, "/v1/keys", body, &made)
	return made, err
}

// RevokeKey revokes an API key.
func (c *Client) RevokeKey(ctx context.Context, k id.Key, reason string, last bool) error {
	q := Page{}.values("reason", reason)
	if last {
		q.Set("last", "true")
	}
	return c.call(ctx, http.MethodDelete, join("/v1/keys/", escape(string(k))), q, nil, nil, nil)
}

// Grant grants a capability token.
func (c *Client) Grant(ctx context.Context, g Grant) (made Capability, err error) {
	err = c.post(ctx, "/v1/capabilities/grant", g, &made)
	return made, err
}

// RevokeCapability revokes a capability token with all that were derived from it.
func (c *Client) RevokeCapability(ctx context.Context, t id.Token, reason string) (revoked Capability, err error) {
	err = c.post(ctx, "/v1/capabilities/revoke", map[string]string{"token_id": string(t), "reason": reason}, &revoked)
	return revoked, err
}

// Capabilities lists capability tokens: those that a principal holds, or all.
func (c *Client) Capabilities(ctx context.Context, holder id.Principal, p Page) (l CapabilityList, err error) {
	err = c.get(ctx, "/v1/capabilities", p.values("principal_id", string(holder)), &l)
	return l, err
}

// Delegations lists by which steps authority was handed on.
func (c *Client) Delegations(ctx context.Context, of id.Principal, p Page) (l DelegationList, err error) {
	err = c.get(ctx, "/v1/capabilities/delegations", p.values("principal_id", string(of)), &l)
	return l, err
}

// Engines lists engines.
func (c *Client) Engines(ctx context.Context, p Page) (l EngineList, err error) {
	err = c.get(ctx, "/v1/engines", p.values(), &l)
	return l, err
}

// RegisterEngine registers an engine.
func (c *Client) RegisterEngine(ctx context.Context, name string) (made engine.Engine, err error) {
	err = c.post(ctx, "/v1/engines/register", map[string]string{"display_name": name}, &made)
	return made, err
}

// DeactivateEngine ends an engine for good.
func (c *Client) DeactivateEngine(ctx context.Context, e id.Principal, reason string) (ended engine.Engine, err error) {
	err = c.post(ctx, join("/v1/engines/", escape(string(e)), "/deactivate"), map[string]string{"reason": reason}, &ended)
	return ended, err
}

// EngineTokens lists the tokens of an engine.
func (c *Client) EngineTokens(ctx context.Context, e id.Principal, p Page) (l EngineTokenList, err error) {
	err = c.get(ctx, join("/v1/engines/", escape(string(e)), "/tokens"), p.values(), &l)
	return l, err
}

// IssueEngineToken makes a token of an engine; nil scopes are those of an engine.
func (c *Client) IssueEngineToken(ctx context.Context, e id.Principal, scopes *token.Scopes, until time.Time) (made EngineToken,
	err error) {
	body := struct {
		Scopes    *token.Scopes `json:"scopes,omitempty"`
		ExpiresAt time.Time     `json:"expires_at,omitzero"`
	}{scopes, until}
	err = c.post(ctx, join("/v1/engines/", escape(string(e)), "/tokens/issue"), body, &made)
	return made, err
}

// RevokeEngineToken revokes a token of an engine.
func (c *Client) RevokeEngineToken(ctx context.Context, e id.Principal, t id.EngineToken, reason string) (revoked EngineToken, err error) {
	err = c.post(ctx, join("/v1/engines/", escape(string(e)), "/tokens/", escape(string(t)), "/revoke"), map[string]string{"reason": reason},
		&revoked)
	return revoked, err
}
