package run

import (
	"strconv"
	"unicode/utf8"

	"agentbox/internal/domain/event"
)

// Divergence is the first difference between the record and a replay.
type Divergence struct {
	Index     int    `json:"index"` // of the operation
	Operation string `json:"operation_id"`
	Field     string `json:"field"`            // of the outcome or its result event
	Offset    *int64 `json:"offset,omitempty"` // of the first byte that differs, where the field is a text that is known
	Recorded  string `json:"recorded"`         // the value, or the text from a little before the offset
	Replayed  string `json:"replayed"`

	Gas  *Metered    `json:"gas,omitempty"`  // where what the operation computed was counted
	Text *Divergence `json:"text,omitempty"` // where its output differs too, and the field is another
}

// Metered is the computation of an operation, in units that are the same on every host.
type Metered struct {
	Recorded int64 `json:"recorded"`
	Replayed int64 `json:"replayed"`
}

// Compare returns the first difference between two lists of outcomes, or nil. Times, durations and ids are not compared: they differ in
// every run; an outcome whose event was redacted is compared with nothing.
func Compare(recorded, replayed []Outcome) *Divergence {
	for i, want := range recorded {
		if want.Forgotten && i < len(replayed) && replayed[i].Index == want.Index {
			continue
		}
		if i >= len(replayed) || replayed[i].Index != want.Index {
			return &Divergence{Index: want.Index, Operation: want.ID, Field: "outcome", Recorded: want.Result.Type, Replayed: "none"}
		}
		if d := want.compare(replayed[i]); d != nil {
			return want.detailed(d, replayed[i])
		}
	}
	if len(replayed) > len(recorded) {
		more := replayed[len(recorded)]
		return &Divergence{Index: more.Index, Operation: more.ID, Field: "outcome", Recorded: "none", Replayed: more.Result.Type}
	}
	return nil
}

// Exact reports whether the operation does the same again to the unit of gas, given the same files, seed and clock.
func (o Outcome) Exact() bool {
	return o.Result.Gas > 0 && o.Result.Seed != "" && o.Result.Clock != nil
}

// detailed adds more details to a difference.
func (o Outcome) detailed(d *Divergence, got Outcome) *Divergence {
	if o.Exact() {
		d.Gas = &Metered{o.Result.Gas, got.Result.Gas}
	}
	if d.Offset == nil {
		d.Text = o.output(got)
	}
	return d
}

// output returns the first difference in the output of a command.
func (o Outcome) output(got Outcome) *Divergence {
	if o.Result.Stdout == nil || got.Result.Stdout == nil {
		return nil // one of them printed nothing because it did not run
	}
	if d := o.texts("stdout", deref(o.Result.Stdout), deref(got.Result.Stdout)); d != nil {
		return d
	}
	return o.texts("stderr", deref(o.Result.Stderr), deref(got.Result.Stderr))
}

// compare compares the decision first, then the outcome, then the texts, and for exact runs gas and files.
func (o Outcome) compare(got Outcome) *Divergence {
	a, b := o.Result, got.Result
	for _, f := range []struct{ name, recorded, replayed string }{
		{"decision", o.Decision, got.Decision},
		{"reason_code", o.Reason, got.Reason},
		{"answer", o.Answer, got.Answer},
		{"type", a.Type, b.Type},
		{"success", optional(a.Success, strconv.FormatBool), optional(b.Success, strconv.FormatBool)},
		{"tier", exactly(o, a.Tier), exactly(o, b.Tier)},
		{"exitCode", optional(a.ExitCode, strconv.Itoa), optional(b.ExitCode, strconv.Itoa)},
		{"timedOut", optional(a.TimedOut, strconv.FormatBool), optional(b.TimedOut, strconv.FormatBool)},
		{"limit", a.Limit, b.Limit},
		{"category", a.Category, b.Category},
		{"reasonCode", a.ReasonCode, b.ReasonCode},
		{"path", a.Path, b.Path},
		{"encoding", a.Encoding, b.Encoding},
		{"bytesWritten", optional(a.BytesWritten, number), optional(b.BytesWritten, number)},
		{"size", optional(a.Size, number), optional(b.Size, number)},
		{"editsApplied", optional(a.EditsApplied, strconv.Itoa), optional(b.EditsApplied, strconv.Itoa)},
	} {
		if f.recorded != f.replayed {
			return &Divergence{Index: o.Index, Operation: o.ID, Field: f.name, Recorded: f.recorded, Replayed: f.replayed}
		}
	}
	shown, again := displaysText(a.Displays), displaysText(b.Displays)
	for _, f := range []struct {
		name               string
		recorded, replayed *string
	}{
		{"stdout", a.Stdout, b.Stdout}, {"stderr", a.Stderr, b.Stderr}, {"content", a.Content, b.Content},
		{"error", &a.Error, &b.Error}, {"message", &a.Message, &b.Message}, {"displays", &shown, &again},
	} {
		if d := o.texts(f.name, deref(f.recorded), deref(f.replayed)); d != nil {
			return d
		}
	}
	if o.Exact() && a.Gas != b.Gas {
		return &Divergence{Index: o.Index, Operation: o.ID, Field: "gas", Recorded: number(a.Gas), Replayed: number(b.Gas)}
	}
	if o.Exact() && !o.Snapshot.IsZero() && !got.Snapshot.IsZero() && o.Snapshot != got.Snapshot {
		return &Divergence{Index: o.Index, Operation: o.ID, Field: "files", Recorded: o.Snapshot.String(), Replayed: got.Snapshot.String()}
	}
	return nil
}

// texts compares one text; one that was taken out of the record is compared by its hash.
func (o Outcome) texts(name, recorded, replayed string) *Divergence {
	d := &Divergence{Index: o.Index, Operation: o.ID, Field: name}
	if was, removed := o.Removed[name]; removed {
		if is := event.DigestOf([]byte(replayed)); is != was.Digest {
			d.Recorded, d.Replayed = was.Digest.String(), is.String()
			return d
		}
		return nil
	}
	if recorded == replayed {
		return nil
	}
	at := 0
	for at < len(recorded) && at < len(replayed) && recorded[at] == replayed[at] {
		at++
	}
	offset := int64(at)
	d.Offset, d.Recorded, d.Replayed = &offset, around(recorded, at), around(replayed, at)
	return d
}

// around returns a short piece of a text about a place.
func around(s string, at int) string {
	const before, after = 20, 60
	from, to := max(0, at-before), min(len(s), at+after)
	for from > 0 && !utf8.RuneStart(s[from]) {
		from--
	}
	for to < len(s) && !utf8.RuneStart(s[to]) {
		to++
	}
	return s[from:to]
}

// exactly is a value that counts only for exact runs.
func exactly(o Outcome, value string) string {
	if !o.Exact() {
		return ""
	}
	return value
}

func optional[T any](v *T, text func(T) string) string {
	if v == nil {
		return ""
	}
	return text(*v)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
