package engines_test

import (
	"context"
	"crypto/ed25519"
	chance "crypto/rand"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/documents"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/step"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/claim"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/spaces"
	"agentbox/internal/testkit/pgtest"
)

// The settings of TestTogether: `go test -run TestTogether ./internal/service/engines -seed 17 -seeds 100`.
var (
	firstSeed = flag.Uint64("seed", 1, "the first seed of TestTogether")
	seeds     = flag.Int("seeds", 3, "how many seeds TestTogether plays")
)

// worldTime is the time that passes for all, by nobody's clock.
type worldTime struct{ passed atomic.Int64 }

func (w *worldTime) now() time.Duration { return time.Duration(w.passed.Load()) }

// skewed is the clock of a daemon, which is ahead or behind.
type skewed struct {
	world *worldTime
	skew  time.Duration
}

// Now implements event.Clock.
func (c skewed) Now() time.Time {
	return time.UnixMilli(1_800_000_000_000).UTC().Add(c.world.now() + c.skew)
}

// NewTimer implements event.Clock.
func (c skewed) NewTimer(time.Duration) (<-chan time.Time, func()) { panic("nobody waits here") }

// proxy is the way of a daemon to the server, which can be cut, and which stands still while the daemon does.
type proxy struct {
	listener net.Listener
	to       string

	mu     sync.Mutex // guards all below
	moves  *sync.Cond
	still  bool
	closed bool
	conns  map[net.Conn]bool
	wg     sync.WaitGroup
}

func newProxy(t *testing.T, to string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, to: to, conns: map[net.Conn]bool{}}
	p.moves = sync.NewCond(&p.mu)
	p.wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(c) })
		}
	})
	return p
}

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	p.conns[c], p.conns[s] = true, true
	over := p.closed
	p.mu.Unlock()
	if over {
		_ = errors.Join(c.Close(), s.Close())
	}
	var both sync.WaitGroup
	both.Go(func() { p.carry(s, c) })
	both.Go(func() { p.carry(c, s) })
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, s)
	p.mu.Unlock()
}

func (p *proxy) carry(to, from net.Conn) {
	defer func() { _ = errors.Join(to.Close(), from.Close()) }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		for p.still && !p.closed {
			p.moves.Wait()
		}
		p.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) stand(still bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.still = still
	p.moves.Broadcast()
}

func (p *proxy) close() {
	p.mu.Lock()
	p.closed = true
	p.moves.Broadcast()
	p.mu.Unlock()
	_ = p.listener.Close()
	p.cut()
	p.wg.Wait()
}

// through is the address of a database by way of a proxy.
func through(t *testing.T, address string) (*proxy, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	p := newProxy(t, "127.0.0.1:"+q.Get("port"))
	q.Del("host")
	q.Del("port")
	u.Host, u.RawQuery = p.listener.Addr().String(), q.Encode()
	return p, u.String()
}

// member is a daemon of the world.
type member struct {
	*engines.Service
	log   *postgres.Journal
	owner event.Origin
	proxy *proxy
}

const stepsOfARun = 6

// world is daemons and engines.
type world struct {
	t     *testing.T
	time  worldTime
	two   []*member
	blobs *memory.Blobs

	mu      sync.Mutex // guards all below
	renewed map[id.Run]time.Duration
	runs    map[id.Run]bool // that have not ended
	steps   map[id.Run]map[string]id.Step
}

