package external

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"agentbox/internal/domain/blueprint"
)

// bubble is the clock of a synctest bubble.
type bubble struct{}

func (bubble) Now() time.Time { return time.Now() }

func (bubble) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// TestTheTimeOfARunStandsStill while questions about tools are open, and goes on afterwards.
func TestTheTimeOfARunStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &session{Engine: &Engine{Clock: bubble{}}, waits: make(chan int)}
		s.def.Limits.Seconds = 10
		ctx, end := context.WithCancelCause(t.Context())
		defer end(nil)
		go s.watch(ctx, end)
		time.Sleep(6 * time.Second)
		s.waits <- 1
		time.Sleep(time.Hour)
		s.waits <- 1
		time.Sleep(72 * time.Hour)
		s.waits <- -1
		time.Sleep(time.Hour)
		s.waits <- -1
		time.Sleep(3 * time.Second)
		s.waits <- 1
		time.Sleep(time.Hour)
		s.waits <- -1
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatalf("it ended early: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), errTime) {
			t.Errorf("it did not end: %v", context.Cause(ctx))
		}
	})
}

// TestNobodyAsksBeforeOrAfterTheProgram holds when questions about tools are answered, and which names a tool may have.
func TestNobodyAsksBeforeOrAfterTheProgram(t *testing.T) {
	s := &session{Engine: &Engine{Clock: bubble{}}, def: agent(blueprint.Adapter{Program: custom}), waits: make(chan int)}
	use := Use{ID: "a", Tool: "sh", Input: json.RawMessage(`{}`)}
	if _, err := s.permit(t.Context(), use); !errors.Is(err, errNotStarted) {
		t.Errorf("before: %v", err)
	}
	s.started(t.Context(), "tc_1")
	for _, name := range []string{"", "a b", "ü", strings.Repeat("x", 128)} {
		use.Tool = name
		if _, err := s.permit(t.Context(), use); !errors.Is(err, errToolName) {
			t.Errorf("%q: %v", name, err)
		}
	}
	s.over()
	use.Tool = "sh"
	if _, err := s.permit(t.Context(), use); !errors.Is(err, errNotStarted) {
		t.Errorf("after: %v", err)
	}
}

// TestCommandsThatAsk holds that a program whose questions go to the gate has no flag by which it would not ask, and no time of its own.
func TestCommandsThatAsk(t *testing.T) {
	for program, want := range map[string]string{
		claude: `--permission-mode default --settings '{"hooks":{"PreToolUse":[{"matcher":"*"`, codex: "app-server", opencode: "opencode acp",
		custom: "x",
	} {
		for _, how := range []string{"", byStdin} {
			a := blueprint.Adapter{Program: program, Permissions: blueprint.PermissionsAsk, EnvInjection: how}
			if program == custom {
				a.Command, a.Wire = []string{"x"}, blueprint.WireChat
			}
			b := agent(a)
			b.Models[blueprint.DefaultTask] = strings.Repeat("m", 128)
			op, err := commandOf(b, "t", 65535)
			if err != nil || !strings.Contains(op.Command, want) || strings.Contains(op.Command, "dangerously") ||
				strings.Contains(op.Command, "--auto") || strings.Contains(fmt.Sprint(op.Env), `"permission":"allow"`) ||
				op.TimeoutMS != nil || op.Env[varAsk] != "http://127.0.0.1:65535"+PermissionsPath {
				t.Errorf("%s: %s %v, %v", program, op.Command, op.Env, err)
			}
		}
		if op, err := commandOf(agent(blueprint.Adapter{Program: claude, Permissions: blueprint.PermissionsOff}), "t", 1); err != nil ||
			op.Env[varAsk] != "" || op.TimeoutMS == nil || !strings.Contains(op.Command, "dangerously") {
			t.Errorf("off: %s %v, %v", op.Command, op.Env, err)
		}
	}
	var settings map[string]any
	if err := json.Unmarshal([]byte(hookSettings()), &settings); err != nil {
		t.Error(err)
	}
}

// judge is the daemon's side of the questions: it allows tools by their names and notes what it was asked.
type judge struct {
	mu     sync.Mutex
	asked  []string
	busy   int // how often it has no place
	status int // of its answers; 0 for 200
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var q struct {
		Tool  string
		Input struct{ Command string }
	}
	_ = json.Unmarshal(raw, &q)
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.busy > 0:
		j.busy--
		http.Error(w, `{"error":{"message":"later"}}`, http.StatusTooManyRequests)
		return
	case j.status != 0:
		http.Error(w, `{"allow":true,"error":{"message":"out of order"}}`, j.status)
		return
	}
	j.asked = append(j.asked, string(raw))
	answer := `{"allow":true}`
	if strings.Contains(q.Input.Command, "rm") || strings.Contains(q.Tool, "Change") {
		answer = `{"allow":false,"reason":"not today"}`
	}
	_, _ = io.WriteString(w, answer)
}

