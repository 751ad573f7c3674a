// Runs code in the peers of the nano tier, one at a time, each run fresh: `drive.mjs PEER` reads one JSON string on a line, the code, and answers with one line of JSON: how
// many milliseconds it took by its own clock and what it printed, or its error. So what is measured is the peer, not the start of Node nor the way to this process.
import { createInterface } from "node:readline";

const peers = {
  // A new Python, started as Pyodide's documentation does.
  async pyodide() {
    const { loadPyodide } = await import("pyodide");
    return async (code) => {
      let out = "";
      const python = await loadPyodide({ stdout: (line) => (out += line + "\n") });
      python.runPython(code);
      return out;
    };
  },

  // A new runtime and context of QuickJS, in one module of WebAssembly, whose memory the runs share.
  async quickjs() {
    const { getQuickJS } = await import("quickjs-emscripten");
    const module = await getQuickJS();
    return (code) => evaluate(module, code);
  },

  // QuickJS in a new module, so that no memory is shared, as in a nano space.
  async "quickjs-module"() {
    const { newQuickJSWASMModule } = await import("quickjs-emscripten");
    return async (code) => evaluate(await newQuickJSWASMModule(), code);
  },

  // A new virtual shell and file system.
  async "just-bash"() {
    const { Bash } = await import("just-bash");
    return async (code) => {
      const { stdout, stderr, exitCode } = await new Bash().exec(code);
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}: ${stderr}`);
      return stdout;
    };
  },
};

function evaluate(module, code) {
  const runtime = module.newRuntime();
  const context = runtime.newContext();
  const value = context.unwrapResult(context.evalCode(code));
  const out = context.dump(value) + "\n";
  value.dispose();
  context.dispose();
  runtime.dispose();
  return out;
}

const answer = (o) => process.stdout.write(JSON.stringify(o) + "\n");

const run = await peers[process.argv[2]]();
answer({ ready: process.argv[2] });
for await (const line of createInterface({ input: process.stdin })) {
  try {
    const code = JSON.parse(line);
    const began = performance.now();
    const out = await run(code);
    answer({ ms: performance.now() - began, out });
  } catch (error) {
    answer({ error: String(error) });
  }
}
