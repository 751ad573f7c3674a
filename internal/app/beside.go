package app

import (
	"crypto/rand"
	"log/slog"
	"net/http"

	"agentbox/internal/domain/id"
	"agentbox/internal/surface/e2b"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/surface/mcpserver"
)

// sandboxFile is the key that seals the tokens of sandboxes of E2B, 0600. Where it is lost, the packages connect to their sandboxes again.
const sandboxFile = "e2b.key"

const sandboxKeyBytes = 32

// beside makes the surfaces of other protocols: for the packages of E2B, and the Model Context Protocol. They answer by the server, which is
// made after them.
func (a *App) beside(ids *id.Source) (wire.Beside, error) {
	key, err := readSmall(a.path(sandboxFile))
	if err != nil || len(key) != sandboxKeyBytes {
		key = make([]byte, sandboxKeyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
		if err := a.dir.put(sandboxFile, key); err != nil {
			return nil, err
		}
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.server.ServeHTTP(w, r) })
	sandboxes := e2b.New(e2b.Parts{API: api, Key: key, Clock: a.clock, IDs: ids})
	agents := mcpserver.NewWeb(mcpserver.Config{
		Elicit: true, Version: Version, Logger: slog.New(slog.DiscardHandler), Clock: a.clock, Entropy: rand.Reader,
	}, api)
	return func(w http.ResponseWriter, r *http.Request) bool { return sandboxes.Serve(w, r) || agents.Serve(w, r) }, nil
}
