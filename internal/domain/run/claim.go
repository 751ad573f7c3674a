package run

import (
	"crypto/subtle"
	"encoding/json"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// EntityType is the entity type of the events of a run that an engine executes, under the run's id.
const EntityType = "run"

// CallEntity is the entity type of the events of an engine's tool calls: they are no operations, and have documents of their own.
const CallEntity = "tool_call"

// How long an engine owns a run without a renewal, unless the daemon is configured otherwise, and the bounds of that setting.
const (
	ClaimTime    = 30 * time.Second
	MinClaimTime = time.Second
	MaxClaimTime = time.Hour
)

// RenewEvery returns the heartbeat interval of an engine for claims of this length. Two heartbeats in a row may be lost.
func RenewEvery(claim time.Duration) time.Duration { return claim / 3 }

// Order is the request for a run that an engine executes. The zero Order belongs to a run that the daemon executes in a space.
type Order struct {
	Engine     bool          `json:"for_engine,omitempty"` // it waits for an engine that claims it
	Work       string        `json:"work,omitempty"`       // the kind of its input, where the engine of Agentbox knows it: operations
	Blueprint  string        `json:"blueprint,omitempty"`  // of the agent that works on it, where the daemon's loop executes it
	Thread     id.Thread     `json:"thread_id,omitempty"`
	Experiment id.Experiment `json:"experiment_id,omitempty"`
	Goal       string        `json:"goal,omitempty"`
	Tags       []string      `json:"tags,omitempty"`
}

// Parent is the tool call of an engine for which a run is executed in a space. One call has one such run.
type Parent struct {
	Run   id.Run      `json:"run_id"`
	Call  id.ToolCall `json:"tool_call_id"`
	Fence uint64      `json:"fence,omitempty"` // of the claim that requested it
}

// Under says on whose behalf an engine asks for a run: its tool call, and the run that the call already has. It also holds the document
// versions that the log must expect, so that the engine still has the claim at the moment in which the run is recorded.
type Under struct {
	Parent Parent
	Child  id.Run
	Expect []event.DocumentVersion
}

// Limits of a request to an engine, and of its report.
const (
	MaxTitle       = 200      // characters
	MaxGoal        = 4_000    // characters
	MaxTags        = 20       // words
	MaxTag         = 100      // characters of one
	MaxGiven       = 1 << 20  // bytes of the input, JSON
	MaxReport      = 64 << 10 // bytes of an output, JSON
	MaxReportWords = 4_000    // characters of a summary, an error and a message
	MaxAttempts    = 100      // of one run that are listed
)

// Reported is the report of an engine at the end of a run. Permitted says that the engine had the run and its one permit. The outcome is
// the engine's own statement in either case.
type Reported struct {
	As      string          `json:"recorded_as"` // policy.Permitted where the permit of the claim was shown, else policy.Attested
	Summary string          `json:"summary,omitempty"`
	Message string          `json:"message,omitempty"`
	Output  json.RawMessage `json:"output,omitempty"`
}

// Claim is the ownership of a run by the engine that executes it.
type Claim struct {
	Engine  id.Principal `json:"engine_id"`
	Attempt id.Attempt   `json:"attempt_id"`
	Fence   uint64       `json:"fence"`        // rises with each claim of the run
	Token   event.Digest `json:"token_sha256"` // of the token that the engine was given once
	Since   time.Time    `json:"claimed_at"`
	Renewed time.Time    `json:"renewed_at"`
	Until   time.Time    `json:"expires_at"` // by the log's own stamps
}

// Claimed is the data of run.claimed. The time is a duration; the log's own stamp says from when on.
type Claimed struct {
	Run     id.Run       `json:"run_id"`
	Attempt id.Attempt   `json:"attempt_id"`
	Engine  id.Principal `json:"engine_id"`
	Fence   uint64       `json:"fence"`
	Token   event.Digest `json:"token_sha256"`
	TimeMS  int64        `json:"claim_ms"`
	Lapsed  id.Attempt   `json:"lapsed_attempt_id,omitempty"` // whose claim had expired
}

// Renewed is the data of run.renewed.
type Renewed struct {
	Run     id.Run     `json:"run_id"`
	Attempt id.Attempt `json:"attempt_id"`
	Fence   uint64     `json:"fence"`
	TimeMS  int64      `json:"claim_ms"`
}

// Released is the data of run.released.
type Released struct {
	Run     id.Run     `json:"run_id"`
	Attempt id.Attempt `json:"attempt_id"`
	Fence   uint64     `json:"fence"`
	Reason  string     `json:"reason"`
}

// The errors of calls under a claim. Their codes are those of the API.
var (
	ErrNotFound   = fault.New(fault.NotFound, "run_not_found", "there is no such run in this workspace")
	ErrEnded      = fault.New(fault.Conflict, "run_already_ended", "the run has ended")
	ErrNotRunning = fault.New(fault.Conflict, "run_not_running", "the run is not running: claim it first")
	ErrNotQueued  = fault.New(fault.Conflict, "run_not_queued", "the run was started before")
	ErrLocked     = fault.New(fault.Conflict, "run_locked",
		"an engine has claimed the run; only the holder of its claim token can continue it")
	ErrTokenMismatch = fault.New(fault.Conflict, "lease_token_mismatch",
		"the claim token is not the one of the run's claim: another engine has the run, or nobody").
		With("stop working on it, and claim a run anew")
	ErrExpired  = fault.New(fault.Conflict, "lease_expired", "the claim has expired").With("stop working on it, and claim a run anew")
	ErrOutpaced = fault.New(fault.Conflict, "lease_heartbeat_conflict",
		"the run changed again and again while the heartbeat was recorded; send it again")
	ErrNoToken = fault.New(fault.Invalid, "missing_claim_token", "the claim token is missing; it was in the answer to the claim")
	ErrInSpace = fault.New(fault.Conflict, "run_in_space", "the daemon executes this run in its space; no engine does")
)

// HashToken returns the stored hash of a claim token.
func HashToken(token string) event.Digest { return event.DigestOf([]byte(token)) }

// Opens reports, in a time that does not depend on where they differ, whether a token is that of the claim.
func (c *Claim) Opens(token string) bool {
	hash := HashToken(token)
	return c != nil && subtle.ConstantTimeCompare(hash[:], c.Token[:]) == 1
}

// MayWrite returns nil if the sender of a claim token, "" for none, may record something about a run. left is the rest of the claim's time.
func (r Run) MayWrite(token string, left time.Duration) error {
	switch {
	case !r.Engine:
		return ErrInSpace
	case r.Status.Ended():
		return ErrEnded
	case r.Claim == nil && token == "":
		return nil
	case r.Claim != nil && token == "":
		return ErrLocked
	case !r.Claim.Opens(token):
		return ErrTokenMismatch
	case left <= 0:
		return ErrExpired
	}
	return nil
}

// Claimable reports whether an engine may claim the run. Left is what remains of the time of the claim that it has.
func (r Run) Claimable(left time.Duration) bool {
	switch {
	case !r.Engine || r.Status.Ended():
		return false
	case r.Status == Queued:
		return true
	}
	return r.Status == Running && r.Claim != nil && left <= 0
}

// How engines relate to a run.
const (
	ForEngine  = "waiting" // it waits for one
	WithEngine = "claimed" // one has claimed it
)

// Offered says how the run relates to engines, "" for not at all.
func (r Run) Offered() string {
	switch {
	case r.Engine && r.Status == Queued:
		return ForEngine
	case r.Engine && r.Status == Running && r.Claim != nil:
		return WithEngine
	}
	return ""
}

func (r Run) claimed(e event.Event) (Run, error) {
	switch e.Type {
	case EventClaimed:
		d, err := event.Decode[Claimed](e)
		if err != nil {
			return r, err
		}
		r.Attempts, r.Fence, r.Agent = r.Attempts+1, d.Fence, d.Engine
		r.Claim = &Claim{
			Engine: d.Engine, Attempt: d.Attempt, Fence: d.Fence, Token: d.Token, Since: e.OccurredAt, Renewed: e.OccurredAt,
			Until: e.OccurredAt.Add(time.Duration(d.TimeMS) * time.Millisecond),
		}
	case EventRenewed:
		d, err := event.Decode[Renewed](e)
		if err != nil || r.Claim == nil || r.Claim.Fence != d.Fence {
			return r, err
		}
		c := *r.Claim
		c.Renewed, c.Until = e.OccurredAt, e.OccurredAt.Add(time.Duration(d.TimeMS)*time.Millisecond)
		r.Claim = &c
	case EventReleased:
		r.Status, r.Claim = Queued, nil
	}
	return r, nil
}

// reported is what remains of what an engine said at the end.
func (f Finished) reported(r Run) *Reported {
	if !r.Engine || f.Summary == "" && f.Message == "" && f.Output == nil {
		return nil
	}
	as := policy.Attested
	if !f.Permit.IsZero() {
		as = policy.Permitted
	}
	return &Reported{As: as, Summary: f.Summary, Message: f.Message, Output: f.Output}
}
