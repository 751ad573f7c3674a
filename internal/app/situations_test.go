package app_test

import (
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/model"
	"agentbox/internal/service/agents"
)

// toolCall is a tool call of a scene, with the id of its place. Arguments are those of the tool, as JSON.
func toolCall(callID, name, arguments string) model.Call {
	return model.Call{ID: callID, Name: name, Arguments: arguments}
}

// does is a scene with tool calls, whose ids are a, b, c and so on.
func does(pairs ...string) scene {
	var s scene
	for i := 0; i < len(pairs); i += 2 {
		s.calls = append(s.calls, toolCall(string(rune('a'+i/2)), pairs[i], pairs[i+1]))
	}
	return s
}

// done is the last scene of most situations.
var done = scene{say: "Three."}

// then returns scenes that end with the report.
func then(scenes ...scene) []scene { return append(scenes, done) }

// many returns the same scene several times.
func many(n int, s scene) []scene { return slices.Repeat([]scene{s}, n) }

const writesA = `{"path":"a","content":"1"}`

// situationGroups is the whole table.
func situationGroups() []situationGroup {
	return []situationGroup{
		{"answers", answeredSituations()}, {"tool calls", calledSituations()}, {"endpoints that fail", failedSituations()},
		{"contexts and limits", boundedSituations()}, {"people", peopleSituations()},
	}
}

type situationGroup struct {
	about string
	of    []situation
}

// situations returns the situations of all groups.
func situations() (all []situation) {
	for _, g := range situationGroups() {
		all = append(all, g.of...)
	}
	return all
}

// answeredSituations are about what an answer is.
func answeredSituations() []situation {
	var many64 []string
	for range 65 {
		many64 = append(many64, "readFile", `{"path":"a"}`)
	}
	return []situation{
		{name: "report", scenes: then(), end: "Three.", told: "Count to three."},
		{name: "report-with-thinking", scenes: []scene{{think: "easy", seal: "c2ln", say: "Three."}}, end: "Three."},
		{name: "huge-report", scenes: []scene{{say: "Long: ", huge: 2 << 20}}, end: "Long: y"},
		{name: "too-huge-answer", scenes: []scene{{say: "Long: ", huge: 9 << 20}}, end: agents.FailModel},
		{name: "huge-event", scenes: []scene{{raw: map[string]string{
			chatWire:     `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("y", 5<<20) + `"}}]}` + "\n\n",
			messagesWire: `data: {"type":"content_block_start","content_block":{"text":"` + strings.Repeat("y", 5<<20) + `"}}` + "\n\n",
		}}}, end: agents.FailModel},
		{name: "empty-once", scenes: then(scene{think: "hm", seal: "c2ln"}), end: "Three.", told: "Your answer was empty."},
		{name: "empty-always", scenes: []scene{{think: "hm", seal: "c2ln"}}, end: agents.FailEmpty},
		{name: "nothing-once", scenes: then(scene{}), end: "Three."},
		{name: "nothing-always", scenes: []scene{{}}, end: agents.FailModel},
		{name: "blank-always", scenes: []scene{{say: " \n\n"}}, end: agents.FailEmpty},
		{name: "refused-by-the-model", scenes: []scene{{say: "I will not.", stop: model.StopRefusal}}, end: agents.FailRefused},
		{name: "filtered", only: chatWire, scenes: []scene{{say: "Half", stop: model.StopFilter}}, end: agents.FailFiltered},
		{name: "cut-once", scenes: then(scene{say: "I begin and", stop: model.StopLength}), end: "Three.", told: "Your answer was cut"},
		{name: "cut-in-a-call", scenes: then(scene{calls: []model.Call{toolCall("a", "createFile", `{"path":"a","con`)},
			stop: model.StopLength}), end: "Three.", told: "none of its calls was made"},
		{name: "cut-always", scenes: []scene{{say: "I begin and", stop: model.StopLength}}, end: agents.FailCut},
		{name: "reasoning-goes-back", scenes: then(scene{think: "first I look", seal: "c2ln", calls: does("readFile", `{"path":"a"}`).calls}),
			end: "Three.", told: "first I look"},
		{name: "reasoning-redacted", only: messagesWire, scenes: then(scene{raw: map[string]string{messagesWire: redactedThinking}}),
			end: "Three.", told: "c2VhbGVk"},
		{name: "usage-unknown", scenes: []scene{{say: "Three.", silent: true}}, end: "Three."},
		{name: "too-many-calls", scenes: then(does(many64...)), end: "Three.", told: "an answer has at most 64 calls"},
		{name: "invisible-letters", scenes: then(does("createFile", `{"path":"a\u200b","content":"1\u202e\u00e9\ud83d\ude00"}`,
			"readFile", `{"path":"a\u200b"}`), does("shell", `{"command":"echo \u00fc\u2066x"}`)), end: "Three."},
		{name: "broken-letters", only: chatWire, scenes: then(scene{raw: map[string]string{chatWire: chatCall("createFile",
			`{\"path\":\"a\",\"content\":\"\ud800x\"}`)}}), end: "Three."},
	}
}

