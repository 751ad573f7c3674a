// A hook of claude before it uses a tool.
let text = "";
process.stdin.setEncoding("utf8").on("data", (d) => (text += d)).on("end", async () => {
  const say = (decision, reason) => {
    const said = { hookEventName: "PreToolUse", permissionDecision: decision, permissionDecisionReason: reason };
    console.log(JSON.stringify({ hookSpecificOutput: said }));
    process.exit(0);
  };
  // After its own time-out claude goes on without the hook, so this one refuses before.
  setTimeout(() => say("deny", "nobody answered within 24 days"), 24 * 86400e3);
  const q = JSON.parse(text);
  const v = await ask(q.tool_use_id, q.tool_name, q.tool_input);
  say(v.allow ? "allow" : "deny", v.reason);
});
