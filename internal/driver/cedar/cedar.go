// Package cedar evaluates policy bundles with the Cedar policy language.
package cedar

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	cedar "github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// maxCompiled is how many bundles are kept compiled; each takes some hundred KiB at most.
const maxCompiled = 256

// Evaluator implements policy.Evaluator. Make it with New.
type Evaluator struct {
	mu       sync.RWMutex
	compiled map[event.Digest]*compiled
}

var _ policy.Evaluator = (*Evaluator)(nil)

// New returns an evaluator without compiled bundles.
func New() *Evaluator { return &Evaluator{compiled: map[event.Digest]*compiled{}} }

// compiled is a bundle ready to be evaluated.
type compiled struct {
	rules    map[cedar.PolicyID]rule
	chapters map[string]*chapter // for each action that a policy is bound to in its head
	rest     *chapter            // for every other action
}

// chapter holds the policies of a bundle that matter for an action: all but those bound to another action, in the order of the text.
type chapter struct {
	policies []*cedar.Policy
	ids      []cedar.PolicyID
	looks    []string // the attributes of the context that the policies look at
}

type rule struct {
	policy.Rule
	place int
	asks  bool
}

// All yields the policies in the order of the text, so that answers do not depend on the order of a map.
func (c *chapter) All() iter.Seq2[cedar.PolicyID, *cedar.Policy] {
	return func(yield func(cedar.PolicyID, *cedar.Policy) bool) {
		for i, p := range c.policies {
			if !yield(c.ids[i], p) {
				return
			}
		}
	}
}

// Validate implements policy.Evaluator. It caches the compiled bundle, because a checked bundle is usually one that a space is about to
// pin.
func (e *Evaluator) Validate(b policy.Bundle) error {
	if b.Verify() != nil { // it has no hash, or another's, by which nothing may be found
		_, err := compile(b)
		return err
	}
	_, err := e.bundle(b)
	return err
}

// Evaluate implements policy.Evaluator.
func (e *Evaluator) Evaluate(b policy.Bundle, f policy.Facts) (policy.Verdict, error) {
	c, err := e.bundle(b)
	if err != nil {
		return policy.Verdict{}, err
	}
	return c.evaluate(f), nil
}

// chapter returns what is evaluated for an action.
func (c *compiled) chapter(action string) *chapter {
	if found := c.chapters[action]; found != nil {
		return found
	}
	return c.rest
}

// evaluate asks every policy that can have anything to say.
func (c *compiled) evaluate(f policy.Facts) policy.Verdict {
	asked := c.chapter(f.Action)
	decision, diagnostic := cedar.Authorize(asked, nobody{}, asked.request(&f))
	if len(diagnostic.Errors) > 0 {
		first := diagnostic.Errors[0]
		return policy.Verdict{Rules: []policy.Rule{{
			ID: string(first.PolicyID), Code: policy.ReasonPolicyUnavailable,
			Reason: "the policy " + string(first.PolicyID) + " cannot be evaluated: " + first.Message,
		}}}
	}
	verdict := policy.Verdict{Rules: make([]policy.Rule, 0, len(diagnostic.Reasons))}
	asks := false
	for _, reason := range diagnostic.Reasons {
		asks = asks || c.rules[reason.PolicyID].asks
	}
	for _, reason := range diagnostic.Reasons {
		r := c.rules[reason.PolicyID]
		if decision == cedar.Allow && asks && !r.asks {
			continue // it permits, but another one that permits asks
		}
		verdict.Rules = append(verdict.Rules, r.Rule)
	}
	switch {
	case decision != cedar.Allow || len(diagnostic.Reasons) == 0:
		verdict.Outcome = policy.Deny
	case asks:
		verdict.Outcome = policy.RequireApproval
	default:
		verdict.Outcome = policy.Allow
	}
	return verdict
}

// bundle returns a bundle compiled, and compiles it if it was not seen before. The cache finds a bundle by a hash that was checked, never
// by a name.
func (e *Evaluator) bundle(b policy.Bundle) (*compiled, error) {
	e.mu.RLock()
	c := e.compiled[b.Hash]
	e.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	if err := b.Verify(); err != nil {
		return nil, err
	}
	c, err := compile(b)
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.keep(b.Hash, c)
	return c, nil
}

