package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/tool"
)

// The relatives that the tools of capsules read.
const (
	FromParent    = "parent"
	FromAncestors = "ancestors" // the parent is the first of them
	FromChildren  = "children"
	FromSiblings  = "siblings"
)

// Limits of arguments.
const (
	maxNumber = 1000               // of a relative: an agent starts at most so many others
	maxName   = space.MaxPathRunes // characters of the name of an artifact
)

// Among returns the tools that lead only to relatives, whose own blueprints say what they show.
func Among() []string { return []string{CapsuleWriteTool, CapsuleReadTool, ArtifactReadTool} }

// among reports whether a blueprint's agent is offered a tool of capsules.
func among(name string, b blueprint.Blueprint) bool {
	switch name {
	case CapsuleWriteTool:
		return len(b.Comms.Writes()) > 0
	case CapsuleReadTool:
		return len(b.Context.Sources) > 0
	case ArtifactReadTool:
		return b.Context.Takes(blueprint.ManifestCapsule)
	}
	return false
}

// written are the types of capsules that a model writes.
var written = []string{blueprint.StatusCapsule, blueprint.PlanCapsule, blueprint.DecisionCapsule, blueprint.RiskCapsule}

// relative refuses a word and a number that name no relative; 0 stands for no number.
func relative(from string, number int) error {
	if kin := []string{FromParent, FromAncestors, FromChildren, FromSiblings}; !slices.Contains(kin, from) {
		return wrong("from is one of %s, not %.32q", strings.Join(kin, ", "), from)
	}
	if number < 0 || number > maxNumber {
		return wrong("number is 1 to %d", maxNumber)
	}
	return nil
}

// CapsuleWrite are the arguments of the tool capsule_write.
type CapsuleWrite struct {
	head
	Capsule string `json:"capsule"` // its type
	Text    string `json:"text"`
}

// ReadCapsuleWrite reads the arguments of the tool capsule_write.
func ReadCapsuleWrite(arguments json.RawMessage) (CapsuleWrite, error) {
	var c CapsuleWrite
	if err := strictly(arguments, &c); err != nil {
		return c, err
	}
	switch {
	case !slices.Contains(written, c.Capsule):
		return c, wrong("capsule is one of %s, not %.32q", strings.Join(written, ", "), c.Capsule)
	case strings.TrimSpace(c.Text) == "":
		return c, wrong("text is missing")
	}
	return c, nil
}

// CapsuleRead are the arguments of the tool capsule_read.
type CapsuleRead struct {
	head
	From    string `json:"from"`
	Number  int    `json:"number"`  // 0 for all
	Capsule string `json:"capsule"` // "" for every type
}

// ReadCapsuleRead reads the arguments of the tool capsule_read.
func ReadCapsuleRead(arguments json.RawMessage) (CapsuleRead, error) {
	var c CapsuleRead
	if err := strictly(arguments, &c); err != nil {
		return c, err
	}
	if err := relative(c.From, c.Number); err != nil {
		return c, err
	}
	if all := blueprint.CapsuleTypes(); c.Capsule != "" && !slices.Contains(all, c.Capsule) {
		return c, wrong("capsule is one of %s, not %.32q", strings.Join(all, ", "), c.Capsule)
	}
	return c, nil
}

// ArtifactRead are the arguments of the tool artifact_read.
type ArtifactRead struct {
	head
	From     string `json:"from"`
	Number   int    `json:"number"`
	Artifact string `json:"artifact"` // its name in the list
	Offset   int    `json:"offset"`   // in characters
	Length   int    `json:"length"`   // 0 for as many characters as are shown
}

// ReadArtifactRead reads the arguments of the tool artifact_read.
func ReadArtifactRead(arguments json.RawMessage) (ArtifactRead, error) {
	var a ArtifactRead
	if err := strictly(arguments, &a); err != nil {
		return a, err
	}
	if err := relative(a.From, a.Number); err != nil {
		return a, err
	}
	a.Number = max(a.Number, 1)
	switch {
	case a.Artifact == "" || utf8.RuneCountInString(a.Artifact) > maxName:
		return a, wrong("artifact is missing: its name, as the list of artifacts has it")
	case a.Offset < 0 || a.Length < 0:
		return a, wrong("offset is at least 0, and length at least 1")
	}
	return a, nil
}

// Capsules returns what a reader is shown of the capsules of one relative. Shown are their types. Found are the types of the capsules that
// the relative has written, the newest first, and read returns the text of one of them. The reader's budgets shorten a text. Of the
// decisions it leaves out the oldest, of all others everything but the newest.
func Capsules(reader blueprint.Context, shown, found []string, read func(i int) (string, error)) (string, error) {
	var b strings.Builder
	for _, name := range shown {
		switch i := slices.Index(found, name); {
		case i < 0 || name == blueprint.ManifestCapsule:
		case name == blueprint.DecisionCapsule:
			if err := decisions(&b, reader.Budget(name), found, read); err != nil {
				return "", err
			}
		default:
			text, err := read(i)
			if err != nil {
				return "", err
			}
			capsuled(&b, name, text, reader.Budget(name))
		}
	}
	return b.String(), nil
}

// decisions writes the newest decisions that fit into a number of characters, the oldest of them first.
func decisions(b *strings.Builder, budget int, found []string, read func(i int) (string, error)) error {
	var texts []string // the newest first
	older, left := 0, budget
	for i, name := range found {
		if name != blueprint.DecisionCapsule {
			continue
		}
		if older > 0 {
			older++
			continue
		}
		text, err := read(i)
		if err != nil {
			return err
		}
		if n := utf8.RuneCountInString(text); n <= left || len(texts) == 0 { // the newest is shortened instead
			texts, left = append(texts, text), left-n
		} else {
			older = 1
		}
	}
	if older > 0 {
		fmt.Fprintf(b, "%d older decisions are left out\n", older)
	}
	for i, text := range slices.Backward(texts) {
		capsuled(b, fmt.Sprintf("decision %d", older+len(texts)-i), text, budget)
	}
	return nil
}

// capsuled writes a capsule. Its lines are indented, so that no text looks like the capsule of somebody else.
func capsuled(b *strings.Builder, name, text string, budget int) {
	fmt.Fprintf(b, "%s:\n%s", name, Indented(text, budget))
}

// Indented returns a text of an agent for another one: at most about a number of characters, in indented lines.
func Indented(text string, most int) string {
	text, _ = tool.Excerpt(strings.TrimRight(text, "\n"), most, "You are shown no more of it.")
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + strings.TrimRight(line, "\r\n") + "\n")
	}
	return b.String()
}

// Manifest returns a list of artifacts, a line for each, the oldest first. It leaves out the oldest ones where the lines would have more
// characters than the budget, and counts them.
func Manifest(lines []string, budget int) string {
	from := len(lines)
	for ; from > 0; from-- {
		if budget -= utf8.RuneCountInString(lines[from-1]); budget < 0 {
			break
		}
	}
	text := strings.Join(lines[from:], "")
	if from > 0 {
		text += fmt.Sprintf("%d older artifacts are left out\n", from)
	}
	return text
}
