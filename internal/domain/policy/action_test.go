package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/policy"
)

// full is an action in which every field has a value.
func full(t *testing.T) policy.Action {
	t.Helper()
	var a policy.Action
	v := reflect.ValueOf(&a).Elem()
	for i := range v.NumField() {
		set(t, v.Type().Field(i).Name, v.Field(i), 1)
	}
	return a
}

// set gives a field one of two values. A field of a type that is not known here fails the test, so that a new one is not forgotten.
func set(t *testing.T, name string, f reflect.Value, n int) {
	t.Helper()
	switch f.Interface().(type) {
	case event.Digest:
		f.Set(reflect.ValueOf(event.DigestOf([]byte(fmt.Sprint(name, n)))))
	case json.RawMessage:
		f.Set(reflect.ValueOf(json.RawMessage(fmt.Sprintf(`{"memory_bytes":%d}`, n))))
	case []string:
		f.Set(reflect.ValueOf([]string{"a", fmt.Sprint(n)}))
	case policy.Declaration:
		f.Set(reflect.ValueOf(policy.Declaration{Version: n, Description: "deploy", SideEffect: policy.Network, Zone: event.Supervised}))
	case map[string]string:
		f.Set(reflect.ValueOf(map[string]string{"A": fmt.Sprint(n)}))
	default:
		switch f.Kind() {
		case reflect.String:
			f.SetString(fmt.Sprint(name, n))
		case reflect.Int64:
			f.SetInt(int64(n))
		case reflect.Uint64:
			f.SetUint(uint64(n))
		case reflect.Bool:
			f.SetBool(n == 1)
		default:
			t.Fatalf("the field %s of an action has a type that no test covers: %s", name, f.Type())
		}
	}
}

func canonical(t *testing.T, a policy.Action) []byte {
	t.Helper()
	c, err := a.Canonical()
	if err != nil {
		t.Fatalf("canonical: %v", err)
	}
	return c
}

func TestThreat07EveryFieldIsCoveredByTheHashAndShown(t *testing.T) {
	a := full(t)
	base := canonical(t, a)
	shown, err := policy.Render(base)
	if err != nil {
		t.Fatal(err)
	}
	typ := reflect.TypeOf(a)
	for i := range typ.NumField() {
		changed := a
		set(t, typ.Field(i).Name, reflect.ValueOf(&changed).Elem().Field(i), 2)
		other := canonical(t, changed)
		if event.DigestOf(other) == event.DigestOf(base) {
			t.Errorf("a change of %s does not change the hash", typ.Field(i).Name)
		}
		text, err := policy.Render(other)
		if err != nil {
			t.Fatal(err)
		}
		if text == shown {
			t.Errorf("a change of %s is not shown", typ.Field(i).Name)
		}
		emptied := a
		reflect.ValueOf(&emptied).Elem().Field(i).SetZero()
		if string(canonical(t, emptied)) == string(base) {
			t.Errorf("leaving %s out does not change the bytes", typ.Field(i).Name)
		}
	}
	if again, err := policy.ParseAction(base); err != nil || !reflect.DeepEqual(again, a) {
		t.Errorf("read back: got %+v, %v, want %+v", again, err, a)
	}
}

func TestTextThatIsNotUTF8IsRefusedInEveryField(t *testing.T) {
	typ := reflect.TypeFor[policy.Action]()
	for i := range typ.NumField() {
		var a policy.Action
		f := reflect.ValueOf(&a).Elem().Field(i)
		switch f.Interface().(type) {
		case json.RawMessage:
			f.Set(reflect.ValueOf(json.RawMessage("{\"a\":\"\xff\"}")))
		case []string:
			f.Set(reflect.ValueOf([]string{"a", "\xff"}))
		case map[string]string:
			for _, m := range []map[string]string{{"\xff": "a"}, {"a": "\xff"}} {
				f.Set(reflect.ValueOf(m))
				if _, err := a.Canonical(); !errors.Is(err, policy.ErrNotText) {
					t.Errorf("%s %q: got %v, want %v", typ.Field(i).Name, m, err, policy.ErrNotText)
				}
			}
			continue
		default:
			if f.Kind() != reflect.String {
				continue
			}
			f.SetString("a\xff")
		}
		if _, err := a.Canonical(); !errors.Is(err, policy.ErrNotText) {
			t.Errorf("%s: got %v, want %v", typ.Field(i).Name, err, policy.ErrNotText)
		}
	}
}

