package blueprint

import (
	"reflect"
	"strconv"
)

// Change is one value that differs between two blueprints. Of the two, an empty one is not there.
type Change struct {
	Path string `json:"path" doc:"Where, as limits.steps"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// Diff returns what differs from one blueprint to another, in the order of their keys.
func Diff(from, to Blueprint) []Change {
	var found []Change
	compare(reflect.ValueOf(from), reflect.ValueOf(to), Fields(), "", &found)
	return found
}

func compare(from, to reflect.Value, fields []Field, prefix string, found *[]Change) {
	differ := func(path, was, is string) {
		if was != is {
			*found = append(*found, Change{path, was, is})
		}
	}
	for _, f := range fields {
		was, is, path := from.Field(f.index), to.Field(f.index), prefix+f.Name
		switch f.Type {
		case Object:
			compare(was, is, f.Fields, path+".", found)
		case Text, Money:
			differ(path, was.String(), is.String())
		case Number:
			differ(path, number(was.Int()), number(is.Int()))
		case Truth:
			differ(path, truth(was.Bool()), truth(is.Bool()))
		case List:
			at := func(list reflect.Value, i int) string {
				if i < list.Len() {
					return list.Index(i).String()
				}
				return ""
			}
			for i := range max(was.Len(), is.Len()) {
				differ(path+"["+strconv.Itoa(i)+"]", at(was, i), at(is, i))
			}
		case Table:
			both := map[string]bool{}
			for _, key := range append(sorted(was), sorted(is)...) {
				both[key] = true
			}
			at := func(table reflect.Value, key string) string {
				if v := table.MapIndex(reflect.ValueOf(key)); v.IsValid() {
					return v.String()
				}
				return ""
			}
			for _, key := range sorted(reflect.ValueOf(both)) {
				differ(path+"."+key, at(was, key), at(is, key))
			}
		}
	}
}

func number(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

func truth(b bool) string {
	if b {
		return "true"
	}
	return ""
}
