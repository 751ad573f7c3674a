package wires

import (
	"errors"
	"net/http"
	"strconv"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
)

// The codes that clients of a vendor act on.
const (
	codeTooLarge = "request_too_large"
	codeBusy     = "rate_limit_exceeded"
	codeQuota    = "insufficient_quota"
	codeOverflow = "context_length_exceeded"
)

// problem is an error with the words of both vendors.
type problem struct {
	status  int    // of HTTP
	kind    string // the type of Anthropic's error
	openai  string // the type of OpenAI's error
	code    string
	message string
	after   int  // seconds to wait; 0 for none
	again   bool // the client may retry the same request
}

// problemOf converts an error.
func problemOf(err error) problem {
	p := problem{http.StatusInternalServerError, "api_error", "server_error", fault.CodeOf(err), "the daemon could not answer", 0, true}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		p.message = f.Msg
		if f.Suggestion != "" {
			p.message += ". " + f.Suggestion
		}
	}
	final := func(status int, kind, openai string) problem {
		p.status, p.kind, p.openai, p.again = status, kind, openai, false
		return p
	}
	if f, ok := model.FailureOf(err); ok {
		p.message, p.code, p.after = f.Error(), f.Code, int(f.After.Seconds())
		switch f.Class {
		case model.Busy:
			return p.busy()
		case model.Overflow:
			p.code, p.message = codeOverflow, "prompt is too long: "+p.message
			return final(http.StatusBadRequest, "invalid_request_error", "invalid_request_error")
		case model.Money:
			p.code = codeQuota
			return final(http.StatusTooManyRequests, "billing_error", codeQuota)
		case model.Refused, model.Final:
			return final(http.StatusBadRequest, "invalid_request_error", "invalid_request_error")
		}
		p.status = http.StatusServiceUnavailable
		return p
	}
	switch {
	case errors.Is(err, model.ErrBudget) || errors.Is(err, model.ErrPrice):
		p.code = codeQuota
		return final(http.StatusTooManyRequests, "billing_error", codeQuota)
	case p.code == codeBusy:
		return p.busy()
	case p.code == codeTooLarge:
		return final(http.StatusRequestEntityTooLarge, codeTooLarge, "invalid_request_error")
	}
	switch fault.KindOf(err) {
	case fault.Invalid:
		return final(http.StatusBadRequest, "invalid_request_error", "invalid_request_error")
	case fault.Denied, fault.Waiting:
		return final(http.StatusForbidden, "permission_error", "permission_error")
	case fault.NotFound:
		return final(http.StatusNotFound, "not_found_error", "invalid_request_error")
	case fault.Conflict:
		return final(http.StatusConflict, "invalid_request_error", "invalid_request_error")
	case fault.Exhausted:
		p.code = codeQuota
		return final(http.StatusTooManyRequests, "billing_error", codeQuota)
	case fault.Unavailable:
		p.status = http.StatusServiceUnavailable
	}
	return p
}

// busy makes p the vendors' rate limit error.
func (p problem) busy() problem {
	p.status, p.kind, p.openai, p.again = http.StatusTooManyRequests, "rate_limit_error", "rate_limit_error", true
	return p
}

// refuse answers with an error. Clients of both vendors obey X-Should-Retry.
func refuse(w http.ResponseWriter, v vendor, err error) {
	p := problemOf(err)
	w.Header().Set("X-Should-Retry", strconv.FormatBool(p.again))
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.after))
	}
	status := p.status
	if v.name() == blueprint.WireMessages && p.kind == "billing_error" {
		status = http.StatusPaymentRequired
	}
	write(w, status, v.problem(p))
}

// openAIError returns an error in the form of OpenAI.
func openAIError(p problem) any {
	return map[string]any{"error": map[string]any{"message": p.message, "type": p.openai, "code": p.code, "param": nil}}
}

// unsupported refuses a field that the daemon cannot honour, and that would change the answer.
func unsupported(field, what string) error {
	return fault.New(fault.Invalid, "unsupported_parameter", "%s: %s", field, what)
}

func malformed(format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_request", format, args...)
}
