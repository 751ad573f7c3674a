package httpapi

import (
	"encoding/json"
	"maps"
	"slices"

	"agentbox/internal/domain/run"
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
