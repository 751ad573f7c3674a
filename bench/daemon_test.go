package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// filledEvents is the size of the log with which a daemon starts and idles.
var filledEvents = sized(1_000_000, 5_000)

// filled is a data directory with a log of a million events in 20,000 streams, signed for, and a program that serves it. It is made once
// for all the benchmarks of a run; TestMain removes it.
var filled = sync.OnceValues(func() (found struct{ dir, daemon, bare, data string }, err error) {
	if found.dir, err = os.MkdirTemp("", "agentbox-bench-filled-"); err != nil {
		return found, err
	}
	made = found.dir
	found.daemon, found.bare, found.data = filepath.Join(found.dir, "agentbox"), filepath.Join(found.dir, "bare"), filepath.Join(found.dir,
		"data")
	for _, build := range []struct{ folder, program, of string }{{"..", found.daemon, "./cmd/agentbox"}, {".", found.bare, "./bare"}} {
		cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", build.program, build.of)
		cmd.Dir, cmd.Stderr = build.folder, os.Stderr
		if err := cmd.Run(); err != nil {
			return found, err
		}
	}
	return found, fillDirectory(found.data, filledEvents)
})

// made is a folder that TestMain removes at the end; "" for none.
var made string

var background = context.Background()

// fillDirectory makes a data directory whose log has so many events, as those of BenchmarkAppend are, 50 in each room.
func fillDirectory(dir string, events int) (err error) {
	c := app.Default(dir)
	a, err := app.Open(background, c, app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() {
		if closing := a.Close(); err == nil {
			err = closing
		}
	}()
	data := json.RawMessage(runOf(a.Owner)().Drafts[0].Data)
	for n := 0; n < events; {
		batch := event.Batch{Workspace: id.DefaultWorkspace}
		for ; len(batch.Drafts) < 1_000; n++ {
			room := id.New[id.Room](ids)
			origin := event.Origin{Principal: a.Owner, Correlation: id.New[id.Correlation](ids)}
			for range 50 {
				batch.Drafts = append(batch.Drafts, event.New("bench.told", origin, id.DefaultWorkspace, room, data))
			}
			n += 49
		}
		if _, err := a.Log.Append(background, batch); err != nil {
			return err
		}
	}
	return a.Signer.Step(background)
}

// served is a program that serves, and how long it took from its start until it said that it was ready.
type served struct {
	cmd  *exec.Cmd
	took time.Duration
}

// serve starts a program and waits until its /readyz says yes. The function address finds where it listens, "" as long as it does not say.
func serve(b *testing.B, cmd *exec.Cmd, address func() string) served {
	b.Helper()
	cmd.Stderr = b.Output()
	start := time.Now()
	must(b, cmd.Start())
	s := served{cmd: cmd}
	b.Cleanup(s.stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	for time.Since(start) < time.Minute {
		if at := address(); at != "" {
			answer, err := client.Get("http://" + at + "/readyz")
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			}
			if err == nil && answer.StatusCode == http.StatusOK {
				s.took = time.Since(start)
				return s
			}
		}
		time.Sleep(500 * time.Microsecond)
	}
	b.Fatal("the program is not ready after a minute")
	return s
}

func (s *served) stop() {
	if s.cmd.ProcessState == nil {
		_ = s.cmd.Process.Signal(unix.SIGTERM)
		_ = s.cmd.Wait()
	}
}

// serveOurs starts the daemon on the filled data directory.
func serveOurs(b *testing.B) served {
	b.Helper()
	f, err := filled()
	must(b, err)
	cmd := exec.Command(f.daemon, "up", "--data", f.data, "--listen", "127.0.0.1:0")
	return serve(b, cmd, func() string {
		raw, err := os.ReadFile(filepath.Join(f.data, "daemon.json"))
		if err != nil {
			return ""
		}
		var state app.State
		if json.Unmarshal(raw, &state) != nil || state.PID != cmd.Process.Pid {
			return ""
		}
		return state.Address
	})
}

// serveBare starts the yardstick.
func serveBare(b *testing.B) served {
	b.Helper()
	f, err := filled()
	must(b, err)
	cmd := exec.Command(f.bare, "-db", filepath.Join(f.data, "log.db"))
	out, err := cmd.StdoutPipe()
	must(b, err)
	said := ""
	return serve(b, cmd, func() string {
		if said == "" {
			line, err := bufio.NewReader(out).ReadString('\n')
			must(b, err)
			said = strings.TrimSpace(line)
		}
		return said
	})
}

// BenchmarkColdStart is the time from the start of the process until /readyz says yes, with a log of a million events that was closed in
// order; the files are in the page cache. The yardstick opens the same database with the bare driver and reads the heads.
func BenchmarkColdStart(b *testing.B) {
	starts := func(b *testing.B, serve func(*testing.B) served) {
		_, err := filled()
		must(b, err)
		total := time.Duration(0)
		b.ResetTimer()
		for range b.N {
			s := serve(b)
			total += s.took
			s.stop()
		}
		b.ReportMetric(float64(total.Microseconds())/1000/float64(b.N), "ready-ms")
	}
	b.Run("ours", func(b *testing.B) { starts(b, serveOurs) })
	b.Run("yardstick", func(b *testing.B) { starts(b, serveBare) })
}

// BenchmarkIdle is the memory of a daemon with a log of a million events that was started half a minute ago and asked nothing but whether
// it is ready. The yardstick is as idle, with the database open and the heads read.
func BenchmarkIdle(b *testing.B) {
	idles := func(b *testing.B, serve func(*testing.B) served) {
		for range b.N {
			s := serve(b)
			time.Sleep(time.Duration(sized(30, 1)) * time.Second)
			b.ReportMetric(resident(b, s.cmd.Process.Pid), "RSS-MB")
			s.stop()
		}
	}
	b.Run("ours", func(b *testing.B) { idles(b, serveOurs) })
	b.Run("yardstick", func(b *testing.B) { idles(b, serveBare) })
}

// resident is what of a process and of those that it started is in memory, in MB.
func resident(b *testing.B, pid int) float64 {
	b.Helper()
	total := residentAlone(b, pid)
	for _, child := range children(b, pid) {
		total += resident(b, child)
	}
	return total
}

func residentAlone(b *testing.B, pid int) float64 {
	b.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	must(b, err)
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	kilobytes, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
	must(b, err)
	return kilobytes * 1024 / 1e6
}
