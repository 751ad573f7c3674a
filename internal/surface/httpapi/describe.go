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
func (s *Server) describe() {
	s.Discriminate("RunOperation", "type", operationForms())
	s.Discriminate("RunResult", "type", resultForms())
	for _, op := range slices.Sorted(maps.Keys(examples)) {
		s.Example(op, json.RawMessage(examples[op]))
	}
}

// operationForms are the six operations of protocol 1.0, as its reader has them.
func operationForms() []wire.Variant {
	needed, others := run.Fields()
	var forms []wire.Variant
	for _, typ := range slices.Sorted(maps.Keys(needed)) {
		forms = append(forms, wire.Variant{Value: typ, Doc: operationDoc[typ], Required: needed[typ], Optional: append([]string{"id"}, others[typ]...)})
	}
	return forms
}

var operationDoc = map[string]string{
	run.OpMessage:    "Says something",
	run.OpCreateFile: "Writes a file",
	run.OpReadFile:   "Reads a file",
	run.OpEditFile:   "Replaces texts in a file",
	run.OpDeleteFile: "Deletes a file",
	run.OpShell:      "Runs a command",
}

// resultForms are the results of protocol 1.0: one of each operation's own type, and those that any operation may have.
func resultForms() []wire.Variant {
	always := []string{"timestamp"}
	done := func(typ, doc string, fields ...string) wire.Variant {
		return wire.Variant{Value: typ, Doc: doc, Required: always,
			Optional: append([]string{"success", "operationId", "error", "reasonCode", "suggestion", "omitted", "details"}, fields...)}
	}
	instead := func(typ, doc string, fields ...string) wire.Variant {
		return wire.Variant{Value: typ, Doc: doc, Required: always, Optional: append([]string{"operationId", "suggestion", "omitted", "details"}, fields...)}
	}
	return []wire.Variant{
		done(run.OpMessage, "The message is in the log"),
		done(run.OpCreateFile, "What became of a createFile", "path", "bytesWritten"),
		done(run.OpReadFile, "What became of a readFile", "path", "content", "encoding", "size"),
		done(run.OpEditFile, "What became of an editFile", "path", "editsApplied"),
		done(run.OpDeleteFile, "What became of a deleteFile", "path"),
		done(run.OpShell, "What became of a command", "path", "command", "exitCode", "stdout", "stderr", "encoding", "durationMs", "commitMs", "timedOut", "limit", "tier", "gas", "seed", "clock", "lacks", "displays", "engine"),
		instead(run.ResApprovalRequired, "A person has to decide before the operation is done", "operationType", "approvalId", "reason", "reasonCode"),
		instead(run.ResPolicyDenied, "The operation was refused and not done", "operationType", "reason", "reasonCode", "approvalId"),
		instead(run.ResError, "The operation could not be tried", "operationType", "category", "message", "reasonCode", "success", "error"),
		instead(run.ResUnknown, "The daemon stopped while the operation ran; whether it took effect is not known", "operationType", "reason", "reasonCode"),
	}
}

// runFrames are the messages of a run's stream.
func runFrames() []wire.Frame {
	return []wire.Frame{
		{Event: livestream.Operation, Doc: "An operation begins", Data: begun{}, Drop: true},
		{Event: livestream.Result, Doc: "An operation's result; long fields are left out and named in `omitted`", Data: run.Result{}, Drop: true},
		{Event: livestream.Stdout, Doc: "A piece of what a command prints", Data: output{}},
		{Event: livestream.Stderr, Doc: "A piece of what a command prints as errors", Data: output{}},
		{Event: livestream.Cut, Doc: "No more output of the run is kept", Data: cutShort{}},
		{Event: livestream.Complete, Doc: "The run has ended: its events message, without the events. Always the last", Data: run.Events{}, Drop: true},
	}
}

// eventFrames are the messages of the event streams.
func eventFrames() []wire.Frame {
	return []wire.Frame{{Event: "message", Doc: "An event; or, without data, the place where a stream begins that was asked for no place", Data: event.Shown{}, Empty: true}}
}
