package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/surface/httpapi/wire"
)

// marker is a text that was planted in a thing.
var marker = regexp.MustCompile(`plum[a-z]+`)

// planted is a daemon with a text of its own in each thing that can be labelled, and the ids of all.
type planted struct {
	*daemon
	things map[string][]string // by the name of a parameter
	within map[string][]string // by the name of a parameter and a number, "run_id 0": the texts in the thing and in what lies in it
	passed map[string][]string // likewise: the texts that the thing shows too, and that lie elsewhere
}

// showing is a GET operation of the API document.
type showing struct {
	id, path string
	query    []string
	stream   bool
}

func shows(t *testing.T) []showing {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]struct {
			ID         string `json:"operationId"`
			Parameters []struct{ Name, In string }
			Responses  map[string]struct{ Content map[string]any }
		} `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	var all []showing
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		op, ok := document.Paths[path]["get"]
		if !ok {
			continue
		}
		one := showing{id: op.ID, path: path}
		for _, p := range op.Parameters {
			if p.In == "query" {
				one.query = append(one.query, p.Name)
			}
		}
		_, one.stream = op.Responses["200"].Content["text/event-stream"]
		all = append(all, one)
	}
	return all
}

// requests returns every request of an operation that the things make: each of them in each path and in each filter.
func (p *planted) requests(t *testing.T, op showing) []string {
	t.Helper()
	paths := []string{op.path}
	for _, found := range parameter.FindAllStringSubmatch(op.path, -1) {
		values, ok := p.things[found[1]]
		if !ok {
			t.Fatalf("%s: nothing is planted for %s", op.id, found[1])
		}
		var filled []string
		for _, path := range paths {
			for _, value := range values {
				filled = append(filled, strings.Replace(path, found[0], value, 1))
			}
		}
		paths = filled
	}
	base := url.Values{}
	for _, name := range op.query {
		switch name {
		case "from_seq", "from":
			if op.id != "diff-space" {
				base.Set(name, "1")
			}
		case "old_size":
			base.Set(name, "1")
		case "redact":
			base.Set(name, "none")
		case "files", "recursive":
			base.Set(name, "true")
		case "limit":
			base.Set(name, "100")
			if op.id == "list-events" {
				base.Set(name, "200")
			}
		}
	}
	queries := []string{base.Encode()}
	with := func(name, value string, more ...string) {
		q := maps.Clone(base)
		q.Set(name, value)
		for i := 0; i < len(more); i += 2 {
			q.Set(more[i], more[i+1])
		}
		queries = append(queries, q.Encode())
	}
	for _, name := range op.query {
		switch name {
		case "q":
			for _, text := range p.within["room_id 0"] {
				with(name, text)
			}
		case "stream_id":
			with(name, p.things["room_id"][0], "stream_type", "room")
		case "path":
		default:
			for _, value := range p.things[name] {
				with(name, value)
			}
		}
	}
	var all []string
	for _, path := range paths {
		for _, q := range queries {
			all = append(all, strings.TrimSuffix(path+"?"+q, "?"))
		}
	}
	return all
}

// read returns the texts in the answer to a request, and how many events of a stream there were.
func (p *planted) read(t *testing.T, who string, op showing, path string) (texts []string, events int) {
	t.Helper()
	most := -1
	if op.id == "stream-events" || op.id == "stream-room" { // which have no end: as many as a list has
		list := strings.Replace(path, "/v1/events/stream", "/v1/events", 1)
		if in, ok := strings.CutPrefix(path, "/v1/streams/rooms/"); ok {
			in, _, _ = strings.Cut(in, "?")
			list = "/v1/events?from_seq=1&room_id=" + in
		}
		var found struct {
			Events []json.RawMessage `json:"events"`
		}
		if _, raw := p.ask(t, who, "GET", list+"&limit=200", ""); json.Unmarshal(raw, &found) != nil {
			t.Fatalf("%s: %.200s", list, raw)
		}
		if most = len(found.Events); most == 0 {
			return nil, 0
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.address+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.keys[who])
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if op.id == "request-port" && answer.StatusCode == http.StatusBadGateway { // nothing listens there
		return nil, 0
	}
	if op.id == "watch-files" && answer.StatusCode == http.StatusOK { // it tells of changes from now on, and nothing changes
		return nil, 0
	}
	var raw []byte
	if most >= 0 {
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for events < most && lines.Scan() {
			if strings.HasPrefix(lines.Text(), "data: ") {
				events++
			}
			raw = append(append(raw, lines.Bytes()...), '\n')
		}
		if events < most {
			t.Errorf("%s ended after %d of %d events: %s", path, events, most, raw)
		}
	} else if raw, err = io.ReadAll(answer.Body); err != nil {
		t.Fatal(err)
	}
	if answer.StatusCode >= 500 {
		t.Errorf("%s: %d %s", path, answer.StatusCode, raw)
	}
	var proof struct {
		Data []byte `json:"data"` // the bytes themselves, in base64
	}
	if op.id == "prove-inclusion" && json.Unmarshal(raw, &proof) == nil {
		raw = append(raw, proof.Data...)
	}
	found := marker.FindAllString(string(raw), -1)
	slices.Sort(found)
	return slices.Compact(found), events
}

// everything returns which texts each operation shows to somebody, and fails where it shows one of those that it may not.
func (p *planted) everything(t *testing.T, who string, never []string) (shown map[string][]string, events map[string]int) {
	t.Helper()
	shown, events = map[string][]string{}, map[string]int{}
	for _, op := range shows(t) {
		for _, path := range p.requests(t, op) {
			texts, n := p.read(t, who, op, path)
			events[path] = n
			for _, text := range texts {
				if slices.Contains(never, text) && !strings.Contains(path, text) {
					t.Errorf("GET %s shows %s", path, text)
				}
			}
			if op.id == "search" { // which says nothing of the query but in what it finds
				p.nothingOfTheQuery(t, who, path, texts)
			}
			shown[op.id] = append(shown[op.id], texts...)
		}
		slices.Sort(shown[op.id])
		shown[op.id] = slices.Compact(shown[op.id])
	}
	return shown, events
}

func (p *planted) nothingOfTheQuery(t *testing.T, who, path string, texts []string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(path, text) {
			continue
		}
		var found struct {
			Results []json.RawMessage `json:"results"`
		}
		if _, raw := p.ask(t, who, "GET", path, ""); json.Unmarshal(raw, &found) != nil || len(found.Results) == 0 {
			t.Errorf("GET %s finds nothing and says %s", path, text)
		}
	}
}

// plant makes a room with something of everything in it.
func plant(t *testing.T) *planted {
	t.Helper()
	d := startDaemon(t, func(c *app.Config) {
		c.Rates = wire.DefaultRates()
		c.Rates.Spaces, c.Rates.Runs, c.Rates.Files, c.Rates.General = 10_000, 100_000, 100_000, 1_000_000
	})
	d.populate(t)
	p := &planted{daemon: d, things: map[string][]string{}, within: map[string][]string{}}
	room := d.must(t, "POST", "/v1/rooms", `{"title":"plumroom","topic":"plumroom"}`, "room_id")
	thread := d.must(t, "POST", "/v1/rooms/"+room+"/threads", `{"title":"plumthread"}`, "thread_id")
	said := d.must(t, "POST", "/v1/threads/"+thread+"/messages", `{"content_md":"a plumword"}`, "message_id")
	lost := d.must(t, "POST", "/v1/threads/"+thread+"/messages", `{"content_md":"a mistake"}`, "event_id")
	d.succeed(t, "POST", "/v1/audit/redactions", `{"event_id":"`+lost+`","reason":"plumgone"}`, nil)

	space := d.must(t, "POST", "/v1/spaces", `{"name":"plumspace","room_id":"`+room+`","policy":"permissive"}`, "id")
	for _, name := range []string{"a.txt", "plumfile.txt", ".agentbox/contexts/plumfile.py"} {
		if status, raw := d.ask(t, "", "PUT", "/v1/spaces/"+space+"/files/"+name, "plumfile"); status >= 300 {
			t.Fatalf("%d %s", status, raw)
		}
	}
	work := d.must(t, "POST", "/v1/spaces/"+space+"/runs",
		`{"protocolVersion":"1.0","title":"plumwork","artifacts":["kept.txt"],"operations":[{"type":"shell","command":"echo plum''work; touch `+
			`plumfile.new; echo plum''kept > kept.txt"},{"type":"readFile","path":"a.txt"}]}`, "runId")
	var gathered struct {
		Artifacts []struct {
			ID string `json:"artifact_id"`
		} `json:"artifacts"`
	}
	d.succeed(t, "GET", "/v1/artifacts?run_id="+work, "", &gathered)
	if len(gathered.Artifacts) != 1 {
		t.Fatalf("the run has left %+v, want one artifact", gathered.Artifacts)
	}
	if status, raw := d.ask(t, "", "DELETE", "/v1/spaces/"+space+"/files/kept.txt", ""); status >= 300 { // only the artifact has the text
		t.Fatalf("%d %s", status, raw)
	}
	fork := d.must(t, "POST", "/v1/spaces/"+space+"/fork", `{"name":"plumfork"}`, "id")

	d.must(t, "POST", "/v1/runs", `{"room_id":"`+room+`","title":"plumorder","goal":"plumorder","input":{"x":"plumorder"}}`, "run_id")
	var got struct {
		Token string `json:"claim_token"`
		Run   struct {
			ID string `json:"run_id"`
		} `json:"run"`
	}
	d.succeed(t, "POST", "/v1/runs/claim", `{"room_id":"`+room+`"}`, &got)
	held := func(more string) string { return `{"claim_token":"` + got.Token + `",` + more + `}` }
	step := d.must(t, "POST", "/v1/runs/"+got.Run.ID+"/steps", held(`"kind":"work","title":"plumstep","input":{"x":"plumstep"}`), "step_id")
	call := d.must(t, "POST", "/v1/steps/"+step+"/toolcalls", held(`"tool_name":"look","title":"plumcall","input":{"x":"plumcall"}`),
		"tool_call_id")
	d.must(t, "POST", "/v1/toolcalls/"+call+"/succeed", held(`"output":{"x":"plumcall"}`), "tool_call_id")
	content := "a plumpaper"
	artifact := d.must(t, "POST", "/v1/steps/"+step+"/artifacts",
		held(fmt.Sprintf(`"kind":"note","title":"plumpaper","metadata":{"x":"plumpaper"},"size_bytes":%d,"sha256":"%s","content":{"type":"none"}`,
			len(content), event.DigestOf([]byte(content)))), "artifact_id")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, d.address+"/v1/artifacts/"+artifact+"/content",
		strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	r.Header.Set("Content-Type", "application/octet-stream")
	r.Header.Set("X-Claim-Token", got.Token)
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if _ = answer.Body.Close(); answer.StatusCode >= 300 {
		t.Fatalf("the content of an artifact: %d", answer.StatusCode)
	}
	d.must(t, "POST", "/v1/runs/"+got.Run.ID+"/complete", held(`"summary":"plumorder","output":{"x":"plumorder"}`), "run_id")

	var asked struct {
		ID string `json:"approval_id"`
	}
	if _, raw := d.ask(t, "member", "POST", "/v1/approvals", `{"action":"email.send","room_id":"`+room+
		`","title":"plumask","target":"plumask@example.com","request":{"body":"plumask"}}`); json.Unmarshal(raw, &asked) != nil ||
		asked.ID == "" {
		t.Fatalf("ask: %s", raw)
	}
	d.succeed(t, "POST", "/v1/approvals/"+asked.ID+"/decide", `{"decision":"approve","scope":"room","uses":3,"expires_at":"`+
		d.app.Gate.Clock.Now().AddDate(0, 0, 1).Format("2006-01-02T15:04:05Z")+`"}`, nil)
	incident := d.must(t, "POST", "/v1/incidents", `{"title":"plumflood","room_id":"`+room+`","details":{"x":"plumflood"}}`, "incident_id")
	d.succeed(t, "POST", "/v1/incidents/"+incident+"/rca", `{"summary":"plumflood"}`, nil)
	d.succeed(t, "POST", "/v1/runs/"+work+"/evidence/finalize", ``, nil)
	if err := d.app.Signer.Step(t.Context()); err != nil {
		t.Fatal(err)
	}

	p.listen(t, space, "8080")
	p.listen(t, fork, "8080")
	p.things = map[string][]string{
		"room_id": {room}, "thread_id": {thread}, "message_id": {said}, "space_id": {space, fork}, "run_id": {work, got.Run.ID},
		"step_id": {step}, "tool_call_id": {call}, "artifact_id": {artifact, gathered.Artifacts[0].ID},
		"approval_id": {asked.ID}, "incident_id": {incident}, "path": {"a.txt"}, "agent_id": {string(d.app.Owner)},
		"principal_id": {string(d.app.Owner)}, "engine_id": {"svc_none"},
		"workspace_id": {"ws_dev"}, "port": {"8080"}, "action_type": {"deploy.production"}, "blueprint": {"weather-report"},
		"model": {"glm"}, "model_key": {"zai"}, "mcp_server": {"github"},
	}
	all := d.recorded(t)
	if len(all) > 200 {
		t.Fatalf("%d events were planted; one page of a list has 200", len(all))
	}
	for _, e := range all {
		if marker.Match(e.Data) {
			p.things["event_id"] = append(p.things["event_id"], string(e.ID))
		}
	}
	p.within = map[string][]string{
		"thread_id 0": {"plumthread", "plumword", "plumgone"}, "message_id 0": {"plumword"}, "space_id 0": {"plumspace", "plumfile", "plumwork",
			"plumfork", "plumkept"}, "space_id 1": {"plumfork"},
		"run_id 0": {"plumwork", "plumkept"}, "run_id 1": {"plumorder", "plumstep", "plumcall", "plumpaper"},
		"step_id 0": {"plumstep", "plumcall",
			"plumpaper"}, "tool_call_id 0": {"plumcall"},
		"artifact_id 0": {"plumpaper"}, "artifact_id 1": {"plumkept"}, "approval_id 0": {"plumask"}, "incident_id 0": {"plumflood"},
	}
	p.passed = map[string][]string{"run_id 0": {"plumfile"}} // which it reads in its space
	p.within["room_id 0"] = []string{
		"plumroom", "plumthread", "plumword", "plumgone", "plumspace", "plumfile", "plumwork", "plumfork", "plumorder", "plumstep", "plumcall",
		"plumpaper", "plumask", "plumflood", "plumkept",
	}
	return p
}

// showNothing are the GET operations that show nothing of what can be labelled.
var showNothing = strings.Fields(`
	healthz readyz get-metrics get-doctor list-actions list-agents get-agent list-principals get-principal get-session list-capabilities
	list-delegations list-engines list-engine-tokens list-keys get-permit-key list-nodes
	get-kill-switch list-presets list-labels get-room-defaults get-content list-workspaces get-workspace get-checkpoint get-audit-key
	prove-consistency verify-hash-chain
	watch-files list-ports
	get-read-cursor get-permit-key get-space-policy list-action-types get-action-type list-blueprints get-blueprint get-blueprint-schema
	list-models get-model list-usage list-mcp-servers get-mcp-server
	list-snapshots list-attempts get-evidence`)

// TestLabelsHoldEverywhere labels one thing after the other, and reads everything that there is to be read, by every GET operation of the
// API document. A reader without access finds the contents of a labelled thing nowhere, and everything else where it was. A reader with
// access finds all of it.
func TestLabelsHoldEverywhere(t *testing.T) {
	p := plant(t)
	before, eventsBefore := p.everything(t, "member", nil)
	for _, op := range shows(t) {
		if nothing := slices.Contains(showNothing, op.id); nothing != (len(before[op.id]) == 0) {
			t.Errorf("%s shows %q: plant something that it shows, or list it among those that show nothing", op.id, before[op.id])
		}
	}
	for _, text := range p.within["room_id 0"] {
		if !slices.ContainsFunc(slices.Collect(maps.Values(before)), func(shown []string) bool { return slices.Contains(shown, text) }) {
			t.Errorf("%s is not shown anywhere", text)
		}
	}
	if t.Failed() {
		return
	}
	for _, what := range slices.Sorted(maps.Keys(p.within)) {
		t.Run(what, func(t *testing.T) {
			name, number, _ := strings.Cut(what, " ")
			thing := `"resource_type":"` + strings.TrimSuffix(name, "_id") + `","resource_id":"` + p.things[name][int(number[0]-'0')] + `"`
			p.must(t, "POST", "/v1/resources/labels", `{`+thing+`,"label":"confidential"}`, "label")
			without, events := p.everything(t, "member", p.within[what])
			for op, shown := range before {
				for _, text := range shown {
					if !slices.Contains(p.passed[what], text) && !slices.Contains(p.within[what], text) && !slices.Contains(without[op], text) {
						t.Errorf("%s does not show %s any more", op, text)
					}
				}
			}
			for path, n := range eventsBefore { // a stream has no gap
				if events[path] < n {
					t.Errorf("GET %s has %d events, of %d", path, events[path], n)
				}
			}
			if status, raw := p.ask(t, "member", "POST", "/v1/data/access/requests", `{`+thing+`,"action":"read"}`); status != 200 ||
				!strings.Contains(string(raw), `"decision":"allow"`) {
				t.Fatalf("%d %s", status, raw)
			}
			with, _ := p.everything(t, "member", nil)
			for op, shown := range before {
				if !slices.Equal(with[op], shown) {
					t.Errorf("with access %s shows %q, want %q", op, with[op], shown)
				}
			}
			p.must(t, "POST", "/v1/resources/labels", `{`+thing+`,"label":"internal"}`, "label")
		})
	}
}

// TestLabelsHoldWhereThingsAreDone does what answers with something of a thing, with and without access to it.
func TestLabelsHoldWhereThingsAreDone(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	label := func(typ, id, level string) {
		t.Helper()
		d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"`+typ+`","resource_id":"`+id+`","label":"`+level+`"}`, "label")
	}
	access := func(who, typ, id string) {
		t.Helper()
		if status, raw := d.ask(t, who, "POST", "/v1/data/access/requests", `{"resource_type":"`+typ+`","resource_id":"`+id+
			`","action":"read"}`); status != 200 {
			t.Fatalf("%d %s", status, raw)
		}
	}
	refused := func(who, method, path, body string) {
		t.Helper()
		if status, raw := d.ask(t, who, method, path, body); status != 403 || code(raw) != "data_access_required" || marker.Match(raw) {
			t.Errorf("%s %s: %d %s, want it refused", method, path, status, raw)
		}
	}
	space := d.must(t, "POST", "/v1/spaces", `{"name":"plumspace","policy":"permissive"}`, "id")
	run := d.must(t, "POST", "/v1/spaces/"+space+"/runs",
		`{"protocolVersion":"1.0","title":"plumwork","operations":[{"type":"shell","id":"a","command":"rm -r plumfile"}]}`, "runId")
	label("space", space, "confidential")
	reading := `{"protocolVersion":"1.0","operations":[{"type":"shell","command":"ls"}]}`
	explained := `{"space_id":"` + space + `","operation":{"type":"shell","command":"ls"}}`
	refused("member", "POST", "/v1/spaces/"+space+"/runs", reading)
	refused("member", "POST", "/v1/spaces/"+space+"/fork", `{}`)
	refused("member", "PATCH", "/v1/spaces/"+space, `{"name":"other"}`)
	refused("member", "POST", "/v1/policies/explain", explained)
	refused("", "POST", "/v1/spaces/"+space+"/runs/"+run+"/resume", `{"approval":{"operationId":"a","decision":"approved"}}`)
	if status, raw := d.ask(t, "member", "PUT", "/v1/spaces/"+space+"/files/in.txt", "put in"); status >= 300 {
		t.Errorf("what shows nothing is refused: %d %s", status, raw)
	}
	status, raw := d.ask(t, "", "POST", "/v1/spaces/"+space+"/runs/"+run+"/cancel", `{}`) // to end something never waits for an access
	if status != 202 || marker.Match(raw) || !strings.Contains(string(raw), run) {
		t.Errorf("cancel: %d %s", status, raw)
	}
	access("member", "space", space)
	if status, raw := d.ask(t, "member", "POST", "/v1/policies/explain", explained); status != 200 {
		t.Errorf("with access: %d %s", status, raw)
	}
	fork := d.forked(t, "member", space)
	refused("", "GET", "/v1/spaces/"+fork, "") // what came of a labelled space is as guarded as it
	if status, raw := d.ask(t, "", "DELETE", "/v1/spaces/"+space, ""); status != 200 || marker.Match(raw) {
		t.Errorf("destroy: %d %s", status, raw)
	}

	claim := func(who string) (claimed string) {
		t.Helper()
		var got struct {
			Run struct {
				ID string `json:"run_id"`
			} `json:"run"`
		}
		if status, raw := d.ask(t, who, "POST", "/v1/runs/claim", `{}`); status != 200 || json.Unmarshal(raw, &got) != nil {
			t.Fatalf("%d %s", status, raw)
		}
		return got.Run.ID
	}
	guarded := d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000","input":"plumorder"}`, "run_id")
	open := d.must(t, "POST", "/v1/runs", `{"room_id":"room_00000000000000000000000000"}`, "run_id")
	label("run", guarded, "confidential")
	if got := claim("member"); got != open {
		t.Errorf("claimed %q, want the one that is not labelled", got)
	}
	if got := claim("member"); got != "" {
		t.Errorf("claimed %q without access", got)
	}
	access("member", "run", guarded)
	if got := claim("member"); got != guarded {
		t.Errorf("claimed %q with access, want %s", got, guarded)
	}
}

