// A program for a nano space: TypeScript, run by an interpreter inside metered WebAssembly. It sees the files of its space and nothing else.
import { readdirSync, writeFileSync } from "node:fs";

interface Step {
  what: string;
  took: number;
}

const began = Date.now();
await new Promise((resume) => setTimeout(resume, 20_000)); // on a clock of its own, which counts to the time that a command may take

const step: Step = { what: "slept", took: Date.now() - began };
writeFileSync("step.json", JSON.stringify(step));

console.log("hello from", process.cwd());
console.log(`${step.what} for ${Math.round(step.took / 1000)} seconds, and nobody waited`);
console.log("files:", readdirSync("."));

try {
  const { connect } = await import("node:net");
  connect(80, "example.com");
} catch (error) {
  console.log("no network:", (error as Error).message.split("\n")[0]);
}
