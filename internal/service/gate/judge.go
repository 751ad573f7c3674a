package gate

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/gate/authority"
	"agentbox/internal/service/gate/killswitch"
)

// consideration is a decision in progress.
type consideration struct {
	ruling policy.Ruling
	kind   policy.Kind
	who    principal.Principal
	bundle policy.Bundle
	space  space.Space // its document, where it has one
	parts  []policy.Part
	people int      // persons who have to approve, by the strictest rule that asks; 0 means one
	words  []string // of the one command, where a standing approval may cover it
	trial  bool     // a policy was named that no space pins yet
	soft   bool     // a policy decided: mode shadow lets it pass
}

// judge decides, in this order: the action itself, the principal, the kill switch, the capability token, the room's list of
// tools, the registry, the bundle, standing approvals, the quota.
func (g *Gate) judge(ctx context.Context, a policy.Action, trial *policy.Bundle) (consideration, error) {
	c := consideration{ruling: policy.Ruling{Action: a}, trial: trial != nil}
	if err := g.weigh(ctx, &c, trial); err != nil {
		return consideration{}, err
	}
	d := &c.ruling.Decision
	if g.Shadow && c.soft && d.Outcome != policy.Allow {
		d.Shadow = true
	}
	d.Bundle = c.ruling.Action.Bundle
	if c.ruling.Canonical != nil {
		d.Action = event.DigestOf(c.ruling.Canonical)
	}
	c.ruling.Seal = g.seal(c.ruling)
	return c, nil
}

func (c *consideration) deny(code, reason, suggestion string) {
	c.ruling.Decision = policy.Decision{Outcome: policy.Deny, ReasonCode: code, Reason: reason, Suggestion: suggestion}
}

func (g *Gate) weigh(ctx context.Context, c *consideration, trial *policy.Bundle) error {
	if err := g.declare(ctx, c); err != nil {
		return err
	}
	var known bool
	c.kind, known = c.ruling.Action.Kind()
	missing := g.under(ctx, c, trial)
	if missing != nil && fault.KindOf(missing) != fault.Denied && fault.KindOf(missing) != fault.NotFound {
		return missing
	}
	canonical, err := c.ruling.Action.Canonical()
	if err != nil {
		c.deny(fault.CodeOf(err), message(err), "")
		return nil
	}
	c.ruling.Canonical = canonical
	if reason := malformed(c.ruling.Action); reason != "" {
		c.deny(policy.ReasonActionInvalid, reason, "")
		return nil
	}
	if done, err := g.principal(ctx, c); done {
		return err
	}
	if done, err := g.workspace(ctx, c); done {
		return err
	}
	if c.kind.Stops() {
		on, err := g.KillSwitch.On(ctx, c.ruling.Action.Workspace)
		if err != nil {
			return err
		}
		if on {
			c.deny(policy.ReasonKillSwitch, killswitch.ErrThrown.Msg, killswitch.ErrThrown.Suggestion)
			return nil
		}
		if !credible(g.Clock.Now()) {
			c.deny(policy.ReasonClockUnreadable, "the clock of this machine cannot be read: it says a year that cannot be",
				"Set the clock, then go on.")
			return nil
		}
	}
	if c.ruling.Action.Token != "" {
		if refused, err := g.token(ctx, c); refused || err != nil {
			return err
		}
	}
	if done, err := g.tool(ctx, c); done {
		return err
	}
	switch {
	case !known:
		c.deny(policy.ReasonUnknownAction, fmt.Sprintf("there is no action %s", policy.Brief(c.ruling.Action.Type)),
			suggestAction(c.ruling.Action.Type))
	case c.ruling.Action.Misses() != "":
		c.deny(policy.ReasonTargetMismatch, fmt.Sprintf("%s takes as its target: %s", c.ruling.Action.Type, c.ruling.Action.Misses()),
			"Name such a target; `agentbox actions show` tells what was declared.")
	case missing != nil:
		c.deny(policy.ReasonPolicyUnavailable, message(missing), "Make a new space, or ask an owner to pin the policy again.")
	default:
		return g.policy(ctx, c)
	}
	return nil
}