func (w *world) join(t *testing.T, address string, n int, skew time.Duration, keys vault.Keys) *member {
	t.Helper()
	m := &member{}
	var way string
	m.proxy, way = through(t, address)
	c := skewed{&w.time, skew}
	ids := id.NewSource(c.Now, chance.Reader)
	var err error
	m.log, err = postgres.Open(t.Context(), postgres.Options{
		Address: way, Definitions: documents.All(), Clock: c, IDs: ids, Entropy: chance.Reader,
		Member: &postgres.Membership{Node: id.Node(fmt.Sprintf("node_%026d", n)), Address: "http://127.0.0.1:1"},
		Unlock: func() (vault.Keys, error) { return keys, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := gate.New(gate.Parts{Log: m.log, Docs: m.log, Evaluator: cedar.New(), Clock: c, IDs: ids, Together: true})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: m.log, Docs: m.log, Gate: g, Clock: c, IDs: ids, Entropy: chance.Reader})
	tokens, err := claim.NewTokens(make([]byte, claim.SecretBytes))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := policy.NewSeal(make([]byte, ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	m.Service = engines.New(engines.Parts{
		Log: m.log, Docs: m.log, Blobs: w.blobs, MaxContent: 1 << 30, Gate: g, Tokens: tokens, Seal: seal, Clock: c, IDs: ids,
		Logger: slog.New(slog.DiscardHandler), Together: true,
		Place: func(context.Context, id.Workspace, id.Room, id.Thread) error { return nil },
	})
	owner, err := people.Owner(t.Context(), ws, "owner")
	if err != nil {
		t.Fatal(err)
	}
	m.owner = event.Origin{Principal: owner}
	return m
}

// TestTogether plays two daemons on one database, by clocks that do not agree, and three engines that ask now one of them and now the
// other. Connections are cut, a daemon stands still in the middle of something, the server ends and comes back, engines forget what they
// have. Each run is one engine's at a time, no claim ends before its time, and every step is recorded once.
func TestTogether(t *testing.T) {
	server := pgtest.Start(t)
	for seed := range uint64(*seeds) {
		t.Run(strconv.FormatUint(*firstSeed+seed, 10), func(t *testing.T) { together(t, server, *firstSeed+seed) })
	}
}

func together(t *testing.T, server *pgtest.Server, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 0))
	w := &world{t: t, blobs: memory.NewBlobs(), renewed: map[id.Run]time.Duration{}, runs: map[id.Run]bool{},
		steps: map[id.Run]map[string]id.Step{}}
	address, keys := server.Database(), memory.NewKeys(chance.Reader)
	ctx, stop := context.WithCancel(t.Context())
	var reigns sync.WaitGroup
	for n := range 2 {
		skew := time.Duration(dice.IntN(7200)-3600) * time.Second
		m := w.join(t, address, n+1, skew, keys)
		w.two = append(w.two, m)
		reigns.Go(func() {
			if err := m.log.Reign(ctx); err != nil {
				t.Errorf("daemon %d: %v", n, err)
			}
		})
	}
	for n := range 4 {
		doc, err := w.two[n%2].Create(ctx, w.two[n%2].owner, engines.Request{Workspace: ws, Room: spaces.DefaultRoom, Title: "a run"})
		if err != nil {
			t.Fatal(err)
		}
		w.runs[doc.ID] = true
	}
	var working sync.WaitGroup
	for n := range 3 {
		own := rand.New(rand.NewPCG(seed, uint64(n)+1))
		working.Go(func() { w.engine(ctx, own) })
	}
	over := make(chan struct{})
	go func() {
		working.Wait()
		close(over)
	}()
	w.trouble(dice, server, over)
	<-over
	w.verify(ctx)
	stop()
	reigns.Wait()
	for _, m := range w.two {
		m.Evidence.Wait()
		if err := m.log.Close(); err != nil {
			t.Error(err)
		}
		m.proxy.close()
	}
}

// trouble makes time pass, and what can go wrong go wrong, until the engines have done their work.
func (w *world) trouble(dice *rand.Rand, server *pgtest.Server, over <-chan struct{}) {
	pause := func(d time.Duration) bool {
		select {
		case <-over:
			return true
		case <-time.After(d):
			return false
		}
	}
	for tick := 0; ; tick++ {
		if pause(5 * time.Millisecond) {
			return
		}
		w.time.passed.Add(int64(time.Duration(dice.IntN(1500)) * time.Millisecond))
		if tick > 10_000 {
			w.t.Error("the engines do not come to an end")
			w.mu.Lock()
			clear(w.runs)
			w.mu.Unlock()
			return
		}
		m := w.two[dice.IntN(2)]
		switch n := dice.IntN(100); {
		case tick == 40:
			server.Restart()
		case tick > 400: // let it come to an end
		case n < 6:
			m.proxy.cut()
		case n < 12: // a daemon stands still, and its claims run out
			m.proxy.stand(true)
			w.time.passed.Add(int64(time.Duration(dice.IntN(45)) * time.Second))
			done := pause(time.Duration(5+dice.IntN(60)) * time.Millisecond)
			m.proxy.stand(false)
			if done {
				return
			}
		}
	}
}

// left reports whether there is work.
func (w *world) left() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs) > 0
}

