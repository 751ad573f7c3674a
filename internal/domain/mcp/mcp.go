// Package mcp defines the servers of the Model Context Protocol whose tools agents use: what they offer, and what of it a person trusts.
package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Bounds of a server and of what it says.
const (
	MaxServers     = 100       // of a workspace
	MaxCommand     = 4 << 10   // bytes of the command line of a server
	MaxClientID    = 256       // characters of a client id of OAuth
	MaxTools       = 128       // of a server
	MaxList        = 512 << 10 // bytes of names, descriptions and schemas of all its tools
	MaxOffered     = 64        // characters of the name that a model is shown, which is what vendors of models take
	MaxDescription = 8 << 10   // bytes of a description, as it is shown
	MaxSchema      = 64 << 10  // bytes of the schemas of a tool
	MaxDepth       = 32        // of a schema
	MaxAnswer      = 4 << 20   // bytes of a message of a server
	MaxSessions    = 256       // that are open at the same time
	MaxCallTime    = 3600      // seconds of a call
	MaxLogins      = 32        // that have begun and not ended
	MaxGrant       = 64 << 10  // bytes of what an issuer gives for a login, with all that renews it
	MaxAddress     = 8 << 10   // bytes of the address at which a person logs in
	MaxCode        = 4 << 10   // characters of the code that a login ends with
	ListTime       = 30 * time.Second
	LoginTime      = 10 * time.Minute // from the beginning of a login to its end
)

// between is between the name of a server and that of its tool in the name that a model is shown. No name of a server and none of a tool
// that comes with the program has it, so that no name stands for two tools.
const between = "__"

// Server is a server as a workspace knows it. It has a command or an address.
type Server struct {
	Name    string `json:"name"`
	Command string `json:"command,omitempty" doc:"A command line in the agent's space, which speaks on its standard input and output"`
	URL     string `json:"url,omitempty" doc:"The address of a server that speaks streamable HTTP"`
	Key     string `json:"key,omitempty" doc:"The name of the key that an address is sent as a bearer token, never the key"`

	// Of a server that wants OAuth: the client id, for which the key is the secret, and the issuer at which it is registered.
	ClientID string `json:"client_id,omitempty"`
	Issuer   string `json:"issuer,omitempty"`

	// Login says that the tokens are those of a person who logs in with a browser. A client registers itself where the client id is "". The
	// issuer is one at the host of the server where it is "".
	Login bool `json:"login,omitempty"`
}

var (
	serverName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`)
	toolName   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	keyName    = regexp.MustCompile(`^[a-z0-9._-]{1,64}$`)
)

// Check refuses a server that cannot work. Its address is already clean.
func (s Server) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "mcp_server_invalid", format, args...)
	}
	switch {
	case !serverName.MatchString(s.Name):
		return bad("a server's name has 1 to 24 small letters, digits and hyphens, a letter first")
	case (s.Command == "") == (s.URL == ""):
		return bad("a server has either a command or a url")
	case len(s.Command) > MaxCommand || !utf8.ValidString(s.Command) || strings.ContainsFunc(s.Command, unicode.IsControl):
		return bad("command is one line of at most %d bytes, without control characters", MaxCommand)
	case s.Key != "" && (s.URL == "" || !keyName.MatchString(s.Key)):
		return bad("key is the name of a key (1 to 64 of a-z, 0-9, . _ and -) for a server with a url")
	case s.Login && (s.URL == "" || s.Key != "" && s.ClientID == ""):
		return bad("a person logs in to a server with a url; its key is the secret of the client_id")
	case !s.Login && ((s.ClientID == "") != (s.Issuer == "") || s.ClientID != "" && s.Key == ""):
		return bad("client_id and issuer go together, with the name of the client's secret as the key")
	case len(s.ClientID) > MaxClientID || strings.ContainsFunc(s.ClientID, func(r rune) bool { return r <= ' ' || r > '~' }):
		return bad("client_id has at most %d visible characters of ASCII", MaxClientID)
	}
	return nil
}

// Tool is a tool as a server describes it.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`
	Output      json.RawMessage `json:"output_schema,omitempty"`
}

// Hash returns the content hash of everything that the server says of the tool.
func (t Tool) Hash() (event.Digest, error) {
	raw, err := json.Marshal(t)
	if err != nil {
		return event.Digest{}, err
	}
	canonical, err := policy.Canonicalize(raw)
	if err != nil {
		canonical = raw // its schema has a number that no canonical form has; it is not offered
	}
	return event.DigestOf(canonical), nil
}

// Offered returns the name of a tool that a model is shown.
func Offered(server, tool string) string { return server + between + tool }

