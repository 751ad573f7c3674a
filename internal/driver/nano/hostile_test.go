package nano

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/nano/hostiletest"
)

// neighbour is a space beside the hostile one, whose commands have to go on working.
type neighbour struct {
	h     spacetest.Host
	space space.Instance
	spec  space.Spec
}

func newNeighbour(t *testing.T, h spacetest.Host) *neighbour {
	n := &neighbour{h: h, spec: h.Spec(t)}
	n.space = h.Create(t, n.spec)
	return n
}

// alive has the neighbour say so.
func (n *neighbour) alive(ctx context.Context) error {
	r, err := n.h.TryExec(ctx, n.space, spacetest.Shell(n.spec.ID, "echo alive"))
	if err != nil || r.Stdout != "alive\n" || r.Code != 0 {
		return fmt.Errorf("the neighbour: %+v, %w", r, err)
	}
	return nil
}

// endlessTime is how long what has no other end may take, hostileTime what ends by time or by another bound, and patientTime what ends by
// itself.
const (
	endlessTime = 100 * time.Millisecond
	hostileTime = 250 * time.Millisecond
	patientTime = 30 * time.Second
)

// overshoots collects how much too late runaways were stopped.
type overshoots struct {
	mu  sync.Mutex
	all []overshoot
}

// overshoot is how long one went on after its bound: on the wall, which its neighbours lengthen, and of processor time.
type overshoot struct {
	name      string
	wall, cpu time.Duration
}

func (o *overshoots) add(x overshoot) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, x)
}

// soon is within what a runaway is to be stopped.
const soon = 5 * time.Millisecond

func (o *overshoots) log(t *testing.T) {
	if len(o.all) == 0 {
		return
	}
	of := func(figure func(overshoot) time.Duration) string {
		slices.SortFunc(o.all, func(a, b overshoot) int { return cmp.Compare(figure(b), figure(a)) })
		worst := ""
		for _, x := range o.all {
			if figure(x) > soon {
				worst += fmt.Sprintf(", %s %s", x.name, figure(x))
			}
		}
		return fmt.Sprintf("%s in the median, %s at most%s", figure(o.all[len(o.all)/2]), figure(o.all[0]), worst)
	}
	t.Logf("%d runaways were stopped by a bound: on the wall %s; of processor time %s", len(o.all), of(func(x overshoot) time.Duration {
		return x.wall
	}),
		of(func(x overshoot) time.Duration { return x.cpu }))
}

// workersMemory is the most that the worker processes of this test have ever held, in bytes; 0 where the system does not say.
func workersMemory() (most int64) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, name := range tasks {
		raw, _ := os.ReadFile(name)
		for pid := range strings.FieldsSeq(string(raw)) {
			status, _ := os.ReadFile("/proc/" + pid + "/status")
			for line := range bytes.Lines(status) {
				if rest, ok := bytes.CutPrefix(line, []byte("VmHWM:")); ok {
					kib, _ := strconv.ParseInt(strings.Fields(string(rest))[0], 10, 64)
					most = max(most, kib<<10)
				}
			}
		}
	}
	return most
}

// besieged is a tier with a worker for each of what is hostile at once, and one for their neighbour, which has to be alive all the time.
func besieged(t *testing.T) (spacetest.Host, *neighbour) {
	t.Helper()
	h := hostOf(t, runtime.GOMAXPROCS(0)+1)
	n := newNeighbour(t, h)
	if err := n.alive(t.Context()); err != nil {
		t.Fatal(err)
	}
	return h, n
}

// TestHostileScripts has scripts take what they can: a bound ends them, which is told, and neither the worker nor a neighbour is harmed.
func TestHostileScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("nearly two hundred scripts that take what they can: half a minute of both processors, which -short is not for")
	}
	h, n := besieged(t)
	var late overshoots
	t.Run("all", func(t *testing.T) {
		for _, x := range hostiletest.Shells {
			hostileCase(t, h, n, &late, x, nil, "bash", "-c", x.Text)
		}
		for _, x := range hostiletest.Pythons {
			hostileCase(t, h, n, &late, x, nil, "python3", "-c", x.Text)
		}
		for _, x := range hostiletest.JavaScripts {
			hostileCase(t, h, n, &late, x, nil, "node", "-e", x.Text)
		}
	})
	late.log(t)
	t.Logf("a worker held %d MiB at most", workersMemory()>>20)
}

func hostileCase(t *testing.T, h spacetest.Host, n *neighbour, late *overshoots, x hostiletest.Script, prepare func(t *testing.T,
	dir string), argv ...string) {
	t.Run(x.Name, func(t *testing.T) {
		t.Parallel()
		limit := patientTime
		switch x.End {
		case hostiletest.ByTime:
			limit = endlessTime
		case hostiletest.ByAny:
			limit = hostileTime
		}
		if argv[0] != "bash" && limit < patientTime {
			limit *= 2 // its interpreter starts first
		}
		spec := h.Spec(t)
		if prepare != nil {
			spec.Limits.DiskBytes = 64 << 20
			spec.Limits.FileBytes = 48 << 20
			prepare(t, spec.Dir)
		}
		s := h.Create(t, spec)
		during := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { during <- n.alive(ctx) }()
		r, err := h.TryExec(t.Context(), s, spacetest.Command{Space: spec.ID, Argv: argv, MS: limit.Milliseconds()})
		if e := <-during; e != nil {
			t.Errorf("meanwhile: %v", e)
		}
		cancel()
		if err != nil {
			t.Fatalf("got %v; want an end by a bound", err)
		}
		t.Logf("code %d, limit %q, timed out %t, %s and %s for its changes, gas %d, %d bytes, stderr %.200q; a worker: %d MiB", r.Code, r.Limit,
			r.TimedOut, r.Duration, r.Commit, r.Gas, len(r.Stdout), r.Stderr, workersMemory()>>20)
		if l := s.(*instance).late; r.TimedOut || r.Limit != "" && l[0] > 0 {
			t.Logf("stopped %s late, %s of processor time", l[0], l[1])
			late.add(overshoot{x.Name, l[0], l[1]})
		}
		if len(r.Stdout)+len(r.Stderr) > int(spec.Limits.OutputBytes) {
			t.Errorf("it printed %d bytes", len(r.Stdout)+len(r.Stderr))
		}
		if bytes, _, err := measure(t.Context(), spec.Dir); err != nil || bytes > spec.Limits.DiskBytes {
			t.Errorf("it left %d bytes, %v", bytes, err)
		}
		switch x.End {
		case hostiletest.ByTime:
			if !r.TimedOut {
				t.Errorf("got %+v; want an end by time", r.Exit)
			}
		case hostiletest.ByCode:
			if r.TimedOut || r.Limit != "" && r.Code == 0 {
				t.Errorf("got %+v; want an end by itself", r.Exit)
			}
		case hostiletest.ByAny:
		default:
			if r.Limit != x.End {
				t.Errorf("got %+v; want %s", r.Exit, x.End)
			}
		}
		if err := n.alive(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
