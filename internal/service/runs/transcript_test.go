package runs_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite the transcripts")

// TestTranscripts plays the stories of testdata: below each command stand its answer and the events that it caused.
func TestTranscripts(t *testing.T) {
	t.Parallel()
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
			if diff := gocmp.Diff(string(raw), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// player plays one transcript.
type player struct {
	*testkit.Stack
	t      *testing.T
	spaces map[string]id.Space
	space  id.Space // the one that was named last
	run    id.Run   // the one that was started last
	last   runs.Request
	seen   uint64
	names  map[string]string
	counts map[string]int
}

// play runs the commands of a transcript, lines that begin with >, with their operations, lines that begin with |, and returns it with
// fresh answers. Lines that begin with # are for the reader.
func play(t *testing.T, text string) string {
	t.Helper()
	p := &player{Stack: open(t), t: t, spaces: map[string]id.Space{}, names: map[string]string{}, counts: map[string]int{}}
	p.names[string(p.Owner)], p.names[string(principal.System)] = "owner", "system"
	p.events()
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			fmt.Fprintln(&out, line)
			continue
		}
		if !strings.HasPrefix(line, "> ") {
			continue // an old answer
		}
		fmt.Fprintln(&out, line)
		var operations []string
		for i+1 < len(lines) && strings.HasPrefix(lines[i+1], "| ") {
			i++
			fmt.Fprintln(&out, lines[i])
			operations = append(operations, strings.TrimPrefix(lines[i], "| "))
		}
		answer := p.do(strings.Fields(line)[1:], "["+strings.Join(operations, ",")+"]")
		for _, a := range append(answer, p.events()...) {
			fmt.Fprintln(&out, "  "+p.plain(a))
		}
	}
	p.Verify()
	return out.String()
}

// do does one command and returns its answer.
func (p *player) do(words []string, operations string) []string {
	p.t.Helper()
	rest := strings.Join(words[1:], " ")
	ctx := p.Context()
	switch words[0] {
	case "space": // space NAME: make a space that lives for a week
		p.space = p.SpaceOf(spaces.Request{Name: words[1], TTL: 7 * 24 * time.Hour}).ID
		p.spaces[words[1]] = p.space
	case "in": // in NAME: what follows is done in that space
		p.space = p.spaces[words[1]]
	case "run": // run [KEY]: start and wait until it ends or waits for a person
		return append(p.start(rest, operations), p.rest()...)
	case "start": // start [TEXT]: start and wait until it has printed the text
		answer := p.start("", operations)
		if rest != "" {
			p.Prints(p.run, rest)
		}
		return answer
	case "read": // read FILE ...: run with context files
		p.last = runs.Request{Workspace: testkit.WS, Space: p.space, Message: p.Message(operations), Context: words[1:]}
		return append(p.submit(), p.rest()...)
	case "resubmit": // resubmit: the last request again, with other operations if there are any
		if operations != "[]" {
			p.last.Message = p.Message(operations)
		}
		return append(p.submit(), p.rest()...)
	case "approve", "deny", "hold":
		p.Decide(p.run, policy.DecisionWord(words[0]), rest)
		return p.rest()
	case "try": // try DECISION: answer, and show why it is refused
		_, approval := p.Find(p.run).Pending()
		_, err := p.Gate.Approvals.Decide(ctx, p.Origin, testkit.WS, approval, policy.Answer{Decision: policy.DecisionWord(words[1])})
		return append(p.try(err), p.rest()...)
	case "tick": // tick DURATION: let time pass
		d, err := time.ParseDuration(words[1])
		p.must(err)
		p.Tick(d)
		return p.rest()
	case "cancel":
		return append(p.try(p.Runs.Cancel(ctx, p.Origin, testkit.WS, p.run, rest)), p.rest()...)
	case "destroy":
		_, err := p.Spaces.Ending.Destroy(ctx, p.Origin, testkit.WS, p.space)
		return p.try(err)
	case "restart":
		p.Restart()
		return p.rest()
	case "die": // die TYPE N: the daemon dies when the Nth event of that type from now on is recorded
		n, err := strconv.Atoi(words[2])
		p.must(err)
		p.Log.DieAt(func(r event.Receipt) testkit.Death {
			for _, e := range r.Events {
				if e.Type == words[1] {
					n--
				}
			}
			if n > 0 {
				return testkit.Survive
			}
			return testkit.Unconfirmed
		})
	case "crash": // crash: wait until the daemon is dead, and start the next one
		<-p.Log.Gone()
		p.Crash()
		return p.rest()
	case "kill-switch":
		var err error
		if words[1] == "on" {
			_, err = p.Gate.KillSwitch.Throw(ctx, p.Origin, testkit.WS, "")
		} else {
			_, err = p.Gate.KillSwitch.Lift(ctx, p.Origin, testkit.WS, "")
		}
		return append(p.try(err), p.rest()...)
	case "kill-init": // the space ends by itself
		doc, err := p.Spaces.Catalog.Space(ctx, testkit.WS, p.space)
		p.must(err)
		instance, err := p.Spaces.Living.Instance(ctx, doc)
		p.must(err)
		p.must(instance.Close())
	case "look": // look N: the run that was the Nth to be named
		for name, short := range p.names {
			if short == "run_"+words[1] {
				p.run = id.Run(name)
			}
		}
	case "results":
		return p.results()
	case "frames":
		return p.frames()
	case "cat":
		return []string{strconv.Quote(p.File(p.space, rest))}
	default:
		p.t.Fatalf("there is no command %q", words[0])
	}
	return nil
}