func TestThreat15NumbersDoNotCollapse(t *testing.T) {
	const most = 1<<53 - 1
	for _, c := range []struct {
		limits string
		ok     bool
	}{
		{`{"n":9007199254740991}`, true}, {`{"n":-9007199254740991}`, true}, {`{"n":9007199254740992}`, false}, {`{"n":9007199254740993}`, false},
		{`{"n":-9007199254740993}`, false}, {`{"n":1e400}`, false}, {`{"n":9.007199254740993e15}`, false}, {`{"n":"9007199254740993"}`, true},
		{`{"a":[[{"n":9007199254740993}]]}`, false},
	} {
		_, err := policy.Action{Type: "x", Limits: json.RawMessage(c.limits)}.Canonical()
		if (err == nil) != c.ok {
			t.Errorf("%s: got %v, want accepted: %t", c.limits, err, c.ok)
		}
	}
	for _, size := range []int64{most + 1, most + 2, -most - 1} {
		if _, err := (policy.Action{Size: size}).Canonical(); !errors.Is(err, policy.ErrInexact) {
			t.Errorf("size %d: got %v, want %v", size, err, policy.ErrInexact)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("the number %d lies beyond", size)) {
			t.Errorf("size %d: the error does not name it: %v", size, err)
		}
	}
	for _, fence := range []uint64{most + 1, 1 << 63, 1<<64 - 1} {
		if _, err := (policy.Action{Fence: fence}).Canonical(); !errors.Is(err, policy.ErrInexact) {
			t.Errorf("fence %d: got %v, want %v", fence, err, policy.ErrInexact)
		} else if !strings.Contains(err.Error(), fmt.Sprintf("the number %d lies beyond", fence)) {
			t.Errorf("fence %d: the error does not name it: %v", fence, err)
		}
	}
	a, b := policy.Action{Size: most}, policy.Action{Size: most - 1}
	if event.DigestOf(canonical(t, a)) == event.DigestOf(canonical(t, b)) {
		t.Error("two neighbours have one digest")
	}
}

func TestThreat33JSONIsBoundedBeforeItIsRead(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, limits := range map[string]string{
		"65 deep":        deep,
		"a million deep": strings.Repeat("[", 1<<20),
		"twice the key":  `{"a":1,"a":2}`,
		"lone surrogate": `{"a":"\ud800"}`,
		"trailing":       `{} {}`,
		"open":           `{"a":`,
	} {
		if _, err := policy.Canonicalize([]byte(limits)); err == nil {
			t.Errorf("%s was not refused", name)
		}
	}
	if _, err := policy.Canonicalize([]byte(strings.Repeat("[", 64) + strings.Repeat("]", 64))); err != nil {
		t.Errorf("64 deep: %v", err)
	}
}

func TestStoredJSONIsCanonicalAgain(t *testing.T) {
	a := policy.Action{Type: policy.ShellExec, Command: "a <b> & c \u2028 é \"\\"}
	want := canonical(t, a)
	raw, err := json.Marshal(policy.ApprovalRequested{Request: want})
	if err != nil {
		t.Fatal(err)
	}
	var back policy.ApprovalRequested
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if string(back.Request) != string(want) {
		t.Errorf("got %s, want %s", back.Request, want)
	}
}

func TestCanonicalIsWhatTheLibraryWrites(t *testing.T) {
	text := rapid.OneOf(rapid.Just(""), rapid.String(), rapid.StringOf(rapid.RuneFrom([]rune{'a', '"', '\\', '\b', '\f', '\n', '\r', '\t', 0,
		0x1f, 0x7f, 'é', 0x2028, 0xffff, 0xfffd, 0x1f600, '<', '&'})))
	rapid.Check(t, func(t *rapid.T) {
		var a policy.Action
		v := reflect.ValueOf(&a).Elem()
		for i := range v.NumField() {
			name, f := v.Type().Field(i).Name, v.Field(i)
			switch f.Interface().(type) {
			case event.Digest:
				if rapid.Bool().Draw(t, name) {
					f.Set(reflect.ValueOf(event.DigestOf([]byte(name))))
				}
			case json.RawMessage: // takes the library's way itself
			case []string:
				f.Set(reflect.ValueOf(rapid.SliceOfN(text, 0, 3).Draw(t, name)))
			case map[string]string:
				f.Set(reflect.ValueOf(rapid.MapOfN(text, text, 0, 4).Draw(t, name)))
			default:
				switch f.Kind() {
				case reflect.String:
					f.SetString(text.Draw(t, name))
				case reflect.Int64:
					f.SetInt(rapid.Int64Range(-1<<53+1, 1<<53-1).Draw(t, name))
				case reflect.Uint64:
					f.SetUint(rapid.Uint64Range(0, 1<<53-1).Draw(t, name))
				case reflect.Bool:
					f.SetBool(rapid.Bool().Draw(t, name))
				}
			}
		}
		got, err := a.Canonical()
		if err != nil {
			t.Fatal(err)
		}
		want, err := a.CanonicalSlow()
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}