// redactedThinking is an answer of the wire of messages whose thinking is sealed, with a tool call.
const redactedThinking = `data: {"type":"message_start","message":{"id":"msg_1","model":"m","usage":{"input_tokens":10,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"c2VhbGVk"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"readFile","input":{}}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"path\":\"a\"}"}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

`

// chatCall is a stream of chat completions with one call, whose arguments are the inside of a JSON string.
func chatCall(name, arguments string) string {
	return `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"` + name +
		`","arguments":"` + arguments + `"}}]}}]}` + "\n\n" + `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5}}` + "\n\ndata: [DONE]\n\n"
}

// calledSituations are about tool calls.
func calledSituations() []situation {
	twice := scene{calls: []model.Call{toolCall("a", "createFile", writesA), toolCall("a", "readFile", `{"path":"a"}`)}}
	long := `{"command":"seq 3000"}`
	return []situation{
		{name: "parallel-reads", scenes: then(does("createFile", writesA), does("readFile", `{"path":"a"}`, "readFile", `{"path":"b"}`,
			"readFile", `{"path":"a"}`)), end: "Three.", told: "1"},
		{name: "writes-in-order", scenes: then(does("createFile", writesA, "shell", `{"command":"cat a; echo 2 >> a"}`, "readFile",
			`{"path":"a"}`)), end: "Three.", told: "12\\n"},
		{name: "words-and-a-call", scenes: then(scene{say: "I write.", calls: does("createFile", writesA).calls}), end: "Three.",
			told: "1 bytes written to a"},
		{name: "malformed-arguments", scenes: then(does("createFile", `{"path":`, "createFile", `[1]`, "createFile", `"a"`)), end: "Three.",
			told: "the arguments of the tool call are not one JSON object"},
		{name: "no-arguments", scenes: then(does("readFile", "")), end: "Three.", told: "path is missing"},
		{name: "wrong-arguments", scenes: then(does("readFile", `{"path":7}`, "readFile", `{"wings":2,"path":"a"}`, "shell",
			`{"command":""}`)), end: "Three.", told: "there is no parameter"},
		{name: "unknown-tool", scenes: then(does("fly", `{}`, "createFile", writesA)), end: "Three.", told: "there is no tool"},
		{name: "tool-not-offered", scenes: then(does("editFile", `{"path":"a","edits":[]}`)), end: "Three.", told: "there is no tool"},
		{name: "duplicate-call-ids", scenes: then(twice), end: "Three.", told: "1 bytes written to a"},
		{name: "call-ids-of-the-turn-before", scenes: then(does("createFile", writesA), does("readFile", `{"path":"a"}`)), end: "Three."},
		{name: "no-call-ids", only: chatWire, scenes: then(scene{calls: []model.Call{toolCall("", "createFile", writesA),
			toolCall("", "readFile", `{"path":"a"}`)}}), end: "Three.", told: "call_1"},
		{name: "long-arguments", more: "context: {tokens: 1000000}\n", scenes: then(does("createFile", `{"path":"a","content":"`+strings.Repeat("y", 1<<20)+`"}`)), end: "Three.",
			told: "the limit is 1048576"},
		{name: "long-result", scenes: then(does("shell", long), does("read_result", `{"id":"a","offset":13880}`)), end: "Three.",
			more: "context: {tool_result_chars: 400}\n", told: "characters 13880 to"},
		{name: "capsules", more: "limits: {children: 1, depth: 1}\ncomms: {capsules: [plan, manifest]}\n" +
			"context: {sources: [plan_capsules, artifact_manifests]}\nartifacts: ['*.txt']\n", scenes: then(
			does("capsule_write", `{"capsule":"plan","text":"Count, then report."}`, "spawn", `{"task":"Write it down.","space":"new"}`),
			does("createFile", `{"path":"a.txt","content":"1 2 3\n"}`, "capsule_write", `{"capsule":"plan","text":"Write a.txt."}`),
			scene{say: "It is written."},
			does("capsule_read", `{"from":"children"}`, "artifact_read", `{"from":"children","artifact":"a.txt"}`)), end: "Three.",
			told: "characters 0 to 6 of 6"},
		{name: "no-such-result", scenes: then(does("read_result", `{"id":"z"}`, "read_result", `{"id":"a","offset":-1}`)), end: "Three.",
			told: "there is no result of a call"},
		{name: "failing-command", scenes: then(does("shell", `{"command":"ls nothing"}`)), end: "Three.", told: "exit code: 2"},
		{name: "denied", scenes: then(does("shell", `{"command":"sudo true"}`, "createFile", writesA)), end: "Three.",
			told: "instead: Work as the space's own user"},
		{name: "said-thrice", scenes: then(many(3, does("readFile", `{"path":"a"}`))...), end: "Three.",
			told: "the same call with the same result several times"},
		{name: "loop", scenes: many(1, does("readFile", `{"path":"a"}`)), end: agents.FailLoop},
		{name: "no-loop", scenes: then(slices.Concat(many(3, does("readFile", `{"path":"a"}`)), many(3, does("readFile", `{"path":"b"}`)))...),
			end: "Three."},
	}
}

