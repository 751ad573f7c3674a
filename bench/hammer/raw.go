package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"agentbox/bench/yardstick"
)

// rawSQLite is how fast bare group commits on SQLite take rows as large, from as many writers.
func rawSQLite(ctx context.Context, clients, size int, long time.Duration) (_ figures, err error) {
	dir, err := os.MkdirTemp("", "agentbox-hammer-bare-")
	if err != nil {
		return figures{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := yardstick.OpenSQLite(filepath.Join(dir, "bare.db"))
	if err != nil {
		return figures{}, err
	}
	f, err := writeRows(ctx, clients, long, func(n int) func() error {
		body, answer := bytes.Repeat([]byte("o"), size), make(chan error, 1)
		return func() error { return store.Append(int64(n), body, answer) }
	})
	return f, errors.Join(err, store.Close())
}

// writeRows lets so many clients write rows, each one after another for so long, and says how long they took. Client makes what writes one.
func writeRows(ctx context.Context, clients int, long time.Duration, client func(n int) (write func() error)) (figures, error) {
	var m meter
	var writing sync.WaitGroup
	failed := make([]error, clients)
	start := time.Now()
	for n := range clients {
		writing.Go(func() {
			write := client(n)
			var took []time.Duration
			for ctx.Err() == nil && time.Since(start) < long && failed[n] == nil {
				began := time.Now()
				failed[n] = write()
				took = append(took, time.Since(began))
			}
			m.add("row", took)
		})
	}
	writing.Wait()
	return summarize(m.took["row"], time.Since(start).Seconds()), errors.Join(append(failed, ctx.Err())...)
}

// script is the transaction that pgbench repeats: it writes one row of the same size.
const script = `\set version :version + 1
INSERT INTO events (stream, version, type, at, prev, hash, body) VALUES (:client_id, :version, 'message.created', :client_id, :prev, :hash, :body);
`

func makeTable(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, yardstick.Table)
	return errors.Join(err, conn.Close(ctx))
}

// rawPostgres is how fast pgbench's clients insert rows as large, each in a transaction of its own, on the same server.
func rawPostgres(ctx context.Context, server *yardstick.Postgres, clients, size int, long time.Duration) (figures, error) {
	url, err := server.Database(ctx, "raw")
	if err != nil {
		return figures{}, err
	}
	if err := makeTable(ctx, url); err != nil {
		return figures{}, err
	}
	file := filepath.Join(server.Dir, "insert.sql")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		return figures{}, err
	}
	seconds := max(1, int(long.Seconds()))
	hash := strings.Repeat("h", 32)
	cmd := server.Command(ctx, "pgbench", "--no-vacuum", "--file", file, "--client", strconv.Itoa(clients), "--jobs", "2", "--time",
		strconv.Itoa(seconds),
		"--protocol", "prepared", "--log", "--log-prefix", filepath.Join(server.Dir, "took"), "-D", "version=0", "-D", "prev="+hash, "-D",
		"hash="+hash,
		"-D", "body="+strings.Repeat("o", size), "--host", server.Dir, "--username", "bench", "raw")
	if out, err := cmd.CombinedOutput(); err != nil {
		return figures{}, fmt.Errorf("pgbench: %w\n%s", err, out)
	}
	logs, err := filepath.Glob(filepath.Join(server.Dir, "took.*"))
	if err != nil {
		return figures{}, err
	}
	var took []time.Duration
	for _, log := range logs {
		raw, err := os.ReadFile(log)
		if err != nil {
			return figures{}, err
		}
		for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); { // client, transaction, microseconds, ...
			fields := strings.Fields(lines.Text())
			if len(fields) < 3 {
				return figures{}, fmt.Errorf("pgbench wrote %q", lines.Text())
			}
			us, err := strconv.Atoi(fields[2])
			if err != nil {
				return figures{}, err
			}
			took = append(took, time.Duration(us)*time.Microsecond)
		}
	}
	return summarize(took, float64(seconds)), nil
}
