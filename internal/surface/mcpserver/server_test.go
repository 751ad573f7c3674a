package mcpserver_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/app"
	"agentbox/internal/client"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/surface/mcpserver"
)

// worker is the argument that makes this program a worker of the nano tier.
const worker = "nano-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == worker {
		if err := app.Worker(context.Background(), os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// daemon runs a daemon and returns a client with the owner's key.
func daemon(t *testing.T) *client.Client {
	t.Helper()
	api, _ := started(t)
	return api
}

// started is daemon, with the key.
func started(t *testing.T) (*client.Client, string) {
	t.Helper()
	c := app.Default(t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.Listen, c.Worker = "127.0.0.1:0", []string{self, worker}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan app.State, 1), make(chan error, 1)
	go func() {
		ended <- app.Up(ctx, c, app.Clock{}, slog.New(slog.NewTextHandler(t.Output(), nil)), func(st app.State) { ready <- st })
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	select {
	case st := <-ready:
		key, err := os.ReadFile(filepath.Join(c.DataDir, "owner.key"))
		if err != nil {
			t.Fatal(err)
		}
		api := client.New("http://"+st.Address, strings.TrimSpace(string(key)))
		t.Cleanup(api.Close)
		return api, strings.TrimSpace(string(key))
	case err := <-ended:
		ended <- nil
		t.Fatalf("the daemon ended: %v", err)
	}
	return nil, ""
}

// user is what a client's user answers to a question; nil for a client that cannot ask.
type user func(*mcp.ElicitParams) *mcp.ElicitResult

// connect connects a client to a server for the daemon.
func connect(t *testing.T, c mcpserver.Config, answers user) *mcp.ClientSession {
	t.Helper()
	c.Logger, c.Version = slog.New(slog.NewTextHandler(t.Output(), nil)), "test"
	c.Clock, c.Entropy = app.Clock{}, rand.Reader
	options := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if answers != nil {
		options.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return answers(r.Params), nil
		}
	}
	here, there := mcp.NewInMemoryTransports()
	server, err := mcpserver.New(c).Connect(t.Context(), there, nil)
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test-client", Version: "1"}, options).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = session.Close()
		_ = server.Wait()
	})
	return session
}

// answer is what came of a call.
type answer struct {
	text   string
	failed bool
	data   map[string]any
}

func call(t *testing.T, s *mcp.ClientSession, name string, arguments map[string]any) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	result, err := s.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	a := answer{failed: result.IsError}
	for _, c := range result.Content {
		if text, ok := c.(*mcp.TextContent); ok {
			a.text += text.Text
		}
	}
	if raw, err := json.Marshal(result.StructuredContent); err == nil {
		_ = json.Unmarshal(raw, &a.data)
	}
	return a
}

// TestASessionWorksInItsSpace runs code, commands and file operations one after the other.
func TestASessionWorksInItsSpace(t *testing.T) {
	s := connect(t, mcpserver.Config{API: daemon(t), Runtime: "nano"}, nil)
	steps := []struct {
		tool      string
		arguments map[string]any
		want      string
		fails     bool
	}{
		{"write_file", map[string]any{"path": "data/a.txt", "content": "one\ntwo\n"}, "completed", false},
		{"write_file", map[string]any{"path": "data/a.txt", "content": "x"}, "exists", true},
		{"read_file", map[string]any{"path": "data/a.txt"}, "one\ntwo", false},
		{"edit_file", map[string]any{"path": "data/a.txt", "edits": []any{map[string]any{"old": "two", "new": "three"}}}, "completed", false},
		{"shell", map[string]any{"command": "wc -l < data/a.txt; cat data/a.txt"}, "2\none\nthree", false},
		{"shell", map[string]any{"command": "exit 3"}, "exit code 3", true},
		{"list_files", map[string]any{"recursive": true}, "data/a.txt", false},
		{"run_code", map[string]any{"language": "javascript", "code": "globalThis.n = 20; n + 1"}, "21", false},
		{"run_code", map[string]any{"language": "javascript", "code": "n + 2"}, "22", false},
		{"run_code", map[string]any{"language": "cobol", "code": "x"}, "language", true},
		{"shell", map[string]any{"command": "sudo ls"}, "refused: shell\nrule: ", true},
		{"delete_file", map[string]any{"path": "data/a.txt"}, "completed", false},
		{"read_file", map[string]any{"path": "data/a.txt"}, "data/a.txt", true},
		{"read_file", map[string]any{"path": "../../etc/passwd"}, "path", true},
		{"show_run", map[string]any{"run_id": "run_01M7YNAYM0SMK245AEDNVB5CNW"}, "run_not_found", true},
	}
	for _, step := range steps {
		got := call(t, s, step.tool, step.arguments)
		if got.failed != step.fails || !strings.Contains(got.text, step.want) {
			t.Errorf("%s %v: failed: %v, %q; want %q", step.tool, step.arguments, got.failed, got.text, step.want)
		}
	}
	spaces := call(t, s, "list_spaces", nil)
	if strings.Count(spaces.text, "spc_") != 1 {
		t.Errorf("the session made other spaces than one: %s", spaces.text)
	}
}

