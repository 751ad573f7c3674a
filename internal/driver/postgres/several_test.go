package postgres_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/testkit/pgtest"
)

// clock is the system's.
type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

func optionsAt(address string, keys vault.Keys) postgres.Options {
	return postgres.Options{
		Address: address, Definitions: []projection.Definition{journaltest.Notes(1), journaltest.Rooms(1)}, Clock: clock{},
		IDs: id.NewSource(time.Now, rand.Reader), Entropy: rand.Reader, Keys: keys,
	}
}

// daemon opens a log as a daemon of its own would, until the test ends.
func daemon(t *testing.T, address string, keys vault.Keys) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(t.Context(), optionsAt(address, keys))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

// follow tails a workspace until an event is about "the end", and returns the places that it was given.
func follow(ctx context.Context, j journal.Journal) (places []uint64, err error) {
	for from := uint64(1); ; from = uint64(len(places)) + 1 {
		for e, err := range journal.Tail(ctx, j, journal.Query{Workspace: journaltest.Workspace, From: from, Limit: 50}) {
			if errors.Is(err, journal.ErrClosed) && j.(*postgres.Journal).Writable() != nil {
				break // the server is away; the follower comes back with its cursor, as a client does
			}
			if err != nil {
				return places, err
			}
			if places = append(places, e.Seq); e.EntityID == "the end" {
				return places, nil
			}
		}
		if err := ctx.Err(); err != nil {
			return places, err
		}
	}
}

func whole(t *testing.T, places []uint64, err error, who string) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", who, err)
	}
	for i, place := range places {
		if place != uint64(i)+1 {
			t.Fatalf("%s was given event %d in the place of event %d", who, place, i+1)
		}
	}
}

