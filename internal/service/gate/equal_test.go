package gate

import (
	"encoding/json"
	"reflect"
	"testing"

	"agentbox/internal/domain/policy"
)

// TestNoFieldOfARulingIsLeftOut changes one field of a ruling after the other: each change is seen, so that a new field of an action or
// of a decision cannot be forgotten. Limits bind nobody, and the seal is what the ruling is compared with.
func TestNoFieldOfARulingIsLeftOut(t *testing.T) {
	spared := map[string]bool{"Limits": true, "Seal": true}
	seen := 0
	for _, path := range leaves(reflect.TypeFor[policy.Ruling](), nil) {
		var a, b policy.Ruling
		name := reflect.TypeFor[policy.Ruling]().Field(path[0]).Name
		if spared[name] {
			continue
		}
		field := reflect.ValueOf(&b).Elem().FieldByIndex(path)
		if err := json.Unmarshal([]byte(other(t, field.Type())), field.Addr().Interface()); err != nil {
			t.Fatalf("%s %v: %v", name, path, err)
		}
		if field.IsZero() {
			t.Fatalf("%s %v was not changed", name, path)
		}
		if equal(&a, &b) {
			t.Errorf("%s of a ruling, field %v: a change of it is not seen", name, path)
		}
		if !equal(&b, &b) {
			t.Errorf("%s of a ruling, field %v: the ruling is not equal to itself", name, path)
		}
		seen++
	}
	if seen < 50 {
		t.Errorf("%d fields were changed, want at least 50", seen)
	}
}

// leaves returns the paths to the fields of a struct that are no structs themselves.
func leaves(of reflect.Type, at []int) (paths [][]int) {
	for i := range of.NumField() {
		path := append(append([]int{}, at...), i)
		if f := of.Field(i).Type; f.Kind() == reflect.Struct {
			paths = append(paths, leaves(f, path)...)
		} else {
			paths = append(paths, path)
		}
	}
	return paths
}

// other returns a value of a type that is not its zero value, as JSON.
func other(t *testing.T, of reflect.Type) string {
	t.Helper()
	if text, ok := map[reflect.Type]string{
		reflect.TypeFor[policy.Outcome](): `"allow"`, reflect.TypeFor[[]byte](): `"eA=="`, reflect.TypeFor[json.RawMessage](): `{"x":1}`,
	}[of]; ok {
		return text
	}
	switch of.Kind() {
	case reflect.String:
		return `"x"`
	case reflect.Bool:
		return "true"
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "1"
	case reflect.Array: // a digest
		return `"sha256:` + "11111111111111111111111111111111" + "11111111111111111111111111111111" + `"`
	case reflect.Slice:
		return "[" + other(t, of.Elem()) + "]"
	case reflect.Map:
		return `{"x":` + other(t, of.Elem()) + "}"
	}
	t.Fatalf("no other value of %s is known here: add one", of)
	return ""
}
