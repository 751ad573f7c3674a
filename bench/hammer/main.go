// Command hammer drives the daemon's HTTP API as strangers would: writers post messages into rooms, makers make runs, engines execute
// them, and followers read the rooms' streams. Then it compares all answers with the log, and says how
// fast it was, beside what the same server does bare and beside peers that do the same. It exits with 1 when a promise was broken.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"agentbox/bench/yardstick"
)

func main() {
	p := plan{Steps: 10}
	program := flag.String("agentbox", filepath.Join("..", "bin", "agentbox"), "the daemon's program")
	stores := flag.String("stores", "sqlite,postgres", "which stores are driven, one after another")
	flag.IntVar(&p.Rooms, "rooms", 4, "rooms")
	flag.IntVar(&p.Writers, "writers", 64, "clients that post messages")
	flag.IntVar(&p.Makers, "makers", 2, "clients that make runs")
	flag.IntVar(&p.Engines, "engines", 16, "engines that execute runs, and workers of the peers")
	flag.IntVar(&p.Followers, "followers", 8, "clients that follow a room; each room has at least one")
	flag.IntVar(&p.Content, "content", 350, "bytes of a message")
	flag.DurationVar(&p.Duration, "duration", 30*time.Second, "how long each store is driven")
	flag.BoolVar(&p.Kill, "kill", false, "kill the daemon with SIGKILL once in the middle, and go on")
	bare := flag.String("serve-bare", "", "serve bare rows from this database and nothing else: what the hammer starts beside")
	asJSON := flag.Bool("json", false, "print JSON in place of the tables")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *bare != "" {
		err := serveBare(ctx, *bare, p.Writers)
		fmt.Fprintln(os.Stderr, "hammer:", err)
		os.Exit(1)
	}
	h := hammer{plan: p, program: *program, stores: strings.Split(*stores, ","), out: os.Stdout, progress: os.Stderr, json: *asJSON}
	err := h.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hammer:", err)
		os.Exit(1)
	}
}

// hammer is one run of this program.
type hammer struct {
	plan
	program       string
	stores        []string
	out, progress io.Writer
	json          bool
	server        *yardstick.Postgres // nil where no store needs it
}

// result is the result of one store's run.
type result struct {
	Store     string   `json:"store"`
	Phases    []phase  `json:"phases"`
	Raw       figures  `json:"raw"`   // rows as large, of as many clients, without us
	Ratio     float64  `json:"ratio"` // messages a second, of the raw rows a second
	RawCosts  costs    `json:"raw_cpu"`
	RowBytes  int      `json:"row_bytes"`
	Bare      *figures `json:"bare_http,omitempty"`      // the same rows, of as many clients, over HTTP
	BareStep  *figures `json:"bare_http_step,omitempty"` // and of as many as there are engines
	DBOS      *figures `json:"dbos_step,omitempty"`
	River     *figures `json:"river_work,omitempty"`
	Events    int      `json:"events_audited"`
	Documents int      `json:"documents_audited"`
	Cuts      int      `json:"follower_cuts"`
	Breaches  []breach `json:"breaches"`
}

// errBroken says that a promise was broken.
var errBroken = errors.New("a promise was broken, see above")

func (h *hammer) say(format string, args ...any) { fmt.Fprintf(h.progress, format+"\n", args...) }

func (h *hammer) run(ctx context.Context) (err error) {
	if err := h.check(); err != nil {
		return err
	}
	if slices.Contains(h.stores, "postgres") {
		h.say("starting PostgreSQL")
		if h.server, err = yardstick.StartPostgres(ctx, 3*h.Writers+2*h.Engines+64); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.server.Close()) }()
	}
	var results []result
	broken := false
	for _, store := range h.stores {
		r, err := h.drive(ctx, store)
		if err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
		results, broken = append(results, r), broken || len(r.Breaches) > 0
	}
	if h.json {
		encoder := json.NewEncoder(h.out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(results)
	} else {
		err = table(h.out, results)
	}
	if broken {
		err = errors.Join(err, errBroken)
	}
	return err
}

// check refuses a plan that drives nothing.
func (h *hammer) check() error {
	for _, store := range h.stores {
		if store != "sqlite" && store != "postgres" {
			return fmt.Errorf("-stores %s: there are sqlite and postgres", store)
		}
	}
	for name, n := range map[string]int{"rooms": h.Rooms, "writers": h.Writers, "makers": h.Makers, "engines": h.Engines} {
		if n < 1 || n > 1000 {
			return fmt.Errorf("-%s %d: from 1 to 1000", name, n)
		}
	}
	if h.Followers < 0 || h.Followers > 1000 || h.Content < 40 || h.Content > 60_000 || h.Duration < time.Second {
		return errors.New("at most 1000 followers, a message of 40 to 60000 bytes, and at least a second")
	}
	_, err := os.Stat(h.program)
	return err
}

