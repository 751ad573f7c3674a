// A scripted agent of the Agent Client Protocol. It stops its turn at a refusal, as opencode does.
const broken = process.argv[2] === "broken";
const send = (m) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
const open = new Map();
const update = (u) => send({ method: "session/update", params: { sessionId: "s", update: u } });
const options = [
  { optionId: "once", kind: "allow_once", name: "Allow once" },
  { optionId: "always", kind: "allow_always", name: "Always allow" },
  { optionId: "reject", kind: "reject_once", name: "Reject" },
];
const ask = (n, command) =>
  new Promise((done) => {
    open.set(n, done);
    update({ sessionUpdate: "tool_call", toolCallId: "call_" + n, title: "bash" });
    const toolCall = { toolCallId: "call_" + n, title: command, kind: "execute", rawInput: { command } };
    send({ id: n, method: "session/request_permission", params: { sessionId: "s", toolCall, options } });
  });
const outcome = (r) => (r.outcome.optionId === "once" ? "allowed" : "denied");
let told = "";
console.log("noise that is no JSON");
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const m = JSON.parse(line);
    if (!m.method) return (open.get(m.id) || (() => {}))(m.result, m.error);
    if (m.method === "initialize") return send({ id: m.id, result: { protocolVersion: m.params.protocolVersion } });
    if (m.method === "session/new") return send({ id: m.id, result: { sessionId: "s" } });
    if (broken) return send({ id: m.id, error: { code: -32603, message: "no model" } });
    if (told === "") {
      if (m.params.prompt[0].text !== "the task") process.exit(3);
      update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "I begin" } });
      told = "ls: " + outcome(await ask(100, "ls"));
      // A client without a file system answers with an error.
      const refused = await new Promise((done) => {
        open.set(101, (result, error) => done(error));
        send({ id: 101, method: "fs/write_text_file", params: {} });
      });
      if (!refused) process.exit(4);
      told += "; rm: " + outcome(await ask(102, "rm"));
    } else {
      for (const text of [told, "; told: ", m.params.prompt[0].text])
        update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
    }
    send({ id: m.id, result: { stopReason: "end_turn" } });
  });