// forked forks a space on behalf of somebody.
func (d *daemon) forked(t *testing.T, who, space string) string {
	t.Helper()
	var made struct {
		ID string `json:"id"`
	}
	if status, raw := d.ask(t, who, "POST", "/v1/spaces/"+space+"/fork", `{}`); status != 201 || json.Unmarshal(raw, &made) != nil {
		t.Fatalf("%d %s", status, raw)
	}
	return made.ID
}

// TestALabelReachesWhoFollowsAlready labels a thread while somebody follows its room.
func TestALabelReachesWhoFollowsAlready(t *testing.T) {
	d := startDaemon(t)
	d.populate(t)
	room := d.must(t, "POST", "/v1/rooms", `{"title":"open"}`, "room_id")
	thread := d.must(t, "POST", "/v1/rooms/"+room+"/threads", `{"title":"talk"}`, "thread_id")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, d.address+"/v1/streams/rooms/"+room+"?from_seq=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys["member"])
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	next := func() (e event.Event) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					t.Fatal(err)
				}
				return e
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return e
	}
	say := func(text string) {
		t.Helper()
		d.must(t, "POST", "/v1/threads/"+thread+"/messages", `{"content_md":"`+text+`"}`, "message_id")
	}
	say("before")
	for e := next(); e.Type != "message.created"; e = next() {
		if e.Withheld != "" {
			t.Errorf("%s is withheld: %s", e.Type, e.Withheld)
		}
	}
	d.must(t, "POST", "/v1/resources/labels", `{"resource_type":"thread","resource_id":"`+thread+`","label":"confidential"}`, "label")
	say("plumword")
	last := next()
	if last.Withheld != event.Labelled || string(last.Data) != "{}" || last.Redaction != event.RedactFull || last.Chain.Salt != nil ||
		last.Chain.Redaction != event.RedactNone || last.StreamSeq != 4 {
		t.Errorf("got %+v with %s", last, last.Data)
	}
	if status, raw := d.ask(t, "member", "POST", "/v1/data/access/requests", `{"resource_type":"thread","resource_id":"`+thread+
		`","action":"read"}`); status != 200 {
		t.Fatalf("%d %s", status, raw)
	}
	say("plumstone")
	if e := next(); e.Withheld != "" || !strings.Contains(string(e.Data), "plumstone") {
		t.Errorf("with access: got %+v with %s", e, e.Data)
	}
}
