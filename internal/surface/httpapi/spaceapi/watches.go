package spaceapi

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/label"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Watches are the operations that watch the files of spaces.
type Watches struct {
	access.Part
	spaces *spaces.Service
}

// NewWatches returns the operations that watch the files of spaces.
func NewWatches(p access.Part, spaces *spaces.Service) *Watches { return &Watches{p, spaces} }

// watchBegun is the data of a watching message.
type watchBegun struct {
	Cursor    uint64 `json:"cursor" doc:"What comes after it is told: what id says as well"`
	Path      string `json:"path" doc:"The watched folder, relative to the space's files"`
	Recursive bool   `json:"recursive" doc:"Whether what its folders hold is watched as well"`
	Polls     int64  `json:"poll_interval_ms" doc:"The time between two looks at the files, in milliseconds; 0 where changes are noted at once"`
}

// watchEvent is the data of what became of an entry.
type watchEvent struct {
	Cursor     uint64 `json:"cursor" doc:"What id says as well"`
	Path       string `json:"path" doc:"Relative to the space's files, with slashes"`
	From       string `json:"from,omitempty" doc:"The earlier path of what was renamed"`
	Type       string `json:"type" enum:"file,directory,symlink,other" doc:"What the entry is, or was"`
	Size       int64  `json:"size_bytes" doc:"Of a file; 0 of anything else and of what was removed"`
	Attributes bool   `json:"attributes_only,omitempty" doc:"Of a change: only the permissions are others"`
}

// watchOver is the data of overflow and ended.
type watchOver struct {
	Cursor uint64 `json:"cursor" doc:"What id says as well"`
	Reason string `json:"reason" doc:"A stable code: events_lost of overflow; watched_folder_removed, space_files_missing, watch_too_large, watch_closed or watch_failed of ended"`
}

func watchFrames() []wire.Frame {
	return []wire.Frame{
		{Event: "watching", Doc: "The watch has begun, or goes on. Always the first", Data: watchBegun{}},
		{Event: space.WatchCreated, Doc: "An entry is there that was not", Data: watchEvent{}},
		{Event: space.WatchChanged, Doc: "The content, the time or the permissions of an entry are others, or another file took its place",
			Data: watchEvent{}},
		{Event: space.WatchRemoved, Doc: "An entry is there no more; what lay in a folder is told before the folder", Data: watchEvent{}},
		{Event: space.WatchRenamed, Doc: "An entry has another path, and with a folder all that it holds; what lay at that path is replaced",
			Data: watchEvent{}},
		{Event: spaces.WatchOverflow, Doc: "What happened meanwhile is not known: list the folder anew. The stream goes on", Data: watchOver{}},
		{Event: spaces.WatchEnded, Doc: "The watch is over. Always the last", Data: watchOver{}},
	}
}

// Register adds the operations to the server.
func (s *Watches) Register() {
	wire.Stream[struct {
		SpacePath
		Path      string `query:"path" doc:"The folder; the top by default"`
		Recursive bool   `query:"recursive" doc:"Also what its folders hold, at any depth"`
		After     uint64 `query:"after" doc:"A cursor: what happened after it is told first. Without it and without Last-Event-ID, only what happens from now on"`
		Last      uint64 `header:"Last-Event-ID" doc:"The cursor of the last message that was received; wins over after"`
	}](s.Server, wire.Operation{
		ID: "watch-files", Home: wire.AtSpace, Needs: wire.Does(policy.FileList, "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/watch", Tag: "files", Summary: "Watch files", Rate: wire.RateFiles, Media: "text/event-stream",
		Frames: watchFrames(),
		Detail: "Server-sent events about the files and folders below a folder. They tell the changes of everybody, in every tier. The id is " +
			"the cursor. " +
			"They tell what became of the files, not each step: several writes may be one change, and a file that comes and goes at once may " +
			"not be told. Writing through a memory mapping is told when the file is closed. " +
			"A client that sends the last id back as Last-Event-ID hears what happened meanwhile, or overflow if that is not known: after " +
			"a minute without a reader, after 4096 events, and after a restart of the daemon. " +
			"Only files that the caller may read are told, and no names that the space's policy withholds from code. " +
			"A folder with more than 50,000 entries, or with folders nested deeper than 256, is not watched recursively. " +
			"At most 16 folders of a space and 64 of a workspace are watched at a time, each by 32 readers.",
	}, s.watch)
}

func (s *Watches) watch(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	recursive, err := wire.Boolean(r, "recursive", false)
	if err != nil {
		return err
	}
	after, err := wire.After(r, "after")
	if err != nil {
		return err
	}
	folder := cmp.Or(r.URL.Query().Get("path"), ".")
	of := id.Space(r.PathValue("space_id"))
	reader, err := s.spaces.Watches.Open(r.Context(), c.Origin(), c.Caller.Workspace, of, folder, recursive, after)
	if err != nil {
		return err
	}
	defer reader.Close()
	if folder, err = space.CleanPath(folder); err != nil {
		return err
	}
	begun := watchBegun{reader.Cursor(), folder, recursive, reader.Polls().Milliseconds()}
	if after != nil {
		begun.Cursor = *after
	}
	return s.Feed(w, r, c, func(ctx context.Context) iter.Seq2[wire.Message, error] {
		return func(yield func(wire.Message, error) bool) {
			if !yield(message("watching", begun.Cursor, begun, false)) {
				return
			}
			for {
				told, err := reader.Next(ctx)
				if err != nil {
					yield(wire.Message{}, err)
					return
				}
				// A label may come meanwhile: then the stream ends, and a new request gets the reason.
				hidden, err := s.Hidden(ctx, c, label.Resource{Type: label.OfSpace, ID: string(of)})
				if hidden && err == nil {
					return
				}
				if err != nil {
					yield(wire.Message{}, err)
					return
				}
				if !yield(toldMessage(told)) || told.Kind == spaces.WatchEnded {
					return
				}
			}
		}
	})
}

// toldMessage is the message of a change to a reader.
func toldMessage(t spaces.Told) (wire.Message, error) {
	if t.Reason != "" {
		return message(t.Kind, t.Cursor, watchOver{t.Cursor, t.Reason}, t.Kind == spaces.WatchEnded)
	}
	return message(t.Kind, t.Cursor, watchEvent{t.Cursor, t.Path, t.From, t.Type, t.Size, t.Attributes}, false)
}

func message(name string, cursor uint64, data any, last bool) (wire.Message, error) {
	raw, err := json.Marshal(data)
	return wire.Message{ID: cursor, Name: name, Data: raw, Last: last}, err
}
