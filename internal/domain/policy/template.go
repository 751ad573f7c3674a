package policy

import (
	"encoding/json"
	"path"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// ErrTemplateImpossible refuses a standing approval of scope template for an action without a part that may vary.
var ErrTemplateImpossible = fault.New(fault.Invalid, "template_not_possible", "nothing in this may vary, so it makes no template").
	With("A template is made of one exact command of which an operand names a file in a folder, or of reading, writing, changing or " +
		"deleting a file in a folder. " +
		"Approve it with scope once, or an exact command with scope run, room or workspace.")

// MaxTemplateName is the most bytes that the varying part of a path may have.
const MaxTemplateName = 64

// slot is a word of a template: a text that must be equal, or, where Open is set, a file of the folder whose name may vary within its
// type: it begins with a letter, a digit or an underscore, so that it is neither hidden nor an option, and keeps its extension.
type slot struct {
	Open      bool   `json:"open"`
	Text      string `json:"text"` // the word, or the folder with its slash
	Extension string `json:"extension,omitempty"`
}

// slotOf returns a path as a slot. A path without a folder stays as it is: the whole space is not a template.
func slotOf(word string) slot {
	folder, name := path.Split(word)
	if folder == "" || path.IsAbs(word) || path.Clean(word) != word || strings.HasPrefix(word, "-") || strings.HasPrefix(word, "../") ||
		!plainName(name) {
		return slot{Text: word}
	}
	return slot{Open: true, Text: folder, Extension: path.Ext(name)}
}

// plainName reports whether a name is one that may stand for another.
func plainName(name string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
	return name != "" && len(name) <= MaxTemplateName && strings.Trim(name, letters+".-") == "" && strings.IndexByte(letters, name[0]) >= 0
}

// show writes a slot for people.
func (s slot) show() string {
	switch {
	case s.Open:
		return Escape(s.Text) + "{name}" + Escape(s.Extension)
	case strings.ContainsAny(s.Text, " {}\t\n'\"") || s.Text == "":
		return "'" + Escape(s.Text) + "'"
	}
	return Escape(s.Text)
}

// templateOf returns the actions that a standing approval of scope template covers. The agent, the space and the policy must be the same.
// Every word must be equal, except for the names of files in their folders. Content may differ, because the policy bounds it. Actions
// that the policy refuses stay refused.
func templateOf(a Action, words []string) (Cover, error) {
	c := Cover{Kind: CoverTemplate, Scope: ScopeTemplate, Action: a.Type}
	var slots []slot
	open := false
	kind, _ := a.Kind()
	switch kind.Template {
	case TemplateRequest:
		return requestTemplate(a)
	case TemplateWords:
		for i, word := range words {
			s := slot{Text: word}
			if i > 0 {
				s = slotOf(word)
			}
			open = open || s.Open
			slots = append(slots, s)
		}
	case TemplateFile, TemplateContent:
		s := slotOf(a.Path)
		open = s.Open || kind.Template == TemplateContent
		slots = []slot{s}
	default:
		return Cover{}, ErrTemplateImpossible
	}
	if !open {
		return Cover{}, ErrTemplateImpossible
	}
	rest := a
	rest.Step, rest.Operation, rest.Fence, rest.Token, rest.Run = "", "", 0, "", ""
	rest.Command, rest.Argv, rest.Path = "", nil, ""
	rest.Content, rest.Size = event.Digest{}, 0
	canonical, err := rest.Canonical()
	if err != nil {
		return Cover{}, err
	}
	tagged, err := json.Marshal([]any{c.Kind, c.Scope, string(canonical), slots})
	if err != nil {
		return Cover{}, ErrTemplateImpossible
	}
	c.Match = event.DigestOf(tagged)
	shown := make([]string, len(slots))
	for i, s := range slots {
		shown[i] = s.show()
	}
	c.Text = kind.Title + ": " + strings.Join(shown, " ")
	return c, nil
}

// requestTemplate returns the actions outside that a standing approval of scope template covers. The principal, the target and the form
// of the request must be the same; the values may vary. An unvaried action, such as a payment, has no template.
func requestTemplate(a Action) (Cover, error) {
	if a.unvaried() || a.Target == "" || len(a.Request) == 0 {
		return Cover{}, ErrTemplateImpossible
	}
	form, err := shape(a.Request)
	if err != nil {
		return Cover{}, ErrTemplateImpossible
	}
	rest := a
	rest.Step, rest.Token, rest.Run, rest.Request = "", "", "", nil
	canonical, err := rest.Canonical()
	if err != nil {
		return Cover{}, err
	}
	tagged, err := json.Marshal([]any{CoverTemplate, ScopeTemplate, string(canonical), form})
	if err != nil {
		return Cover{}, ErrTemplateImpossible
	}
	return Cover{
		Kind: CoverTemplate, Scope: ScopeTemplate, Action: a.Type, Match: event.DigestOf(tagged), Text: Title(rest) + ": " + Escape(form),
	}, nil
}
