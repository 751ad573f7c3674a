package snapshots

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// header begins the text of every folder, so that no file's content can be mistaken for a folder.
const header = "agentbox folder 1\n"

// MaxFolderBytes is the longest text of a folder that can be read: 100,000 entries of 160 bytes.
const MaxFolderBytes = 16 << 20

// kind is the kind of an entry of a folder.
type kind string

const (
	isFile   kind = "file"
	isFolder kind = "folder"
	isLink   kind = "link"
)

// modeBits are the permission bits that are kept. Set-user, set-group and sticky bits mean nothing in a space and are not.
const modeBits = 0o777

// entry is one line of a folder.
type entry struct {
	kind   kind
	name   string
	mode   uint32       // of files and folders
	digest event.Digest // of a file's content or of a folder's text
	size   int64        // of a file
	target string       // of a link
}

// encode returns the text of a folder, whose SHA-256 is the folder's hash. The entries are sorted by name, byte by byte.
//
//	file 0644 <sha256 of the content> <bytes> "name"
//	folder 0755 <sha256 of its text> "name"
//	link "target" "name"
func encode(entries []entry) []byte {
	var b bytes.Buffer
	b.Grow(len(header) + 112*len(entries))
	b.WriteString(header)
	for _, e := range entries {
		b.WriteString(string(e.kind))
		switch e.kind {
		case isLink:
			b.WriteByte(' ')
			b.WriteString(strconv.QuoteToASCII(e.target))
		case isFile:
			fmt.Fprintf(&b, " %04o %s %d", e.mode, e.digest.Hex(), e.size)
		default:
			fmt.Fprintf(&b, " %04o %s", e.mode, e.digest.Hex())
		}
		b.WriteByte(' ')
		b.WriteString(strconv.QuoteToASCII(e.name))
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// decode reads the text of a folder and refuses every text but the one that encode writes: names that are no names, names that are out of
// order or there twice, and anything written in another way.
func decode(text []byte) ([]entry, error) {
	rest, ok := strings.CutPrefix(string(text), header)
	if !ok {
		return nil, damaged("a folder has no header")
	}
	var entries []entry
	for rest != "" {
		line, after, ok := strings.Cut(rest, "\n")
		if !ok {
			return nil, damaged("a folder's last line has no end")
		}
		rest = after
		e, err := parse(line)
		if err != nil {
			return nil, err
		}
		if n := len(entries); n > 0 && entries[n-1].name >= e.name {
			return nil, damaged("the name %+.80q is out of order", e.name)
		}
		entries = append(entries, e)
	}
	if !bytes.Equal(encode(entries), text) {
		return nil, damaged("a folder is not written in its one form")
	}
	return entries, nil
}

func parse(line string) (entry, error) {
	word, rest, _ := strings.Cut(line, " ")
	e := entry{kind: kind(word)}
	var err error
	switch e.kind {
	case isLink:
		e.target, rest, err = quoted(rest)
		if err != nil || e.target == "" || len(e.target) > maxTarget || strings.ContainsRune(e.target, 0) {
			return e, damaged("a link has no target that a file system takes")
		}
		rest = strings.TrimPrefix(rest, " ")
	case isFile, isFolder:
		var mode, digest string
		mode, rest, _ = strings.Cut(rest, " ")
		bits, bad := strconv.ParseUint(mode, 8, 32)
		digest, rest, _ = strings.Cut(rest, " ")
		e.mode = uint32(bits)
		e.digest, err = event.ParseDigest("sha256:" + digest)
		if bad != nil || err != nil || bits > modeBits {
			return e, damaged("an entry has no mode or no hash")
		}
		if e.kind == isFile {
			var size string
			size, rest, _ = strings.Cut(rest, " ")
			if e.size, err = strconv.ParseInt(size, 10, 64); err != nil || e.size < 0 {
				return e, damaged("a file has no size")
			}
		}
	default:
		return e, damaged("there is no entry of the kind %+.20q", word)
	}
	e.name, rest, err = quoted(rest)
	if err != nil || rest != "" || !isName(e.name) {
		return e, damaged("the name %+.80q is none that a folder holds", e.name)
	}
	return e, nil
}

// maxTarget is the longest text of a symbolic link.
const maxTarget = 4095

// quoted takes a quoted text from the beginning of a line.
func quoted(line string) (text, rest string, err error) {
	prefix, err := strconv.QuotedPrefix(line)
	if err != nil || line[0] != '"' {
		return "", line, strconv.ErrSyntax
	}
	text, err = strconv.Unquote(prefix)
	return text, line[len(prefix):], err
}

// isName reports whether a folder can hold such a name; nothing else may ever become part of a path.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= space.MaxNameBytes && !strings.ContainsAny(name, "/\x00")
}

func find(entries []entry, name string) (entry, bool) {
	i, ok := slices.BinarySearchFunc(entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return entry{}, false
	}
	return entries[i], true
}

func damaged(format string, args ...any) error {
	return fault.New(fault.Internal, space.ErrSnapshotDamaged.Code, "the snapshot cannot be used: "+format, args...).
		With("rewind to another snapshot; agentbox space snapshots lists them")
}
