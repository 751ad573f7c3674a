package strictjson_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/httpapi/strictjson"
)

type inner struct {
	MemoryBytes int64 `json:"memory_bytes"`
}

type request struct {
	Name     string            `json:"name"`
	TTL      int64             `json:"ttl_seconds"`
	Limits   *inner            `json:"limits"`
	Env      map[string]string `json:"env"`
	List     []inner           `json:"list"`
	Free     json.RawMessage   `json:"free"`
	Anything any               `json:"anything"`
	hidden   string
}

func TestCheck(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, c := range []struct{ name, body, code, says string }{
		{"empty object", `{}`, "", ""},
		{"all fields", ` {"name":"a","ttl_seconds":1,"limits":{"memory_bytes":2},"env":{"A":"b"},"list":[{"memory_bytes":1}],"free":{"x":1},"anything":[1,{"y":null}]} ` +
			`` +
			``, "", ""},
		{"escapes", `{"name":"a\n\u00e9\ud83d\ude00\"\\"}`, "", ""},
		{"numbers", `{"anything":[0,-0,1.5,1e9,1E+9,-1.25e-3]}`, "", ""},
		{"escaped name", `{"n\u0061me":"a"}`, "", ""},
		{"nothing", ``, "invalid_json", "ends too early"},
		{"only space", " \n", "invalid_json", "line 2, column 1"},
		{"cut off", `{"name":`, "invalid_json", "ends too early (line 1, column 9)"},
		{"two values", `{} {}`, "invalid_json", "something after"},
		{"trailing garbage", `{}x`, "invalid_json", "line 1, column 3"},
		{"trailing comma", `{"name":"a",}`, "invalid_json", "',' at start of value"},
		{"trailing comma in list", `{"list":[{},]}`, "invalid_json", "',' at start of value"},
		{"single quotes", `{'name':'a'}`, "invalid_json", "start of value (line 1, column 2)"},
		{"comment", "{}//x", "invalid_json", "something after"},
		{"not a number", `{"ttl_seconds":NaN}`, "invalid_json", "'N' at start of value"},
		{"leading zero", `{"ttl_seconds":01}`, "invalid_json", "expecting ',' or '}'"},
		{"plus", `{"ttl_seconds":+1}`, "invalid_json", "'+' at start of value"},
		{"bare point", `{"ttl_seconds":1.}`, "invalid_json", "expecting digit"},
		{"empty exponent", `{"ttl_seconds":1e}`, "invalid_json", "expecting digit"},
		{"control character", "{\"name\":\"a\nb\"}", "invalid_json", "control character"},
		{"unknown escape", `{"name":"\x"}`, "invalid_json", "escape"},
		{"short escape", `{"name":"\u12"}`, "invalid_json", "escape"},
		{"half a pair", `{"name":"\ud83d"}`, "invalid_json", "surrogate"},
		{"the other half", `{"name":"\ude00"}`, "invalid_json", "surrogate"},
		{"pair of one half", `{"name":"\ud83d\u0041"}`, "invalid_json", "surrogate"},
		{"not UTF-8", "{\"name\":\"\xff\"}", "invalid_json", "line 1, column 10"},
		{"byte order mark", "\ufeff{}", "invalid_json", "start of value"},
		{"twice", `{"name":"a","name":"b"}`, "duplicate_field", `"name"`},
		{"twice, escaped", `{"name":"a","n\u0061me":"b"}`, "duplicate_field", `"name"`},
		{"twice inside what is free", `{"free":{"x":1,"x":2}}`, "duplicate_field", `"free.x"`},
		{"unknown", `{"nmae":"a"}`, "unknown_field", `did you mean "name"?`},
		{"unknown by case", `{"Name":"a"}`, "unknown_field", `did you mean "name"?`},
		{"unknown by style", `{"ttlSeconds":1}`, "unknown_field", `did you mean "ttl_seconds"?`},
		{"unknown inside", `{"limits":{"memory":1}}`, "unknown_field", `"limits.memory"`},
		{"unknown in a list", `{"list":[{},{"memory_byte":1}]}`, "unknown_field", `did you mean "list.1.memory_bytes"?`},
		{"unknown and far", `{"xyzzy":1}`, "unknown_field", "the fields are name, ttl_seconds"},
		{"hidden", `{"hidden":"a"}`, "unknown_field", "the fields are"},
		{"as deep as allowed", `{"free":` + deep(strictjson.MaxDepth-1) + `}`, "", ""},
		{"one deeper", `{"free":` + deep(strictjson.MaxDepth) + `}`, "json_too_deep", "64"},
		{"a million deep", strings.Repeat("[", 1_000_000), "json_too_deep", "64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := strictjson.Check([]byte(c.body), reflect.TypeFor[request]())
			if got := fault.CodeOf(err); got != c.code {
				t.Fatalf("code %q, want %q (%v)", got, c.code, err)
			}
			if err == nil {
				return
			}
			f := err.(*fault.Error)
			if said := f.Msg + " " + f.Suggestion; !strings.Contains(said, c.says) {
				t.Errorf("says %q, want %q in it", said, c.says)
			}
		})
	}
}

func TestDecodeNamesTheFieldOfAnotherType(t *testing.T) {
	var r request
	err := strictjson.Decode([]byte(`{"limits":{"memory_bytes":"much"}}`), &r)
	if fault.CodeOf(err) != "invalid_field" || !strings.Contains(err.Error(), `limits.memory_bytes`) {
		t.Errorf("got %v, want invalid_field that names limits.memory_bytes", err)
	}
	if err := strictjson.Decode([]byte(`{"name":"a","limits":{"memory_bytes":5}}`), &r); err != nil || r.Name != "a" ||
		r.Limits.MemoryBytes != 5 {
		t.Errorf("got %+v, %v", r, err)
	}
	_ = r.hidden
}

func FuzzCheck(f *testing.F) {
	for _, seed := range []string{`{}`, `{"name":"a"}`, `{"a":1,"a":2}`, `[[[[`, `{"x":"\ud800"}`, "\"\xff\"", `-0.0e+1`,
		`{"limits":{"memory_bytes":1}} `, `tru`, `"\u12`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		free := strictjson.Check(data, nil)
		if free == nil && !json.Valid(data) {
			t.Fatalf("accepted %q, which is not JSON", data)
		}
		if fault.CodeOf(free) == strictjson.CodeMalformed && json.Valid(data) && !strings.Contains(free.Error(), "UTF-8") &&
			!strings.Contains(free.Error(), "surrogate") {
			t.Fatalf("refused %q: %v", data, free)
		}
		var r request
		if strictjson.Check(data, reflect.TypeFor[request]()) == nil {
			if free != nil {
				t.Fatalf("a shape made %q acceptable: %v", data, free)
			}
			dec := json.NewDecoder(strings.NewReader(string(data)))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&r); err != nil && strings.Contains(err.Error(), "unknown field") {
				t.Fatalf("let an unknown field through in %q: %v", data, err)
			}
		}
	})
}
