package httpapi_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/testkit"
	"agentbox/internal/testkit/pgtest"
)

// The scenarios are transcripts: what is asked, what is answered, and which events that caused. `go test -run Scenarios -update` writes the
// answers anew; read the difference. Identifiers are numbered in the order in which they appear, and a request may use such a name.
//
//	> METHOD /path          a request; then headers, an empty line, and the body if there is one
//	< STATUS                its answer; then the headers that say something, and the body
//	! event.type ...        the events that were recorded since the request before
//
// Some headers are for the scenario itself: `As: other` asks with the key of another workspace, `As: operator-anna` with that of another
// person, `As: agent-bob` with that of an agent, `Show: status` leaves the body out, `Read: N` reads N messages of an event stream and
// goes away, `Events: later` leaves the events to the next request. `> WAIT run_1` waits until the run has ended, or waits for a person
// anew.

// daemon is a whole daemon with real spaces that a scenario talks to over its port.
type daemon struct {
	app     *app.App
	address string
	keys    map[string]string
	seq     uint64 // of the last event that was shown
	names   names
}

func startDaemon(t *testing.T, change ...func(*app.Config)) *daemon {
	t.Helper()
	c := app.Default(t.TempDir())
	for _, f := range change {
		f(&c)
	}
	d, stop := serveDaemon(t, c)
	t.Cleanup(stop)
	return d
}

// serveDaemon opens a data directory and serves it until stop is called.
func serveDaemon(t *testing.T, c app.Config) (d *daemon, stop func()) {
	t.Helper()
	c.Listen = "127.0.0.1:0"
	a, err := app.Open(t.Context(), c, app.Clock{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan app.State, 1)
	go func() { ended <- a.Run(ctx, func(s app.State) { ready <- s }) }()
	d = &daemon{app: a, keys: map[string]string{}, names: names{}}
	select {
	case state := <-ready:
		d.address = "http://" + strings.TrimPrefix(state.Address, "http://")
	case err := <-ended:
		t.Fatal(err)
	}
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for name, ws := range map[string]id.Workspace{"": id.DefaultWorkspace, "other": "ws_other"} {
		owner, err := a.Identity.Owner(ctx, ws, "owner")
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := a.Identity.IssueKey(ctx, event.Origin{Principal: owner}, ws, owner, "scenario")
		if err != nil {
			t.Fatal(err)
		}
		d.keys[name] = key
	}
	if d.seq, err = a.Log.Head(ctx, id.DefaultWorkspace); err != nil {
		t.Fatal(err)
	}
	if err := a.Signer.Step(ctx); err != nil {
		t.Fatal(err)
	}
	return d, stop
}

func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d := startDaemon(t, tiersOf(file))
			got := d.play(t, string(raw))
			d.checkCauses(t)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != string(raw) {
				t.Errorf("%s is not what happens now:\n%s", file, difference(string(raw), got))
			}
		})
	}
}

// tiersOf gives a daemon the tier nano for the scenarios that are about it.
func tiersOf(file string) func(*app.Config) {
	return func(c *app.Config) {
		if name := filepath.Base(file); strings.HasPrefix(name, "runtimes") || strings.HasPrefix(name, "contexts") {
			c.Light = &testkit.Light{Has: lightHas}
		}
	}
}

// The same stories, word for word, where the log lies in a database.
func TestScenariosInADatabase(t *testing.T) {
	server := pgtest.Start(t)
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			if got := startDaemon(t, tiersOf(file), func(c *app.Config) { c.Store = server.Database() }).play(t, string(raw)); got != string(raw) {
				t.Errorf("%s happens otherwise in a database:\n%s", file, difference(string(raw), got))
			}
		})
	}
}

// difference shows the first lines that differ.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			from := max(0, i-8)
			return fmt.Sprintf("line %d\n--- got\n%s\n--- want\n%s", i+1, strings.Join(g[from:min(len(g), i+12)], "\n"),
				strings.Join(w[from:min(len(w), i+12)], "\n"))
		}
	}
	return fmt.Sprintf("got %d lines, want %d", len(g), len(w))
}

