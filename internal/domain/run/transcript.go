package run

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// TranscriptVersion is the version of transcripts that is written here; version 1, which had neither files nor proof nor the policy's
// text, is read too.
const TranscriptVersion = 2

// MaxTranscriptLine is the most bytes that one line of a transcript may have: an operation that creates the largest file, in base64 and
// with room for escapes.
const MaxTranscriptLine = 64 << 20

// MaxTranscriptBytes is the largest transcript that can be read, because memory holds all of it.
const MaxTranscriptBytes = 256 << 20

// The classes of texts that are removed from a transcript. A removed text leaves its hash and its size, so that a replay can still be
// compared with it.
const (
	RedactEnv      = "env"      // values of environment variables
	RedactContent  = "content"  // input of operations: messages, files, edits
	RedactOutput   = "output"   // output of operations: output of commands, content of files
	RedactCommands = "commands" // command lines
)

// Redactions are all classes.
func Redactions() []string { return []string{RedactEnv, RedactContent, RedactOutput, RedactCommands} }

// TranscriptHeader is the first line of a transcript: which run it is of, and where that ran.
type TranscriptHeader struct {
	Version  int       `json:"transcript_version"`
	Exported time.Time `json:"exported_at"`
	Head     uint64    `json:"head"`     // place of the workspace's last event at that time
	Redacted []string  `json:"redacted"` // the classes that were taken out
	Run      Run       `json:"run"`
	Place    Place     `json:"space"`
	Start    *Snapshot `json:"start,omitempty"` // the space's files when the run began; nil if not known
}

// Place is the space of a run as far as another one like it can be made.
type Place struct {
	ID     id.Space          `json:"id"`
	Tier   string            `json:"tier"`
	Policy string            `json:"policy"`
	Bundle event.Digest      `json:"policy_bundle"`
	Limits json.RawMessage   `json:"limits"`
	Env    map[string]string `json:"env,omitempty"`

	Text       *policy.Bundle `json:"policy_text,omitempty"` // the bundle itself, so that its hash can be had elsewhere
	BestEffort bool           `json:"best_effort,omitempty"`
}

// Removed replaces a removed text. Both fields are zero if even they would reveal too much.
type Removed struct {
	Digest event.Digest `json:"sha256,omitzero"`
	Size   int64        `json:"size_bytes,omitempty"`
}

// Asked is one operation of a transcript. Removed names its fields whose text was taken out.
type Asked struct {
	Index     int                `json:"index"`
	Operation Operation          `json:"operation"`
	Removed   map[string]Removed `json:"removed,omitempty"`
}

// Outcome is the decision about one operation, and its result event.
type Outcome struct {
	Index    int                `json:"index"`
	ID       string             `json:"operation_id"`
	Decision string             `json:"decision,omitempty"`
	Reason   string             `json:"reason_code,omitempty"`
	Answer   string             `json:"answer,omitempty"` // of a person: approved, denied, expired
	BegunAt  time.Time          `json:"begun_at,omitzero"`
	EndedAt  time.Time          `json:"ended_at,omitzero"`
	Result   Result             `json:"result"`
	Removed  map[string]Removed `json:"removed,omitempty"`

	// Forgotten says that the event of the result was redacted: its text is gone and cannot be compared.
	Forgotten bool `json:"forgotten,omitempty"`

	// Snapshot is the state of the space's files after it; zero if the event with it is not here with its data.
	Snapshot event.Digest `json:"-"`
}

// TranscriptEnd is the last line: without it the rest is missing.
type TranscriptEnd struct {
	Lines  int          `json:"lines"`  // before this one
	Digest event.Digest `json:"sha256"` // of all bytes before this line
}

// TranscriptLine is one line of a transcript, in JSON Lines. Exactly one field is set. The order of the lines is:
//   - the header;
//   - the operations in order;
//   - the outcomes in order;
//   - the events of the run in the order of the log;
//   - the files that the run began with;
//   - the proof of the events;
//   - the end.
type TranscriptLine struct {
	Header  *TranscriptHeader `json:"header,omitempty"`
	Asked   *Asked            `json:"operation,omitempty"`
	Outcome *Outcome          `json:"outcome,omitempty"`
	// its data and their salt are left out of a transcript from which anything was taken out
	Event *event.Event   `json:"event,omitempty"`
	Files *FilesPiece    `json:"files,omitempty"`
	Proof *Proof         `json:"proof,omitempty"`
	End   *TranscriptEnd `json:"end,omitempty"`
}

