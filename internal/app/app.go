package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/app/datadir"
	"agentbox/internal/app/localengine"
	"agentbox/internal/documents"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/frames"
	"agentbox/internal/driver/fetch"
	"agentbox/internal/driver/fts"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/nano"
	"agentbox/internal/driver/telemetry"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/service/audit"
	"agentbox/internal/service/blueprints"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/gc"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/incidents"
	"agentbox/internal/service/labels"
	"agentbox/internal/service/models"
	"agentbox/internal/service/nodes"
	"agentbox/internal/service/outside"
	"agentbox/internal/service/ports"
	"agentbox/internal/service/redaction"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/runs"
	"agentbox/internal/service/search"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/toolservers"
	"agentbox/internal/service/transfer"
	"agentbox/internal/service/webpages"
	"agentbox/internal/service/workspaces"
	"agentbox/internal/surface/httpapi"
)

// The files of a data directory.
const (
	logFile      = "log.db"
	keyFile      = "owner.key"   // the owner's API key, 0600
	stateFile    = "daemon.json" // where the running daemon is found
	noteFile     = "directory.json"
	blobsDir     = "blobs"
	framesDir    = "live"
	spacesDir    = "spaces"
	nanoDir      = "nano"       // temporary files of living nano spaces
	nanoCacheDir = "nano-cache" // compiled interpreters of nano spaces, where the user has no folder for such things
	searchFile   = "search.db"  // the search index; rebuilt from the log if missing
	keysDir      = "keys"       // under which the data of events are sealed
	stepPeriod   = time.Second  // interval between checks for expiry
)

// App is a daemon that is wired and not yet running.
type App struct {
	Config     Config
	Gate       *gate.Gate
	Spaces     *spaces.Service
	Runs       *runs.Service
	Engines    *engines.Service
	Rooms      *rooms.Service
	Workspaces *workspaces.Service
	Search     *search.Service
	GC         *gc.Service
	Log        Store
	Redaction  *redaction.Service
	Transfer   *transfer.Importer
	Outside    *outside.Service
	Ports      *ports.Service
	Identity   *identity.Service
	Incidents  *incidents.Service
	Labels     *labels.Service
	Blueprints *blueprints.Service
	Models     *models.Service
	Pages      *webpages.Service
	Servers    *toolservers.Service
	Signer     *audit.Signer
	Prover     *audit.Prover
	Nodes      *nodes.Service
	Owner      id.Principal

	together membership
	upkeep   upkeep
	priced   prices

	steady  *steady
	keys    *keyring.Keyring
	metrics *telemetry.Metrics
	counted journal.Journal   // Log, as those append to it whose appends are counted, and whose secrets are taken out
	tracer  *telemetry.Tracer // nil if traces are off
	clock   event.Clock
	logger  *slog.Logger
	claim   *datadir.Lock
	reign   func(ctx context.Context) error // returns when another daemon has taken the database; nil for a log in a file
	began   time.Time
	serving string // host:port, once it listens
	library atomic.Pointer[search.Service]
	dir     *directory
	server  *httpapi.Server
	engine  *localengine.Engine
	early   *early // what answers until the server can; nil where the daemon is opened without it

	nano    *nano.Tier // nil without the tier
	first   atomic.Pointer[trial]
	closers []func() error // of drivers
	opened  bool           // to its end: how far the log has come may be written down
	closing sync.Once
	closed  error
}

// Definitions are the documents that the daemon keeps, for programs that open its log.
func Definitions() []projection.Definition { return documents.All() }

// Open takes the data directory, opens everything in it, and puts in order what an earlier daemon left. Close it when it is not run.
func Open(ctx context.Context, c Config, clock event.Clock, logger *slog.Logger) (*App, error) {
	return open(ctx, c, clock, logger, false)
}

// Up opens a data directory and serves it until ctx ends. It listens before it has opened the log. Until it can work, /readyz and
// daemon.json name its current step. It calls ready with its address once it can work.
func Up(ctx context.Context, c Config, clock event.Clock, logger *slog.Logger, ready func(State)) error {
	a, err := open(ctx, c, clock, logger, true)
	if err != nil {
		return err
	}
	return a.Run(ctx, ready)
}

func newApp(c Config, clock event.Clock, logger *slog.Logger) *App {
	a := &App{Config: c, clock: clock, steady: newSteady(clock.Now()), logger: logger, metrics: telemetry.NewMetrics(Version)}
	a.together.app, a.upkeep.app = a, a
	a.upkeep.watchFiles()
	return a
}

