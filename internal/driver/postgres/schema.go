package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"agentbox/internal/domain/id"
	"agentbox/internal/kernel/vault"
)

// schema makes the tables of the log, and compares the keys of this daemon with those of the log.
type schema struct{ db *database }

// migrate brings the tables to this program's version.
func (s *schema) migrate(ctx context.Context) error {
	version, err := schemaOf(ctx, s.db.reads)
	switch {
	case err != nil:
		return err
	case version > schemaVersion:
		return ErrNewer
	case version == schemaVersion:
		return nil
	case version == 0 && s.db.options.Existing:
		return ErrEmpty
	}
	if _, err := s.db.writes.Exec(ctx, `CREATE SCHEMA IF NOT EXISTS `+schemaName); err != nil {
		return err
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*s.db.writes.Config().ConnConfig)
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

// sameKeys refuses keys that are not those by which the log is sealed; the first daemon decides which those are.
func (s *schema) sameKeys(ctx context.Context) error {
	var sealed *bool
	var g *int64
	var proof []byte
	if err := s.db.reads.QueryRow(ctx, `SELECT sealed, generation, proof FROM log`).Scan(&sealed, &g, &proof); err != nil {
		return err
	}
	keys := s.db.options.Keys
	if keys == nil && (sealed == nil || !*sealed) {
		_, err := s.db.writes.Exec(ctx, `UPDATE log SET sealed = false`)
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
		_, err = s.db.writes.Exec(ctx, `UPDATE log SET sealed = true, generation = $1, proof = $2`, generation(planted), sum[:])
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

// keyringTree is the tree of which one key shows that two daemons have the same keys.
const keyringTree = "database"

// holdsKeys refuses a log whose keys are not here: its decisions would be unknown.
func (s *schema) holdsKeys(ctx context.Context) error {
	return s.db.reading(ctx, func(db querier) error {
		rows, err := db.Query(ctx, `SELECT w.name, b.seq, b.generation FROM workspaces w CROSS JOIN LATERAL
			(SELECT seq, generation FROM bodies WHERE workspace = w.no ORDER BY seq DESC LIMIT 1) b WHERE b.generation IS NOT NULL`)
		if err != nil {
			return err
		}
		var name string
		var seq uint64
		var g int64
		_, err = pgx.ForEachRow(rows, []any{&name, &seq, &g}, func() error {
			if s.db.options.Keys == nil {
				return vault.ErrMissing
			}
			err := s.db.options.Keys.Holds(eventTree(id.Workspace(name)), vault.Generation(g), seq)
			if errors.Is(err, vault.ErrForgotten) {
				err = nil
			}
			return err
		})
		return err
	})
}
