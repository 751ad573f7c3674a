package journal

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Limits of the fields of an event.
const (
	MaxBatchBytes   = 64 << 20 // bytes of the data of one batch together
	MaxTextBytes    = 256      // bytes of one text of the envelope: an id, a key, a name
	MaxContextBytes = 64 << 10 // bytes of one of the contexts
	MaxTypes        = 20       // event types in one query
)

// Check returns the batch with its contexts in canonical form, or a fault that names the draft and its error. A journal calls it first. It
// reads only the batch.
func Check(b event.Batch) (event.Batch, error) {
	if _, err := id.ParseWorkspace(string(b.Workspace)); err != nil {
		return b, fault.Wrap(err, fault.Invalid, "workspace_invalid", "the batch names no valid workspace")
	}
	if len(b.Drafts) == 0 {
		return b, fault.New(fault.Invalid, "batch_empty", "a batch holds at least one event")
	}
	if n := len(b.Drafts) + len(b.Streams) + len(b.Documents); len(b.Drafts) > MaxBatch || n > 3*MaxBatch {
		return b, fault.New(fault.Exhausted, "batch_too_large",
			"a batch holds at most %d events and twice as many expectations; this one has %d in all", MaxBatch, n)
	}
	if err := checkText("the batch's key", b.Key); err != nil {
		return b, err
	}
	if b.Key != "" && b.Digest.IsZero() {
		return b, fault.New(fault.Invalid, "digest_missing", "a batch with a key states the digest of its command")
	}
	total := 0
	keys := map[string]bool{}
	for i := range b.Drafts {
		if err := checkDraft(b.Workspace, &b.Drafts[i]); err != nil {
			return b, fmt.Errorf("event %d of the batch: %w", i+1, err)
		}
		total += len(b.Drafts[i].Data)
		if key := b.Drafts[i].IdempotencyKey; key != "" {
			if keys[key] {
				return b, fmt.Errorf("event %d of the batch: %w", i+1, ErrKeyConflict)
			}
			keys[key] = true
		}
	}
	if total > MaxBatchBytes {
		return b, fault.New(fault.Exhausted, "batch_too_large", "the data of one batch has at most %d bytes; this one has %d", MaxBatchBytes,
			total)
	}
	return withCanonicalContexts(b)
}

func checkDraft(ws id.Workspace, d *event.Draft) error {
	if !validType(d.Type) {
		return fault.New(fault.Invalid, "event_type_invalid",
			"%.64q is not an event type: two to four words of a-z, 0-9 and _ with dots between, as in run.claimed", d.Type)
	}
	if d.Version < 1 {
		return fault.New(fault.Invalid, "event_version_invalid", "event_version is 1 or more, not %d", d.Version)
	}
	if d.Workspace != ws {
		return fault.New(fault.Invalid, "workspace_mismatch", "an event of another workspace than its batch's")
	}
	if d.Stream != event.RoomStream(ws, d.Room) {
		return fault.New(fault.Invalid, "stream_mismatch", "an event belongs to its room's stream, or to its workspace's where it has no room")
	}
	if d.ID != "" && !isUUID(string(d.ID)) {
		return fault.New(fault.Invalid, "event_id_invalid", "%.64q is not a UUID in lower case", d.ID)
	}
	if y := d.OccurredAt.Year(); !d.OccurredAt.IsZero() && (y < 1970 || y > 9999) {
		return fault.New(fault.Invalid, "occurred_at_invalid", "occurred_at lies in a year from 1970 to 9999")
	}
	if err := checkWho(d); err != nil {
		return err
	}
	for _, t := range []struct{ name, text string }{
		{"mission_id", d.Mission}, {"room_id", string(d.Room)}, {"thread_id", string(d.Thread)}, {"run_id", string(d.Run)},
		{"step_id", string(d.Step)}, {"entity_type", d.EntityType}, {"entity_id", d.EntityID}, {"correlation_id", string(d.Correlation)},
		{"causation_id", string(d.Causation)}, {"idempotency_key", d.IdempotencyKey},
	} {
		if err := checkText(t.name, t.text); err != nil {
			return err
		}
	}
	if (d.EntityType == "") != (d.EntityID == "") {
		return fault.New(fault.Invalid, "entity_invalid", "entity_type and entity_id are given together or not at all")
	}
	return checkData(d.Data)
}

