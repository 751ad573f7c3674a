package gate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"agentbox/internal/command"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/gate/approvals"
)

// consult asks the bundle about the action; of a command line it asks about every part, and the strictest answer wins.
func (g *Gate) consult(ctx context.Context, c *consideration) error {
	a := c.ruling.Action
	facts := policy.Facts{
		Principal: a.Principal, Workspace: a.Workspace, Space: a.Space, Action: a.Type, Role: string(c.who.Role), Path: a.Path, Size: a.Size,
		MaxBytes: a.MaxBytes, Overwrite: a.Overwrite, Mode: a.Mode, TimeoutMS: a.TimeoutMS, Tool: a.Tool, Method: a.Method, Target: a.Target,
	}
	var err error
	if a.Background {
		facts.TimeoutMS = 0 // nothing waits for it, so the rule about time does not apply
	}
	if facts.Delegated, err = g.delegated(ctx, c); err != nil {
		return err
	}
	if a.Type != policy.ShellExec {
		if strings.HasPrefix(a.Type, "file.") && facts.Path == "" {
			facts.Path = "."
		}
		if a.Type == policy.AgentTool {
			c.agentTool(g.Evaluator, facts)
			return nil
		}
		own := c.ownAffair()
		if (own || c.kind.Outside) && !c.registered() {
			return nil
		}
		c.ask(g.Evaluator, facts, policy.Title(a), own)
		return nil
	}
	reading, err := approvals.Read(a)
	if err != nil {
		c.soft = false
		c.deny(policy.ReasonCommandInvalid, "the command is refused: "+policy.Brief(err.Error()),
			"Correct the command, or put it into a script file and run that.")
		return nil
	}
	c.environment(&reading)
	c.attached(&reading)
	c.words = reading.Words()
	c.commands(g.Evaluator, facts, reading)
	c.files(g.Evaluator, facts, reading)
	c.doubts(reading)
	c.ruling.Decision.Unsealed = policy.EscapeAll(reading.Unsealed)
	return nil
}

// environment doubts variables of the action that change the meaning of commands, unless the space itself has them: then its owner chose
// them.
func (c *consideration) environment(r *command.Reading) {
	env := c.ruling.Action.Env
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if value, ok := c.space.Env[name]; ok && value == env[name] {
			continue
		}
		switch {
		case command.Poisonous(name):
			r.Doubts = append(r.Doubts, command.Doubt{Trait: policy.TraitPoisons, What: "the environment variable " + name})
		case command.Trap(env[name]):
			r.Doubts = append(r.Doubts, command.Doubt{Trait: policy.TraitUnresolved, What: "the environment variable " + name +
				" holds a command that arithmetic of a shell runs"})
		default:
			continue
		}
		r.Exact = false
	}
}

// attached doubts shells and interpreters that read their code from an input while they run, because nobody reads that input first. It
// doubts a shell without a script in any case.
func (c *consideration) attached(r *command.Reading) {
	if c.ruling.Action.Attach == "" {
		return
	}
	for _, one := range r.Commands {
		if one.Has(policy.TraitInterpreter) && (slices.Contains(r.Unsealed, command.InputOf+one.Name) || command.Interactive(one)) {
			r.Doubts = append(r.Doubts, command.Doubt{Trait: policy.TraitUnresolved, What: "what is typed into " + one.Name + " while it runs"})
		}
	}
}

// commands judges every simple command; a line without any is judged as the command that does nothing.
func (c *consideration) commands(e policy.Evaluator, facts policy.Facts, r command.Reading) {
	list := r.Commands
	if len(list) == 0 {
		list = []command.Command{{Name: ":"}}
	}
	for _, one := range list {
		facts.Command, facts.Args, facts.Line, facts.Traits = one.Name, one.Args, one.Line(), one.Traits
		what := one.Line()
		switch {
		case one.Name == "":
			what = "a command that is only known when it runs"
		case one.Name == "mv" && one.Has(policy.TraitDeletesTree):
			what = "what leaves " + command.Mount + " is kept nowhere: " + what
		}
		c.ask(e, facts, what, false)
	}
}

// files judges the files that the shell opens like file operations, and refuses arguments that the bundle names.
func (c *consideration) files(e policy.Evaluator, facts policy.Facts, r command.Reading) {
	facts.Size, facts.MaxBytes = 0, 0
	catch := newCatch(c.bundle.Limits.Blocked)
	for _, f := range r.Files {
		facts.Action, facts.Path = policy.FileRead, f.Path
		if f.Write {
			facts.Action = policy.FileCreate
		}
		if g, caught := catch.finds(f); caught {
			reason := fmt.Sprintf("%s may stand for a file that the policy refuses (%s)", policy.Brief(f.Path), policy.Brief(g))
			c.part(f.Path, nil, verdict{policy.RequireApproval, policy.ReasonUnresolved, reason, "Name the files."}, nil)
		}
		c.ask(e, facts, f.Path, f.Argument)
	}
}

