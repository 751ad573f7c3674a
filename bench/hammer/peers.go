package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"agentbox/bench/yardstick"
)

// quiet discards the logs of the peers.
var quiet = slog.New(slog.DiscardHandler)

// pool opens a database of its own on the server.
func pool(ctx context.Context, server *yardstick.Postgres, name string, connections int) (*pgxpool.Pool, error) {
	url, err := server.Database(ctx, name)
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = int32(connections)
	return pgxpool.NewWithConfig(ctx, config)
}

// stepsOfDBOS measures a durable step of a workflow with DBOS in this process, with as many workflows at a time as there are engines. A
// step returns as many bytes as ours gets.
func stepsOfDBOS(ctx context.Context, server *yardstick.Postgres, engines, steps int, long time.Duration) (_ figures, err error) {
	connections, err := pool(ctx, server, "dbos", engines+8)
	if err != nil {
		return figures{}, err
	}
	defer connections.Close()
	house, err := dbos.NewDBOSContext(ctx, dbos.Config{AppName: "hammer", SystemDBPool: connections, Logger: quiet})
	if err != nil {
		return figures{}, err
	}
	var m meter
	output := strings.Repeat("o", 64)
	workflow := func(c dbos.DBOSContext, _ string) (string, error) {
		took := make([]time.Duration, 0, steps)
		for range steps {
			start := time.Now()
			if _, err := dbos.RunAsStep(c, func(context.Context) (string, error) { return output, nil }); err != nil {
				return "", err
			}
			took = append(took, time.Since(start))
		}
		m.add("step", took)
		return output, nil
	}
	dbos.RegisterWorkflow(house, workflow)
	if err := dbos.Launch(house); err != nil {
		return figures{}, err
	}
	defer dbos.Shutdown(house, 5*time.Second)
	var working sync.WaitGroup
	failed := make([]error, engines)
	start := time.Now()
	for n := range engines {
		working.Go(func() {
			for ctx.Err() == nil && time.Since(start) < long && failed[n] == nil {
				handle, err := dbos.RunWorkflow(house, workflow, "")
				if err == nil {
					_, err = handle.GetResult()
				}
				failed[n] = err
			}
		})
	}
	working.Wait()
	return summarize(m.took["step"], time.Since(start).Seconds()), errors.Join(append(failed, ctx.Err())...)
}

// job is one of River's.
type job struct {
	At int64 `json:"at"` // when it was handed in, in nanoseconds of the host's clock
}

// Kind names it.
func (job) Kind() string { return "hammer" }

// worker notes when a job came to work.
type worker struct {
	river.WorkerDefaults[job]
	came func(time.Duration)
}

// Work does nothing else.
func (w *worker) Work(_ context.Context, j *river.Job[job]) error {
	w.came(time.Since(time.Unix(0, j.Args.At)))
	return nil
}

// workOfRiver measures the time from the insertion of a job of River until its work begins, at a given rate, with as many workers as there
// are engines. River looks for jobs as often as it can.
func workOfRiver(ctx context.Context, server *yardstick.Postgres, engines, perSecond int, long time.Duration) (_ figures, err error) {
	connections, err := pool(ctx, server, "river", engines+8)
	if err != nil {
		return figures{}, err
	}
	defer connections.Close()
	driver := riverpgxv5.New(connections)
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return figures{}, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return figures{}, err
	}
	var m meter
	workers := river.NewWorkers()
	river.AddWorker(workers, &worker{came: func(took time.Duration) { m.add("work", []time.Duration{took}) }})
	c, err := river.NewClient(driver, &river.Config{
		Logger: quiet, Workers: workers, Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: engines}},
		FetchCooldown: river.FetchCooldownMin, FetchPollInterval: 50 * time.Millisecond,
	})
	if err != nil {
		return figures{}, err
	}
	if err := c.Start(ctx); err != nil {
		return figures{}, err
	}
	sent, err := paced(ctx, perSecond, long, func() error {
		_, err := c.Insert(ctx, job{time.Now().UnixNano()}, nil)
		return err
	})
	came := func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.took["work"])
	}
	for wait := time.Now(); came() < sent && time.Since(wait) < patience; {
		time.Sleep(again)
	}
	err = errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	if n := came(); n < sent && err == nil {
		err = fmt.Errorf("River worked on %d of %d jobs", n, sent)
	}
	return summarize(m.took["work"], long.Seconds()), err
}

// paced starts do at a given rate, each call in a goroutine, and returns the number of calls.
func paced(ctx context.Context, perSecond int, long time.Duration, do func() error) (int, error) {
	turn := time.NewTicker(time.Second / time.Duration(perSecond))
	defer turn.Stop()
	var doing sync.WaitGroup
	var mu sync.Mutex
	var failed error
	n := 0
	for start := time.Now(); time.Since(start) < long && ctx.Err() == nil; n++ {
		<-turn.C
		doing.Go(func() {
			if err := do(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, err)
			}
		})
	}
	doing.Wait()
	return n, errors.Join(failed, ctx.Err())
}
