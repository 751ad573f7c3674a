package space

import (
	"encoding/binary"
	"regexp"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
)

// ContextFolder is where the interpreter contexts of a space lie, below its files.
const ContextFolder = ".agentbox/contexts"

// ContextUnfinished is how the file of a context ends that is being written. It takes the place of the context in one step.
const ContextUnfinished = ".new"

// CellVariable holds the code of a cell that is too long for a command line. The interpreter removes it from the environment.
const CellVariable = "AGENTBOX_CELL"

// The languages of interpreter contexts.
const (
	Python     = "python"
	JavaScript = "javascript"
)

// contextEndings are the endings of the files of contexts, without the dot.
var contextEndings = map[string]string{Python: "py", JavaScript: "js"}

// contextNames are those that a context can have: they are names of files.
var contextNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// The refusals of contexts.
var (
	ErrContextName = fault.New(fault.Invalid, "context_name_invalid",
		"a context is named by 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit")
	ErrContextLanguage = fault.New(fault.Invalid, "context_language_unknown", "the language of a context is python or javascript")
	ErrContextNotFound = fault.New(fault.NotFound, "context_not_found",
		"the space has no such context").With("see them with: agentbox context list SPACE")
	ErrContextTwice = fault.New(fault.Invalid, "context_ambiguous", "there is a context of that name in both languages").With(
		"say which with language, on the command line with -r: python or javascript")
)

// A file of a context begins with this, the ending of its language in four bytes, the number of its cells in eight, little-endian, and a
// checksum. ContextHead is how many bytes that are.
const (
	ContextMagic = "agentbox context 1\n" // with the version of the format
	ContextHead  = len(ContextMagic) + 4 + 8 + 4
)

// Context is an interpreter context of a space, as its file says.
type Context struct {
	Name     string    `json:"name"`
	Language string    `json:"language"`        // python or javascript
	Cells    uint64    `json:"cells,omitempty"` // that have ended in it; 0 where its file does not say, or may not be read
	Size     int64     `json:"size_bytes"`
	Modified time.Time `json:"modified_at"`
	Path     string    `json:"path"` // of its file
}

// ContextName refuses an invalid name of a context.
func ContextName(name string) error {
	if !contextNames.MatchString(name) {
		return ErrContextName
	}
	return nil
}

// ContextPath returns the file of a context, below the space's files.
func ContextPath(name, language string) (string, error) {
	ending, ok := contextEndings[language]
	if !ok {
		return "", ErrContextLanguage
	}
	return ContextFolder + "/" + name + "." + ending, ContextName(name)
}

// ContextOf returns the context whose file an entry of the folder of contexts is; false where it is none.
func ContextOf(e Entry) (Context, bool) {
	file, below := strings.CutPrefix(e.Path, ContextFolder+"/")
	if !below || e.Type != "file" {
		return Context{}, false
	}
	for _, language := range []string{Python, JavaScript} {
		if name, ok := strings.CutSuffix(file, "."+contextEndings[language]); ok && contextNames.MatchString(name) {
			return Context{Name: name, Language: language, Size: e.Size, Modified: e.Modified, Path: e.Path}, true
		}
	}
	return Context{}, false
}

// ContextCells returns how many cells have ended in a context by the head of its file, 0 where it says nothing. Code of the space can
// write such a file.
func ContextCells(head []byte) uint64 {
	if len(head) < ContextHead || !strings.HasPrefix(string(head), ContextMagic) {
		return 0
	}
	return binary.LittleEndian.Uint64(head[len(ContextMagic)+4:])
}
