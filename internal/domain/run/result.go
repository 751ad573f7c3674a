package run

import "slices"

// The types of result events besides those of the six operations.
const (
	ResApprovalRequired = "approvalRequired"
	ResPolicyDenied     = "policyDenied"
	ResError            = "error"
	ResUnknown          = "unknown" // a crash hid the outcome
)

// The categories of an error result.
const (
	CategoryValidation = "validation"
	CategoryPolicy     = "policy"
	CategoryExecution  = "execution"
	CategoryTimeout    = "timeout"
	CategorySystem     = "system"
)

// Lack is something that a command wanted and its tier has not.
type Lack struct {
	Kind   string `json:"kind"` // command, option, feature, module or package
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty"`
}

// OK reports whether the operation succeeded.
func (r Result) OK() bool { return r.Success != nil && *r.Success }

// Events is an events message.
type Events struct {
	ProtocolVersion string   `json:"protocolVersion"`
	RunID           string   `json:"runId"`
	Events          []Result `json:"events"`
	Status          string   `json:"status"`
}

// Shorten leaves the long texts of a result out, by name: those of more than 1 KiB, and more than 16 displays.
func (r *Result) Shorten() {
	for _, field := range []struct {
		name string
		text **string
	}{{"content", &r.Content}, {"stdout", &r.Stdout}, {"stderr", &r.Stderr}} {
		if *field.text != nil && len(**field.text) > 1<<10 {
			*field.text = nil
			r.Omitted = append(slices.Clip(r.Omitted), field.name)
		}
	}
	if len(r.Displays) > 16 {
		r.Displays, r.Omitted = nil, append(slices.Clip(r.Omitted), "displays")
	}
}
