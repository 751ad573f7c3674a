package bench

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
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/service/agents"
	"agentbox/internal/service/tools"
)

// The rows of agents are measured at a scripted model: a server of the wire of chat completions in this process, which notes when each
// request came and when its answer had gone out. So what lies between is the client's own work, be it the daemon's loop, which records
// each step durably, or a peer's, which records nothing. The daemon is a process of its own.

// scriptedModel calls a tool in each of its answers but the last.
type scriptedModel struct {
	*httptest.Server
	calls int           // answers with a tool call, for each conversation
	hold  chan struct{} // no answer comes before it is closed; nil for at once

	mu    sync.Mutex // guards the rest
	talks map[string]*dialogue
	came  chan struct{} // gets one for each request, if there is room
}

// dialogue is what is noted of a conversation, by its turns.
type dialogue struct{ asked, answered []time.Time }

func serveModel(b *testing.B, calls int, hold chan struct{}) *scriptedModel {
	b.Helper()
	m := &scriptedModel{calls: calls, hold: hold, talks: map[string]*dialogue{}, came: make(chan struct{}, 1<<16)}
	m.Server = httptest.NewServer(m)
	b.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// ServeHTTP streams the next answer of a conversation. The first piece is a word that names the conversation and the turn.
func (m *scriptedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	now := time.Now()
	var q struct {
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, turn := "", 0
	for _, message := range q.Messages {
		if message.Role == "user" && name == "" {
			name = string(message.Content)
		}
		if message.Role == "assistant" {
			turn++
		}
	}
	tool, arguments := "", ""
	for _, t := range q.Tools {
		if tool = t.Function.Name; tool == "read_result" { // the loop's own, whose work is nothing but its record
			arguments = fmt.Sprintf(`{"id":"none","offset":%d}`, turn)
			break
		}
		arguments = fmt.Sprintf(`{"n":%d}`, turn)
	}
	m.mu.Lock()
	of := m.talks[name]
	if of == nil {
		of = &dialogue{}
		m.talks[name] = of
	}
	of.asked = append(of.asked, now)
	m.mu.Unlock()
	select {
	case m.came <- struct{}{}:
	default:
	}
	if m.hold != nil {
		select {
		case <-m.hold:
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(text string) {
		_, _ = io.WriteString(w, "data: "+text+"\n\n")
		_ = http.NewResponseController(w).Flush()
	}
	const chunk = `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
	say(chunk + `{"index":0,"delta":{"role":"assistant","content":"turn ` + strconv.Itoa(turn) + `"},"finish_reason":null}]}`)
	finish := "stop"
	if turn < m.calls {
		finish = "tool_calls"
		call, _ := json.Marshal(map[string]any{"index": 0, "id": "call_" + strconv.Itoa(turn), "type": "function",
			"function": map[string]string{"name": tool, "arguments": arguments}})
		say(chunk + `{"index":0,"delta":{"tool_calls":[` + string(call) + `]},"finish_reason":null}]}`)
	}
	end := "data: " + chunk + `{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\ndata: " + chunk +
		`],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}` + "\n\ndata: [DONE]\n\n"
	m.mu.Lock()
	of.answered = append(of.answered, time.Now()) // before the end is written, so that the client cannot be asking again already
	m.mu.Unlock()
	_, _ = io.WriteString(w, end)
}

// between returns how long the clients worked between the end of an answer and the next request, of all conversations.
func (m *scriptedModel) between(b *testing.B) []time.Duration {
	b.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	for name, t := range m.talks {
		if len(t.asked) != m.calls+1 || len(t.answered) != m.calls+1 {
			b.Fatalf("%s had %d requests, want %d", name, len(t.asked), m.calls+1)
		}
		for n := 1; n < len(t.asked); n++ {
			all = append(all, t.asked[n].Sub(t.answered[n-1]))
		}
	}
	return all
}

// withAgent makes a model of the daemon, and an agent that asks it.
func withAgent(b *testing.B, n *nanoDaemon, m *scriptedModel) {
	b.Helper()
	_, err := n.PutModel(b.Context(), "scripted", client.ModelSpec{Provider: model.OpenAI, Dialect: model.DialectGeneric, BaseURL: m.URL,
		Model: "m", AllowPrivate: true})
	must(b, err)
	locked, err := n.LockBlueprint(b.Context(), "api_version: 1\nname: worker\nadapter: {kind: internal}\nmodels: {default: scripted}\n"+
		"limits: {steps: 10000}\n")
	must(b, err)
	_, err = n.RegisterBlueprint(b.Context(), "worker", locked.Text)
	must(b, err)
}

// ended waits until a run of an agent has ended well.
func ended(ctx context.Context, n *nanoDaemon, r id.Run) error {
	for f, err := range n.FollowRun(ctx, "", r, 0) {
		if err != nil {
			return err
		}
		if f.Kind == client.FrameComplete {
			break
		}
	}
	doc, err := n.Run(ctx, r)
	if err == nil && doc.Status != "succeeded" {
		err = fmt.Errorf("the run ended as %s: %s", doc.Status, doc.Error)
	}
	return err
}

// agentPeers is the folder of the peers of agents.
var agentPeers = sync.OnceValues(func() (string, error) {
	fetch := exec.Command("../scripts/fetch-agent-peers")
	why := &strings.Builder{}
	fetch.Stderr = why
	folder, err := fetch.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(why.String()), err)
	}
	return strings.TrimSpace(string(folder)), nil
})

