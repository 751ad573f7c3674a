package tiering

import (
	"bytes"
	_ "embed" // the rules of a daemon that has none of its own
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/yamltext"
)

// The bounds of a file of rules.
const (
	MaxRulesBytes = 256 << 10
	maxEntries    = 5_000 // of one list
	maxEntry      = 200   // bytes of one entry
)

// Rules are an operator's rules about where commands run.
type Rules struct {
	Nano   Kinds  `yaml:"nano"`  // beside what the tier says of itself: it has these
	Heavy  Wants  `yaml:"heavy"` // these need a heavier tier, even where nano has something of the name
	Bounds Bounds `yaml:"bounds"`
}

// Kinds are names by their kinds.
type Kinds struct {
	Commands []string `yaml:"commands"`
	Modules  []string `yaml:"modules"`  // of Python: a, or a.b for that and what lies in it; of Node: node:a
	Packages []string `yaml:"packages"` // of pip and npm
}

// Wants are names by their kinds, and variables.
type Wants struct {
	Kinds `yaml:",inline"`
	Env   []string `yaml:"env"` // NAME, or NAME=VALUE; * is anything
}

// Bounds bound how much is read to find out where a command runs.
type Bounds struct {
	Files     int   `yaml:"files"`      // 0 to MaxFiles
	FileBytes int64 `yaml:"file_bytes"` // of each, 1 to MaxFileBytes
}

//go:embed rules.yaml
var standard []byte

// Standard returns the rules of a daemon that has none of its own.
func Standard() (Rules, error) { return ParseRules(standard) }

// ParseRules reads rules. A missing list is empty, and missing bounds are the largest.
func ParseRules(text []byte) (Rules, error) {
	r := Rules{Bounds: Bounds{Files: MaxFiles, FileBytes: MaxFileBytes}}
	if len(text) > MaxRulesBytes {
		return r, refuse("they have %d bytes; at most %d are read", len(text), MaxRulesBytes)
	}
	if !utf8.Valid(text) || bytes.Count(text, []byte("[")) > maxEntries || bytes.Count(text, []byte("{")) > maxEntries {
		return r, refuse("they are not UTF-8 text, or hold more brackets than rules need")
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return r, nil
	}
	if err != nil {
		return r, refuse("%s", yamltext.FaultOf(text, err, func(r io.Reader) error { return yaml.NewDecoder(r).Decode(new(yaml.Node)) }))
	}
	if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return r, refuse("there is more than one document")
	}
	if err := plain(&doc, 0); err != nil {
		return r, err
	}
	if err := shaped(doc.Content[0], ""); err != nil {
		return r, err
	}
	if err := doc.Decode(&r); err != nil {
		return r, refuse("a number of bounds is too large")
	}
	return r, r.check()
}

// sections are the keys of each section.
var sections = map[string][]string{
	"":       {"nano", "heavy", "bounds"},
	"nano":   {"commands", "modules", "packages"},
	"heavy":  {"commands", "modules", "packages", "env"},
	"bounds": {"files", "file_bytes"},
}

// shaped refuses keys that do not exist, and values of another kind than the one of their key. No value is shown. A missing value is that
// of a missing key.
func shaped(n *yaml.Node, path string) error {
	keys, section := sections[path]
	switch {
	case n.Tag == "!!null":
	case section:
		if n.Kind != yaml.MappingNode {
			return refuse("line %d: keys with values are wanted here: %s", n.Line, strings.Join(keys, ", "))
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if !slices.Contains(keys, key.Value) {
				return refuse("line %d: there is no key %.64q here; did you mean %s?", key.Line, key.Value, policy.Nearest(key.Value, keys))
			}
			if seen[key.Value] {
				return refuse("line %d: the key %q stands here twice", key.Line, key.Value)
			}
			seen[key.Value] = true
			if err := shaped(n.Content[i+1], strings.TrimPrefix(path+"."+key.Value, ".")); err != nil {
				return err
			}
		}
	case strings.HasPrefix(path, "bounds."):
		if n.Tag != "!!int" {
			return refuse("line %d: %s is a whole number", n.Line, path)
		}
	default:
		for _, one := range append([]*yaml.Node{n}, n.Content...) {
			if one == n && n.Kind != yaml.SequenceNode || one != n && one.Kind != yaml.ScalarNode {
				return refuse("line %d: %s is a list of names, such as [a, b]", one.Line, path)
			}
		}
	}
	return nil
}

// maxNesting is how deep rules nest.
const maxNesting = 5

// plain refuses what rules do not need and a bomb does.
func plain(n *yaml.Node, depth int) error {
	switch {
	case depth > maxNesting:
		return refuse("line %d: they are nested more than %d deep", n.Line, maxNesting)
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" || n.Style&yaml.TaggedStyle != 0:
		return refuse("line %d: anchors, aliases, merges and tags are not allowed; write the value out", n.Line)
	}
	for _, child := range n.Content {
		if err := plain(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func (r Rules) check() error {
	for _, l := range []struct {
		name string
		list []string
	}{
		{"nano.commands", r.Nano.Commands}, {"nano.modules", r.Nano.Modules}, {"nano.packages", r.Nano.Packages},
		{"heavy.commands", r.Heavy.Commands}, {"heavy.modules", r.Heavy.Modules}, {"heavy.packages", r.Heavy.Packages},
		{"heavy.env", r.Heavy.Env},
	} {
		if len(l.list) > maxEntries {
			return refuse("%s has %d entries; at most %d are taken", l.name, len(l.list), maxEntries)
		}
		for i, e := range l.list {
			if e == "" || len(e) > maxEntry || strings.ContainsFunc(e, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
				return refuse("%s: entry %d is not a name of 1 to %d bytes without spaces", l.name, i+1, maxEntry)
			}
			if strings.Contains(e, "/") && strings.HasSuffix(l.name, "commands") {
				return refuse("%s: %q is not a command; name it without its folder", l.name, e)
			}
		}
	}
	if b := r.Bounds; b.Files < 0 || b.Files > MaxFiles || b.FileBytes < 1 || b.FileBytes > MaxFileBytes {
		return refuse("bounds.files is 0 to %d, and bounds.file_bytes 1 to %d", MaxFiles, MaxFileBytes)
	}
	return nil
}

func refuse(format string, args ...any) error {
	return fault.New(fault.Invalid, "runtime_rules_invalid", "the rules of where commands run cannot be used: %s", fmt.Sprintf(format,
		args...))
}
