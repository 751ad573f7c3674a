package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/client"
	"agentbox/internal/domain/id"
)

// The rows of the nano tier are measured from outside: a daemon in a process of its own, asked over HTTP, with gate, log, result event
// and snapshot. The yardsticks are programs of this host, started by fork and exec, which have no daemon, no policy and no isolation.

// nanoProgram is the daemon's program, built once for all the benchmarks of a run.
var nanoProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "agentbox-bench-nano-")
	if err != nil {
		return "", err
	}
	builtNano = dir
	program := filepath.Join(dir, "agentbox")
	cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "./cmd/agentbox")
	cmd.Dir, cmd.Stderr = "..", os.Stderr
	return program, cmd.Run()
})

// builtNano is the folder of that program; TestMain removes it.
var builtNano string

// nanoDaemon is a daemon in a process of its own, and a client of it with the owner's key.
type nanoDaemon struct {
	*client.Client
	served

	dir string
}

// serveNano starts a daemon on a fresh data directory. The benchmark is left out where it has no nano tier.
func serveNano(b *testing.B) *nanoDaemon {
	b.Helper()
	program, err := nanoProgram()
	must(b, err)
	n := &nanoDaemon{dir: b.TempDir()}
	args := []string{"up", "--data", n.dir, "--listen", "127.0.0.1:0", "--rate", "streams=2000"}
	for _, class := range []string{"spaces", "runs", "files", "claims", "general", "failures"} {
		args = append(args, "--rate", class+"=1000000")
	}
	cmd := exec.Command(program, args...)
	var state app.State
	n.served = serve(b, cmd, func() string {
		raw, err := os.ReadFile(filepath.Join(n.dir, "daemon.json"))
		if err != nil || json.Unmarshal(raw, &state) != nil || state.PID != cmd.Process.Pid {
			return ""
		}
		return state.Address
	})
	key, err := os.ReadFile(filepath.Join(n.dir, "owner.key"))
	must(b, err)
	n.Client = client.New("http://"+state.Address, strings.TrimSpace(string(key)))
	b.Cleanup(n.Client.Close)
	return n
}

// space makes a nano space; what has none leaves the benchmark out.
func (n *nanoDaemon) space(b *testing.B) id.Space {
	b.Helper()
	s, err := n.CreateSpace(b.Context(), client.SpaceRequest{Runtime: "nano"})
	if err != nil {
		leaveOut(b, "the daemon makes no nano space: "+err.Error())
	}
	return s.ID
}

