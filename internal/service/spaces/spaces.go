// Package spaces keeps spaces: makes them, starts them again when they are needed, and destroys them when their time is over.
package spaces

import (
	"context"
	"io"
	"log/slog"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
	"agentbox/internal/kernel/vault"
)

// Limits of a request for a space.
const (
	DefaultTTL     = 12 * time.Hour
	MinTTL         = 10 * time.Second
	MaxTTL         = 30 * 24 * time.Hour // from the moment it is set, not from creation
	MaxName        = space.MaxName       // characters
	MaxDescription = 1_000               // characters
	MaxEnv         = 100                 // variables
	MaxEnvBytes    = 32 << 10            // names and values together
	MaxMetadata    = 50                  // entries
	MaxMetaBytes   = 16 << 10            // names and values together
)

// Parts are the dependencies of the service.
type Parts struct {
	Log     journal.Journal
	Docs    projection.Reader
	Gate    policy.Gate
	Library policy.Library
	Store   space.Store
	Tiers   []space.Tier // from the weakest to the strongest
	Place   space.Place  // finds what a command needs that the tier nano has not; nil finds nothing
	Clock   event.Clock
	IDs     *id.Source
	Logger  *slog.Logger

	MaxSpaces int          // living spaces of one workspace
	MaxLimits space.Limits // the most that a space may ask for
	FirstUID  int          // of the range of host uids for spaces; 0 where the daemon is not root
	Node      id.Node      // of this daemon, which its spaces bear
	Keys      vault.Keys   // under which secret values of environments are sealed; nil refuses such values
	Entropy   io.Reader    // for the same
	Together  Together     // the zero value where no other daemon works on the log
	System    id.Principal // destroys expired spaces
}

// Together holds the service's needs if several daemons work on one log, each with the files of its own spaces.
type Together struct {
	Leads     func() bool                                                        // this daemon is their leader; nil where there are no others
	Exclusive func(ctx context.Context, name string) (release func(), err error) // waits until nobody in any daemon holds the name
}

// Service is the service of spaces, by subject. Make it with New; every method may be called from any goroutine.
type Service struct {
	Catalog   *Catalog
	Ownership *Ownership
	Tiers     Tiers
	Living    *Living
	Routing   *Routing
	Creation  *Creation
	Settings  *Settings
	Ending    *Ending
	Pauses    *Pauses
	Files     *Files
	Watches   *Watches
	Contexts  *Contexts
	Snapshots *Snapshots
	Variables *Variables

	parts     Parts
	uids      *uids
	questions *questions
}

// New returns the service of the given parts.
func New(p Parts) *Service {
	acts := policy.Client{Gate: p.Gate, Append: p.Log.Append}
	catalog := &Catalog{log: p.Log, docs: p.Docs}
	k := &Service{
		Catalog: catalog, Tiers: p.Tiers, parts: p, uids: &uids{first: p.FirstUID, taken: map[int]id.Space{}},
		questions: &questions{catalog: catalog, docs: p.Docs, gate: p.Gate, system: p.System},
		Ownership: &Ownership{catalog: catalog, store: p.Store, node: p.Node, together: p.Together},
		Living:    &Living{Catalog: catalog, acts: acts, store: p.Store, tiers: p.Tiers, logger: p.Logger, all: map[id.Space]*running{}},
	}
	named := &names{catalog: catalog, log: p.Log, docs: p.Docs}
	held := &withheld{catalog: catalog, living: k.Living, library: p.Library, store: p.Store}
	k.Routing = &Routing{
		Tiers: p.Tiers, catalog: catalog, living: k.Living, acts: acts, gate: p.Gate, library: p.Library, store: p.Store, Place: p.Place,
		logger: p.Logger,
	}
	k.Files = &Files{
		catalog: catalog, ownership: k.Ownership, withheld: held, acts: acts, gate: p.Gate, log: p.Log, docs: p.Docs, store: p.Store,
		system: p.System,
	}
	k.Watches = newWatches(k.Files, p.Clock, p.Logger)
	k.Contexts = &Contexts{catalog: catalog, files: k.Files, gate: p.Gate, store: p.Store, tiers: p.Tiers, living: k.Living}
	k.Snapshots = &Snapshots{
		catalog: catalog, living: k.Living, withheld: held, acts: acts, gate: p.Gate, log: p.Log, docs: p.Docs, store: p.Store,
		logger: p.Logger, system: p.System,
	}
	k.Variables = newVariables(p.Keys, p.Entropy)
	k.Settings = &Settings{
		catalog: catalog, variables: k.Variables,
		names: named, living: k.Living, withheld: held, tiers: p.Tiers, acts: acts, gate: p.Gate, library: p.Library,
		clock: p.Clock,
	}
	k.Pauses = &Pauses{catalog: catalog, living: k.Living, acts: acts, clock: p.Clock}
	k.Ending = &Ending{
		pauses:  k.Pauses,
		catalog: catalog, ownership: k.Ownership, living: k.Living, questions: k.questions, uids: k.uids, acts: acts, log: p.Log,
		store: p.Store, logger: p.Logger, system: p.System, looked: map[id.Workspace]look{},
	}
	k.Creation = &Creation{
		Parts: p, acts: acts, tiers: p.Tiers, catalog: catalog, variables: k.Variables,
		ownership: k.Ownership, names: named, uids: k.uids, living: k.Living,
		withheld: held, snapshots: k.Snapshots, ending: k.Ending,
	}
	return k
}

// SetOccupants tells the service who ends the runs of a space before it is destroyed. It is called once, before anything else.
func (k *Service) SetOccupants(o space.Occupants) { k.Ending.occupants = o }

// SetDoors tells the service who has ports of spaces open, to close them when a space ends. It is called once, before anything else.
func (k *Service) SetDoors(d space.Doors) { k.Living.doors = d }
