package bench

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The peers of the nano tier that run in Node do so in one process that lives as long as their benchmark, and tell by their own clock how
// long each run took. Peers that are programs, Python and bun, are started by fork and exec. Their pins lie in peers/nano; they are fetched
// on demand, and none becomes part of the product.

// nanoPeers is the folder of the peers.
var nanoPeers = sync.OnceValues(func() (string, error) {
	fetch := exec.Command("../scripts/fetch-nano-peers")
	why := &strings.Builder{}
	fetch.Stderr = why
	folder, err := fetch.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.TrimSpace(why.String()), err)
	}
	return strings.TrimSpace(string(folder)), nil
})

// needPeers returns that folder; where the peers cannot be had, the benchmark is left out.
func needPeers(b *testing.B) string {
	b.Helper()
	dir, err := nanoPeers()
	if err != nil {
		leaveOut(b, err.Error())
	}
	return dir
}

// minimum is how many runs are measured at least, however long they take.
var minimum = sized(5, 1)

// timed measures a run again and again, after one that does not count, and reports what half of them and 99 of 100 took at most, and how
// much of the processors one took: used tells the time of the processors until now; with nil that is not reported.
func timed(b *testing.B, used func() time.Duration, run func() (time.Duration, error)) {
	b.Helper()
	once := func() time.Duration {
		took, err := run()
		if err != nil {
			b.Fatal(err)
		}
		return took
	}
	once()
	counted := used != nil
	if !counted {
		used = func() time.Duration { return 0 }
	}
	var all []time.Duration
	before := used()
	for b.Loop() {
		all = append(all, once())
	}
	for len(all) < minimum {
		all = append(all, once())
	}
	spent := used() - before
	reportTimes(b, all)
	if counted {
		b.ReportMetric(milliseconds(spent)/float64(len(all)), "cpu-ms")
	}
}

// reportTimes reports the p50 and p99 of what was measured, in place of what an op took by the clock of package testing, in which there
// is more.
func reportTimes(b *testing.B, all []time.Duration) {
	b.Helper()
	slices.Sort(all)
	b.ReportMetric(milliseconds(all[len(all)/2]), "p50-ms")
	b.ReportMetric(milliseconds(all[len(all)*99/100]), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// watched measures a run by our clock.
func watched(run func() error) func() (time.Duration, error) {
	return func() (time.Duration, error) {
		began := time.Now()
		err := run()
		return time.Since(began), err
	}
}

// beside measures code in a peer that runs in Node, by the peer's clock.
func beside(b *testing.B, peer, code, want string) {
	b.Helper()
	cmd := exec.Command("node", filepath.Join(needPeers(b), "drive.mjs"), peer)
	said := &strings.Builder{}
	cmd.Stderr = said
	in, err := cmd.StdinPipe()
	must(b, err)
	stdout, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() {
		if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
			b.Errorf("%s: %v\n%s", peer, err, said)
		}
	})
	out := bufio.NewReader(stdout)
	hear := func() (a struct {
		Ready, Out, Error string
		MS                float64
	}, err error) {
		line, err := out.ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err == nil && a.Error != "" {
			err = errors.New(a.Error)
		}
		return a, err
	}
	if a, err := hear(); err != nil || a.Ready != peer {
		b.Fatalf("%s does not start: %+v, %v\n%s", peer, a, err, said)
	}
	order, err := json.Marshal(code)
	must(b, err)
	timed(b, func() time.Duration { return processorTime(b, cmd.Process.Pid) }, func() (time.Duration, error) {
		if _, err := in.Write(append(order, '\n')); err != nil {
			return 0, err
		}
		a, err := hear()
		if err == nil && a.Out != want {
			err = fmt.Errorf("%s printed %q, want %q", peer, a.Out, want)
		}
		return time.Duration(a.MS * float64(time.Millisecond)), err
	})
}

// forked measures a program of the host, from fork to exit.
func forked(b *testing.B, dir, want, program string, args ...string) {
	b.Helper()
	var spent time.Duration
	timed(b, func() time.Duration { return spent }, watched(func() error { return fork(&spent, dir, want, program, args...) }))
}

// fork runs a program to its end, and adds what it had of the processors.
func fork(spent *time.Duration, dir, want, program string, args ...string) error {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if cmd.ProcessState != nil {
		*spent += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	if err == nil && string(out) != want {
		err = fmt.Errorf("%s printed %q, want %q", program, out, want)
	}
	return err
}

// hostPython is the interpreter of the host itself, not the script that a version manager puts before it, which takes longer than Python.
func hostPython(b *testing.B) string {
	b.Helper()
	out, err := exec.Command("python3", "-I", "-S", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		leaveOut(b, "python3 is missing on this host: install python3")
	}
	return string(out)
}

// processorTime is what a process and those that it started have had of the processors.
func processorTime(b *testing.B, pid int) time.Duration {
	b.Helper()
	const tick = 10 * time.Millisecond // that of the kernel's figures, on every machine
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	must(b, err)
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:])) // those after the name, which may hold blanks
	user, userErr := strconv.Atoi(fields[11])
	system, systemErr := strconv.Atoi(fields[12])
	must(b, cmp.Or(userErr, systemErr))
	total := time.Duration(user+system) * tick
	for _, child := range children(b, pid) {
		total += processorTime(b, child)
	}
	return total
}

// children lists the processes that a process has started and that live. The kernel tells them by the thread that started them.
func children(tb testing.TB, pid int) (found []int) {
	tb.Helper()
	lists, err := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	must(tb, err)
	for _, list := range lists {
		raw, err := os.ReadFile(list)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended; its processes are another's now
		}
		must(tb, err)
		for child := range strings.FieldsSeq(string(raw)) {
			n, err := strconv.Atoi(child)
			must(tb, err)
			found = append(found, n)
		}
	}
	return found
}

// TestChildrenOfEveryThread finds a process whichever thread has started it: a program in Go starts them from any.
func TestChildrenOfEveryThread(t *testing.T) {
	var (
		started, all sync.WaitGroup
		looked       = make(chan struct{})
		pids         [2]int
		failed       [2]error
	)
	for n := range pids {
		started.Add(1)
		all.Go(func() {
			runtime.LockOSThread() // until both have one: not both are the first of this process
			defer runtime.UnlockOSThread()
			cmd := exec.Command("cat")
			in, err := cmd.StdinPipe()
			if err == nil {
				err = cmd.Start()
			}
			if failed[n] = err; err != nil {
				started.Done()
				return
			}
			pids[n] = cmd.Process.Pid
			started.Done()
			<-looked
			failed[n] = errors.Join(in.Close(), cmd.Wait())
		})
	}
	started.Wait()
	found := children(t, os.Getpid())
	close(looked)
	all.Wait()
	must(t, errors.Join(failed[:]...))
	for _, pid := range pids {
		if !slices.Contains(found, pid) {
			t.Errorf("got the processes %v, want also %d", found, pid)
		}
	}
}
