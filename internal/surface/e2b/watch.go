package e2b

import "net/http"

// watchers refuses the calls that watch files, which Agentbox does not offer.
type watchers struct{}

func (watchers) routes(add func(pattern string, h handler)) {
	for _, name := range []string{"WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher"} {
		add("POST /filesystem.Filesystem/"+name, func(http.ResponseWriter, *http.Request, *caller) error {
			return notOffered("watchers of files")
		})
	}
}
