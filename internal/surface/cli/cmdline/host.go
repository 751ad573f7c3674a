package cmdline

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// Proof is the result of verifying a workspace's log. The log is read from the data directory without a daemon.
type Proof struct {
	Workspace   id.Workspace `json:"workspace_id"`
	Valid       bool         `json:"valid"`       // everything was checked, and nothing is wrong
	Checked     int          `json:"checked"`     // events held against their hashes
	Redacted    int          `json:"redacted"`    // of them, whose data were destroyed, as the log says: their headers hold
	Sealed      int          `json:"sealed"`      // of them, whose data cannot be opened here, and were not checked
	Streams     int          `json:"streams"`     // chains of hashes
	Documents   int          `json:"documents"`   // documents that were compared with the folded log, byte for byte
	Contents    int          `json:"contents"`    // contents that events name, read and held against their hashes
	Snapshots   int          `json:"snapshots"`   // snapshots of spaces that events name, read and held against their hashes
	Checkpoints []Held       `json:"checkpoints"` // that the log was held against
	Flaws       []Flaw       `json:"findings"`    // the first is where to look

	SnapshotBytes  int64    `json:"snapshot_bytes"`      // of snapshots that were read
	SealedContents int      `json:"sealed_contents"`     // contents that events name and that could not be opened
	Unchecked      []string `json:"unchecked,omitempty"` // what could not be checked, each as a sentence
	Notes          []string `json:"notes,omitempty"`     // things that may be missing here, each as a sentence
}

// Held is a checkpoint that the log was compared with, and its source.
type Held struct {
	By   string `json:"by"`
	Size uint64 `json:"size"`
	Root string `json:"root_hash,omitempty"`
	OK   bool   `json:"ok"`
}

// Flaw is one thing that is wrong with a log.
type Flaw struct {
	Kind     string   `json:"kind"`
	Seq      uint64   `json:"seq,omitempty"` // place in the workspace
	Stream   string   `json:"stream,omitempty"`
	Place    uint64   `json:"stream_seq,omitempty"`
	Event    id.Event `json:"event_id,omitempty"`
	Document string   `json:"document,omitempty"`
	Detail   string   `json:"detail"`
}

// Kept counts the content of a backup.
type Kept struct {
	MadeAt  time.Time `json:"made_at"`
	Program string    `json:"agentbox"` // the version that made it
	Keys    bool      `json:"keys"`     // whether keys are inside
	Files   int       `json:"files"`
	Bytes   int64     `json:"size_bytes"` // before compression
	Skipped int       `json:"skipped"`    // pipes, sockets and devices, which have no content
	Changed int       `json:"changed"`    // files that were written to while they were read
}

// Host is the command line's view of the app: the surroundings of the process, and the functions that work without the API.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Isset    func(string) bool                  // the variable is set, even to nothing; nil means that none is set to nothing
	Terminal bool                               // Out is a terminal
	Asks     bool                               // In is a terminal
	Width    int                                // characters of a line of Out; 0 where nobody reads it
	Screen   func() (width, height int)         // of the terminal, as it is now
	Keys     func() (restore func(), err error) // has In give each key as it is pressed, and nothing after a moment without one
	// as Keys, and Ctrl-C is a key like others; errors.ErrUnsupported where the system edits lines itself
	Edit    func() (restore func(), err error)
	Forget  func() error // drops what was typed into In, a terminal, and not read yet
	Clock   event.Clock
	Entropy io.Reader // for marks that nobody foresees
	Version string

	Example []byte  // the operations of the demo
	Agent   Example // the agent of the demo

	// Up runs a daemon until ctx ends, and says once where it serves.
	Up func(ctx context.Context, d Daemon, ready func(addr string, cold bool)) error
	// Engine executes the runs that a daemon hands out, until ctx ends, or once there is none.
	Engine func(ctx context.Context, desk client.Desk, e Engine) error
	// ModelContext serves the Model Context Protocol over a pair of streams until the client ends it, or ctx does.
	ModelContext func(ctx context.Context, c ModelContext, in io.ReadCloser, out io.WriteCloser) error
	// Doctor probes the isolation tiers of the host.
	Doctor func(ctx context.Context, d Daemon) ([]space.Report, error)
	// Problems returns what is wrong with the files that people write into a data directory.
	Problems func(d Daemon) []string
	// RunModule runs a WebAssembly module, without a daemon.
	RunModule func(ctx context.Context, m Module) (ModuleEnd, error)
	// Audit proves the log of a data directory, whether or not a daemon runs on it.
	Audit Audit
	// Backup keeps a data directory as one file, beside a daemon or without one.
	Backup func(ctx context.Context, d Daemon, file string, keys bool, progress func(files int, bytes int64)) (Kept, error)
	// Restore makes a data directory from a backup, with the keys in a folder where one is named, and proves its log. Without a file it brings
	// the keys to a data directory that was restored without them.
	Restore func(ctx context.Context, d Daemon, file, keys string, progress func(files int, bytes int64)) (Kept, []Proof, error)
	// ExportWorkspace writes a workspace as one file, beside a daemon or without one.
	ExportWorkspace func(ctx context.Context, d Daemon, ws id.Workspace, file string) (Moved, error)
	// ImportWorkspace takes a workspace from a file into a data directory without a daemon. An empty key means the one in the file.
	ImportWorkspace func(ctx context.Context, d Daemon, file, key string) (Moved, error)
}

