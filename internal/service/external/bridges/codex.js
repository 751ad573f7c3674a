// codex as an app server. A refusal does not stop its turn; why it was refused is said into the turn.
const items = {};
const refused = [];
let ended;
const text = (text) => [{ type: "text", text }];
const [call, note] = rpc(async (method, p) => {
  if (method === "item/started") items[p.item.id] = p.item;
  if (method === "item/completed") print({ type: "item.completed", item: { ...p.item, type: p.item.type.replace("agentM", "agent_m") } });
  if (method === "turn/completed") ended(p.turn);
  if (!method.endsWith("/requestApproval")) return;
  const tool = method.split("/")[1];
  const { command, cwd, reason } = p;
  const v = await ask(p.itemId, tool, { command, cwd, reason, changes: (items[p.itemId] || {}).changes });
  if (!v.allow) {
    const input = text(refusal(tool, v));
    call("turn/steer", { threadId: p.threadId, expectedTurnId: p.turnId, input }).catch(() => refused.push(input[0].text));
  }
  return { decision: v.allow ? "accept" : "decline" };
});
(async () => {
  await call("initialize", { clientInfo: { name: "agentbox", title: "Agentbox", version: "1" } });
  note("initialized");
  const start = { cwd: process.cwd(), approvalPolicy: "untrusted", sandbox: "danger-full-access", model: process.env.AGENTBOX_MODEL };
  const { thread } = await call("thread/start", start);
  for (let say = process.env.AGENTBOX_TASK; say; say = refused.splice(0).join("\n")) {
    const end = new Promise((done) => (ended = done));
    await call("turn/start", { threadId: thread.id, input: text(say) });
    const turn = await end;
    if (turn.status !== "completed") throw turn.error || { message: "the turn ended as " + turn.status };
  }
  process.exit(0);
})().catch((error) => {
  print({ type: "turn.failed", error });
  process.exit(1);
});
