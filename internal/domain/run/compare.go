package run

import (
	"strconv"
	"unicode/utf8"

	"agentbox/internal/domain/event"
)

// Divergence is the first difference between what was recorded and what a replay brought.
type Divergence struct {
	Index     int    `json:"index"` // of the operation
	Operation string `json:"operation_id"`
	Field     string `json:"field"`            // of the outcome or its result event
	Offset    *int64 `json:"offset,omitempty"` // of the first byte that differs, where the field is a text that is known
	Recorded  string `json:"recorded"`         // the value, or the text from a little before the offset
	Replayed  string `json:"replayed"`
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
			return d
		}
	}
	if len(replayed) > len(recorded) {
		more := replayed[len(recorded)]
		return &Divergence{Index: more.Index, Operation: more.ID, Field: "outcome", Recorded: "none", Replayed: more.Result.Type}
	}
	return nil
}

// compare looks at what was decided first, then at what happened, then at the texts.
func (o Outcome) compare(got Outcome) *Divergence {
	a, b := o.Result, got.Result
	for _, f := range []struct{ name, recorded, replayed string }{
		{"decision", o.Decision, got.Decision},
		{"reason_code", o.Reason, got.Reason},
		{"answer", o.Answer, got.Answer},
		{"type", a.Type, b.Type},
		{"success", optional(a.Success, strconv.FormatBool), optional(b.Success, strconv.FormatBool)},
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
	for _, f := range []struct {
		name               string
		recorded, replayed *string
	}{
		{"stdout", a.Stdout, b.Stdout}, {"stderr", a.Stderr, b.Stderr}, {"content", a.Content, b.Content},
		{"error", &a.Error, &b.Error}, {"message", &a.Message, &b.Message},
	} {
		if d := o.texts(f.name, deref(f.recorded), deref(f.replayed)); d != nil {
			return d
		}
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
