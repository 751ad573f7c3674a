package jq

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/itchyny/gojq"
)

// jqApplied is what jq says where a function cannot be applied to a value, which stands for %.
var jqApplied = map[string]string{
	"keys": "% has no keys", "keys_unsorted": "% has no keys", "to_entries": "% has no keys", "length": "% has no length",
	"sort":           "% cannot be sorted, as it is not an array",
	"utf8bytelength": "% only strings have UTF-8 byte length", "explode": "explode input must be a string",
	"ascii_downcase": "explode input must be a string",
	"ascii_upcase":   "explode input must be a string", "implode": "implode input must be an array",
	"split":      "split input and separator must be strings",
	"startswith": "startswith() requires string inputs", "endswith": "endswith() requires string inputs",
	"tonumber": "% cannot be parsed as a number",
	"fromjson": "% only strings can be parsed", "match": "% cannot be matched, as it is not a string",
	"test":   "% cannot be matched, as it is not a string",
	"_match": "% cannot be matched, as it is not a string", "unique": "Cannot iterate over %", "add": "Cannot iterate over %",
	"flatten":   "Cannot iterate over %",
	"_group_by": "Cannot iterate over %", "_sort_by": "Cannot iterate over %", "delpaths": "Paths must be specified as an array",
	"mktime": "mktime requires array inputs",
	"@csv":   "% cannot be csv-formatted, only array", "@tsv": "% cannot be tsv-formatted, only array", "transpose": "Cannot iterate over %",
	"range": "Range bounds must be numeric",
	"min":   "% and % cannot be iterated over", "max": "% and % cannot be iterated over", "_min_by": "Cannot iterate over %",
	"_max_by": "Cannot iterate over %",
	"setpath": "Path must be specified as an array", "gmtime": "gmtime() requires a number",
	"strftime": "strftime/1 requires parsed datetime inputs",
}

// jqPrefixes are the messages whose beginning says all.
var jqPrefixes = [][2]string{
	{"expected \"start\" and \"end\" for slicing", "Array/string slice indices must be integers"}, {"flatten depth should not be negative",
		"flatten depth must not be negative"},
	{"repeat string result too large", "Repeat string result too long"}, {"length mismatch", "Length mismatch"}, {"array index too large",
		"Array index too large"},
	{"array index should not be negative", "Out of bounds negative array index"}, {"nth doesn't support negative index",
		"nth doesn't support negative indices"},
}

// jqMessage writes what the library says about mistakes in the words of jq. key is the name that an object was asked for, if that is known.
func jqMessage(s, key string) string {
	for _, x := range jqPrefixes {
		if strings.HasPrefix(s, x[0]) {
			return x[1]
		}
	}
	if rest, ok := strings.CutPrefix(s, "cannot iterate over: "); ok {
		return "Cannot iterate over " + shown(rest)
	}
	if rest, ok := strings.CutPrefix(s, "invalid path against: "); ok {
		return "Invalid path expression with result " + shownValue(rest)
	}
	if rest, ok := strings.CutPrefix(s, "invalid path on iterating against: "); ok {
		return "Invalid path expression near attempt to iterate through " + shownValue(rest)
	}
	if rest, ok := strings.CutPrefix(s, "unsupported regular expression flag: "); ok {
		return strings.Trim(strings.TrimSuffix(rest, `g"`), `"`) + " is not a valid modifier string"
	}
	if text, ok := jqOperation(s); ok {
		return text
	}
	if text, ok := jqIndexing(s, key); ok {
		return text
	}
	return jqCall(s)
}

// computedKey is a key of an object that is an expression.
var computedKey = regexp.MustCompile(`[{,]\s*\(`)

// keyed reports whether a program computes keys of objects, and indexes nothing by an expression: only then it is known what the library
// complains of.
func keyed(filter string) bool {
	return computedKey.MatchString(filter) && !strings.Contains(filter, "[")
}

// wordsOf writes what the library says about mistakes in the words of jq.
func wordsOf(q *querier, s, key string) string {
	if rest, ok := strings.CutPrefix(s, "expected a string for object key but got: "); ok && q.keyed {
		return "Cannot use " + shown(rest) + " as object key"
	}
	return jqMessage(s, key)
}

