package e2b

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The notes that the surface keeps in the metadata of a space. Callers of E2B do not see them.
const (
	notePrefix   = "e2b."
	noteTemplate = "e2b.template"
	noteSnapshot = "e2b.snapshot_of" // the space is a snapshot: its files are kept, and nothing runs in it
	noteName     = "e2b.snapshot_name"
)

// The keys of metadata by which a caller chooses what E2B has no words for.
const (
	choicePolicy  = "agentbox.policy"
	choiceRuntime = "agentbox.runtime"
)

const (
	defaultTimeout = 300            // seconds, of the packages
	minTimeout     = 10             // of a space
	maxTimeout     = 30 * 24 * 3600 // of a space
	maxForks       = 20
	interpreter    = "code-interpreter-v1"
	plainTemplate  = "base"
)

// spaceDoc is a space, as far as the surface needs it.
type spaceDoc struct {
	ID       string            `json:"id"`
	Status   string            `json:"status"`
	Metadata map[string]string `json:"metadata"`
	Tier     string            `json:"tier"`
	Limits   struct {
		Memory int64 `json:"memory_bytes"`
		CPU    int64 `json:"cpu_millis"`
		Disk   int64 `json:"disk_bytes"`
	} `json:"limits"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
}

func (d spaceDoc) template() string {
	if t := d.Metadata[noteTemplate]; t != "" {
		return t
	}
	return plainTemplate
}

func (d spaceDoc) snapshot() bool { return d.Metadata[noteSnapshot] != "" }

// sandbox is the sandbox as create and connect answer.
func (s *Surface) sandbox(c *caller, d spaceDoc) map[string]any {
	token := s.token(c, d.ID)
	return map[string]any{
		"sandboxID": d.ID, "templateID": d.template(), "clientID": "agentbox", "envdVersion": envdVersion, "envdAccessToken": token,
		"trafficAccessToken": token, "domain": nil,
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
		"startedAt": stamp(d.Created), "endAt": stamp(d.Expires), "state": "running", "cpuCount": max(1, (d.Limits.CPU+999)/1000),
		"memoryMB": d.Limits.Memory >> 20, "diskSizeMB": d.Limits.Disk >> 20, "metadata": notes,
	}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func (s *Surface) routeControl() {
	for _, v := range []string{"/", "/v2/"} {
		s.control("POST "+v+"sandboxes", s.create)
		s.control("POST "+v+"sandboxes/{id}/connect", s.connect)
		s.control("POST "+v+"sandboxes/{id}/resume", s.connect)
		s.control("GET "+v+"sandboxes", s.list)
	}
	s.control("GET /sandboxes/{id}", s.show)
	s.control("DELETE /sandboxes/{id}", s.kill)
	s.control("POST /sandboxes/{id}/timeout", s.extend)
	s.control("POST /sandboxes/{id}/refreshes", s.extend)
	s.control("GET /sandboxes/{id}/metrics", s.metrics)
	s.control("POST /sandboxes/{id}/fork", s.fork)
	s.control("POST /sandboxes/{id}/snapshots", s.snapshot)
	s.control("GET /snapshots", s.snapshots)
	s.control("DELETE /templates/{id}", s.deleteSnapshot)
	for pattern, what := range map[string]string{
		"POST /sandboxes/{id}/pause": "paused sandboxes", "PUT /sandboxes/{id}/network": "network rules of sandboxes",
		"POST /v3/templates": "template builds", "/v2/templates/": "template builds", "/templates/": "template builds",
		"GET /templates": "template builds", "/volumes": "volumes", "/volumes/": "volumes", "/secrets": "secrets", "/secrets/": "secrets",
	} {
		s.control(pattern, func(http.ResponseWriter, *http.Request, *caller) error { return notOffered(what) })
	}
}

// creation is the request for a sandbox.
type creation struct {
	Template string            `json:"templateID"`
	Timeout  *int64            `json:"timeout"`
	Metadata map[string]string `json:"metadata"`
	Env      map[string]string `json:"envVars"`
	MCP      json.RawMessage   `json:"mcp"`
	Volumes  []json.RawMessage `json:"volumeMounts"`
	Network  *struct {
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

func (s *Surface) create(w http.ResponseWriter, r *http.Request, c *caller) error {
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
	var doc spaceDoc
	if strings.HasPrefix(q.Template, "spc_") {
		from, err := s.snapshotOf(r, c, q.Template)
		if err != nil {
			return err
		}
		notes[noteTemplate] = from.template()
		err = s.once(r.Context(), c, r.Header.Get("Idempotency-Key"), http.MethodPost, "/v1/spaces/"+from.ID+"/fork",
			map[string]any{"metadata": notes, "env": q.Env, "ttl_seconds": ttl(q.Timeout)}, &doc)
		if err != nil {
			return err
		}
		return answer(w, http.StatusCreated, s.sandbox(c, doc))
	}
	// Commands of E2B run side by side and take input, for which a space needs processes.
	body := map[string]any{"metadata": notes, "env": q.Env, "ttl_seconds": ttl(q.Timeout), "runtime": "heavy"}
	switch q.Template {
	case "", plainTemplate:
		notes[noteTemplate] = plainTemplate
	case interpreter:
		body["runtime"] = "nano" // the tier that has interpreter contexts
	default:
		return notFound("there is no template %.64q; there are %s, %s and the snapshots of sandboxes", q.Template, plainTemplate, interpreter)
	}
	for choice, field := range map[string]string{choicePolicy: "policy", choiceRuntime: "runtime"} {
		if value := q.Metadata[choice]; value != "" {
			body[field] = value
		}
	}
	if err := s.once(r.Context(), c, r.Header.Get("Idempotency-Key"), http.MethodPost, "/v1/spaces", body, &doc); err != nil {
		return err
	}
	return answer(w, http.StatusCreated, s.sandbox(c, doc))
}

// space returns a sandbox that has not ended and is no snapshot.
func (s *Surface) space(r *http.Request, c *caller, sandbox string) (spaceDoc, error) {
	var doc spaceDoc
	err := s.ask(r.Context(), c, http.MethodGet, "/v1/spaces/"+url.PathEscape(sandbox), nil, &doc)
	if e, ok := errors.AsType[*refusal](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) ||
		err == nil && (doc.Status == "destroyed" || doc.snapshot()) {
		return doc, notFound("there is no sandbox %.64q, or it has ended", sandbox)
	}
	return doc, err
}

// snapshotOf returns a snapshot by its id.
func (s *Surface) snapshotOf(r *http.Request, c *caller, name string) (spaceDoc, error) {
	var doc spaceDoc
	err := s.ask(r.Context(), c, http.MethodGet, "/v1/spaces/"+url.PathEscape(name), nil, &doc)
	if err == nil && (doc.Status == "destroyed" || !doc.snapshot()) {
		err = notFound("there is no snapshot %.64q", name)
	}
	return doc, err
}

func (s *Surface) connect(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	doc, err := s.space(r, c, r.PathValue("id"))
	if err == nil && q.Timeout != nil {
		err = s.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/extend", map[string]any{"ttl_seconds": ttl(q.Timeout)}, &doc)
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, s.sandbox(c, doc))
}

func (s *Surface) show(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := s.space(r, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, shown(doc))
}

func (s *Surface) extend(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Timeout *int64 `json:"timeout"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	doc, err := s.space(r, c, r.PathValue("id"))
	if err == nil {
		err = s.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+doc.ID+"/extend", map[string]any{"ttl_seconds": ttl(q.Timeout)}, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

func (s *Surface) kill(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := s.space(r, c, r.PathValue("id"))
	if err == nil {
		err = s.ask(r.Context(), c, http.MethodDelete, "/v1/spaces/"+doc.ID, nil, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

// pages reads the spaces of the workspace from a cursor on, until take says that it has enough. It returns where the list goes on.
func (s *Surface) pages(r *http.Request, c *caller, cursor string, take func(spaceDoc) (more bool)) error {
	for {
		var page struct {
			Spaces []spaceDoc `json:"spaces"`
			Next   string     `json:"next_cursor"`
		}
		q := url.Values{"limit": {"100"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if err := s.ask(r.Context(), c, http.MethodGet, "/v1/spaces?"+q.Encode(), nil, &page); err != nil {
			return err
		}
		for _, d := range page.Spaces {
			if !take(d) {
				return nil
			}
		}
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
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

func (s *Surface) list(w http.ResponseWriter, r *http.Request, c *caller) error {
	q := r.URL.Query()
	wanted, err := url.ParseQuery(q.Get("metadata"))
	if err != nil {
		return invalid("metadata is not a query of names and values")
	}
	states := strings.Split(strings.Join(q["state"], ","), ",")
	page := newCut(q)
	if len(q["state"]) > 0 && !slices.Contains(states, "running") {
		return page.answer(w)
	}
	err = s.pages(r, c, "", func(d spaceDoc) bool {
		if d.snapshot() || q.Get("template") != "" && d.template() != q.Get("template") {
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
		return invalid("the body is not the JSON that this operation takes: %v", err)
	}
	return nil
}
