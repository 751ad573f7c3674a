// Package toolapi are the operations for MCP servers and the tools that people trust of them.
package toolapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/domain/policy"
	"agentbox/internal/service/query"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// serverSpec is what a server is set to.
type serverSpec struct {
	Command string `json:"command,omitempty" maxLength:"4096" doc:"A command line in the agent's space, which speaks on its standard input and output"`
	URL     string `json:"url,omitempty" maxLength:"4096" doc:"The address of a server that speaks streamable HTTP"`
	Key     string `json:"key,omitempty" maxLength:"64" doc:"The name of a key of models that an address is sent as a bearer token, never the key"`

	ClientID string `json:"client_id,omitempty" maxLength:"256" doc:"For OAuth: the client id; the key is its secret"`
	Issuer   string `json:"issuer,omitempty" maxLength:"4096" doc:"For OAuth: the issuer at which the client is registered"`
	Login    bool   `json:"login,omitempty" doc:"A person logs in with a browser. Without a client_id the daemon registers itself as a client"`
}

// ToolServer is an MCP server as it is shown.
type ToolServer struct {
	Name      string       `json:"name"`
	Command   string       `json:"command,omitempty"`
	URL       string       `json:"url,omitempty"`
	Key       string       `json:"key,omitempty"`
	ClientID  string       `json:"client_id,omitempty"`
	Issuer    string       `json:"issuer,omitempty"`
	Login     bool         `json:"login,omitempty"`
	LoggedIn  *LoggedIn    `json:"logged_in,omitempty" doc:"The login that has not ended, where a person logs in"`
	Hash      event.Digest `json:"mcp_server_sha256" doc:"Of the server and of every tool that people trust; a blueprint pins it"`
	ChangedBy id.Principal `json:"changed_by"`
	ChangedAt time.Time    `json:"changed_at"`
	ListedAt  time.Time    `json:"listed_at,omitzero" doc:"When what it offers was last seen to change"`
	Tools     []ServedTool `json:"tools" nullable:"false"`
}

// LoggedIn is the login of a person at a server. No answer has its tokens.
type LoggedIn struct {
	By     id.Principal `json:"logged_in_by"`
	At     time.Time    `json:"logged_in_at"`
	Client string       `json:"client_id" doc:"As the issuer knows the daemon"`
	Scopes []string     `json:"scopes,omitempty" doc:"What the issuer was asked for"`
}

// ServedTool is a tool of a server. Characters that nobody sees are written as \u{code point}; a model is shown the same text.
type ServedTool struct {
	Tool        string       `json:"tool" doc:"Its name at the server"`
	Name        string       `json:"name,omitempty" doc:"Its name for models and policies"`
	State       string       `json:"state" enum:"trusted,quarantined,unusable,gone" doc:"Only a trusted tool is offered to agents"`
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Input       *Schema      `json:"input_schema,omitempty"`
	Output      *Schema      `json:"output_schema,omitempty"`
	Hash        event.Digest `json:"tool_sha256,omitzero"`
	Problem     string       `json:"problem,omitempty" doc:"Why it cannot be offered to any agent"`
	Was         *TrustedTool `json:"was,omitempty" doc:"What people trusted, where it differs"`
	TrustedBy   id.Principal `json:"trusted_by,omitempty"`
	TrustedAt   time.Time    `json:"trusted_at,omitzero"`
}

// TrustedTool is a tool as people trusted it.
type TrustedTool struct {
	Title       string       `json:"title,omitempty"`
	Description string       `json:"description,omitempty"`
	Input       *Schema      `json:"input_schema,omitempty"`
	Output      *Schema      `json:"output_schema,omitempty"`
	Hash        event.Digest `json:"tool_sha256"`
}

// Schema is a JSON Schema.
type Schema map[string]any

type serverList struct {
	Servers []ToolServer `json:"mcp_servers" nullable:"false"`
}

type looked struct {
	Space id.Space `json:"space_id" maxLength:"100" doc:"Its policy has to permit the host; a server with a command runs in it"`
}

type beginning struct {
	Space    id.Space `json:"space_id" maxLength:"100" doc:"Its policy has to permit the hosts of the server and of the issuer"`
	Redirect string   `json:"redirect_uri" maxLength:"256" doc:"Where the person's machine waits: HTTP at 127.0.0.1, a port and a path"`
}

type visit struct {
	Address string    `json:"authorization_url" doc:"The person opens it in a browser and logs in"`
	Until   time.Time `json:"expires_at" doc:"The login has to be finished by then"`
}

type trusted struct {
	Tools []mcp.Named `json:"tools" nullable:"false" minItems:"1" maxItems:"128"`
}

// ServerPath names a server.
type ServerPath struct {
	Name string `path:"mcp_server" maxLength:"24" doc:"The server's name"`
}

type serverAnswer struct{ Body ToolServer }

// Servers are the operations for MCP servers.
type Servers struct {
	access.Part
	servers *toolservers.Service
}

