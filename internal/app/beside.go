package app

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/id"
	"agentbox/internal/host"
	"agentbox/internal/surface/e2b"
	"agentbox/internal/surface/httpapi/wire"
	"agentbox/internal/surface/mcpserver"
)

// sandboxFile is the key that seals the tokens of sandboxes of E2B, 0600. If it is lost, the packages must connect to their sandboxes
// again.
const sandboxFile = "e2b.key"

// tokensFile holds the sealed tokens by which signed addresses of files are found after a restart, one a line, 0600. Where it is lost,
// an address holds again once its sandbox is connected to.
const tokensFile = "e2b.tokens"

const sandboxKeyBytes = 32

// beside makes the surfaces of other protocols: for the packages of E2B, and the Model Context Protocol. They answer by the server, which
// is made after them.
func (a *App) beside(ids *id.Source) (wire.Beside, *e2b.Surface, error) {
	key, err := readSmall(a.path(sandboxFile))
	if err != nil || len(key) != sandboxKeyBytes {
		key = make([]byte, sandboxKeyBytes)
		if _, err := rand.Read(key); err != nil {
			return nil, nil, err
		}
		if err := a.dir.put(sandboxFile, key); err != nil {
			return nil, nil, err
		}
	}
	known, err := a.knownTokens()
	if err != nil {
		return nil, nil, err
	}
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.server.ServeHTTP(w, r) })
	sandboxes := e2b.New(e2b.Parts{API: api, Key: key, Clock: a.clock, IDs: ids, Known: known, Remember: a.rememberToken})
	agents := mcpserver.NewWeb(mcpserver.Config{
		Elicit: true, Version: Version, Logger: slog.New(slog.DiscardHandler), Clock: a.clock, Entropy: rand.Reader,
	}, api)
	return func(w http.ResponseWriter, r *http.Request) bool { return sandboxes.Serve(w, r) || agents.Serve(w, r) }, sandboxes, nil
}

// knownTokens reads the file of the tokens, and shortens it to those that the surface keeps.
func (a *App) knownTokens() ([]string, error) {
	raw, err := os.ReadFile(a.path(tokensFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, datadir.Unwritable(err, a.dir.path)
	}
	var lines []string
	seen := map[string]bool{}
	for _, line := range slices.Backward(strings.Fields(string(raw))) {
		if !seen[line] && len(lines) < e2b.MaxRemembered {
			seen[line], lines = true, append(lines, line)
		}
	}
	slices.Reverse(lines)
	return lines, a.dir.put(tokensFile, []byte(strings.Join(lines, "\n")+"\n"))
}

// rememberToken adds a line to the file of the tokens.
func (a *App) rememberToken(line string) error {
	f, err := os.OpenFile(a.path(tokensFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY|host.NoFollow, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}
