package spaceapi

import (
	"context"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// maxDifferences is the most entries of one comparison.
const maxDifferences = 10_000

// snapshotEntry is a snapshot that was recorded.
type snapshotEntry struct {
	space.Recorded
	Kept bool `json:"kept" doc:"The files can be made this again; the oldest snapshots go where there are too many or too large ones"`
}

type snapshotList struct {
	Snapshots []snapshotEntry `json:"snapshots" nullable:"false"`
	Bytes     int64           `json:"size_bytes" doc:"What the snapshots that are kept take"`
	Next      string          `json:"next_cursor,omitempty" doc:"Where the list goes on; absent at its end"`
}

type spaceRewind struct {
	To string `json:"to" maxLength:"80" doc:"A snapshot's hash or at least 8 digits of it; a step, after which it was made; or a run, before which it was made"`
}

type spaceRewound struct {
	Space    id.Space       `json:"space_id"`
	From     event.Digest   `json:"from_snapshot_sha256" doc:"What the files were; rewind to it to undo this"`
	Snapshot space.Snapshot `json:"snapshot"`
}

// spaceFork asks for a fork. Missing fields take the other space's values, except for the environment.
type spaceFork struct {
	At          string            `json:"at,omitempty" maxLength:"80" doc:"The snapshot, as in rewind; the files as they are now by default"`
	Name        string            `json:"name,omitempty" maxLength:"100"`
	Description string            `json:"description,omitempty" maxLength:"1000"`
	Env         map[string]string `json:"env,omitempty" doc:"Environment of every command; nothing of the other space's is inherited. A value that looks like a secret is sealed"`
	Metadata    map[string]string `json:"metadata,omitempty" doc:"The client's own notes"`
	TTL         int64             `json:"ttl_seconds,omitempty" minimum:"10" maximum:"2592000" doc:"How long it lives; 12 hours by default"`
	PauseAtEnd  bool              `json:"pause_at_end,omitempty" doc:"At the end of its time it is paused for at most 30 days, not destroyed"`
}

type spaceDiff struct {
	From        event.Digest       `json:"from_snapshot_sha256"`
	To          event.Digest       `json:"to_snapshot_sha256"`
	Differences []space.Difference `json:"differences" nullable:"false"`
	Truncated   bool               `json:"truncated" doc:"There are more differences than one answer holds"`
}

// Snapshots are the operations for snapshots of spaces.
type Snapshots struct {
	access.Part
	spaces *spaces.Service
}

// NewSnapshots returns the operations for snapshots of spaces.
func NewSnapshots(p access.Part, spaces *spaces.Service) *Snapshots {
	return &Snapshots{p, spaces}
}

// Register adds the operations to the server.
func (s *Snapshots) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-snapshots", Home: wire.AtSpace, Needs: wire.Shows("snapshot", "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/snapshots", Tag: "snapshots", Summary: "List the snapshots of a space, the newest first",
		Detail: "One is made when a space is ready, before each run and after each operation that can change files. The last 1,000 are kept, " +
			"of those as many as fit into twice the space's disk limit.",
	}, s.listSnapshots)
	wire.Handle(s.Server, wire.Operation{
		ID: "rewind-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceRewind, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/rewind", Tag: "snapshots", Summary: "Make a space's files what they were", Rate: wire.RateFiles,
		Repeat: wire.RepeatRecalled,
		Detail: "All of them or none. Their state before is kept as a snapshot too. A space of which a run is under way is not rewound: " +
			"space_busy.",
	}, s.rewindSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "fork-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceFork, "space_id"), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/fork", Tag: "snapshots", Summary: "Make a space whose files begin as a snapshot of another's",
		Status: http.StatusCreated, Rate: wire.RateSpaces, Repeat: wire.RepeatByService,
		Detail: "It has the other's policy, tier, limits and room, and nothing of its environment, its agents or the rest of its past.",
	}, s.forkSpace)
	wire.Handle(s.Server, wire.Operation{
		ID: "diff-space", Home: wire.AtSpace, Needs: wire.Does(policy.SpaceDiff, "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/diff", Tag: "snapshots", Summary: "Compare two snapshots of a space", Rate: wire.RateFiles,
	}, s.diffSpace)
}

func (s *Snapshots) listSnapshots(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	access.Page[id.Event]
}) (*struct{ Body snapshotList }, error) {
	past, err := s.spaces.Snapshots.List(ctx, c.Caller.Workspace, id.Space(in.Space), in.Cursor.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	page, next := access.Cut(past.Recorded, in.Limit, func(r space.Recorded) string { return string(r.Event) })
	out := snapshotList{Snapshots: make([]snapshotEntry, len(page)), Bytes: past.Bytes, Next: next}
	for i, r := range page {
		out.Snapshots[i] = snapshotEntry{Recorded: r, Kept: past.Kept[r.Root]}
	}
	return &struct{ Body snapshotList }{out}, nil
}

func (s *Snapshots) rewindSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spaceRewind
}) (*struct{ Body spaceRewound }, error) {
	done, err := wire.Once(c, func() (space.Rewound, error) {
		return s.spaces.Snapshots.Rewinding(ctx, c.Caller.Workspace, id.Space(in.Space), c.Repeated)
	}, func() (space.Rewound, error) {
		return s.spaces.Snapshots.Rewind(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), in.Body.To)
	})
	if err != nil {
		return nil, err
	}
	return &struct{ Body spaceRewound }{spaceRewound{Space: done.Space, From: done.From, Snapshot: *done.Snapshot}}, nil
}

func (s *Snapshots) forkSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Body spaceFork
}) (*spaceAnswer, error) {
	b := in.Body
	made, err := s.spaces.Creation.Fork(ctx, c.Origin(), spaces.Fork{
		Workspace: c.Caller.Workspace, Space: id.Space(in.Space), At: b.At, Name: b.Name, Description: b.Description, Env: b.Env,
		Metadata: b.Metadata, PauseAtEnd: b.PauseAtEnd,
		TTL: time.Duration(b.TTL) * time.Second, Key: c.ServiceKey(),
	})
	if err != nil {
		return nil, err
	}
	return answered("/v1/spaces/"+string(made.ID), made), nil
}

func (s *Snapshots) diffSpace(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	From string `query:"from" maxLength:"80" doc:"A snapshot, as in rewind; what the files were before the last run by default"`
	To   string `query:"to" maxLength:"80" doc:"A snapshot, as in rewind; what the files are now by default"`
}) (*struct{ Body spaceDiff }, error) {
	found, err := s.spaces.Snapshots.Diff(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space), in.From, in.To, maxDifferences)
	if err != nil {
		return nil, err
	}
	return &struct{ Body spaceDiff }{spaceDiff{
		From: found.From, To: found.To, Differences: found.Differences, Truncated: len(found.Differences) >= maxDifferences,
	}}, nil
}
