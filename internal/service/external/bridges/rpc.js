// Starts the program, which speaks JSON-RPC in lines. Each ends with the other.
const print = (o) => console.log(JSON.stringify(o));
const refusal = (tool, v) => "The use of " + tool + " was refused. " + v.reason + "\nGo on without it.";
const rpc = (heard) => {
  const program = require("child_process").spawn(process.argv[1], process.argv.slice(2), { stdio: ["pipe", "pipe", "inherit"] });
  const send = (m) => program.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...m }) + "\n");
  const open = new Map();
  process.on("exit", () => program.kill("SIGKILL"));
  program.on("exit", (code) => process.exit(code || 1));
  require("readline").createInterface({ input: program.stdout }).on("line", async (line) => {
    let m;
    try {
      m = JSON.parse(line);
    } catch {
      return;
    }
    if (m.method) {
      const result = await heard(m.method, m.params || {});
      if (m.id !== undefined) send(result ? { id: m.id, result } : { id: m.id, error: { code: -32601, message: "not offered" } });
      return;
    }
    const [done, fail] = open.get(m.id) || [];
    open.delete(m.id);
    if (done) m.error ? fail(m.error) : done(m.result);
  });
  let last = 0;
  const call = (method, params) =>
    new Promise((done, fail) => {
      open.set(++last, [done, fail]);
      send({ id: last, method, params });
    });
  return [call, (method) => send({ method })];
};