// Example is an agent with a task, and with what a model answered to it.
type Example struct {
	Blueprint, Task string
	Cassette        []byte
}

// Place is where a local daemon keeps what it has.
type Place struct {
	DataDir string
	Store   string // address of the database that the log lies in; "" for a file in the data directory
	Shared  string // folder that the daemons of a database share; "" for the data directory of a daemon alone
}

// Engine is the configuration of an engine outside of the daemon.
type Engine struct {
	Daemon  string // address where it waits
	Hands   int    // runs that it works on at the same time
	Once    bool   // it ends when there is nothing to claim
	Verbose bool
	JSONLog bool // its log is JSON
}

// Daemon is the configuration of a daemon, from the flags of the command line. Empty fields mean the defaults.
type Daemon struct {
	Place
	Listen    string   // host:port; port 0 takes a free one
	Advertise string   // address where the other daemons of a database reach this one
	RootFS    string   // read-only root of the spaces
	Sources   []string // folders of the host from which spaces may be filled
	Runtimes  string   // file with the rules of where commands run
	Shadow    bool
	Floating  bool   // blueprints run also when a pin does not fit
	Engine    string // embedded or external
	Verbose   bool
	Traces    string // address of the collector of traces
	JSONLog   bool   // the daemon's own log is written as JSON

	EffectsPerHour int           // of one principal; 0 means without limit
	ApprovalTime   time.Duration // after which a question that nobody answered expires
	ClaimTime      time.Duration // after which the run of an engine that is silent is another's

	ContentQuota     int64         // bytes that the log of a workspace may name; negative means without limit, 0 the default
	KeepSnapshots    int           // of each space; 0 means as many as fit
	KeepSnapshotsFor time.Duration // 0 means however long

	SigningKey string   // file of the key that signs checkpoints
	Retention  []string // how long the data of which events are kept, as in run.*=30d
	Rates      []string // of requests, as in general=5000
	Witnesses  []string // to which checkpoints are brought
}

// Moved counts the content of a file of a workspace.
type Moved struct {
	Workspace id.Workspace `json:"workspace_id"`
	Events    uint64       `json:"events"`
	Contents  int          `json:"contents"`
	Missing   int          `json:"contents_missing"`
	Root      string       `json:"root_hash"`
	Size      uint64       `json:"checkpoint_size"` // 0 where none was signed
	PublicKey string       `json:"public_key"`
	Ended     int          `json:"spaces_ended"` // living spaces, whose files stayed where they were
}

// Audit proves a log from its files. The app provides it.
type Audit struct {
	// Verify verifies every workspace.
	Verify func(ctx context.Context, q AuditQuery) ([]Proof, error)
	// Key returns the public key of the checkpoints.
	Key func(ctx context.Context, q AuditQuery) (PublicKey, error)
	// Checkpoint returns the last checkpoint of a workspace.
	Checkpoint func(ctx context.Context, q AuditQuery) (Checkpoint, error)
	// Prove returns the proof of an event, or, with Since, of consistency, as a JSON document; text is the C2SP tlog-proof of an event.
	Prove func(ctx context.Context, q AuditQuery) (document json.RawMessage, text string, err error)
	// Check verifies a document of proof with nothing but the public key.
	Check func(ctx context.Context, q AuditQuery, document io.Reader) (Checked, error)
	// Export writes events with what proves them, and returns how many.
	Export func(ctx context.Context, q AuditQuery, to io.Writer) (int, error)
	// Visit brings the last checkpoints to a witness, and returns what each workspace's visit came to.
	Visit func(ctx context.Context, q AuditQuery, witness string) ([]Visit, error)
	// Witness runs a witness until ctx ends.
	Witness func(ctx context.Context, w Witness, ready func(address, publicKey string)) error
	// Abandon gives up the checkpoints, and returns how many.
	Abandon func(ctx context.Context, q AuditQuery, reason string) (int, error)
}

