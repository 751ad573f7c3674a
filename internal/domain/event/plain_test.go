package event

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

type simple struct {
	Name  string   `json:"name"`
	I     int      `json:"i"`
	I8    int8     `json:"i8"`
	I16   int16    `json:"i16"`
	I32   int32    `json:"i32"`
	I64   int64    `json:"i64"`
	U     uint     `json:"u"`
	U8    uint8    `json:"u8"`
	U16   uint16   `json:"u16"`
	U32   uint32   `json:"u32"`
	U64   uint64   `json:"u64"`
	Done  bool     `json:"done,omitempty"`
	Hash  Digest   `json:"hash,omitzero"`
	Words []string `json:"words"`
	Lists [][]int  `json:"lists"`
	Inner struct {
		A string `json:"a"`
	} `json:"inner"`
	At time.Time `json:"at"`

	Bytes  []byte          `json:"bytes"`
	Raw    json.RawMessage `json:"raw"`
	Text   string          `json:"text,string"`
	None   string          `json:"-"`
	Plain  string
	hidden string         //nolint:unused // a name that is not exported is none
	Map    map[string]int `json:"map"`
	Ptr    *int           `json:"ptr"`
}

// TestWhatIsPlain holds which data are read without encoding/json: those that json.Marshal writes of plain types, and nothing else.
func TestWhatIsPlain(t *testing.T) {
	hash := DigestOf([]byte("x")).String()
	for raw, want := range map[string]bool{
		`{}`: true, `{"name":""}`: true, `{"name":"a b"}`: true, `{"name":"\u00e4"}`: false, "{\"name\":\"\u00e4\"}": true,
		`{"name":"a","i":1,"words":["x"],"inner":{"a":"b"}}`: true, `{"i":0}`: true, `{"i":10}`: true, `{"i":-19}`: true,
		`{"i8":127,"i16":32767,"i32":2147483647,"i64":9223372036854775807}`:        true,
		`{"i8":-128,"i16":-32768,"i32":-2147483648,"i64":-9223372036854775808}`:    true,
		`{"u":7,"u8":255,"u16":65535,"u32":4294967295,"u64":18446744073709551615}`: true, `{"i8":128}`: false, `{"i8":-129}`: false,
		`{"u8":256}`: false, `{"u":-1}`: false, `{"i64":9223372036854775808}`: false,
		`{"u64":18446744073709551616}`: false, `{"i":01}`: false, `{"i":-0}`: false, `{"i":-01}`: false, `{"i":-}`: false, `{"i":}`: false,
		`{"i":1.5}`: false, `{"i":1e2}`: false, `{"i":"1"}`: false, `{"i":/}`: false, `{"i":1:}`: false,
		`{"done":true}`: true, `{"done":false}`: true, `{"done":tru}`: false, `{"done":trux}`: false, `{"done":fals}`: false,
		`{"done":falsx}`: false, `{"done":null}`: false, `{"done":}`: false, `{"done":t`: false, `{"done":true`: false,
		`{"hash":"` + hash + `"}`: true, `{"hash":""}`: true, `{"hash":"x"}`: false, `{"hash":1}`: false, `{"words":[]}`: true,
		`{"words":["a","b"]}`: true, `{"words":[,]}`: false, `{"words":["a",]}`: false, `{"words":["a"}`: false,
		`{"words":["a" "b"]}`: false, `{"words":null}`: false, `{"words":[1]}`: false, `{"words":["a"`: false, `{"words":{}}`: false,
		`{"lists":[[1,2],[],[3]]}`: true, `{"lists":[[1,2]`: false, `{"inner":{}}`: true, `{"inner":{"b":"x"}}`: false, `{"inner":[]}`: false,
		`{"at":"2024-01-02T03:04:05Z"}`: true, `{"at":"x"}`: false, `{"at":7}`: false, `{"bytes":"AAE="}`: false, `{"bytes":[]}`: false,
		`{"raw":"x"}`: false, `{"raw":1}`: false, `{"text":"\"a\""}`: false, `{"text":"a"}`: false, `{"-":"a"}`: false, `{"Plain":"a"}`: false,
		`{"":"a"}`:       false,
		`{"hidden":"a"}`: false, `{"map":{}}`: false, `{"ptr":1}`: false, `{"NAME":"a"}`: false, `{"name":"a","name":"b"}`: false,
		`{"i":1,"name":"a"}`: false, `{"unknown":1}`: false, ` {}`: false, `{} `: false, `{}x`: false, `{ }`: false, `{"name":"a",}`: false,
		`{"name"}`:  false,
		`{"name":}`: false, `{"name" :"a"}`: false, `{"name":"a"`: false, `{"name":"a`: false, `{"name`: false, `{`: false, `}`: false,
		``: false, `[]`: false, `null`: false, `"x"`: false, "{\"name\":\"\xff\"}": false, "{\"name\":\"\x1f\"}": false, `{name:"a"}`: false,
		`{"name":a"}`: false,
		`{"done":`:    false, `{"map":}`: false, `{"ptr":}`: false, `{"name""a"}`: false, `{"unknown":`: false, `{"name":"a""i":1}`: false,
		`{"words":"a"]}`: false, `{"words":]}`: false, `{"words":}`: false, `{"words":[}`: false, `{"words":["a""b"]}`: false,
		`{"name":"}`: false, `{"raw":}`: false, `{"hash":}`: false, `{"at":}`: false, `{"i":1`: false, `{"i":-`: false, `{"i":`: false,
		`{"name":"a";"i":1}`: false, `{"name"="a"}`: false, "{\"name\":\"\x7f\u0080\"}": true,
	} {
		var got simple
		is := plainly(slices.Clip([]byte(raw)), reflect.ValueOf(&got).Elem())
		if is != want {
			t.Errorf("%s: plain %t, want %t", raw, is, want)
		}
		var as simple
		if err := json.Unmarshal([]byte(raw), &as); is && (err != nil || !reflect.DeepEqual(got, as)) {
			t.Errorf("%s: got %+v, want %+v, %v", raw, got, as, err)
		}
		decoded, err := Decode[simple](Event{Data: json.RawMessage(raw)})
		if failed := json.Unmarshal([]byte(raw), &as); (err == nil) != (failed == nil) || err == nil && !reflect.DeepEqual(decoded, as) {
			t.Errorf("%s: decoded %+v, %v, want %+v, %v", raw, decoded, err, as, failed)
		}
	}
	for _, other := range []any{new([]string), new(string), new(map[string]int), new(any)} {
		if plainly([]byte(`[]`), reflect.ValueOf(other).Elem()) {
			t.Errorf("a %T is plain", other)
		}
	}
}

