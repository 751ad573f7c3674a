// Package content is the content that the log keeps apart from its events, and the quota of a workspace.
package content

import (
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// DefaultQuota is how many bytes of content the log of one workspace may name, where the operator says nothing else.
const DefaultQuota = 64 << 30

// Projection is the name of the documents of what workspaces use.
const Projection = "contents"

// Usage is the document of the content that the log of a workspace names: operations of runs, and results that are too long for their
// event. Content that is named twice counts twice, so that the quota of a workspace does not depend on the content of others.
type Usage struct {
	Workspace id.Workspace `json:"workspace_id"`
	Contents  int64        `json:"contents"`
	Bytes     int64        `json:"size_bytes"`
}

// ErrQuota is the refusal of content beyond a workspace's quota.
var ErrQuota = fault.New(fault.Exhausted, "content_quota", "the workspace may keep no more content")

// aside is how many that look at the same room at the same moment are thought of.
const aside = 256

// Ample reports whether there is room for many more contents of this size. Then callers that come at the same moment need not wait for each
// other. Each takes at most 1/aside of the room that is left, so up to aside of them cannot fill it together.
func (u Usage) Ample(size, quota int64) bool { return quota <= 0 || size <= (quota-u.Bytes)/aside }

// Room refuses size bytes more where the quota, 0 for none, has no room for them.
func (u Usage) Room(size, quota int64) error {
	if quota <= 0 || size <= quota-u.Bytes {
		return nil
	}
	return fault.New(ErrQuota.Kind, ErrQuota.Code,
		"the log of the workspace names %d bytes of content; with %d more it would be over its quota of %d", u.Bytes, size, quota).
		With("ask the operator for more: agentbox up --content-quota; agentbox gc shows what is kept")
}
