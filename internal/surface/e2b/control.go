package e2b

import (
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/event"
)

// The notes that the surface keeps in the metadata of a space. Callers of E2B do not see them.
const (
	notePrefix   = "e2b."
	noteTemplate = "e2b.template"
	noteSnapshot = "e2b.snapshot_of" // the space is a snapshot: its files are kept, and nothing runs in it
	noteName     = "e2b.snapshot_name"
	noteResume   = "e2b.auto_resume" // a command resumes the paused sandbox
)

// The keys of metadata by which a caller chooses what E2B has no words for.
const (
	choicePolicy    = "agentbox.policy"
	choiceOverrides = "agentbox.policy_overrides" // as JSON
	choiceRuntime   = "agentbox.runtime"
)

const (
	defaultTimeout = 300            // seconds, of the packages
	minTimeout     = 10             // of a space
	maxTimeout     = 30 * 24 * 3600 // of a space
	maxForks       = 20
	interpreter    = "code-interpreter-v1"
	plainTemplate  = "base"
)

// controlPlane makes, lists and ends sandboxes and their snapshots.
type controlPlane struct {
	api       api
	clock     event.Clock
	tokens    *tokens
	sandboxes *sandboxes
	readings  *table[string, reading] // by sandbox
}

// routes adds the operations of the control plane.
func (p *controlPlane) routes(add func(pattern string, h handler)) {
	for _, v := range []string{"/", "/v2/"} {
		add("POST "+v+"sandboxes", p.create)
		add("POST "+v+"sandboxes/{id}/connect", p.connect)
		add("POST "+v+"sandboxes/{id}/resume", p.connect)
		add("GET "+v+"sandboxes", p.list)
	}
	add("GET /sandboxes/{id}", p.show)
	add("DELETE /sandboxes/{id}", p.kill)
	add("POST /sandboxes/{id}/pause", p.pause)
	add("POST /sandboxes/{id}/timeout", p.extend)
	add("POST /sandboxes/{id}/refreshes", p.extend)
	add("GET /sandboxes/{id}/metrics", p.metrics)
	add("POST /sandboxes/{id}/fork", p.fork)
	add("POST /sandboxes/{id}/snapshots", p.snapshot)
	add("GET /snapshots", p.snapshots)
	add("DELETE /templates/{id}", p.deleteSnapshot)
	for pattern, what := range map[string]string{
		"PUT /sandboxes/{id}/network": "network rules of sandboxes",
		"POST /v3/templates":          "template builds", "/v2/templates/": "template builds", "/templates/": "template builds",
		"GET /templates": "template builds", "/volumes": "volumes", "/volumes/": "volumes", "/secrets": "secrets", "/secrets/": "secrets",
	} {
		add(pattern, func(http.ResponseWriter, *http.Request, *caller) error { return notOffered(what) })
	}
}

// domainOf is below what name the hosts of a sandbox's ports are, with the port of the daemon: the packages put it behind PORT-SANDBOX.
func domainOf(host string) string {
	if _, port, err := net.SplitHostPort(host); err == nil {
		return "localhost:" + port
	}
	return "localhost"
}

// sandbox is the sandbox as create and connect answer.
func (p *controlPlane) sandbox(c *caller, d spaceDoc) map[string]any {
	token := p.tokens.of(c, d.ID)
	return map[string]any{
		"sandboxID": d.ID, "templateID": d.template(), "clientID": "agentbox", "envdVersion": envdVersion, "envdAccessToken": token,
		"trafficAccessToken": token, "domain": domainOf(c.request.Host),
	}
}

