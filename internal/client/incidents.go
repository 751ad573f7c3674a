package client

import (
	"context"
	"encoding/json"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/incident"
)

// IncidentRequest opens an incident.
type IncidentRequest struct {
	Title    string          `json:"title"`
	Severity string          `json:"severity,omitempty"`
	Category string          `json:"category,omitempty"`
	Details  json.RawMessage `json:"details,omitempty"`
	Room     id.Room         `json:"room_id,omitempty"`
	Run      id.Run          `json:"run_id,omitempty"`
	Key      string          `json:"idempotency_key,omitempty"`
}

// OpenedIncident is an incident, and whether it was there before.
type OpenedIncident struct {
	incident.Incident
	Deduped bool `json:"deduped"`
}

// IncidentFilter selects incidents.
type IncidentFilter struct {
	Status string
	Room   id.Room
	Run    id.Run
	Page
}

// IncidentList is a page of incidents.
type IncidentList struct {
	Incidents []incident.Incident `json:"incidents"`
	Next      string              `json:"next_cursor"` // empty at the end
}

// OpenIncident opens an incident.
func (c *Client) OpenIncident(ctx context.Context, r IncidentRequest) (OpenedIncident, error) {
	var made OpenedIncident
	err := c.post(ctx, "/v1/incidents", r, &made)
	return made, err
}

// Incidents lists incidents.
func (c *Client) Incidents(ctx context.Context, f IncidentFilter) (IncidentList, error) {
	var l IncidentList
	err := c.get(ctx, "/v1/incidents", f.values("status", f.Status, "room_id", string(f.Room), "run_id", string(f.Run)), &l)
	return l, err
}

// Incident returns an incident.
func (c *Client) Incident(ctx context.Context, i id.Incident) (incident.Incident, error) {
	var found incident.Incident
	err := c.get(ctx, join("/v1/incidents/", escape(string(i))), nil, &found)
	return found, err
}

// ChangeIncident records the root cause (rca) or a learning (learning), or closes an incident (close).
func (c *Client) ChangeIncident(ctx context.Context, i id.Incident, word string, body map[string]any) (incident.Incident, error) {
	var changed incident.Incident
	err := c.post(ctx, join("/v1/incidents/", escape(string(i)), "/", word), body, &changed)
	return changed, err
}