// TestAnApprovalIsAskedOfThePerson asks the user of a client that can, and names the approval to one that cannot.
func TestAnApprovalIsAskedOfThePerson(t *testing.T) {
	api := daemon(t)
	dangerous := map[string]any{"command": "mkdir d && touch d/x && rm -r d && echo gone"}
	t.Run("approved by the user", func(t *testing.T) {
		var seen string
		s := connect(t, mcpserver.Config{API: api, Runtime: "nano", Elicit: true}, func(p *mcp.ElicitParams) *mcp.ElicitResult {
			seen = p.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
		})
		got := call(t, s, "shell", dangerous)
		if got.failed || !strings.Contains(got.text, "gone") || !strings.Contains(seen, "rm -r d") {
			t.Errorf("got %+v, asked %q", got, seen)
		}
	})
	for how, result := range map[string]*mcp.ElicitResult{
		"denied by the user":   {Action: "accept", Content: map[string]any{"decision": "deny", "reason": "no"}},
		"declined by the user": {Action: "decline"},
	} {
		t.Run(how, func(t *testing.T) {
			s := connect(t, mcpserver.Config{API: api, Runtime: "nano", Elicit: true}, func(*mcp.ElicitParams) *mcp.ElicitResult {
				return result
			})
			got := call(t, s, "shell", dangerous)
			if !got.failed || strings.Contains(got.text, "gone") || !strings.Contains(got.text, "refused: shell") {
				t.Errorf("got %+v", got)
			}
		})
	}
	t.Run("put off by the user", func(t *testing.T) {
		s := connect(t, mcpserver.Config{API: api, Runtime: "nano", Elicit: true}, func(*mcp.ElicitParams) *mcp.ElicitResult {
			return &mcp.ElicitResult{Action: "cancel"}
		})
		got := call(t, s, "shell", dangerous)
		if !strings.Contains(got.text, "agentbox approvals approve") || got.data["status"] != "awaiting_approval" {
			t.Errorf("got %+v", got)
		}
	})
	for how, c := range map[string]struct {
		elicit  bool
		answers user
	}{
		"a client that cannot ask": {true, nil},
		"a session that must not": {false, func(*mcp.ElicitParams) *mcp.ElicitResult {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}
		}},
	} {
		t.Run(how, func(t *testing.T) {
			s := connect(t, mcpserver.Config{API: api, Runtime: "nano", Elicit: c.elicit}, c.answers)
			got := call(t, s, "shell", dangerous)
			approval, _ := got.data["approval_id"].(string)
			if approval == "" || !strings.Contains(got.text, "agentbox approvals approve "+approval) {
				t.Fatalf("got %+v", got)
			}
			run, _ := got.data["run_id"].(string)
			if _, err := api.Decide(t.Context(), id.Approval(approval), client.Answer{Decision: "approve"}); err != nil {
				t.Fatal(err)
			}
			if got := call(t, s, "wait_run", map[string]any{"run_id": run}); got.failed || !strings.Contains(got.text, "gone") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestAClientCannotAnswerAForeignQuestion sends an answer with the state of a question that the session was never asked.
func TestAClientCannotAnswerAForeignQuestion(t *testing.T) {
	api := daemon(t)
	other := connect(t, mcpserver.Config{API: api, Runtime: "nano"}, nil)
	waits := call(t, other, "shell", map[string]any{"command": "mkdir d && rm -r d"})
	approval, _ := waits.data["approval_id"].(string)
	if approval == "" {
		t.Fatalf("nobody is asked: %+v", waits)
	}
	s := connect(t, mcpserver.Config{API: api, Runtime: "nano", Elicit: true}, nil)
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "shell", Arguments: map[string]any{"command": "echo x"}, RequestState: approval,
		InputResponses: mcp.InputResponseMap{"approve": &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}},
	})
	if err == nil && !result.IsError {
		t.Errorf("the answer was taken: %+v", result)
	}
	if a, err := api.Approval(t.Context(), id.Approval(approval)); err != nil || a.Status != policy.Pending {
		t.Errorf("the question is %s, %v", a.Status, err)
	}
}
