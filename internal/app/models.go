package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/endpoint"
	"agentbox/internal/driver/endpoint/anthropic"
	"agentbox/internal/driver/endpoint/keys"
	"agentbox/internal/driver/endpoint/openai"
	"agentbox/internal/driver/endpoint/scripted"
	"agentbox/internal/kernel/livestream"
	"agentbox/internal/service/models"
)

// Files of models in the data directory.
const (
	modelsFile   = "models.yaml" // models, routes and budgets of the default workspace; people write it
	pricesFile   = "prices.yaml" // what models cost; people write it
	modelKeysDir = "model-keys"  // the keys of endpoints, sealed
	grantsDir    = "mcp-logins"  // the tokens of logins at MCP servers, sealed
	cassettesDir = "cassettes"   // cassettes that scripted models play, and recordings of other models
)

// models makes the service of models and the drivers that it uses.
func (a *App) models(ids *id.Source, live livestream.Store, gate policy.Gate) error {
	kept, err := keys.Open(a.path(modelKeysDir), a.keys, rand.Reader, os.LookupEnv)
	if err != nil {
		return err
	}
	client := endpoint.New()
	a.closers = append(a.closers, func() error {
		client.Close()
		return nil
	})
	cassettes := a.path(cassettesDir)
	a.Models = models.New(models.Parts{
		Log: a.counted, Docs: a.Log, Gate: gate, Clock: a.clock, IDs: ids, Entropy: rand.Reader, Logger: a.logger, Keys: kept, Live: live,
		Endpoints: scripted.Recorders(cassettes, map[string]model.Endpoint{
			model.OpenAI: openai.New(client), model.Anthropic: anthropic.New(client), model.Scripted: scripted.New(cassettes),
		}),
		Prices: a.priced.now, Together: a.together.member != nil,
	})
	return nil
}

// prices are what the file of prices said when it could be used the last time. Without a file nothing has a price.
type prices struct {
	mu   sync.Mutex // guards last
	last model.Prices
}

func (p *prices) now() model.Prices {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// loadPrices reads the file of prices. One that cannot be used changes nothing.
func (a *App) loadPrices(context.Context) error {
	raw, err := written(a.path(pricesFile))
	if err != nil {
		return err
	}
	found, err := models.ReadPrices(raw)
	if err != nil {
		return err
	}
	a.priced.mu.Lock()
	defer a.priced.mu.Unlock()
	a.priced.last = found
	return nil
}

// written reads a file that people write into the data directory; nothing where there is none.
func written(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && !info.Mode().IsRegular() {
		return nil, fault.New(fault.Invalid, "file_invalid", "%s is no ordinary file", filepath.Base(path))
	}
	if err == nil && info.Size() > models.MaxFileBytes {
		return nil, fault.New(fault.Invalid, "file_too_large", "%s has %d bytes; the limit is %d", filepath.Base(path), info.Size(),
			models.MaxFileBytes)
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, "file_unreadable", "%s cannot be read", filepath.Base(path))
	}
	return os.ReadFile(path)
}
