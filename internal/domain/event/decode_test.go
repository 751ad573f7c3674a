package event_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

type plain struct {
	Name  id.Run       `json:"name"`
	Count int8         `json:"count,omitempty"`
	Size  uint64       `json:"size"`
	Done  bool         `json:"done"`
	Hash  event.Digest `json:"hash,omitzero"`
	Words []string     `json:"words,omitempty"`
	Parts []part       `json:"parts"`
	Part  part         `json:"part"`
	At    time.Time    `json:"at"`
}

type part struct {
	Path string `json:"path"`
	Ends []int  `json:"ends"`
}

// tricky has what only encoding/json reads.
type tricky struct {
	At   time.Time         `json:"at"`
	Raw  json.RawMessage   `json:"raw"`
	More map[string]string `json:"more"`
	Ptr  *part             `json:"ptr"`
	Data []byte            `json:"data"`
	Any  any               `json:"any"`
	Own  string
	part
}

type nest struct {
	Name  string `json:"name"`
	Inner []nest `json:"inner"`
}

var decoded = []string{
	`{}`, `{"name":"run_1","count":-3,"size":18446744073709551615,"done":true,"words":["a","ä"],"parts":[{"path":"p","ends":[1,0,-2]},{"path":"","ends":[]}],"part":{"path":"q","ends":null}}`,
	`{"hash":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}`, `{"hash":""}`, `{"hash":"x"}`, `{"hash":null}`,
	`{"name":"a\u00e4\n"}`, `{"NAME":"x"}`, `{"name":"x","name":"y"}`, `{"part":{"path":"x"},"part":{"ends":[1]}}`,
	`{"words":["a","b"],"words":["c"]}`,
	`{"count":128}`, `{"count":-129}`, `{"count":1.0}`, `{"count":1e2}`, `{"count":01}`, `{"count":-0}`, `{"count":0}`, `{"count":-}`,
	`{"size":-1}`, `{"count":"1"}`, `{"name":1}`,
	`{"done":"true"}`, `{"done":tru}`, `{"done":false}`, `{"done":null}`, `{"unknown":[1,{"a":2}],"name":"x"}`, ` { "name" : "x" } `,
	`{"name":"x"}x`, `{"name":"x",}`, `{"name"}`, `{"words":[]}`,
	`{"words":[,]}`, `{"words":["a",]}`, `{"words":null}`, `null`, `[]`, `"x"`, ``, `{`, `{"name":"` + "\xff" + `"}`, `{"name":"` + "\x01" +
		`"}`,
	`{"at":"2024-01-02T03:04:05Z","raw":{"a":1},"more":{"a":"b"},"ptr":{"path":"x"},"data":"AAE=","any":[1],"Own":"x","path":"y"}`,
	`{"at":"2024-01-02T03:04:05.123456789+02:00"}`, `{"at":""}`, `{"at":null}`, `{"at":"2024-01-02 03:04:05Z"}`,
	`{"at":"2024-01-02T3:04:05Z"}`, `{"at":"2024-01-02T03:04:05,5Z"}`, `{"at":1}`,
	`{"name":"a","inner":[{"name":"b","inner":[{"name":"c","inner":[]}]}]}`,
}

// same decodes both ways.
func same[T any](t *testing.T, raw string) {
	t.Helper()
	got, gotErr := event.Decode[T](event.Event{Data: []byte(raw)})
	var want T
	wantErr := json.Unmarshal([]byte(raw), &want)
	if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Errorf("%q into %T: got %+v, %v, want %+v, %v", raw, want, got, gotErr, want, wantErr)
	}
}

func all(t *testing.T, raw string) {
	t.Helper()
	same[plain](t, raw)
	same[tricky](t, raw)
	same[nest](t, raw)
	same[part](t, raw)
	same[[]string](t, raw)
	same[map[string]any](t, raw)
	same[any](t, raw)
}

func TestDecode(t *testing.T) {
	for _, raw := range decoded {
		all(t, raw)
	}
	deep := strings.Repeat(`{"name":"x","inner":[`, 20) + strings.Repeat(`]}`, 20)
	same[nest](t, deep)
}

func FuzzDecode(f *testing.F) {
	for _, raw := range decoded {
		f.Add(raw)
	}
	f.Fuzz(all)
}

func BenchmarkDecode(b *testing.B) {
	e := event.Event{Data: []byte(
		`{"name":"run_01ARZ3NDEK0000000000000000","count":7,"size":512,"done":true,"hash":"sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad","words":["` + strings.Repeat("o", 300) + `"],"parts":[],"part":{"path":"src/report.md","ends":[1]}}`)}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := event.Decode[plain](e); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("yardstick", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var v plain
			if err := json.Unmarshal(e.Data, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
