// A scripted app server of codex. A refusal does not stop its turn, and text can be said into it.
const broken = process.argv[2] === "broken";
const send = (m) => process.stdout.write(JSON.stringify(m) + "\n");
const open = new Map();
const ask = (n, method, more) =>
  new Promise((done) => {
    open.set(n, done);
    send({ id: n, method, params: { threadId: "t", turnId: "u", itemId: "item_" + n, ...more } });
  });
const outcome = (r) => (r.decision === "accept" ? "allowed" : "denied");
let ready = false;
let steered;
const steer = new Promise((done) => (steered = done));
console.log("noise that is no JSON");
require("readline")
  .createInterface({ input: process.stdin })
  .on("line", async (line) => {
    const m = JSON.parse(line);
    if (!m.method) return (open.get(m.id) || (() => {}))(m.result);
    if (m.method === "initialize") return send({ id: m.id, result: {} });
    if (m.method === "initialized") return (ready = true);
    if (!ready) process.exit(6);
    if (m.method === "thread/start") {
      if (m.params.approvalPolicy !== "untrusted" || m.params.model !== "m1") process.exit(3);
      return send({ id: m.id, result: { thread: { id: "t" } } });
    }
    if (m.method === "turn/steer") {
      if (m.params.expectedTurnId !== "u") process.exit(4);
      steered(m.params.input[0].text);
      return send({ id: m.id, result: { turnId: "u" } });
    }
    if (m.method !== "turn/start" || m.params.input[0].text !== "the task") process.exit(5);
    send({ id: m.id, result: { turn: { id: "u" } } });
    const failed = { id: "u", status: "failed", error: { message: "no model" } };
    if (broken) return send({ method: "turn/completed", params: { threadId: "t", turn: failed } });
    let text = "ls: " + outcome(await ask(100, "item/commandExecution/requestApproval", { command: "ls", cwd: "/" }));
    const changes = [{ path: "a", kind: { type: "delete" }, diff: "" }];
    send({ method: "item/started", params: { item: { type: "fileChange", id: "item_101", changes } } });
    text += "; rm: " + outcome(await ask(101, "item/fileChange/requestApproval", {}));
    text += "; told: " + (await steer);
    send({ method: "item/completed", params: { item: { type: "agentMessage", id: "m", text } } });
    send({ method: "turn/completed", params: { threadId: "t", turn: { id: "u", status: "completed" } } });
  });