// BenchmarkAgentStep is the work of a loop in one step: from the end of a model's answer, which calls a tool, to the next request. The
// tool does nothing. Ours judges the call, and records the answer, the step, the call and its outcome durably. The peers, `ai` of npm and
// openai-agents of PyPI, judge and record nothing.
func BenchmarkAgentStep(b *testing.B) {
	steps := sized(200, 3)
	b.Run("ours", func(b *testing.B) {
		for range b.N {
			n, m := serveNano(b), serveModel(b, steps, nil)
			space := n.space(b)
			withAgent(b, n, m)
			made, err := n.RunBlueprint(b.Context(), "worker", client.AgentTask{Task: "work", Space: space})
			must(b, err)
			must(b, ended(b.Context(), n, made.ID))
			reportTimes(b, m.between(b))
		}
	})
	for _, peer := range []struct{ name, program, script string }{
		{"ai", "node", "drive.mjs"}, {"openai-agents", "venv/bin/python", "drive.py"},
	} {
		b.Run(peer.name, func(b *testing.B) {
			dir, err := agentPeers()
			if err != nil {
				leaveOut(b, err.Error())
			}
			for range b.N {
				m := serveModel(b, steps, nil)
				program := peer.program
				if strings.Contains(program, "/") {
					program = filepath.Join(dir, program)
				}
				cmd := exec.Command(program, filepath.Join(dir, peer.script), m.URL, strconv.Itoa(steps))
				cmd.Env = append(os.Environ(), "OPENAI_AGENTS_DISABLE_TRACING=1")
				if out, err := cmd.CombinedOutput(); err != nil {
					b.Fatalf("%v\n%s", err, out)
				}
				reportTimes(b, m.between(b))
			}
		})
	}
}

// BenchmarkAgentFirstToken is how long the first piece of an answer takes from the model's server to a client that follows the run:
// through the daemon, its live output and its stream. The yardstick is a client that asks the same server directly.
func BenchmarkAgentFirstToken(b *testing.B) {
	turns := sized(300, 3)
	b.Run("ours", func(b *testing.B) {
		for range b.N {
			n, m := serveNano(b), serveWords(b, turns)
			space := n.space(b)
			withAgent(b, n, &m.scriptedModel)
			made, err := n.RunBlueprint(b.Context(), "worker", client.AgentTask{Task: "work", Space: space})
			must(b, err)
			seen := map[int]time.Time{}
			for f, err := range n.FollowRun(b.Context(), "", made.ID, 0) {
				now := time.Now()
				must(b, err)
				if f.Kind == client.FrameComplete {
					break
				}
				if turn, ok := turnIn(string(f.Data)); ok && f.Kind == client.FrameDelta {
					seen[turn] = now
				}
			}
			reportTimes(b, m.late(b, seen))
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		for range b.N {
			m := serveWords(b, turns)
			seen := map[int]time.Time{}
			messages := []map[string]string{{"role": "user", "content": "work"}}
			for turn := range turns + 1 {
				body, err := json.Marshal(map[string]any{"messages": messages, "tools": []any{}})
				must(b, err)
				answer, err := http.Post(m.URL, "application/json", strings.NewReader(string(body)))
				must(b, err)
				piece := make([]byte, 32<<10)
				got, err := answer.Body.Read(piece)
				if _, ok := turnIn(string(piece[:got])); !ok || err != nil && !errors.Is(err, io.EOF) {
					b.Fatalf("got %q, %v", piece[:got], err)
				}
				seen[turn] = time.Now()
				_, err = io.Copy(io.Discard, answer.Body)
				must(b, errors.Join(err, answer.Body.Close()))
				messages = append(messages, map[string]string{"role": "assistant", "content": "turn"})
			}
			reportTimes(b, m.late(b, seen))
		}
	})
}

// wordyModel notes when it writes the first piece of each answer.
type wordyModel struct {
	scriptedModel
	wrote map[int]time.Time // guarded by mu
}

func serveWords(b *testing.B, turns int) *wordyModel {
	b.Helper()
	m := &wordyModel{scriptedModel: scriptedModel{calls: turns, talks: map[string]*dialogue{}, came: make(chan struct{}, 1<<16)},
		wrote: map[int]time.Time{}}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.scriptedModel.ServeHTTP(&firstWrite{ResponseWriter: w, note: m.note}, r)
	}))
	b.Cleanup(func() {
		m.CloseClientConnections()
		m.Close()
	})
	return m
}

