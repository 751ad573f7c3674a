package mcpclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/model"
)

// patience is longer than any of the client's own limits of the end of a session.
const patience = 20 * time.Second

// TestASessionEndsWhateverTheServerLeavesOpen: the server asks something in the middle of an answer, and never takes the answer to that.
// The kill switch and the end of a run wait for the end of the session.
func TestASessionEndsWhateverTheServerLeavesOpen(t *testing.T) {
	held, release := make(chan struct{}, 8), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.Unmarshal(raw, &m)
		switch {
		case m.Method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Mcp-Session-Id", "one")
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"h","version":"1"}}}`, m.ID)
		case m.Method == "tools/list":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: "+`{"jsonrpc":"2.0","id":"q","method":"ping"}`+"\n\n")
			_, _ = fmt.Fprintf(w, "data: "+`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`+"\n\n", m.ID)
		case m.Method == "" && len(m.ID) > 0 || r.Method == http.MethodDelete: // the answer to the ping, and the farewell
			held <- struct{}{}
			<-release
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	s, err := open(t, mcp.Target{Server: mcp.Server{Name: "shop", URL: server.URL + "/"}, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-held
	closed := make(chan struct{})
	go func() { s.Close(); close(closed) }()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Fatal("the session does not end")
	}
}

// TestAProcessFloodsTheDaemon with messages that nobody has asked for, and reads no answers. The session ends before they are many.
func TestAProcessFloodsTheDaemon(t *testing.T) {
	ours, theirs := pipes()
	var running sync.WaitGroup
	sent := make(chan int64, 1)
	running.Go(func() {
		line := make([]byte, 1)
		for line[0] != '\n' { // the handshake
			if _, err := theirs.Read(line); err != nil {
				return
			}
		}
		_, _ = io.WriteString(theirs, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},`+
			`"serverInfo":{"name":"h","version":"1"}}}`+"\n")
		for line[0] = 0; line[0] != '\n'; { // what follows it
			if _, err := theirs.Read(line); err != nil {
				return
			}
		}
		n, pad := int64(0), strings.Repeat("x", 1<<20)
		for n < 64*mcp.MaxAnswer {
			wrote, err := fmt.Fprintf(theirs, `{"jsonrpc":"2.0","id":"%d","method":"ping","params":{"_meta":{"pad":"%s"}}}`+"\n", n, pad)
			if n += int64(wrote); err != nil {
				break
			}
		}
		sent <- n
	})
	s, err := open(t, mcp.Target{Server: mcp.Server{Name: "shop", Command: "serve"}, Pipe: ours})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Tools(t.Context()); !errors.Is(err, mcp.ErrFailed) {
		t.Errorf("the list: %v", err)
	}
	s.Close()
	if n := <-sent; n > 4*mcp.MaxAnswer {
		t.Errorf("%d bytes were read that nobody has asked for", n)
	}
	running.Wait()
}

// TestAKeyIsInNothingThatAServerSays: a server puts its key into what is recorded of its tools, and into JSON, which writes some characters
// in another way.
func TestAKeyIsInNothingThatAServerSays(t *testing.T) {
	const key = `key&<0123>"4567\89`
	server := shop(t)
	server.AddTool(&sdk.Tool{Name: "echo", Title: "T " + key, Description: "D " + key,
		InputSchema: json.RawMessage(`{"type":"object","description":` + jsonOf(t, key) + `}`)},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{StructuredContent: map[string]any{"said": r.Extra.Header.Get("Authorization")}}, nil
		})
	to := outside(t, server, nil)
	to.Key, to.Server.Key = model.NewSecret(key), "shop"
	s, err := open(t, to)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := s.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.Call(t.Context(), calling(t, "shop__echo", `{}`, time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	all := string(raw) + answer.Text + string(answer.Structured)
	if strings.Contains(all, "0123") || strings.Contains(all, "4567") || !strings.Contains(all, "[key shop]") {
		t.Errorf("the key is in %s", all)
	}
	if !json.Valid(answer.Structured) {
		t.Errorf("the value is no JSON: %s", answer.Structured)
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
