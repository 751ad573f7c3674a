package e2b

import (
	"errors"
	"net/http"
	"net/url"
	"time"
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
	Pause *struct {
		ResumeOnRun bool `json:"resume_on_run"`
	} `json:"pause"`
	Created time.Time `json:"created_at"`
	Expires time.Time `json:"expires_at"`
}

func (d spaceDoc) template() string {
	if t := d.Metadata[noteTemplate]; t != "" {
		return t
	}
	return plainTemplate
}

func (d spaceDoc) paused() bool { return d.Pause != nil }

func (d spaceDoc) state() string {
	if d.paused() {
		return "paused"
	}
	return "running"
}

func (d spaceDoc) snapshot() bool { return d.Metadata[noteSnapshot] != "" }

// sandboxes finds the sandboxes and snapshots among the spaces of the caller.
type sandboxes struct{ api api }

func (s *sandboxes) routes(add func(pattern string, h handler)) { add("GET /health", s.health) }

// find returns a sandbox that has not ended and is not a snapshot.
func (s *sandboxes) find(r *http.Request, c *caller, sandbox string) (spaceDoc, error) {
	var doc spaceDoc
	err := s.api.ask(r.Context(), c, http.MethodGet, "/v1/spaces/"+url.PathEscape(sandbox), nil, &doc)
	if e, ok := errors.AsType[*refusal](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest) ||
		err == nil && (doc.Status == "destroyed" || doc.snapshot()) {
		return doc, notFound("there is no sandbox %.64q, or it has ended", sandbox)
	}
	return doc, err
}

// snapshot returns a snapshot by its id.
func (s *sandboxes) snapshot(r *http.Request, c *caller, name string) (spaceDoc, error) {
	var doc spaceDoc
	err := s.api.ask(r.Context(), c, http.MethodGet, "/v1/spaces/"+url.PathEscape(name), nil, &doc)
	if err == nil && (doc.Status == "destroyed" || !doc.snapshot()) {
		err = notFound("there is no snapshot %.64q", name)
	}
	return doc, err
}

// pages reads the spaces of the workspace from a cursor on, until take says that it has enough. It returns where the list goes on.
func (s *sandboxes) pages(r *http.Request, c *caller, cursor string, take func(spaceDoc) (more bool)) error {
	for {
		var page struct {
			Spaces []spaceDoc `json:"spaces"`
			Next   string     `json:"next_cursor"`
		}
		q := url.Values{"limit": {"100"}}
		if cursor != "" {
			q.Set("cursor", cursor)
		}
		if err := s.api.ask(r.Context(), c, http.MethodGet, "/v1/spaces?"+q.Encode(), nil, &page); err != nil {
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

func (s *sandboxes) health(w http.ResponseWriter, r *http.Request, c *caller) error {
	if err := s.awake(r, c); err != nil {
		return &refusal{Status: http.StatusBadGateway, Message: "The sandbox was not found: it has ended, or it is paused"}
	}
	return nothing(w)
}

// awake refuses a sandbox that has ended, or that is paused and goes on only when somebody connects to it.
func (s *sandboxes) awake(r *http.Request, c *caller) error {
	doc, err := s.find(r, c, c.sandbox)
	if err == nil && doc.paused() && !doc.Pause.ResumeOnRun {
		err = &refusal{Status: http.StatusBadGateway, Code: "unavailable",
			Message: "The sandbox was not found: it is paused; connect to it first"}
	}
	return err
}