// declare sets the workspace's declaration of the action's type, if the registry does not have the type. It overwrites the caller's value.
func (g *Gate) declare(ctx context.Context, c *consideration) error {
	a := &c.ruling.Action
	a.Declared = policy.Declaration{}
	if _, builtIn := policy.KindOf(a.Type); builtIn || policy.Declarable(a.Type) != nil {
		return nil
	}
	var err error
	a.Declared, c.ruling.Basis.Declared, err = g.ActionTypes.Declaration(ctx, a.Workspace, a.Type)
	return err
}

// suggestAction suggests a next step after an unknown action type.
func suggestAction(typ string) string {
	if policy.Declarable(typ) != nil {
		return "`agentbox policy actions` lists those that there are."
	}
	return "`agentbox policy actions` lists those that there are; an admin declares one of your own: agentbox actions declare."
}

// credible reports whether a reading of the clock is plausible. A clock that lost its power says 1970, and then no time-limited grant would
// ever end.
func credible(now time.Time) bool { return now.Year() >= 1990 && now.Year() <= 9999 }

// principal checks the acting principal. done is true after a refusal or an error.
func (g *Gate) principal(ctx context.Context, c *consideration) (done bool, err error) {
	a := c.ruling.Action
	c.who, c.ruling.Basis.Principal, err = g.authority.Person(ctx, a.Workspace, a.Principal)
	switch {
	case errors.Is(err, authority.ErrNobody):
		c.deny(policy.ReasonPrincipalNotFound, "whoever asks is not known in this workspace", "Register first.")
		return true, nil
	case err != nil:
		return true, err
	case c.who.Quarantined:
		c.deny(policy.ReasonAgentQuarantined, policy.Escape(c.who.Name)+" is quarantined and may do nothing",
			"Ask an owner to end the quarantine.")
		return true, nil
	}
	return false, nil
}

var errOtherBundle = fault.New(fault.Denied, policy.ReasonPolicyUnavailable, "the space pins another policy than the one that is named")

// under finds the bundle under which the action is judged, fills it in and clamps the action to its limits.
func (g *Gate) under(ctx context.Context, c *consideration, trial *policy.Bundle) error {
	a := &c.ruling.Action
	if a.Space != "" {
		// A space pins its policy: the gate judges actions in it under no other policy.
		doc, version, err := g.spaces.Load(ctx, g.Docs, a.Workspace, space.Projection, string(a.Space))
		switch {
		case errors.Is(err, projection.ErrNotFound): // it is about to be made
		case err != nil:
			return err
		case a.Bundle.IsZero():
			a.Bundle = doc.Bundle
		case a.Bundle != doc.Bundle && trial == nil:
			return errOtherBundle
		}
		c.space, c.ruling.Basis.Space = doc, version
	}
	switch {
	case trial != nil:
		if err := trial.Verify(); err != nil {
			return err
		}
		c.bundle = *trial
	case a.Bundle.IsZero() || a.Bundle == g.Bundles.Standard().Hash:
		c.bundle = g.Bundles.Standard()
	default:
		bundle, err := g.Bundles.Bundle(ctx, a.Workspace, a.Bundle)
		if err != nil {
			return err
		}
		c.bundle = bundle
	}
	a.Bundle, c.ruling.Limits = c.bundle.Hash, c.bundle.Limits
	switch c.kind.Clamp {
	case policy.ClampTime:
		if !a.Background && (a.TimeoutMS <= 0 || a.TimeoutMS > c.bundle.Limits.CommandMS) {
			a.TimeoutMS = c.bundle.Limits.CommandMS
		}
	case policy.ClampBytes:
		if a.MaxBytes <= 0 || a.MaxBytes > c.bundle.Limits.FileBytes {
			a.MaxBytes = c.bundle.Limits.FileBytes
		}
	}
	return nil
}

