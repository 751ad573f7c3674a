package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/principal"
	"agentbox/internal/kernel/journal"
)

// earlyClock is the real clock set back, so that a deadline of the server's lies only a moment ahead.
type earlyClock struct {
	realClock
	back time.Duration
}

func (c earlyClock) Now() time.Time { return time.Now().Add(-c.back) }

// handClock is the real clock whose long timers go off by hand.
type handClock struct {
	realClock
	beat, look chan time.Time
}

func (c handClock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	if d == heartbeat {
		return c.beat, func() {}
	}
	if d == recheck && c.look != nil {
		return c.look, func() {}
	}
	return c.realClock.NewTimer(d)
}

// endless adds a stream of numbers without end, each with 64 KiB of data; sent counts how far it was read.
func endless(s *Server, sent *atomic.Uint64) {
	data := strings.Repeat("x", 64<<10)
	Stream[struct {
		From uint64 `query:"from"`
	}](s, Operation{ID: "endless", Method: "GET", Path: "/v1/test/endless", Tag: "test"}, func(w http.ResponseWriter, r *http.Request,
		c Call) error {
		from, _, err := Cursor(r, "from")
		if err != nil {
			return err
		}
		return s.Feed(w, r, c, func(ctx context.Context) iter.Seq2[Message, error] {
			return func(yield func(Message, error) bool) {
				for n := max(from, 1); ; n++ {
					if !yield(Message{ID: n, Data: []byte(data)}, nil) {
						return
					}
					sent.Store(n)
				}
			}
		})
	})
}

// open begins to read an event stream.
func (w wire) open(path string, headers ...string) (*http.Response, func()) {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", w.url+path, nil)
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	return resp, func() {
		cancel()
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
	}
}

// Row 32: a client that does not read is cut off; it holds up nobody, and goes on where it was.
func TestThreat32ASlowReaderIsCutOffAndGoesOnWhereItWas(t *testing.T) {
	var sent atomic.Uint64
	w := newWire(t, func(c *Config) { c.Clock = earlyClock{back: writeTimeout - 300*time.Millisecond} })
	endless(w.s, &sent)
	resp, leave := w.open("/v1/test/endless")
	defer leave()
	lines := bufio.NewReader(resp.Body)
	first, err := lines.ReadString('\n')
	if err != nil || first != "id: 1\n" {
		t.Fatalf("got %q, %v", first, err)
	}
	// Nothing is read any more. Others are served meanwhile, and the server gives this one up.
	if resp, got := w.ask("GET", "/v1/test/count", ""); resp.StatusCode != 200 || !strings.Contains(got, "id: 10\n") {
		t.Errorf("another stream got %d %q", resp.StatusCode, got)
	}
	waitFor(t, "the slow reader to be cut off", func() bool {
		w.s.limiter.mu.Lock()
		defer w.s.limiter.mu.Unlock()
		return len(w.s.limiter.streams) == 0
	})
	last := uint64(1)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // cut off
		}
		if n := uint64(0); strings.HasPrefix(line, "id: ") {
			if _, err := fmt.Sscanf(line, "id: %d", &n); err != nil || n != last+1 {
				t.Fatalf("after %d came %q", last, line)
			}
			last = n
		}
	}
	if read := sent.Load(); read > last+2 {
		t.Errorf("the source was read up to %d, and the client had %d: something kept more than the message under way", read, last)
	}
	again, leaveAgain := w.open("/v1/test/endless", fmt.Sprintf("Last-Event-ID: %d", last-1))
	defer leaveAgain()
	if line, err := bufio.NewReader(again.Body).ReadString('\n'); err != nil || line != fmt.Sprintf("id: %d\n", last) {
		t.Errorf("after the cut came %q, %v, want %d", line, err, last)
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 2000 {
		if is() {
			return
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("waited for %s", what)
}

func TestAStreamWithoutNewsSaysThatItLives(t *testing.T) {
	clock := handClock{beat: make(chan time.Time)}
	w := newWire(t, func(c *Config) { c.Clock = clock })
	resp, leave := w.open("/v1/test/count?break=never")
	defer leave()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != `data: {"n":3}` {
	}
	clock.beat <- time.Time{}
	lines.Scan() // the empty line behind the data
	if lines.Scan(); lines.Text() != ": still here" {
		t.Errorf("got %q, want a comment", lines.Text())
	}
}

// A revoked credential opens nothing, and its open streams end.
func TestAStreamEndsWithItsKey(t *testing.T) {
	clock := handClock{beat: make(chan time.Time), look: make(chan time.Time)}
	var revoked atomic.Bool
	w := newWire(t, func(c *Config) {
		c.Clock = clock
		find := c.Authenticate
		c.Authenticate = func(ctx context.Context, bearer string) (principal.Caller, error) {
			if revoked.Load() {
				return principal.Caller{}, principal.ErrUnauthenticated
			}
			return find(ctx, bearer)
		}
	})
	resp, leave := w.open("/v1/test/count?break=never")
	defer leave()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != `data: {"n":3}` {
	}
	clock.look <- time.Time{}
	clock.beat <- time.Time{} // it was looked at, and goes on
	revoked.Store(true)
	clock.look <- time.Time{}
	for lines.Scan() {
		if line := lines.Text(); line != "" && line != ": still here" {
			t.Errorf("after its key was revoked the stream says %q", line)
		}
	}
}

func TestAPrincipalHasSoManyStreams(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Rates = DefaultRates(); c.Rates.Streams = 2 })
	_, leave1 := w.open("/v1/test/count?break=never")
	defer leave1()
	_, leave2 := w.open("/v1/test/count?break=never")
	if resp, got := w.ask("GET", "/v1/test/count", ""); resp.StatusCode != 429 || !strings.Contains(got, "too_many_streams") {
		t.Errorf("the third stream got %d %s", resp.StatusCode, got)
	}
	leave2()
	waitFor(t, "the place of the second stream", func() bool {
		resp, _ := w.ask("GET", "/v1/test/count", "")
		return resp.StatusCode == 200
	})
}

