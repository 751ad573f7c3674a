package cmdline

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
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
	writeWords(p, a)
}

// writeWords writes the agent's own words about a question, marked as such.
func writeWords(p *term.Printer, a policy.Approval) {
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

// Reply is the effect of a line that a person typed as the answer to a question.
type Reply int

// The replies.
const (
	Unclear Reply = iota // the line is no answer, or it only asked for details
	Left                 // the person leaves the question open
	Half                 // the answer counts, and another person has to approve too
	Decided              // the question has its final answer
)

// Asked is a question that this terminal shows to a person.
type Asked struct {
	policy.Approval
	i    *Invocation
	api  *client.Client
	p    *term.Printer
	room string // its title; "" if the question belongs to no room
}

// Asked reads a question. It returns nil if the question does not wait for an answer any more.
func (i *Invocation) Asked(ctx context.Context, api *client.Client, approval id.Approval) (*Asked, error) {
	a, err := api.Approval(ctx, approval)
	if err != nil || !Waits(a) {
		return nil, err
	}
	q := &Asked{Approval: a, i: i, api: api, p: i.Printer(i.Err), room: string(a.Room)}
	q.p.JSON = false
	if a.Room != "" {
		if found, err := api.Room(ctx, a.Room); err == nil && found.Title != "" { // else its id names it
			q.room = term.OneLine(found.Title, 40)
		}
	}
	return q, nil
}

// Show writes the parts of the question that matter for the answer. With here it also says what "always" means, for a person who answers
// at this terminal. Details are the rest.
func (q *Asked) Show(here bool) {
	a, p := q.i.Own(q.Approval), q.p
	where, standing := "", ""
	if a.Space != "" {
		where = "space " + string(a.Space)
	}
	if q.room != "" {
		where = strings.TrimPrefix(where+", room "+q.room, ", ")
	}
	if q.room != "" && here {
		standing = fmt.Sprintf("a allows exactly this to all agents of the room %s, for a day, at most %d times;\ntake it back: %s", q.room,
			policy.MaxStandingUses, takeBack(a.ID))
	}
	p.Line("")
	p.Line("%s  %s", p.Paint(term.Bold, term.OneLine(a.Title, 0)), p.Paint(term.Faint, string(a.ID)))
	p.Fields("exactly", essential(a.Question.What), "not sealed", strings.Join(a.Question.Unsealed, "; "), "where", where,
		"why", a.Question.Why, "impact", a.Question.Impact, "always", standing)
	writeWords(p, a)
}

// takeBack returns the command that ends the standing approval that the answer to a question made.
func takeBack(a id.Approval) string { return "agentbox approvals revoke " + string(a) }

// unsaid are the fields of an action that a short question leaves out: ids that say where it came from, and the time limit. The question
// says the space and the room in its own line.
var unsaid = []string{"type", "timeout_ms", "space_id", "principal_id", "operation_id", "policy_bundle", "room_id", "run_id", "step_id",
	"workspace_id", "fence", "capability_token_id"}

// essential returns the fields of a rendered action that a person has to see before they answer. It leaves out unsaid fields, the size and
// hash of the action, and argv where that is only the command in a shell. All other lines remain, whatever their number.
func essential(what string) string {
	var fields []string // each with its further lines
	for line := range strings.Lines(what) {
		if n := len(fields); n > 0 && strings.HasPrefix(line, "  | ") {
			fields[n-1] += line
			continue
		}
		fields = append(fields, line)
	}
	value := func(name string) string {
		for _, f := range fields {
			if text, is := strings.CutPrefix(f, name+":"); is {
				return text
			}
		}
		return ""
	}
	command := value("command")
	shell := command != "" && value("argv[0]") == " \"/bin/bash\"\n" && value("argv[1]") == " \"-c\"\n" &&
		command == value("argv[2]") && value("argv[3]") == ""
	var shown strings.Builder
	for n, f := range fields {
		name, _, is := strings.Cut(f, ":")
		switch {
		case n == 0 && len(fields) > 1 && measure.MatchString(fields[1]): // the title, which stands above
		case measure.MatchString(f), is && slices.Contains(unsaid, name):
		case name == "zone" && value(name) == " "+strconv.Quote(string(event.Supervised))+"\n": // as most actions are
		case shell && strings.HasPrefix(name, "argv["):
		default:
			shown.WriteString(f)
		}
	}
	return shown.String()
}

// measure matches the line of a rendered action that says its size and hash.
var measure = regexp.MustCompile(`^\d+ bytes, sha256:[0-9a-f]+\n$`)

// Ask asks the person until their line is an answer. It returns Left at the end of the input.
func (q *Asked) Ask(ctx context.Context) (Reply, error) {
	prompt := "Allow it? [y]es, [n]o, [l]ater, [d]etails: "
	if q.room != "" {
		prompt = "Allow it? [y]es, [a]lways for all agents in room " + q.room + ", [n]o, [l]ater, [d]etails: "
	}
	for {
		line, err := q.i.ask(q.p.Paint(term.Bold, prompt))
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(q.i.Err)
			return Left, nil
		}
		if err != nil {
			return Unclear, err
		}
		if reply, err := q.Reply(ctx, line); err != nil || reply != Unclear {
			return reply, err
		}
	}
}

