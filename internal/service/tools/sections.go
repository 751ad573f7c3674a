package tools

import (
	"fmt"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// Section is a heading of a Markdown document with everything below it, down to the next heading of its level or of a higher one.
type Section struct {
	Level    int    // of the heading, 1 to 6
	Title    string // its text
	Path     string // the titles of the headings above it and its own, with " > " between
	From, To int    // bytes of the document
	Line     int    // of the heading, from 1 on
	Lines    int
}

// between stands between the titles of a path.
const between = " > "

// Sections returns the sections of a Markdown document, in order. A line of # to ###### with a text is a heading. So is a line of text
// above a line of === or ---. A line in fenced code is no heading.
func Sections(text string) []Section {
	var found []Section
	fence, before := "", "" // the fence that is open; the line before, where it can be a heading
	inside := false         // the line before is text of a paragraph
	from, beforeFrom := 0, 0
	matter := strings.HasPrefix(text, "---\n") || strings.HasPrefix(text, "---\r\n") // front matter comes first
	lines := strings.SplitAfter(text, "\n")
	for n, raw := range lines {
		line := strings.TrimRight(raw, " \t\r\n")
		level, title := heading(line)
		last := before
		before = ""
		switch {
		case matter:
			matter = n == 0 || line != "---"
		case fence != "":
			if closes(line, fence) {
				fence = ""
			}
		case opens(line) != "":
			fence, inside = opens(line), false
		case level > 0:
			found, inside = append(found, Section{Level: level, Title: title, From: from, Line: n + 1}), false
		case last != "" && underline(line) > 0:
			found, inside = append(found, Section{Level: underline(line), Title: last, From: beforeFrom, Line: n}), false
		case line == "" || underline(line) > 0: // between paragraphs, or a line across the page
			inside = false
		case !inside:
			before, beforeFrom, inside = paragraph(line), from, true
		}
		from += len(raw)
	}
	total := len(lines)
	if strings.HasSuffix(text, "\n") {
		total--
	}
	for i := range found {
		s := &found[i]
		s.To, s.Lines = len(text), total-s.Line+1
		for _, next := range found[i+1:] {
			if next.Level <= s.Level {
				s.To, s.Lines = next.From, next.Line-s.Line
				break
			}
		}
		s.Path = s.Title
		for level, j := s.Level, i-1; j >= 0; j-- {
			if found[j].Level < level {
				level, s.Path = found[j].Level, found[j].Title+between+s.Path
			}
		}
	}
	return found
}

// heading returns the level and the text of a heading; 0 for another line.
func heading(line string) (int, string) {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	line = line[indent:]
	level := len(line) - len(strings.TrimLeft(line, "#"))
	title := line[level:]
	if indent > 3 || level < 1 || level > 6 || title == "" || title[0] != ' ' && title[0] != '\t' {
		return 0, ""
	}
	title = strings.TrimSpace(title)
	if bare := strings.TrimRight(title, "#"); bare == "" || strings.HasSuffix(bare, " ") || strings.HasSuffix(bare, "\t") {
		title = strings.TrimSpace(bare) // the closing #s
	}
	if title == "" {
		return 0, ""
	}
	return level, title
}

// underline returns the level of the heading above a line of === or ---, 0 for another line.
func underline(line string) int {
	switch mark := strings.TrimSpace(line); {
	case mark != "" && strings.Trim(mark, "=") == "":
		return 1
	case mark != "" && strings.Trim(mark, "-") == "":
		return 2
	}
	return 0
}

// paragraph returns a line that a line of === or --- below it makes a heading, "" for one that is no plain text.
func paragraph(line string) string {
	trimmed := strings.TrimSpace(line)
	if strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "\t") || strings.ContainsAny(trimmed[:1], ">|-*+<`=") {
		return ""
	}
	return trimmed
}

// opens returns the fence that a line opens, "" for none.
func opens(line string) string {
	line = strings.TrimLeft(line, " ")
	for _, mark := range []string{"`", "~"} {
		if n := len(line) - len(strings.TrimLeft(line, mark)); n >= 3 && (mark == "~" || !strings.Contains(line[n:], "`")) {
			return line[:n]
		}
	}
	return ""
}

