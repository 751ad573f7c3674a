package space

import (
	"io"

	"context"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Keeping is the interface that the service of runs needs from the service of spaces.
type Keeping interface {
	// Space returns the document of a space of the workspace.
	Space(ctx context.Context, ws id.Workspace, s id.Space) (Space, error)
	// Files returns the files of a space, which its document says is alive.
	Files(s Space) (Files, error)
	// Instance returns the running instance of a space, which its document says is alive. It starts the space again if the daemon or the space
	// has ended since.
	Instance(ctx context.Context, s Space) (Instance, error)
	// Occupy takes a space's files for one operation and returns the space's document of that moment. Nobody rewinds or forks the files until
	// the caller calls leave. Occupy waits until the files are free. Runs must be true if the caller will execute code in the space.
	Occupy(ctx context.Context, ws id.Workspace, s id.Space, runs bool) (doc Space, leave func(), err error)
	// Seize is Occupy without waiting. It fails if somebody else has the files.
	Seize(s id.Space) (leave func(), err error)
	// Beside is for code that runs while others use the space's files. It waits only while the files are rewound or moved. Until the caller
	// calls leave, nobody rewinds the files, and no snapshot trusts that a file is unchanged.
	Beside(ctx context.Context, ws id.Workspace, s id.Space) (doc Space, leave func(), err error)
	// Keep makes a snapshot of a space's files. The caller must occupy the space. The document s must say that it is alive.
	Keep(ctx context.Context, s Space) (Snapshot, error)
}

// Routing says in which tier of the host a command runs, for the service of runs.
type Routing interface {
	// Route says in which tier a command of the origin's would run, from its text and the files that it names. It reads only files that the
	// origin may read.
	Route(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, c Command) (Route, error)
	// Offers returns the contents of this host's tiers, from the weakest to the strongest.
	Offers() Offers
	// PromoteHeld moves a space to a heavier tier; if to is "", to the strongest. The caller must occupy the space. The space loses its memory
	// and its private /tmp; its files, its environment and its limits stay. The promotion counts once the space has started in that tier, and
	// else has no effect.
	PromoteHeld(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, to string, why Why) (Space, error)
}

// Store keeps the files of spaces, each space's in a directory of its own. The conformance suite is package filestest.
type Store interface {
	// Create makes the directory for the space of a space.create or space.fork permit. Uid owns the directory. Create fills it from the seed
	// within the limits, and puts the withheld files of the seed aside. On an error it leaves nothing behind.
	Create(ctx context.Context, p policy.Permit, uid int, limits Limits, seed Seed) (Sown, error)
	// Share prepares the files of a space for cheap forks, which cost only what they change. If the host does not allow it, or somebody is
	// writing, it does nothing. The files do not change, but they move to another directory. So code that runs among them must be restarted:
	// Share calls halt, which ends it, before the files move. Nobody else may use the space meanwhile.
	Share(ctx context.Context, s id.Space, uid int, limits Limits, halt func() error) error
	// Open returns the files of a space that was created, and their host directory for its tier.
	Open(s id.Space, uid int, limits Limits) (files Files, dir string, err error)
	// Aside returns the withheld files of a space: those that are hidden from code, which Open never shows. Permits for them have
	// MethodWithheld. Files that are brought in are withheld under w.
	Aside(s id.Space, uid int, limits Limits, w policy.Withhold) (Files, error)
	// Withholds reports whether a space withholds a file or folder from code under a path; "." is anything at all. It tells a person where
	// to look.
	Withholds(s id.Space, uid int, limits Limits, path string) bool
	// KeepAside moves the files that w withholds from the code's files to the withheld ones; who made them does not matter. Other says
	// that the previous policy withheld other files. Then the interpreter contexts of the space end, because nobody knows what their
	// cells have read. From then on, the same happens after a rewind to an earlier snapshot, and in a fork of one. No code may run in the
	// space meanwhile. KeepAside needs no permit, because it only takes files away from code. The removed files are in the snapshots.
	KeepAside(ctx context.Context, s id.Space, uid int, limits Limits, w policy.Withhold, other bool) (Swept, error)
	// History returns the snapshots of a space's files, with the arguments of Open.
	History(s id.Space, uid int, limits Limits) (History, error)
	// Sync makes the snapshots of all spaces outlive a power cut. It may be called at any time.
	Sync(ctx context.Context) error
	// Remove deletes the directory of a space, however its code has left it. Cleaning up needs no permit.
	Remove(ctx context.Context, s id.Space) error
	// List returns every space that has a directory.
	List(ctx context.Context) ([]id.Space, error)
}

// Seed is the first files of a new space; the zero Seed is empty.
type Seed struct {
	Space    id.Space      // another space
	Snapshot event.Digest  // the snapshot of it
	Folder   string        // a folder of the host, below one that the operator's configuration allows
	Archive  io.ReadSeeker // a zip, tar or tar.gz file

	Withhold *policy.Withhold // which files of it are kept from code; nil keeps none
	Strict   bool             // of a snapshot: its files are judged by Withhold, for the policy of the other space is another one
}

// Sown is the result of a seed in a space.
type Sown struct {
	Files    int // that code sees
	Withheld int // that are kept from it
}

// Swept says which files a policy has moved out of the view of code in a living space.
type Swept struct {
	Withheld []string // paths of files that are withheld now
	Contexts int      // interpreter contexts that have ended
}

// MethodWithheld is the Method of an action on a withheld file.
const MethodWithheld = "withheld"

// Occupants are the runs of spaces.
type Occupants interface {
	// CancelSpace ends every run of a space and returns when none is left, or when ctx ends.
	CancelSpace(ctx context.Context, origin event.Origin, s id.Space, reason string) error
}
