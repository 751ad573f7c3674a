package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// vendorItem is a part of a scripted answer: a tool call, a text, or a hold. A hold keeps the answer open until the request is given up, if
// the last text of a person ends with it.
type vendorItem struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Say       string          `json:"say"` // $LAST stands for the last text of a person
	Hold      string          `json:"hold"`
}

// vendorAsked is what the server reads of a request.
type vendorAsked struct {
	Model    string `json:"model"`
	Messages []struct {
		Role    string            `json:"role"`
		Content json.RawMessage   `json:"content"`
		Calls   []json.RawMessage `json:"tool_calls"`
	} `json:"messages"`
}

// turns returns how many answers a conversation has, and the last text of a person in it.
func (a vendorAsked) turns() (n int, last string) {
	for _, m := range a.Messages {
		var text string
		var parts []struct {
			Text string `json:"text"`
		}
		switch {
		case m.Role == "assistant":
			n++
		case m.Role != "user":
		case json.Unmarshal(m.Content, &text) == nil:
			last = text
		case json.Unmarshal(m.Content, &parts) == nil:
			for _, p := range parts {
				if p.Text != "" { // a picture has none
					last = p.Text
				}
			}
		}
	}
	return n, last
}

// newVendor serves the wire of OpenAI's chat completions. Answers are the parts of each answer of a conversation. The one after the last
// says report.
func newVendor(answers [][]vendorItem, report string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked vendorAsked
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		turn, last := asked.turns()
		items := []vendorItem{{Say: report}}
		if turn < len(answers) {
			items = answers[turn]
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(choices []any, usage any) {
			raw, err := json.Marshal(map[string]any{
				"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": asked.Model, "choices": choices, "usage": usage,
			})
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", raw)
			_ = http.NewResponseController(w).Flush()
		}
		delta := func(d map[string]any) {
			chunk([]any{map[string]any{"index": 0, "delta": d, "finish_reason": nil}}, nil)
		}
		finish, calls := "stop", 0
		for _, item := range items {
			for _, word := range strings.SplitAfter(strings.ReplaceAll(item.Say, "$LAST", last), " ") {
				if word != "" {
					delta(map[string]any{"role": "assistant", "content": word})
				}
			}
			if item.Hold != "" && strings.HasSuffix(last, item.Hold) {
				<-r.Context().Done()
				return
			}
			if item.Tool != "" {
				finish = "tool_calls"
				delta(map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{
					"index": calls, "id": fmt.Sprintf("call_%d_%d", turn, calls), "type": "function",
					"function": map[string]any{"name": item.Tool, "arguments": string(item.Arguments)},
				}}})
				calls++
			}
		}
		chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
		chunk([]any{}, map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
}

// startVendor serves scripted answers of a model at $VENDOR. The file has the parts of each answer. The last answer is the report.
func startVendor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: vendor CALLS.json REPORT")
	}
	var answers [][]vendorItem
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &answers); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	server := newVendor(answers, args[1])
	ts.Setenv("VENDOR", server.URL+"/v1")
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
	})
}
