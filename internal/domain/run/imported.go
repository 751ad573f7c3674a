package run

import (
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// Imported says where a run comes from that was not executed here, and what of its transcript was proven when it came.
type Imported struct {
	Run        id.Run       `json:"run_id"`       // its id where it was executed
	Workspace  id.Workspace `json:"workspace_id"` // where it was executed
	Transcript Input        `json:"transcript"`   // the stored file as it came
	Outcomes   Input        `json:"outcomes"`     // the stored outcomes: a JSON array of Outcome
	Redacted   []string     `json:"redacted"`     // the classes of text that it came without
	Carries    bool         `json:"carries_files"`
	Attested   Attestation  `json:"attested"`
	By         id.Principal `json:"imported_by"`
	At         time.Time    `json:"imported_at"`
}

// Attestation is the result of checking the events of a transcript against their own hashes and the enclosed proof. It says that the log of
// the key's owner holds these events. It does not say that the owner is honest.
type Attestation struct {
	Events    int    `json:"events"`               // whose hash is that of what is there of them
	Whole     int    `json:"with_data"`            // of them, those whose data came too and are those that were committed to
	Bound     int    `json:"outcomes_bound"`       // outcomes that are, byte for byte, in such data
	Proven    int    `json:"proven"`               // events that are included under the checkpoint
	Origin    string `json:"origin,omitempty"`     // of the checkpoint
	Size      uint64 `json:"size,omitempty"`       // of the log that it was signed for
	Root      string `json:"root_hash,omitempty"`  // of its tree
	PublicKey string `json:"public_key,omitempty"` // that verifies it
}

// ImportedData is the data of run.imported: the run as it was recorded elsewhere.
type ImportedData struct {
	Run      id.Run   `json:"run_id"`
	Recorded Run      `json:"recorded"`
	From     Imported `json:"from"`
}

// ErrNotEnded refuses to import a run that was not over when it was exported.
var ErrNotEnded = fault.New(fault.Invalid, "run_not_ended",
	"the run had not ended when the transcript was written; what comes after would be missing").
	With("export it again when it has ended")

// Admissible reports whether a transcript can be imported as a record of its own.
func (t *Transcript) Admissible() error {
	if !t.Header.Run.Status.Ended() {
		return ErrNotEnded
	}
	if len(t.Header.Run.Operations) > MaxOperations+MaxContextFiles {
		return damaged("its run has %d operations", len(t.Header.Run.Operations))
	}
	for _, text := range []string{string(t.Header.Run.ID), string(t.Header.Run.Workspace), string(t.Header.Run.Space)} {
		if len(text) > 200 || strings.ContainsFunc(text, func(c rune) bool { return c <= ' ' || c > '~' }) {
			return damaged("an identifier in its header is none: %.80q", text)
		}
	}
	return nil
}

func imported(e event.Event) (Run, error) {
	d, err := event.Decode[ImportedData](e)
	if err != nil {
		return Run{}, err
	}
	r := d.Recorded
	r.ID, r.Workspace, r.Room, r.Imported = d.Run, e.Workspace, e.Room, &d.From
	r.Retention, r.KeptUntil, r.Forgotten = 0, time.Time{}, time.Time{} // which were promised there
	return r, nil
}