// failedSituations are about endpoints that fail.
func failedSituations() []situation {
	slow := `"idle_ms":1500`
	return []situation{
		{name: "stream-breaks", scenes: then(scene{say: "I count", breaks: true}), end: "Three."},
		{name: "stream-breaks-in-a-call", scenes: then(scene{calls: does("createFile", writesA).calls, breaks: true}), end: "Three."},
		{name: "stream-breaks-always", scenes: []scene{{say: "I count", breaks: true}}, end: agents.FailModel},
		{name: "stream-ends-early", scenes: then(scene{say: "I count", ends: true}), end: "Three."},
		{name: "stream-stalls", entry: slow, scenes: then(scene{say: "I count", stalls: true}), end: "Three."},
		{name: "stream-stalls-always", entry: slow, scenes: []scene{{say: "I count", stalls: true}}, end: agents.FailModel},
		{name: "never-answers", entry: slow, scenes: then(scene{waits: true}), end: "Three."},
		{name: "stream-takes-too-long", entry: `"total_ms":1500`, scenes: then(scene{say: "I count", stalls: true}), end: "Three."},
		{name: "error-in-the-stream", scenes: then(scene{raw: map[string]string{
			chatWire:     `data: {"choices":[{"index":0,"delta":{"content":"I"}}]}` + "\n\n" + `data: {"error":{"message":"x","type":"server_error"}}` + "\n\n",
			messagesWire: "event: error\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}` + "\n\n",
		}}), end: "Three."},
		{name: "garbage-in-the-stream", scenes: then(scene{raw: map[string]string{chatWire: "data: {{\n\n", messagesWire: "data: {{\n\n"}}),
			end: "Three."},
		{name: "load-with-retry-after", scenes: then(scene{fails: "load", after: "4"}), end: "Three."},
		{name: "load-always", scenes: []scene{{fails: "load"}}, end: agents.FailModel},
		{name: "load-for-too-long", scenes: []scene{{fails: "load", after: "120"}}, end: agents.FailModel},
		{name: "overload", scenes: then(scene{fails: "overload"}, scene{fails: "overload"}), end: "Three."},
		{name: "server-error", scenes: then(scene{fails: "broken"}, scene{fails: "gateway"}), end: "Three."},
		{name: "server-error-always", scenes: []scene{{fails: "broken"}}, end: agents.FailModel},
		{name: "wrong-key", scenes: []scene{{fails: "key"}}, end: agents.FailModel},
		{name: "no-money", scenes: []scene{{fails: "money"}}, end: agents.FailModel},
		{name: "wrong-request", scenes: []scene{{fails: "wrong"}}, end: agents.FailModel},
		{name: "no-such-model", scenes: []scene{{fails: "gone"}}, end: agents.FailModel},
		{name: "moved", scenes: []scene{{fails: "moved"}}, end: agents.FailModel},
		{name: "page-of-a-proxy", scenes: []scene{{page: "<!DOCTYPE html><html>log in</html>"}}, end: agents.FailModel},
		{name: "nobody-listens", dead: true, scenes: then(), end: agents.FailModel},
		{name: "key-missing", entry: `"key":"nobody-set-it"`, scenes: then(), end: "model_key_missing"},
		{name: "fallback-after-errors", scenes: []scene{{fails: "broken"}}, second: then(), end: "Three."},
		{name: "fallback-after-a-long-wait", scenes: []scene{{fails: "load", after: "30"}}, second: then(), end: "Three."},
		{name: "fallback-without-a-key", scenes: []scene{{fails: "key"}}, second: then(), end: "Three."},
		{name: "fallback-in-the-middle", scenes: []scene{{think: "hm", seal: "c2ln", calls: does("createFile", writesA).calls},
			{say: "I count", breaks: true}}, second: then(), end: "Three.", told: "1 bytes written to a"},
		{name: "no-fallback-after-a-refusal", scenes: []scene{{say: "I will not.", stop: model.StopRefusal}}, second: then(),
			end: agents.FailRefused},
		{name: "circuit-open", scenes: []scene{does("createFile", writesA), {fails: "broken"}}, second: []scene{does("readFile", `{"path":"a"}`),
			does("readFile", `{"path":"b"}`), done}, end: "Three."},
	}
}

