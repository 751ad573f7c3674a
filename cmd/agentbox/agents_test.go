package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// startVendor serves the wire of OpenAI's chat completions at $VENDOR. The file has the calls of each answer. The last answer is the
// report.
func startVendor(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: vendor CALLS.json REPORT")
	}
	var answers [][]struct {
		Tool      string          `json:"tool"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &answers); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			Messages []struct {
				Role  string            `json:"role"`
				Calls []json.RawMessage `json:"tool_calls"`
			} `json:"messages"`
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		turn := 0
		for _, m := range asked.Messages {
			if m.Role == "assistant" {
				turn++
			}
		}
		delta, finish := map[string]any{"role": "assistant", "content": args[1]}, "stop"
		if turn < len(answers) {
			var calls []any
			for i, c := range answers[turn] {
				calls = append(calls, map[string]any{"index": i, "id": fmt.Sprintf("call_%d_%d", turn, i), "type": "function",
					"function": map[string]any{"name": c.Tool, "arguments": string(c.Arguments)}})
			}
			delta, finish = map[string]any{"role": "assistant", "tool_calls": calls}, "tool_calls"
		}
		w.Header().Set("Content-Type", "text/event-stream")
		chunk := func(choices []any, usage any) {
			raw, err := json.Marshal(map[string]any{
				"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "m", "choices": choices, "usage": usage,
			})
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "data: %s\n\n", raw)
		}
		chunk([]any{map[string]any{"index": 0, "delta": delta, "finish_reason": nil}}, nil)
		chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}}, nil)
		chunk([]any{}, map[string]any{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	ts.Setenv("VENDOR", server.URL+"/v1")
	ts.Defer(server.Close)
}
