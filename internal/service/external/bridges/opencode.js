// opencode as an agent of the Agent Client Protocol. A refusal stops its turn, so the next turn says why and goes on.
// The title of a question may be a command, so tools are named by the call before it.
let said = "";
let refused = [];
const names = {};
const [call] = rpc(async (method, p) => {
  const u = p.update || {};
  if (u.sessionUpdate === "agent_message_chunk") said += u.content.text || "";
  if (u.sessionUpdate === "tool_call") {
    said = "";
    names[u.toolCallId] = u.title;
  }
  if (method !== "session/request_permission") return;
  const t = p.toolCall;
  const tool = names[t.toolCallId] || t.kind;
  const v = await ask(t.toolCallId, tool, t.rawInput || {});
  if (!v.allow) refused.push(refusal(tool, v));
  const option = p.options.find((o) => o.kind === (v.allow ? "allow_once" : "reject_once"));
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
});
(async () => {
  await call("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await call("session/new", { cwd: process.cwd(), mcpServers: [] });
  let end;
  for (let text = process.env.AGENTBOX_TASK; text; text = refused.join("\n")) {
    [said, refused] = ["", []];
    end = await call("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  }
  if (!said) throw { message: "it ended with " + end.stopReason + " and said nothing" };
  print({ type: "text", part: { text: said } });
  process.exit(0);
})().catch((error) => {
  print({ type: "error", error });
  process.exit(1);
});