// doubts turns the answer into a question if the command line cannot be read to its end.
func (c *consideration) doubts(r command.Reading) {
	for _, d := range r.Doubts {
		code, reason, suggestion := policy.ReasonUnresolved, "what runs is only known when it runs: ", "Write the command out."
		if d.Trait == policy.TraitPoisons {
			reason, suggestion = "it changes what later commands mean: ", "Leave it out, or set it for one program only."
		}
		c.part(d.What, []string{d.Trait}, verdict{policy.RequireApproval, code, reason + policy.Brief(d.What), suggestion}, nil)
	}
}

// shownPolicy is how the command that lists the policy names it: by the space that pins it, else by its name.
func (c *consideration) shownPolicy() string {
	if c.space.ID != "" {
		return string(c.space.ID)
	}
	return c.bundle.Name
}

// verdict is an answer with its words.
type verdict struct {
	outcome                  policy.Outcome
	code, reason, suggestion string
}

// ask puts one question to the bundle. If lenient is true, only a matching rule counts: a permitted command may get a file as an argument
// even if no rule permits to read it.
func (c *consideration) ask(e policy.Evaluator, facts policy.Facts, what string, lenient bool) {
	answer, err := e.Evaluate(c.bundle, facts)
	if err != nil {
		c.part(what, facts.Traits, verdict{policy.Deny, policy.ReasonPolicyUnavailable, "the policy cannot be evaluated: " + message(err), ""},
			nil)
		return
	}
	if !answer.Matched() {
		if lenient {
			return
		}
		answer.Outcome = policy.Deny
	}
	v := verdict{outcome: answer.Outcome}
	shown := policy.Brief(what)
	switch {
	case answer.Outcome == policy.Allow:
		v.code, v.reason = policy.ReasonDefaultAllow, "the policy "+c.bundle.Name+" permits it"
	case !answer.Matched():
		v.code, v.reason = policy.ReasonNoPolicy, fmt.Sprintf("nothing in the policy %s permits %s", c.bundle.Name, shown)
		v.suggestion = "Use another command or operation; `agentbox policy show " + c.shownPolicy() + "` lists what the policy permits."
		if hint := c.byToken(e, facts); hint != "" {
			v.suggestion = hint
		}
	default:
		v.code = policy.ReasonPolicyForbids
		if answer.Outcome == policy.RequireApproval {
			v.code = policy.ReasonPolicyAsks
		}
		rule := answer.Rules[0]
		if rule.Code != "" {
			v.code = rule.Code
		}
		v.reason, v.suggestion = fmt.Sprintf("%s: %s", shown, rule.Reason), rule.Suggestion
		if rule.Reason == "" {
			v.reason = fmt.Sprintf("%s: the rule %s of the policy %s decides", shown, rule.ID, c.bundle.Name)
		}
	}
	c.part(what, facts.Traits, v, answer.Rules)
}

// byToken describes how agents and services get an action that a person may hand on to them; "" for any other action.
func (c *consideration) byToken(e policy.Evaluator, facts policy.Facts) string {
	if c.who.Kind == id.User || !slices.Contains(policy.Givable(), facts.Action) {
		return ""
	}
	facts.Delegated = true
	answer, err := e.Evaluate(c.bundle, facts)
	if err != nil || answer.Outcome != policy.Allow || !answer.Matched() {
		return fmt.Sprintf("Let a person do it. A policy gives it to %ss under `allow.delegated` or `allow.actions`, and this one does not.",
			c.who.Kind)
	}
	return fmt.Sprintf("Ask a person for a capability token that names %s, and use that: agentbox token grant %s --action %s", facts.Action,
		strings.ToUpper(string(c.who.Kind)), facts.Action)
}

// part adds the judgement of one part to the decision: the strictest answer wins, the first of its strictness gives the words.
func (c *consideration) part(what string, traits []string, v verdict, by []policy.Rule) {
	p := policy.Part{What: policy.Brief(what), Outcome: v.outcome, Reason: v.reason, Traits: traits}
	for _, r := range by {
		p.Policies = append(p.Policies, r.ID)
		if v.outcome == policy.RequireApproval {
			c.people = max(c.people, r.Approvers)
		}
	}
	c.parts = append(c.parts, p)
	d := &c.ruling.Decision
	first := len(c.parts) == 1
	if !first && v.outcome > d.Outcome {
		return
	}
	if first || v.outcome < d.Outcome {
		*d = policy.Decision{Outcome: v.outcome, ReasonCode: v.code, Reason: v.reason, Suggestion: v.suggestion}
	}
	for _, name := range p.Policies {
		if !slices.Contains(d.Policies, name) {
			d.Policies = append(d.Policies, name)
		}
	}
}