// closes reports whether a line closes a fence.
func closes(line, fence string) bool {
	line = strings.TrimSpace(line)
	return len(line) >= len(fence) && strings.Trim(line, fence[:1]) == ""
}

// The refusals of sections.
var (
	ErrNoSection = fault.New(fault.NotFound, "section_not_found", "the document has no such section").
			With("md_read without a heading lists the sections.")
	ErrManySections = fault.New(fault.Conflict, "section_ambiguous", "the document has several such sections").
			With("Name the headings above it too, as in \"Install > Linux\"; two of the same path are changed with editFile.")
	ErrSectionChanged = fault.New(fault.Conflict, "section_changed", "the section is not what was read: somebody has changed it").
				With("Read it again with md_read, and write what follows from that.")
	ErrSectionThere = fault.New(fault.Conflict, "section_exists", "the document has a section with this heading").
			With("Read it with md_read, and write it with the sha256 that it tells.")
	ErrSectionLevel = fault.New(fault.Invalid, "section_level", "the content of a section begins with its heading, of the level that it has")
)

// Find returns the section of a heading, which is named by its title or by the end of its path.
func Find(text, heading string) (Section, error) {
	var found []Section
	for _, s := range Sections(text) {
		if s.Path == heading || strings.HasSuffix(between+s.Path, between+heading) {
			found = append(found, s)
		}
	}
	exact := found[:0:0]
	for _, s := range found {
		if s.Path == heading {
			exact = append(exact, s)
		}
	}
	switch {
	case len(found) == 0:
		return Section{}, ErrNoSection
	case len(exact) == 1: // a title at the top goes before one below others
		return exact[0], nil
	case len(found) > 1:
		return Section{}, ErrManySections
	}
	return found[0], nil
}

// Outline returns the list of a document's sections, as a model reads it.
func Outline(text string) string {
	var b strings.Builder
	all := Sections(text)
	if len(all) == 0 {
		return fmt.Sprintf("the document has no headings; it has %d bytes: read it with readFile\n", len(text))
	}
	if first := all[0].From; first > 0 {
		fmt.Fprintf(&b, "%d bytes before the first heading\n", first)
	}
	for _, s := range all {
		fmt.Fprintf(&b, "%s %s (line %d, %d lines, %d bytes)\n", strings.Repeat("#", s.Level), s.Title, s.Line, s.Lines, s.To-s.From)
	}
	return b.String()
}

// Show returns a section as a model reads it: the hash with which it is written, where it stands, and its text.
func Show(text string, s Section) string {
	body := text[s.From:s.To]
	return fmt.Sprintf("sha256: %s\nsection: %s\nlines: %d to %d\n\n%s", event.DigestOf([]byte(body)), s.Path, s.Line, s.Line+s.Lines-1, body)
}

// Rewrite returns the change that writes a section: an old text and its replacement. The change is at the first occurrence of the old text
// in the document, so an edit of the first occurrence changes nothing else. A heading and a hash replace the section that was read. Without
// both the content is a new section at the end of the document.
func Rewrite(text string, w MDWrite) (old, changed string, err error) {
	content := w.Content
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	first := Section{}
	if begun := Sections(content); len(begun) > 0 && begun[0].From == 0 {
		first = begun[0]
	}
	if w.Heading == "" {
		if first.Level == 0 {
			return "", "", ErrSectionLevel
		}
		for _, s := range Sections(text) {
			if s.Level == first.Level && s.Title == first.Title {
				return "", "", ErrSectionThere
			}
		}
		gap := ""
		switch {
		case text == "":
		case !strings.HasSuffix(text, "\n"):
			gap = "\n\n"
		case !strings.HasSuffix(text, "\n\n"):
			gap = "\n"
		}
		return text, text + gap + content, nil
	}
	s, err := Find(text, w.Heading)
	if err != nil {
		return "", "", err
	}
	body := text[s.From:s.To]
	if event.DigestOf([]byte(body)).String() != w.Hash {
		return "", "", ErrSectionChanged
	}
	if content != "" && first.Level != s.Level {
		return "", "", ErrSectionLevel
	}
	if s.To < len(text) && content != "" && !strings.HasSuffix(content, "\n\n") {
		content += "\n" // the next heading keeps its distance
	}
	if strings.Index(text, body) == s.From {
		return body, content, nil
	}
	return text[:s.To], text[:s.From] + content, nil
}
