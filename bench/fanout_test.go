package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/httpapi/wire"
)

// The load of BenchmarkFanOut.
const perSecond = 20

var (
	subscribers = sized(1_000, 20)
	fannedOut   = sized(200, 10) // events: ten seconds
)

// BenchmarkFanOut measures how long after an event is handed to the log it arrives at each of 1,000 clients of the API's event stream, at
// 20 events a second: the commit, the log's notice, what of it is read and encoded, and the clients' connections. The yardstick is a bare
// server of net/http that writes a frame of the same bytes, encoded beforehand, to as many connections, without a log or a queue but one
// channel each. In both the clients live in the server's process and read from their sockets by themselves.
func BenchmarkFanOut(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		a, address, key := upAPI(b)
		room := id.New[id.Room](ids)
		origin := event.Origin{Principal: a.Owner, Correlation: id.New[id.Correlation](ids)}
		data := runOf(a.Owner)().Drafts[0].Data
		fanOut(b, address, "/v1/events/stream", key, func() (uint64, error) {
			told := event.New("bench.told", origin, id.DefaultWorkspace, room, json.RawMessage(data)) // which changes no document
			batch := event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{told}}
			got, err := a.Log.Append(b.Context(), batch)
			if err != nil {
				return 0, err
			}
			return got.Events[0].Seq, nil
		})
	})
	b.Run("yardstick", func(b *testing.B) {
		bare := &bareFanOut{frame: frameOf(b), queues: map[chan []byte]bool{}}
		server := httptest.NewServer(bare)
		b.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		fanOut(b, server.Listener.Addr().String(), "/", "", bare.send)
	})
}

// upAPI starts a whole daemon on a fresh data directory. It sets no practical limit on the streams of one client. It returns the daemon,
// its address and the owner's key.
func upAPI(b *testing.B) (a *app.App, address, key string) {
	b.Helper()
	c := app.Default(b.TempDir())
	c.Listen = "127.0.0.1:0"
	c.Rates = wire.Rates{Spaces: 1e6, Runs: 1e6, Files: 1e6, Claims: 1e6, General: 1e6, Failures: 1e6, Streams: 2 * subscribers}
	a, err := app.Open(b.Context(), c, app.Clock{}, slog.New(slog.DiscardHandler))
	must(b, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan app.State, 1)
	go func() { ended <- a.Run(ctx, func(s app.State) { ready <- s }) }()
	b.Cleanup(func() {
		stop()
		must(b, <-ended)
	})
	select {
	case state := <-ready:
		raw, err := os.ReadFile(filepath.Join(c.DataDir, "owner.key"))
		must(b, err)
		return a, state.Address, strings.TrimSpace(string(raw))
	case err := <-ended:
		ended <- nil
		b.Fatal(err)
		return nil, "", ""
	}
}

// fanOut opens the streams, sends the events one after the other in their time, and reports how long each took to each client.
func fanOut(b *testing.B, address, path, key string, send func() (uint64, error)) {
	b.Helper()
	for range b.N {
		clients := make([]*subscriber, subscribers)
		for i := range clients {
			clients[i] = subscribe(b, address, path, key)
		}
		var reading sync.WaitGroup
		for _, c := range clients {
			reading.Go(func() { c.read(fannedOut) })
		}
		sent := map[uint64]time.Time{}
		before := cpuTime(b)
		b.ResetTimer()
		turn := time.NewTicker(time.Second / perSecond)
		for range fannedOut {
			<-turn.C
			at := time.Now()
			place, err := send()
			must(b, err)
			sent[place] = at
		}
		turn.Stop()
		reading.Wait()
		b.StopTimer()
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/1000/float64(fannedOut*subscribers), "cpu-us/delivery")
		var took []time.Duration
		for _, c := range clients {
			must(b, c.conn.Close())
			must(b, c.err)
			for place, at := range sent {
				came, ok := c.came[place]
				if !ok {
					b.Fatalf("a client never got event %d", place)
				}
				took = append(took, came.Sub(at))
			}
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
		b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
	}
}

// subscriber is a client of an event stream that does as little as one can.
type subscriber struct {
	conn net.Conn
	in   *bufio.Reader
	came map[uint64]time.Time
	err  error
}

// subscribe opens a stream and returns when the server has answered.
func subscribe(b *testing.B, address, path, key string) *subscriber {
	b.Helper()
	conn, err := net.Dial("tcp", address)
	must(b, err)
	s := &subscriber{conn: conn, in: bufio.NewReaderSize(conn, 2<<10), came: make(map[uint64]time.Time, fannedOut)}
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, address,
		key)
	must(b, err)
	status, err := s.in.ReadString('\n')
	must(b, err)
	if !strings.Contains(status, " 200 ") {
		b.Fatalf("the stream was refused: %s", status)
	}
	return s
}

// read notes when each of so many events came, by the id that comes before its data.
func (s *subscriber) read(events int) {
	last := uint64(0)
	for len(s.came) < events {
		line, err := s.in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			s.err = err
			return
		}
		if digits, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
			if last, s.err = strconv.ParseUint(string(bytes.TrimSpace(digits)), 10, 64); s.err != nil {
				return
			}
		}
		if bytes.HasPrefix(line, []byte("data: ")) {
			s.came[last] = time.Now()
		}
	}
}

// bareFanOut is the yardstick.
type bareFanOut struct {
	frame []byte

	mu     sync.Mutex // guards all below
	queues map[chan []byte]bool
	sent   uint64
}

// frameOf is the data of an event of the log as the API sends it.
func frameOf(b *testing.B) []byte {
	b.Helper()
	got, err := openLog(b).Append(b.Context(), runOf(user)())
	must(b, err)
	raw, err := json.Marshal(got.Events[0])
	must(b, err)
	return raw
}

func (f *bareFanOut) send() (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent++
	frame := fmt.Appendf(nil, "id: %d\ndata: %s\n\n", f.sent, f.frame)
	for queue := range f.queues {
		queue <- frame
	}
	return f.sent, nil
}

func (f *bareFanOut) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	queue := make(chan []byte, fannedOut)
	f.mu.Lock()
	f.queues[queue] = true
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		delete(f.queues, queue)
		f.mu.Unlock()
	}()
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	if control.Flush() != nil {
		return
	}
	for {
		select {
		case frame := <-queue:
			if _, err := w.Write(frame); err != nil || control.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}