// keep remembers a bundle. One more than maxCompiled costs any other one its place, so that nobody who tries policies out makes all be
// compiled again.
func (e *Evaluator) keep(hash event.Digest, c *compiled) {
	if _, known := e.compiled[hash]; !known && len(e.compiled) >= maxCompiled {
		for other := range e.compiled {
			delete(e.compiled, other)
			break
		}
	}
	e.compiled[hash] = c
}

// compile parses a bundle and checks its annotations.
func compile(b policy.Bundle) (*compiled, error) {
	if len(b.Cedar) > policy.MaxBundleBytes {
		return nil, fault.New(fault.Invalid, "policy_too_large", "the policy has %d bytes; the limit is %d", len(b.Cedar), policy.MaxBundleBytes)
	}
	list, err := cedar.NewPolicyListFromBytes(b.Name, []byte(b.Cedar))
	if err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "policy_invalid", "the policy cannot be read: %.300s", strings.TrimPrefix(err.Error(),
			"parser error: "))
	}
	c := &compiled{rules: make(map[cedar.PolicyID]rule, len(list))}
	ids := make([]cedar.PolicyID, len(list))
	bound := make([]string, len(list))
	for i, p := range list {
		r, err := annotated(p, i)
		if err != nil {
			return nil, err
		}
		id := cedar.PolicyID(r.ID)
		if _, twice := c.rules[id]; twice {
			return nil, at(p, "the @id %q stands on two policies", r.ID)
		}
		c.rules[id] = r
		ids[i], bound[i] = id, boundTo(p)
	}
	c.chapters = map[string]*chapter{}
	for _, action := range append(bound, "") {
		if c.chapters[action] != nil {
			continue
		}
		made := &chapter{}
		for i, p := range list {
			if bound[i] == "" || bound[i] == action {
				made.ids, made.policies = append(made.ids, ids[i]), append(made.policies, p)
			}
		}
		made.looks = lookedAt(made.policies)
		c.chapters[action] = made
	}
	c.rest = c.chapters[""]
	return c, nil
}

// boundTo returns the action that a policy names in its head, "" where it names none or several. For any other action Cedar finds that it
// does not apply, before it looks at anything that could fail.
func boundTo(p *cedar.Policy) string {
	eq, ok := p.AST().Action.(ast.ScopeTypeEq)
	if !ok || eq.Entity.Type != actionType {
		return ""
	}
	return string(eq.Entity.ID)
}

// annotated reads the annotations of a policy.
func annotated(p *cedar.Policy, place int) (rule, error) {
	notes := p.Annotations()
	r := rule{place: place, Rule: policy.Rule{
		ID: string(notes["id"]), Code: string(notes["code"]), Reason: string(notes["reason"]), Suggestion: string(notes["suggestion"]),
	}}
	if r.ID == "" {
		r.ID = fmt.Sprintf("policy%d", place)
	}
	switch decision, ok := notes["decision"]; {
	case !ok:
	case decision == "require_approval" && p.Effect() == cedar.Permit:
		r.asks = true
	default:
		return rule{}, at(p, `@decision is %q; it may only be "require_approval", on a permit`, string(decision))
	}
	switch approvers, ok := notes["approvers"]; {
	case !ok, approvers == "1" && r.asks:
	case approvers == "2" && r.asks:
		r.Approvers = policy.MaxApprovers
	default:
		return rule{}, at(p, `@approvers is %q; it may only be "1" or "2", on a permit with @decision("require_approval")`, string(approvers))
	}
	for name := range notes {
		switch name {
		case "id", "code", "reason", "suggestion", "decision", "approvers":
		default:
			return rule{}, at(p, "the annotation @%s is not known; use @id, @code, @reason, @suggestion, @decision and @approvers", name)
		}
	}
	return r, nil
}

func at(p *cedar.Policy, format string, args ...any) error {
	pos := p.Position()
	return fault.New(fault.Invalid, "policy_invalid", "line %d, column %d: %s", pos.Line, pos.Column, fmt.Sprintf(format, args...))
}

// nobody is a store of entities without any: policies decide by the request alone, so that a decision can be made again from the log.
type nobody struct{}

func (nobody) Get(types.EntityUID) (types.Entity, bool) { return types.Entity{}, false }

// actionType is the entity type of actions.
const actionType cedar.EntityType = "Action"

// kinds are the entity types of principals.
var kinds = map[string]cedar.EntityType{"usr_": "User", "agt_": "Agent", "svc_": "Service"}
