package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/namespace"
	"agentbox/internal/driver/sqlite"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/service/executor"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/keeper"
	"agentbox/internal/surface/httpapi"
)

// The files of a data directory.
const (
	logFile    = "log.db"
	keyFile    = "owner.key"   // the owner's API key, 0600
	stateFile  = "daemon.json" // where the running daemon is found
	blobsDir   = "blobs"
	framesDir  = "live"
	spacesDir  = "spaces"
	stepPeriod = time.Second // how often expiry is looked at
)

// App is a daemon that is wired and not yet running.
type App struct {
	Config Config
	Gate   *gate.Gate
	Keeper *keeper.Keeper
	Runs   *executor.Executor
	Log    *sqlite.Journal
	Owner  id.Principal

	clock  event.Clock
	logger *slog.Logger
	lock   *os.File
	server *httpapi.Server
}

// Definitions are the documents that the daemon keeps, for whoever opens its log.
func Definitions() []projection.Definition {
	return append(gate.Definitions(), keeper.Definition(), keeper.ChangeDefinition(), executor.Definition())
}