// jqOperation is what went wrong with an operator.
func jqOperation(s string) (string, bool) {
	for _, verb := range [][2]string{{"add", "added"}, {"subtract", "subtracted"}, {"multiply", "multiplied"}, {"divide", "divided"},
		{"negate", "negated"}} {
		if rest, ok := strings.CutPrefix(s, "cannot "+verb[0]+": "); ok {
			return shownPair(rest, " and ") + " cannot be " + verb[1], true
		}
	}
	if rest, ok := strings.CutPrefix(s, "cannot divide "); ok {
		return strings.Replace(rest, " by: ", " and ", 1) + " cannot be divided because the divisor is zero", true
	}
	if rest, ok := strings.CutPrefix(s, "cannot modulo "); ok && strings.Contains(rest, " by: ") {
		return strings.Replace(rest, " by: ", " and ", 1) + " cannot be divided (remainder) because the divisor is zero", true
	}
	if rest, ok := strings.CutPrefix(s, "cannot modulo: "); ok {
		return shownPair(rest, " and ") + " cannot be divided (remainder)", true
	}
	return "", false
}

// jqIndexing is what went wrong with an index.
func jqIndexing(s, key string) (string, bool) {
	kind := func(s string) string { k, _, _ := strings.Cut(s, " "); return k }
	if rest, ok := strings.CutPrefix(s, "expected an object but got: "); ok {
		if key != "" {
			return "Cannot index " + kind(rest) + ` with string "` + key + `"`, true
		}
		return "Cannot index " + kind(rest) + " with string", true
	}
	if rest, ok := strings.CutPrefix(s, "expected an array but got: "); ok {
		return "Cannot index " + kind(rest) + " with number", true
	}
	if rest, ok := strings.CutPrefix(s, "expected a string for object key but got: "); ok {
		return "Cannot index object with " + kind(rest), true
	}
	for _, of := range []string{"array", "string"} {
		for _, article := range []string{"an ", "a "} {
			if rest, ok := strings.CutPrefix(s, "expected a number for indexing "+article+of+" but got: "); ok {
				if value := shownValue(rest); kind(rest) == "string" {
					return "Cannot index " + of + " with string " + value, true
				}
				return "Cannot index " + of + " with " + kind(rest), true
			}
		}
	}
	return "", false
}

// jqCall is what went wrong with a function.
func jqCall(s string) string {
	if what, rest, ok := strings.Cut(s, " cannot format an array including: "); ok && strings.HasPrefix(what, "@") {
		if what == "@sh" {
			return shown(rest) + " can not be escaped for shell"
		}
		return shown(rest) + " is not valid in a csv row"
	}
	call, rest, ok := strings.Cut(s, " cannot be applied to")
	if !ok {
		return s
	}
	name, args, _ := strings.Cut(call, "(")
	if of, isTyped := strings.CutPrefix(rest, ": "); isTyped {
		kind, _, _ := strings.Cut(of, " ")
		switch name {
		case "reverse":
			return "Cannot index " + kind + " with number"
		case "has":
			return "Cannot check whether " + kind + " has a " + kindOf(strings.TrimSuffix(args, ")")) + " key"
		case "contains", "inside":
			arg := strings.TrimSuffix(args, ")")
			return shown(of) + " and " + shown(kindOf(arg)+" ("+arg+")") + " cannot have their containment checked"
		}
		if text, known := jqApplied[name]; known {
			return strings.ReplaceAll(text, "%", shown(of))
		}
		return s
	}
	for _, x := range []string{"array index should not be negative: ", "array index too large: ", "expected an object but got: ",
		"expected an array but got: "} {
		if _, what, ok := strings.Cut(rest, ": "+x); ok {
			return jqMessage(x+what, "")
		}
	}
	value, reason, _ := strings.Cut(strings.TrimPrefix(rest, " "), ": ")
	switch {
	case name == "tonumber" && len(value) > 2:
		return fmt.Sprintf("Invalid numeric literal at EOF at line 1, column %d (while parsing '%s')", len(value)-2, value[1:len(value)-1])
	case name == "@base64d":
		return shown(kindOf(value)+" ("+value+")") + " is not valid base64 data"
	case name == "strptime" && strings.HasPrefix(reason, "failed to parse"):
		return "date " + value + " does not match format " + strings.TrimSuffix(args, ")")
	}
	if name == "mktime" || name == "strftime" {
		return map[string]string{"mktime": "mktime requires parsed datetime inputs",
			"strftime": "strftime/1 requires parsed datetime inputs"}[name]
	}
	return s
}