// boundedSituations are about contexts and limits.
func boundedSituations() []situation {
	priced := `"model":"dear"`
	var reads []scene
	for n := range 12 {
		reads = append(reads, does("shell", fmt.Sprintf(`{"command":"seq %d 5000 | head -c 1900"}`, 1000+n)))
	}
	return []situation{
		{name: "window-too-small-once", scenes: then(does("shell", `{"command":"seq 1000"}`), scene{fails: "long"}), end: "Three.",
			told: "read_result with id"},
		{name: "window-full-in-the-answer", scenes: then(does("shell", `{"command":"seq 1000"}`), scene{say: "It is", stop: model.StopOverflow}),
			end: "Three."},
		{name: "window-too-small-always", scenes: []scene{{fails: "long"}}, end: agents.FailContext},
		{name: "compaction", more: "context: {tokens: 9000, tool_result_chars: 4000}\n", scenes: then(reads...), end: "Three.",
			told: "are left out here"},
		{name: "context-too-small", more: "context: {tokens: 1000}\n", scenes: then(), end: agents.FailContext},
		{name: "step-limit", more: "limits: {steps: 2}\n", scenes: []scene{does("createFile", writesA), does("readFile", `{"path":"a"}`)},
			end: agents.FailSteps},
		{name: "token-limit", more: "limits: {tokens: 60000}\n", scenes: []scene{{calls: does("createFile", writesA).calls, used: 59_995}},
			end: agents.FailTokens},
		{name: "token-limit-before-the-request", more: "limits: {tokens: 8000}\n", scenes: then(), end: agents.FailBudget},
		{name: "price-limit", entry: priced, more: "limits: {cost: \"40.00\"}\n", scenes: []scene{{calls: does("createFile", writesA).calls,
			used: 30_000}}, end: agents.FailBudget},
		{name: "price-limit-before-the-request", entry: priced, more: "limits: {cost: \"1.00\"}\n", scenes: then(), end: agents.FailBudget},
		{name: "price-unknown", more: "limits: {cost: \"1.00\"}\n", scenes: then(), end: agents.FailBudget},
		{name: "price-unknown-falls-back", more: "limits: {cost: \"40.00\"}\n", scenes: then(), second: then(), secondEntry: priced,
			end: "Three."},
	}
}
