// Package evidence is the manifest of a run: the list of its events with their hashes.
package evidence

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Projection is the name of the documents of manifests, one for each run.
const Projection = "evidence_manifests"

// EventCreated records a manifest. It is about the run, under EntityType.
const (
	EventCreated = "evidence.manifest.created"
	EntityType   = "evidence"
)

// MaxEvents is how many events a manifest points to. A run can have more, for example if its claim was renewed for weeks. Then the manifest
// points to the first ones and to the last LastEvents. Completeness names the gap between them.
const (
	MaxEvents  = 50_000
	LastEvents = 1_000
)

// Manifest lists the events of a run that has ended. It holds hashes, ids and counts, and no text. The hashes of events cover salted
// commitments, so the manifest stays valid after a redaction.
type Manifest struct {
	Workspace    id.Workspace  `json:"workspace_id"`
	Run          id.Run        `json:"run_id"`
	Room         id.Room       `json:"room_id"`
	Status       string        `json:"status"`
	Events       []Pointer     `json:"events"`
	Steps        []id.Step     `json:"step_ids"`
	Calls        []id.ToolCall `json:"tool_call_ids"`
	Artifacts    []id.Artifact `json:"artifact_ids"`
	Window       Window        `json:"window"`
	Completeness Completeness  `json:"completeness"`
	Root         event.Digest  `json:"event_hash_root"` // SHA-256 over the events' hashes, joined by newlines
}

// Pointer names an event and its hash.
type Pointer struct {
	ID        id.Event     `json:"event_id"`
	Type      string       `json:"event_type"`
	Seq       uint64       `json:"seq"`
	StreamSeq uint64       `json:"stream_seq"`
	Hash      event.Digest `json:"event_hash"`
}

// Window is the part of the workspace's log that contains the run.
type Window struct {
	From  uint64 `json:"from_seq"`
	To    uint64 `json:"to_seq"`
	Count int    `json:"event_count"`
}

// Completeness says whether anything is missing.
type Completeness struct {
	Terminal  bool `json:"terminal_event_present"`
	Calls     bool `json:"all_toolcalls_terminal"`
	Artifacts int  `json:"artifact_count"`
	Gap       *Gap `json:"gap,omitempty"` // of a run with too many events; then nobody can say of all tool calls that they have ended
}

// Gap is the part of the workspace's log whose events of the run a manifest does not point to. Both ends are in it.
type Gap struct {
	From uint64 `json:"from_seq"`
	To   uint64 `json:"to_seq"`
}

// Record is the document of a manifest: its place and its summary.
type Record struct {
	ID           id.Evidence  `json:"evidence_id"`
	Run          id.Run       `json:"run_id"`
	Hash         event.Digest `json:"manifest_hash"` // SHA-256 over the manifest's canonical JSON, RFC 8785
	Root         event.Digest `json:"event_hash_root"`
	Window       Window       `json:"window"`
	Completeness Completeness `json:"completeness"`
	Content      Content      `json:"content_ref"` // of the manifest
	CreatedBy    id.Principal `json:"created_by"`
	CreatedAt    time.Time    `json:"created_at"`
}

// Content names the stored manifest.
type Content struct {
	Digest event.Digest `json:"sha256"`
	Size   int64        `json:"size_bytes"`
}

// Created is the data of evidence.manifest.created.
type Created struct {
	ID           id.Evidence  `json:"evidence_id"`
	Run          id.Run       `json:"run_id"`
	Hash         event.Digest `json:"manifest_hash"`
	Root         event.Digest `json:"event_hash_root"`
	Window       Window       `json:"window"`
	Completeness Completeness `json:"completeness"`
	Content      Content      `json:"content_ref"`
}

// The refusals of evidence.
var (
	ErrNotFound = fault.New(fault.NotFound, "evidence_not_found", "no evidence of the run was collected yet").With(
		"collect it with: agentbox runs evidence RUN --finalize")
	ErrNotEnded = fault.New(fault.Conflict, "run_not_ended", "the run has not ended; its evidence is collected then")
	ErrNoEvents = fault.New(fault.Internal, "run_events_missing", "the log holds no event that ends the run")
)

// ends are the events that end a run, and how.
var ends = map[string]string{"run.completed": "succeeded", "run.failed": "failed", "run.cancelled": "cancelled"}

// Ends are the types of the events that end a run.
func Ends() []string { return slices.Sorted(maps.Keys(ends)) }

// Ended returns how many of the events of a run belong to it, up to the one that ends it; false if none ends it.
func Ended(events []event.Event) (int, bool) {
	n := slices.IndexFunc(events, func(e event.Event) bool { return ends[e.Type] != "" })
	return n + 1, n >= 0
}

// Collect makes the manifest of a run from its events, in the order of the log. Events after the end of the run are not part of it. If
// there are more than MaxEvents, gap says which part of the log is left out. Collect is pure: the same events give the same manifest.
func Collect(ws id.Workspace, r id.Run, room id.Room, events []event.Event, gap *Gap) (Manifest, error) {
	m := Manifest{Workspace: ws, Run: r, Room: room, Events: []Pointer{}, Steps: []id.Step{}, Calls: []id.ToolCall{},
		Artifacts: []id.Artifact{}}
	open, steps := map[string]bool{}, map[id.Step]bool{}
	var hashes []string
	for _, e := range events {
		m.Events = append(m.Events, Pointer{e.ID, e.Type, e.Seq, e.StreamSeq, e.Chain.Hash})
		hashes = append(hashes, e.Chain.Hash.String())
		if e.Step != "" && !steps[e.Step] {
			steps[e.Step] = true
			m.Steps = append(m.Steps, e.Step)
		}
		call := e.EntityID // of an engine's tool call; an operation is known by its step
		if e.EntityType != "tool_call" {
			call = string(e.Step)
		}
		switch e.Type {
		case "tool.invoked":
			open[call] = true
			if e.EntityType == "tool_call" {
				m.Calls = append(m.Calls, id.ToolCall(call))
			}
		case "tool.succeeded", "tool.failed", "tool.unknown":
			delete(open, call)
		case "artifact.created":
			m.Artifacts = append(m.Artifacts, id.Artifact(e.EntityID))
		}
		if m.Status = ends[e.Type]; m.Status != "" {
			break // it has ended
		}
	}
	if m.Status == "" {
		return m, ErrNoEvents
	}
	m.Window = Window{m.Events[0].Seq, m.Events[len(m.Events)-1].Seq, len(m.Events)}
	m.Completeness = Completeness{Terminal: true, Calls: len(open) == 0 && gap == nil, Artifacts: len(m.Artifacts), Gap: gap}
	m.Root = event.DigestOf([]byte(strings.Join(hashes, "\n")))
	return m, nil
}

// Canonical returns the bytes that the manifest's hash covers.
func (m Manifest) Canonical() ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return policy.Canonicalize(raw)
}

// Evolve returns the record after an event about it.
func (r Record) Evolve(e event.Event) (Record, error) {
	if e.Type != EventCreated || r.ID != "" {
		return r, nil
	}
	d, err := event.Decode[Created](e)
	return Record{
		ID: d.ID, Run: d.Run, Hash: d.Hash, Root: d.Root, Window: d.Window, Completeness: d.Completeness, Content: d.Content,
		CreatedBy: e.Principal, CreatedAt: e.OccurredAt,
	}, err
}
