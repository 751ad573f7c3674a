package model

import (
	"errors"
	"fmt"
	"time"

	"agentbox/internal/domain/fault"
)

// Class says what can be done about a failure.
type Class string

// The classes of failures.
const (
	Retry    Class = "retry"    // it may work at the next try: a broken connection, a fault of the server
	Busy     Class = "busy"     // the endpoint has too much to do; try later, or another one
	Final    Class = "final"    // the same request fails again here
	Overflow Class = "overflow" // the request does not fit into the context window
	Refused  Class = "refused"  // the endpoint will not answer this request
	Money    Class = "money"    // the account at the endpoint is empty or at its limit
)

// Failure is why an endpoint gave no answer.
type Failure struct {
	Class   Class         `json:"class"`
	Status  int           `json:"status,omitempty"`   // of HTTP; 0 where there was none
	Code    string        `json:"code,omitempty"`     // the vendor's own, where there is one
	Message string        `json:"message"`            // a sentence; it quotes at most a short, printable piece of what the endpoint said
	Advice  string        `json:"advice,omitempty"`   // what a person can do; it begins with a small letter
	After   time.Duration `json:"after_ns,omitempty"` // how long the endpoint asks to wait; 0 where it does not say
	Begun   bool          `json:"begun,omitempty"`    // pieces of an answer had come, so that the request is paid for
	Usage   Usage         `json:"usage,omitzero"`     // what the endpoint said was used until then
	Err     error         `json:"-"`
}

// Error returns the message, the status, the vendor's code, and what a person can do.
func (f *Failure) Error() string {
	text := f.Message
	if f.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", f.Status)
	}
	if f.Code != "" {
		text += fmt.Sprintf(" [%s]", f.Code)
	}
	if f.Advice != "" {
		text += "; " + f.Advice
	}
	return text
}

// Unwrap returns the failure as a fault, and its cause.
func (f *Failure) Unwrap() []error {
	kinds := map[Class]fault.Kind{
		Retry: fault.Unavailable, Busy: fault.Unavailable, Final: fault.Invalid, Overflow: fault.Invalid, Refused: fault.Denied,
		Money: fault.Exhausted,
	}
	list := []error{fault.New(kinds[f.Class], "model_"+string(f.Class), "%s", f.Error())}
	if f.Err != nil {
		list = append(list, f.Err)
	}
	return list
}

// FailureOf returns the failure of a vendor in an error's chain.
func FailureOf(err error) (*Failure, bool) { return errors.AsType[*Failure](err) }

// Again reports whether the same endpoint is worth another try.
func (c Class) Again() bool { return c == Retry || c == Busy }

// Elsewhere reports whether another model may answer where this one failed. An overflow may fit into a larger window.
func (c Class) Elsewhere() bool { return c != Refused }