// engine claims runs and does their steps, until there is none.
func (w *world) engine(ctx context.Context, dice *rand.Rand) {
	var h *engines.Hold
	for w.left() && ctx.Err() == nil {
		m := w.two[dice.IntN(2)]
		if h == nil {
			if h = w.claim(ctx, m); h == nil {
				select {
				case <-time.After(2 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			continue
		}
		var err error
		switch n := dice.IntN(100); {
		case n < 6: // it ends without a word
			h = nil
			continue
		case n < 10:
			w.forget(h.Run) // before: it may be given back, and be claimed, although the answer is lost or late
			if _, err = m.Release(ctx, m.owner, *h); err == nil {
				h = nil
				continue
			}
		case n < 40:
			began := w.time.now()
			if _, err = m.Renew(ctx, m.owner, *h); err == nil {
				w.renew(h.Run, began)
			}
		default:
			err = w.work(ctx, m, dice, h)
		}
		if kind := fault.KindOf(err); err != nil && kind != fault.Unavailable && !errors.Is(err, journal.ErrClosed) {
			if kind != fault.Conflict && kind != fault.NotFound && kind != fault.Denied {
				w.t.Errorf("an engine is told: %v (%s)", err, fault.CodeOf(err))
			}
			h = nil // it has lost the run, or ended it
		}
	}
}

func (w *world) renew(r id.Run, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.renewed[r] = max(w.renewed[r], at)
}

func (w *world) forget(r id.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.renewed, r)
}

// claim claims a run, and looks whether the claim before it was over.
func (w *world) claim(ctx context.Context, m *member) *engines.Hold {
	began := w.time.now()
	doc, token, err := m.Claim(ctx, m.owner, ws, engines.Wanted{})
	if err != nil {
		if !errors.Is(err, errand.ErrNothing) && fault.KindOf(err) != fault.Unavailable && fault.KindOf(err) != fault.Conflict {
			w.t.Errorf("an engine that claims is told: %v", err)
		}
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, held := w.renewed[doc.ID]; held && doc.Fence > 1 && w.time.now()-last < run.ClaimTime {
		w.t.Errorf("run %s was claimed %s after its claim was renewed, by fence %d", doc.ID, w.time.now()-last, doc.Fence)
	}
	w.renewed[doc.ID] = began
	return &engines.Hold{Workspace: ws, Run: doc.ID, Token: token}
}

// work does the next step of a run, or ends it behind the last one. An engine that was not answered looks what became of it.
func (w *world) work(ctx context.Context, m *member, dice *rand.Rand, h *engines.Hold) error {
	done, err := w.two[dice.IntN(2)].Look.Steps(ctx, ws, engines.Of{Run: h.Run}, "", 100)
	if err != nil {
		return err
	}
	if len(done) < stepsOfARun {
		s, err := m.Steps.Add(ctx, m.owner, *h, engines.StepRequest{Kind: "work", Title: strconv.Itoa(len(done))})
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.steps[h.Run] == nil {
				w.steps[h.Run] = map[string]id.Step{}
			}
			w.steps[h.Run][s.Title] = s.ID
		}
		return err
	}
	if _, err := m.Complete(ctx, m.owner, *h, "done", nil); err != nil {
		if doc, look := m.Find(ctx, ws, h.Run); look == nil && doc.Status.Ended() {
			w.ended(h.Run)
		}
		return err
	}
	w.ended(h.Run)
	return run.ErrEnded
}

func (w *world) ended(r id.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.runs, r)
}

// verify reads the log: every run had one claim at a time, everything that was recorded of it stands under the claim of that moment, and
// each step is there once, as it was acknowledged.
func (w *world) verify(ctx context.Context) {
	t := w.t
	fences, live, steps, ended := map[id.Run]uint64{}, map[id.Run]uint64{}, map[id.Run][]string{}, map[id.Run]bool{}
	head, err := w.two[0].log.Head(ctx, ws)
	if err != nil {
		t.Fatal(err)
	}
	for from := uint64(1); from <= head; {
		events, err := w.two[0].log.Read(ctx, journal.Query{Workspace: ws, From: from, Limit: journal.MaxRead})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			from = e.Seq + 1
			if e.Run == "" {
				continue
			}
			if ended[e.Run] && e.EntityType == run.EntityType {
				t.Errorf("event %d, %s, is of a run that has ended", e.Seq, e.Type)
			}
			under := func(fence uint64) {
				if live[e.Run] == 0 || fence != live[e.Run] {
					t.Errorf("event %d, %s, is under fence %d, and the run has %d", e.Seq, e.Type, fence, live[e.Run])
				}
			}
			switch e.Type {
			case run.EventClaimed:
				c := decode[run.Claimed](t, e)
				if c.Fence != fences[e.Run]+1 {
					t.Errorf("event %d: fence %d follows %d", e.Seq, c.Fence, fences[e.Run])
				}
				fences[e.Run], live[e.Run] = c.Fence, c.Fence
			case run.EventRenewed:
				under(decode[run.Renewed](t, e).Fence)
			case run.EventReleased:
				under(decode[run.Released](t, e).Fence)
				live[e.Run] = 0
			case step.EventCreated:
				s := decode[step.Created](t, e)
				under(s.Fence)
				steps[e.Run] = append(steps[e.Run], s.Title)
				if known := w.steps[e.Run][s.Title]; known != "" && known != s.Step {
					t.Errorf("step %s was acknowledged as %s and is %s", s.Title, known, s.Step)
				}
				delete(w.steps[e.Run], s.Title)
			case run.EventCompleted:
				ended[e.Run] = true
			}
		}
	}
	var want []string
	for n := range stepsOfARun {
		want = append(want, strconv.Itoa(n))
	}
	for r, got := range steps {
		if !slices.Equal(got, want) || !ended[r] {
			t.Errorf("the steps of %s are %v and it has ended: %v", r, got, ended[r])
		}
		if left := w.steps[r]; len(left) > 0 {
			t.Errorf("steps that were acknowledged and are lost: %v", left)
		}
	}
	if len(steps) != 4 {
		t.Errorf("%d runs were worked on, want 4", len(steps))
	}
}

func decode[T any](t *testing.T, e event.Event) T {
	t.Helper()
	d, err := event.Decode[T](e)
	if err != nil {
		t.Fatal(err)
	}
	return d
}