// AuditQuery names the events to prove.
type AuditQuery struct {
	Place
	PublicKey string // "" for the one in the data directory
	Workspace id.Workspace
	Event     id.Event // or Seq
	Seq       uint64
	Since     *uint64 // an earlier size
	Run       id.Run
	First     uint64
	Last      uint64
	Against   []string

	SnapshotBytes int64                        // the most bytes of a workspace's snapshots that are read
	Progress      func(files int, bytes int64) // gets the number of snapshots checked so far, and the bytes read
}

// PublicKey is the key of the checkpoints in the forms that tools read.
type PublicKey struct {
	Name string `json:"name"`       // of the installation
	Key  string `json:"public_key"` // C2SP signed-note
	PEM  string `json:"pem"`        // for openssl and most libraries
}

// Checkpoint is a signed checkpoint and its decoded fields.
type Checkpoint struct {
	Origin    string `json:"origin"`
	Size      uint64 `json:"size"`
	Root      string `json:"root_hash"`
	Note      string `json:"checkpoint"`
	PublicKey string `json:"public_key"`
}

// Checked is the result of a checked document of proof.
type Checked struct {
	Kind     string       `json:"kind"` // event, consistency, export
	Origin   string       `json:"origin"`
	Size     uint64       `json:"size"` // of the checkpoint
	Events   int          `json:"events"`
	Complete bool         `json:"complete"`
	Old      uint64       `json:"old_size,omitempty"`
	OldRoot  string       `json:"old_root_hash,omitempty"`
	Seq      uint64       `json:"seq,omitempty"`
	Event    id.Event     `json:"event_id,omitempty"`
	Type     string       `json:"event_type,omitempty"`
	Occurred string       `json:"occurred_at,omitempty"`
	HasData  bool         `json:"has_data"`
	Hash     event.Digest `json:"event_hash,omitzero"`
}

// Visit is the result of sending a checkpoint to a witness.
type Visit struct {
	Workspace id.Workspace `json:"workspace_id"`
	Old       uint64       `json:"old_size"`
	New       uint64       `json:"size"`
	Note      string       `json:"checkpoint"` // with the witness's signature, if it signs
}

// Witness is the configuration of a witness.
type Witness struct {
	Dir    string
	Listen string
	Keys   []string // public keys of the installations that it knows
}

// Module is a WebAssembly module for this machine, with the bounds of its use.
type Module struct {
	File     string
	Args     []string
	Env      []string // as in NAME=value
	Folders  []ModuleFolder
	In       io.Reader
	Out, Err io.Writer
	Gas      int64
	Time     time.Duration
	Memory   int64
	Seed     string
	Start    time.Time // zero for now
	Cache    string    // "" for none
}

// ModuleFolder is a folder of the host, and the names under which a module finds it open.
type ModuleFolder struct {
	Host   string
	Guests []string
}

// ModuleEnd is how a module ended by itself.
type ModuleEnd struct {
	ExitCode   int    `json:"exit_code"`
	Gas        int64  `json:"gas"`
	MemoryPeak int64  `json:"memory_peak"`
	SleptMS    int64  `json:"slept_ms"`
	Changes    int    `json:"changes"` // steps by which its folders were changed
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
}

// ModelContext is the configuration of a server of the Model Context Protocol.
type ModelContext struct {
	API     *client.Client
	Agent   string        // the name of the agent for whom runs are started; "" for the client's own name
	Space   string        // id or name of the session's space; "" for a new one
	Runtime string        // of the session's own space
	Policy  string        // of the session's own space
	TTL     time.Duration // of the session's own space
	Elicit  bool          // a client that can ask its user may answer approvals
}
