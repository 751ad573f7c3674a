package space

import (
	"strings"
	"unicode/utf8"

	"agentbox/internal/domain/fault"
)

// MaxEditWork bounds the bytes that the edits of one file look through, all together: 40 edits of 100 MiB, or 1,000 of 4 MiB.
const MaxEditWork = 4 << 30

// ApplyEdits returns the text after the edits, in order. Each edit replaces the first occurrence of its old text in the result of the
// previous ones. It refuses all edits if one finds nothing, if a text (old or new) is not UTF-8, or if the result has more than max bytes.
// The path is for the errors only.
func ApplyEdits(path, text string, edits []Edit, max int64) (string, error) {
	if len(edits) == 0 {
		return "", fault.New(fault.Invalid, "invalid_edit", "there are no edits; name at least one")
	}
	if !utf8.ValidString(text) {
		return "", fault.New(fault.Conflict, ErrNotText.Code, "%+q is not UTF-8 text and cannot be edited",
			path).With("write the whole file instead")
	}
	var work int64
	for i, e := range edits {
		if work += int64(len(text)); work > MaxEditWork {
			return "", fault.New(fault.Exhausted, "edit_too_large", "%d edits of %d bytes are more than the %d bytes that one edit may search",
				len(edits), len(text), int64(MaxEditWork)).
				With("make the edits in several operations, or write the whole file instead")
		}
		if e.Old == "" {
			return "", fault.New(fault.Invalid, "invalid_edit", "edit %d of %d has no oldContent; name the text to replace", i+1, len(edits))
		}
		if !utf8.ValidString(e.New) {
			return "", fault.New(fault.Invalid, "invalid_edit", "edit %d of %d has a newContent that is not UTF-8 text", i+1, len(edits))
		}
		before, after, ok := strings.Cut(text, e.Old)
		if !ok {
			return "", fault.New(fault.Conflict, ErrEditNotFound.Code, "edit %d of %d (index %d): its oldContent is not in %+q; nothing was changed",
				i+1, len(edits), i, path).
				With("read the file again and quote the text exactly as it stands there")
		}
		if size := int64(len(before)) + int64(len(e.New)) + int64(len(after)); size > max && size > int64(len(text)) {
			return "", fault.New(fault.Exhausted, ErrFileTooLarge.Code, "%+q would have %d bytes after edit %d of %d; at most %d are taken", path,
				size, i+1, len(edits), max)
		}
		text = before + e.New + after
	}
	return text, nil
}