func TestStoppingEndsStreamsWithoutAnEndAndAnswersWhatIsUnderWay(t *testing.T) {
	w := newWire(t, nil)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.s.Run(ctx, l) }()
	w.url = "http://" + l.Addr().String()
	resp, leave := w.open("/v1/test/count?break=never")
	defer leave()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != `data: {"n":3}` {
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("stopped with %v", err)
	}
	rest, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(rest), "id:") {
		t.Errorf("after the stop came %q", rest)
	}
}

func TestASenderThatStopsSendingIsNotWaitedFor(t *testing.T) {
	w := newWire(t, func(c *Config) { c.Clock = earlyClock{back: bodyTimeout - 200*time.Millisecond} })
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, "POST /v1/test/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Type: "+
		"application/json\r\nContent-Length: 50\r\n\r\n{\"name\":")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 408 || !strings.Contains(string(got), `"error":"request_timeout"`) {
		t.Errorf("got %d %s", resp.StatusCode, got)
	}
}

// TestARepeatIsRecalledAndNotDoneAgain holds that HandleOnce does a request once, and answers its repeat with what was made, or with why
// that cannot be found.
func TestARepeatIsRecalledAndNotDoneAgain(t *testing.T) {
	w := newWire(t, nil)
	var made []string // by their places
	keys := map[string]uint64{}
	w.s.Recall = func(_ context.Context, _ principal.Caller, key string, _ event.Digest) (uint64, error) {
		return keys[key], nil
	}
	lost := false
	HandleOnce(w.s, Operation{ID: "once", Method: "POST", Path: "/v1/test/once", Tag: "test", Repeat: RepeatRecalled},
		func(_ context.Context, c Call) (string, error) {
			if lost {
				return "", fault.New(fault.NotFound, "answer_lost", "the first answer is gone")
			}
			return made[c.Repeated-1], nil
		},
		func(_ context.Context, c Call, in *struct{ Body thing }) (string, error) {
			made = append(made, in.Body.Name)
			keys[c.Once().Key] = uint64(len(made))
			return in.Body.Name, nil
		},
		func(name string) *struct{ Body thing } {
			return &struct{ Body thing }{thing{Name: name, Count: len(made)}}
		})
	for _, c := range []struct {
		name, key string
		lost      bool
		status    int
		says      string
	}{
		{"the first", "k", false, 200, `"count":1`},
		{"its repeat", "k", false, 200, `"count":1`},
		{"its repeat, when the answer is gone", "k", true, 404, "answer_lost"},
		{"another key", "l", false, 200, `"count":2`},
	} {
		lost = c.lost
		resp, got := w.ask("POST", "/v1/test/once", `{"name":"a"}`, "Idempotency-Key: "+c.key)
		if resp.StatusCode != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: got %d %s, want %d with %s", c.name, resp.StatusCode, got, c.status, c.says)
		}
	}
}

