package e2b

import (
	"encoding/json"
	"net/http"
)

func (s *Surface) routeSandbox() {
	const p, f = "POST /process.Process/", "POST /filesystem.Filesystem/"
	s.within(p+"Start", s.start)
	s.within(p+"Connect", s.follow)
	s.within(p+"List", s.processes)
	s.within(p+"SendInput", s.sendInput)
	s.within(p+"StreamInput", s.streamInput)
	s.within(p+"CloseStdin", s.give(func(json.RawMessage) (map[string]any, error) { return map[string]any{"close": true}, nil }))
	s.within(p+"SendSignal", s.signal)
	s.within(p+"Update", s.give(resize))
	s.within(f+"Stat", s.stat)
	s.within(f+"ListDir", s.listDir)
	s.within(f+"MakeDir", s.makeDir)
	s.within(f+"Move", s.move)
	s.within(f+"Remove", s.remove)
	for _, name := range []string{"WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher"} {
		s.within(f+name, func(http.ResponseWriter, *http.Request, *caller) error { return notOffered("watchers of files") })
	}
	s.within("GET /files", s.download)
	s.within("POST /files", s.upload)
	s.within("GET /health", s.health)
	s.within("POST /execute", s.execute)
	s.within("GET /contexts", s.contexts)
	s.within("POST /contexts", s.createContext)
	s.within("POST /contexts/{id}/restart", s.restartContext)
	s.within("DELETE /contexts/{id}", s.deleteContext)
}

func (s *Surface) health(w http.ResponseWriter, r *http.Request, c *caller) error {
	if _, err := s.space(r, c, c.sandbox); err != nil {
		return &refusal{Status: http.StatusBadGateway, Message: "The sandbox was not found: it has ended"}
	}
	return nothing(w)
}