// Split returns the server and the tool of a name that a model is shown; false for the name of any other tool.
func Split(offered string) (server, tool string, ok bool) {
	server, tool, ok = strings.Cut(offered, between)
	return server, tool, ok && serverName.MatchString(server) && toolName.MatchString(tool)
}

// Seen is a tool as people and models are shown it. Invisible characters of its texts are escaped, so that a person reads what a model
// reads.
type Seen struct {
	Tool
	Hash    event.Digest `json:"tool_sha256" doc:"Of what the server says of the tool; a person trusts this"`
	Problem string       `json:"problem,omitempty" doc:"Why it cannot be offered to any agent"`
}

// See returns a tool as it is shown. Of a tool that cannot be offered it keeps the name and the hash, and says why.
func See(server string, t Tool) (Seen, error) {
	hash, err := t.Hash()
	if err != nil {
		return Seen{}, err
	}
	shown := Seen{Tool: t, Hash: hash}
	shown.Title, shown.Description = Visible(t.Title), Visible(t.Description)
	if shown.Problem = problem(server, shown.Tool); shown.Problem != "" {
		name := Visible(t.Name)
		if len(name) > 2*MaxOffered {
			name = strings.ToValidUTF8(name[:2*MaxOffered], "") + "..."
		}
		shown.Tool = Tool{Name: name}
	}
	return shown, nil
}

// problem returns why a tool cannot be offered; "" for one that can.
func problem(server string, t Tool) string {
	switch {
	case !toolName.MatchString(t.Name) || len(Offered(server, t.Name)) > MaxOffered:
		return fmt.Sprintf("its name is not one of letters, digits, hyphens and underscores, of at most %d together with the server's",
			MaxOffered-len(between))
	case len(t.Description)+len(t.Title) > MaxDescription:
		return fmt.Sprintf("its description has %d bytes; the limit is %d", len(t.Description)+len(t.Title), MaxDescription)
	case len(t.Input)+len(t.Output) > MaxSchema:
		return fmt.Sprintf("its schemas have %d bytes; the limit is %d", len(t.Input)+len(t.Output), MaxSchema)
	}
	var in struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(t.Input, &in) != nil || in.Type != "object" {
		return "its input schema is no object with type: object"
	}
	for _, schema := range []json.RawMessage{t.Input, t.Output} {
		if _, err := policy.Canonicalize(schema); len(schema) > 0 && err != nil {
			return "a schema of it has no canonical form: a number that is not exact, or a name that is there twice"
		}
		if depth(schema) > MaxDepth {
			return fmt.Sprintf("a schema of it is nested more than %d deep", MaxDepth)
		}
		if text := string(schema); Visible(text) != text || hides(schema) {
			return "a schema of it has characters that nobody sees"
		}
	}
	return ""
}

// depth returns how deep a JSON text is nested.
func depth(text json.RawMessage) int {
	deepest, now := 0, 0
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := dec.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			now++
			deepest = max(deepest, now)
		case json.Delim('}'), json.Delim(']'):
			now--
		}
	}
}

// hides reports whether a text within JSON has a character that nobody sees, also where it is written as an escape.
func hides(text json.RawMessage) bool {
	for dec := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := dec.Token()
		if err != nil {
			return false
		}
		if s, ok := token.(string); ok && Visible(s) != s {
			return true
		}
	}
}

// unseen are characters that fonts draw as nothing although Unicode counts them as letters, marks or symbols.
var unseen = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x034f, Hi: 0x034f, Stride: 1}, {Lo: 0x115f, Hi: 0x1160, Stride: 1}, {Lo: 0x17b4, Hi: 0x17b5, Stride: 1},
	{Lo: 0x180b, Hi: 0x180f, Stride: 1}, {Lo: 0x2800, Hi: 0x2800, Stride: 1}, {Lo: 0x3164, Hi: 0x3164, Stride: 1},
	{Lo: 0xfe00, Hi: 0xfe0f, Stride: 1}, {Lo: 0xffa0, Hi: 0xffa0, Stride: 1},
}, R32: []unicode.Range32{{Lo: 0xe0100, Hi: 0xe01ef, Stride: 1}}}

// Visible returns a text in which every control character and every character that nobody sees is written as \u{code point}. Line feeds and
// tabs stay.
func Visible(text string) string {
	plain := func(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) && !unicode.Is(unseen, r) }
	var out strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case plain(r):
			out.WriteRune(r)
		default:
			fmt.Fprintf(&out, `\u{%x}`, r)
		}
	}
	return out.String()
}
