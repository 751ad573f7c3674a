package app

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Store keeps the log of a daemon and the documents that are folded from it: in a file of the data directory, or in a database.
type Store interface {
	journal.Journal
	journal.Redactor
	journal.Adopter
	journal.Keyed
	journal.Hasher
	projection.Store
	projection.Lender
	projection.Indexed

	// Current returns those of the definitions whose documents are kept in their version.
	Current(ctx context.Context) ([]projection.Definition, error)
	// Misfiled returns at most limit events that are filed under something else than their records say.
	Misfiled(ctx context.Context, ws id.Workspace, limit int) ([]journal.Misfiled, error)
	// Foreign returns what of the database's schema is not as the program makes it, such as a trigger that somebody added, each as a sentence.
	Foreign(ctx context.Context) ([]string, error)
	// Writable returns nil while the log takes events, else why it does not.
	Writable() error
	// Mend opens a log again that a write error has shut, where that is safe.
	Mend(ctx context.Context) error
	Close() error
}

var (
	_ Store = (*sqlite.Journal)(nil)
	_ Store = (*postgres.Journal)(nil)
)

// inDatabase reports whether the log lies in a database instead of the data directory.
func (c Config) inDatabase() bool { return c.Store != "" }

// isDatabase reports whether a store is the address of a database. It is never shown, for it may hold a password.
func isDatabase(store string) bool {
	return strings.HasPrefix(store, "postgres://") || strings.HasPrefix(store, "postgresql://")
}

// shared returns where something lies that the daemons of a database share.
func (c Config) shared(name string) string {
	if c.Shared != "" {
		return filepath.Join(c.Shared, name)
	}
	return filepath.Join(c.DataDir, name)
}

func (c Config) keys() string  { return c.shared(keysDir) }
func (c Config) blobs() string { return c.shared(blobsDir) }

// offFile refuses, for a log in a database, a command that needs a log in a file.
func (c Config) offFile(what, instead string) error {
	if !c.inDatabase() {
		return nil
	}
	return fault.New(fault.Invalid, "store_unsupported", "%s is of a log in the data directory, and this one lies in a database",
		what).With(instead)
}

// inFile refuses a configuration without a database for a data directory whose log lies in one.
func (c Config) inFile() error {
	if c.inDatabase() {
		return nil
	}
	d := &directory{path: c.DataDir}
	if err := d.read(); err != nil || d.note.Store == "" {
		return err
	}
	return fault.New(fault.Conflict, "store_changed", "the log of %s lies in a database",
		c.DataDir).With("name it with --store or AGENTBOX_STORE")
}

// openStore opens the log for the daemon.
func (a *App) openStore(ctx context.Context, ids *id.Source) (err error) {
	if !a.Config.inDatabase() {
		if err := a.unlock(); err != nil {
			return err
		}
		a.Log, err = openFile(ctx, sqlite.Options{
			Path: a.path(logFile), Definitions: Definitions(), Clock: a.clock, IDs: ids, Entropy: rand.Reader,
			Existing: a.dir.used, Keys: a.keys, Committed: a.metrics.Committed,
		})
		return err
	}
	o := postgres.Options{
		Address: a.Config.Store, Definitions: Definitions(), Clock: a.clock, IDs: ids, Entropy: rand.Reader, Existing: a.dir.note.First != "",
		Alone: !a.Config.together(), Committed: a.metrics.Committed,
		Waits: func() {
			a.logger.Warn("another daemon has the database; this one stands by", "code", "store_awaited")
			if err := a.does("waits for the database, which another daemon has"); err != nil {
				a.logger.Error("say what the daemon does", "code", "state_not_written", "error", err)
			}
		},
		Unlock: func() (vault.Keys, error) { err := a.unlock(); return a.keys, err },
	}
	if a.Config.together() {
		o.Unlock = func() (vault.Keys, error) { err := a.together.joins(); return a.keys, err }
		o.Member = &postgres.Membership{Node: a.together.node, Address: a.together.advertised(), Dropped: a.together.dropped}
	}
	j, err := postgres.Open(ctx, o)
	if err != nil {
		return err
	}
	if a.Log = j; a.Config.together() {
		a.together.member = j
	}
	a.reign = j.Reign
	return nil
}

func openFile(ctx context.Context, o sqlite.Options) (Store, error) {
	j, err := sqlite.Open(ctx, o)
	if err != nil {
		return nil, err // and not a Store that holds nothing
	}
	return j, nil
}

// unlock opens the keys of a daemon that has its log alone.
func (a *App) unlock() error {
	keys, err := keyring.Open(a.Config.keys(), rand.Reader)
	a.keys = keys
	return err
}

// lookAtStore opens the log to look at, beside a daemon or without one.
func lookAtStore(ctx context.Context, c Config) (Store, error) {
	keys, err := keyring.OpenReadOnly(c.keys())
	if err != nil {
		return nil, err
	}
	if c.inDatabase() {
		o := databaseOptions(c)
		o.Keys = keys
		j, err := postgres.OpenReadOnly(ctx, o)
		if err != nil {
			return nil, err
		}
		return j, nil
	}
	o := logOptions(filepath.Join(c.DataDir, logFile))
	o.Keys = keys
	j, err := sqlite.OpenReadOnly(ctx, o)
	if err != nil {
		return nil, err
	}
	return j, nil
}

// databaseOptions are the options of a log in a database, without its keys.
func databaseOptions(c Config) postgres.Options {
	return postgres.Options{Address: c.Store, Definitions: Definitions(), Clock: Clock{}, IDs: id.NewSource(Clock{}.Now, rand.Reader),
		Entropy: rand.Reader}
}

// writeStore opens the log for an operator's own work, while no daemon runs. It does not wait for the database: a daemon that has it is an
// error.
func writeStore(ctx context.Context, c Config, existing bool, keys vault.Keys) (Store, error) {
	if !c.inDatabase() {
		o := logOptions(filepath.Join(c.DataDir, logFile))
		o.Existing, o.Keys = existing, keys
		return openFile(ctx, o)
	}
	ctx, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	o := databaseOptions(c)
	o.Existing, o.Keys, o.Alone = existing, keys, true
	o.Waits = func() {
		refuse(fault.New(fault.Conflict, "data_in_use", "a daemon has the database").With("stop it first, and those that stand by"))
	}
	j, err := postgres.Open(ctx, o)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return j, nil
}

// holdStore ends the daemon when another one has taken its database.
func (a *App) holdStore(ctx context.Context) error { return a.reign(ctx) }
