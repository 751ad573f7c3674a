package gate_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// TestTranscripts plays the stories of testdata: after each command stand its answer and the events that it caused.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(raw))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(raw), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// play runs the commands of a transcript and returns it with fresh answers.
func play(t *testing.T, text string) string {
	t.Helper()
	p := &player{house: build(t, nil), t: t, people: map[string]id.Principal{}, names: map[string]string{}}
	p.people["owner"], p.people["agent"] = p.owner, p.agent
	var out strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "# "), line == "":
			fmt.Fprintln(&out, line)
		case strings.HasPrefix(line, "> "):
			fmt.Fprintln(&out, line)
			seen := len(p.events())
			answer := p.do(strings.TrimPrefix(line, "> "))
			for a := range strings.SplitSeq(strings.TrimSuffix(answer, "\n"), "\n") {
				fmt.Fprintln(&out, strings.TrimRight("  "+a, " "))
			}
			for _, e := range p.events()[seen:] {
				fmt.Fprintf(&out, "  + %s by %s\n", e.Type, p.name(string(e.Principal)))
			}
		}
	}
	return p.anonymous(out.String())
}

type player struct {
	*house
	t      *testing.T
	ruling policy.Ruling
	asked  policy.Approval
	people map[string]id.Principal
	names  map[string]string
}

func (p *player) name(of string) string {
	for name, who := range p.people {
		if string(who) == of {
			return name
		}
	}
	return of
}

// anonymous replaces hashes, which change with every preset, by a word.
func (p *player) anonymous(text string) string {
	for _, hash := range []event.Digest{p.ruling.Decision.Action, p.bundles["standard"].Hash, p.asked.ActionHash} {
		if !hash.IsZero() {
			text = strings.ReplaceAll(text, hash.String(), "HASH")
		}
	}
	return text
}

func (p *player) do(line string) string {
	ctx := context.Background()
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "shell":
		preset, script, _ := strings.Cut(rest, " ")
		script = strings.ReplaceAll(script, `\n`, "\n")
		p.ruling = p.judge(p.shell(preset, script))
		d := p.ruling.Decision
		answer := fmt.Sprintf("%s (%s): %s", d.Outcome, d.ReasonCode, d.Reason)
		if d.Suggestion != "" {
			answer += "\nsuggestion: " + d.Suggestion
		}
		for _, u := range d.Unsealed {
			answer += "\nnot sealed: " + u
		}
		return answer
	case "ask":
		q, err := p.Ask(ctx, p.origin(p.agent), p.ruling, policy.Ask{AgentWords: rest}, event.Batch{Workspace: ws})
		if err != nil {
			return failed(err)
		}
		p.asked = q
		return p.anonymous(fmt.Sprintf("%s, until %s\nwhat:\n%swhy: %s\nimpact: %s\nthe agent says: %s",
			q.Status, q.ExpiresAt.Format(time.DateTime), indent(q.Question.What), q.Question.Why, q.Question.Impact, q.Question.AgentWords))
	case "person":
		name, role, _ := strings.Cut(rest, " ")
		p.people[name] = p.person(name, principal.Role(role))
		return "ok"
	case "decide":
		var who, word, scope string
		var uses int
		var hours int
		_, _ = fmt.Sscan(rest, &who, &word, &scope, &uses, &hours)
		answer := policy.Answer{Decision: policy.DecisionWord(word), Scope: policy.Scope(scope), Uses: uses}
		if hours > 0 {
			answer.ExpiresAt = p.clock.Now().Add(time.Duration(hours) * time.Hour)
		}
		doc, err := p.Approvals.Decide(ctx, p.origin(p.people[who]), ws, p.asked.ID, answer)
		if err != nil {
			return failed(err)
		}
		return fmt.Sprintf("%s, scope %s, until %s", doc.Status, doc.Scope, doc.ExpiresAt.Format(time.DateTime))
	case "begin":
		approval := id.Approval("")
		if rest == "approved" {
			approval = p.asked.ID
		}
		permit, _, err := p.Begin(ctx, p.ruling, approval, p.intent(p.ruling.Action))
		if err != nil {
			return failed(err)
		}
		a, err := permit.Redeem(p.ruling.Action.Type)
		if err != nil {
			return failed(err)
		}
		return "runs " + policy.Escape(strings.Join(a.Argv, " "))
	case "wait":
		d, err := time.ParseDuration(rest)
		if err != nil {
			p.t.Fatal(err)
		}
		p.clock.move(d)
		if err := p.Approvals.Step(ctx, p.clock.Now()); err != nil {
			return failed(err)
		}
		return p.clock.Now().Format(time.DateTime)
	case "restart":
		p.restart()
		p.ruling = p.judge(p.ruling.Action)
		return "ok"
	case "kill-switch":
		who, state, _ := strings.Cut(rest, " ")
		change := p.KillSwitch.Throw
		if state == "off" {
			change = p.KillSwitch.Lift
		}
		doc, err := change(ctx, p.origin(p.people[who]), ws, "a drill")
		if err != nil {
			return failed(err)
		}
		return fmt.Sprintf("on: %t", doc.On)
	}
	p.t.Fatalf("unknown command %q", line)
	return ""
}

func failed(err error) string { return fmt.Sprintf("error %s: %v", fault.CodeOf(err), err) }

func indent(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		out.WriteString("  " + line)
	}
	return out.String()
}