// IsReply reports whether a line is an answer to a question, or asks for its details.
func IsReply(line string) bool {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes", "a", "always", "n", "no", "l", "later", "d", "details":
		return true
	}
	return false
}

// Reply takes a line of the person: it sends an answer, or shows the details. It returns Unclear if the question has to be asked again.
func (q *Asked) Reply(ctx context.Context, line string) (Reply, error) {
	answer := client.Answer{Decision: "approve", Saw: &q.ActionHash}
	switch word, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(line)), " "); word {
	case "y", "yes":
	case "a", "always":
		answer.Scope, answer.ExpiresAt, answer.Uses = policy.ScopeRoom, q.i.Clock.Now().Add(always), policy.MaxStandingUses
	case "n", "no":
		answer.Decision = "deny"
	case "l", "later":
		return Left, nil
	case "d", "details":
		WriteQuestion(q.p, q.i.Own(q.Approval))
		return Unclear, nil
	case "":
		return Unclear, nil
	default:
		choices := "y, a, n, d and l"
		if q.room == "" {
			choices = "y, n, d and l"
		}
		q.p.Line("%s", q.p.Paint(term.Faint, "the answers are "+choices))
		return Unclear, nil
	}
	decided, err := q.api.Decide(ctx, q.ID, answer)
	switch {
	case answer.Scope != "" && fault.KindOf(err) == fault.Invalid:
		q.p.Line("%s", q.p.Paint(term.Yellow, "not always: "+term.OneLine(err.Error(), 300)))
		return Unclear, nil
	case fault.CodeOf(err) == policy.ErrAlreadyDecided.Code:
		if err = DecidedBefore(ctx, q.api, q.ID, err); fault.CodeOf(err) != codeAnswered {
			return Unclear, err
		}
		q.p.Line("%s", q.p.Paint(term.Yellow, "your answer was not needed: "+term.OneLine(err.Error(), 200)))
	case err != nil:
		return Unclear, err
	case Waits(decided):
		q.p.Line("%s", q.p.Paint(term.Yellow, Missing(decided)))
		return Half, nil
	case answer.Scope != "":
		q.p.Line("%s", q.p.Paint(term.Faint, "allowed for all agents of the room "+q.room+" until "+term.Moment(answer.ExpiresAt)+
			"\ntake it back: "+takeBack(q.ID)))
	}
	return Decided, nil
}

// codeAnswered is the code of an answer to a question that somebody has answered.
const codeAnswered = "approval_answered"

// DecidedBefore returns an error that says how a question stands, if the error of an answer is that it was decided before.
func DecidedBefore(ctx context.Context, api *client.Client, of id.Approval, err error) error {
	if fault.CodeOf(err) != policy.ErrAlreadyDecided.Code {
		return err
	}
	a, failed := api.Approval(ctx, of)
	if failed != nil || Waits(a) {
		return err
	}
	return fault.New(fault.Conflict, codeAnswered, "%s is %s already", of, a.Status).With("by whom, and why: agentbox approvals show " +
		string(of))
}

// Answer asks the person at the terminal and sends the answer; false means that there was none.
func (i *Invocation) Answer(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) {
	q, err := i.Asked(ctx, api, approval)
	if err != nil || q == nil {
		return err == nil, err
	}
	if i.Aside != nil {
		defer i.Aside()()
	} else if err := i.DropTyped(); err != nil {
		return false, err
	}
	q.Show(true)
	reply, err := q.Ask(ctx)
	return reply == Decided, err
}

// DropTyped drops what was typed at a terminal by now: a question that is shown next is not answered by it. The lines of another input are
// answers in their order, whenever they come.
func (i *Invocation) DropTyped() error {
	if !i.Asks || i.Forget == nil {
		return nil
	}
	if i.Lines != nil && i.Answers == nil { // else somebody reads them just now
		i.Lines.Reset(i.In)
	}
	if err := i.Forget(); err != nil {
		return fault.Wrap(err, fault.Conflict, "terminal_unusable", "what was typed before the question cannot be told from its answer")
	}
	return nil
}

// ask shows a prompt and reads one line of the person's input. A line that no terminal has shown is shown behind the prompt.
func (i *Invocation) ask(prompt string) (line string, err error) {
	if i.Answers != nil {
		line, err = i.Answers(prompt)
	} else {
		fmt.Fprint(i.Err, prompt)
		line, err = i.ReadLine()
	}
	if !i.Asks {
		fmt.Fprintln(i.Err, term.OneLine(strings.TrimSpace(line), 80))
	}
	return line, err
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