// malformed returns the reason why an action cannot be judged at all; "" for none.
func malformed(a policy.Action) string {
	if a.Size < 0 || a.MaxBytes < 0 || a.TimeoutMS < 0 {
		return "a number of the action is negative"
	}
	for _, p := range []string{a.Path, a.Cwd} {
		if p != "" && (path.Clean(p) != p || strings.HasPrefix(p, "/") || p == ".." || strings.HasPrefix(p, "../") || strings.ContainsRune(p,
			0)) {
			return "the path " + policy.Brief(p) + " is not a clean relative path"
		}
	}
	if a.Mode != "" && (a.Type != policy.FileCreate || space.CheckFileMode(a.Mode) != nil) {
		return "the mode " + policy.Brief(a.Mode) + " is none that a file is made with"
	}
	if a.Background && a.Type != policy.ShellExec {
		return "only a command runs in the background"
	}
	switch a.Attach {
	case "":
	case policy.AttachStdin, policy.AttachTerminal:
		if !a.Background {
			return "only a command in the background gets input while it runs"
		}
	default:
		return "a command gets its input by " + policy.AttachStdin + " or " + policy.AttachTerminal + ", not by " + policy.Brief(a.Attach)
	}
	if a.Type == policy.ShellExec && a.Command != "" && len(a.Argv) > 0 && (len(a.Argv) != 3 || a.Argv[1] != "-c" || a.Argv[2] != a.Command) {
		return "the command that is shown is not the one that would run"
	}
	return ""
}

// policy asks the bundle, then standing approvals, then the quota.
func (g *Gate) policy(ctx context.Context, c *consideration) error {
	keeps := c.kind.SideEffect == policy.Control || c.kind.SideEffect == policy.Record
	c.soft = !keeps && c.who.Role != principal.Viewer // actions that maintain the workspace are not tried
	if err := g.consult(ctx, c); err != nil {
		return err
	}
	d := &c.ruling.Decision
	if c.kind.PreApproval && d.Outcome == policy.Allow {
		c.soft = false
		*d = policy.Decision{
			Outcome: policy.RequireApproval, ReasonCode: policy.ReasonPreApproval, Policies: d.Policies,
			Reason: "to " + c.kind.Title + " always needs a person's approval",
		}
	}
	if d.Outcome == policy.RequireApproval {
		if people := max(c.people, c.bundle.Limits.Approvers); people > 1 {
			d.Approvers = people
		}
		standing, covers, err := g.Approvals.Covering(ctx, c.ruling.Action, c.words)
		if err != nil {
			return err
		}
		if covers {
			c.ruling.Standing = standing.ID
			*d = policy.Decision{
				Outcome: policy.Allow, ReasonCode: policy.ReasonStandingAllows, Policies: d.Policies,
				Reason: fmt.Sprintf("a standing approval covers it: use %d of %d", standing.Used+1, standing.Uses),
			}
		}
	}
	if d.Outcome == policy.RequireApproval {
		if _, err := policy.Render(c.ruling.Canonical); err != nil {
			c.soft = false
			c.deny(fault.CodeOf(err), message(err), policy.ErrTooLongToShow.Suggestion)
		}
	}
	if d.Outcome != policy.Allow || !c.kind.SideEffect.Reaches() {
		return nil
	}
	a := c.ruling.Action
	left, err := g.quota.left(ctx, a.Workspace, a.Principal, g.Clock.Now())
	if !left && err == nil {
		c.ruling.Standing = ""
		full := g.quota.full()
		c.deny(fault.CodeOf(full), message(full), "Wait, then go on.")
	}
	return err
}

// message returns the words of an error that are for people.
func message(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Msg
	}
	return "it could not be judged"
}