// Three daemons append to one log at the same time, claim the same things, and follow each other: the chains hold, each claim has one
// winner, nobody misses an event or gets one twice, and everybody reads what was acknowledged to anybody.
func TestSeveralDaemons(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), memory.NewKeys(rand.Reader)
	daemons := []*postgres.Journal{daemon(t, address, keys), daemon(t, address, keys), daemon(t, address, keys)}
	var tails, wg sync.WaitGroup
	for n, d := range daemons {
		tails.Go(func() {
			places, err := follow(t.Context(), d)
			if err != nil {
				t.Errorf("tail %d: %v", n, err)
				return
			}
			for i, place := range places {
				if place != uint64(i)+1 {
					t.Errorf("tail %d was given event %d in the place of event %d", n, place, i+1)
					return
				}
			}
		})
	}
	const claims, each = 20, 30
	won := make([]atomic.Int32, claims)
	for n, d := range daemons {
		for w := range 4 {
			wg.Go(func() {
				for i := range each {
					key := fmt.Sprint("n", (w+i)%5)
					r, err := d.Append(t.Context(), journaltest.Batch(journaltest.InRoom(id.Room(fmt.Sprint("room_", w)), fmt.Sprint(n, w,
						i)).About("note", key)))
					if err != nil {
						t.Error(err)
						return
					}
					// Events acknowledged here are read there.
					other := daemons[(n+1)%len(daemons)]
					if doc, err := other.Document(t.Context(), journaltest.Workspace, "notes", key); err != nil || doc.Seq < r.Events[0].Seq {
						t.Errorf("behind event %d the document is of %d, %v", r.Events[0].Seq, doc.Seq, err)
						return
					}
					if head, err := other.Head(t.Context(), journaltest.Workspace); err != nil || head < r.Events[0].Seq {
						t.Errorf("behind event %d the head is %d, %v", r.Events[0].Seq, head, err)
						return
					}
				}
			})
		}
		wg.Go(func() {
			for i := range claims {
				b := journaltest.Batch(journaltest.Draft("mine").About("note", fmt.Sprint("claim", i)))
				b.Documents = []event.DocumentVersion{{Projection: "notes", Key: fmt.Sprint("claim", i), Version: 0}}
				switch _, err := d.Append(t.Context(), b); {
				case err == nil:
					won[i].Add(1)
				case !errors.Is(err, journal.ErrConflict):
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range won {
		if n := won[i].Load(); n != 1 {
			t.Errorf("claim %d has %d winners, want 1", i, n)
		}
	}
	// The same command to two daemons is done once.
	keyed := journaltest.Batch(journaltest.Draft("once").About("note", "once"))
	keyed.Key, keyed.Digest = "k", event.DigestOf([]byte("k"))
	first, err := daemons[0].Append(t.Context(), keyed)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := daemons[1].Append(t.Context(), keyed); err != nil || !again.Replayed || again.Events[0].ID != first.Events[0].ID {
		t.Errorf("the same command elsewhere: %+v, %v", again, err)
	}
	if _, err := daemons[2].Append(t.Context(), journaltest.Batch(journaltest.Draft("x").About("note", "the end"))); err != nil {
		t.Fatal(err)
	}
	tails.Wait()
	before := journaltest.Documents(t, daemons[0], "notes", "rooms")
	if err := journaltest.CheckChains(t.Context(), daemons[1], journaltest.Workspace); err != nil {
		t.Error(err)
	}
	// One rebuilds and redacts while the others go on; nobody folds into what is not there any more.
	for _, name := range []string{"notes", "rooms"} {
		if err := daemons[2].Rebuild(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if after := journaltest.Documents(t, daemons[1], "notes", "rooms"); after != before {
		t.Errorf("documents after a rebuild\n got %.2000s\nwant %.2000s", after, before)
	}
	secret, err := daemons[0].Append(t.Context(), journaltest.Batch(journaltest.Draft("private").About("note", "n0")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := daemons[1].Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User},
		secret.Events[0], "told to", nil))); err != nil {
		t.Fatal(err)
	}
	if err := daemons[1].Redact(t.Context(), journaltest.Workspace, []uint64{secret.Events[0].Seq}); err != nil {
		t.Fatal(err)
	}
	if doc, err := daemons[0].Document(t.Context(), journaltest.Workspace, "notes", "n0"); err != nil || strings.Contains(string(doc.Body),
		"private") {
		t.Errorf("another daemon still shows what was redacted: %s, %v", doc.Body, err)
	}
	if _, err := daemons[0].Append(t.Context(), journaltest.Batch(journaltest.Draft("more").About("note", "n0"))); err != nil {
		t.Errorf("behind another's redaction: %v", err)
	}
}

// The server ends without warning during the work, and comes back. Every acknowledged batch is there. Every other batch is there once and
// whole, or not at all. The follower continues where it stopped.
func TestServerCrashes(t *testing.T) {
	server := pgtest.Start(t)
	address, keys := server.Database(), memory.NewKeys(rand.Reader)
	a, b := daemon(t, address, keys), daemon(t, address, keys)
	type tailed struct {
		places []uint64
		err    error
	}
	follows := make(chan tailed, 1)
	go func() {
		places, err := follow(t.Context(), b)
		follows <- tailed{places, err}
	}()
	var mu sync.Mutex // guards acknowledged
	acknowledged := map[string]bool{}
	var stop atomic.Bool
	var wg sync.WaitGroup
	var appended atomic.Int64
	for n, d := range []*postgres.Journal{a, b} {
		for w := range 4 {
			wg.Go(func() {
				for i := 0; !stop.Load(); i++ {
					name := fmt.Sprint(n, "-", w, "-", i)
					batch := journaltest.Batch(journaltest.Draft("1").About("note", name), journaltest.Draft("2").About("note", name))
					batch.Key, batch.Digest = name, event.DigestOf([]byte(name))
					for !stop.Load() {
						_, err := d.Append(t.Context(), batch)
						if err == nil {
							appended.Add(1)
							mu.Lock()
							acknowledged[name] = true
							mu.Unlock()
							break
						}
						if !errors.Is(err, journal.ErrClosed) {
							t.Errorf("while the server is away: %v", err)
							return
						}
					}
				}
			})
		}
	}
	for range 3 {
		for was := appended.Load(); appended.Load() < was+40 && t.Context().Err() == nil; {
			if err := a.Wait(t.Context(), journaltest.Workspace, uint64(2*appended.Load())); err != nil {
				t.Fatal(err)
			}
		}
		server.Restart()
	}
	for was := appended.Load(); appended.Load() < was+40 && t.Context().Err() == nil; {
		if err := a.Wait(t.Context(), journaltest.Workspace, uint64(2*appended.Load())); err != nil {
			t.Fatal(err)
		}
	}
	stop.Store(true)
	wg.Wait()
	for last := journaltest.Batch(journaltest.Draft("x").About("note", "the end")); ; {
		if _, err := a.Append(t.Context(), last); err == nil {
			break
		} else if !errors.Is(err, journal.ErrClosed) {
			t.Fatal(err)
		}
	}
	got := <-follows
	whole(t, got.places, got.err, "who followed")
	if err := journaltest.CheckChains(t.Context(), a, journaltest.Workspace); err != nil {
		t.Error(err)
	}
	for name := range acknowledged {
		if doc, err := a.Document(t.Context(), journaltest.Workspace, "notes", name); err != nil || doc.Version != 2 {
			t.Errorf("%s was acknowledged and is at version %d, %v; want 2", name, doc.Version, err)
		}
	}
	before := journaltest.Documents(t, b, "rooms")
	if err := b.Rebuild(t.Context(), "rooms"); err != nil {
		t.Fatal(err)
	}
	if after := journaltest.Documents(t, a, "rooms"); after != before {
		t.Errorf("documents after a rebuild\n got %s\nwant %s", after, before)
	}
}

// child is the variable that makes this test program append to a log until it is killed.
const child = "AGENTBOX_POSTGRES_CHILD"

// TestMain runs the child where it is asked to.
func TestMain(m *testing.M) {
	if place := os.Getenv(child); place != "" {
		address, keys, _ := strings.Cut(place, "|")
		fmt.Println(appendForEver(address, keys))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func appendForEver(address, dir string) error {
	keys, err := keyring.Open(dir, rand.Reader)
	if err != nil {
		return err
	}
	j, err := postgres.Open(context.Background(), optionsAt(address, keys))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprint(os.Getpid(), "-", w, "-", i)
				_, err := j.Append(context.Background(), journaltest.Batch(journaltest.Draft("1").About("note", name),
					journaltest.Draft("2").About("note", name)))
				mu.Lock()
				if failed = err; err == nil {
					fmt.Println("acknowledged", name)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return failed
}

// A daemon that is killed in the middle of appending loses nothing that it has acknowledged, holds nobody up, and leaves no half of
// anything.
func TestDaemonIsKilled(t *testing.T) {
	address := pgtest.Start(t).Database()
	dir := filepath.Join(t.TempDir(), "keys")
	keys, err := keyring.Open(dir, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	j := daemon(t, address, keys)
	if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("first").About("note", "mine"))); err != nil {
		// and plants the trees
		t.Fatal(err)
	}
	acknowledged := []string{}
	for range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+address+"|"+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			name, ok := strings.CutPrefix(lines.Text(), "acknowledged ")
			if !ok {
				t.Fatalf("the daemon said %q", lines.Text())
			}
			acknowledged = append(acknowledged, name)
			if n%10 == 0 { // another one works beside it
				if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("beside").About("note", "mine"))); err != nil {
					t.Error(err)
				}
			}
			if n == 100 {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait() // killed
		if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("after").About("note", "mine"))); err != nil {
			t.Errorf("after the other one was killed: %v", err)
		}
	}
	if len(acknowledged) < 300 {
		t.Fatalf("only %d were acknowledged", len(acknowledged))
	}
	for _, name := range acknowledged {
		if doc, err := j.Document(t.Context(), journaltest.Workspace, "notes", name); err != nil || doc.Version != 2 {
			t.Errorf("%s was acknowledged and is at version %d, %v; want 2", name, doc.Version, err)
		}
	}
	if err := journaltest.CheckChains(t.Context(), j, journaltest.Workspace); err != nil {
		t.Error(err)
	}
	docs, err := j.Documents(t.Context(), projection.Query{Workspace: journaltest.Workspace, Name: "notes", Limit: projection.MaxDocuments})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		if doc.Key != "mine" && doc.Version != 2 {
			t.Errorf("%s is at version %d: half of a batch", doc.Key, doc.Version)
		}
	}
}

// A daemon that has the database for itself keeps the next one waiting; one that was held to be dead and goes on writes nothing.
func TestReign(t *testing.T) {
	server := pgtest.Start(t)
	address, keys := server.Database(), memory.NewKeys(rand.Reader)
	alone := optionsAt(address, keys)
	alone.Alone = true
	first, err := postgres.Open(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	b := journaltest.Batch(journaltest.Draft("x"))
	if _, err := first.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	next := alone
	next.Waits = func() { close(waits) }
	opened := make(chan *postgres.Journal, 1)
	go func() {
		j, err := postgres.Open(t.Context(), next)
		if err != nil {
			t.Error(err)
		}
		opened <- j
	}()
	<-waits
	select {
	case <-opened:
		t.Fatal("two daemons have the database")
	default:
	}
	// The first one's connection with the lock is cut, as by a network: the next one begins.
	cut(t, address)
	second := <-opened
	defer second.Close()
	if _, err := second.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := first.Append(t.Context(), b); !errors.Is(err, journal.ErrClosed) {
			t.Errorf("who was deposed appends: %v, want %v", err, journal.ErrClosed)
		}
	}
	if err := first.Rebuild(t.Context(), "notes"); err == nil {
		t.Error("who was deposed rebuilds")
	}
	if err := first.Redact(t.Context(), journaltest.Workspace, []uint64{1}); err == nil || errors.Is(err, journal.ErrUnrecorded) {
		t.Errorf("who was deposed redacts: %v", err)
	}
	if err := first.Reign(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("the reign of who was deposed ends with %v", err)
	}
	if err := first.Close(); err != nil && fault.CodeOf(err) == "" {
		t.Error(err)
	}
	if head, err := second.Head(t.Context(), journaltest.Workspace); err != nil || head != 2 {
		t.Errorf("the log has %d events, %v, want 2", head, err)
	}
}

// cut ends the session that holds the lock of who has the database.
func cut(t *testing.T, address string) {
	t.Helper()
	out, err := exec.Command(filepath.Join(pgtest.Programs(), "psql"), "-qAtX", "-d", address, "-c",
		`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted`).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// A reader that hears of an event and reads a document that it has changed gets the changed document: from the daemon that appends, alone
// or not, and from another.
func TestWhoHearsOfAnEventReadsItsDocument(t *testing.T) {
	server := pgtest.Start(t)
	for name, alone := range map[string]bool{"alone": true, "shared": false} {
		t.Run(name, func(t *testing.T) {
			o := optionsAt(server.Database(), memory.NewKeys(rand.Reader))
			o.Alone = alone
			j, err := postgres.Open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			const events = 300
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for e, err := range journal.Tail(t.Context(), j, journal.Query{Workspace: journaltest.Workspace, Before: events + 1}) {
						if err != nil {
							t.Error(err)
							return
						}
						if doc, err := j.Lend(t.Context(), journaltest.Workspace, "notes", e.EntityID); err != nil || doc.Seq < e.Seq {
							t.Errorf("behind event %d the document is of %d, %v", e.Seq, doc.Seq, err)
							return
						}
					}
				})
				wg.Go(func() { // and a reader that does not wait
					for last := uint64(0); last < events; {
						found, err := j.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Last: true, Limit: 1})
						if err != nil {
							t.Error(err)
							return
						}
						for _, e := range found {
							last = e.Seq
							if doc, err := j.Lend(t.Context(), journaltest.Workspace, "notes", e.EntityID); err != nil || doc.Seq < e.Seq {
								t.Errorf("behind event %d the document is of %d, %v", e.Seq, doc.Seq, err)
								return
							}
						}
					}
				})
			}
			for i := range events {
				if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("x").About("note", fmt.Sprint("n", i%3)))); err != nil {
					t.Fatal(err)
				}
			}
			wg.Wait()
		})
	}
}

