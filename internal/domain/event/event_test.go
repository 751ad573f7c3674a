package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
)

func TestDigestText(t *testing.T) {
	d := event.DigestOf([]byte("abc"))
	if got, want := d.String(), "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, err := event.ParseDigest(d.String()); err != nil || got != d {
		t.Errorf("got %s, %v", got, err)
	}
	raw, err := json.Marshal(struct {
		D event.Digest `json:"d,omitzero"`
	}{})
	if err != nil || string(raw) != "{}" {
		t.Errorf("the zero digest is written as %s, %v", raw, err)
	}
	for _, bad := range []string{"sha256:", "ba7816bf", "sha256:" + strings.Repeat("g", 64), d.String() + "00", d.String()[:70], "md5:" +
		strings.Repeat("0", 64)} {
		if _, err := event.ParseDigest(bad); err == nil {
			t.Errorf("%q passed", bad)
		}
	}
}

func FuzzParseDigest(f *testing.F) {
	f.Add("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		d, err := event.ParseDigest(text)
		if err == nil && !d.IsZero() && d.String() != strings.ToLower(text) {
			t.Errorf("%q became %q", text, d)
		}
	})
}

func TestDraftsOfARoomGoToItsStream(t *testing.T) {
	origin := event.Origin{Principal: "usr_01ARZ3NDEK0000000000000000", Correlation: "cor_1"}
	d := event.New("run.created", origin, "ws_dev", "room_1", map[string]int{"n": 1}).About("space", "spc_1").In("run_1", "step_1")
	if d.Stream != (event.Stream{Type: event.StreamRoom, ID: "room_1"}) || d.Actor.Type != "user" || d.Zone != event.Supervised ||
		d.EntityID != "spc_1" || d.Run != "run_1" || d.Step != "step_1" || d.Correlation != "cor_1" || string(d.Data) != `{"n":1}` {
		t.Errorf("got %+v", d)
	}
	if d := event.New("run.created", origin, "ws_dev", "", nil); d.Stream != event.WorkspaceStream("ws_dev") {
		t.Errorf("without a room the stream is %v", d.Stream)
	}
}
