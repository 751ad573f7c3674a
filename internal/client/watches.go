package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/url"
	"strconv"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
)

// FileEvent is one thing that became of a file of a watched folder, or of the watch.
type FileEvent struct {
	Event      string `json:"event"` // created, changed, removed, renamed, overflow or ended
	Cursor     uint64 `json:"cursor"`
	Path       string `json:"path,omitempty"`
	From       string `json:"from,omitempty"` // of what was renamed
	Type       string `json:"type,omitempty"` // file, directory, symlink or other
	Size       int64  `json:"size_bytes,omitempty"`
	Attributes bool   `json:"attributes_only,omitempty"` // only the permissions are others
	Reason     string `json:"reason,omitempty"`          // of overflow and ended
}

// WatchFiles yields what becomes of the files of a folder of a space until the watch or ctx ends, or the daemon does not come back. A
// connection that breaks resumes behind the last event. The missed events come next, or overflow if they are not known. The
// function begun, if it is not nil, is called when the watch has begun.
func (c *Client) WatchFiles(ctx context.Context, s id.Space, path string, recursive bool, begun func()) iter.Seq2[FileEvent, error] {
	return func(yield func(FileEvent, error) bool) {
		q := url.Values{"path": {path}, "recursive": {strconv.FormatBool(recursive)}}
		after := ""
		for m, err := range c.follow(ctx, spacePath(s)+"/watch", q, func() (string, string) { return "after", after }) {
			e := FileEvent{Event: m.name}
			if err == nil {
				if err = json.Unmarshal([]byte(m.data), &e); err != nil {
					err = fault.Wrap(err, fault.Internal, "stream_broken", "an event of the stream cannot be read")
				}
			}
			if err != nil {
				yield(FileEvent{}, err)
				return
			}
			after = m.id
			if m.name == "watching" {
				if begun != nil {
					begun()
					begun = nil
				}
				continue
			}
			if !yield(e, nil) || m.name == "ended" {
				return
			}
		}
	}
}