// TranscriptWriter writes a transcript line by line.
type TranscriptWriter struct {
	w      io.Writer
	lines  int
	sum    hash.Hash
	redact []string
}

// NewTranscriptWriter returns a writer that removes the named classes.
func NewTranscriptWriter(w io.Writer, redact []string) (*TranscriptWriter, error) {
	for _, class := range redact {
		if !slices.Contains(Redactions(), class) {
			return nil, fault.New(fault.Invalid, "redaction_unknown", "%.32q is not a class of text; the classes are %s", class,
				strings.Join(Redactions(), ", "))
		}
	}
	return &TranscriptWriter{w: w, sum: sha256.New(), redact: slices.Compact(slices.Sorted(slices.Values(redact)))}, nil
}

// Header writes the first line. It fills in Version. Redacted gets the classes of the writer besides those that were removed before.
func (t *TranscriptWriter) Header(h TranscriptHeader) error {
	h.Version, h.Redacted = TranscriptVersion, slices.Compact(slices.Sorted(slices.Values(slices.Concat([]string{}, h.Redacted, t.redact))))
	if h.Redacted == nil {
		h.Redacted = []string{}
	}
	if t.takes(RedactEnv) {
		h.Place.Env = emptied(h.Place.Env)
	}
	if t.takes(RedactContent) {
		h.Run.Operations = slices.Clone(h.Run.Operations)
		for i := range h.Run.Operations {
			if p := &h.Run.Operations[i]; p.Type == OpMessage {
				p.Summary = ""
			}
		}
	}
	if t.takes(RedactCommands) {
		h.Run.Operations = slices.Clone(h.Run.Operations)
		for i := range h.Run.Operations {
			if p := &h.Run.Operations[i]; p.Type == OpShell {
				p.Summary = ""
			}
		}
	}
	return t.line(TranscriptLine{Header: &h})
}

// Asked writes an operation.
func (t *TranscriptWriter) Asked(index int, op Operation) error {
	return t.asked(Asked{Index: index, Operation: op})
}

func (t *TranscriptWriter) asked(a Asked) error {
	op := a.Operation
	a.Removed = maps.Clone(a.Removed)
	remove := remover(&a.Removed)
	if t.takes(RedactEnv) && len(op.Env) > 0 {
		if a.Removed == nil {
			a.Removed = map[string]Removed{}
		}
		for name := range op.Env {
			a.Removed["env."+name] = Removed{} // not even its hash, because a short secret can be found by trying
		}
		a.Operation.Env = emptied(op.Env)
	}
	if t.takes(RedactContent) {
		remove("content", &a.Operation.Content)
		a.Operation.Edits = slices.Clone(op.Edits)
		for i := range a.Operation.Edits {
			remove(fmt.Sprintf("edits.%d.oldContent", i), &a.Operation.Edits[i].Old)
			remove(fmt.Sprintf("edits.%d.newContent", i), &a.Operation.Edits[i].New)
		}
	}
	if t.takes(RedactCommands) {
		remove("command", &a.Operation.Command)
	}
	return t.line(TranscriptLine{Asked: &a})
}

// Outcome writes what became of an operation.
func (t *TranscriptWriter) Outcome(o Outcome) error {
	if t.takes(RedactCommands) {
		o.Removed = maps.Clone(o.Removed)
		remove := remover(&o.Removed)
		remove("command", &o.Result.Command)
		remove("error", &o.Result.Error) // these may quote the command
		remove("message", &o.Result.Message)
		remove("reason", &o.Result.Reason)
	}
	if t.takes(RedactOutput) {
		o.Removed = maps.Clone(o.Removed)
		remove := remover(&o.Removed)
		for name, text := range map[string]**string{"stdout": &o.Result.Stdout, "stderr": &o.Result.Stderr, "content": &o.Result.Content} {
			if *text != nil {
				kept := **text
				remove(name, &kept)
				*text = &kept
			}
		}
		remove("error", &o.Result.Error) // it may quote the operation
		remove("message", &o.Result.Message)
	}
	return t.line(TranscriptLine{Outcome: &o})
}

