package run

import (
	"encoding/json"
	"slices"
	"time"
)

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

// Result is a result event of the protocol; Type says which fields apply. Every operation has exactly one.
type Result struct {
	Type        string    `json:"type"`
	OperationID string    `json:"operationId,omitempty"`
	Timestamp   time.Time `json:"timestamp"`

	Success      *bool   `json:"success,omitempty" doc:"Whether the operation did what it was asked; absent where its result was redacted"`
	Path         string  `json:"path,omitempty"`
	BytesWritten *int64  `json:"bytesWritten,omitempty" doc:"Bytes of the file that was written"`
	Content      *string `json:"content,omitempty"`
	Encoding     string  `json:"encoding,omitempty"`
	Size         *int64  `json:"size,omitempty" doc:"Bytes of the file that was read"`
	EditsApplied *int    `json:"editsApplied,omitempty"`

	Command    string  `json:"command,omitempty"`
	ExitCode   *int    `json:"exitCode,omitempty"`
	Stdout     *string `json:"stdout,omitempty"`
	Stderr     *string `json:"stderr,omitempty"`
	DurationMS *int64  `json:"durationMs,omitempty" doc:"Milliseconds that the command took, to its end"`
	CommitMS   *int64  `json:"commitMs,omitempty" doc:"Milliseconds after its end in which the files that it changed were written; only in tiers that write them then"`
	TimedOut   *bool   `json:"timedOut,omitempty"`
	Limit      string  `json:"limit,omitempty" doc:"The bound that ended the command"`
	Error      string  `json:"error,omitempty"`

	Tier  string     `json:"tier,omitempty" doc:"In which the command ran"`
	Gas   int64      `json:"gas,omitempty" doc:"What it computed, in units that are the same on every host"`
	Seed  string     `json:"seed,omitempty" doc:"What decided its chance"`
	Clock *time.Time `json:"clock,omitempty" doc:"Where its clock began"`
	Lacks []Lack     `json:"lacks,omitempty" nullable:"false" doc:"What it wanted and the tier has not"`

	Displays []Display `json:"displays,omitempty" nullable:"false" doc:"What it has shown beside its output: artifacts"`

	Engine string `json:"engine,omitempty" doc:"What gas depends on: the versions of what counts it and of the guests"`

	OperationType string           `json:"operationType,omitempty"`
	ApprovalID    string           `json:"approvalId,omitempty"`
	Reason        string           `json:"reason,omitempty"`
	ReasonCode    string           `json:"reasonCode,omitempty"`
	Suggestion    string           `json:"suggestion,omitempty"`
	Category      string           `json:"category,omitempty"`
	Message       string           `json:"message,omitempty"`
	Omitted       []string         `json:"omitted,omitempty" nullable:"false" doc:"Fields left out of a live frame because they are long, or that could not be kept"`
	Details       *json.RawMessage `json:"details,omitempty"`
}

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