func checkWho(d *event.Draft) error {
	switch d.Actor.Type {
	case id.User, id.Agent, id.Service:
	default:
		return fault.New(fault.Invalid, "actor_invalid", "actor_type is user, agent or service, not %.64q", d.Actor.Type)
	}
	if d.Actor.ID == "" {
		return fault.New(fault.Invalid, "actor_invalid", "an event says who acted: actor_id is empty")
	}
	if err := checkText("actor_id", d.Actor.ID); err != nil {
		return err
	}
	// A person or a service may hand in what an agent says; nobody else acts for another.
	kind := d.Principal.Kind()
	if d.Principal != "" && kind != d.Actor.Type && (d.Actor.Type != id.Agent || kind == "") {
		return fault.New(fault.Invalid, "actor_invalid", "actor_principal_id is not a principal of type %s", d.Actor.Type)
	}
	switch d.Zone {
	case event.Sandbox, event.Supervised, event.HighStakes:
	default:
		return fault.New(fault.Invalid, "zone_invalid", "zone is sandbox, supervised or high_stakes, not %.64q", d.Zone)
	}
	switch d.Redaction {
	case event.RedactNone, event.RedactPartial, event.RedactFull:
	default:
		return fault.New(fault.Invalid, "redaction_level_invalid", "redaction_level is none, partial or full, not %.64q", d.Redaction)
	}
	return nil
}

func checkData(data json.RawMessage) error {
	if len(data) > MaxDataBytes {
		return fault.New(fault.Exhausted, "data_too_large", "the data of one event has at most %d bytes, not %d; store larger content as a blob",
			MaxDataBytes, len(data))
	}
	if !isObject(data) {
		return fault.New(fault.Invalid, "data_invalid", "the data of an event is a JSON object in UTF-8")
	}
	return nil
}

// checkText refuses what could forge a line or a field where the text is shown: control characters, broken UTF-8, and excess.
func checkText(name, text string) error {
	if len(text) > MaxTextBytes {
		return fault.New(fault.Exhausted, "text_too_long", "%s has at most %d bytes, not %d", name, MaxTextBytes, len(text))
	}
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) {
		return fault.New(fault.Invalid, "text_invalid", "%s is UTF-8 without control characters", name)
	}
	return nil
}

// withCanonicalContexts returns a batch of its own drafts, for the caller's are not ours to change.
func withCanonicalContexts(b event.Batch) (event.Batch, error) {
	drafts := make([]event.Draft, len(b.Drafts))
	copy(drafts, b.Drafts)
	b.Drafts = drafts
	for i := range drafts {
		d := &drafts[i]
		for _, c := range []struct {
			name string
			raw  *json.RawMessage
		}{{"policy_context", &d.PolicyContext}, {"model_context", &d.ModelContext}, {"display", &d.Display}} {
			if len(*c.raw) == 0 {
				*c.raw = nil
				continue
			}
			if len(*c.raw) > MaxContextBytes {
				return b, fault.New(fault.Exhausted, "context_too_large", "%s has at most %d bytes, not %d", c.name, MaxContextBytes, len(*c.raw))
			}
			if !isObject(*c.raw) {
				return b, fault.New(fault.Invalid, "context_invalid", "%s is a JSON object in UTF-8", c.name)
			}
			canonical, err := policy.Canonicalize(*c.raw)
			if err != nil {
				return b, fmt.Errorf("%s of event %d of the batch: %w", c.name, i+1, err)
			}
			*c.raw = canonical
		}
	}
	return b, nil
}

// Check returns the query with its limit filled in, or a fault that names the error. A journal calls it before it reads.
func (q Query) Check() (Query, error) {
	if _, err := id.ParseWorkspace(string(q.Workspace)); err != nil {
		return q, fault.Wrap(err, fault.Invalid, "workspace_invalid", "the query names no valid workspace")
	}
	if q.Limit == 0 {
		q.Limit = 100
	}
	if q.Limit < 1 || q.Limit > MaxRead {
		return q, fault.New(fault.Invalid, "limit_invalid", "limit is 1 to %d, not %d", MaxRead, q.Limit)
	}
	if len(q.Types) > MaxTypes {
		return q, fault.New(fault.Invalid, "types_invalid", "a query names at most %d event types, not %d", MaxTypes, len(q.Types))
	}
	if (q.EntityType == "") != (q.EntityID == "") {
		return q, fault.New(fault.Invalid, "entity_invalid", "entity_type and entity_id are given together or not at all")
	}
	return q, nil
}

// validType reports whether the text is two to four words with dots between, each of a-z, 0-9 and _ and beginning with a letter.
func validType(text string) bool {
	if len(text) > 100 {
		return false
	}
	words, begun := 1, false
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z':
			begun = true
		case begun && (c >= '0' && c <= '9' || c == '_'):
		case begun && c == '.':
			words, begun = words+1, false
		default:
			return false
		}
	}
	return begun && words >= 2 && words <= 4
}

func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i := range len(text) {
		c := text[i]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return false
			}
		} else if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