// play runs a transcript and returns it with the answers of now.
func (d *daemon) play(t *testing.T, script string) string {
	t.Helper()
	var out strings.Builder
	lines := strings.Split(script, "\n")
	for i := 0; i < len(lines); {
		if !strings.HasPrefix(lines[i], "> ") {
			if strings.HasPrefix(lines[i], "#") {
				out.WriteString(lines[i] + "\n")
			}
			i++
			continue
		}
		var asked []string
		for ; i < len(lines) && !strings.HasPrefix(lines[i], "< ") && !strings.HasPrefix(lines[i], "! "); i++ {
			if len(asked) > 0 && (strings.HasPrefix(lines[i], "> ") || strings.HasPrefix(lines[i], "# ")) {
				break
			}
			asked = append(asked, lines[i])
		}
		for len(asked) > 1 && asked[len(asked)-1] == "" {
			asked = asked[:len(asked)-1]
		}
		for i < len(lines) && !strings.HasPrefix(lines[i], "> ") && !strings.HasPrefix(lines[i], "# ") {
			i++ // the answer of then
		}
		out.WriteString("\n" + strings.Join(asked, "\n") + "\n")
		out.WriteString(d.exchange(t, asked))
		if slices.Contains(asked, "Events: later") {
			continue
		}
		if events := d.events(t); events != "" {
			out.WriteString("! " + events + "\n")
		}
	}
	return strings.TrimPrefix(out.String(), "\n")
}

// tried asks until every check of readiness was tried once, which takes as long as it takes.
func (d *daemon) tried(t *testing.T) {
	t.Helper()
	for under := true; under; {
		resp, err := http.Get(d.address + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		under = strings.Contains(string(raw), "it is being tried")
	}
}

// exchange does one request and returns its answer as the transcript shows it.
func (d *daemon) exchange(t *testing.T, asked []string) string {
	t.Helper()
	if asked[0] == "> GET /readyz" {
		d.tried(t)
	}
	method, path, _ := strings.Cut(strings.TrimPrefix(asked[0], "> "), " ")
	path = d.names.real(path)
	if method == "WAIT" {
		doc, err := d.app.Runs.History.Find(t.Context(), id.DefaultWorkspace, id.Run(path))
		if err != nil {
			t.Fatal(err)
		}
		_, answered := doc.Pending()
		if _, err := d.app.Runs.History.WaitPast(t.Context(), id.DefaultWorkspace, doc.ID, answered); err != nil {
			t.Fatal(err)
		}
		return ""
	}
	header := http.Header{}
	body := ""
	for i, line := range asked[1:] {
		if line == "" {
			body = d.names.real(strings.Join(asked[i+2:], "\n"))
			break
		}
		name, value, _ := strings.Cut(line, ": ")
		if value == "BOOTSTRAP" {
			value = d.app.Identity.BootstrapToken
		}
		header.Set(name, d.names.real(value))
	}
	show, read, who := header.Get("Show"), header.Get("Read"), header.Get("As")
	for _, own := range []string{"Show", "Read", "As", "Events"} {
		header.Del(own)
	}
	if strings.HasPrefix(header.Get("Content-Type"), "multipart/") {
		body = strings.ReplaceAll(body, "\n", "\r\n")
	} else if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	if r.Header.Get("Authorization") == "" && who != "nobody" {
		r.Header.Set("Authorization", "Bearer "+d.key(t, who))
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s: %v", asked[0], err)
	}
	defer resp.Body.Close()
	var out strings.Builder
	fmt.Fprintf(&out, "< %d\n", resp.StatusCode)
	for _, name := range []string{"Location", "ETag", "Content-Range", "Allow", "Idempotency-Replayed"} {
		if v := resp.Header.Get(name); v != "" {
			out.WriteString(name + ": " + d.names.shown(v) + "\n")
		}
	}
	var raw []byte
	if read != "" {
		n, _ := strconv.Atoi(read)
		raw = messages(resp.Body, n)
	} else if raw, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s: %v", asked[0], err)
	}
	holds(t, method, path, resp, raw)
	if text := d.body(t, resp.Header.Get("Content-Type"), raw); text != "" && show != "status" {
		out.WriteString(text + "\n")
	}
	return out.String()
}