func (p *player) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *player) try(err error) []string {
	if err == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s %s: %v", fault.KindOf(err), fault.CodeOf(err), err)}
}

func (p *player) start(key, operations string) []string {
	p.t.Helper()
	p.last = runs.Request{Workspace: testkit.WS, Space: p.space, Message: p.Message(operations), Key: key}
	return p.submit()
}

func (p *player) submit() []string {
	p.t.Helper()
	doc, err := p.Runs.Start(p.Context(), p.Origin, p.last)
	if err != nil {
		return p.try(err)
	}
	p.run = doc.ID
	return nil
}

// rest waits until the last run rests, or the daemon has died.
func (p *player) rest() []string {
	p.t.Helper()
	if p.run == "" {
		return nil
	}
	doc, alive := p.RestOrDeath(p.run)
	if !alive {
		return []string{"the daemon is dead"}
	}
	return []string{fmt.Sprintf("%s is %s", p.run, doc.Status)}
}

func (p *player) results() []string {
	var lines []string
	for _, r := range p.Results(p.run) {
		lines = append(lines, r.OperationID+" "+brief(r))
	}
	return lines
}

// frames are the frames of a run. How its output falls into frames, and which of the two channels comes first, is the kernel's: each
// channel is shown as a whole.
func (p *player) frames() []string {
	var lines []string
	var stdout, stderr string
	flush := func() {
		for _, c := range []struct {
			name string
			text *string
		}{{"stdout", &stdout}, {"stderr", &stderr}} {
			if *c.text != "" {
				lines = append(lines, c.name+" "+strconv.Quote(*c.text))
				*c.text = ""
			}
		}
	}
	for f, err := range p.Runs.Frames.Follow(p.Context(), testkit.WS, p.run, 1) {
		p.must(err)
		switch f.Kind {
		case livestream.Stdout:
			stdout += string(f.Data)
			continue
		case livestream.Stderr:
			stderr += string(f.Data)
			continue
		}
		flush()
		line := f.Kind + " " + f.Operation
		switch f.Kind {
		case livestream.Result:
			var r run.Result
			p.must(json.Unmarshal(f.Data, &r))
			line += " " + r.Type
		case livestream.Complete:
			var m run.Events
			p.must(json.Unmarshal(f.Data, &m))
			line += m.Status
		}
		lines = append(lines, line)
	}
	return lines
}