// run runs a command and returns what it printed, or why it did not succeed.
func (n *nanoDaemon) run(b *testing.B, s id.Space, command string) (string, error) {
	op, err := json.Marshal(map[string]string{"type": "shell", "command": command})
	if err != nil {
		return "", err
	}
	m, err := client.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[` + string(op) + `]}`))
	if err != nil {
		return "", err
	}
	events, err := n.CreateRun(b.Context(), s, client.RunRequest{Message: m, WaitSeconds: 30})
	if err != nil {
		return "", err
	}
	if len(events.Events) != 1 || events.Events[0].Stdout == nil {
		return "", fmt.Errorf("it was not run: %+v", events)
	}
	e := events.Events[0]
	if !e.OK() || e.Tier != "nano" {
		return "", fmt.Errorf("it ended in the tier %q, which lacks %v: %s%s", e.Tier, e.Lacks, e.Error, *e.Stderr)
	}
	return *e.Stdout, nil
}

// needGuest leaves a benchmark out where nano spaces do not have an interpreter yet.
func (n *nanoDaemon) needGuest(b *testing.B, s id.Space, command string) {
	b.Helper()
	if out, err := n.run(b, s, command); err != nil || out != "1\n" {
		leaveOut(b, fmt.Sprintf("nano spaces do not run %s yet: printed %q, %v", command, out, err))
	}
}

// The programs that are compared. Each is fresh: nothing that an earlier one did reaches it.
const (
	nanoPython = "python3 -c 'print(1)'"
	nanoScript = "node -e 'console.log(1)'"
)

// overHTTP measures a command that prints 1, in a living space.
func overHTTP(b *testing.B, command string) {
	n := serveNano(b)
	s := n.space(b)
	n.needGuest(b, s, command)
	timed(b, func() time.Duration { return processorTime(b, n.cmd.Process.Pid) }, watched(func() error {
		out, err := n.run(b, s, command)
		if err == nil && out != "1\n" {
			err = fmt.Errorf("printed %q", out)
		}
		return err
	}))
}

// BenchmarkNanoPython is a fresh Python in a living nano space, over the library path and over HTTP, beside the host's own with as little
// to load as it can, and Pyodide in Node, a new one for each run.
func BenchmarkNanoPython(b *testing.B) {
	for _, path := range []struct {
		name string
		ours func(*testing.B)
	}{
		{"library", func(b *testing.B) { fresh(b, "", "", "1\n", "python3", "-c", "print(1)") }},
		{"http", func(b *testing.B) { overHTTP(b, nanoPython) }},
	} {
		b.Run("path="+path.name+"/ours", path.ours)
		b.Run("path="+path.name+"/host", func(b *testing.B) { forked(b, "", "1\n", hostPython(b), "-I", "-S", "-c", "print(1)") })
		b.Run("path="+path.name+"/pyodide", func(b *testing.B) { beside(b, "pyodide", "print(1)", "1\n") })
	}
}

// BenchmarkNanoScript is a fresh JavaScript in a living nano space, over HTTP, beside the host's node.
func BenchmarkNanoScript(b *testing.B) {
	b.Run("ours", func(b *testing.B) { overHTTP(b, nanoScript) })
	b.Run("yardstick", func(b *testing.B) {
		program, err := exec.LookPath("node")
		if err != nil {
			leaveOut(b, "node is missing on this host: install Node.js")
		}
		forked(b, "", "1\n", program, "-e", "console.log(1)")
	})
}

// BenchmarkNanoCreate is a new nano space and a command in it, over HTTP, to the whole output, beside bubblewrap.
func BenchmarkNanoCreate(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		n := serveNano(b)
		_, err := n.DestroySpace(b.Context(), n.space(b))
		must(b, err)
		timed(b, nil, func() (time.Duration, error) {
			began := time.Now()
			s, err := n.CreateSpace(b.Context(), client.SpaceRequest{Runtime: "nano"})
			if err != nil {
				return 0, err
			}
			out, err := n.run(b, s.ID, "echo hello")
			took := time.Since(began)
			if err == nil && out != "hello\n" {
				err = fmt.Errorf("printed %q", out)
			}
			if err != nil {
				return 0, err
			}
			_, err = n.DestroySpace(b.Context(), s.ID)
			return took, err
		})
	})
	b.Run("yardstick", func(b *testing.B) {
		needBubblewrap(b)
		timed(b, nil, func() (time.Duration, error) {
			cmd := wrapped(b, "bash", "-c", "echo hello")
			began := time.Now()
			out, err := cmd.Output()
			if err == nil && string(out) != "hello\n" {
				err = fmt.Errorf("printed %q", out)
			}
			return time.Since(began), err
		})
	})
}

// together is how many executions begin at once in BenchmarkNanoTogether.
var together = sized(100, 4)

// atOnce begins as many executions at the same moment, each in its own goroutine, and reports how many of a hundred succeeded and how
// long they took.
func atOnce(b *testing.B, execute func(n int) error) {
	var (
		took   []time.Duration
		failed = make([]error, together)
		worst  int // failures of one op
	)
	for b.Loop() {
		var (
			begin, all sync.WaitGroup
			each       = make([]time.Duration, together)
			failures   int
		)
		begin.Add(1)
		for n := range together {
			all.Go(func() {
				begin.Wait()
				start := time.Now()
				failed[n] = execute(n)
				each[n] = time.Since(start)
			})
		}
		begin.Done()
		all.Wait()
		for n, err := range failed {
			if err != nil {
				b.Logf("execution %d of %d: %v", n, together, err)
				failures++
			}
		}
		worst = max(worst, failures)
		took = append(took, each...)
	}
	b.ReportMetric(float64(together-worst), "succeeded")
	reportTimes(b, took)
}

// BenchmarkNanoTogether is a hundred fresh Pythons at once, each in a space of its own, over HTTP; one op is all of them. The yardstick
// starts as many of the host's. Both have the processors that the machine has.
func BenchmarkNanoTogether(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		n := serveNano(b)
		spaces := make([]id.Space, together)
		for at := range spaces {
			spaces[at] = n.space(b)
		}
		n.needGuest(b, spaces[0], nanoPython)
		atOnce(b, func(at int) error {
			out, err := n.run(b, spaces[at], nanoPython)
			if err == nil && out != "1\n" {
				err = fmt.Errorf("printed %q", out)
			}
			return err
		})
	})
	b.Run("yardstick", func(b *testing.B) {
		python := hostPython(b)
		atOnce(b, func(int) error { return exec.Command(python, "-I", "-S", "-c", "print(1)").Run() })
	})
}

// Living spaces of BenchmarkNanoIdle; a workspace may have as many as are in one. So many are made at once.
var idleSpaces = sized(1_000, 10)

const (
	idleTogether = 200
	idleMakers   = 8
)

// BenchmarkNanoIdle is the memory of a daemon and its workers with a thousand nano spaces in each of which a command was run, and in
// which nothing happens any more. The yardstick is the same daemon with one. RSS-MB counts what processes share, like their program, for
// each of them; PSS-MB counts it once.
func BenchmarkNanoIdle(b *testing.B) {
	idles := func(b *testing.B, count int) {
		for b.Loop() {
			n := serveNano(b)
			s := n.space(b)
			for made := 1; made < count; {
				w, err := n.CreateWorkspace(b.Context(), client.WorkspaceRequest{Name: fmt.Sprint("idle ", made)})
				must(b, err)
				part := min(idleTogether, count-made)
				must(b, n.idle(b, w.Key, part))
				made += part
			}
			if _, err := n.run(b, s, "echo idle"); err != nil {
				b.Fatal(err)
			}
			time.Sleep(time.Duration(sized(10, 1)) * time.Second)
			b.ReportMetric(resident(b, n.cmd.Process.Pid), "RSS-MB")
			b.ReportMetric(residentAlone(b, n.cmd.Process.Pid), "daemon-RSS-MB")
			if shared, err := proportional(b, n.cmd.Process.Pid); err == nil {
				b.ReportMetric(shared, "PSS-MB")
			}
			began := time.Now()
			_, err := n.run(b, s, nanoPython)
			must(b, err)
			b.ReportMetric(milliseconds(time.Since(began)), "next-ms")
			n.stop()
		}
		b.ReportMetric(0, "ns/op")
	}
	b.Run("ours", func(b *testing.B) { idles(b, idleSpaces) })
	b.Run("yardstick", func(b *testing.B) { idles(b, 1) })
}

// idle makes spaces in a workspace, and runs a command in each.
func (n *nanoDaemon) idle(b *testing.B, key string, count int) error {
	guest := &nanoDaemon{Client: client.New(n.Address(), key)}
	defer guest.Client.Close()
	var (
		all    sync.WaitGroup
		failed [idleMakers]error
	)
	for m := range idleMakers {
		all.Go(func() {
			for made := m; made < count && failed[m] == nil; made += idleMakers {
				s, err := guest.CreateSpace(b.Context(), client.SpaceRequest{Runtime: "nano"})
				if err == nil {
					_, err = guest.run(b, s.ID, "echo idle")
				}
				failed[m] = err
			}
		})
	}
	all.Wait()
	return errors.Join(failed[:]...)
}

// proportional is resident with what processes share divided among them. Only the owner of a process may ask for it, and not every kernel
// tells.
func proportional(b *testing.B, pid int) (float64, error) {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(raw), "\nPss:")
	kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	if err != nil {
		return 0, err
	}
	total := kilobytes * 1024 / 1e6
	for _, child := range children(b, pid) {
		part, err := proportional(b, child)
		if err != nil {
			return 0, err
		}
		total += part
	}
	return total, nil
}