// key returns the key of the owner, of the owner of another workspace, or of a person or an agent named ROLE-NAME, who is made at the
// first mention.
func (d *daemon) key(t *testing.T, who string) string {
	t.Helper()
	role, name, person := strings.Cut(who, "-")
	if key, ok := d.keys[who]; ok || !person {
		return key
	}
	origin, ws := event.Origin{Principal: d.app.Owner}, id.DefaultWorkspace
	var p id.Principal
	var err error
	if role == string(id.Agent) {
		p, err = d.app.Identity.Agent(t.Context(), origin, ws, name)
	} else {
		p, err = d.app.Identity.AddPerson(t.Context(), origin, ws, name, principal.Role(role))
	}
	if err != nil {
		t.Fatal(err)
	}
	if role != string(id.Agent) {
		origin.Principal = p // a key of their own: with a key of the owner's they would count as the owner
	}
	if d.keys[who], _, err = d.app.Identity.IssueKey(t.Context(), origin, ws, p, "scenario"); err != nil {
		t.Fatal(err)
	}
	return d.keys[who]
}

// messages reads n messages of an event stream; comments are none.
func messages(r io.Reader, n int) []byte {
	var out bytes.Buffer
	for lines := bufio.NewScanner(r); n > 0 && lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, ":"):
			lines.Scan()
		case line == "":
			n--
			out.WriteString("\n")
		default:
			out.WriteString(line + "\n")
		}
	}
	return out.Bytes()
}

func (d *daemon) body(t *testing.T, media string, raw []byte) string {
	t.Helper()
	switch {
	case media == "application/json" || media == "application/problem+json":
		return d.names.shown(pretty(t, raw))
	case media == "application/zip":
		z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			t.Fatal(err)
		}
		var entries []string
		for _, f := range z.File {
			entries = append(entries, f.Name)
		}
		return "zip: " + strings.Join(entries, " ")
	case strings.HasPrefix(media, "text/event-stream"):
		var out []string
		for message := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n\n") {
			if !strings.HasPrefix(message, ":") { // a sign of life, which comes when the machine is slow
				out = append(out, d.names.shown(message))
			}
		}
		return strings.Join(out, "\n\n")
	}
	return d.names.shown(string(raw))
}

// pretty indents JSON; fields that say the same every time are left out.
func pretty(t *testing.T, raw []byte) string {
	t.Helper()
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("read %q: %v", raw, err)
	}
	out := &bytes.Buffer{}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// events returns the types of what was recorded since it was last asked.
func (d *daemon) events(t *testing.T) string {
	t.Helper()
	d.app.Engines.Evidence.Wait() // the evidence of a run is collected behind the answer to its end
	found, err := d.app.Log.Read(t.Context(), journal.Query{Workspace: id.DefaultWorkspace, From: d.seq + 1, Limit: journal.MaxRead})
	if err != nil {
		t.Fatal(err)
	}
	var types []string
	for _, e := range found {
		types = append(types, e.Type)
		d.seq = e.Seq
		d.names.shown(string(e.ID))
	}
	return strings.Join(types, " ")
}

// names are the identifiers of a transcript under the numbers that they have there.
type names map[string]string

