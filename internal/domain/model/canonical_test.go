package model_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"agentbox/internal/domain/model"
)

// TestCanonicalIsWhatTheLibraryWrites fills every field of a request, so that a new field that the fast way forgets is noticed.
func TestCanonicalIsWhatTheLibraryWrites(t *testing.T) {
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		var r model.Request
		fill(t, reflect.ValueOf(&r).Elem(), "request")
		if rapid.Bool().Draw(t, "no temperature") {
			r.Temperature = nil
			fast++
		}
		for i, tool := range r.Tools {
			if rapid.Bool().Draw(t, "prepared") {
				r.Tools[i] = tool.Prepared()
			}
			if rapid.Bool().Draw(t, "changed since") {
				r.Tools[i].Schema = json.RawMessage(`{"changed":true}`)
			}
		}
		got, err := r.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		want, err := r.CanonicalSlow()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("got\n%s, want\n%s", got, want)
		}
	})
	if fast == 0 {
		t.Error("no request took the fast way")
	}
}

var (
	texts = rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', '\b', '\f', '\n', '\r', '\t', 0,
		0x1f, 0x7f, 'é', 0x2028, 0xffff, 0xfffd, 0x1f600, '<', '&'})))
	schemas = rapid.SampledFrom([]string{"", `{}`, `{ "type": "object", "a": [1, {"z": null, "b": "<é\u0001>"}] }`, `{"n":1.50,"A":-0}`})
)

// fill sets a value, and all that it holds, to something.
func fill(t *rapid.T, v reflect.Value, name string) {
	switch v.Interface().(type) {
	case json.RawMessage:
		raw := schemas.Draw(t, name)
		if raw == "" && name == "Tool.Schema" { // json.Marshal refuses a tool without one
			raw = "null"
		}
		v.SetBytes([]byte(raw))
		return
	case []byte:
		if rapid.Bool().Draw(t, name+" is there") {
			v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 8).Draw(t, name))
		}
		return
	case float64:
		v.SetFloat(rapid.Float64Range(0, 2).Draw(t, name))
		return
	case bool:
		v.SetBool(rapid.Bool().Draw(t, name))
		return
	case int:
		v.SetInt(rapid.Int64Range(0, 1<<53-1).Draw(t, name))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(texts.Draw(t, name))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, name+" is there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(t, v.Elem(), name)
		}
	case reflect.Slice:
		if n := rapid.IntRange(-1, 3).Draw(t, name+" length"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(t, v.Index(i), name)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(t, v.Field(i), v.Type().Name()+"."+f.Name)
			}
		}
	default:
		t.Fatalf("%s: this test fills no %s", name, v.Type())
	}
}
