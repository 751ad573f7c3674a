package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/service/auditor"
)

// Audit is the verification of one workspace.
type Audit struct {
	Log       auditor.Report
	Documents auditor.DocumentsReport
	Contents  auditor.ContentsReport
}

// Verify proves the log of a data directory with nothing but its files. It writes nothing, and a daemon may run on it meanwhile.
func Verify(ctx context.Context, c Config) (audits []Audit, err error) {
	path := filepath.Join(c.DataDir, logFile)
	if info, err := regular(path); err != nil {
		return nil, err
	} else if info == nil {
		return nil, fault.New(fault.NotFound, "log_not_found", "there is no log in %s; name the data directory with --data", c.DataDir)
	}
	log, err := sqlite.OpenReadOnly(ctx, sqlite.Options{
		Path: path, Definitions: Definitions(), Clock: Clock{}, IDs: id.NewSource(Clock{}.Now, rand.Reader), Entropy: rand.Reader,
	})
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	workspaces, err := log.Workspaces(ctx)
	if err != nil {
		return nil, err
	}
	blobs := disk.LookAtBlobs(filepath.Join(c.DataDir, blobsDir))
	for _, ws := range workspaces {
		report, err := auditor.Verify(ctx, log, ws)
		if err != nil {
			return audits, err
		}
		documents, err := auditor.VerifyProjections(ctx, log, log, Definitions(), ws)
		if err != nil && (report.OK || ctx.Err() != nil) {
			return audits, err
		} // where the log is broken its documents may not be told, and what broke it is in the report
		contents, err := auditor.VerifyContents(ctx, log, blobs, ws)
		if err != nil && (report.OK || ctx.Err() != nil) {
			return audits, err
		}
		audits = append(audits, Audit{Log: report, Documents: documents, Contents: contents})
	}
	return audits, nil
}
