package models

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/kernel/yamltext"
)

// MaxFileBytes bounds the file of models, and that of prices.
const MaxFileBytes = 1 << 20

const (
	maxDepth    = 8  // of nested lists and objects
	maxBrackets = 64 // of nested brackets, checked before the text is parsed
	maxProblems = 10 // in one error
)

// File is the content of the file of models.
type File struct {
	Models  []model.Entry  `json:"models"`
	Routes  []model.Route  `json:"routes"`
	Budgets []model.Budget `json:"budgets"`

	lines map[string][]int // of the items of each list
}

// ReadFile reads the text of a file of models strictly: YAML without anchors, aliases and tags.
func ReadFile(text []byte) (File, error) {
	var f File
	if err := strictly(codeFile, text, &f); err != nil {
		return f, err
	}
	f.lines = linesOf(text)
	return f, nil
}

// linesOf returns the lines on which the items of the lists of a valid file begin.
func linesOf(text []byte) map[string][]int {
	lines := map[string][]int{}
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return lines
	}
	for i := 0; i+1 < len(doc.Content[0].Content); i += 2 {
		for _, item := range doc.Content[0].Content[i+1].Content {
			name := doc.Content[0].Content[i].Value
			lines[name] = append(lines[name], item.Line)
		}
	}
	return lines
}

// ReadPrices reads the text of a file of prices strictly. Without a file (nil) nothing has a price. An empty text is wrong: somebody may be
// writing it.
func ReadPrices(text []byte) (model.Prices, error) {
	var p model.Prices
	if text == nil {
		return p, nil
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return p, fault.New(fault.Invalid, "prices_invalid", "the file is empty; remove it to have no prices")
	}
	if err := strictly("prices_invalid", text, &p); err != nil {
		return p, err
	}
	at, err := p.Check()
	if line := lineOf(text, at); err != nil && line > 0 {
		err = fault.New(fault.Invalid, fault.CodeOf(err), "line %d: %s", line, sentence(err))
	}
	return p, err
}

// lineOf returns the line of the key to which the keys at lead, from the outermost on; 0 if it is not in the text.
func lineOf(text []byte, at []string) (line int) {
	var doc yaml.Node
	if yaml.Unmarshal(text, &doc) != nil || len(doc.Content) == 0 {
		return 0
	}
	n := doc.Content[0]
	for _, key := range at {
		i := 0
		for i+1 < len(n.Content) && n.Content[i].Value != key {
			i += 2
		}
		if i+1 >= len(n.Content) {
			return 0
		}
		line, n = n.Content[i].Line, n.Content[i+1]
	}
	return line
}

// strict decodes YAML into values and collects the problems.
type strict struct{ problems []string }

func (s *strict) wrong(n *yaml.Node, format string, args ...any) {
	s.problems = append(s.problems, fmt.Sprintf("line %d, column %d: %s", n.Line, n.Column, fmt.Sprintf(format, args...)))
}

// strictly decodes a text into a struct whose tags name the keys. The error names up to maxProblems problems, with line and column.
func strictly(code string, text []byte, into any) error {
	bad := func(format string, args ...any) error { return fault.New(fault.Invalid, code, format, args...) }
	if len(text) > MaxFileBytes {
		return bad("the file has %d bytes; the limit is %d", len(text), MaxFileBytes)
	}
	depth := 0
	for _, c := range text {
		switch c {
		case '[', '{':
			if depth++; depth > maxBrackets {
				return bad("brackets are nested more than %d deep", maxBrackets)
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return bad("%s", yamltext.FaultOf(text, err, func(r io.Reader) error { return yaml.NewDecoder(r).Decode(new(yaml.Node)) }))
	}
	if err := decoder.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return bad("there is more than one document")
	}
	var s strict
	s.value(doc.Content[0], reflect.ValueOf(into).Elem(), 0)
	if len(s.problems) == 0 {
		return nil
	}
	said := s.problems[:min(len(s.problems), maxProblems)]
	if more := len(s.problems) - len(said); more > 0 {
		said = append(slices.Clip(said), fmt.Sprintf("and %d more", more))
	}
	return bad("%s", strings.Join(said, "; "))
}

// unsaid are the keys that a file may not have, because the log has them.
var unsaid = []string{"workspace_id", "added_by", "added_at"}

// keysOf returns the fields of a struct by the names of their tags.
func keysOf(t reflect.Type) (names []string, fields map[string]int) {
	fields = map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" && !slices.Contains(unsaid, name) {
			names, fields[name] = append(names, name), i
		}
	}
	return names, fields
}

func (s *strict) value(n *yaml.Node, v reflect.Value, depth int) {
	switch {
	case depth > maxDepth:
		s.wrong(n, "it is nested more than %d deep", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "" || n.Tag == "!!merge" || n.Style&yaml.TaggedStyle != 0:
		s.wrong(n, "anchors, aliases, merge keys and tags are not allowed; write the value out")
	case v.Kind() == reflect.Struct:
		names, fields := keysOf(v.Type())
		s.pairs(n, func(key, value *yaml.Node) {
			field, ok := fields[key.Value]
			if !ok {
				s.wrong(key, "there is no key %.64q; did you mean %s?", key.Value, policy.Nearest(key.Value, names))
				return
			}
			s.value(value, v.Field(field), depth+1)
		})
	case v.Kind() == reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		s.pairs(n, func(key, value *yaml.Node) {
			one := reflect.New(v.Type().Elem()).Elem()
			s.value(value, one, depth+1)
			v.SetMapIndex(reflect.ValueOf(key.Value), one)
		})
	case v.Kind() == reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			s.wrong(n, "a list is wanted here")
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
		for i, one := range n.Content {
			s.value(one, v.Index(i), depth+1)
		}
	case n.Kind != yaml.ScalarNode || n.Tag == "!!null":
		s.wrong(n, "a value is wanted here")
	default:
		s.scalar(n, v)
	}
}

func (s *strict) pairs(n *yaml.Node, each func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		s.wrong(n, "keys with values are wanted here")
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if seen[key.Value] {
			s.wrong(key, "the key %.64q stands here twice", key.Value)
			continue
		}
		seen[key.Value] = true
		each(key, n.Content[i+1])
	}
}

func (s *strict) scalar(n *yaml.Node, v reflect.Value) {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if err := u.UnmarshalText([]byte(n.Value)); err != nil {
			s.wrong(n, "%s", sentence(err))
		}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		truth, err := strconv.ParseBool(n.Value)
		if err != nil || n.Tag != "!!bool" {
			s.wrong(n, "true or false is wanted here")
		}
		v.SetBool(truth)
	case reflect.Int:
		number, err := strconv.Atoi(strings.ReplaceAll(n.Value, "_", ""))
		if err != nil {
			s.wrong(n, "a whole number is wanted here")
		}
		v.SetInt(int64(number))
	default:
		s.wrong(n, "nothing can stand here")
	}
}
