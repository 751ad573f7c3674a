package openai

import (
	"encoding/json"
	"strconv"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint"
)

// problem is an error as the vendors write it: {"error": {...}}, {"error": "text"}, or flat.
type problem struct {
	Message string `json:"message"`
	Type    string `json:"type"`
	Code    any    `json:"code"` // a text; a number at some
}

// refine reads a failure's class off the vendor's own code, because one status stands for load and for money.
func refine(q endpoint.Request, f *model.Failure, body []byte) {
	var outer struct {
		problem
		Error json.RawMessage `json:"error"`
	}
	if json.Unmarshal(body, &outer) != nil {
		if endpoint.Overflows(string(body)) {
			f.Class = model.Overflow
		}
		return
	}
	p := outer.problem
	if len(outer.Error) > 0 && string(outer.Error) != "null" {
		p = problem{}
		if json.Unmarshal(outer.Error, &p) != nil {
			_ = json.Unmarshal(outer.Error, &p.Message) // else it stays without words
		}
	}
	code := p.Type
	switch c := p.Code.(type) {
	case string:
		if c != "" {
			code = c
		}
	case float64:
		if raw, err := json.Marshal(c); err == nil {
			code = string(raw)
		}
	}
	q.Name(f, code)
	class, known := classOf(q.Target.Entry.Dialect, code)
	switch status, err := strconv.Atoi(code); {
	case endpoint.Overflows(p.Message) && f.Class != model.Busy:
		f.Class = model.Overflow
	case known:
		f.Class = class
	case err == nil && f.Status == 0 && status >= 400 && status < 600: // within a stream some put the status there
		f.Class = endpoint.ClassOf(status)
	}
	q.Quote(f, p.Message)
}

// classOf returns the class of a code of a dialect.
func classOf(dialect, code string) (model.Class, bool) {
	switch code {
	case "insufficient_quota", "credit_balance_exhausted", "billing_hard_limit_reached":
		return model.Money, true
	case "context_length_exceeded", "exceed_context_size_error":
		return model.Overflow, true
	case "content_filter", "content_policy_violation":
		return model.Refused, true
	case "slow_down", "rate_limit_exceeded", "overloaded":
		return model.Busy, true
	case "invalid_api_key", "model_not_found", "invalid_request_error":
		return model.Final, true
	case "insufficient_balance":
		return model.Money, true
	}
	if dialect != model.DialectZAI {
		return "", false
	}
	switch code { // HTTP 429 is load and money here
	case "1302", "1303", "1305", "1312":
		return model.Busy, true
	case "1112", "1113", "1121", "1304", "1308", "1309", "1310", "1311", "1313":
		return model.Money, true
	case "1261":
		return model.Overflow, true
	case "1301":
		return model.Refused, true
	case "1210", "1211", "1213", "1214":
		return model.Final, true
	}
	return "", false
}
