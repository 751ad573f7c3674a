package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk/backup"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/vault"
)

// Kept counts the content of a backup.
type Kept = backup.Summary

// isKey reports whether a file of a data directory gives its reader power: to act, to sign, or to read sealed content.
func isKey(name string) bool {
	return name == keyFile || name == signingFile || name == claimsFile || name == permitFile || name == authFile || name == bootstrapFile ||
		name == keysDir || strings.HasPrefix(name, keysDir+"/")
}

// Backup keeps a data directory as one file, which appears as a whole or not at all. A daemon may run on it meanwhile: the log is that of
// one moment, and what it names was there before. Keys stay out of it unless withKeys says otherwise.
func Backup(ctx context.Context, c Config, target string, withKeys bool, progress func(backup.Summary)) (sum backup.Summary, err error) {
	if err := c.offFile("a backup",
		"dump the database with pg_dump, leaving out the documents, which are folded anew (--exclude-table-data for agentbox.documents, "+
			"agentbox.entries and agentbox.projections), "+
			"and copy the data directory and the shared folder, while no daemon runs"); err != nil {
		return sum, err
	}
	if err := c.inFile(); err != nil {
		return sum, err
	}
	source := filepath.Join(c.DataDir, logFile)
	if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
		return sum, fault.New(fault.NotFound, "log_not_found", "there is no log in %s; name the data directory with --data", c.DataDir)
	}
	if _, err := os.Lstat(target); err == nil {
		return sum, fault.New(fault.Conflict, "file_exists", "%s exists already", target).With("name another file")
	}
	scratch, err := os.MkdirTemp(filepath.Dir(target), ".agentbox-backup-*")
	if err != nil {
		return sum, fault.Wrap(err, fault.Unavailable, "file_unwritable", "%s cannot be written", target)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	// The checkpoints come first: the log is never older than they are.
	replace, err := checkpointsOf(ctx, c.DataDir, scratch)
	if err != nil {
		return sum, err
	}
	copied := filepath.Join(scratch, logFile)
	replace[logFile] = copied
	if err := sqlite.Snapshot(ctx, logOptions(source), copied); err != nil {
		return sum, err
	}
	out, err := os.OpenFile(filepath.Join(scratch, "backup"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return sum, err
	}
	within, inside := below(c.DataDir, scratch), below(c.DataDir, target)
	sum, err = backup.Write(ctx, out, c.DataDir, backup.Options{
		Header:  backup.Header{Made: Clock{}.Now().UTC(), Program: Version, Keys: withKeys},
		Replace: replace,
		Leave: func(name string) bool {
			if isCheckpoint(name) && replace[name] == "" {
				return true // it is newer than the log
			}
			return name == within || name == inside || leave(name) || !withKeys && isKey(name)
		},
		Progress: progress,
	})
	if err == nil {
		err = out.Sync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return sum, err
	}
	if err := os.Link(out.Name(), target); err != nil { // fails where another has come first
		return sum, fault.Wrap(err, fault.Conflict, "file_unwritable", "%s cannot be written", target)
	}
	return sum, nil
}

// leave reports whether a file is of the running daemon or of work that is not finished, and of no use elsewhere.
func leave(name string) bool {
	parts := strings.Split(name, "/")
	switch first := parts[0]; {
	case first == stateFile, first == noteFile, first == datadir.LockFile, strings.HasPrefix(first, logFile+"-"),
		strings.HasPrefix(first, searchFile), strings.HasPrefix(first, logFile+".lock"), strings.HasSuffix(first, ".new"):
		return true
	}
	last := len(parts) - 1
	if parts[0] == proofsDir && strings.HasSuffix(parts[last], ".new") {
		return true
	}
	return (last == 2 || last == 3) && parts[last-1] == "staging" || last == 2 && parts[1] == ".trash"
}

// resign gives up the checkpoints of a restored data directory that the key which signed them did not come with: its daemon signs by a
// key of its own.
func resign(ctx context.Context, c Config) error {
	if _, err := os.Stat(filepath.Join(c.DataDir, signingFile)); err == nil {
		return nil
	}
	p, err := OpenProofs(c, "")
	if err != nil {
		return err
	}
	_, err = p.abandon(ctx, "restored from a backup that holds no keys")
	return err
}

// isCheckpoint reports whether a file below the data directory is the last checkpoint of a workspace.
func isCheckpoint(name string) bool {
	ok, err := path.Match(proofsDir+"/*/checkpoint", name)
	return ok && err == nil
}

// checkpointsOf copies the checkpoints as they are now, and returns which file stands for which.
func checkpointsOf(ctx context.Context, dir, scratch string) (map[string]string, error) {
	store := trees.Open(filepath.Join(dir, proofsDir), Clock{})
	workspaces, err := store.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	copies := map[string]string{}
	for _, ws := range workspaces {
		signed, err := store.Checkpoint(ctx, ws)
		if err != nil {
			return nil, err
		}
		file := filepath.Join(scratch, "checkpoint-"+string(ws))
		if err := os.WriteFile(file, signed, 0o600); err != nil {
			return nil, err
		}
		copies[path.Join(proofsDir, string(ws), "checkpoint")] = file
	}
	return copies, nil
}

// below returns the path of a file as it is named below a folder, or "" for one that is not below it.
func below(dir, name string) string {
	name, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	rel, err := filepath.Rel(dir, name)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	return filepath.ToSlash(rel)
}

// logOptions are the options of a log without its keys.
func logOptions(source string) sqlite.Options {
	return sqlite.Options{Path: source, Definitions: Definitions(), Clock: Clock{}, IDs: id.NewSource(Clock{}.Now, rand.Reader),
		Entropy: rand.Reader}
}

// Restore makes a data directory from a backup, proves its log, and only then gives it its name. The directory must not exist yet, or must
// be empty. Keys is the folder of the keys that seal the log, if they are not in the backup. Without them the log can be verified and its
// headers read, but no daemon starts on it. Data that were redacted since the backup are gone in it too, because their keys are.
func Restore(ctx context.Context, c Config, source, keys string, progress func(backup.Summary)) (sum backup.Summary, audits []Audit,
	err error) {
	if err := c.offFile("a backup to be restored",
		"load a dump of the database with psql or pg_restore, and put the data directory back beside it"); err != nil {
		return sum, nil, err
	}
	if left, err := os.ReadDir(c.DataDir); err == nil && len(left) > 0 {
		return sum, nil, fault.New(fault.Conflict, "data_directory_in_use", "%s is not empty",
			c.DataDir).With("name another data directory with --data, or move this one away")
	}
	in, err := os.Open(source)
	if err != nil {
		return sum, nil, fault.Wrap(err, fault.NotFound, "file_unreadable", "%s cannot be read", source)
	}
	defer in.Close()
	parent := filepath.Dir(c.DataDir)
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return sum, nil, fault.Wrap(err, fault.Unavailable, "file_unwritable", "%s cannot be made", parent)
	}
	scratch, err := os.MkdirTemp(parent, ".agentbox-restore-*")
	if err != nil {
		return sum, nil, fault.Wrap(err, fault.Unavailable, "file_unwritable", "%s cannot be written", parent)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	if sum, err = backup.Restore(ctx, in, scratch, progress); err != nil {
		return sum, nil, err
	}
	proved := c
	proved.DataDir = scratch
	if err := bringKeys(keys, scratch); err != nil {
		return sum, nil, err
	}
	if err := fold(ctx, proved); err != nil {
		return sum, nil, err
	}
	if audits, err = Verify(ctx, proved); err != nil {
		return sum, audits, err
	}
	for _, a := range audits {
		if !a.Log.OK || !a.Documents.OK || len(a.Filed)+len(a.Schema)+len(a.Noted) > 0 {
			return sum, audits, fault.New(fault.Invalid, "log_not_intact", "the log in the backup is not intact; nothing was restored").With(
				"run this on the directory that was backed up: agentbox audit verify")
		}
	}
	if sealed := slices.ContainsFunc(audits, func(a Audit) bool { return a.Documents.Unchecked }); sealed {
		// Nothing can be recorded in it, and its last checkpoint proves it.
	} else if err := resign(ctx, proved); err != nil {
		return sum, audits, err
	}
	if err := os.Remove(c.DataDir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return sum, audits, fault.Wrap(err, fault.Unavailable, "file_unwritable", "%s cannot be replaced", c.DataDir)
	}
	return sum, audits, os.Rename(scratch, c.DataDir)
}

// BringKeys brings the keys of its log to a data directory that was restored without them.
func BringKeys(ctx context.Context, c Config, keys string) (audits []Audit, err error) {
	if err := c.offFile("bringing keys", "copy the folder keys into the data directory or the shared one"); err != nil {
		return nil, err
	}
	held, err := datadir.Acquire(c.DataDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.Close()) }()
	if err := bringKeys(keys, c.DataDir); err != nil {
		return nil, err
	}
	if err := fold(ctx, c); err != nil {
		return nil, err
	}
	if audits, err = Verify(ctx, c); err != nil {
		return audits, err
	}
	return audits, resign(ctx, c)
}

// bringKeys copies the keys of a log into a data directory, from a folder of keys or the data directory that it lies in, and makes sure
// that none of them seals anything new: another copy of the log may seal under the same ones.
func bringKeys(from, dir string) error {
	to := filepath.Join(dir, keysDir)
	if from != "" {
		if info, err := os.Stat(filepath.Join(from, keysDir)); err == nil && info.IsDir() {
			from = filepath.Join(from, keysDir)
		}
		if err := keyring.Copy(from, to); err != nil {
			return err
		}
	}
	if _, err := os.Stat(to); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return keyring.Renew(to, rand.Reader)
}

// fold makes the documents of a log that has its keys; without them there are none.
func fold(ctx context.Context, c Config) error {
	keys, err := keyring.Open(filepath.Join(c.DataDir, keysDir), rand.Reader)
	if err != nil {
		return err
	}
	options := logOptions(filepath.Join(c.DataDir, logFile))
	options.Keys = keys
	log, err := sqlite.Open(ctx, options)
	if errors.Is(err, vault.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	return log.Close()
}
