package toolservers_test

import (
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/mcp"
	"agentbox/internal/testkit/authserver"
)

// kitContext is what the conformance kit tells the client of a scenario.
type kitContext struct {
	Client string `json:"client_id"`
	Secret string `json:"client_secret"`
	Calls  []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"toolCalls"`
}

// TestKit is the client of the conformance kit of the Model Context Protocol, which starts it with the address of a server for each of its
// scenarios (scripts/mcp). What the kit does not get to see, this program checks. Without an address it plays a scenario of its own.
//
// It does what people and agents do: it knows the server, logs in where the server wants that, names the issuer that the server tells,
// looks at the tools, trusts them, and calls them, with the real gate, service and client.
func TestKit(t *testing.T) {
	scenario, at := os.Getenv("MCP_CONFORMANCE_SCENARIO"), flag.Arg(0)
	if at == "" {
		g := authserver.NewGuarded()
		t.Cleanup(g.Close)
		scenario, at = "auth/basic", g.URL+"/mcp"
		defer func() {
			if g.Calls.Load() == 0 {
				t.Error("the tool was not called")
			}
		}()
	}
	var told kitContext
	if raw := os.Getenv("MCP_CONFORMANCE_CONTEXT"); raw != "" {
		if err := json.Unmarshal([]byte(raw), &told); err != nil {
			t.Fatal(err)
		}
	}
	f := start(t)
	f.reaching(secrets{"kit": told.Secret})
	f.permits(at)
	k := &kit{fixture: f, server: mcp.Server{Name: "kit", URL: at}}
	if k.server.Login = strings.HasPrefix(scenario, "auth/"); k.server.Login {
		k.identify(scenario, told)
	}
	f.put(k.server)
	if k.server.Login {
		k.logIn()
	}
	k.call(told, k.trusted())
}

// kit is the client of one scenario.
type kit struct {
	*fixture
	server mcp.Server
}

// identify says who the client is: as the kit tells, by a document that the kit's issuer knows, or a client that registers itself.
func (k *kit) identify(scenario string, told kitContext) {
	switch {
	case strings.HasPrefix(scenario, "auth/client-credentials"): // a program logs in, no person
		k.server.Login, k.server.ClientID, k.server.Key = false, told.Client, "kit"
		k.server.Issuer = k.issuer()
		k.permits(k.server.Issuer)
	case told.Client != "":
		k.server.ClientID, k.server.Key = told.Client, "kit"
	case scenario == "auth/basic-cimd":
		k.server.ClientID = "https://conformance-test.local/client-metadata.json"
	}
}

// issuer returns the issuer that the server tells: a program that logs in is told it beforehand.
func (k *kit) issuer() string {
	k.t.Helper()
	at, err := url.Parse(k.server.URL)
	if err != nil {
		k.t.Fatal(err)
	}
	at.Path = "/.well-known/oauth-protected-resource" + at.Path
	r, err := http.NewRequestWithContext(k.t.Context(), http.MethodGet, at.String(), http.NoBody)
	if err != nil {
		k.t.Fatal(err)
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	var said struct {
		Issuers []string `json:"authorization_servers"`
	}
	if err := json.NewDecoder(got.Body).Decode(&said); err != nil || len(said.Issuers) == 0 {
		k.t.Fatalf("the server tells no issuer: %v", err)
	}
	return said.Issuers[0]
}

// named finds the issuer in an error.
var named = regexp.MustCompile(`--issuer (\S+)`)

// logIn logs in. Where the server tells another issuer than the one that is named, the person names that one.
func (k *kit) logIn() {
	k.t.Helper()
	_, err := k.logsIn("kit")
	if errors.Is(err, mcp.ErrIssuer) {
		said, _ := errors.AsType[*fault.Error](err)
		issuer := named.FindStringSubmatch(said.Suggestion)
		if issuer == nil {
			k.t.Fatalf("no issuer is told: %v", err)
		}
		k.server.Issuer = issuer[1]
		k.permits(issuer[1])
		k.put(k.server)
		_, err = k.logsIn("kit")
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// trusted looks at the tools of the server, and trusts them. Where the server wants more than the login was for, the person logs in again.
func (k *kit) trusted() mcp.Held {
	k.t.Helper()
	held, err := k.Look(k.t.Context(), k.from(k.owner), "kit")
	if errors.Is(err, mcp.ErrLogin) {
		k.logIn()
		held, err = k.Look(k.t.Context(), k.from(k.owner), "kit")
	}
	if err != nil {
		k.t.Fatal(err)
	}
	var all []mcp.Named
	for _, seen := range held.Tools {
		if seen.Problem == "" {
			all = append(all, mcp.Named{Tool: seen.Name, Hash: seen.Hash})
		}
	}
	if len(all) > 0 {
		if held, err = k.Trust(k.t.Context(), k.owner, ws, "kit", all); err != nil {
			k.t.Fatal(err)
		}
	}
	return held
}

// call calls what the kit tells, or each tool.
func (k *kit) call(told kitContext, held mcp.Held) {
	k.t.Helper()
	type call struct{ name, arguments string }
	var calls []call
	for _, c := range told.Calls {
		calls = append(calls, call{c.Name, string(c.Arguments)})
	}
	if len(calls) == 0 {
		for _, seen := range held.Tools {
			c := call{seen.Name, `{}`}
			switch seen.Name {
			case "add_numbers":
				c.arguments = `{"a":5,"b":3}`
			case "json_schema_echo": // it wants the schema of its neighbour, as it was read
				c.arguments = `{"schema":` + string(held.Tools[0].Input) + `}`
			}
			calls = append(calls, c)
		}
	}
	for _, c := range calls {
		got, err := k.asks("kit__"+c.name, c.arguments)
		if errors.Is(err, mcp.ErrLogin) {
			k.logIn()
			k.trusted()
			got, err = k.asks("kit__"+c.name, c.arguments)
		}
		k.t.Logf("%s: %+v, %v", c.name, got, err)
		if err != nil {
			k.t.Errorf("%s: %v", c.name, err)
		}
	}
}
