package policy

import (
	"context"
	"slices"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Ruling is an action together with the decision on it. The gate makes it; a caller passes it back to have the action done.
type Ruling struct {
	Action    Action // with Bundle filled in
	Canonical []byte // its canonical bytes, which Decision.Action hashes
	Decision  Decision
	Standing  id.Standing // the standing approval that allowed it, if one did; Begin counts the use
	Limits    Limits      // of the bundle that decided, for those who clamp before they ask again
	Basis     Basis       // the documents that it rests on, as they were
	Seal      any         // the gate's own copy, which nobody else can make or read; a ruling without it, or unlike it, is refused
}

// Basis says on which versions of its documents a decision rests. It also rests on the bundle, which never changes. The gate checks the
// kill switch, approvals and the quota again before an action begins.
type Basis struct {
	Principal uint64 // version of who acts
	Space     uint64 // version of the space, 0 where there is none or it is about to be made
	Workspace uint64 // version of the workspace's document, 0 where there is none
	Room      uint64 // version of the room that says which tools may be used, 0 where there is none or none is used
	Declared  uint64 // version of the workspace's own declaration of the action's type, 0 where there is none
	Defaults  uint64 // version of what rooms inherit, 0 where there is none or the room itself says it
}

// Gate is the one way to a permit. Every method is safe for concurrent use.
type Gate interface {
	// Judge decides an action. It records nothing and changes nothing, so it also explains. It returns an error if the gate could not decide;
	// callers treat that as a refusal.
	Judge(ctx context.Context, a Action) (Ruling, error)
	// Glance returns the permit of an allowed action that is pure or only reads. Such an action records one event, afterwards. An action that
	// a standing approval allows is begun instead, because its use counts.
	Glance(r Ruling) (Permit, error)
	// Begin records the intent of an allowed action and returns its permit. The batch holds the caller's own events, such as tool.invoked. If
	// an approval is named, its use is recorded in the same commit, so that it is used at most once. The approval must be approved, unexpired,
	// unused and for exactly these canonical bytes. With holds rulings about other actions that the batch records too, such as the start of
	// the run whose first operation begins. If one of them does not hold unchanged, nothing is recorded, and the error is ErrApart.
	Begin(ctx context.Context, r Ruling, approval id.Approval, intent event.Batch, with ...Ruling) (Permit, event.Receipt, error)
	// Record judges an action whose whole effect is its record, and appends the batch if the action is allowed: there is no intent apart from
	// the outcome. It records a refusal too. If policy asks, it makes the question as AskOnce does, and the same request succeeds once it is
	// answered.
	Record(ctx context.Context, origin event.Origin, a Action, b event.Batch) (event.Receipt, error)
	// Ask records the question that a ruling of RequireApproval raises, together with the caller's own events.
	Ask(ctx context.Context, origin event.Origin, r Ruling, q Ask, with event.Batch) (Approval, error)
	// AskOnce is Ask for callers that send the same request again until it is answered. Their actions are only recorded, or happen outside of
	// runs. If the caller asks for another principal, the question names the caller too. AskOnce returns the valid question about exactly
	// these canonical bytes. That is one that is open, one that was denied and has not expired, or one that was approved and can still be
	// used. If there is none, it asks a new one. Concurrent callers get one question.
	AskOnce(ctx context.Context, origin event.Origin, r Ruling, with event.Batch) (Approval, error)
	// Withdraw ends a question that is no longer needed and records the caller's own events in the same commit. An answered question keeps its
	// answer; then only the caller's events are recorded. Stopping needs no permission.
	Withdraw(ctx context.Context, origin event.Origin, approval id.Approval, reason string, with event.Batch) (event.Receipt, error)
}

// Halt is why effects under way end when a kill switch is thrown, and why permits are refused from then on.
type Halt interface {
	error
	// Event returns the event that says who threw the switch, as the cause of what ends. Effects end before that is recorded: it waits until
	// it is. It returns "" where it could not be recorded, or is not known.
	Event() id.Event
}

// ErrApart means that two actions cannot be recorded in one commit; each can still be on its own.
var ErrApart = fault.New(fault.Waiting, "recorded_apart", "the actions have to be recorded one after the other")

// Belongs refuses a batch with events of another workspace than the action's.
func Belongs(b event.Batch, ws id.Workspace) error {
	if b.Workspace != ws || slices.ContainsFunc(b.Drafts, func(d event.Draft) bool { return d.Workspace != ws }) {
		return fault.New(fault.Internal, "workspace_mismatch", "the events belong to another workspace than the action")
	}
	return nil
}

// Ask is the requester's addition to a question.
type Ask struct {
	Approval   id.Approval // the new approval's id, made by the caller so that its own events can name it
	Thread     id.Thread   // the thread of the question; empty for none
	AgentTitle string      // the title that the agent gives it, shown apart and marked
	AgentWords string      // the agent's own words about it, shown separately and marked
	Unsealed   []string    // parts that cannot be sealed, besides those that the decision names

	Scope     Scope        // the requested scope, for the person who answers; empty means once
	ExpiresAt time.Time    // until when the question stays open, at most MaxQuestionTime from now; zero for the gate's own time
	Through   id.Principal // the principal who asks for the acting one, if that is another; neither of them approves it
}

// Agents knows the agents of a workspace by their names.
type Agents interface {
	// Agent returns the agent of that name and makes it, on behalf of origin, where there is none. A quarantined agent is returned as it is.
	Agent(ctx context.Context, origin event.Origin, ws id.Workspace, name string) (id.Principal, error)
}

// Library keeps the bundles of a workspace.
type Library interface {
	// Pin resolves a preset's name and overrides (a JSON object or nil) to a bundle. It records the bundle, so that its hash always finds it.
	Pin(ctx context.Context, origin event.Origin, ws id.Workspace, preset string, overrides []byte) (Bundle, error)
	// PinBundle records a bundle that is its own text, whatever it was made from.
	PinBundle(ctx context.Context, origin event.Origin, ws id.Workspace, b Bundle) error
	// Bundle returns a bundle that was pinned.
	Bundle(ctx context.Context, ws id.Workspace, hash event.Digest) (Bundle, error)
}