// New returns the operations for MCP servers.
func New(p access.Part, of *toolservers.Service) *Servers { return &Servers{p, of} }

// Register adds the operations to the server.
func (s *Servers) Register() {
	wire.Handle(s.Server, wire.Operation{
		ID: "list-mcp-servers", Needs: wire.Shows("mcp_server"), Method: http.MethodGet, Path: "/v1/mcp-servers", Tag: "tools",
		Summary: "List the MCP servers of the workspace with their tools",
	}, func(ctx context.Context, c wire.Call, _ *struct{}) (*struct{ Body serverList }, error) {
		found, err := s.servers.List(ctx, c.Caller.Workspace)
		out := serverList{Servers: []ToolServer{}}
		for _, held := range found {
			out.Servers = append(out.Servers, shown(held))
		}
		return &struct{ Body serverList }{out}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "get-mcp-server", Needs: wire.Shows("mcp_server"), Method: http.MethodGet, Path: "/v1/mcp-servers/{mcp_server}", Tag: "tools",
		Summary: "Show an MCP server, its tools, and how they differ from what people trusted",
	}, func(ctx context.Context, c wire.Call, in *ServerPath) (*serverAnswer, error) {
		held, err := s.servers.Get(ctx, c.Caller.Workspace, in.Name)
		return &serverAnswer{shown(held)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "put-mcp-server", Needs: wire.Does(policy.MCPConfigure), Method: http.MethodPut, Path: "/v1/mcp-servers/{mcp_server}", Tag: "tools",
		Summary: "Add an MCP server, or change it", Repeat: wire.RepeatRecalled,
		Detail: "It has either a command or a url. Nothing is asked of it yet. A change makes it another server: no tool of it is trusted.",
	}, s.put)
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-mcp-server", Needs: wire.Does(policy.MCPConfigure), Method: http.MethodDelete, Path: "/v1/mcp-servers/{mcp_server}",
		Tag: "tools", Summary: "Remove an MCP server", Repeat: wire.RepeatRecalled, Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *struct {
		ServerPath
		Reason string `query:"reason" maxLength:"2000"`
	}) (*struct{}, error) {
		return wire.Once(c, func() (*struct{}, error) { return nil, nil }, func() (*struct{}, error) {
			return nil, s.servers.Remove(ctx, c.Once(), c.Caller.Workspace, in.Name, in.Reason)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "look-at-mcp-server", Needs: wire.Does(policy.MCPTrust), Method: http.MethodPost, Path: "/v1/mcp-servers/{mcp_server}/look",
		Tag: "tools", Summary: "Ask an MCP server for its tools", Repeat: wire.RepeatRefused,
		Detail: "Records what is new. No tool is offered to an agent before a person trusts it.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ServerPath
		Body looked
	}) (*serverAnswer, error) {
		if err := s.Labelled(ctx, c, map[string]string{"space_id": string(in.Body.Space)}); err != nil {
			return nil, err
		}
		held, err := s.servers.Look(ctx, toolservers.Place{Origin: c.Origin(), Workspace: c.Caller.Workspace, Space: in.Body.Space}, in.Name)
		return &serverAnswer{shown(held)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "log-in-to-mcp-server", Needs: wire.Does(policy.MCPConfigure), Method: http.MethodPost,
		Path: "/v1/mcp-servers/{mcp_server}/login", Tag: "tools", Summary: "Begin the login of a person at an MCP server",
		Repeat: wire.RepeatRefused,
		Detail: "By the authorization code of OAuth, with PKCE. The issuer sends the browser back to redirect_uri with a code and a state, " +
			"which the same caller sends to /login/finish. A login that has begun before is given up.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ServerPath
		Body beginning
	}) (*struct{ Body visit }, error) {
		if err := s.Labelled(ctx, c, map[string]string{"space_id": string(in.Body.Space)}); err != nil {
			return nil, err
		}
		v, err := s.servers.Login(ctx, toolservers.Place{Origin: c.Origin(), Workspace: c.Caller.Workspace, Space: in.Body.Space}, in.Name,
			in.Body.Redirect)
		return &struct{ Body visit }{visit{v.Address, v.Until}}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "finish-mcp-login", Needs: wire.Does(policy.MCPConfigure), Method: http.MethodPost,
		Path: "/v1/mcp-servers/{mcp_server}/login/finish", Tag: "tools", Summary: "Finish the login of a person at an MCP server",
		Repeat: wire.RepeatRefused,
		Detail: "The daemon exchanges the code for tokens, seals them in its data directory, and renews them. They are in no answer, event " +
			"or log.",
	}, func(ctx context.Context, c wire.Call, in *struct {
		ServerPath
		Body mcp.Returned
	}) (*serverAnswer, error) {
		held, err := s.servers.FinishLogin(ctx, c.Origin(), c.Caller.Workspace, in.Name, in.Body)
		return &serverAnswer{shown(held)}, err
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "log-out-of-mcp-server", Needs: wire.Does(policy.MCPConfigure), Method: http.MethodDelete,
		Path: "/v1/mcp-servers/{mcp_server}/login", Tag: "tools", Summary: "Destroy the tokens of a login at an MCP server",
		Repeat: wire.RepeatRecalled, Status: http.StatusNoContent, Detail: "The issuer is not told.",
	}, func(ctx context.Context, c wire.Call, in *ServerPath) (*struct{}, error) {
		return wire.Once(c, func() (*struct{}, error) { return nil, nil }, func() (*struct{}, error) {
			return nil, s.servers.Logout(ctx, c.Once(), c.Caller.Workspace, in.Name)
		})
	})
	wire.Handle(s.Server, wire.Operation{
		ID: "trust-mcp-tools", Needs: wire.Does(policy.MCPTrust), Method: http.MethodPost, Path: "/v1/mcp-servers/{mcp_server}/trust",
		Tag: "tools", Summary: "Release tools of an MCP server for agents", Repeat: wire.RepeatRecalled,
		Detail: "Each tool is named with the hash that was shown. Where the server offers another one by now, the answer is 409 " +
			"mcp_tool_changed.",
	}, s.trust)
}