func TestARepeatedKeyIsLookedUpInTheLog(t *testing.T) {
	w := newWire(t, nil)
	made := map[string]int{} // by what the log knows a request
	commands := map[string]event.Digest{}
	w.s.Recall = func(_ context.Context, _ principal.Caller, key string, command event.Digest) (uint64, error) {
		if known, ok := commands[key]; ok && known != command {
			return 0, journal.ErrKeyConflict
		}
		return uint64(made[key]), nil
	}
	under := make(chan struct{})
	release := make(chan struct{})
	handle := func(path string) {
		Handle(w.s, Operation{ID: "count" + path, Method: "POST", Path: "/v1/test/" + path, Tag: "test", Repeat: RepeatRecalled},
			func(_ context.Context, c Call, in *struct{ Body thing }) (*struct{ Body thing }, error) {
				switch in.Body.Name {
				case "wrong":
					return nil, journal.ErrKeyConflict
				case "slow":
					if c.Repeated == 0 {
						under <- struct{}{}
						<-release
					}
				case "panic":
					panic("the handler broke")
				}
				if c.Repeated == 0 {
					o := c.Once()
					made[o.Key], commands[o.Key] = len(made)+1, o.Command
					c.Repeated = uint64(made[o.Key])
				}
				return &struct{ Body thing }{thing{Name: in.Body.Name, Count: int(c.Repeated)}}, nil
			})
	}
	handle("counted")
	handle("also")
	post := func(path, key, body string) (*http.Response, string) {
		return w.ask("POST", "/v1/test/"+path, body, "Idempotency-Key: "+key)
	}
	for _, c := range []struct {
		name, path, key, body string
		status                int
		says                  string
		replayed              bool
	}{
		{"a refusal", "counted", "k", `{"name":"wrong"}`, 409, "idempotency_conflict", false},
		{"uses up no key", "counted", "k", `{"name":"a"}`, 200, `"count":1`, false},
		{"again", "counted", "k", `{"name":"a"}`, 200, `"count":1`, true},
		{"the key for something else", "counted", "k", `{"name":"b"}`, 409, "idempotency_conflict", false},
		{"the key at another endpoint", "also", "k", `{"name":"b"}`, 200, `"count":2`, false},
		{"another key", "counted", "l", `{"name":"a"}`, 200, `"count":3`, false},
		{"a panic", "counted", "p", `{"name":"panic"}`, 500, "internal_error", false},
		{"uses up no key either", "counted", "p", `{"name":"a"}`, 200, `"count":4`, false},
	} {
		resp, got := post(c.path, c.key, c.body)
		if resp.StatusCode != c.status || !strings.Contains(got, c.says) || (resp.Header.Get("Idempotency-Replayed") == "true") != c.replayed {
			t.Errorf("%s: %d replayed %q: %s", c.name, resp.StatusCode, resp.Header.Get("Idempotency-Replayed"), got)
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); post("counted", "s", `{"name":"slow"}`) }()
	<-under
	if resp, got := post("counted", "s", `{"name":"slow"}`); resp.StatusCode != 409 || !strings.Contains(got, "idempotency_in_progress") {
		t.Errorf("while the first is under way: %d %s", resp.StatusCode, got)
	}
	close(release)
	<-done
	if resp, got := post("counted", "s", `{"name":"slow"}`); resp.StatusCode != 200 {
		// it is not asked whether it is under way: that has ended
		t.Errorf("after the first has ended: %d %s", resp.StatusCode, got)
	}
}

func TestAPostThatDoesNotSayHowARepeatIsMetIsRefused(t *testing.T) {
	defer func() {
		if says := fmt.Sprint(recover()); !strings.Contains(says, "forgotten does not say how a repeat is met") {
			t.Errorf("got %q", says)
		}
	}()
	Handle(newWire(t, nil).s, Operation{ID: "forgotten", Method: "POST", Path: "/v1/test/forgotten", Tag: "test"},
		func(context.Context, Call, *struct{}) (*struct{}, error) { return nil, nil })
}

