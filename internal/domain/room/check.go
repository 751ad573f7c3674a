package room

import (
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
)

// Limits of the fields of a room, a thread and a message.
const (
	MaxTitle   = 200      // bytes, in one line; not empty
	MaxTopic   = 2_000    // bytes
	MaxWord    = 64       // bytes of a mode, a language, a label, a schema version, a mission; printable ASCII
	MaxRef     = 256      // bytes of a reference to a tool policy; printable ASCII
	MaxPrompt  = 32 << 10 // bytes of a system prompt
	MaxMemory  = 32 << 10 // bytes of a memory summary
	MaxAllowed = 200      // names of one allowlist
	MaxName    = 128      // bytes of one such name; printable ASCII
	MaxLabels  = 20       // of one message
	MaxContent = 64 << 10 // bytes of a message
)

// The errors of checks on these fields.
var (
	ErrTitle     = fault.New(fault.Invalid, "invalid_title", "a title has 1 to %d bytes of text in one line", MaxTitle)
	ErrNoContent = fault.New(fault.Invalid, "missing_content", "a message says something: content_md is empty")
	ErrTooLarge  = fault.New(fault.Exhausted, "message_too_large", "a message has at most %d bytes",
		MaxContent).With("Put the long part into a file of a space, or an artifact, and name it.")
	ErrClosed = fault.New(fault.Conflict, "thread_closed",
		"the thread is closed").With("Open it again: agentbox thread update THREAD --status open")
	ErrNoRoom     = fault.New(fault.NotFound, "room_not_found", "there is no such room in this workspace")
	ErrNoThread   = fault.New(fault.NotFound, "thread_not_found", "there is no such thread in this workspace")
	ErrNoMessage  = fault.New(fault.NotFound, "message_not_found", "there is no such message in this thread")
	ErrNothingNew = fault.New(fault.Invalid, "nothing_to_change", "nothing is to be changed; name a field")
)

// Check returns an error for values beyond the limits.
func (c Created) Check() error {
	if err := checkTitle(c.Title); err != nil {
		return err
	}
	if err := checkWord("mission_id", c.Mission, MaxWord); err != nil {
		return err
	}
	if err := checkWords(c.Topic, c.Mode, c.Lang, c.ToolPolicy); err != nil {
		return err
	}
	return c.Context.check(nil)
}

// Check returns an error for values beyond the limits, and for an update without a change.
func (u Updated) Check() error {
	if u.Title == nil && u.Topic == nil && u.Mode == nil && u.Lang == nil && !u.Configures() && u.Context.Memory == nil &&
		len(u.Inherit) == 0 {
		return ErrNothingNew
	}
	if u.Title != nil {
		if err := checkTitle(*u.Title); err != nil {
			return err
		}
	}
	if err := checkWords(value(u.Topic), value(u.Mode), value(u.Lang), value(u.ToolPolicy)); err != nil {
		return err
	}
	return u.Context.check(u.Inherit)
}

func checkWords(topic, mode, lang, policy string) error {
	if err := checkText("topic", topic, MaxTopic); err != nil {
		return err
	}
	if err := checkWord("room_mode", mode, MaxWord); err != nil {
		return err
	}
	if err := checkWord("default_lang", lang, MaxWord); err != nil {
		return err
	}
	return checkWord("tool_policy_ref", policy, MaxRef)
}

// Configures reports whether the change affects the instructions or rights of agents, and not only words for people.
func (u Updated) Configures() bool {
	return u.ToolPolicy != nil || u.Context.Configures() || slices.ContainsFunc(u.Inherit, func(f string) bool { return f != FieldMemory })
}

// Configures reports whether the context sets instructions or rights of agents. A summary of the messages does not.
func (c Context) Configures() bool { return c.Prompt != nil || c.Tools != nil || c.Models != nil }

// Check returns an error for values beyond the limits, and for an update without a change.
func (d DefaultsSet) Check() error {
	if d.Context == (Context{}) && len(d.Inherit) == 0 {
		return ErrNothingNew
	}
	return d.Context.check(d.Inherit)
}

func (c Context) check(inherit []string) error {
	for _, f := range inherit {
		if !slices.Contains(Fields, f) {
			return invalid("inherit names fields of the context: %s; not %.64q", strings.Join(Fields, ", "), f)
		}
	}
	if err := checkText(FieldPrompt, value(c.Prompt), MaxPrompt); err != nil {
		return err
	}
	if err := checkText(FieldMemory, value(c.Memory), MaxMemory); err != nil {
		return err
	}
	for name, list := range map[string]*[]string{FieldTools: c.Tools, FieldModels: c.Models} {
		allowed := value(list)
		if len(allowed) > MaxAllowed {
			return invalid("%s has at most %d names", name, MaxAllowed)
		}
		for _, one := range allowed {
			if one == "" {
				return invalid("%s names something that is empty", name)
			}
			if err := checkWord(name, one, MaxName); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check returns an error for values beyond the limits.
func (t ThreadCreated) Check() error {
	if err := t.Status.check(); err != nil {
		return err
	}
	return checkTitle(t.Title)
}

// Check returns an error for values beyond the limits, and for an update without a change.
func (t ThreadUpdated) Check() error {
	if t.Title == nil && t.Status == nil {
		return ErrNothingNew
	}
	if t.Status != nil {
		if err := t.Status.check(); err != nil {
			return err
		}
	}
	if t.Title == nil {
		return nil
	}
	return checkTitle(*t.Title)
}

func (s Status) check() error {
	if s != Open && s != Closed {
		return fault.New(fault.Invalid, "invalid_status", "the status of a thread is %s or %s", Open, Closed)
	}
	return nil
}

// Check returns an error for values beyond the limits.
func (m MessageCreated) Check() error {
	switch {
	case strings.TrimSpace(m.Content) == "":
		return ErrNoContent
	case len(m.Content) > MaxContent:
		return ErrTooLarge
	case !utf8.ValidString(m.Content):
		return invalid("content_md is not UTF-8")
	case len(m.Labels) > MaxLabels:
		return invalid("a message has at most %d labels", MaxLabels)
	}
	for _, label := range m.Labels {
		if err := checkText("labels", label, MaxWord); err != nil || strings.TrimSpace(label) == "" || strings.ContainsAny(label, "\r\n") {
			return invalid("a label has 1 to %d bytes of text in one line", MaxWord)
		}
	}
	if err := checkWord("lang", m.Lang, MaxWord); err != nil {
		return err
	}
	return checkWord("schema_version", m.SchemaVersion, MaxWord)
}

func checkTitle(title string) error {
	if strings.TrimSpace(title) == "" || len(title) > MaxTitle || !utf8.ValidString(title) || strings.ContainsFunc(title, breaks) {
		return ErrTitle
	}
	return nil
}

// breaks reports whether a character ends a line or steers a terminal.
func breaks(r rune) bool { return r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 }

func checkText(name, text string, most int) error {
	if len(text) > most || !utf8.ValidString(text) {
		return invalid("%s has at most %d bytes of UTF-8", name, most)
	}
	return nil
}

func checkWord(name, word string, most int) error {
	if len(word) > most || strings.ContainsFunc(word, func(r rune) bool { return r < 0x21 || r > 0x7e }) {
		return invalid("%s has at most %d printable ASCII characters without spaces", name, most)
	}
	return nil
}

func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "invalid_field", format, args...)
}
