package witness_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/witness"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

const ws = journaltest.Workspace

// installation is a log with its signer, all in memory.
type installation struct {
	t      *testing.T
	log    journaltest.Log
	trees  *memory.Trees
	signer *audit.Signer
	prover *audit.Prover
	text   string
}

func install(t *testing.T, key merkle.PrivateKey, text string) *installation {
	t.Helper()
	setup := journaltest.NewSetup()
	log, err := memory.NewJournal(setup.Definitions, setup.Clock, setup.IDs, setup.Entropy)
	must(t, err)
	i := &installation{t: t, log: log, trees: memory.NewTrees(), text: text}
	i.signer, err = audit.NewSigner(log, i.trees, key)
	must(t, err)
	must(t, i.signer.Recover(t.Context()))
	i.prover = audit.NewProver(log, i.trees, i.signer.PublicKey())
	return i
}

func (i *installation) grow(n int) {
	i.t.Helper()
	for k := range n {
		_, err := i.log.Append(i.t.Context(), journaltest.Batch(journaltest.Draft(fmt.Sprint(i.text, k))))
		must(i.t, err)
	}
	must(i.t, i.signer.Step(i.t.Context()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newKey(t *testing.T) (merkle.PrivateKey, merkle.PublicKey) {
	t.Helper()
	private, public, err := merkle.NewKey(rand.Reader)
	must(t, err)
	return private, public
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// serve runs a witness of the given keys.
func serve(t *testing.T, keys ...merkle.PublicKey) (client *witness.Client, address, cosigner string, kept merkle.Store) {
	t.Helper()
	private, _ := newKey(t)
	signer, err := merkle.NewCosigner(private, func() time.Time { return noon })
	must(t, err)
	kept = memory.NewTrees()
	var logs []witness.Log
	for _, key := range keys {
		logs = append(logs, witness.Log{Key: key, Kept: kept})
	}
	server := httptest.NewServer(witness.NewHandler(logs, signer, slog.New(slog.DiscardHandler)))
	t.Cleanup(server.Close)
	client, err = witness.New(server.URL + "/")
	must(t, err)
	return client, server.URL, signer.PublicKey(), kept
}

// A log is brought again and again as it grows. The witness signs each checkpoint, with the time, and returns the newest to everybody.
func TestALogThatGrows(t *testing.T) {
	private, public := newKey(t)
	client, _, cosigner, _ := serve(t, public)
	i := install(t, private, "a")
	origin := merkle.OriginOf(public.Name(), ws)
	if _, err := client.Latest(t.Context(), origin); !errors.Is(err, merkle.ErrNone) {
		t.Errorf("before the first visit: %v", err)
	}
	old := uint64(0)
	for _, n := range []int{1, 1, 5, 0, 20} {
		i.grow(n)
		v, err := i.prover.VisitWitness(t.Context(), ws, "w", client)
		if err != nil || v.Old != old || v.New != old+uint64(n) {
			t.Fatalf("%+v, %v, want %d to %d", v, err, old, old+uint64(n))
		}
		old = v.New
		c, err := merkle.Open([]byte(v.Note), public)
		if err != nil || c.Size != v.New {
			t.Errorf("%+v, %v", c, err)
		}
		if at, err := merkle.CosignedAt([]byte(v.Note), cosigner); err != nil || !at.Equal(noon) {
			t.Errorf("cosigned %s, %v", at, err)
		}
		latest, err := client.Latest(t.Context(), origin)
		must(t, err)
		if c, err := merkle.Open(latest, public); err != nil || c.Size != v.New {
			t.Errorf("the witness tells %+v, %v", c, err)
		}
		if _, err := merkle.CosignedAt(latest, cosigner); err != nil {
			t.Error(err)
		}
	}
}

// A log that is not the one that the witness saw is refused whatever its length, and the witness keeps what it holds.
func TestALogThatIsAnother(t *testing.T) {
	private, public := newKey(t)
	client, _, _, kept := serve(t, public)
	real := install(t, private, "a")
	real.grow(10)
	_, err := real.prover.VisitWitness(t.Context(), ws, "w", client)
	must(t, err)
	held, err := kept.Checkpoint(t.Context(), ws)
	must(t, err)
	for _, n := range []int{1, 9, 10, 11, 30} {
		other := install(t, private, "b")
		other.grow(n)
		_, err := other.prover.VisitWitness(t.Context(), ws, "w", client)
		if fault.CodeOf(err) != "witness_disagrees" {
			t.Errorf("another log of %d events: %v", n, err)
		}
		if n < 10 && !strings.Contains(err.Error(), fmt.Sprintf("the log ends at %d", n)) {
			t.Errorf("it does not say what is missing: %v", err)
		}
	}
	now, err := kept.Checkpoint(t.Context(), ws)
	if err != nil || string(now) != string(held) {
		t.Errorf("the witness holds %s, %v", now, err)
	}
}

// A wrong request gets the protocol's answer, and nothing is kept.
func TestProtocol(t *testing.T) {
	private, public := newKey(t)
	_, address, _, kept := serve(t, public)
	i := install(t, private, "a")
	i.grow(4)
	four, err := i.trees.Checkpoint(t.Context(), ws)
	must(t, err)
	i.grow(4)
	eight, err := i.trees.Checkpoint(t.Context(), ws)
	must(t, err)
	path, err := tlog.ProveTree(8, 4, merkle.Reader(t.Context(), i.trees, ws))
	must(t, err)
	proof := ""
	for _, h := range path {
		proof += h.String() + "\n"
	}
	foreign, _ := newKey(t)
	stranger := install(t, foreign, "a")
	stranger.grow(1)
	unknown, err := stranger.trees.Checkpoint(t.Context(), ws)
	must(t, err)
	c := merkle.Checkpoint{Origin: merkle.OriginOf(public.Name(), ws), Size: 1, Root: merkle.LeafHash(1, event.Digest{1})}
	forger, _, err := foreign.Signer()
	must(t, err)
	forged, err := c.Sign(forger)
	must(t, err)
	own, _, err := private.Signer()
	must(t, err)
	fork, err := merkle.Checkpoint{Origin: c.Origin, Size: 4, Root: merkle.Hash{4}}.Sign(own)
	must(t, err)

	send := func(method, where, body string) (int, string, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, address+where, strings.NewReader(body))
		must(t, err)
		resp, err := http.DefaultClient.Do(req)
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		return resp.StatusCode, resp.Header.Get("Content-Type"), string(text)
	}
	for _, step := range []struct {
		name, body string
		status     int
		answer     string
	}{
		{"no request", "", 400, ""},
		{"no old size", "\n" + string(four), 400, ""},
		{"an old size that is none", "old x\n\n" + string(four), 400, ""},
		{"an old size with a zero in front", "old 00\n\n" + string(four), 400, ""},
		{"a negative old size", "old -1\n\n" + string(four), 400, ""},
		{"no checkpoint", "old 0\n\n", 400, ""},
		{"a checkpoint that is none", "old 0\n\na\nb\nc\n\n— x AAAA\n", 400, ""},
		{"a hash that is none", "old 0\nAAAA\n\n" + string(four), 400, ""},
		{"64 hashes", "old 0\n" + strings.Repeat(merkle.Hash{}.String()+"\n", 64) + "\n" + string(four), 400, ""},
		{"too long", "old 0\n\n" + string(four) + strings.Repeat("x", 80<<10), 400, ""},
		{"a log that is not known", "old 0\n\n" + string(unknown), 404, ""},
		{"a signature of another", "old 0\n\n" + string(forged), 403, ""},
		{"an old size beyond the checkpoint", "old 5\n\n" + string(four), 400, ""},
		{"an old size that the witness does not hold", "old 4\n" + proof + "\n" + string(eight), 409, "0\n"},
		{"hashes where nothing is proven", "old 0\n" + proof + "\n" + string(four), 422, ""},
		{"the first", "old 0\n\n" + string(four), 200, "— agentbox/"},
		{"the first again", "old 0\n\n" + string(four), 409, "4\n"},
		{"the same", "old 4\n\n" + string(four), 200, "— agentbox/"},
		{"another of the same size", "old 4\n\n" + string(fork), 409, "4\n"},
		{"a larger one without a proof", "old 4\n\n" + string(eight), 422, ""},
		{"a larger one with a wrong proof", "old 4\n" + strings.Repeat(merkle.Hash{}.String()+"\n", len(path)) + "\n" + string(eight), 422, ""},
		{"a larger one", "old 4\n" + proof + "\n" + string(eight), 200, "— agentbox/"},
		{"a smaller one", "old 4\n\n" + string(four), 409, "8\n"},
	} {
		status, kind, answer := send("POST", "/add-checkpoint", step.body)
		if status != step.status || !strings.HasPrefix(answer, step.answer) || (status == 409) != (kind == "text/x.tlog.size") {
			t.Errorf("%s: %d %s %q, want %d %q", step.name, status, kind, answer, step.status, step.answer)
		}
	}
	if note, err := kept.Checkpoint(t.Context(), ws); err != nil || string(note) != string(eight) {
		t.Errorf("the witness holds %s, %v", note, err)
	}
	for where, want := range map[string]int{
		"/checkpoint?origin=" + c.Origin: 200, "/checkpoint?origin=other/ws_dev": 404, "/checkpoint": 404, "/": 404, "/add-checkpoint": 404,
		"/checkpoint?origin=" + public.Name() + "/ws_other": 404,
	} {
		if status, _, _ := send("GET", where, ""); status != want {
			t.Errorf("GET %s: %d, want %d", where, status, want)
		}
	}
}

// Of checkpoints that fork, brought at the same moment, one is taken.
func TestForksAtOnce(t *testing.T) {
	private, public := newKey(t)
	client, _, _, _ := serve(t, public)
	var wg sync.WaitGroup
	taken := make(chan error, 20)
	for n := range cap(taken) {
		i := install(t, private, fmt.Sprint("log ", n))
		i.grow(3)
		wg.Go(func() {
			_, err := i.prover.VisitWitness(t.Context(), ws, "w", client)
			taken <- err
		})
	}
	wg.Wait()
	close(taken)
	ok := 0
	for err := range taken {
		if err == nil {
			ok++
		} else if c := fault.CodeOf(err); c != "witness_disagrees" && c != "witness_holds_another" {
			t.Errorf("got %v", err)
		}
	}
	if ok != 1 {
		t.Errorf("%d forks were taken", ok)
	}
}

// A witness that answers with nonsense, or not at all, is an error that says so, and no witness.
func TestWitnessesThatLie(t *testing.T) {
	private, _ := newKey(t)
	i := install(t, private, "a")
	i.grow(3)
	for name, c := range map[string]struct {
		status     int
		kind, body string
		code       string
	}{
		"broken":                 {500, "", "", "witness_unavailable"},
		"elsewhere":              {302, "", "", "witness_unavailable"},
		"endless":                {200, "", strings.Repeat("x", 1<<20), "witness_unavailable"},
		"a size that is none":    {409, "text/x.tlog.size", "many\n", "witness_unreadable"},
		"a size of no such kind": {409, "text/plain", "2\n", "witness_unreadable"},
		"a size that grows":      {409, "text/x.tlog.size", "9\n", "witness_disagrees"},
		"does not know":          {404, "", "", "witness_does_not_know"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", c.kind)
			w.Header().Set("Location", "/x")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body) // the client may have gone
		}))
		client, err := witness.New(server.URL)
		must(t, err)
		if _, err := i.prover.VisitWitness(t.Context(), ws, "w", client); fault.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
		server.Close()
		if _, err := i.prover.VisitWitness(t.Context(), ws, "w", client); fault.CodeOf(err) != "witness_unavailable" {
			t.Errorf("nobody there: %v", err)
		}
	}
	for _, bad := range []string{"", "x", "ftp://a", "http://", "http://a?b=c", "http://a#b"} {
		if _, err := witness.New(bad); fault.CodeOf(err) != "witness_invalid" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
