package redaction

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
)

// ErrSecretInHeader refuses a record that has a secret where nothing can be taken out.
var ErrSecretInHeader = fault.New(fault.Invalid, "secret_in_header",
	"an id or a key of the request holds a secret, and those are recorded as they are; choose another one")

// verbatim lists the members of event data whose bytes count. A secret in them is reported and marked, but not removed:
//   - what a person approves is shown to them in full, bound by a hash, and done as shown;
//   - a policy is named by its hash;
//   - an environment is what commands get: its secret values were masked before, and what is sealed cannot be read;
//   - a result is what an operation found, and an agent that writes back what it read must not write a gap.
var verbatim = map[string][]string{
	policy.ApprovalRequestedType: {"action", "title", "request", "question"},
	policy.BundlePinnedType:      {"bundle"},
	space.EventCreated:           {"env", "env_secrets"},
	space.EventUpdated:           {"env", "env_secrets"},
	run.EventSucceeded:           {"result"},
	run.EventErred:               {"result"},
	run.EventUnknown:             {"result"},
}

// Log is a journal that removes secrets from the events that it records. Make it with Scrub.
type Log struct {
	journal.Journal
	system id.Principal
	ids    *id.Source
}

var (
	_ journal.Journal = (*Log)(nil)
	_ journal.Hasher  = (*Log)(nil)
)

// Scrub returns a journal that removes secrets from everything that it records. For each event that had secrets, it also records an event
// of leak.EventDetected in the name of system.
func Scrub(j journal.Journal, system id.Principal, ids *id.Source) *Log { return &Log{j, system, ids} }

// Hashes implements journal.Hasher, as well as the journal underneath can.
func (l *Log) Hashes(ctx context.Context, ws id.Workspace, from uint64, limit int) ([]event.Digest, error) {
	return journal.Hashes(ctx, l.Journal, ws, from, limit)
}

// Append implements journal.Journal. It reports the secrets in the same batch, after the caller's events, because a cause is always
// earlier. The receipt has the caller's events only, and so has journal.Recall. If the batch has no room for all reports, the headers still
// say which events held secrets.
func (l *Log) Append(ctx context.Context, b event.Batch) (event.Receipt, error) {
	var told []event.Draft
	drafts := slices.Clone(b.Drafts)
	for i, d := range drafts {
		if leak.InHeader(d) {
			return event.Receipt{}, ErrSecretInHeader
		}
		clean, about, leaked := leak.Clean(d, l.system, func() id.Event { return id.NewEvent(l.ids) })
		if !leaked {
			continue
		}
		var err error
		if drafts[i], err = spared(d, clean); err != nil {
			return event.Receipt{}, err
		}
		if len(told)+len(drafts) < journal.MaxBatch {
			told = append(told, about)
		}
	}
	said := func(d event.Draft) bool { return d.Type == leak.EventDetected } // the caller's own reports stand after its events as well
	for _, d := range drafts {
		if said(d) {
			told = append(told, d)
		}
	}
	b.Drafts = slices.Concat(slices.DeleteFunc(drafts, said), told)
	// Hook phase: Audit.
	receipt, err := l.Journal.Append(ctx, b)
	receipt.Events = journal.Untold(receipt.Events)
	return receipt, err
}

// spared returns a draft whose secrets were taken out, with those members of its data that count as they were.
func spared(d, clean event.Draft) (event.Draft, error) {
	members := verbatim[d.Type]
	if members == nil {
		return clean, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(d.Data, &all); err != nil {
		return clean, fmt.Errorf("read the data of %s: %w", d.Type, err)
	}
	rest := maps.Clone(all)
	for _, name := range members {
		delete(rest, name)
	}
	raw, err := object(rest)
	if err != nil {
		return clean, err
	}
	scanned, found := leak.Scan(raw)
	if len(found) == 0 {
		clean.Data, clean.Redaction = d.Data, d.Redaction // it says that it holds secrets, and none was taken out
		return clean, nil
	}
	rest = nil
	if err := json.Unmarshal(scanned, &rest); err != nil {
		return clean, fmt.Errorf("read the data of %s: %w", d.Type, err)
	}
	for _, name := range members {
		if value, ok := all[name]; ok {
			rest[name] = value
		}
	}
	clean.Data, err = object(rest)
	return clean, err
}

// object writes the members of an object as they are.
func object(members map[string]json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(members)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}
