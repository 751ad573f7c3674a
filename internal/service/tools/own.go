package tools

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/tool"
	"agentbox/internal/domain/web"
)

// The tools of the daemon.
const (
	CodeTool  = "code"
	FetchTool = "http_fetch"
	HTMLTool  = "html_to_markdown"

	AskTool     = tool.AskPerson
	MessageTool = "message"
	SearchTool  = "search"
	SpawnTool   = tool.Spawn

	MDReadTool  = "md_read"
	MDWriteTool = "md_write"

	CapsuleWriteTool = "capsule_write"
	CapsuleReadTool  = "capsule_read"
	ArtifactReadTool = "artifact_read"
)

// own describes a tool that the daemon executes itself, or turns into operations.
type own struct {
	name, title, description string
	effect                   policy.SideEffect
	schema                   string
	check                    func(arguments json.RawMessage) error
	named                    bool // see tool.Tool
}

// owned are the tools of the daemon, a row for each. internal/app has the functions that execute them, by name.
var owned = []own{
	{
		name: CodeTool, title: "Run code", effect: policy.Process,
		description: "Runs Python, JavaScript or TypeScript in an interpreter of the space. Variables stay between calls. The value of the " +
			"last expression is shown. The files of the space are in the current folder.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["language", "code"], "properties": {` +
			`"language": {"type": "string", "enum": ["python", "javascript", "typescript"]}, ` +
			`"code": {"type": "string", "minLength": 1, "maxLength": 30000}, ` +
			`"context": {"type": "string", "description": "name of the interpreter; main if absent"}, ` +
			`"timeout": {"type": "integer", "minimum": 1000, "maximum": 3600000, "description": "milliseconds; policy may shorten it"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadCode(arguments); return err },
	},
	{
		name: FetchTool, title: "Fetch a page", effect: policy.Network,
		description: "Fetches a page of the web and answers with its text, at most 1 MiB. Only hosts that the agent's definition allows are " +
			"asked. A page of HTML is shown as Markdown, unless raw is true.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["url"], "properties": {` +
			`"url": {"type": "string", "minLength": 1, "maxLength": 4096, "description": "http or https"}, ` +
			`"method": {"type": "string", "enum": ["GET", "HEAD"], "description": "GET unless named"}, ` +
			`"raw": {"type": "boolean", "description": "show HTML as it is"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadFetch(arguments); return err },
	},
	{
		name: HTMLTool, title: "Turn HTML into Markdown", effect: policy.Pure,
		description: "Turns a text of HTML into Markdown. Scripts and styles are left out.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["html"], "properties": {` +
			`"html": {"type": "string", "minLength": 1, "maxLength": 1048576}, ` +
			`"base_url": {"type": "string", "maxLength": 4096, "description": "against which links are read"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadHTML(arguments); return err },
	},
	{
		name: AskTool, title: "Ask a person", effect: policy.Record,
		description: "Posts a question in the thread of the run and waits until a person writes there, however long that takes. What they " +
			"write follows the result. Ask only what you need and cannot find out.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["question"], "properties": {` +
			`"question": {"type": "string", "minLength": 1, "maxLength": 16000, "description": "in Markdown"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadAsk(arguments); return err },
	},
	{
		name: MessageTool, title: "Say something", effect: policy.Record,
		description: "Posts a message in the thread of the run, for the people in the room. It waits for no answer.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["content"], "properties": {` +
			`"content": {"type": "string", "minLength": 1, "maxLength": 16000, "description": "what is said, in Markdown"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadMessage(arguments); return err },
	},
	{
		name: SearchTool, title: "Search messages", effect: policy.Read,
		description: "Finds messages that people and agents have posted in the rooms that you may read. Every word has to be in a message. " +
			"The newest come first.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["words"], "properties": {` +
			`"words": {"type": "string", "minLength": 2, "maxLength": 500, "description": "with spaces between"}, ` +
			`"limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "how many at most; 20 if absent"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadSearch(arguments); return err },
	},
	{
		name: MDReadTool, title: "Read a section", effect: policy.Read,
		description: "Reads a section of a Markdown document of the space: a heading with everything below it. Without a heading it lists the " +
			"sections. The result of a section begins with its sha256, which md_write wants.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["path"], "properties": {` +
			`"path": {"type": "string", "minLength": 1, "maxLength": 255, "description": "relative to the top of the space"}, ` +
			`"heading": {"type": "string", "maxLength": 1000, "description": "its text; with those above it, as in Install > Linux, where several ` +
			`have that text"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadMDRead(arguments); return err },
	},
	{
		name: MDWriteTool, title: "Write a section", effect: policy.Filesystem,
		description: "Writes a section of a Markdown document of the space. With heading and sha256 the content, which begins with its " +
			"heading, replaces the section that md_read has shown; an empty content removes it. If somebody has changed the section since, " +
			"nothing is written. Without both, the content is a new section at the end of the document, which is made if it is not there.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["path", "content"], "properties": {` +
			`"path": {"type": "string", "minLength": 1, "maxLength": 255, "description": "relative to the top of the space"}, ` +
			`"heading": {"type": "string", "maxLength": 1000, "description": "as md_read takes it"}, ` +
			`"sha256": {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$", "description": "of the section, as md_read has told it"}, ` +
			`"content": {"type": "string", "description": "in Markdown, at most 1 MiB"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadMDWrite(arguments); return err },
	},
	{
		name: SpawnTool, title: "Start a sub-agent", effect: policy.Process, named: true,
		description: "Gives a task to a sub-agent and waits for its report, which is the result. It knows nothing of your conversation, so the " +
			"task says all that it needs. What it uses counts for you, too.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["task"], "properties": {` +
			`"task": {"type": "string", "minLength": 1, "maxLength": 65536}, ` +
			`"blueprint": {"type": "string", "maxLength": 63, "description": "the name of another agent's definition; your own if absent"}, ` +
			`"space": {"type": "string", "enum": ["same", "new"], "description": "where it works: in your space, or in a new, empty one; ` +
			`same if absent"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadSpawn(arguments); return err },
	},
	{
		name: CapsuleWriteTool, title: "Write a capsule", effect: policy.Record, named: true,
		description: "Writes a short text for the agents above, below and beside you, who do not see your conversation: a status, a plan, a " +
			"decision or a risk. A new status, plan or risk replaces the one before it; decisions add up. Write one when something has changed.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["capsule", "text"], "properties": {` +
			`"capsule": {"type": "string", "enum": ["status", "plan", "decision", "risk"]}, ` +
			`"text": {"type": "string", "minLength": 1, "maxLength": 100000, "description": "in Markdown"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadCapsuleWrite(arguments); return err },
	},
	{
		name: CapsuleReadTool, title: "Read capsules", effect: policy.Read, named: true,
		description: "Shows what other agents have written for you in capsules (status, plan, risk, decisions), and the list of their " +
			"artifacts (manifest). You are shown as much as your definition and theirs permit.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["from"], "properties": {` + kin +
			`"capsule": {"type": "string", "enum": ["status", "plan", "risk", "decision", "manifest"], "description": "all if absent"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadCapsuleRead(arguments); return err },
	},
	{
		name: ArtifactReadTool, title: "Read an artifact", effect: policy.Read, named: true,
		description: "Shows a piece of a text artifact of another agent, which the list of its artifacts names. The first character has the " +
			"offset 0. Of several with one name the newest is read.",
		schema: `{"type": "object", "additionalProperties": false, "required": ["from", "artifact"], "properties": {` + kin +
			`"artifact": {"type": "string", "minLength": 1, "maxLength": 255, "description": "its name in the list"}, ` +
			`"offset": {"type": "integer", "minimum": 0}, "length": {"type": "integer", "minimum": 1, "description": "characters"}}}`,
		check: func(arguments json.RawMessage) error { _, err := ReadArtifactRead(arguments); return err },
	},
}

// kin are the parameters that name relatives.
const kin = `"from": {"type": "string", "enum": ["parent", "ancestors", "children", "siblings"]}, ` +
	`"number": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "of one of them, as it is shown: the first ancestor is ` +
	`your parent, the first child the oldest"}, `

// head has the fields that Prepare adds to arguments.
type head struct {
	Type string `json:"type,omitempty"`
	ID   string `json:"id,omitempty"`
}

// Code are the arguments of the tool code.
type Code struct {
	head
	Language string `json:"language"` // python or javascript; ReadCode turns typescript into javascript
	Code     string `json:"code"`
	Context  string `json:"context"`
	Timeout  *int64 `json:"timeout"` // milliseconds; nil for the policy's limit
}

// ReadCode reads the arguments of the tool code.
func ReadCode(arguments json.RawMessage) (Code, error) {
	var c Code
	if err := strictly(arguments, &c); err != nil {
		return c, err
	}
	switch c.Language {
	case "python", "javascript":
	case "typescript":
		c.Language = "javascript"
	default:
		return c, wrong("language is python, javascript or typescript, not %.32q", c.Language)
	}
	if strings.TrimSpace(c.Code) == "" {
		return c, wrong("code is missing")
	}
	if c.Context == "" {
		c.Context = "main"
	}
	return c, nil
}

// Fetch are the arguments of the tool http_fetch.
type Fetch struct {
	head
	URL    string `json:"url"`    // as web.Clean returns it
	Method string `json:"method"` // GET or HEAD
	Raw    bool   `json:"raw"`
}

// ReadFetch reads the arguments of the tool http_fetch.
func ReadFetch(arguments json.RawMessage) (Fetch, error) {
	f := Fetch{Method: "GET"}
	if err := strictly(arguments, &f); err != nil {
		return f, err
	}
	if f.Method != "GET" && f.Method != "HEAD" {
		return f, wrong("method is GET or HEAD, not %.32q", f.Method)
	}
	var err error
	f.URL, err = web.Clean(f.URL)
	return f, err
}

// maxPosted is the largest number of characters of a message.
const maxPosted = 16_000

func posted(name, text string) error {
	if n := utf8.RuneCountInString(text); strings.TrimSpace(text) == "" || n > maxPosted {
		return wrong("%s has 1 to %d characters, not %d", name, maxPosted, n)
	}
	return nil
}

// Ask are the arguments of the tool ask_person.
type Ask struct {
	head
	Question string `json:"question"`
}

// ReadAsk reads the arguments of the tool ask_person.
func ReadAsk(arguments json.RawMessage) (Ask, error) {
	var a Ask
	if err := strictly(arguments, &a); err != nil {
		return a, err
	}
	return a, posted("question", a.Question)
}

// Message are the arguments of the tool message.
type Message struct {
	head
	Content string `json:"content"`
}

// ReadMessage reads the arguments of the tool message.
func ReadMessage(arguments json.RawMessage) (Message, error) {
	var m Message
	if err := strictly(arguments, &m); err != nil {
		return m, err
	}
	return m, posted("content", m.Content)
}

// Search are the arguments of the tool search.
type Search struct {
	head
	Words string `json:"words"`
	Limit int    `json:"limit"` // 0 for the default
}

// ReadSearch reads the arguments of the tool search.
func ReadSearch(arguments json.RawMessage) (Search, error) {
	var s Search
	if err := strictly(arguments, &s); err != nil {
		return s, err
	}
	if n := utf8.RuneCountInString(s.Words); n < 2 || n > 500 {
		return s, wrong("words has 2 to 500 characters")
	}
	if s.Limit < 0 || s.Limit > 100 {
		return s, wrong("limit is 1 to 100")
	}
	return s, nil
}

// maxTask is the most bytes of the task of a sub-agent.
const maxTask = 64 << 10

// Spawn are the arguments of the tool spawn.
type Spawn struct {
	head
	Task      string `json:"task"`
	Blueprint string `json:"blueprint"` // "" for the agent's own
	Space     string `json:"space"`     // same or new
}

// ReadSpawn reads the arguments of the tool spawn.
func ReadSpawn(arguments json.RawMessage) (Spawn, error) {
	s := Spawn{Space: "same"}
	if err := strictly(arguments, &s); err != nil {
		return s, err
	}
	if strings.TrimSpace(s.Task) == "" || len(s.Task) > maxTask {
		return s, wrong("task has 1 to %d bytes", maxTask)
	}
	if s.Space != "same" && s.Space != "new" {
		return s, wrong("space is same or new, not %.32q", s.Space)
	}
	return s, nil
}

// MDRead are the arguments of the tool md_read.
type MDRead struct {
	head
	Path    string `json:"path"`
	Heading string `json:"heading"` // "" for the list of sections
}

// ReadMDRead reads the arguments of the tool md_read.
func ReadMDRead(arguments json.RawMessage) (MDRead, error) {
	var m MDRead
	if err := strictly(arguments, &m); err != nil {
		return m, err
	}
	return m, document(m.Path)
}

// MDWrite are the arguments of the tool md_write.
type MDWrite struct {
	head
	Path    string `json:"path"`
	Heading string `json:"heading"` // with Hash: the section that is replaced; both are "" for a new one
	Hash    string `json:"sha256"`
	Content string `json:"content"`
}

// maxSection is the most bytes that md_write writes.
const maxSection = 1 << 20

// ReadMDWrite reads the arguments of the tool md_write.
func ReadMDWrite(arguments json.RawMessage) (MDWrite, error) {
	var m MDWrite
	if err := strictly(arguments, &m); err != nil {
		return m, err
	}
	switch {
	case (m.Heading == "") != (m.Hash == ""):
		return m, wrong("heading and sha256 go together: md_read tells both of a section; a new section has neither")
	case m.Heading == "" && strings.TrimSpace(m.Content) == "":
		return m, wrong("content is missing")
	case len(m.Content) > maxSection:
		return m, wrong("content has %d bytes; at most %d are written", len(m.Content), maxSection)
	}
	return m, document(m.Path)
}

// document refuses a path that names no file of a space.
func document(path string) error {
	if _, err := space.CleanFilePath(path); err != nil {
		return wrong("path: %v", err)
	}
	return nil
}
