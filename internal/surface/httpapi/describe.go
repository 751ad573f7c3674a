package httpapi

import (
	"encoding/json"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/run"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/surface/httpapi/wire"
)

// describe completes the API document: the forms of operations and results, and an example of each body.
func describe(s *wire.Server) {
	s.Discriminate("RunOperation", "type", operationForms())
	s.Discriminate("RunResult", "type", resultForms())
	for _, op := range slices.Sorted(maps.Keys(examples)) {
		s.Example(op, json.RawMessage(examples[op]))
	}
}

// operationForms are the operations of protocol 1.0, as its reader has them.
func operationForms() []wire.Variant {
	var forms []wire.Variant
	for _, typ := range run.OpTypes() {
		spec, _ := run.SpecOf(typ)
		forms = append(forms, wire.Variant{Value: typ, Doc: spec.Doc, Required: spec.Needed(), Optional: append([]string{"id"},
			spec.Optional()...)})
	}
	return forms
}

// resultForms are the results of protocol 1.0: one of each operation's own type, and those that any operation may have.
func resultForms() []wire.Variant {
	always := []string{"timestamp"}
	instead := func(typ, doc string, fields ...string) wire.Variant {
		return wire.Variant{Value: typ, Doc: doc, Required: always, Optional: append([]string{"operationId", "suggestion", "omitted", "details"},
			fields...)}
	}
	var forms []wire.Variant
	for _, spec := range run.Specs() {
		forms = append(forms, wire.Variant{Value: spec.Type, Doc: spec.ResultDoc, Required: always,
			Optional: append([]string{"success", "operationId", "error", "reasonCode", "suggestion", "omitted", "details"}, spec.Result...)})
	}
	return append(forms,
		instead(run.ResApprovalRequired, "A person has to decide before the operation is done", "operationType", "approvalId", "reason",
			"reasonCode"),
		instead(run.ResPolicyDenied, "The operation was refused and not done", "operationType", "reason", "reasonCode", "approvalId"),
		instead(run.ResError, "The operation could not be tried", "operationType", "category", "message", "reasonCode", "success", "error"),
		instead(run.ResUnknown, "The daemon stopped while the operation ran; whether it took effect is not known", "operationType", "reason",
			"reasonCode"),
	)
}

// runFrames are the messages of a run's stream.
func runFrames() []wire.Frame {
	return []wire.Frame{
		{Event: livestream.Operation, Doc: "An operation begins", Data: begun{}, Drop: true},
		{Event: livestream.Result, Doc: "An operation's result; long fields are left out and named in `omitted`", Data: run.Result{}, Drop: true},
		{Event: livestream.Stdout, Doc: "A piece of what a command prints", Data: output{}},
		{Event: livestream.Stderr, Doc: "A piece of what a command prints as errors", Data: output{}},
		{Event: livestream.Cut, Doc: "No more output of the run is kept", Data: cutShort{}},
		{Event: livestream.Complete, Doc: "The run has ended: its events message, without the events. Always the last", Data: run.Events{},
			Drop: true},
	}
}

// eventFrames are the messages of the event streams.
func eventFrames() []wire.Frame {
	return []wire.Frame{{Event: "message", Doc: "An event; or, without data, the place where a stream begins that was asked for no place",
		Data: event.Shown{}, Empty: true}}
}
