package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"agentbox/internal/domain/model"
)

// The wires that a scripted vendor speaks.
const (
	chatWire     = "chat completions"
	messagesWire = "messages"
)

// scene is what a vendor does with one request. Without anything else it is a whole answer.
type scene struct {
	say, think string
	seal       string // the signature of the thinking, on the wire of messages
	calls      []model.Call
	stop       model.Stop // "" for the usual one
	silent     bool       // it does not say what was used
	used       int        // tokens of the answer; 0 for five

	fails string            // it refuses: one of the kinds of refusal
	after string            // Retry-After
	page  string            // it answers with this body and the status 200
	raw   map[string]string // the stream by wire, instead of what is said above
	huge  int               // it says so many letters after its text

	breaks bool // the connection breaks before the end
	ends   bool // the stream ends in order, but without the end of the answer
	stalls bool // it says nothing more until the client goes
	holds  bool // it waits before the end until the test lets it go on
	waits  bool // the same, before anything is said
}

// refusal is a status and a body of a vendor's refusal, by the wire.
type refusal struct {
	status int
	body   string
}

// refusals are the documented refusals of both wires.
var refusals = map[string]map[string]refusal{
	chatWire: {
		"load":     {429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`},
		"overload": {503, `{"error":{"message":"Slow down","type":"server_error","code":"slow_down"}}`},
		"broken":   {500, `{"error":{"message":"The server had an error","type":"server_error","code":null}}`},
		"gateway":  {502, `<html><body>502 Bad Gateway</body></html>`},
		"key":      {401, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","code":"invalid_api_key"}}`},
		"money":    {429, `{"error":{"message":"You exceeded your quota","type":"insufficient_quota","code":"insufficient_quota"}}`},
		"long":     {400, `{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}`},
		"wrong":    {400, `{"error":{"message":"Unknown parameter","type":"invalid_request_error","code":"unknown_parameter"}}`},
		"gone":     {404, `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`},
		"moved":    {307, ``},
	},
	messagesWire: {
		"load":     {429, `{"type":"error","error":{"type":"rate_limit_error","message":"Rate limited"}}`},
		"overload": {529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		"broken":   {500, `{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`},
		"gateway":  {502, `<html><body>502 Bad Gateway</body></html>`},
		"key":      {401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`},
		"money":    {402, `{"type":"error","error":{"type":"billing_error","message":"Your credit balance is too low"}}`},
		"long":     {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`},
		"wrong":    {400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: wrong"}}`},
		"gone":     {404, `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`},
		"moved":    {307, ``},
	},
}

// stops are the words of the wires for why an answer ends. The wire of messages has none for a filter.
var stops = map[string]map[model.Stop]string{
	chatWire: {model.StopEnd: "stop", model.StopTools: "tool_calls", model.StopLength: "length", model.StopRefusal: "stop",
		model.StopFilter: "content_filter", model.StopOverflow: "model_context_window_exceeded"},
	messagesWire: {model.StopEnd: "end_turn", model.StopTools: "tool_use", model.StopLength: "max_tokens", model.StopRefusal: "refusal",
		model.StopOverflow: "model_context_window_exceeded"},
}

// actor is a vendor that plays scenes, one for each request, and keeps the requests. The last scene is played for every further request.
type actor struct {
	*httptest.Server
	t      *testing.T
	wire   string
	scenes []scene
	goOn   chan struct{} // receives once for each scene that waits

	mu     sync.Mutex    // guards the rest
	bodies [][]byte      // the requests
	came   chan struct{} // is closed and made anew with each request
	keys   []string      // the keys that were sent
}

func startActor(t *testing.T, wire string, scenes []scene) *actor {
	t.Helper()
	a := &actor{t: t, wire: wire, scenes: scenes, goOn: make(chan struct{}), came: make(chan struct{})}
	a.Server = httptest.NewServer(a)
	t.Cleanup(func() {
		a.CloseClientConnections()
		a.Close()
	})
	return a
}

// ServeHTTP plays the scene of the request.
func (a *actor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	one := a.scenes[min(len(a.bodies), len(a.scenes)-1)]
	a.bodies, a.keys = append(a.bodies, raw), append(a.keys, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	close(a.came)
	a.came = make(chan struct{})
	a.mu.Unlock()
	if one.waits && !a.waited(r) {
		return
	}
	a.play(w, r, one)
}

// waited waits until the test lets the scene go on; false where the client has gone.
func (a *actor) waited(r *http.Request) bool {
	select {
	case <-a.goOn:
		return true
	case <-r.Context().Done():
		return false
	}
}

// asked returns how many requests have come, and a channel that is closed at the next one.
func (a *actor) asked() (int, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.bodies), a.came
}

// requests returns all requests.
func (a *actor) requests() [][]byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bodies[:len(a.bodies):len(a.bodies)]
}

func (a *actor) play(w http.ResponseWriter, r *http.Request, s scene) {
	if s.fails != "" {
		no, known := refusals[a.wire][s.fails]
		if !known {
			a.t.Errorf("there is no refusal %q", s.fails)
		}
		if s.after != "" {
			w.Header().Set("Retry-After", s.after)
		}
		w.WriteHeader(no.status)
		_, _ = io.WriteString(w, no.body)
		return
	}
	if s.page != "" {
		_, _ = io.WriteString(w, s.page)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	begin, end := chatEvents(s)
	if a.wire == messagesWire {
		begin, end = messageEvents(s)
	}
	if s.raw != nil {
		begin, end = []string{s.raw[a.wire]}, nil
	}
	for _, e := range begin {
		if _, err := io.WriteString(w, e); err != nil {
			return
		}
	}
	_ = http.NewResponseController(w).Flush()
	switch {
	case s.breaks:
		panic(http.ErrAbortHandler)
	case s.ends:
		return
	case s.stalls:
		<-r.Context().Done()
		return
	case s.holds && !a.waited(r):
		return
	}
	_, _ = io.WriteString(w, strings.Join(end, ""))
}

// halves cuts a text into two pieces, between two characters.
func halves(text string) []string {
	n := len(text) / 2
	for n > 0 && n < len(text) && !utf8.RuneStart(text[n]) {
		n--
	}
	if n == 0 {
		return []string{text}
	}
	return []string{text[:n], text[n:]}
}

// stopOf returns the word for why an answer ends.
func stopOf(s scene, wire string) string {
	why := s.stop
	if why == "" {
		why = model.StopEnd
		if len(s.calls) > 0 {
			why = model.StopTools
		}
	}
	return stops[wire][why]
}

// texts returns what a scene says, piece by piece.
func (s scene) texts() []string {
	var pieces []string
	if s.say != "" {
		pieces = halves(s.say)
	}
	const most = 1 << 20
	for left := s.huge; left > 0; left -= most {
		pieces = append(pieces, strings.Repeat("y", min(left, most)))
	}
	return pieces
}

func (s scene) tokens() int {
	if s.used > 0 {
		return s.used
	}
	return 5
}

// chatEvents returns the events of an answer on the wire of chat completions: those before its end, and the end.
func chatEvents(s scene) (begin, end []string) {
	event := func(v any) string {
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return "data: " + string(raw) + "\n\n"
	}
	type object = map[string]any
	chunk := func(choices []any, usage any) string {
		return event(object{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices,
			"usage": usage})
	}
	delta := func(d object) {
		begin = append(begin, chunk([]any{object{"index": 0, "delta": d, "finish_reason": nil}}, nil))
	}
	delta(object{"role": "assistant", "content": ""})
	if s.think != "" {
		delta(object{"reasoning_content": s.think})
	}
	said := "content"
	if s.stop == model.StopRefusal {
		said = "refusal"
	}
	for _, piece := range s.texts() {
		delta(object{said: piece})
	}
	for i, c := range s.calls {
		delta(object{"tool_calls": []any{object{"index": i, "id": c.ID, "type": "function",
			"function": object{"name": c.Name, "arguments": ""}}}})
		for _, piece := range halves(c.Arguments) {
			delta(object{"tool_calls": []any{object{"index": i, "function": object{"arguments": piece}}}})
		}
	}
	end = append(end, chunk([]any{object{"index": 0, "delta": object{}, "finish_reason": stopOf(s, chatWire)}}, nil))
	if !s.silent {
		end = append(end, chunk([]any{}, object{"prompt_tokens": 10, "completion_tokens": s.tokens(), "total_tokens": 10 + s.tokens()}))
	}
	return begin, append(end, "data: [DONE]\n\n")
}

// messageEvents returns the events of an answer on the wire of messages.
func messageEvents(s scene) (begin, end []string) {
	type object = map[string]any
	event := func(typ string, v object) string {
		v["type"] = typ
		raw, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return "event: " + typ + "\ndata: " + string(raw) + "\n\n"
	}
	usage := object{"input_tokens": 10, "output_tokens": 1}
	if s.silent {
		usage = object{}
	}
	begin = append(begin, event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant",
		"model": "m", "content": []any{}, "stop_reason": nil, "usage": usage}}), event("ping", object{}))
	index := 0
	block := func(begins object, deltas ...object) {
		begin = append(begin, event("content_block_start", object{"index": index, "content_block": begins}))
		for _, d := range deltas {
			begin = append(begin, event("content_block_delta", object{"index": index, "delta": d}))
		}
		begin = append(begin, event("content_block_stop", object{"index": index}))
		index++
	}
	if s.think != "" {
		block(object{"type": "thinking", "thinking": "", "signature": ""}, object{"type": "thinking_delta", "thinking": s.think},
			object{"type": "signature_delta", "signature": s.seal})
	}
	if texts := s.texts(); len(texts) > 0 {
		var deltas []object
		for _, piece := range texts {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range s.calls {
		var deltas []object
		for _, piece := range halves(c.Arguments) {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas...)
	}
	used := object{"output_tokens": s.tokens()}
	if s.silent {
		used = object{}
	}
	end = append(end, event("message_delta", object{"delta": object{"stop_reason": stopOf(s, messagesWire), "stop_sequence": nil},
		"usage": used}), event("message_stop", object{}))
	return begin, end
}

// heard is a message of a request, whatever the wire.
type heard struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Thought string          `json:"reasoning_content"`
	CallID  string          `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

// told reads the messages of a request, one line for each part.
func told(raw []byte) ([]string, error) {
	var q struct {
		System   json.RawMessage `json:"system"`
		Messages []heard         `json:"messages"`
	}
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, err
	}
	var lines []string
	add := func(who, text string) {
		if who == "system" { // the loop's own words, which have tests of their own
			text = "You are an agent"
		}
		lines = append(lines, who+": "+shortened(text))
	}
	if len(q.System) > 0 {
		q.Messages = append([]heard{{Role: "system", Content: q.System}}, q.Messages...)
	}
	for _, m := range q.Messages {
		var text string
		var blocks []struct {
			Type, Text, ID, Name, Thinking, Signature, Data string
			Input                                           json.RawMessage
			CallID                                          string `json:"tool_use_id"`
			Content                                         []struct{ Text string }
			IsError                                         bool `json:"is_error"`
		}
		if m.Thought != "" {
			add(m.Role+" thinks", m.Thought)
		}
		switch {
		case json.Unmarshal(m.Content, &text) == nil && m.CallID != "":
			add("result of "+m.CallID, text)
		case json.Unmarshal(m.Content, &text) == nil && text != "":
			add(m.Role, text)
		case string(m.Content) != "null" && text == "":
			if err := json.Unmarshal(m.Content, &blocks); err != nil && len(m.Content) > 0 && string(m.Content) != `""` {
				return nil, fmt.Errorf("a message has the content %.200s: %w", m.Content, err)
			}
		}
		for _, b := range blocks {
			switch b.Type {
			case "text":
				add(m.Role, b.Text)
			case "thinking":
				add(m.Role+" thinks", b.Thinking+" ["+b.Signature+"]")
			case "redacted_thinking":
				add(m.Role+" thinks", "["+b.Data+"]")
			case "tool_use":
				add(m.Role+" calls "+b.ID, b.Name+" "+string(b.Input))
			case "tool_result":
				var said strings.Builder
				if b.IsError {
					said.WriteString("Error: ")
				}
				for _, c := range b.Content {
					said.WriteString(c.Text)
				}
				add("result of "+b.CallID, said.String())
			default:
				return nil, fmt.Errorf("a block of the type %q", b.Type)
			}
		}
		for _, c := range m.Calls {
			add(m.Role+" calls "+c.ID, c.Function.Name+" "+c.Function.Arguments)
		}
	}
	return lines, nil
}

// shortened is a text on one line, without its middle where it is long.
func shortened(text string) string {
	const most = 360
	runes := []rune(text)
	if len(runes) <= most {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprintf("%q ... %d characters ... %q", string(runes[:most/3]), len(runes)-2*(most/3), string(runes[len(runes)-most/3:]))
}
