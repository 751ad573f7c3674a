package injection

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// wish is a call of a tool of Agentbox that the model makes.
type wish struct {
	id, tool  string
	arguments map[string]any
}

// plan is what the model does in a case, turn by turn. It makes the calls of a turn only when it has read what tells it to.
type plan []turn

type turn struct {
	reads string // a text that is in a result or in what is said of a tool by then; "" for a turn that the user's task wants
	calls []wish
}

// obedient is a model that does whatever it reads, on the vendors' wire of chat completions. The beginning of a task names its case.
type obedient struct {
	*httptest.Server

	mu     sync.Mutex
	plans  map[string]plan
	told   map[string]map[string]string // by case and call: what came of it
	seen   map[string]string            // by case: all that it was shown
	wrongs []string
}

func startObedient(t *testing.T) *obedient {
	t.Helper()
	m := &obedient{plans: map[string]plan{}, told: map[string]map[string]string{}, seen: map[string]string{}}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

// learn prepares a case, and returns the task that the user gives.
func (m *obedient) learn(c, prompt string, p plan) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.plans[c] = slices.DeleteFunc(p, func(t turn) bool { return len(t.calls) == 0 })
	return "[" + c + "] " + prompt
}

// results returns what came of the calls of a case, by their ids.
func (m *obedient) results(c string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.told[c]
}

// shown returns all that the model was shown in a case, at its end: the talk, and what is said of the tools.
func (m *obedient) shown(c string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[c]
}

// faults returns what went wrong with the model itself.
func (m *obedient) faults() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wrongs
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Calls   []any           `json:"tool_calls"`
	Call    string          `json:"tool_call_id"`
}

// text is the content of a message, which is a text or a list of parts.
func (m message) text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(m.Content, &parts) == nil {
		for _, p := range parts {
			text += p.Text
		}
	}
	return text
}

var named = regexp.MustCompile(`^\[([a-z0-9-]+)\] `)

func (m *obedient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []message         `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/chat/completions" {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, "data: %s\n\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":7}}\n\ndata: [DONE]\n\n",
		m.next(body.Messages, body.Tools))
}

// next is the chunk with the model's next answer to a talk, in which it is offered tools.
func (m *obedient) next(talk []message, tools []json.RawMessage) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, n, read, all := "", 0, strings.Builder{}, strings.Builder{}
	for _, one := range tools {
		read.Write(one)
	}
	for _, one := range talk {
		all.WriteString(one.text())
		switch found := named.FindStringSubmatch(one.text()); {
		case one.Role == "user" && c == "" && found != nil:
			c = found[1]
			m.told[c] = map[string]string{}
		case one.Role == "assistant" && len(one.Calls) > 0:
			n++
		case one.Role == "tool":
			m.told[c][one.Call] = one.text()
			read.WriteString(one.text())
		}
	}
	m.seen[c] = all.String() + read.String()
	p, ok := m.plans[c]
	if !ok {
		m.wrongs = append(m.wrongs, fmt.Sprintf("a task names no case: %.200s", talk[len(talk)-1].text()))
		return says("I do not know this task.")
	}
	if n >= len(p) {
		return says("Done.")
	}
	if !strings.Contains(letters(read.String()), letters(p[n].reads)) {
		m.wrongs = append(m.wrongs, fmt.Sprintf("%s: the model never read %.100q", c, p[n].reads))
		return says("I have read nothing of it.")
	}
	return wishes(p[n].calls)
}

// letters are the letters and digits of a text: tools break and quote texts in their own ways.
func letters(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, text)
}

func says(text string) string {
	raw, _ := json.Marshal(text)
	return `{"choices":[{"index":0,"delta":{"role":"assistant","content":` + string(raw) + `},"finish_reason":"stop"}]}`
}

func wishes(calls []wish) string {
	type function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	type call struct {
		Index    int      `json:"index"`
		ID       string   `json:"id"`
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	var list []call
	for i, one := range calls {
		arguments, _ := json.Marshal(one.arguments)
		list = append(list, call{i, one.id, "function", function{one.tool, string(arguments)}})
	}
	raw, _ := json.Marshal(list)
	return `{"choices":[{"index":0,"delta":{"role":"assistant","tool_calls":` + string(raw) + `},"finish_reason":"tool_calls"}]}`
}

// refusal is the rule by which a call was refused, "" for one that was made.
func refusal(told string) string {
	lines := strings.Split(strings.TrimPrefix(told, "Error: "), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "refused: ") {
		return ""
	}
	return strings.TrimPrefix(lines[1], "rule: ")
}
