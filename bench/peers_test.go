package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"agentbox/bench/yardstick"
)

// BenchmarkAppendPeers appends 100,000 events, each acknowledged when it is on the disk, by 64 writers that wait for their
// acknowledgement: to our log with everything on but the gate, to NATS JetStream, which syncs always, and to PostgreSQL, which commits
// synchronously. To the peers an event is 512 bytes and what chains it to the one before: they check, fold and prove nothing. One op is
// all of the events.
func BenchmarkAppendPeers(b *testing.B) {
	const writers = 64
	events := sized(100_000, 500)
	b.Run("ours", func(b *testing.B) {
		for range b.N {
			log := openLog(b)
			driveEvents(b, events, writers, func(int) func() error {
				next := runOf(user)
				return func() error {
					_, err := log.Append(b.Context(), next())
					return err
				}
			})
		}
	})
	b.Run("nats", func(b *testing.B) {
		// The daemon's spare processor is for its committer; the peers run as suits them best.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
		for range b.N {
			stream := openNATS(b)
			driveEvents(b, events, writers, func(w int) func() error {
				chain := chained()
				subject := "runs." + strconv.Itoa(w)
				return func() error {
					_, err := stream.Publish(b.Context(), subject, chain())
					return err
				}
			})
		}
	})
	b.Run("postgres", func(b *testing.B) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
		for range b.N {
			pool := openPostgres(b, writers)
			driveEvents(b, events, writers, func(w int) func() error {
				chain := chained()
				version := 0
				return func() error {
					version++
					body := chain()
					_, err := pool.Exec(b.Context(),
						`INSERT INTO events (stream, version, type, at, prev, hash, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
						w, version, "tool.succeeded", time.Now().UnixMicro(), body[:32], body[32:64], body[64:])
					return err
				}
			})
		}
	})
}

// chained returns the events of one writer for a peer: the hash of the event before, the event's own, and 512 bytes.
func chained() func() []byte {
	data := []byte(strings.Repeat("o", 512))
	var prev [sha256.Size]byte
	return func() []byte {
		h := sha256.New()
		h.Write(prev[:])
		h.Write(data)
		hash := h.Sum(nil)
		body := slices.Concat(prev[:], hash, data)
		copy(prev[:], hash)
		return body
	}
}

// openNATS starts a server of NATS in this process and makes a stream in a file that is synced before each acknowledgement.
func openNATS(b *testing.B) jetstream.JetStream {
	b.Helper()
	s, err := server.NewServer(&server.Options{
		DontListen: true, JetStream: true, StoreDir: b.TempDir(), SyncAlways: true, NoLog: true, NoSigs: true,
	})
	must(b, err)
	go s.Start()
	b.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(10 * time.Second) {
		b.Fatal("the server of NATS does not start")
	}
	conn, err := nats.Connect("", nats.InProcessServer(s))
	must(b, err)
	b.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	must(b, err)
	_, err = js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "events", Subjects: []string{"runs.*"}, Storage: jetstream.FileStorage})
	must(b, err)
	return js
}

// openPostgres starts a server of PostgreSQL and returns as many connections as there are writers.
func openPostgres(b *testing.B, writers int) *pgxpool.Pool {
	b.Helper()
	server, err := yardstick.StartPostgres(b.Context(), writers)
	if errors.Is(err, yardstick.ErrNoPostgres) {
		leaveOut(b, err.Error())
	}
	must(b, err)
	b.Cleanup(func() { must(b, server.Close()) })
	config, err := pgxpool.ParseConfig(server.URL("postgres"))
	must(b, err)
	config.MaxConns, config.MinConns = int32(writers), int32(writers)
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	must(b, err)
	b.Cleanup(pool.Close)
	_, err = pool.Exec(b.Context(), yardstick.Table)
	must(b, err)
	var warm sync.WaitGroup
	failed := make([]error, writers)
	for w := range writers { // every connection is open before the clock runs
		warm.Go(func() { _, failed[w] = pool.Exec(b.Context(), `SELECT pg_sleep(0.05)`) })
	}
	warm.Wait()
	must(b, errors.Join(failed...))
	return pool
}
