package httpapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// told is a clock that tells of each timer that is set by it.
type told struct {
	event.Clock
	set chan struct{}
}

func (c told) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	c.set <- struct{}{}
	return c.Clock.NewTimer(d)
}

// claims is what was answered to a claim.
type claims struct {
	status int
	raw    []byte
}

// waiting starts a daemon whose engines are outside. It also returns a function that makes a caller wait for a run, and returns once it
// waits.
func waiting(t *testing.T) (*daemon, func(who string) <-chan claims) {
	d := startDaemon(t, func(c *app.Config) { c.Engine = app.EngineExternal })
	d.populate(t)
	clock := told{app.Clock{}, make(chan struct{}, 1_000)}
	d.app.Engines.Clock = clock
	return d, func(who string) <-chan claims {
		answered := make(chan claims, 1)
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.address+"/v1/runs/claim", strings.NewReader(`{"wait":60}`))
			if err != nil {
				t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+d.keys[who])
			r.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				return // the test has ended
			}
			defer answer.Body.Close()
			raw, err := io.ReadAll(answer.Body)
			answered <- claims{answer.StatusCode, raw}
			if err != nil {
				t.Error(err)
			}
		}()
		select {
		case <-clock.set:
		case a := <-answered:
			answered <- a
		}
		return answered
	}
}

const someRun = `{"room_id":"room_00000000000000000000000000","title":"work","input":{"secret":"word"}}`

// TestAKeyThatWasRevokedClaimsNothing revokes a key while a claim that was made with it waits.
func TestAKeyThatWasRevokedClaimsNothing(t *testing.T) {
	d, wait := waiting(t)
	key, doc, err := d.app.Identity.IssueKey(t.Context(), event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace, d.app.Owner, "spare")
	if err != nil {
		t.Fatal(err)
	}
	d.keys["spare"] = key
	answered := wait("spare")
	if status, raw := d.ask(t, "", "DELETE", "/v1/keys/"+string(doc.ID), ""); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, raw)
	}
	made := id.Run(d.must(t, "POST", "/v1/runs", someRun, "run_id"))
	if a := <-answered; a.status != http.StatusUnauthorized {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if left, err := d.app.Engines.Find(t.Context(), id.DefaultWorkspace, made); err != nil || left.Status != run.Queued {
		t.Errorf("the run is %s, %v", left.Status, err)
	}
}

// TestARunThatIsLabelledMeanwhileIsNotHandedOver labels a room while a claim waits, and makes a run there and one elsewhere.
func TestARunThatIsLabelledMeanwhileIsNotHandedOver(t *testing.T) {
	d, wait := waiting(t)
	room := d.must(t, "POST", "/v1/rooms", `{"title":"secret"}`, "room_id")
	answered := wait("member")
	d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"room","resource_id":"`+room+`","label":"confidential"}`, "label")
	d.must(t, "POST", "/v1/runs", strings.Replace(someRun, "room_00000000000000000000000000", room, 1), "run_id")
	open := id.Run(d.must(t, "POST", "/v1/runs", someRun, "run_id"))
	a := <-answered
	var got struct{ Run run.Run }
	if err := json.Unmarshal(a.raw, &got); err != nil || got.Run.ID != open {
		t.Errorf("%d %s, want %s", a.status, a.raw, open)
	}
}

// TestWhoClosedHisEndHasTheRunThatHeClaimed claims runs with input by clients that close their end as soon as they have asked.
func TestWhoClosedHisEndHasTheRunThatHeClaimed(t *testing.T) {
	d := startDaemon(t, func(c *app.Config) { c.Engine = app.EngineExternal })
	for range 3 {
		made := d.must(t, "POST", "/v1/runs", someRun, "run_id")
		status, raw := d.halfClosed(t, "POST", "/v1/runs/claim", `{}`)
		if status != http.StatusOK || !strings.Contains(string(raw), made) || !strings.Contains(string(raw), `"secret":"word"`) {
			t.Errorf("%d %s", status, raw)
		}
	}
}

// TestOnlySoManyWait lets one principal wait as often as the limit permits. One more is refused, and other principals still wait.
func TestOnlySoManyWait(t *testing.T) {
	d, wait := waiting(t)
	if status, raw := d.ask(t, "member", "POST", "/v1/runs/claim", `{"wait":0`+strings.Repeat(" ", 1<<16)+`}`); code(raw) != "body_too_large" {
		t.Errorf("a claim of 64 KiB: %d %s", status, raw)
	}
	var all []<-chan claims
	for range 128 {
		all = append(all, wait("member"))
	}
	if a := <-wait("member"); a.status != http.StatusTooManyRequests || code(a.raw) != "too_many_waiting" {
		t.Errorf("%d %.200s", a.status, a.raw)
	}
	all = append(all, wait(""))
	for _, n := range []int{0, 1} {
		made := d.must(t, "POST", "/v1/runs", someRun, "run_id")
		if a := <-all[n]; !strings.Contains(string(a.raw), made) {
			t.Errorf("%d %s, want %s", a.status, a.raw, made)
		}
	}
	all = append(all, wait("member")) // there is room again
	d.must(t, "POST", "/v1/runs", someRun, "run_id")
	if a := <-all[2]; a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.raw)
	}
}
