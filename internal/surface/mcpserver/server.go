// Package mcpserver offers spaces to other agents over the Model Context Protocol: code, files, commands, runs and search.
package mcpserver

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Limits of messages and sessions.
const (
	maxLine   = 16 << 20 // bytes of one message of a client
	maxText   = 64 << 10 // characters of a text in an answer; other tools read the rest
	waitsFor  = 300      // seconds for which a call waits for the end of its run
	maxSpaces = 64       // spaces that one session may make
)

// Config says how a session works.
type Config struct {
	API     *client.Client // acts with the key of the person whose client this is
	Agent   string         // name of the agent principal that the runs act as; "" for the client's own name
	Space   string         // id or name of the session's space; "" for a new one
	Runtime string         // of the session's own space; "" for auto
	Policy  string         // of the session's own space; "" for the default
	TTL     time.Duration  // of the session's own space; 0 for the default
	Elicit  bool           // a client that can ask its user may answer approvals for them
	Version string
	Logger  *slog.Logger
	Clock   event.Clock
	Entropy io.Reader // for names of spaces
}

// instructions describe the server to a model.
const instructions = `Agentbox runs code without having to trust it. Everything runs in a space: an isolated place with its own files.
The first call makes a space; every later call uses it unless it names another one in space_id.
A call can be refused by policy: the answer then says by which rule, and what to do instead. A call can wait for a person: the
answer then names the approval; call wait_run with its run_id after the person has answered.`

// session is the state of one connected client.
type session struct {
	Config
	mu    sync.Mutex // guards the fields below
	space id.Space
	made  int
	asked map[string]question // by approval
}

// New returns a server for one session.
func New(c Config) *mcp.Server {
	s := &session{Config: c, asked: map[string]question{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "agentbox", Title: "Agentbox", Version: c.Version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{}, Logger: c.Logger,
	})
	server.AddReceivingMiddleware(s.guard)
	s.codeTools(server)
	s.fileTools(server)
	s.spaceTools(server)
	s.runTools(server)
	return server
}

// Serve serves one client over a pair of streams until the client closes them or ctx ends.
func Serve(ctx context.Context, c Config, in io.ReadCloser, out io.WriteCloser) error {
	err := New(c).Run(ctx, &mcp.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine})
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// guard turns the panic of a handler into an error and logs it, so that a fault in one call does not end the others.
func (s *session) guard(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				s.Logger.Error("a call has failed", "code", "mcp_call_failed", "method", method, "error", p, "stack", string(debug.Stack()))
				result, err = nil, fmt.Errorf("the call failed inside Agentbox; its log says why")
			}
		}()
		return next(ctx, method, req)
	}
}

// agent returns the agent principal that the session's runs act as.
func (s *session) agent(from *mcp.ServerSession) *client.RunAgent {
	name := s.Agent
	if p := from.InitializeParams(); name == "" && p != nil && p.ClientInfo != nil {
		name = p.ClientInfo.Name
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_. ", r) {
			return r
		}
		return '-'
	}, name)
	name = strings.Trim(name[:min(len(name), 60)], "-. ")
	if name == "" {
		name = "mcp"
	}
	return &client.RunAgent{Name: name}
}

// in returns the space that a call names, or else the session's own, which the first call makes.
func (s *session) in(ctx context.Context, named string) (id.Space, error) {
	if named != "" {
		return s.named(ctx, named)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.space != "" {
		return s.space, nil
	}
	if s.Space != "" {
		found, err := s.named(ctx, s.Space)
		s.space = found
		return found, err
	}
	word, err := s.word()
	if err != nil {
		return "", err
	}
	made, err := s.create(ctx, client.SpaceRequest{Name: "mcp-" + word, Runtime: s.Runtime, Policy: s.Policy,
		TTLSeconds: int64(s.TTL / time.Second)})
	s.space = made
	return made, err
}

// create makes a space. The caller holds mu.
func (s *session) create(ctx context.Context, q client.SpaceRequest) (id.Space, error) {
	if s.made >= maxSpaces {
		return "", fault.New(fault.Exhausted, "too_many_spaces", "the client has made %d spaces, which is its limit; use one of them",
			maxSpaces)
	}
	if q.Runtime == "" {
		q.Runtime = "auto"
	}
	made, err := s.API.CreateSpace(ctx, q)
	if err == nil {
		s.made++
	}
	return made.ID, err
}

// named returns the id of a space by its id or name.
func (s *session) named(ctx context.Context, name string) (id.Space, error) {
	found, err := s.API.Space(ctx, id.Space(name))
	return found.ID, err
}

// word returns eight random hexadecimal digits, for names.
func (s *session) word() (string, error) {
	var raw [4]byte
	_, err := io.ReadFull(s.Entropy, raw[:])
	return hex.EncodeToString(raw[:]), err
}

// failure returns the answer for an error: its code, its sentence and its suggestion.
func failure(err error) *mcp.CallToolResult {
	text := err.Error()
	if f, ok := asFault(err); ok {
		text = f.Code + ": " + f.Msg
		if f.Suggestion != "" {
			text += "\ninstead: " + f.Suggestion
		}
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
