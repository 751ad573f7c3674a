package postgres

import (
	"context"
	"embed"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/projection"
)

// schemaName is where all tables of the log lie.
const schemaName = "agentbox"

// schemaVersion is that of the newest migration.
const schemaVersion = 3

// Connections, unless the address says pool_max_conns.
const (
	readers = 8
	writers = 8 // workspaces that are appended to at the same time
)

// connectTime is how long one try to reach the server takes at most, unless the address says connect_timeout.
const connectTime = 5 * time.Second

//go:embed migrations/*.sql
var migrations embed.FS

// The refusals of Open.
var (
	// ErrNewer means that a newer Agentbox wrote the log.
	ErrNewer = fault.New(fault.Conflict, "log_too_new",
		"a newer version of Agentbox wrote this log; use that version, or restore a backup made with this one")
	// ErrEmpty means that the database holds no log, although there has to be one.
	ErrEmpty = fault.New(fault.Conflict, "log_empty", "the database holds no log, although there was one")
	// ErrAddress means that the address is none of a database.
	ErrAddress = fault.New(fault.Invalid, "store_invalid",
		"the address of the database cannot be used; it is like postgres://user@host:5432/database")
	// ErrForeignKeys means that the keys that are here are not those by which the log is sealed.
	ErrForeignKeys = fault.New(fault.Conflict, "keys_foreign",
		"the log in the database is sealed under other keys than those of this data directory").
		With("the daemons of a database share its keys: move the folders keys and blobs of the first one into a folder that all can reach, " +
			"and name that with --shared for each")
)

// settings are the settings of every connection. A plan that rests on what PostgreSQL has counted so far changes while the log grows; each
// query here has one index that serves it, whatever the log's size.
var settings = map[string]string{
	"application_name": "agentbox", "search_path": schemaName, "client_min_messages": "warning", "statement_timeout": "0", "TimeZone": "UTC",
	// a daemon that was stopped in the middle holds nobody up for long
	"default_transaction_isolation": "read committed", "idle_in_transaction_session_timeout": "10000",
	"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	"enable_bitmapscan": "off", "jit": "off",
}

// configure reads the address.
func configure(o Options, conns int32) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(o.Address)
	if err != nil {
		return nil, ErrAddress // the cause may tell the password
	}
	if !strings.Contains(o.Address, "pool_max_conns") {
		config.MaxConns = conns
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTime
	}
	for name, value := range settings {
		config.ConnConfig.RuntimeParams[name] = value
	}
	config.ConnConfig.OnNotice = nil
	config.AfterConnect = durable
	return config, nil
}

// durable sets the session to durable commits, and refuses a server that does not keep them.
func durable(ctx context.Context, conn *pgx.Conn) error {
	var fsync, full, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		set_config('synchronous_commit',
			CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`).
		Scan(&fsync, &full, &commit)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"fsync": fsync, "full_page_writes": full} {
		if value != "on" {
			return fault.New(fault.Internal, "log_not_durable", "the log cannot be kept safely here: %s of PostgreSQL is %s and has to be on", name,
				value)
		}
	}
	if commit == "off" {
		return fault.New(fault.Internal, "log_not_durable",
			"the log cannot be kept safely here: synchronous_commit of PostgreSQL is off and cannot be changed")
	}
	return nil
}

// Open opens the log in a database, makes it where there is none, and rebuilds the documents whose definition has a new version.
func Open(ctx context.Context, o Options) (*Journal, error) {
	set, err := projection.NewSet(o.Definitions)
	if err != nil {
		return nil, err
	}
	j := newJournal(o, set)
	if err := j.open(ctx); err != nil {
		j.queue.mu.Lock()
		j.queue.closed = true
		j.queue.mu.Unlock()
		return nil, errors.Join(j.db.trouble(err), j.release())
	}
	j.queue.goes(j.listener.listen)
	if j.Together.no != 0 {
		j.queue.goes(j.Together.drop)
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context) error {
	for _, pool := range []struct {
		to    **pgxpool.Pool
		conns int32
	}{{&j.db.reads, readers}, {&j.db.writes, writers}} {
		config, err := configure(j.db.options, pool.conns)
		if err != nil {
			return err
		}
		if *pool.to, err = pgxpool.NewWithConfig(j.db.ctx, config); err != nil {
			return ErrAddress
		}
	}
	if j.db.options.Alone && j.db.options.Member != nil {
		return errors.New("a daemon has the database alone or is a member")
	}
	if j.db.options.Alone || j.db.options.Member != nil {
		if err := j.reign.wait(ctx); err != nil {
			return err
		}
	}
	// One daemon after the other opens, so that the others find the tables of the first one.
	return j.db.inTurn(ctx, func() error {
		if err := j.schema.migrate(ctx); err != nil {
			return err
		}
		if err := ownSchema(ctx, j.db.reads); err != nil {
			return err
		}
		if j.db.options.Alone {
			if err := j.reign.begin(ctx); err != nil {
				return err
			}
		}
		if j.db.options.Member != nil {
			if err := j.Together.join(ctx); err != nil {
				return err
			}
		}
		if j.db.options.Unlock != nil {
			keys, err := j.db.options.Unlock()
			if err != nil {
				return err
			}
			j.db.options.Keys, j.db.seals.Keys = keys, keys
		}
		if err := j.schema.sameKeys(ctx); err != nil {
			return err
		}
		if err := j.schema.holdsKeys(ctx); err != nil {
			return err
		}
		if err := j.folds.open(ctx); err != nil {
			return err
		}
		return j.db.reading(ctx, func(db querier) error { return errors.Join(j.listener.lookAround(ctx, db), j.survey.begin(ctx, db)) })
	})
}

// OpenReadOnly opens a log to look at, beside daemons or without one, as it is at that moment. It appends nothing, waits for nothing, and
// changes nothing in the database.
func OpenReadOnly(ctx context.Context, o Options) (*Journal, error) {
	set, err := projection.NewSet(o.Definitions)
	if err != nil {
		return nil, err
	}
	j := newJournal(o, set)
	j.db.readOnly = true
	if err := j.openReadOnly(ctx); err != nil {
		return nil, errors.Join(j.db.trouble(err), j.Close())
	}
	return j, nil
}

func (j *Journal) openReadOnly(ctx context.Context) error {
	config, err := configure(j.db.options, 1)
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0" // it holds nobody up
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	j.db.view.conn = conn
	version, err := schemaOf(ctx, conn)
	switch {
	case err != nil:
		return err
	case version == 0:
		return ErrEmpty
	case version > schemaVersion:
		return ErrNewer
	}
	// One state of the log serves all reads, so that the log of a working daemon does not look torn.
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM workspaces`)
	return err
}