// node starts a bridge. It skips the test where there is no node; in CI the test fails there.
func (j *judge) node(t *testing.T, stdin string, args ...string) (stdout string, err error) {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the bridges run in node, which is missing: install Node.js")
		}
		t.Skip("the bridges run in node, which is missing: install Node.js")
	}
	s := httptest.NewServer(j)
	t.Cleanup(s.Close)
	c := exec.CommandContext(t.Context(), "node", args...)
	c.Env = append(os.Environ(), varAsk+"="+s.URL+PermissionsPath, varTask+"=the task", varModel+"=m1")
	c.Stdin, c.Stderr = strings.NewReader(stdin), t.Output()
	raw, err := c.Output()
	return string(raw), err
}

// TestTheHookOfClaude holds what the hook answers, and that each failure is a refusal.
func TestTheHookOfClaude(t *testing.T) {
	said := func(decision, reason string) string {
		if reason != "" {
			reason = `,"permissionDecisionReason":"` + reason
		}
		return `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"` + decision + `"` + reason
	}
	question := func(command string) string {
		return `{"session_id":"s","tool_name":"Bash","tool_input":{"command":"` + command + `"},"tool_use_id":"toolu_1","cwd":"/"}`
	}
	for name, c := range map[string]struct {
		judge *judge
		stdin string
		want  string
	}{
		"allowed":      {&judge{}, question("ls"), said("allow", "")},
		"denied":       {&judge{}, question("rm"), said("deny", "not today")},
		"a busy one":   {&judge{busy: 2}, question("ls"), said("allow", "")},
		"out of order": {&judge{status: 500}, question("ls"), said("deny", "out of order")},
	} {
		out, err := c.judge.node(t, c.stdin, "-e", script(askJS, hookJS))
		if err != nil || !strings.HasPrefix(out, c.want) {
			t.Errorf("%s: %s, %v", name, out, err)
		}
		if want := `{"id":"toolu_1","tool":"Bash","input":{"command":"`; c.judge.status == 0 &&
			(len(c.judge.asked) != 1 || !strings.HasPrefix(c.judge.asked[0], want)) {
			t.Errorf("%s: it asked %q", name, c.judge.asked)
		}
	}
	if out, err := (&judge{}).node(t, "{", "-e", script(askJS, hookJS)); err == nil || strings.Contains(out, "allow") {
		t.Errorf("a question that is none: %s, %v", out, err) // || exit 2
	}
	away := "process.env." + varAsk + `="http://127.0.0.1:1/";`
	out, err := (&judge{}).node(t, question("ls"), "-e", away+script(askJS, hookJS))
	if err != nil || !strings.HasPrefix(out, said("deny", "the daemon did not answer")) {
		t.Errorf("no daemon: %s, %v", out, err)
	}
}

// TestBridges lets scripted programs that speak the protocols ask about tools through their bridges: the answers and the reasons of
// refusals reach the program, and what it says is what the report is read from.
func TestBridges(t *testing.T) {
	for program, js := range map[string]string{opencode: opencodeJS, codex: codexJS} {
		t.Run(program, func(t *testing.T) {
			j := &judge{}
			out, err := j.node(t, "", "-e", script(askJS, rpcJS, js), "node", "testdata/"+program+".js")
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			report, failed := reportOf(program, out)
			if want := "ls: allowed; rm: denied; told: The use of "; failed || !strings.HasPrefix(report, want) ||
				!strings.Contains(report, "was refused. not today\nGo on without it.") {
				t.Errorf("got %q, want %q; %s", report, want, out)
			}
			tool := map[string]string{opencode: "bash", codex: "commandExecution"}[program]
			if len(j.asked) != 2 || !strings.Contains(j.asked[0], `"tool":"`+tool+`"`) {
				t.Errorf("it asked %q", j.asked)
			}
			broken, err := j.node(t, "", "-e", script(askJS, rpcJS, js), "node", "testdata/"+program+".js", "broken")
			if report, failed := reportOf(program, broken); err == nil || !failed || !strings.Contains(report, "no model") {
				t.Errorf("a turn that failed: %q, %v; %s", report, err, broken)
			}
			if dies, err := j.node(t, "", "-e", script(askJS, rpcJS, js), "node", "-e", "process.exit(0)"); err == nil {
				t.Errorf("a program that ends early: %s", dies)
			}
		})
	}
}
