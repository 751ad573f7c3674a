package cmdline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/cli/term"
)

// Open returns the approvals in a state, of a room where one is named; without a state, those that wait.
func Open(ctx context.Context, api *client.Client, status string, in id.Room) ([]policy.Approval, error) {
	states := []string{status}
	if status == "" {
		states = []string{string(policy.Pending), string(policy.Held)}
	}
	found := []policy.Approval{}
	for _, state := range states {
		part, err := All(func(cursor string) ([]policy.Approval, string, error) {
			page, err := api.Approvals(ctx, client.ApprovalFilter{Status: state, Room: in, Page: client.Page{Cursor: cursor, Limit: 100}})
			return page.Approvals, page.Next, err
		})
		if err != nil {
			return nil, err
		}
		found = append(found, part...)
	}
	return found, nil
}

// Waits reports whether an approval has no final answer yet.
func Waits(a policy.Approval) bool { return a.Open() }

// Missing says whose approval is still missing where policy demands more than one.
func Missing(a policy.Approval) string {
	if n := a.Approvers - len(a.Assents); n > 1 {
		return fmt.Sprintf("%d other persons have to approve it too", n)
	}
	return "another person has to approve it too"
}

// Assents names the people who approved, where the policy demands more than one person.
func Assents(a policy.Approval) string {
	if a.Approvers < 2 {
		return ""
	}
	said := fmt.Sprintf("%d persons needed", a.Approvers)
	for _, x := range a.Assents {
		said += "; approved by " + string(x.By)
	}
	return said
}

// WriteQuestion writes a question to a person: first why, and what it can change, then what exactly would run. The agent's own words
// about it stands apart and is marked.
func WriteQuestion(p *term.Printer, a policy.Approval) {
	p.Line("%s  %s", p.Paint(term.Bold, term.OneLine(a.Title, 0)), p.Paint(term.Faint, string(a.ID)))
	p.Fields("why", a.Question.Why, "impact", a.Question.Impact, "not sealed", strings.Join(a.Question.Unsealed, "; "), "exactly",
		a.Question.What,
		"as template", a.Question.Template)
	if a.Question.AgentTitle != "" {
		p.Line("%s", p.Paint(term.Faint, "the agent's own title, not checked: "+term.OneLine(a.Question.AgentTitle, 200)))
	}
	if a.Question.AgentWords != "" {
		p.Line("%s", p.Paint(term.Faint, "the agent's own words, not checked: "+term.OneLine(a.Question.AgentWords, 400)))
	}
}

// Own returns the question as the session shows it to the person whose line caused it.
func (i *Invocation) Own(a policy.Approval) policy.Approval {
	if i.Asking == nil {
		return a
	}
	return i.Asking(a)
}

// always is how long an answer holds that a person at a terminal gives for later questions, too.
const always = 24 * time.Hour

// Answer asks the person at the terminal and sends the answer; false means that there was none.
func (i *Invocation) Answer(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) {
	a, err := api.Approval(ctx, approval)
	if err != nil || !Waits(a) {
		return err == nil, err
	}
	p := i.Printer(i.Err)
	p.JSON = false
	p.Line("")
	WriteQuestion(p, i.Own(a))
	for {
		line, err := i.ask(p.Paint(term.Bold, "Allow it? [y]es, [a]lways in this room for a day, [n]o, or [l]ater: "))
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(i.Err)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		answer := client.Answer{Decision: "approve", Saw: &a.ActionHash}
		switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), " "); word {
		case "y", "yes":
		case "a", "always":
			answer.Scope, answer.ExpiresAt, answer.Uses = policy.ScopeRoom, i.Clock.Now().Add(always), policy.MaxStandingUses
		case "n", "no":
			answer.Decision = "deny"
		case "l", "later":
			return false, nil
		default:
			continue
		}
		decided, err := api.Decide(ctx, approval, answer)
		switch {
		case answer.Scope != "" && fault.KindOf(err) == fault.Invalid:
			p.Line("%s", p.Paint(term.Yellow, "not always: "+term.OneLine(err.Error(), 300)))
			continue
		case err == nil && Waits(decided):
			p.Line("%s", p.Paint(term.Yellow, Missing(decided)))
			return false, nil
		}
		return err == nil, err
	}
}

// ask shows a prompt and reads one line of the person's input.
func (i *Invocation) ask(prompt string) (string, error) {
	if i.Answers != nil {
		return i.Answers(prompt)
	}
	fmt.Fprint(i.Err, prompt)
	return i.ReadLine()
}

// ReadLine reads one line of the person's input.
func (i *Invocation) ReadLine() (string, error) {
	if i.Lines == nil {
		i.Lines = bufio.NewReader(i.In)
	}
	line, err := i.Lines.ReadString('\n')
	if line != "" && errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}