// drive does everything to one store.
func (h *hammer) drive(ctx context.Context, store string) (r result, err error) {
	r.Store = store
	dir, err := os.MkdirTemp("", "agentbox-hammer-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var flags []string
	if store == "postgres" {
		url, err := h.server.Database(ctx, "agentbox")
		if err != nil {
			return r, err
		}
		flags = []string{"--store", url}
	}
	d, err := newDaemon(h.program, filepath.Join(dir, "data"), flags...)
	if err != nil {
		return r, err
	}
	h.say("%s: starting the daemon", store)
	if err := d.start(ctx); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.stop()) }()
	l := &load{plan: h.plan, daemon: d, say: h.say}
	if store == "postgres" {
		l.server = h.server.PID()
	}
	defer l.deafen()
	if err := l.begin(ctx); err != nil {
		return r, err
	}
	part := func(share float64) time.Duration { return time.Duration(share * float64(h.Duration)) }
	for _, w := range []work{
		{name: "messages", writers: h.Writers, long: part(0.35)},
		{name: "runs", makers: h.Makers, steps: h.Steps, long: part(0.25)},
		{name: "runs without steps, 50 a second", makers: h.Makers, perSecond: 50, long: part(0.15)},
		{name: "everything", writers: h.Writers / 2, makers: h.Makers, steps: h.Steps, long: part(0.25), kill: h.Kill},
	} {
		h.say("%s: %s", store, w.name)
		p, err := l.run(ctx, w)
		if err != nil {
			return r, fmt.Errorf("%s: %w", w.name, err)
		}
		r.Phases = append(r.Phases, p)
	}
	if err := h.judge(ctx, l, &r); err != nil {
		return r, err
	}
	h.say("%s: the raw limit, rows of %d bytes", store, r.RowBytes)
	return r, h.compare(ctx, &r)
}

// judge compares the clients' answers with what the daemon shows, ends the daemon, and verifies its log.
func (h *hammer) judge(ctx context.Context, l *load, r *result) error {
	h.say("%s: checking %d messages, %d runs and %d steps", r.Store, len(l.history.Posts), len(l.history.Runs), len(l.history.Steps))
	seen, err := l.observe(ctx)
	if err != nil {
		return err
	}
	r.Breaches = seen.check()
	messages, size := 0, 0
	for _, events := range seen.Streams {
		for _, e := range events {
			if e.Type == "message.created" {
				messages, size = messages+1, size+e.Bytes
			}
		}
	}
	r.RowBytes = size / max(1, messages)
	for _, f := range l.followers {
		r.Cuts += f.cuts
	}
	if err := l.daemon.stop(); err != nil {
		return err
	}
	h.say("%s: proving the log, and every document against it", r.Store)
	if r.Events, r.Documents, err = l.daemon.audit(ctx); err != nil {
		r.Breaches = append(r.Breaches, breach{"audit", err.Error()})
	}
	for _, b := range r.Breaches {
		h.say("  BROKEN %s: %s", b.What, b.Where)
	}
	return ctx.Err()
}

// compare measures what stands beside us, on the machine as it is now.
func (h *hammer) compare(ctx context.Context, r *result) (err error) {
	long := max(time.Second, h.Duration/6)
	before := spend(0, 0)
	if r.Store == "sqlite" {
		if r.Raw, err = rawSQLite(ctx, h.Writers, r.RowBytes, long); err != nil {
			return err
		}
		r.RawCosts = spend(0, 0).since(before, r.Raw.Count)
	} else {
		before := spend(0, h.server.PID())
		if r.Raw, err = rawPostgres(ctx, h.server, h.Writers, r.RowBytes, long); err != nil {
			return err
		}
		r.RawCosts = spend(0, h.server.PID()).since(before, r.Raw.Count)
		h.say("%s: the same over bare HTTP", r.Store)
		bare, err := bareHTTP(ctx, h.server, "bare", h.Writers, r.RowBytes, long)
		if err != nil {
			return fmt.Errorf("rows over HTTP: %w", err)
		}
		few, err := bareHTTP(ctx, h.server, "few", h.Engines, r.RowBytes, long)
		if err != nil {
			return fmt.Errorf("rows over HTTP: %w", err)
		}
		r.Bare, r.BareStep = &bare, &few
		h.say("%s: steps of DBOS", r.Store)
		steps, err := stepsOfDBOS(ctx, h.server, h.Engines, h.Steps, long)
		if err != nil {
			return fmt.Errorf("DBOS: %w", err)
		}
		h.say("%s: jobs of River", r.Store)
		jobs, err := workOfRiver(ctx, h.server, h.Engines, 50, long)
		if err != nil {
			return fmt.Errorf("River: %w", err)
		}
		r.DBOS, r.River = &steps, &jobs
	}
	r.Ratio = r.Phases[0].Figures["message"].Rate / r.Raw.Rate
	return nil
}