var (
	identifier = regexp.MustCompile(`\b(?:abk|abt|atk|rtk|engtok)_[a-z0-9_-]+\.[0-9A-HJKMNP-TV-Z]{26}\.[A-Z2-7]{52}\b|` +
		`\b(ws|room|th|msg|usr|agt|svc|run|step|tc|art|rat|evd|appr|stand|spc|node|inc|key|cap|ses|engtok|req|cor)_[0-9A-HJKMNP-TV-Z]{26}\b|\bclm_[A-Z2-7]{52}\b|\bprm_[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{86}|` +
		`\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b|(?:sha256:|\b)[0-9a-f]{64}\b`)
	today   = regexp.MustCompile(`("day": )"20\d\d-\d\d-\d\d"`)
	moment  = regexp.MustCompile(`\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	public  = regexp.MustCompile(`("public_key": ?)"[A-Za-z0-9+/]{43}="`)
	varying = regexp.MustCompile(`("(?:durationMs|commitMs|duration_ms|host_uid|start_ns|seq|stream_seq|pid|appends|decisions|head)": ?)\d+`)
	salts   = regexp.MustCompile(`("salt": ?)"[^"]*"`)
	used    = regexp.MustCompile(
		`\b(?:(?:room|th|msg|usr|agt|svc|run|step|tc|art|rat|evd|clm|prm|appr|stand|spc|node|inc|key|cap|ses|engtok|req|cor|event|hash|secret)_\d+|sha256:#\d+)\b`)
)

// shown replaces what differs from run to run.
func (n names) shown(text string) string {
	text = identifier.ReplaceAllStringFunc(text, func(real string) string {
		for name, known := range n {
			if known == real {
				return name
			}
		}
		prefix, _, isID := strings.Cut(real, "_")
		form := prefix + "_%d"
		if strings.Count(real, ".") == 2 { // what is shown once; a later request may bear it
			form = "secret_%d"
		} else if strings.HasPrefix(real, "sha256:") {
			form = "sha256:#%d"
		} else if len(real) == 64 {
			form = "hash_%d"
		} else if !isID {
			form = "event_%d"
		}
		for i := 1; ; i++ {
			name := fmt.Sprintf(form, i)
			if _, taken := n[name]; !taken {
				n[name] = real
				return name
			}
		}
	})
	text = moment.ReplaceAllString(text, "TIME")
	text = today.ReplaceAllString(text, `${1}"DAY"`)
	text = public.ReplaceAllString(text, `$1"KEY"`)
	text = salts.ReplaceAllString(text, `$1"SALT"`)
	return varying.ReplaceAllString(text, "${1}0")
}

// real puts identifiers back in place of their names.
func (n names) real(text string) string {
	return used.ReplaceAllStringFunc(text, func(name string) string {
		if real, ok := n[name]; ok {
			return real
		}
		return name
	})
}

// TestEveryOperationHasAScenario finds a request of the transcripts for each operation of the API document.
func TestEveryOperationHasAScenario(t *testing.T) {
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(raw)) {
			if request, ok := strings.CutPrefix(line, "> "); ok {
				path, _, _ := strings.Cut(strings.TrimSpace(request), "?")
				asked = append(asked, path)
			}
		}
	}
	raw, err := os.ReadFile(filepath.Join(root, "api", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]map[string]any `json:"paths"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		t.Fatal(err)
	}
	for path, methods := range document.Paths {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(path), `\{path\}`, `.+`)
		pattern = regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(pattern, `[^/]+`)
		for method := range methods {
			form := regexp.MustCompile("^" + strings.ToUpper(method) + " " + pattern + "$")
			if !slices.ContainsFunc(asked, form.MatchString) {
				t.Errorf("no scenario asks %s %s", strings.ToUpper(method), path)
			}
		}
	}
}

// lightHas is what the light tier of the scenarios says that it has.
var lightHas = space.Offer{
	Programs: strings.Fields("bash cat curl echo ls node npm pip python3 sh sleep sort true"), Modules: strings.Fields("json os re sys"),
	Packages: []string{}, Node: []string{"fs"},
	Lacks: []string{space.Binaries, space.Processes},
}
