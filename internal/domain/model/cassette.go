package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
)

// CassetteVersion is the version of the format of cassettes. A cassette is a file of JSON lines: first a CassetteHead, then a Recording in
// each line.
const CassetteVersion = 1

// CassetteHead is the first line of a cassette.
type CassetteHead struct {
	Version int    `json:"agentbox_cassette"`
	Model   string `json:"model,omitempty"` // which one was recorded, for people
}

// Recording is one request and its answer or failure.
type Recording struct {
	Hash    event.Digest `json:"hash"` // of the request
	Request Request      `json:"request"`
	Answer  *Answer      `json:"answer,omitempty"`
	Failure *Failure     `json:"failure,omitempty"`
}

// Record returns the recording of a request.
func Record(r Request, a *Answer, f *Failure) (Recording, error) {
	hash, err := r.Hash()
	return Recording{hash, r, a, f}, err
}

// Cassette holds the answers of a scripted model.
type Cassette struct {
	Head       CassetteHead
	Recordings []Recording
}

// MaxCassetteBytes is how large a cassette may be.
const MaxCassetteBytes = 64 << 20

func badCassette(line int, format string, args ...any) error {
	return fault.New(fault.Invalid, "cassette_invalid", "line %d of the cassette: %s", line, fmt.Sprintf(format, args...))
}

// ParseCassette reads a cassette. It refuses unknown fields, and a recording whose hash is not that of its request.
func ParseCassette(raw []byte) (Cassette, error) {
	if len(raw) > MaxCassetteBytes {
		return Cassette{}, fault.New(fault.Invalid, "cassette_too_large", "a cassette has at most %d MiB", MaxCassetteBytes>>20)
	}
	c := Cassette{}
	for i, line := range bytes.Split(bytes.TrimRight(raw, "\n"), []byte("\n")) {
		if i == 0 {
			if err := strictly(line, &c.Head); err != nil || c.Head.Version != CassetteVersion {
				return Cassette{}, badCassette(1, `it must be {"agentbox_cassette":%d}`, CassetteVersion)
			}
			continue
		}
		var r Recording
		if err := strictly(line, &r); err != nil {
			return Cassette{}, badCassette(i+1, "%v", err)
		}
		hash, err := r.Request.Hash()
		switch {
		case err != nil:
			return Cassette{}, badCassette(i+1, "%v", err)
		case hash != r.Hash:
			return Cassette{}, badCassette(i+1, "the hash of the request is %s; correct it, or record again", hash)
		case (r.Answer == nil) == (r.Failure == nil):
			return Cassette{}, badCassette(i+1, "it has either an answer or a failure")
		}
		c.Recordings = append(c.Recordings, r)
	}
	return c, nil
}

func strictly(line []byte, to any) error {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(to); err != nil {
		return err
	}
	if dec.More() {
		return fmt.Errorf("something follows the object")
	}
	return nil
}

// Write returns the cassette as a file.
func (c Cassette) Write() ([]byte, error) {
	c.Head.Version = CassetteVersion
	raw, err := json.Marshal(c.Head)
	if err != nil {
		return nil, err
	}
	raw = append(raw, '\n')
	for _, r := range c.Recordings {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		raw = append(append(raw, line...), '\n')
	}
	return raw, nil
}

// Find returns the recordings of a request, in order. Without any the error names the first difference to the most similar request. The
// cache key does not count: it says nothing to a model, and it names the pins of the agent that was recorded.
func (c Cassette) Find(r Request) ([]Recording, error) {
	r.CacheKey = ""
	hash, err := r.Hash()
	if err != nil {
		return nil, err
	}
	var found []Recording
	nearest, far := "the cassette has no recordings", -1
	for i, held := range c.Recordings {
		held.Request.CacheKey = ""
		same, err := held.Request.Hash()
		if err != nil {
			return nil, err
		}
		if same == hash {
			found = append(found, held)
			continue
		}
		if where, deep := difference(held.Request, r); deep > far {
			nearest, far = fmt.Sprintf("it differs from recording %d at %s", i+1, where), deep
		}
	}
	if len(found) == 0 {
		return nil, &Failure{Class: Final, Code: "cassette_unknown_request", Message: "the cassette does not know this request: " + nearest}
	}
	return found, nil
}

// difference names the first place at which two requests differ, and how many places are equal before it.
func difference(was, is Request) (string, int) {
	a, b := flat(was), flat(is)
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%s: recorded %s, asked %s", b[i].path, clip(a[i], b[i].path), clip(b[i], b[i].path)), i
		}
	}
	return "its end: one of both has more", min(len(a), len(b))
}

type leaf struct{ path, value string }

// clip returns a short form of a value; where the other request has another member, its name.
func clip(l leaf, path string) string {
	text := l.value
	if l.path != path {
		text = l.path
	}
	if len(text) > 80 {
		text = strings.ToValidUTF8(text[:80], "") + "..."
	}
	return text
}

// flat lists the leaves of a request: its messages first, because they tell most.
func flat(r Request) []leaf {
	raw, err := r.Canonical()
	if err != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree map[string]any
	if dec.Decode(&tree) != nil {
		return nil
	}
	var list []leaf
	walk(&list, "messages", tree["messages"])
	delete(tree, "messages")
	walk(&list, "", tree)
	return list
}

func walk(list *[]leaf, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			walk(list, strings.TrimPrefix(path+"."+name, "."), v[name])
		}
	case []any:
		for i, one := range v {
			walk(list, fmt.Sprintf("%s[%d]", path, i), one)
		}
	default:
		text, err := json.Marshal(v)
		if err != nil {
			text = []byte("?")
		}
		*list = append(*list, leaf{path, string(text)})
	}
}
