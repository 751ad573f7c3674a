// Package fault is the one error type that crosses a floor: it states an error for the program and for a person.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what the caller can do about an error.
type Kind int

// The kinds. The zero value is Internal, so an unclassified error never counts as the caller's mistake.
const (
	Internal    Kind = iota // a defect or a broken host; nothing the caller sent caused it
	Invalid                 // the request is malformed; change it
	Denied                  // the request is well-formed and not permitted
	Waiting                 // a person has to decide first
	NotFound                // there is no such thing, or not for this caller
	Conflict                // it clashes with the present state; look again, then retry
	Exhausted               // a limit, a quota or a rate is used up; the message names it
	Unavailable             // it cannot be had now; retry later
)

var kindText = [...]string{"internal", "invalid", "denied", "waiting", "not_found", "conflict", "exhausted", "unavailable"}

// String returns the kind's name in snake_case.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindText) {
		return kindText[Internal]
	}
	return kindText[k]
}

// Error is an error that may be shown to the caller. Msg is a sentence that says what to do and holds no secret and no machine path;
// Err, if any, is the cause, for logs only.
type Error struct {
	Kind       Kind
	Code       string // stable, snake_case; the `error` of a problem document
	Msg        string
	Suggestion string // how to proceed, when Msg alone does not say
	Err        error
}

// New makes an error of the given kind and code with a formatted message.
func New(kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Msg: fmt.Sprintf(format, args...)}
}

// Wrap makes an error that carries its cause.
func Wrap(err error, kind Kind, code, format string, args ...any) *Error {
	return &Error{Kind: kind, Code: code, Msg: fmt.Sprintf(format, args...), Err: err}
}

// With returns a copy that suggests how to proceed.
func (e *Error) With(suggestion string) *Error {
	c := *e
	c.Suggestion = suggestion
	return &c
}

// Error returns the message and the cause.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Msg + ": " + e.Err.Error()
	}
	return e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is a fault of the same code, so that a sentinel made by New can be compared with errors.Is.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code
}

// KindOf returns the kind of the first Error in err's chain; Internal where there is none.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// CodeOf returns the code of the first Error in err's chain; "internal_error" where there is none and "" for nil.
func CodeOf(err error) string {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return "internal_error"
}