// TestTheTextOfADigest holds both ways of writing one, and what is none.
func TestTheTextOfADigest(t *testing.T) {
	d := DigestOf([]byte("abc"))
	text, err := d.MarshalText()
	var back Digest
	if err != nil || string(text) != d.String() || back.UnmarshalText(text) != nil || back != d {
		t.Errorf("%s was written as %s, %v, and read as %s", d, text, err, back)
	}
	if err := back.UnmarshalText(nil); err != nil || !back.IsZero() || back.String() != "" {
		t.Errorf("nothing was read as %s, %v", back, err)
	}
	back = d
	if err := back.UnmarshalText([]byte("x")); err == nil || !back.IsZero() {
		t.Errorf("x was read as %s, %v", back, err)
	}
	for _, bad := range []string{d.Hex(), "sha256:" + d.Hex()[:62], "sha256:" + d.Hex() + "0", "sha256:" + strings.Repeat("0", 62) + "zz",
		"sha512:" + d.Hex(), "x" + d.Hex() + "0123456"} {
		if got, err := ParseDigest(bad); err == nil || !got.IsZero() {
			t.Errorf("%s was read as %s", bad, got)
		}
	}
}

// TestWhatAnEventIsAbout holds which things it follows from, the most precise first.
func TestWhatAnEventIsAbout(t *testing.T) {
	for name, c := range map[string]struct {
		h    Header
		want []Subject
	}{
		"nothing": {Header{}, nil}, "an entity": {Header{EntityType: "room", EntityID: "room_1"}, []Subject{{"room", "room_1"}}},
		"a space": {Header{EntityType: "space", EntityID: "spc_1"}, []Subject{{"space", "spc_1"}}},
		"a space in which a run works": {Header{EntityType: "space", EntityID: "spc_1", Run: "run_1", Step: "step_1"},
			[]Subject{{"step", "step_1"}, {"run", "run_1"}}},
		"the workspace of a run": {Header{EntityType: "workspace", EntityID: "ws_1", Run: "run_1"}, []Subject{{"run", "run_1"}}},
		"a call in a step of a run": {Header{EntityType: "tool_call", EntityID: "tc_1", Run: "run_1", Step: "step_1"},
			[]Subject{{"tool_call", "tc_1"}, {"step", "step_1"}, {"run", "run_1"}}},
		"the step itself": {Header{EntityType: "step", EntityID: "step_1", Run: "run_1", Step: "step_1"},
			[]Subject{{"step", "step_1"}, {"run", "run_1"}}},
		"the run itself": {Header{EntityType: "run", EntityID: "run_1", Run: "run_1"}, []Subject{{"run", "run_1"}}},
		"another step and run than it is": {Header{EntityType: "step", EntityID: "step_2", Step: "step_1"},
			[]Subject{{"step", "step_2"}, {"step", "step_1"}}},
	} {
		subjects, n := c.h.Subjects()
		if got := subjects[:n]; len(got) != len(c.want) || n > 0 && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	if got := (Header{ID: "evt_1", Correlation: "cor_1"}).Cause(); got != (Cause{"evt_1", "cor_1"}) {
		t.Errorf("got %+v", got)
	}
}

// TestWhatIsTakenOutOfAnEvent holds what is left of it, and that it can be told how it was recorded.
func TestWhatIsTakenOutOfAnEvent(t *testing.T) {
	whole := Event{Header: Header{ID: "evt_1", Redaction: RedactPartial, PolicyContext: json.RawMessage(`1`),
		ModelContext: json.RawMessage(`2`), Display: json.RawMessage(`3`)}, Chain: Chain{Salt: []byte("salt"), Hash: DigestOf(nil)},
		Data: json.RawMessage(`{"a":1}`)}
	e := Clone(whole)
	if !reflect.DeepEqual(e, whole) || !reflect.DeepEqual(whole.Recorded(), whole) {
		t.Errorf("got %+v", e)
	}
	for _, b := range [][]byte{e.Data, e.PolicyContext, e.ModelContext, e.Display, e.Chain.Salt} {
		b[0] = 'x'
	}
	if string(whole.Data)+string(whole.PolicyContext)+string(whole.ModelContext)+string(whole.Display)+
		string(whole.Chain.Salt) != `{"a":1}123salt` {
		t.Errorf("a copy shares bytes: %+v", whole)
	}
	e = Clone(whole)
	e.Withhold(Forgotten, nil)
	if e.Withheld != Forgotten || string(e.Data) != "{}" || e.Chain.Salt != nil || e.Redaction != RedactFull ||
		e.Chain.Redaction != RedactPartial {
		t.Errorf("got %+v", e)
	}
	e.Withhold(Sealed, json.RawMessage(`{"b":2}`))
	if e.Withheld != Sealed || string(e.Data) != `{"b":2}` || e.Redaction != RedactFull || e.Chain.Redaction != RedactPartial {
		t.Errorf("a second time: got %+v", e)
	}
	if was := e.Recorded(); was.Redaction != RedactPartial || was.Chain.Redaction != "" || was.ID != "evt_1" {
		t.Errorf("as it was recorded: %+v", was)
	}
	if first := Show(whole); first.Prev != nil || first.Hash != whole.Chain.Hash || first.ID != "evt_1" {
		t.Errorf("the first of a stream is shown as %+v", first)
	}
	whole.Chain.Prev = DigestOf([]byte("before"))
	if next := Show(whole); next.Prev == nil || *next.Prev != whole.Chain.Prev {
		t.Errorf("the next one is shown as %+v", next)
	}
}

// TestWhoIsBehindADraft holds what an origin puts into a batch and into the envelope.
func TestWhoIsBehindADraft(t *testing.T) {
	for name, c := range map[string]struct {
		o    Origin
		want string
	}{
		"somebody": {Origin{Principal: "usr_1"}, ""}, "under a token": {Origin{Token: "cap_1"}, `{"capability_token_id":"cap_1"}`},
		"for another one": {Origin{By: "usr_1"}, `{"authenticated_principal_id":"usr_1"}`},
		"both":            {Origin{Token: "cap_1", By: "usr_1"}, `{"authenticated_principal_id":"usr_1","capability_token_id":"cap_1"}`},
	} {
		if got := New("x", c.o, "ws_1", "", nil).PolicyContext; string(got) != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	b := Batch{Workspace: "ws_1", Key: "before"}
	if got := (Origin{}).Once(b); got.Key != "before" || got.Workspace != "ws_1" {
		t.Errorf("without a key: %+v", got)
	}
	if got := (Origin{Key: "k", Command: DigestOf(nil)}).Once(b); got.Key != "k" || got.Digest != DigestOf(nil) || got.Workspace != "ws_1" {
		t.Errorf("with a key: %+v", got)
	}
	if got := WorkspaceStream("ws_1"); got != (Stream{StreamWorkspace, "ws_1"}) {
		t.Errorf("got %+v", got)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("data that are no JSON were drafted")
			}
		}()
		New("x", Origin{}, "ws_1", "", func() {})
	}()

	target := Event{Header: Header{ID: "evt_1", Type: "t", Workspace: "ws_1", Room: "room_1", Run: "run_1", Step: "step_1",
		Correlation: "cor_1"}, Seq: 7}
	for remains, want := range map[string]string{"": `{}`, `{"a":1}`: `{"a":1}`} {
		d := RedactionOf(Origin{Principal: "usr_1", Causation: "x", Correlation: "y"}, target, "r", json.RawMessage(remains))
		said, err := Decode[Redacted](Event{Data: d.Data})
		if err != nil || said.Event != "evt_1" || said.Type != "t" || said.Seq != 7 || said.Reason != "r" || string(said.Remains) != want ||
			d.Type != RedactedType || d.Workspace != "ws_1" || d.Room != "room_1" ||
			d.Run != "run_1" || d.Step != "step_1" || d.Causation != "evt_1" || d.Correlation != "cor_1" {
			t.Errorf("a redaction: got %+v with %+v, %v", d, said, err)
		}
	}
}
