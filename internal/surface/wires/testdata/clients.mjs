// The vendors' own clients ask a server of the test. What they read is printed as JSON; the test knows what it has to be.
import OpenAI from "openai";
import Anthropic from "@anthropic-ai/sdk";

const url = process.argv[2];
const openai = new OpenAI({ baseURL: url + "/v1", apiKey: "none" });
const anthropic = new Anthropic({ baseURL: url, apiKey: "none" });
const out = {};

const refusal = async (name, ask) => {
  try {
    await ask();
    out[name] = "answered";
  } catch (e) {
    out[name] = { status: e.status, type: e.type ?? e.error?.error?.type, code: e.code ?? null };
  }
};

const parameters = { type: "object", properties: { a: { type: "number" } } };
const chat = (say, more) => ({
  model: "m1", messages: [{ role: "developer", content: "be short" }, { role: "user", content: [{ type: "text", text: say }] }],
  tools: [{ type: "function", function: { name: "add", parameters } }], ...more,
});
const first = await openai.chat.completions.create(chat("call"));
out.chatCall = { calls: first.choices[0].message.tool_calls, finish: first.choices[0].finish_reason, usage: first.usage.total_tokens };
const stream = openai.chat.completions.stream(chat("say", { stream_options: { include_usage: true } }));
const pieces = [];
stream.on("content", (delta) => pieces.push(delta));
const said = await stream.finalChatCompletion();
out.chatStream = { pieces, text: said.choices[0].message.content, finish: said.choices[0].finish_reason, usage: said.usage.total_tokens };
const called = await openai.chat.completions.stream(chat("call")).finalChatCompletion();
out.chatStreamCall = { calls: called.choices[0].message.tool_calls.map((c) => [c.id, c.function.name, c.function.arguments]),
  finish: called.choices[0].finish_reason };
out.chatBack = (await openai.chat.completions.create({ model: "m1", messages: [
  { role: "user", content: "call" }, first.choices[0].message,
  ...first.choices[0].message.tool_calls.map((c) => ({ role: "tool", tool_call_id: c.id, content: "7" }))] })).choices[0].message.content;
out.models = (await openai.models.list()).data.map((m) => m.id);

const tools = [{ type: "function", name: "add", parameters, strict: false }, { type: "web_search" }];
const response = await openai.responses.create({ model: "m1", input: "call", instructions: "be short", tools });
out.response = { output: response.output.map((i) => [i.type, i.call_id ?? null, i.name ?? null, i.arguments ?? null]), status: response.status,
  usage: response.usage.total_tokens };
const events = [];
const streamed = openai.responses.stream({ model: "m1", input: [{ role: "user", content: "think" }], tools });
streamed.on("event", (e) => events.push(e.type));
const final = await streamed.finalResponse();
out.responseStream = { events: [...new Set(events)], text: final.output_text, types: final.output.map((i) => i.type), usage: final.usage.input_tokens };
out.responseBack = (await openai.responses.create({ model: "m1", tools, input: [{ role: "user", content: "call" }, ...response.output,
  ...response.output.filter((i) => i.call_id).map((i) => ({ type: "function_call_output", call_id: i.call_id, output: "7" }))] })).output_text;

const message = (say, more) => ({ model: "m1", max_tokens: 100, system: [{ type: "text", text: "be short", cache_control: { type: "ephemeral" } }],
  messages: [{ role: "user", content: say }], tools: [{ name: "add", input_schema: parameters }], ...more });
const one = await anthropic.messages.create(message("call"));
out.message = { content: one.content, stop: one.stop_reason, usage: one.usage.input_tokens };
const told = await anthropic.messages.stream(message("think")).finalMessage();
out.messageStream = { content: told.content.map((b) => [b.type, b.thinking ?? b.text]), stop: told.stop_reason, usage: told.usage.output_tokens };
const use = await anthropic.messages.stream(message("call")).finalMessage();
out.messageStreamCall = { content: use.content, stop: use.stop_reason };
out.messageBack = (await anthropic.messages.create(message("call", { messages: [{ role: "user", content: "call" },
  { role: "assistant", content: use.content },
  { role: "user", content: use.content.filter((c) => c.type === "tool_use").map((c) => ({ type: "tool_result", tool_use_id: c.id, content: [{ type: "text", text: "7" }] })) }] }))).content[0].text;

for (const word of ["budget", "denied", "busy", "overflow", "broken"]) {
  const openaiOnce = openai.withOptions({ maxRetries: word === "busy" ? 0 : 2 });
  const anthropicOnce = anthropic.withOptions({ maxRetries: word === "busy" ? 0 : 2 });
  await refusal("chat " + word, () => openaiOnce.chat.completions.create(chat(word)));
  await refusal("responses " + word, () => openaiOnce.responses.create({ model: "m1", input: word }));
  await refusal("messages " + word, () => anthropicOnce.messages.create(message(word)));
}
await refusal("chat cut", () => openai.chat.completions.stream(chat("cut")).finalChatCompletion());
await refusal("messages cut", () => anthropic.messages.stream(message("cut")).finalMessage());
const cut = [];
for await (const e of await openai.responses.create({ model: "m1", input: "cut", stream: true })) cut.push(e.type);
out["responses cut"] = cut.at(-1);
await refusal("chat stop", () => openai.chat.completions.create(chat("say", { stop: ["x"] })));
console.log(JSON.stringify(out));
