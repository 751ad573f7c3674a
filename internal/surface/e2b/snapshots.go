package e2b

import (
	"errors"
	"net/http"
	"time"
)

func (p *controlPlane) fork(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Count   int    `json:"count"`
		Timeout *int64 `json:"timeout"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if q.Count = max(q.Count, 1); q.Count > maxForks {
		return invalid("count is %d; at most %d forks are made at once", q.Count, maxForks)
	}
	parent, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	made := []map[string]any{}
	for range q.Count {
		var doc spaceDoc
		err := p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+parent.ID+"/fork", map[string]any{"metadata": parent.Metadata,
			"ttl_seconds": ttl(q.Timeout)}, &doc)
		if e, ok := errors.AsType[*refusal](err); ok {
			made = append(made, map[string]any{"error": map[string]any{"code": e.Status, "message": e.Message}})
			continue
		}
		if err != nil {
			return err
		}
		made = append(made, map[string]any{"sandbox": p.sandbox(c, doc)})
	}
	return answer(w, http.StatusCreated, made)
}

// snapshot keeps the files of a sandbox: a fork in which nothing runs, and which outlives the sandbox.
func (p *controlPlane) snapshot(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		Name string `json:"name"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	parent, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	var doc spaceDoc
	notes := map[string]string{noteSnapshot: parent.ID, noteTemplate: parent.template(), noteName: q.Name}
	err = p.api.ask(r.Context(), c, http.MethodPost, "/v1/spaces/"+parent.ID+"/fork", map[string]any{"metadata": notes,
		"ttl_seconds": maxTimeout}, &doc)
	if err != nil {
		return err
	}
	return answer(w, http.StatusCreated, shownSnapshot(doc))
}

func shownSnapshot(d spaceDoc) map[string]any {
	names := []string{}
	if name := d.Metadata[noteName]; name != "" {
		names = append(names, name)
	}
	return map[string]any{"snapshotID": d.ID, "names": names}
}

func (p *controlPlane) snapshots(w http.ResponseWriter, r *http.Request, c *caller) error {
	of, page := r.URL.Query().Get("sandboxID"), newCut(r.URL.Query())
	err := p.sandboxes.pages(r, c, "", func(d spaceDoc) bool {
		if !d.snapshot() || of != "" && d.Metadata[noteSnapshot] != of {
			return true
		}
		return page.take(d.ID, shownSnapshot(d))
	})
	if err != nil {
		return err
	}
	return page.answer(w)
}

func (p *controlPlane) deleteSnapshot(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := p.sandboxes.snapshot(r, c, r.PathValue("id"))
	if e, ok := errors.AsType[*refusal](err); ok && e.Status == http.StatusBadRequest {
		err = notFound("there is no snapshot %.64q", r.PathValue("id"))
	}
	if err == nil {
		err = p.api.ask(r.Context(), c, http.MethodDelete, "/v1/spaces/"+doc.ID, nil, nil)
	}
	if err != nil {
		return err
	}
	return nothing(w)
}

// reading is the processor time of a sandbox at a moment.
type reading struct {
	at  time.Time
	cpu int64 // microseconds
}

func (p *controlPlane) metrics(w http.ResponseWriter, r *http.Request, c *caller) error {
	doc, err := p.sandboxes.find(r, c, r.PathValue("id"))
	if err != nil {
		return err
	}
	var top struct {
		Spaces []struct {
			ID   string `json:"space_id"`
			Load *struct {
				Memory int64 `json:"memory_bytes"`
				CPU    int64 `json:"cpu_micros"`
			} `json:"load"`
		} `json:"spaces"`
	}
	if err := p.api.ask(r.Context(), c, http.MethodGet, "/v1/top", nil, &top); err != nil {
		return err
	}
	now := p.clock.Now()
	var memory int64
	var used float64
	for _, t := range top.Spaces {
		if t.ID != doc.ID || t.Load == nil {
			continue
		}
		memory = max(t.Load.Memory, 0)
		if before, ok := p.readings.get(doc.ID); ok && now.After(before.at) && t.Load.CPU > before.cpu {
			used = float64(t.Load.CPU-before.cpu) / float64(now.Sub(before.at).Microseconds()) * 100
		}
		p.readings.put(doc.ID, reading{now, t.Load.CPU})
	}
	return answer(w, http.StatusOK, []map[string]any{{
		"timestamp": stamp(now), "timestampUnix": now.Unix(), "cpuCount": max(1, (doc.Limits.CPU+999)/1000), "cpuUsedPct": used,
		"memUsed": memory, "memTotal": doc.Limits.Memory, "memCache": 0, "diskUsed": 0, "diskTotal": doc.Limits.Disk,
	}})
}
