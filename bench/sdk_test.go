package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The overhead of the SDKs is measured in their own processes, against a daemon here: a call of the SDK and the same request without it, in
// turn.

// sdkPython is the Python with the tools of the SDK.
var sdkPython = sync.OnceValues(func() (string, error) {
	found, err := exec.Command("../scripts/sdk", "python").Output()
	return strings.TrimSpace(string(found)), err
})

// measuredSDK is what a measuring program printed: milliseconds of each call, and the memory of its process.
type measuredSDK struct {
	Ours, Raw []float64
	RSS       float64
}

// inPython has testdata/sdk/measure.py measure.
func inPython(b *testing.B, args ...string) measuredSDK {
	b.Helper()
	python, err := sdkPython()
	if err != nil {
		leaveOut(b, "the tools of the Python SDK cannot be had: "+err.Error())
	}
	return measure(b, exec.Command(python, append([]string{"testdata/sdk/measure.py"}, args...)...))
}

// inNode builds the TypeScript SDK and has testdata/sdk/measure.mjs measure.
func inNode(b *testing.B, args ...string) measuredSDK {
	b.Helper()
	if _, err := sdkPython(); err != nil { // which fetches the tools of both
		leaveOut(b, "the tools of the TypeScript SDK cannot be had: "+err.Error())
	}
	dist := b.TempDir()
	build := exec.Command("node_modules/.bin/tsc", "-p", "tsconfig.build.json", "--outDir", dist)
	build.Dir = "../sdk/typescript"
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("the SDK does not build: %v\n%s", err, out)
	}
	must(b, os.WriteFile(filepath.Join(dist, "package.json"), []byte(`{"type":"module"}`), 0o600))
	return measure(b, exec.Command("node", append([]string{"testdata/sdk/measure.mjs", dist}, args...)...))
}

// measure runs a measuring program against a daemon of its own.
func measure(b *testing.B, cmd *exec.Cmd) (m measuredSDK) {
	b.Helper()
	api := serveNano(b)
	api.space(b) // leaves the benchmark out where there are none
	cmd.Env = append(os.Environ(), "AGENTBOX_URL="+api.Address(), "AGENTBOX_KEY="+api.Key(), "PYTHONPATH=../sdk/python/src")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	must(b, err)
	must(b, json.Unmarshal(out, &m))
	return m
}

// told reports the times of a measurement in a sub-benchmark.
func told(b *testing.B, name string, ms []float64, more map[string]float64) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		all := make([]time.Duration, len(ms))
		for n, t := range ms {
			all[n] = time.Duration(t * float64(time.Millisecond))
		}
		reportTimes(b, all)
		for unit, value := range more {
			b.ReportMetric(value, unit)
		}
	})
}

// overhead is what ours took more than raw, each by its p50.
func overhead(m measuredSDK) float64 {
	half := func(ms []float64) float64 {
		sorted := slices.Sorted(slices.Values(ms))
		return sorted[len(sorted)/2]
	}
	return half(m.Ours) - half(m.Raw)
}

// BenchmarkSDKCall is a small request of each SDK beside the same by fetch and by httpx.
func BenchmarkSDKCall(b *testing.B) {
	count := strconv.Itoa(sized(2_000, 5))
	b.Run("typescript", func(b *testing.B) {
		m := inNode(b, "call", count)
		told(b, "ours", m.Ours, map[string]float64{"overhead-ms": overhead(m)})
		told(b, "fetch", m.Raw, nil)
	})
	b.Run("python", func(b *testing.B) {
		m := inPython(b, "call", count)
		told(b, "ours", m.Ours, map[string]float64{"overhead-ms": overhead(m)})
		told(b, "httpx", m.Raw, nil)
	})
}

// BenchmarkSDKSandbox is Sandbox.run("print(1)") beside the bare request that runs the same program, a process of the host's Python, a new
// Pyodide, and an echo of just-bash. None of the last three decides or records anything.
func BenchmarkSDKSandbox(b *testing.B) {
	m := inPython(b, "run", strconv.Itoa(sized(100, 2)))
	told(b, "ours", m.Ours, nil)
	told(b, "httpx", m.Raw, nil)
	b.Run("subprocess", func(b *testing.B) { forked(b, "", "1\n", hostPython(b), "-c", "print(1)") })
	b.Run("pyodide", func(b *testing.B) { beside(b, "pyodide", "print(1)", "1\n") })
	b.Run("just-bash", func(b *testing.B) { beside(b, "just-bash", "echo 1", "1\n") })
}

// BenchmarkSDKImport is how long Python takes to import the package by -X importtime, and to have what a program of three lines needs,
// beside httpx alone.
func BenchmarkSDKImport(b *testing.B) {
	python, err := sdkPython()
	if err != nil {
		leaveOut(b, "the tools of the Python SDK cannot be had: "+err.Error())
	}
	took := func(code string) float64 {
		cmd := exec.Command(python, "-X", "importtime", "-c", code)
		cmd.Env = append(os.Environ(), "PYTHONPATH=../sdk/python/src")
		said := &strings.Builder{}
		cmd.Stderr = said
		must(b, cmd.Run())
		sum := 0.0
		for line := range strings.Lines(said.String()) {
			columns := strings.Split(strings.TrimPrefix(line, "import time:"), "|")
			if own, err := strconv.ParseFloat(strings.TrimSpace(columns[0]), 64); err == nil && len(columns) == 3 {
				sum += own / 1000
			}
		}
		return sum
	}
	var names, ours, httpx []float64
	for range sized(20, 1) {
		without := took("pass")
		names = append(names, took("import agentbox")-without)
		ours = append(ours, took("from agentbox import Sandbox; Sandbox")-without)
		httpx = append(httpx, took("import httpx")-without)
	}
	b.Run("package", func(b *testing.B) { told(b, "ours", names, nil) })
	b.Run("sandbox", func(b *testing.B) {
		told(b, "ours", ours, nil)
		told(b, "httpx", httpx, nil)
	})
}

// BenchmarkSDKSubscriptions is how long an event takes from its request until 1,000 subscriptions of one Node process have it.
func BenchmarkSDKSubscriptions(b *testing.B) {
	m := inNode(b, "subscriptions", strconv.Itoa(sized(1_000, 10)), strconv.Itoa(sized(50, 2)))
	told(b, "ours", m.Ours, map[string]float64{"RSS-MB": m.RSS})
}
