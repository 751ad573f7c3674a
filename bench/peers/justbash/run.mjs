// Runs scripts in just-bash, the virtual shell of npm, and prints for each how long the median run took and how much processor time a run took. Beside it stands BenchmarkShell of
// internal/userland/shell, which runs the same scripts. Needs Node; the package is the one that `make bench` measures:
//
//	node bench/peers/justbash/run.mjs $(scripts/fetch-nano-peers) [seconds]
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [, , folder = ".", seconds = "3"] = process.argv;
const require = createRequire(join(folder, "package.json"));
const { Bash } = await import(pathToFileURL(require.resolve("just-bash")).href);

const scripts = {
  "echo": "echo hello",
  "pipe-100": "seq 100 | sort -rn | head -5",
  "pipe-100000": "seq 100000 | sort -rn | head -5",
  "loop-10000": "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done; echo $i",
  "subst-1000": "for i in {1..1000}; do x=$(echo $i); done; echo $x",
};

for (const [name, script] of Object.entries(scripts)) {
  const took = [];
  const cpu = process.cpuUsage();
  for (const end = performance.now() + Number(seconds) * 1000; performance.now() < end || took.length < 3; ) {
    const begin = performance.now();
    const bash = new Bash({ executionLimits: { maxLoopIterations: 1e6, maxCommandCount: 1e6 } });
    const result = await bash.exec(script);
    if (result.exitCode !== 0) throw new Error(`${name}: ${result.stderr}`);
    took.push(performance.now() - begin);
  }
  const used = process.cpuUsage(cpu);
  took.sort((a, b) => a - b);
  console.log(`${name}\t${(took[took.length >> 1] * 1000).toFixed(0)} us\tcpu ${((used.user + used.system) / took.length).toFixed(0)} us\tn=${took.length}`);
}