// kindOf is the kind of a value that is written as JSON.
func kindOf(s string) string {
	switch {
	case s == "null":
		return "null"
	case s == "true" || s == "false":
		return "boolean"
	case strings.HasPrefix(s, `"`):
		return "string"
	case strings.HasPrefix(s, "["):
		return "array"
	case strings.HasPrefix(s, "{"):
		return "object"
	}
	return "number"
}

// shown writes a value with its kind as short as jq does.
func shown(s string) string {
	if s == "null" {
		return "null (null)"
	}
	kind, value, ok := strings.Cut(s, " (")
	if !ok || !strings.HasSuffix(value, ")") {
		return s
	}
	value = strings.TrimSuffix(value, ")")
	if len(value) > 14 {
		value = strings.ToValidUTF8(value[:11], "") + "..."
	}
	return kind + " (" + value + ")"
}

// shownPair writes two values.
func shownPair(s, between string) string {
	for _, kind := range []string{"null", "boolean", "number", "string", "array", "object"} {
		if i := strings.Index(s, between+kind); i >= 0 {
			return shown(s[:i]) + between + shown(s[i+len(between):])
		}
	}
	return shown(s)
}

// shownValue is a value without its kind.
func shownValue(s string) string {
	if _, value, ok := strings.Cut(s, " ("); ok {
		return strings.TrimSuffix(value, ")")
	}
	return s
}

// jqAdapted makes a program say what went wrong in the words of jq, where it catches that.
func jqAdapted(query *gojq.Query) {
	adapt(reflect.ValueOf(query), 0)
}

// maxNested bounds how deep a program is examined. The parser is bounded by the length of a program, and by its stack.
const maxNested = 100_000

func adapt(v reflect.Value, depth int) {
	if depth > maxNested {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		adapt(v.Elem(), depth+1)
		if try, ok := v.Interface().(*gojq.Try); ok && try.Catch != nil {
			name := onlyName(try.Body)
			words := &gojq.Term{Type: gojq.TermTypeFunc, Func: &gojq.Func{Name: "_words", Args: []*gojq.Query{{
				Term: &gojq.Term{Type: gojq.TermTypeString, Str: &gojq.String{Str: name}},
			}}}}
			try.Catch = &gojq.Query{Left: &gojq.Query{Term: words}, Op: gojq.OpPipe, Right: try.Catch}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				adapt(v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			adapt(v.Index(i), depth+1)
		}
	}
}

// onlyName returns the name of which a program asks objects, where it is one only.
func onlyName(query *gojq.Query) string {
	names := map[string]bool{}
	collect(reflect.ValueOf(query), names, 0)
	if len(names) == 1 {
		for n := range names {
			return n
		}
	}
	return ""
}

func collect(v reflect.Value, names map[string]bool, depth int) {
	if depth > maxNested {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if x, ok := v.Interface().(*gojq.Index); ok {
			switch {
			case x.Name != "":
				names[x.Name] = true
			case x.Str != nil && x.Str.Queries == nil:
				names[x.Str.Str] = true
			case x.Start != nil && x.Start.Term != nil && x.Start.Term.Str != nil && x.Start.Term.Str.Queries == nil:
				names[x.Start.Term.Str.Str] = true
			}
		}
		collect(v.Elem(), names, depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				collect(v.Field(i), names, depth+1)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			collect(v.Index(i), names, depth+1)
		}
	}
}
