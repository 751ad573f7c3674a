package bench

import (
	"crypto/rand"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/testkit/pgtest"
)

// BenchmarkPostgresAppend is BenchmarkAppend with our log in PostgreSQL: with a decision, a ruling that is begun, envelope, checks, salted
// chain, indexes and sealed documents. Beside it is the least that such a server can be asked for: rows as large as an event, each inserted
// and committed by a connection of its own.
func BenchmarkPostgresAppend(b *testing.B) {
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("writers=%d/ours", writers), func(b *testing.B) {
			log := openDatabase(b)
			g, agent, bundle := openHouse(b, log)
			drive(b, writers, func(int) func() error {
				next := runOf(agent)
				place := makeSpace(b, log, bundle)
				return func() error {
					batch := next()
					ruling, err := g.Judge(b.Context(), createFile(batch.Drafts[0], place))
					if err != nil {
						return err
					}
					_, _, err = g.Begin(b.Context(), ruling, "", batch)
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("writers=%d/ours-without-gate", writers), func(b *testing.B) {
			log := openDatabase(b)
			drive(b, writers, func(int) func() error {
				next := runOf(user)
				return func() error {
					_, err := log.Append(b.Context(), next())
					return err
				}
			})
		})
		b.Run(fmt.Sprintf("writers=%d/yardstick", writers), func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
			pool := openPostgres(b, writers)
			insertChained(b, pool, writers)
		})
	}
}

func openDatabase(b *testing.B) *postgres.Journal {
	b.Helper()
	if pgtest.Programs() == "" {
		leaveOut(b, "PostgreSQL is missing: install postgresql")
	}
	keys, err := keyring.Open(b.TempDir(), rand.Reader)
	must(b, err)
	log, err := postgres.Open(b.Context(), postgres.Options{
		Address: pgtest.StartOnDisk(b).Database(), Definitions: definitions(), Clock: wall{}, IDs: ids,
		Entropy: rand.Reader, Keys: keys, Alone: true,
	})
	must(b, err)
	b.Cleanup(func() { must(b, log.Close()) })
	return log
}

func insertChained(b *testing.B, pool *pgxpool.Pool, writers int) {
	b.Helper()
	drive(b, writers, func(w int) func() error {
		chain := chained()
		version := 0
		return func() error {
			version++
			body := chain()
			_, err := pool.Exec(b.Context(), `INSERT INTO events (stream, version, type, at, prev, hash, body) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
				w, version, "tool.succeeded", time.Now().UnixMicro(), body[:32], body[32:64], body[64:])
			return err
		}
	})
}