func open(ctx context.Context, c Config, clock event.Clock, logger *slog.Logger, listen bool) (a *App, err error) {
	if err := c.check(); err != nil {
		return nil, fault.Wrap(err, fault.Invalid, "config_invalid", "the configuration cannot be used")
	}
	opening := newApp(c, clock, logger)
	a = opening
	if a.claim, err = a.claimDirectory(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, opening.Close())
			a = nil
		}
	}()
	if a.dir, err = lookAt(c); err != nil {
		return nil, err
	}
	ids := id.NewSource(clock.Now, rand.Reader)
	a.began = clock.Now().UTC()
	if a.together.node, err = a.together.theNode(ids); err != nil {
		return nil, err
	}
	if listen {
		if a.early, err = a.listen(ctx, ids); err != nil {
			return nil, err
		}
		a.serving = a.early.listener.Addr().String()
	}
	if err := a.does("opens the log"); err != nil {
		return nil, err
	}
	err = a.openStore(ctx, ids)
	if errors.Is(err, vault.ErrMissing) {
		err = a.dir.unsealed(ctx, c, err)
	}
	if err != nil {
		return nil, a.dir.unopened(err)
	}
	if err := a.dir.hold(ctx, a.Log, a.Log); err != nil {
		return nil, err
	}
	if err := a.together.secrets(ctx); err != nil {
		return nil, err
	}
	if err := behind(ctx, a.Log, ids); err != nil {
		return nil, err
	}
	if err := a.traces(ctx); err != nil {
		return nil, err
	}
	a.counted = redaction.Scrub(telemetry.WrapJournal(a.Log, a.Log, clock, a.metrics, a.tracer, logger), principal.System, ids)
	a.metrics.Watch(a.upkeep.look)
	tiers, err := a.tiers()
	if err != nil {
		return nil, err
	}
	if listen {
		a.tryFirst(tiers)
	}
	if err := a.upkeep.prove(ctx); err != nil {
		return nil, err
	}
	if err := holdRoots(ctx, a.Log); err != nil {
		return nil, err
	}
	secret, err := a.secret(authFile, "auth_key_invalid")
	if err != nil {
		return nil, err
	}
	a.Gate, err = gate.New(gate.Parts{
		Log: a.counted, Docs: a.Log, Evaluator: cedar.New(), Clock: clock, IDs: ids, Shadow: c.Shadow, System: principal.System,
		EffectsPerHour: c.EffectsPerHour, QuestionTime: c.ApprovalTime, Together: a.together.member != nil,
	})
	if err != nil {
		return nil, err
	}
	if err := a.does("prepares the tiers"); err != nil {
		return nil, err
	}
	if err := a.wire(ctx, ids, secret, tiers); err != nil {
		return nil, err
	}
	if err := a.owner(ctx); err != nil {
		return nil, err
	}
	for _, w := range []*fileWatch{&a.upkeep.prices, &a.upkeep.models} {
		if err := w.load(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.does("puts in order what an earlier daemon left"); err != nil {
		return nil, err
	}
	if a.together.member == nil { // else the leader does
		if err := a.together.recoverAlone(ctx); err != nil {
			return nil, err
		}
	}
	if err := a.Spaces.Recover(ctx); err != nil {
		return nil, err
	}
	if err := a.dir.step(ctx, a.Log); err != nil {
		return nil, err
	}
	a.opened = true
	return a, nil
}

// wire makes the services and the drivers that they use.
func (a *App) wire(ctx context.Context, ids *id.Source, secret []byte, tiers []space.Tier) error {
	blobs, err := a.together.openBlobs(ctx)
	if err != nil {
		return err
	}
	live, err := frames.Open(a.path(framesDir), a.keys, rand.Reader, a.clock, maxFrameBytes)
	if err != nil {
		return err
	}
	stored, err := disk.OpenSpaces(ctx, a.path(spacesDir), a.keys, rand.Reader, a.Config.Sources...)
	if err != nil {
		return err
	}
	a.closers = append(a.closers, stored.Close) // after the tiers, whose spaces see the files
	seen, err := place(a.Config)
	if err != nil {
		return err
	}
	asked := telemetry.WrapGate(a.Gate, a.clock, a.metrics, a.tracer, presetNames())
	bootstrap, err := a.secret(bootstrapFile, "bootstrap_key_invalid")
	if err != nil {
		return err
	}
	a.Identity = identity.New(identity.Parts{
		Log: a.counted, Docs: a.Log, Gate: asked, Clock: a.clock, IDs: ids, Entropy: rand.Reader, Secret: secret,
		BootstrapToken: hex.EncodeToString(bootstrap),
	})
	a.Spaces = spaces.New(spaces.Parts{
		Log: a.counted, Docs: a.Log, Gate: asked, Library: a.Gate.Bundles, Store: telemetry.WrapStore(stored, a.clock, a.tracer), Tiers: tiers,
		Place: seen, Clock: a.clock, IDs: ids, Logger: a.logger,
		MaxSpaces: a.Config.MaxSpaces, MaxLimits: a.Config.MaxLimits, FirstUID: a.together.uids(), System: principal.System,
		Keys: a.keys, Entropy: rand.Reader, Node: a.together.node, Together: a.together.shares(),
	})
	a.together.wireNodes()
	retention, err := redaction.ParseRetention(a.Config.Retention)
	if err != nil {
		return err
	}
	a.Runs = runs.New(runs.Parts{
		Log: a.counted, Docs: a.Log, Blobs: blobs, Live: telemetry.WrapOutput(live,
			a.metrics), Gate: asked, Thrown: a.Gate.KillSwitch.Last,
		Agents: a.Identity, Spaces: a.Spaces.Living, Variables: a.Spaces.Variables.Values, Routes: a.Spaces.Routing,
		Bundles: a.Gate.Bundles, Resume: a.Spaces.Pauses.ForRun,
		Room: blobs.Room, Clock: a.clock, IDs: ids, Logger: a.logger, MaxContent: a.Config.ContentQuota, MaxRetention: retention.OfRuns(),
	})
	a.GC = gc.New(gc.Parts{
		Log: a.counted, Docs: a.Log, Gate: a.Gate, Blobs: blobs, Live: live, Spaces: stored, Rule: a.Config.rule(), Clock: a.clock,
		Logger: a.logger, System: principal.System,
	})
	index, err := fts.Open(a.path(searchFile))
	if err != nil {
		return err
	}
	a.closers = append(a.closers, index.Close)
	a.Search = search.New(search.Parts{Log: a.Log, Bodies: a.Log, Docs: a.Log, Index: index})
	a.library.Store(a.Search)
	a.Redaction = redaction.New(redaction.Parts{
		Log: a.Log, Bodies: a.Log, Docs: a.Log, Gate: a.Gate, Contents: []vault.Forgetter{a.GC, a.Search}, Clock: a.clock, Logger: a.logger,
		System: principal.System, Retention: retention,
	})
	a.Transfer = transfer.NewImporter(transfer.Parts{
		Log: a.counted, Into: a.Log, Docs: a.Log, Contents: blobs, Gate: asked, System: principal.System, TakeUp: a.Runs.Recover,
	})
	a.Outside = outside.New(outside.Parts{Log: a.counted, Docs: a.Log, Gate: asked, Clock: a.clock,
		Counted: a.Config.EffectsPerHour > 0, Place: a.named})
	a.Incidents = incidents.New(incidents.Parts{Docs: a.Log, Gate: asked, Clock: a.clock, IDs: ids, Place: a.named})
	a.Labels = labels.New(labels.Parts{Log: a.counted, Docs: a.Log, Gate: asked, Clock: a.clock, Place: a.named})
	a.Blueprints = blueprints.New(blueprints.Parts{Docs: a.Log, Gate: asked, Clock: a.clock, Resolve: a.references()})
	if err := a.dispatch(ids, blobs, asked); err != nil {
		return err
	}
	a.Workspaces = workspaces.New(workspaces.Parts{Log: a.counted, Docs: a.Log, Gate: asked, IDs: ids, Owner: a.Identity.Owner,
		IssueKey: a.Identity.IssueKey})
	web := fetch.New("agentbox/"+Version, nil)
	a.Pages = webpages.New(webpages.Parts{Gate: asked, Append: a.counted.Append, Client: web, Clock: a.clock})
	a.Rooms = rooms.New(rooms.Parts{Log: a.counted, Docs: a.Log, Gate: asked, IDs: ids})
	if a.together.member != nil {
		a.Runs.Mine, a.GC.Mine, a.GC.Leads = a.Spaces.Ownership.Mine, a.Spaces.Ownership.Mine, a.together.leads.Load
	}
	if err := a.openPorts(ids, asked); err != nil {
		return err
	}
	a.Spaces.SetOccupants(a.Runs)
	if err := a.models(ids, live, asked); err != nil {
		return err
	}
	if err := toolServers(a, web, asked); err != nil {
		return err
	}
	a.engine = a.localEngine()
	a.Gate.KillSwitch.OnHalt(func(ws id.Workspace, cause error) {
		a.Ports.Halt(ws, cause)
		a.Runs.Halt(ws, cause)
		a.Models.Halt(ws, cause)
		a.Servers.Halt(ws, cause)
	})
	a.Gate.KillSwitch.OnLift(a.Runs.Lifted)
	return a.serve(ids, blobs)
}

// openPorts makes the service of ports. Addresses of previews are signed with a key that is new at each start: what listens in the spaces
// ends with the daemon too.
func (a *App) openPorts(ids *id.Source, asked policy.Gate) error {
	key := make([]byte, previewKeyBytes)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	a.Ports = ports.New(ports.Parts{
		Log: a.counted, Docs: a.Log, Gate: asked, Spaces: a.Spaces.Living, Clock: a.clock, IDs: ids, Key: key, Logger: a.logger,
		System: principal.System,
	})
	a.Spaces.SetDoors(a.Ports)
	return nil
}

const previewKeyBytes = 32

// maxFrameBytes bounds the live output of one run. The printer cuts the rest, and the last frame says so.
const maxFrameBytes = 64 << 20

// firstUID begins the range of host uids for spaces, far above the users of a host and the ranges that container engines are given.
func firstUID() int {
	if os.Geteuid() == 0 && runtime.GOOS == "linux" { // elsewhere no tier runs anything as a user of its own
		return 1_879_048_192
	}
	return 0
}

// Keys are those under which the data directory is sealed.
func (a *App) Keys() vault.Keys { return a.keys }

func (a *App) path(name string) string { return filepath.Join(a.Config.DataDir, name) }
