package app_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
)

// picture is a picture of one pixel with a length of its own.
func picture(bytes int) []byte {
	return append([]byte("\x89PNG\r\n\x1a\n"), strings.Repeat("x", bytes-8)...)
}

// pictured gives the agent of a stage a task with pictures.
func (x *stage) pictured(t *testing.T, after id.Run, pictures ...[]byte) (raw []byte, status int) {
	t.Helper()
	type sent struct {
		Name string `json:"name"`
		Data []byte `json:"data"`
	}
	var list []sent
	for _, p := range pictures {
		list = append(list, sent{"chart.png", p})
	}
	body := `{"task":"look","after_run_id":"` + string(after) + `","pictures":` + jsonOf(t, list) + `}`
	if after == "" {
		body = `{"task":"look","pictures":` + jsonOf(t, list) + `}`
	}
	return x.d.send("POST", "/v1/blueprints/"+x.name+"/runs", body, "")
}

// TestAPictureOfATask is sent to the model on both wires, in each request of the conversation, also of a later task. It is an artifact of
// the run, and no event has it.
func TestAPictureOfATask(t *testing.T) {
	for _, wire := range []string{chatWire, messagesWire} {
		t.Run(wire, func(t *testing.T) {
			d := situationDaemon(t, t.TempDir(), 0)
			x := prepare(t, d, situation{name: "look", entry: `"images":true`, scenes: []scene{
				{calls: []model.Call{{ID: "c1", Name: "readFile", Arguments: `{"path":"none"}`}}}, {say: "A chart."}, {say: "The same."},
			}}, wire)
			first, second := picture(100), picture(101)
			raw, status := x.pictured(t, "", first, second)
			var run struct {
				ID id.Run `json:"run_id"`
			}
			if err := json.Unmarshal(raw, &run); err != nil || status != 201 {
				t.Fatalf("%d %s", status, raw)
			}
			x.run = run.ID
			x.wait()
			if raw, status = x.pictured(t, run.ID); status != 201 || json.Unmarshal(raw, &run) != nil {
				t.Fatalf("%d %s", status, raw)
			}
			earlier := x.run
			x.run = run.ID
			x.wait()
			x.first.mu.Lock()
			defer x.first.mu.Unlock()
			if len(x.first.bodies) != 3 {
				t.Fatalf("the model was asked %d times", len(x.first.bodies))
			}
			for n, body := range x.first.bodies {
				for _, p := range [][]byte{first, second} {
					data := base64.StdEncoding.EncodeToString(p)
					want := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}`
					if wire == messagesWire {
						want = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}`
					}
					if bytes.Count(body, []byte(want)) != 1 {
						t.Errorf("request %d has the picture %d times: %.3000s", n+1, bytes.Count(body, []byte(want)), body)
					}
				}
			}
			raw, _ = d.send("GET", "/v1/artifacts?run_id="+string(earlier), "", "")
			var kept struct {
				Artifacts []struct {
					ID    string `json:"artifact_id"`
					Title string `json:"title"`
					Media string `json:"mime_type"`
				} `json:"artifacts"`
			}
			if err := json.Unmarshal(raw, &kept); err != nil || len(kept.Artifacts) != 2 || kept.Artifacts[1].Title != "chart.png" ||
				kept.Artifacts[1].Media != "image/png" {
				t.Fatalf("the artifacts are %s", raw)
			}
			if raw, status := d.send("GET", "/v1/artifacts/"+kept.Artifacts[0].ID+"/content", "", ""); status != 200 ||
				!bytes.Equal(raw, first) && !bytes.Equal(raw, second) {
				t.Errorf("the content is %d %.100q", status, raw)
			}
			raw, _ = d.send("GET", "/v1/events?limit=200", "", "")
			if bytes.Contains(raw, []byte(base64.StdEncoding.EncodeToString(first)[:40])) {
				t.Error("an event has the picture")
			}
		})
	}
}

// TestAPictureThatIsRefused before a run is made: for a model that takes none, too many, too large ones, and what is none.
func TestAPictureThatIsRefused(t *testing.T) {
	d := situationDaemon(t, t.TempDir(), 0)
	blind := prepare(t, d, situation{name: "blind", scenes: []scene{{say: "x"}}}, chatWire)
	sees := prepare(t, d, situation{name: "sees", entry: `"images":true`, scenes: []scene{{say: "x"}}}, chatWire)
	many := make([][]byte, model.MaxImages+1)
	for n := range many {
		many[n] = picture(20)
	}
	for name, c := range map[string]struct {
		of       *stage
		pictures [][]byte
		code     string
	}{
		"a model that takes none": {blind, [][]byte{picture(20)}, model.ErrNoImages.Code},
		"too many":                {sees, many, "invalid_field"},
		"too large":               {sees, [][]byte{picture(model.MaxImage + 1)}, "invalid_field"},
		"a text":                  {sees, [][]byte{[]byte("hello")}, "invalid_picture"},
	} {
		raw, status := c.of.pictured(t, "", c.pictures...)
		if status < 400 || !strings.Contains(string(raw), `"`+c.code+`"`) {
			t.Errorf("%s: %d %.300s", name, status, raw)
		}
	}
	for _, fits := range [][][]byte{many[1:], {picture(model.MaxImage)}} {
		raw, status := sees.pictured(t, "", fits...)
		if status != 201 {
			t.Errorf("at the limit: %d %.300s", status, raw)
		}
	}
	if n := len(blind.first.bodies); n != 0 {
		t.Errorf("the model that takes none was asked %d times", n)
	}
}
