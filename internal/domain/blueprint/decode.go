package blueprint

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"agentbox/internal/domain/policy"
)

// Shape is the shape of a value in a text.
type Shape string

// The shapes.
const (
	Null    Shape = "nothing"
	String  Shape = "a text"
	Integer Shape = "a whole number"
	Decimal Shape = "a number"
	Boolean Shape = "true or false"
	Array   Shape = "a list"
	Mapping Shape = "an object"
)

// Node is a value in a text of any format.
type Node struct {
	Line, Column int
	Shape        Shape
	Scalar       string // of everything but lists and objects, as the text has it
	Keys         []Node // of an object
	Values       []Node // of an object, beside Keys, and of a list
}

// Decode reads a blueprint strictly and returns everything that is wrong with it, in the order of the text. With problems the blueprint is
// incomplete: it is good for showing only.
func Decode(root Node) (Blueprint, []Problem) {
	var b Blueprint
	d := decoder{at: map[string]Node{}}
	d.object(reflect.ValueOf(&b).Elem(), Fields(), "", root)
	for _, p := range b.Check() {
		if d.isWrong(p.Path) {
			continue // there is no second message about a value that was not read
		}
		near := d.nearest(p.Path)
		p.Line, p.Column = near.Line, near.Column
		d.found = append(d.found, p)
	}
	slices.SortStableFunc(d.found, func(x, y Problem) int { return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column)) })
	return b, d.found
}

type decoder struct {
	at    map[string]Node // where each value stands, by path
	found []Problem
}

func (d *decoder) wrong(n Node, path, format string, args ...any) {
	d.found = append(d.found, Problem{Path: path, Line: n.Line, Column: n.Column, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) isWrong(path string) bool {
	return slices.ContainsFunc(d.found, func(p Problem) bool { return p.Path == path || p.Path != "" && strings.HasPrefix(path, p.Path+".") })
}

// nearest returns the node of a path, or of the nearest object above it that is in the text.
func (d *decoder) nearest(path string) Node {
	for {
		if n, ok := d.at[path]; ok {
			return n
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			return d.at[""]
		}
		path = path[:i]
	}
}

func (d *decoder) object(into reflect.Value, fields []Field, path string, n Node) {
	d.at[strings.TrimSuffix(path, ".")] = n
	if n.Shape != Mapping {
		d.wrong(n, strings.TrimSuffix(path, "."), "must be an object with some of %s", strings.Join(names(fields), ", "))
		return
	}
	d.entries(n, path, func(key Node, value Node) {
		i := slices.IndexFunc(fields, func(f Field) bool { return f.Name == key.Scalar })
		if i < 0 {
			where := strings.TrimSuffix(path, ".")
			d.wrong(key, path+key.Scalar, "%s has no key %.64q; did you mean %s?", cmp.Or(where, "the blueprint"), key.Scalar,
				policy.Nearest(key.Scalar, names(fields)))
			return
		}
		d.value(into.Field(fields[i].index), fields[i], path+key.Scalar, value)
	})
}

// entries calls f for each entry of an object whose key is a text that comes once.
func (d *decoder) entries(n Node, path string, f func(key, value Node)) {
	seen := map[string]bool{}
	for i, key := range n.Keys {
		switch {
		case key.Shape == Array || key.Shape == Mapping || key.Shape == Null:
			d.wrong(key, path, "a key must be a text")
		case seen[key.Scalar]:
			d.wrong(key, path+key.Scalar, "is there twice")
		default:
			seen[key.Scalar] = true
			f(key, n.Values[i])
		}
	}
}

func names(fields []Field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name
	}
	return out
}

func (d *decoder) value(into reflect.Value, f Field, path string, n Node) {
	d.at[path] = n
	if n.Shape == Null {
		d.wrong(n, path, "has no value; write one, or leave the key out")
		return
	}
	switch f.Type {
	case Object:
		d.object(into, f.Fields, path+".", n)
	case Text:
		if text, ok := d.text(n, path); ok {
			into.SetString(text)
		}
	case Money:
		if n.Shape != String && n.Shape != Integer && n.Shape != Decimal {
			d.wrong(n, path, "must be %s, not %s", f.Like, n.Shape)
			return
		}
		into.SetString(n.Scalar)
	case Number:
		v, err := strconv.Atoi(n.Scalar)
		if err != nil || n.Shape != Integer {
			d.wrong(n, path, "must be a whole number from %d to %d, not %s", f.Min, f.Max, shown(n))
			return
		}
		if v == 0 && f.Min > 0 { // Check takes zero for absent
			d.wrong(n, path, "%s", f.Number(v))
			return
		}
		into.SetInt(int64(v))
	case Truth:
		if n.Shape != Boolean {
			d.wrong(n, path, "must be true or false, not %s", shown(n))
			return
		}
		into.SetBool(n.Scalar == "true")
	case List:
		d.list(into, path, n)
	case Table:
		d.table(into, path, n)
	}
}

func shown(n Node) string {
	if n.Shape == Array || n.Shape == Mapping {
		return string(n.Shape)
	}
	return strconv.Quote(n.Scalar[:min(len(n.Scalar), 64)])
}

func (d *decoder) text(n Node, path string) (string, bool) {
	switch {
	case n.Shape == Array || n.Shape == Mapping || n.Shape == Null:
		d.wrong(n, path, "must be a text, not %s", n.Shape)
	case n.Shape != String:
		d.wrong(n, path, "must be a text; put %s in quotes", n.Scalar)
	case n.Scalar == "":
		d.wrong(n, path, "must not be empty; leave the key out instead")
	default:
		return n.Scalar, true
	}
	return "", false
}

func (d *decoder) list(into reflect.Value, path string, n Node) {
	if n.Shape != Array {
		d.wrong(n, path, "must be a list, not %s; write [%s]", shown(n), n.Scalar)
		return
	}
	if len(n.Values) == 0 { // is said in one way only, so that one blueprint has one hash
		d.wrong(n, path, "must not be empty; leave the key out instead")
		return
	}
	out := make([]string, 0, len(n.Values))
	for i, entry := range n.Values {
		at := path + "[" + strconv.Itoa(i) + "]"
		d.at[at] = entry
		if text, ok := d.text(entry, at); ok {
			out = append(out, text)
		}
	}
	into.Set(reflect.ValueOf(out))
}

func (d *decoder) table(into reflect.Value, path string, n Node) {
	if n.Shape != Mapping {
		d.wrong(n, path, "must be an object, not %s", shown(n))
		return
	}
	if len(n.Keys) == 0 {
		d.wrong(n, path, "must not be empty; leave the key out instead")
		return
	}
	out := map[string]string{}
	d.entries(n, path+".", func(key, value Node) {
		at := path + "." + key.Scalar
		d.at[at] = value
		if value.Shape == Integer || value.Shape == Decimal || value.Shape == Boolean {
			d.wrong(value, at, "must be a text; put %s in quotes", value.Scalar)
			return
		}
		if value.Shape == String && value.Scalar == "" { // an environment variable may be empty
			out[key.Scalar] = ""
			return
		}
		if text, ok := d.text(value, at); ok {
			out[key.Scalar] = text
		}
	})
	into.Set(reflect.ValueOf(out))
}
