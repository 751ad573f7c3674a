package model

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// TaskClass is the purpose of a request; routes choose models by it.
type TaskClass string

// The task classes that have a meaning of their own. Others may be named freely.
const (
	Chat          TaskClass = "chat"
	Coding        TaskClass = "coding"
	Research      TaskClass = "research"
	Summarization TaskClass = "summarization"
	Triage        TaskClass = "triage"
	Drafting      TaskClass = "drafting"
)

// Route says which models answer requests of a class, the best first. An empty class or room stands for all.
type Route struct {
	Class  TaskClass `json:"class,omitempty"`
	Room   id.Room   `json:"room_id,omitempty"`
	Models []string  `json:"models"` // names of entries
}

// Choose returns the models of the route that fits best, and why: a room goes before a class, and a class before none.
func Choose(routes []Route, class TaskClass, room id.Room) ([]string, string) {
	best, rank := -1, -1
	for i, r := range routes {
		if r.Class != "" && r.Class != class || r.Room != "" && r.Room != room {
			continue
		}
		n := 0
		if r.Room != "" {
			n += 2
		}
		if r.Class != "" {
			n++
		}
		if n > rank {
			best, rank = i, n
		}
	}
	if best < 0 {
		return nil, ""
	}
	return slices.Clone(routes[best].Models), [...]string{"the route of everything", "the route of the class", "the route of the room",
		"the route of the class in the room"}[rank]
}

// The providers: the wire that an endpoint speaks.
const (
	OpenAI    = "openai"    // chat completions
	Anthropic = "anthropic" // messages
	Scripted  = "scripted"  // a cassette
)

// The dialects of the wire of OpenAI.
const (
	DialectOpenAI   = "openai"
	DialectZAI      = "zai"
	DialectDeepSeek = "deepseek"
	DialectQwen     = "qwen"
	DialectOllama   = "ollama"
	DialectVLLM     = "vllm"
	DialectLlamaCPP = "llamacpp"
	DialectGeneric  = "generic"
)

// Entry is a model that the workspace may ask. It names its key and does not hold it.
type Entry struct {
	Name         string       `json:"name"`
	Workspace    id.Workspace `json:"workspace_id,omitempty"`
	Provider     string       `json:"provider"`
	Dialect      string       `json:"dialect,omitempty"`
	BaseURL      string       `json:"base_url,omitempty"` // for scripted: the name of the cassette
	Model        string       `json:"model"`              // as the endpoint calls it
	Key          string       `json:"key,omitempty"`      // the name of a secret; empty for an endpoint without keys
	AllowPrivate bool         `json:"allow_private,omitempty"`

	Context   int `json:"context_tokens,omitempty"`    // the size of the window; 0 is not known
	MaxOutput int `json:"max_output_tokens,omitempty"` // 0 means DefaultOutput
	IdleMS    int `json:"idle_ms,omitempty"`           // the most between two pieces; 0 means DefaultIdle
	TotalMS   int `json:"total_ms,omitempty"`          // the most for one request; 0 means DefaultTotal

	NoTools bool `json:"no_tools,omitempty"` // it knows no tool calls: agents call tools in plain text

	Images bool `json:"images,omitempty"` // it takes pictures, though its provider and dialect do not say so by themselves

	Classes []TaskClass  `json:"classes,omitempty"` // for which it answers where no route says otherwise
	Record  string       `json:"record,omitempty"`  // the cassette into which requests and answers are written; empty for none
	AddedBy id.Principal `json:"added_by,omitempty"`
	AddedAt time.Time    `json:"added_at,omitzero"`
}

// Defaults of an entry.
const (
	DefaultOutput = 8_192
	DefaultIdle   = 2 * time.Minute // a server of one's own loads its model first
	DefaultTotal  = 10 * time.Minute
)

// preset returns the base URL of a dialect that has one.
func preset(dialect string) string {
	switch dialect {
	case DialectOpenAI:
		return "https://api.openai.com/v1"
	case DialectZAI:
		return "https://api.z.ai/api/paas/v4"
	case DialectDeepSeek:
		return "https://api.deepseek.com"
	case DialectQwen:
		return "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
	case Anthropic:
		return "https://api.anthropic.com"
	}
	return ""
}