// TestAServerThatWasStartedAgainIsNotNoticed appends over connections that are of before the server was started again.
func TestAServerThatWasStartedAgainIsNotNoticed(t *testing.T) {
	server := pgtest.Start(t)
	j := daemon(t, server.Database(), nil)
	for range 2 {
		if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("text"))); err != nil {
			t.Fatal(err)
		}
		server.Restart()
	}
	if _, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("text"))); err != nil {
		t.Error(err)
	}
}

// TestConnectionsOfBeforeARestartAreNotTried lets many connections rest while the server is started again: who reads then meets none of
// them.
func TestConnectionsOfBeforeARestartAreNotTried(t *testing.T) {
	server := pgtest.Start(t)
	j := daemon(t, server.Database(), nil)
	receipt, err := j.Append(t.Context(), journaltest.Batch(journaltest.Draft("text")))
	if err != nil {
		t.Fatal(err)
	}
	const many = 64 // more than there are tries, whatever the pool holds
	var reading sync.WaitGroup
	read := func() error {
		_, err := j.Get(t.Context(), journaltest.Workspace, receipt.Events[0].ID)
		return err
	}
	for range many {
		reading.Go(func() {
			for range 20 {
				if err := read(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reading.Wait()
	server.Restart()
	if err := read(); err != nil {
		t.Error(err)
	}
}