// Row 33: too much is refused before it is read into memory.
func TestThreat33TooMuchIsRefusedBeforeItIsParsed(t *testing.T) {
	w := newWire(t, nil)
	big := `{"name":"` + strings.Repeat("a", 64<<20) + `"}`
	before := allocated()
	for name, body := range map[string]string{"length": big, "chunked": big} {
		r := httptest.NewRequest("POST", "http://localhost/v1/test/things", strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer good")
		r.Header.Set("Content-Type", "application/json")
		if name == "chunked" {
			r.ContentLength = -1
		}
		resp := httptest.NewRecorder()
		w.s.ServeHTTP(resp, r)
		if resp.Code != 413 {
			t.Errorf("%s: %d %s", name, resp.Code, resp.Body)
		}
	}
	if used := allocated() - before; used > 8<<20 {
		t.Errorf("refusing two bodies of 64 MiB took %d bytes", used)
	}
}

func TestLargeBodiesAreHeldWithinABound(t *testing.T) {
	w := newWire(t, nil)
	large := &Call{route: &route{maxBody: 64 << 20}}
	for range 4 {
		if err := w.s.bodies.reserve(large, -1); err != nil {
			t.Fatal(err)
		}
	}
	if resp, got := w.ask("POST", "/v1/test/things", `{"name":"a"}`); resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" ||
		!strings.Contains(got, `"error":"busy"`) {
		t.Errorf("beyond the bound: %d %s", resp.StatusCode, got)
	}
	if resp, got := w.ask("GET", "/v1/test/things/a", ""); resp.StatusCode != 200 {
		t.Errorf("a request without a body: %d %s", resp.StatusCode, got)
	}
	w.s.bodies.release(large)
	for range 3 { // each gives back what it took, also when it is refused
		w.ask("POST", "/v1/test/things", `{"name":"a"}`)
		w.ask("POST", "/v1/test/things", `{`)
	}
	if held := w.s.bodies.held.Load(); held != 3*(64<<20) {
		t.Errorf("%d bytes are held, want those of three", held)
	}
}

// TestWhoStillSendsTooMuchSeesTheRefusal sends a body over the limit without a look at the answer before its end, as most clients do.
func TestWhoStillSendsTooMuchSeesTheRefusal(t *testing.T) {
	w := newWire(t, nil)
	for _, length := range []string{"Content-Length: 1000000", "Transfer-Encoding: chunked"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.(*net.TCPConn).SetWriteBuffer(4 << 10); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/test/things HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer good\r\nContent-Type: "+
			"application/json\r\n%s\r\n\r\n", length)
		for range 1000 {
			piece := strings.Repeat("x", 1000)
			if strings.HasPrefix(length, "Transfer") {
				piece = "3e8\r\n" + piece + "\r\n"
			}
			if _, err := io.WriteString(conn, piece); err != nil {
				t.Fatalf("%s: the connection was closed on the sender: %v", length, err)
			}
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%s: %v", length, err)
		}
		got, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 413 || !strings.Contains(string(got), `"error":"body_too_large"`) {
			t.Errorf("%s: got %d %s", length, resp.StatusCode, got)
		}
	}
}

// TestAClientThatGoesAwayIsNoError ends a stream with its client, whose going the source sees first, or the server: neither is an error.
func TestAClientThatGoesAwayIsNoError(t *testing.T) {
	w := newWire(t, nil)
	for range 100 {
		ctx, leave := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, "GET", "/v1/test/count", nil)
		err := w.s.Feed(httptest.NewRecorder(), r, Call{}, func(ctx context.Context) iter.Seq2[Message, error] {
			return func(yield func(Message, error) bool) {
				if yield(Message{ID: 1, Data: []byte("x")}, nil) {
					leave()
					yield(Message{}, ctx.Err())
				}
			}
		})
		leave()
		if err != nil {
			t.Fatal(err)
		}
	}
	if w.log.Len() > 0 {
		t.Errorf("it was logged: %.300s", w.log)
	}
}