// shown is the sandbox as info and list answer.
func shown(d spaceDoc) map[string]any {
	notes := map[string]string{}
	for name, value := range d.Metadata {
		if !strings.HasPrefix(name, notePrefix) {
			notes[name] = value
		}
	}
	return map[string]any{
		"sandboxID": d.ID, "templateID": d.template(), "alias": d.template(), "clientID": "agentbox", "envdVersion": envdVersion,
		"startedAt": stamp(d.Created), "endAt": stamp(d.Expires), "state": d.state(), "cpuCount": max(1, (d.Limits.CPU+999)/1000),
		"memoryMB": d.Limits.Memory >> 20, "diskSizeMB": d.Limits.Disk >> 20, "metadata": notes,
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// creation is the request for a sandbox.
type creation struct {
	Template string            `json:"templateID"`
	Timeout  *int64            `json:"timeout"`
	Metadata map[string]string `json:"metadata"`
	Env      map[string]string `json:"envVars"`
	Pause    bool              `json:"autoPause"`
	Resume   struct {
		Enabled bool `json:"enabled"`
	} `json:"autoResume"`
	MCP     json.RawMessage   `json:"mcp"`
	Volumes []json.RawMessage `json:"volumeMounts"`
	Network *struct {
		AllowOut []json.RawMessage `json:"allowOut"`
		DenyOut  []json.RawMessage `json:"denyOut"`
		Rules    json.RawMessage   `json:"rules"`
	} `json:"network"`
}

// ttl is how long a space lives for a timeout in seconds. A space lives for 10 seconds at least.
func ttl(timeout *int64) int64 {
	if timeout == nil {
		return defaultTimeout
	}
	return min(max(*timeout, minTimeout), maxTimeout)
}

func set(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (p *controlPlane) create(w http.ResponseWriter, r *http.Request, c *caller) error {
	w.Header().Set("Should-Retry", "false") // the answer says whether it helps; a repeat of a request that made a space makes another
	var q creation
	if err := read(r, &q); err != nil {
		return err
	}
	switch {
	case set(q.MCP):
		return notOffered("MCP gateways")
	case len(q.Volumes) > 0:
		return notOffered("volumes")
	case q.Network != nil && (len(q.Network.AllowOut) > 0 || len(q.Network.DenyOut) > 0 || set(q.Network.Rules)):
		return notOffered("network rules of sandboxes")
	}
	for name := range q.Metadata {
		if strings.HasPrefix(name, notePrefix) {
			return invalid("metadata has the key %.64q; keys with %s are Agentbox's own", name, notePrefix)
		}
	}
	notes := map[string]string{noteTemplate: q.Template}
	maps.Copy(notes, q.Metadata)
	if q.Resume.Enabled {
		notes[noteResume] = "true"
	}
	var doc spaceDoc
	if strings.HasPrefix(q.Template, "spc_") {
		from, err := p.sandboxes.snapshot(r, c, q.Template)
		if err != nil {
			return err
		}
		notes[noteTemplate] = from.template()
		err = p.api.once(r.Context(), c, r.Header.Get("Idempotency-Key"), http.MethodPost, "/v1/spaces/"+from.ID+"/fork",
			map[string]any{"metadata": notes, "env": q.Env, "ttl_seconds": ttl(q.Timeout), "pause_at_end": q.Pause}, &doc)
		if err != nil {
			return err
		}
		return answer(w, http.StatusCreated, p.sandbox(c, doc))
	}
	// Commands of E2B run side by side and take input, for which a space needs processes.
	body := map[string]any{"metadata": notes, "env": q.Env, "ttl_seconds": ttl(q.Timeout), "pause_at_end": q.Pause,
		"runtime": "heavy"}
	switch q.Template {
	case "", plainTemplate:
		notes[noteTemplate] = plainTemplate
	case interpreter:
	default:
		return notFound("there is no template %.64q; there are %s, %s and the snapshots of sandboxes", q.Template, plainTemplate, interpreter)
	}
	for choice, field := range map[string]string{choicePolicy: "policy", choiceRuntime: "runtime"} {
		if value := q.Metadata[choice]; value != "" {
			body[field] = value
		}
	}
	if value := q.Metadata[choiceOverrides]; value != "" {
		var sections map[string]any
		if err := json.Unmarshal([]byte(value), &sections); err != nil || sections == nil {
			return invalid(`metadata has the key %s, whose value is no JSON object, as in {"ask":{"commands":["chown"]}}`, choiceOverrides)
		}
		body["policy_overrides"] = sections
	}
	key := r.Header.Get("Idempotency-Key")
	err := p.api.once(r.Context(), c, key, http.MethodPost, "/v1/spaces", body, &doc)
	asked := q.Template != interpreter || q.Metadata[choiceRuntime] != ""
	if e, ok := errors.AsType[*refusal](err); ok && e.Word == "tier_unavailable" && !asked {
		body["runtime"] = "nano" // this host has no other tier, and nano has contexts as well, with fewer packages
		if key != "" {
			key += "-nano"
		}
		err = p.api.once(r.Context(), c, key, http.MethodPost, "/v1/spaces", body, &doc)
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, p.sandbox(c, doc))
}

func (p *controlPlane) connect(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err == nil && doc.paused() {
		err = p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/resume", map[string]any{"ttl_seconds": ttl(q.Timeout)}, &doc)
		if e, ok := errors.AsType[*refusal](err); !ok || e.Word != "space_not_paused" { // somebody else was first
			if err != nil {
				return err
			}
			return answer(w, http.StatusCreated, p.sandbox(c, doc))
		}
		err = nil
	}
	if err == nil && q.Timeout != nil {
		err = p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/extend", map[string]any{"ttl_seconds": ttl(q.Timeout)}, &doc)
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, p.sandbox(c, doc))
}

// pause pauses a sandbox. A command resumes it if the sandbox was made with autoResume; else connecting to it does.
func (p *controlPlane) pause(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err == nil {
		err = p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/pause",
			map[string]any{"reason": "the client asked for it", "resume_on_run": doc.Metadata[noteResume] != ""}, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

func (p *controlPlane) show(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown(doc))
}

func (p *controlPlane) extend(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err == nil {
		err = p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/extend", map[string]any{"ttl_seconds": ttl(q.Timeout)}, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

func (p *controlPlane) kill(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err == nil {
		err = p.api.ask(r.Context(), c, http.MethodDelete, "/v1/spaces/"+doc.ID, nil, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

// listed is how many entries a list has where the caller names no number, and at most.
const listed = 100

// cut is one page of a list whose order stays: the token of the next page is the last entry of this one.
type cut struct {
	limit int
	after string
	found []map[string]any
	next  string
	last  string
}

func newCut(q url.Values) *cut {
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > listed {
		n = listed
	}
	return &cut{limit: n, after: q.Get("nextToken"), found: []map[string]any{}}
}

// take adds an entry, and reports whether there is room for another.
func (p *cut) take(name string, entry map[string]any) bool {
	if p.after != "" {
		if name < p.after { // newest first: the names of spaces rise with their age's end
			p.after = ""
		} else {
			return true
		}
	}
	if len(p.found) == p.limit {
		p.next = p.last
		return false
	}
	p.found, p.last = append(p.found, entry), name
	return true
}

func (p *cut) answer(w http.ResponseWriter) error {
	if p.next != "" {
		w.Header().Set("X-Next-Token", p.next)
	}
	return answer(w, http.StatusOK, p.found)
}

func (p *controlPlane) list(w http.ResponseWriter, r *http.Request, c *caller) error {
	q := r.URL.Query()
	wanted, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return invalid("metadata is not a query of names and values")
	}
	states := strings.Split(strings.Join(q["state"], ","), ",")
	page := newCut(q)
	err = p.sandboxes.pages(r, c, "", func(d spaceDoc) bool {
		if d.snapshot() || len(q["state"]) > 0 && !slices.Contains(states, d.state()) ||
			q.Get("template") != "" && d.template() != q.Get("template") {
			return true
		}
		for name := range wanted {
			value, err := url.QueryUnescape(wanted.Get(name))
			if err != nil || d.Metadata[name] != value && d.Metadata[name] != wanted.Get(name) {
				return true
			}
		}
		return page.take(d.ID, shown(d))
	})
	if err != nil {
		return err
	}
	return page.answer(w)
}

// maxRequest bounds a JSON body.
const maxRequest = 8 << 20

// read reads a JSON body; an empty one is an empty object.
func read(r *http.Request, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, maxRequest)).Decode(into)
	if err != nil && err.Error() != "EOF" {
		return invalid("the body is not what this operation takes: %v", err)
	}
	return nil
}
