package main_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAgentboxMCP runs the program as a client of the Model Context Protocol does: as a child, over its standard streams.
func TestAgentboxMCP(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	ctx, stop := context.WithTimeout(t.Context(), 3*time.Minute)
	defer stop()
	command := func(flags ...string) *exec.Cmd {
		cmd := exec.Command("agentbox", append([]string{"mcp", "--data", c.dir}, flags...)...)
		cmd.Env, cmd.Stderr = append(os.Environ(), "AGENTBOX_HOME="+c.dir), t.Output()
		return cmd
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "a-client", Version: "1"}, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	if _, err := client.Connect(ctx, &mcp.CommandTransport{Command: command()}, nil); err == nil {
		t.Fatal("it serves without a daemon")
	}
	c.start()
	defer c.end()
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command("--runtime", "nano", "--policy", "standard")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := session.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range listed.Tools {
		names[tool.Name] = true
		if tool.Description == "" || tool.InputSchema == nil || tool.Annotations == nil {
			t.Errorf("%s is not described", tool.Name)
		}
	}
	for _, want := range []string{"run_code", "shell", "read_file", "write_file", "edit_file", "list_files", "wait_run", "search"} {
		if !names[want] {
			t.Errorf("there is no tool %s", want)
		}
	}
	call := func(name string, arguments map[string]any) (string, bool) {
		t.Helper()
		got, err := session.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var text strings.Builder
		for _, part := range got.Content {
			if said, ok := part.(*mcp.TextContent); ok {
				text.WriteString(said.Text)
			}
		}
		return text.String(), got.IsError
	}
	if text, failed := call("run_code", map[string]any{"language": "python", "code": "print(6*7)"}); failed || !strings.Contains(text, "42") {
		t.Errorf("got %q, failed: %v", text, failed)
	}
	if text, failed := call("shell", map[string]any{"command": "ssh example.com"}); !failed || !strings.Contains(text, "refused: shell") {
		t.Errorf("got %q, failed: %v", text, failed)
	}
	if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "shell", Arguments: map[string]any{"cmd": "ls"}}); err == nil {
		if text, failed := call("shell", map[string]any{"cmd": "ls"}); !failed {
			t.Errorf("arguments that do not fit are taken: %q", text)
		}
	}
	if err := session.Close(); err != nil {
		t.Errorf("the end: %v", err)
	}
	for _, p := range c.list("/v1/principals?kind=agent", "principals") {
		if p["display_name"] == "a-client" {
			return
		}
	}
	t.Error("the runs were not started for an agent of the client's name")
}