// Complete fills in what the provider and the dialect say by themselves.
func (e Entry) Complete() Entry {
	if e.Provider == "" && e.Dialect == "" {
		e.Provider, e.Dialect = OpenAI, DialectZAI
	}
	if e.Provider == "" {
		e.Provider = OpenAI
	}
	if e.Provider == OpenAI && e.Dialect == "" {
		e.Dialect = DialectGeneric
	}
	if e.BaseURL == "" {
		e.BaseURL = preset(e.Speaks())
	}
	e.BaseURL = strings.TrimRight(e.BaseURL, "/")
	return e
}

// TakesImages reports whether the model takes pictures: every one of Anthropic and of OpenAI itself, a cassette, and one that says so.
func (e Entry) TakesImages() bool {
	return e.Images || e.Provider == Anthropic || e.Provider == Scripted || e.Provider == OpenAI && e.Dialect == DialectOpenAI
}

// Speaks returns the dialect, by which reasoning is marked: that of the provider where the provider has only one.
func (e Entry) Speaks() string {
	if e.Provider == OpenAI {
		return e.Dialect
	}
	return e.Provider
}

// Check refuses an entry that cannot work. It names what to change.
func (e Entry) Check() error {
	bad := func(format string, args ...any) error {
		return fault.New(fault.Invalid, "model_invalid", format, args...)
	}
	if !named(e.Name) {
		return bad("a model's name has 1 to 64 of a-z, 0-9, . _ and -")
	}
	if e.Model == "" || len(e.Model) > 200 {
		return bad("model is the endpoint's own name of the model, of at most 200 bytes")
	}
	switch {
	case e.Provider == OpenAI && slices.Contains(Dialects(), e.Dialect):
	case (e.Provider == Anthropic || e.Provider == Scripted) && e.Dialect == "":
	default:
		return bad("provider is openai (dialect one of %s), anthropic or scripted", strings.Join(Dialects(), ", "))
	}
	if e.Key != "" && !named(e.Key) {
		return bad("key is the name of a secret (1 to 64 of a-z, 0-9, . _ and -), never the secret itself")
	}
	if e.Record != "" && (!named(e.Record) || e.Provider == Scripted) {
		return bad("record is the name of a cassette, for a model that is not a cassette itself")
	}
	if len(e.Classes) > 32 {
		return bad("a model has at most 32 classes")
	}
	if e.Context < 0 || e.MaxOutput < 0 || e.IdleMS < 0 || e.TotalMS < 0 {
		return bad("limits must not be negative")
	}
	if e.Provider == Scripted {
		if !named(e.BaseURL) {
			return bad("base_url of a scripted model is the name of its cassette")
		}
		return nil
	}
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bad("base_url must be an http or https address without a user, a query or a fragment")
	}
	if u.Scheme == "http" && !e.AllowPrivate {
		return bad("base_url must use https; allow_private permits http, for servers of your own network")
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil && !Public(a) && !e.AllowPrivate {
		return bad("%s is a private address; allow_private permits it", a)
	}
	return nil
}

// Dialects returns the dialects of the wire of OpenAI.
func Dialects() []string {
	return []string{DialectOpenAI, DialectZAI, DialectDeepSeek, DialectQwen, DialectOllama, DialectVLLM, DialectLlamaCPP, DialectGeneric}
}

func named(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == "" && name[0] != '.'
}

// Output returns the most tokens that an answer to the request may have.
func (e Entry) Output(r Request) int {
	most := e.MaxOutput
	if most == 0 {
		most = DefaultOutput
	}
	if r.MaxTokens > 0 {
		most = min(most, r.MaxTokens)
	}
	return most
}

// Idle returns the most time between two pieces of an answer.
func (e Entry) Idle() time.Duration { return orElse(e.IdleMS, DefaultIdle) }

// Total returns the most time for a request.
func (e Entry) Total() time.Duration { return orElse(e.TotalMS, DefaultTotal) }

func orElse(ms int, d time.Duration) time.Duration {
	if ms > 0 {
		return time.Duration(ms) * time.Millisecond
	}
	return d
}

// Public reports whether an address belongs to the public internet. Everything else is a host of one's own network, or nobody's.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.Zone() != "" {
		return false
	}
	for _, p := range [...]string{"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "fec0::/10"} {
		if netip.MustParsePrefix(p).Contains(a) {
			return false
		}
	}
	return true
}

// Target returns what an action of type model.call names as its target: the address of the endpoint.
func (e Entry) Target() string {
	if e.Provider == Scripted {
		return "cassette://" + e.BaseURL
	}
	return e.BaseURL
}