// Event writes an event of the run.
func (t *TranscriptWriter) Event(e event.Event) error {
	if len(t.redact) > 0 {
		e.Data, e.Chain.Salt = nil, nil // with the salt, short data could be found by trying
	}
	return t.line(TranscriptLine{Event: &e})
}

// End writes the last line.
func (t *TranscriptWriter) End() error {
	end := TranscriptEnd{Lines: t.lines}
	copy(end.Digest[:], t.sum.Sum(nil))
	return t.line(TranscriptLine{End: &end})
}

// Copy writes a transcript that was read, to its end.
func (t *TranscriptWriter) Copy(from Transcript) error {
	err := t.Header(from.Header)
	for _, a := range from.Asked {
		err = cmp.Or(err, t.asked(a))
	}
	for _, o := range from.Outcomes {
		err = cmp.Or(err, t.Outcome(o))
	}
	for _, e := range from.Events {
		err = cmp.Or(err, t.Event(e))
	}
	if len(from.Files) > 0 {
		archive, end := t.Files()
		_, failed := archive.Write(from.Files)
		err = cmp.Or(err, failed, end(from.Omitted))
	}
	if from.Proof != nil {
		err = cmp.Or(err, t.Proof(*from.Proof))
	}
	return cmp.Or(err, t.End())
}

func (t *TranscriptWriter) takes(class string) bool { return slices.Contains(t.redact, class) }

func (t *TranscriptWriter) line(l TranscriptLine) error {
	var b bytes.Buffer
	lines := json.NewEncoder(&b)
	lines.SetEscapeHTML(false) // the bytes that the hash of an event covers stay as they are
	if err := lines.Encode(l); err != nil {
		return fmt.Errorf("write a line of a transcript: %w", err)
	}
	t.lines++
	t.sum.Write(b.Bytes())
	_, err := t.w.Write(b.Bytes())
	return err
}

// remover returns a function that removes a text and notes its hash and size in the map. It makes the map when needed.
func remover(removed *map[string]Removed) func(name string, text *string) {
	return func(name string, text *string) {
		if *text == "" {
			return
		}
		if *removed == nil {
			*removed = map[string]Removed{}
		}
		(*removed)[name] = Removed{Digest: event.DigestOf([]byte(*text)), Size: int64(len(*text))}
		*text = ""
	}
}

func emptied(env map[string]string) map[string]string {
	if env == nil {
		return nil
	}
	names := make(map[string]string, len(env))
	for name := range env {
		names[name] = ""
	}
	return names
}

// Transcript is a run as a transcript tells it.
type Transcript struct {
	Header   TranscriptHeader
	Asked    []Asked
	Outcomes []Outcome
	Events   []event.Event
	Files    []byte       // a tar.gz archive of the files that the run began with; empty where the transcript does not carry them
	Omitted  int          // files that policy kept out of the archive
	Proof    *Proof       // of the events; nil where the transcript does not carry one
	Digest   event.Digest // of all lines before the end
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Invalid, "transcript_invalid", "the transcript cannot be used: "+format, args...).
		With("export it again with: agentbox runs export RUN")
}

// ReadTranscript reads a transcript to its end and holds it against its own hash. One of more than MaxTranscriptBytes is refused.
func ReadTranscript(r io.Reader) (Transcript, error) { return readTranscript(r, MaxTranscriptBytes) }

func readTranscript(r io.Reader, most int64) (Transcript, error) {
	var t Transcript
	lines := bufio.NewReaderSize(r, 1<<16)
	sum := sha256.New()
	for n := 1; ; n++ {
		raw, err := readLine(lines)
		if most -= int64(len(raw)); most < 0 {
			return t, fault.New(fault.Exhausted, "transcript_too_large", "the transcript has more than %d bytes", MaxTranscriptBytes).
				With("export it with --redact output, or read it with a tool that goes line by line")
		}
		if errors.Is(err, io.EOF) {
			return t, damaged("its end is missing after line %d", n-1)
		}
		if err != nil {
			return t, err
		}
		l, err := parseLine(raw, n)
		if err != nil {
			return t, err
		}
		if l.End != nil {
			if l.End.Lines != n-1 || !bytes.Equal(l.End.Digest[:], sum.Sum(nil)) {
				return t, damaged("its lines are not those that were written (its hash differs)")
			}
			if _, err := lines.ReadByte(); !errors.Is(err, io.EOF) {
				return t, damaged("there is more behind its end")
			}
			t.Digest = l.End.Digest
			t.snapshots()
			return t, t.whole()
		}
		sum.Write(raw)
		switch {
		case l.Header != nil:
			t.Header = *l.Header
		case l.Asked != nil:
			t.Asked = append(t.Asked, *l.Asked)
		case l.Outcome != nil:
			t.Outcomes = append(t.Outcomes, *l.Outcome)
		case l.Event != nil:
			t.Events = append(t.Events, *l.Event)
		case l.Files != nil:
			err = t.piece(*l.Files)
		case l.Proof != nil:
			t.Proof = l.Proof
		}
		if err != nil {
			return t, err
		}
	}
}