// firstWrite notes when the first piece goes out.
type firstWrite struct {
	http.ResponseWriter
	note func(turn int, at time.Time)
	done bool
}

// Unwrap lets the pieces be flushed.
func (w *firstWrite) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *firstWrite) Write(p []byte) (int, error) {
	if turn, ok := turnIn(string(p)); ok && !w.done {
		w.done = true
		w.note(turn, time.Now())
	}
	return w.ResponseWriter.Write(p)
}

func (m *wordyModel) note(turn int, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrote[turn] = at
}

// late returns how long after the server wrote the first piece of each turn a client had it. The first turn warms up.
func (m *wordyModel) late(b *testing.B, seen map[int]time.Time) []time.Duration {
	b.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []time.Duration
	for turn := 1; turn <= m.calls; turn++ {
		if seen[turn].IsZero() || m.wrote[turn].IsZero() {
			b.Fatalf("the first piece of turn %d did not arrive", turn)
		}
		all = append(all, seen[turn].Sub(m.wrote[turn]))
	}
	return all
}

// turnIn returns the turn that a piece names.
func turnIn(piece string) (int, bool) {
	_, rest, found := strings.Cut(piece, `turn `)
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	turn, err := strconv.Atoi(digits)
	return turn, found && err == nil
}

// BenchmarkAgentsAtOnce has 100 agents work at once in one workspace. First all of them wait for the model, which answers none until it
// has been asked by all: that is the memory of one that waits. Then each makes its steps. The time of the slowest is divided by the time
// of half of them. The yardstick is one agent alone.
func BenchmarkAgentsAtOnce(b *testing.B) {
	steps := sized(20, 2)
	together := func(b *testing.B, many int) {
		for range b.N {
			hold := make(chan struct{})
			n, m := serveNano(b), serveModel(b, steps, hold)
			space := n.space(b)
			withAgent(b, n, m)
			_, err := n.UpdateWorkspace(b.Context(), id.DefaultWorkspace, client.WorkspaceChange{Tasks: max(many, 5)})
			must(b, err)
			before := resident(b, n.cmd.Process.Pid)
			took := make([]time.Duration, many)
			failed := make([]error, many)
			var working sync.WaitGroup
			var begun time.Time
			for i := range many {
				made, err := n.RunBlueprint(b.Context(), "worker", client.AgentTask{Task: "work " + strconv.Itoa(i), Space: space})
				must(b, err)
				working.Go(func() {
					failed[i] = ended(b.Context(), n, made.ID)
					took[i] = time.Since(begun)
				})
			}
			for range many {
				select {
				case <-m.came:
				case <-time.After(time.Minute):
					b.Fatal("not every agent has asked its model after a minute")
				}
			}
			memory := (resident(b, n.cmd.Process.Pid) - before) * 1000 / float64(many)
			begun = time.Now()
			close(hold)
			working.Wait()
			must(b, errors.Join(failed...))
			slices.Sort(took)
			b.ReportMetric(float64(many), "waiting")
			b.ReportMetric(memory, "KB/agent")
			b.ReportMetric(float64(took[many-1])/float64(took[many/2]), "slowest-x")
			b.ReportMetric(float64(many*(steps+1))/took[many-1].Seconds(), "steps/s")
			b.ReportMetric(0, "ns/op")
		}
	}
	b.Run("ours", func(b *testing.B) { together(b, sized(100, 20)) })
	b.Run("yardstick", func(b *testing.B) { together(b, 1) })
}

// BenchmarkAgentContext assembles the next request of a conversation of 1 MiB, and its hash, by which the record names it. The yardstick
// writes the same request as JSON.
func BenchmarkAgentContext(b *testing.B) {
	const size, turns = 1 << 20, 64
	long := strings.Repeat("the harvest is late\n", size/turns/20)
	def := blueprint.Blueprint{Context: blueprint.Context{Tokens: 1_000_000, ToolResult: size}, Limits: blueprint.Limits{Steps: 10_000}}
	c := agents.Begin(def, append(tools.Builtin(), agents.ReadResult()), "key", "work")
	for n := range turns {
		if next := c.Next(); next.Request == nil {
			b.Fatalf("the conversation ends: %+v", next.End)
		}
		call := model.Call{ID: fmt.Sprintf("call_%d", n), Name: "readFile", Arguments: fmt.Sprintf(`{"path":"f%d"}`, n)}
		c.Answered(model.Answer{Stop: model.StopTools, Parts: []model.Part{{Type: model.CallPart, Call: &call}}})
		c.Acted([]model.Result{{ID: call.ID, Text: long}})
	}
	r := c.Next().Request
	if r == nil || r.MostTokens() < size {
		b.Fatal("the context has less than 1 MiB")
	}
	b.Run("ours", func(b *testing.B) {
		medianOf(b, func() {
			_, err := c.Next().Request.Hash()
			must(b, err)
		})
	})
	b.Run("yardstick", func(b *testing.B) {
		medianOf(b, func() {
			_, err := json.Marshal(r)
			must(b, err)
		})
	})
}
