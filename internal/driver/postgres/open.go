package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
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
	ErrForeignKeys = fault.New(fault.Conflict, "keys_foreign", "the log in the database is sealed under other keys than those that are here").
			With("the daemons of a database share its keys: move the folders keys and blobs of the first one into a folder that all can reach, " +
			"and name that with --shared for each")
)

// settings are what every connection has. A plan that rests on what PostgreSQL has counted so far changes while the log grows; each query
// here has one index that serves it, whatever the log's size.
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

// durable sees to it that what is committed lasts, and reads it back.
func durable(ctx context.Context, conn *pgx.Conn) error {
	var fsync, full, commit string
	err := conn.QueryRow(ctx, `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`).Scan(&fsync, &full, &commit)
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
		j.mu.Lock()
		j.closed = true
		j.mu.Unlock()
		return nil, errors.Join(j.trouble(err), j.release())
	}
	j.goes(j.listen)
	if j.member != 0 {
		j.goes(j.drop)
	}
	return j, nil
}

func (j *Journal) open(ctx context.Context) error {
	for _, pool := range []struct {
		to    **pgxpool.Pool
		conns int32
	}{{&j.reads, readers}, {&j.writes, writers}} {
		config, err := configure(j.options, pool.conns)
		if err != nil {
			return err
		}
		if *pool.to, err = pgxpool.NewWithConfig(j.ctx, config); err != nil {
			return ErrAddress
		}
	}
	if j.options.Alone && j.options.Member != nil {
		return errors.New("a daemon has the database alone or is a member")
	}
	if j.options.Alone || j.options.Member != nil {
		if err := j.wait(ctx); err != nil {
			return err
		}
	}
	// One daemon after the other opens: what the first one makes the others find.
	return j.inTurn(ctx, func() error {
		if err := j.migrate(ctx); err != nil {
			return err
		}
		if err := ownSchema(ctx, j.reads); err != nil {
			return err
		}
		if j.options.Alone {
			if err := j.begin(ctx); err != nil {
				return err
			}
		}
		if j.options.Member != nil {
			if err := j.join(ctx); err != nil {
				return err
			}
		}
		if j.options.Unlock != nil {
			keys, err := j.options.Unlock()
			if err != nil {
				return err
			}
			j.options.Keys, j.seals.Keys = keys, keys
		}
		if err := j.sameKeys(ctx); err != nil {
			return err
		}
		if err := j.holdsKeys(ctx); err != nil {
			return err
		}
		if err := j.openProjections(ctx); err != nil {
			return err
		}
		return j.reading(ctx, func(db querier) error { return errors.Join(j.lookAround(ctx, db), j.survey.begin(ctx, db)) })
	})
}

// turn is the advisory lock of opening.
const turn = 0x41676278 // "Agbx"

func (j *Journal) inTurn(ctx context.Context, do func() error) (err error) {
	conn, err := pgx.ConnectConfig(ctx, j.reads.Config().ConnConfig) // the lock ends with it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, turn); err != nil {
		return err
	}
	return do()
}

// migrate brings the tables to this program's version.
func (j *Journal) migrate(ctx context.Context) error {
	version, err := schemaOf(ctx, j.reads)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return ErrNewer
	case version == schemaVersion:
		return nil
	case version == 0 && j.options.Existing:
		return ErrEmpty
	}
	if _, err := j.writes.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*j.writes.Config().ConnConfig)
	steps, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return errors.Join(err, db.Close())
	}
	_, err = steps.Up(ctx)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("make the tables of the log: %w", err)
	}
	return nil
}

// schemaOf returns the version of the tables, 0 for a database without any.
func schemaOf(ctx context.Context, db querier) (version int64, err error) {
	var there bool
	if err := db.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, schemaName+".goose_db_version").Scan(&there); err != nil || !there {
		return 0, err
	}
	err = db.QueryRow(ctx, `SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied`).Scan(&version)
	return version, err
}

// keyringTree is the tree of which one key shows that two daemons have the same keys.
const keyringTree = "database"

// sameKeys refuses keys that are not those by which the log is sealed; the first daemon decides which those are.
func (j *Journal) sameKeys(ctx context.Context) error {
	var sealed *bool
	var g *int64
	var proof []byte
	if err := j.reads.QueryRow(ctx, `SELECT sealed, generation, proof FROM log`).Scan(&sealed, &g, &proof); err != nil {
		return err
	}
	keys := j.options.Keys
	if keys == nil && (sealed == nil || !*sealed) {
		_, err := j.writes.Exec(ctx, `UPDATE log SET sealed = false`)
		return err
	}
	if sealed == nil || !*sealed {
		planted, err := keys.Plant(keyringTree)
		if err != nil {
			return err
		}
		key, err := keys.Key(keyringTree, planted, 1)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(key[:])
		_, err = j.writes.Exec(ctx, `UPDATE log SET sealed = true, generation = $1, proof = $2`, generation(planted), sum[:])
		return err
	}
	if keys == nil || g == nil {
		return vault.ErrMissing
	}
	key, err := keys.Key(keyringTree, vault.Generation(*g), 1)
	if sum := sha256.Sum256(key[:]); errors.Is(err, vault.ErrMissing) || err == nil && string(sum[:]) != string(proof) {
		return ErrForeignKeys
	}
	return err
}

// holdsKeys refuses a log whose keys are not here: what was decided in it would be unknown.
func (j *Journal) holdsKeys(ctx context.Context) error {
	return j.reading(ctx, func(db querier) error {
		rows, err := db.Query(ctx, `SELECT w.name, b.seq, b.generation FROM workspaces w CROSS JOIN LATERAL
			(SELECT seq, generation FROM bodies WHERE workspace = w.no ORDER BY seq DESC LIMIT 1) b WHERE b.generation IS NOT NULL`)
		if err != nil {
			return err
		}
		var name string
		var seq uint64
		var g int64
		_, err = pgx.ForEachRow(rows, []any{&name, &seq, &g}, func() error {
			if j.options.Keys == nil {
				return vault.ErrMissing
			}
			err := j.options.Keys.Holds(eventTree(id.Workspace(name)), vault.Generation(g), seq)
			if errors.Is(err, vault.ErrForgotten) {
				err = nil
			}
			return err
		})
		return err
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
	j.readOnly = true
	if err := j.openReadOnly(ctx); err != nil {
		return nil, errors.Join(j.trouble(err), j.Close())
	}
	return j, nil
}

func (j *Journal) openReadOnly(ctx context.Context) error {
	config, err := configure(j.options, 1)
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "0" // it holds nobody up
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	j.view.conn = conn
	version, err := schemaOf(ctx, conn)
	switch {
	case err != nil:
		return err
	case version == 0:
		return ErrEmpty
	case version > schemaVersion:
		return ErrNewer
	}
	// Everything is read from one state of the log, so that a daemon that goes on writing does not make it look torn.
	_, err = conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM workspaces`)
	return err
}