// snapshots notes behind which outcome the files were what, as the events say.
func (t *Transcript) snapshots() {
	roots := map[int]event.Digest{}
	for _, e := range t.Events {
		if e.Type != EventSucceeded && e.Type != EventErred || len(e.Data) == 0 {
			continue
		}
		if d, err := event.Decode[Ended](e); err == nil && d.Snapshot != nil { // the check of the events reports what cannot be read
			roots[d.Index] = d.Snapshot.Root
		}
	}
	for i := range t.Outcomes {
		t.Outcomes[i].Snapshot = roots[t.Outcomes[i].Index]
	}
}

// readLine returns one line with its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) > MaxTranscriptLine {
			return nil, damaged("a line has more than %d bytes", MaxTranscriptLine)
		}
		line = append(line, piece...)
		switch {
		case err == nil:
			return line, nil
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, damaged("its last line is cut off")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// parseLine reads line n. The first one says which version the rest has.
func parseLine(raw []byte, n int) (TranscriptLine, error) {
	var l TranscriptLine
	if n == 1 {
		var peek struct {
			Header *struct {
				Version int `json:"transcript_version"`
			} `json:"header"`
		}
		if err := json.Unmarshal(raw, &peek); err != nil || peek.Header == nil {
			return l, damaged("its first line is not a header of a transcript")
		}
		if v := peek.Header.Version; v < 1 || v > TranscriptVersion {
			return l, fault.New(fault.Invalid, "transcript_version", "the transcript has version %d, and versions 1 to %d are read here", v,
				TranscriptVersion).
				With("read it with the version of agentbox that wrote it, or a newer one")
		}
	}
	if err := json.Unmarshal(raw, &l); err != nil {
		return l, damaged("line %d: %s", n, plain(err))
	}
	set := 0
	for _, there := range []bool{l.Header != nil, l.Asked != nil, l.Outcome != nil, l.Event != nil, l.Files != nil, l.Proof != nil,
		l.End != nil} {
		if there {
			set++
		}
	}
	if set != 1 || (l.Header != nil) != (n == 1) {
		return l, damaged("line %d is not one of header, operation, outcome, event, files, proof and end in its place", n)
	}
	return l, nil
}

// whole checks that the parts of a transcript belong together.
func (t Transcript) whole() error {
	if len(t.Asked) == 0 || len(t.Asked) > MaxOperations+MaxContextFiles || len(t.Asked) != len(t.Header.Run.Operations) {
		return damaged("it has %d operations, and its run %d", len(t.Asked), len(t.Header.Run.Operations))
	}
	for i, a := range t.Asked {
		if a.Index != i {
			return damaged("operation %d stands in the place of operation %d", a.Index, i)
		}
	}
	last := -1
	for _, o := range t.Outcomes {
		if o.Index <= last || o.Index >= len(t.Asked) {
			return damaged("the outcome of operation %d is out of place", o.Index)
		}
		last = o.Index
	}
	if text := t.Header.Place.Text; text != nil && (text.Hash != t.Header.Place.Bundle || text.Verify() != nil) {
		return damaged("its policy is not the one whose hash it names")
	}
	return nil
}

// OutcomeOf is the outcome of an operation that is done.
func OutcomeOf(index int, p Progress, result Result) Outcome {
	return Outcome{
		Index: index, ID: p.ID, Decision: p.Decision, Reason: p.Reason, Answer: p.Answer, BegunAt: p.BegunAt, EndedAt: p.EndedAt, Result: result,
	}
}