func (s *Servers) put(ctx context.Context, c wire.Call, in *struct {
	ServerPath
	Body serverSpec
}) (*serverAnswer, error) {
	held, err := wire.Once(c, func() (mcp.Held, error) { return s.then(ctx, c, in.Name) }, func() (mcp.Held, error) {
		return s.servers.Put(ctx, c.Once(), c.Caller.Workspace, mcp.Server{Name: in.Name, Command: in.Body.Command, URL: in.Body.URL,
			Key: in.Body.Key, ClientID: in.Body.ClientID, Issuer: in.Body.Issuer, Login: in.Body.Login})
	})
	return &serverAnswer{shown(held)}, err
}

func (s *Servers) trust(ctx context.Context, c wire.Call, in *struct {
	ServerPath
	Body trusted
}) (*serverAnswer, error) {
	held, err := wire.Once(c, func() (mcp.Held, error) { return s.then(ctx, c, in.Name) }, func() (mcp.Held, error) {
		return s.servers.Trust(ctx, c.Once(), c.Caller.Workspace, in.Name, in.Body.Tools)
	})
	return &serverAnswer{shown(held)}, err
}

// then returns a server as it was after the request that is repeated.
func (s *Servers) then(ctx context.Context, c wire.Call, name string) (mcp.Held, error) {
	return access.Then[mcp.Held](ctx, s.Access, c, query.Subject{Projection: mcp.Projection, EntityType: mcp.Entity, Key: name})
}

// shown returns a server as people see it.
func shown(h mcp.Held) ToolServer {
	out := ToolServer{Name: h.Name, Command: h.Command, URL: h.URL, Key: h.Key, ClientID: h.ClientID, Issuer: h.Issuer,
		Login: h.Server.Login, Hash: h.Hash(), ChangedBy: h.ChangedBy, ChangedAt: h.ChangedAt, ListedAt: h.ListedAt, Tools: []ServedTool{}}
	if l := h.Session; l != nil {
		out.LoggedIn = &LoggedIn{By: l.By, At: l.At, Client: l.Client, Scopes: l.Scopes}
	}
	trusted := map[string]mcp.Kept{}
	for _, kept := range h.Trusted {
		trusted[kept.Name] = kept
	}
	for _, seen := range h.Tools {
		one := ServedTool{Tool: seen.Name, Title: seen.Title, Description: seen.Description, Input: schema(seen.Input),
			Output: schema(seen.Output), Hash: seen.Hash, Problem: seen.Problem, State: "quarantined"}
		kept, known := trusted[seen.Name]
		delete(trusted, seen.Name)
		switch {
		case seen.Problem != "":
			one.State = "unusable"
		case h.Allows(seen.Name):
			one.State = "trusted"
		}
		if one.State != "unusable" {
			one.Name = mcp.Offered(h.Name, seen.Name)
		}
		if known {
			one.TrustedBy, one.TrustedAt = kept.By, kept.At
			if kept.Hash != seen.Hash {
				one.Was = was(kept)
			}
		}
		out.Tools = append(out.Tools, one)
	}
	for _, kept := range h.Trusted {
		if _, gone := trusted[kept.Name]; gone {
			out.Tools = append(out.Tools, ServedTool{Tool: kept.Name, Name: mcp.Offered(h.Name, kept.Name), State: "gone", Was: was(kept),
				TrustedBy: kept.By, TrustedAt: kept.At})
		}
	}
	return out
}

func was(k mcp.Kept) *TrustedTool {
	return &TrustedTool{Title: k.Title, Description: k.Description, Input: schema(k.Input), Output: schema(k.Output), Hash: k.Hash}
}

func schema(raw json.RawMessage) *Schema {
	var s Schema
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return nil
	}
	return &s
}