// brief is a result in a line.
func brief(r run.Result) string {
	line := r.Type
	if r.Success != nil {
		line += fmt.Sprintf(" success=%t", *r.Success)
	}
	if r.ExitCode != nil {
		line += fmt.Sprintf(" exit=%d", *r.ExitCode)
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"content", r.Content}, {"stdout", r.Stdout}, {"stderr", r.Stderr}} {
		if f.value != nil && *f.value != "" {
			line += " " + f.name + "=" + strconv.Quote(*f.value)
		}
	}
	for _, f := range []struct{ name, value string }{{"limit", r.Limit}, {"reason", r.ReasonCode}, {"category", r.Category},
		{"error", r.Error}, {"message", r.Message}} {
		if f.value != "" {
			line += fmt.Sprintf(" %s=%q", f.name, f.value)
		}
	}
	return line
}

// events returns the events since the last call, each in a line. Events that are made once and say nothing about runs are left out.
func (p *player) events() []string {
	p.t.Helper()
	var lines []string
	all := p.Events(p.seen)
	slices.SortStableFunc(all, func(a, b event.Event) int { // a switch is thrown first and recorded after: its event may come late
		return cmp.Compare(first(a), first(b))
	})
	for _, e := range all {
		p.seen = max(p.seen, e.Seq)
		if what, shown := p.what(e); shown {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("+ %s by %s %s", e.Type, e.Principal, what), " "))
		}
	}
	return lines
}

func first(e event.Event) int {
	if e.Type == policy.KillSwitchThrownType {
		return 0
	}
	return 1
}

// what says in a line what an event says.
func (p *player) what(e event.Event) (string, bool) {
	var d struct {
		Operation string      `json:"operation_id"`
		Answer    string      `json:"answer"`
		Decision  any         `json:"decision"`
		Status    string      `json:"status"`
		Reason    string      `json:"reason"`
		Summary   string      `json:"summary"`
		Error     string      `json:"error"`
		Title     string      `json:"title"`
		Approval  string      `json:"approval_id"`
		Result    *run.Result `json:"result"`
		Tool      string      `json:"tool_name"`
		Kind      string      `json:"result_type"`
		Space     id.Space    `json:"space_id"`
	}
	p.must(json.Unmarshal(e.Data, &d))
	switch e.Type {
	case run.EventCreated, run.EventStarted:
		return string(e.Run), true
	case run.EventCompleted, run.EventFailed, run.EventCancelled:
		return strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", e.Run, d.Summary, d.Error), "; "), true
	case run.EventInvoked:
		return fmt.Sprintf("%s %s", d.Operation, d.Tool), true
	case run.EventSucceeded, run.EventErred, run.EventUnknown:
		if d.Result == nil {
			return d.Operation + " " + d.Kind + " stored", true
		}
		return d.Operation + " " + brief(*d.Result), true
	case run.EventSuspended:
		return d.Operation + " " + d.Approval, true
	case run.EventResumed:
		return d.Operation + " " + d.Answer, true
	case policy.ApprovalRequestedType:
		return e.EntityID + " " + d.Title, true
	case policy.ApprovalDecidedType:
		return e.EntityID + " " + d.Status, true
	case policy.ApprovalWithdrawnType:
		return e.EntityID + " " + d.Reason, true
	case policy.ApprovalUsedType, policy.ApprovalExpiredType:
		return e.EntityID, true
	case policy.DeniedType, policy.RequiresApprovalType:
		return d.Operation, true
	case policy.KillSwitchThrownType, policy.KillSwitchLiftedType:
		return "", true
	case space.EventCreated, space.EventReady, space.EventStarted:
		return string(d.Space), e.Type == space.EventStarted
	case space.EventDestroyed:
		return string(d.Space) + " " + d.Reason, true
	}
	return "", false
}

var identifier = regexp.MustCompile(`\b(run|spc|appr|step|usr|agt|svc)_[0-9A-HJKMNP-TV-Z]{26}\b`)

// plain names identifiers by the order in which they appear.
func (p *player) plain(line string) string {
	return identifier.ReplaceAllStringFunc(line, func(found string) string {
		if p.names[found] == "" {
			kind := strings.SplitN(found, "_", 2)[0]
			if kind == "agt" {
				kind = "agent"
			}
			p.counts[kind]++
			p.names[found] = fmt.Sprintf("%s_%d", kind, p.counts[kind])
		}
		return p.names[found]
	})
}
