package tool_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/tool"
)

// TestFits holds values to schemas. An error names the place of a value that does not fit. Values without a schema fit.
func TestFits(t *testing.T) {
	person := `{"type":"object","additionalProperties":false,"required":["name"],"properties":{"name":{"type":"string"},` +
		`"age":{"type":["integer","null"]},"tags":{"type":"array","maxItems":2,"items":{"enum":["a","b"]}},"boss":{"$ref":"#"}}}`
	pair := `{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false}`
	for _, c := range []struct{ schema, value, wrong string }{
		{person, `{"name":"Ada"}`, ""},
		{person, `{"name":"Ada","age":3.0,"tags":["a","b"],"boss":{"name":"B"}}`, ""},
		{person, `{"name":"Ada","age":null}`, ""},
		{person, `{}`, "name is missing"},
		{person, `[]`, "the value must be of the type object, not array"},
		{person, `{"name":7}`, "name must be of the type string, not integer"},
		{person, `{"name":"A","age":1.5}`, "age must not be of the type number"},
		{person, `{"name":"A","tags":["a","b","a"]}`, "tags has 3 parts, and maxItems is 2"},
		{person, `{"name":"A","tags":["c"]}`, "tags[0] must be one of the values that the schema lists"},
		{person, `{"name":"A","boss":{}}`, "boss.name is missing"},
		{person, `{"name":"A","other":1}`, "other is not permitted"},
		{pair, `["a",1]`, ""}, {pair, `["a",1,2]`, "[2] is not permitted"}, {pair, `[1]`, "[0] must be of the type string, not integer"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1`, ""},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `true`, "the value must be of the type string, not boolean"},
		{`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1}`, "b is missing"},
		{`{"const":1.0}`, `1`, ""}, {`{"const":"x"}`, `1`, "the value must be the value that the schema names"},
		{`{"format":"date","pattern":"(((","unknown":[1]}`, `"x"`, ""},
		{`true`, `1`, ""}, {`{}`, `1 2`, "the value is no JSON"}, {`{`, `1`, "the schema is no JSON"},
		{`{"$ref":"https://example.com/schema"}`, `1`, `the schema refers to "https://example.com/schema", which it does not have`},
		{`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"string"}}}`, `1`, "the value must be of the type string, not integer"},
		{`{"$ref":"#x"}`, `1`, `the schema refers to "#x", which it does not have`},
	} {
		if got := tool.Fits(json.RawMessage(c.schema), json.RawMessage(c.value)); got != c.wrong {
			t.Errorf("%s against %s: got %q, want %q", c.value, c.schema, got, c.wrong)
		}
	}
}

// TestASchemaWithoutEnd refers to itself, or branches more than anybody can follow. It is refused and ends.
func TestASchemaWithoutEnd(t *testing.T) {
	twice := `[{"$ref":"#"},{"$ref":"#"}]`
	for _, schema := range []string{`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"anyOf":` + twice + `}`, `{"allOf":` + twice + `}`,
		`{"oneOf":` + twice + `,"anyOf":` + twice + `}`} {
		if got := tool.Fits(json.RawMessage(schema), json.RawMessage(`1`)); !strings.Contains(got, "too complicated") {
			t.Errorf("%s: got %q", schema, got)
		}
	}
}

// TestAValueThatTakesLong holds values of a hostile server against schemas of its own: numbers with exponents that fill the memory, long
// lists against long enums, names that are as long as the value.
func TestAValueThatTakesLong(t *testing.T) {
	exponents := "[" + strings.Repeat("1e999999,", 10_000) + "1]"
	many := "[" + strings.Repeat("1,", 20_000) + "2]"
	long := strings.Repeat("x", 1<<20)
	nested := strings.Repeat(`{"`+strings.Repeat("y", 1000)+`":`, 200) + "1" + strings.Repeat("}", 200)
	begun := time.Now()
	for _, c := range []struct{ schema, value, wrong string }{
		{`{"items":{"type":"integer"}}`, exponents, "must be of the type integer, not number"},
		{`{"items":{"type":"number"}}`, exponents, ""},
		{`{"items":{"const":1e999998}}`, exponents, "must be the value"},
		{`{"items":{"enum":[` + strings.Repeat("3,", 20_000) + `1]}}`, many, "too complicated"},
		{`{"items":{"type":[` + strings.Repeat(`"string",`, 20_000) + `"integer"]}}`, many, "too complicated"},
		{`{"items":{"required":[` + strings.Repeat(`"a",`, 20_000) + `"a"]}}`, "[" + strings.Repeat(`{"a":1},`, 20_000) + "1]",
			"too complicated"},
		{`{"additionalProperties":{"type":"string"}}`, `{"` + long + `":1}`, "must be of the type string"},
		{`{"additionalProperties":{"$ref":"#"},"type":"object"}`, nested, "must be of the type object"},
		{`{"$ref":"#/` + long + `"}`, `1`, "which it does not have"},
	} {
		got := tool.Fits(json.RawMessage(c.schema), json.RawMessage(c.value))
		if c.wrong == "" && got != "" || !strings.Contains(got, c.wrong) || len(got) > 1000 {
			t.Errorf("%.60s: got %.200q, want %q", c.schema, got, c.wrong)
		}
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	for _, c := range []struct{ schema, value, wrong string }{
		{`{"type":"integer"}`, "1e400", ""}, {`{"type":"integer"}`, "1e401", "the value must be of the type integer, not number"},
		{`{"type":"integer"}`, "1" + strings.Repeat("0", 399), ""}, {`{"const":1e2}`, "100", ""}, {`{"const":1e500}`, "1e500", ""},
	} {
		if got := tool.Fits(json.RawMessage(c.schema), json.RawMessage(c.value)); got != c.wrong {
			t.Errorf("%s against %.20s: got %q", c.schema, c.value, got)
		}
	}
}
