package space

import (
	"context"
	"io"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// Tier makes spaces at one level of isolation. A driver implements it; the conformance suite is package spacetest.
type Tier interface {
	// Name returns the tier's word of the glossary: namespace.
	Name() string
	// Probe starts a real space and tries the tier's promises. It reports what the host lacks and how to repair it. It caches nothing.
	Probe(ctx context.Context) Report
	// Try starts a real space and runs one program in it. It takes a hundredth of the time of Probe.
	Try(ctx context.Context) error
	// Create starts a space. The permit is for space.start of this space with these limits. A bound that cannot be enforced fails the
	// creation with fault code bound_not_enforceable unless spec.BestEffort; then Instance.Unenforced names it.
	Create(ctx context.Context, p policy.Permit, spec Spec) (Instance, error)
	// Lacks names the features that spaces of this tier do not have, in order. Code that uses one gets an error and goes on.
	Lacks() []string
	// Offer returns the contents of this tier's spaces on this host. It may read the host's files once, and caches the result.
	Offer() Offer
	// Reap ends whatever an earlier daemon left of spaces that are not in keep: processes, control groups, mounts. Stopping needs no permit.
	Reap(ctx context.Context, keep []id.Space) error
}

// The features that a tier may lack.
const (
	Processes    = "processes"     // of their own: signals to others, background processes, /proc
	Concurrency  = "concurrency"   // commands of one space at the same time, each of which sees what the other writes
	Binaries     = "binaries"      // programs of machine code
	Contexts     = "contexts"      // of interpreters, which keep their variables between calls
	Sockets      = "sockets"       // within the space
	Ownership    = "ownership"     // users and groups of files
	SpecialFiles = "special_files" // pipes, sockets and devices with a name
)

// Spec holds the inputs for the start of a space.
type Spec struct {
	ID         id.Space
	Dir        string // host directory of the space's files; exists, is owned by UID
	UID        int    // unprivileged host uid and gid of the space's own; 0 means the daemon's, where the daemon is not root
	Env        map[string]string
	Limits     Limits
	BestEffort bool // accept a host that cannot enforce every bound
	// drop the effects of a command that wanted what the tier lacks; then Exec returns *Lacking; tiers that lack nothing ignore it
	Tentative bool

	// Elsewhere reports whether a heavier tier has what this one lacks. A command of a Tentative space keeps its effects if no tier has what
	// it lacks. Nil means that heavier tiers have everything.
	Elsewhere func(Lack) bool
}

// MaxFolderDepth is how many folders a command may nest in a space. Of deeper ones no snapshot is made.
const MaxFolderDepth = 256

// Limits bound a space. All are positive.
type Limits struct {
	MemoryBytes int64 `json:"memory_bytes"` // of all its processes together
	CPUMillis   int64 `json:"cpu_millis"`   // thousandths of one core
	Pids        int64 `json:"pids"`         // processes and threads at once
	DiskBytes   int64 `json:"disk_bytes"`   // of its files; a watcher may overshoot, by how much the tier says
	FileBytes   int64 `json:"file_bytes"`   // of one file
	OutputBytes int64 `json:"output_bytes"` // of one command's stdout and stderr together; more kills it
	OpenFiles   int64 `json:"open_files"`   // per process
	TmpBytes    int64 `json:"tmp_bytes"`    // of its private /tmp
}

// The bound on the number of files and folders of a space follows from the one on their bytes.
const (
	bytesPerFile = 4096
	leastFiles   = 16384
)

// MaxFiles returns how many files, folders and links a space may hold whose files may take so many bytes: one for 4096 bytes, but 16,384
// in any case.
func MaxFiles(diskBytes int64) int64 { return max(diskBytes/bytesPerFile, leastFiles) }

// Bound is one limit by its name in JSON.
type Bound struct {
	Name  string
	Value int64
}

// Bounds returns all limits in the order of their fields.
func (l Limits) Bounds() []Bound {
	return []Bound{
		{"memory_bytes", l.MemoryBytes}, {"cpu_millis", l.CPUMillis}, {"pids", l.Pids}, {"disk_bytes", l.DiskBytes},
		{"file_bytes", l.FileBytes}, {"output_bytes", l.OutputBytes}, {"open_files", l.OpenFiles}, {"tmp_bytes", l.TmpBytes},
	}
}

// DefaultLimits are those of a space that asks for no others.
func DefaultLimits() Limits {
	return Limits{
		MemoryBytes: 512 << 20, CPUMillis: 1000, Pids: 128, DiskBytes: 1 << 30, FileBytes: 256 << 20,
		OutputBytes: 10 << 20, OpenFiles: 1024, TmpBytes: 64 << 20,
	}
}

// Instance is a living space. Every method is safe for concurrent use; commands of one space may run side by side.
type Instance interface {
	// Exec runs the command of a shell.exec permit: its Argv, Env (over the space's own), Cwd, TimeoutMS and, if its hash is set, stdin.
	// Output goes to out as it comes, in order per channel. When Exec returns, no process of the command is left. Ending ctx kills the
	// command. A command that fails is an Exit; an error means that the command could not run. In a space whose Spec is Tentative, the error
	// is a *Lacking if the command wanted what the tier lacks. Then it has left nothing behind, and the permit can be redeemed once more.
	Exec(ctx context.Context, p policy.Permit, stdin []byte, out Output) (Exit, error)
	// Start begins the command of a shell.exec permit, as Exec does, and returns while it runs. The caller calls Wait at once, which returns
	// the errors of a command that cannot run. Ending ctx kills the command. If the action says Attach, input comes by the Process. Size is
	// that of a terminal. A tier that lacks Processes returns a *Lacking; then the permit can be redeemed once more.
	Start(ctx context.Context, p policy.Permit, size TerminalSize) (Process, error)
	// Load returns the memory, processes and processor time that the space uses now. It reads a few small files of the host and no file of the
	// space, so callers may call it often.
	Load() (Load, error)
	// Usage returns the present use of the space. It measures the files one by one.
	Usage(ctx context.Context) (Usage, error)
	// Unenforced names the bounds that this host does not enforce, empty unless the space was made with BestEffort.
	Unenforced() []string
	// Done is closed when the space has ended, by Close or by itself.
	Done() <-chan struct{}
	// Close kills every process of the space and releases the host's resources, except its files. It needs no permit and never waits for one.
	Close() error
}

// CellTier is a tier besides nano whose spaces may run the cells of interpreter contexts, in the form that ReadCell reads.
type CellTier interface{ RunsCells() bool }

// RunsCells reports whether the spaces of a tier besides nano run the cells of interpreter contexts.
func RunsCells(t Tier) bool {
	c, ok := t.(CellTier)
	return ok && c.RunsCells()
}

// ContextEnder is an instance whose interpreter contexts have processes. EndContext ends the process of a context, if it has one.
type ContextEnder interface{ EndContext(name, language string) }

// EndContext ends the process of an interpreter context of an instance, if it has one.
func EndContext(i Instance, name, language string) {
	if e, ok := i.(ContextEnder); ok {
		e.EndContext(name, language)
	}
}

// Output receives a command's output; channel is "stdout" or "stderr". The slice is valid only during the call. An error kills the command.
type Output func(channel string, data []byte) error

// Exit is how a command ended.
type Exit struct {
	Code     int    // 0 to 255; 128 + signal number for a killed process, 124 for a timeout
	Signal   string // name of the signal that ended it, if any
	TimedOut bool   // its time ran out
	Canceled bool   // ctx ended
	// the bound that it hit, if one is known: memory_bytes, output_bytes, disk_bytes (bytes or number of files), file_bytes, pids
	Limit    string
	Duration time.Duration // wall time from its start until its end, without Commit and without the wait for a process that runs it
	Commit   time.Duration // wall time after its end in which its changes were written; 0 in tiers whose commands write for themselves

	Gas   int64     // the amount of computation, in units that are the same on every host; 0 in tiers that do not count
	Seed  string    // the seed of its randomness; "" in tiers where randomness is the host's
	Clock time.Time // where its clock began; zero in tiers whose clock is the host's
	Lacks []Lack    // the features that it wanted and the tier lacks

	// Displays are the displays of the command besides its output, within their bounds.
	Displays []Display

	// Engine names the versions of the executing programs, as far as they affect the result; "" in tiers that promise no repetition.
	Engine string
}

// Load is the resource use of a space's processes; -1 if the host does not report it.
type Load struct {
	MemoryBytes int64 `json:"memory_bytes"`
	Pids        int64 `json:"pids"`
	CPUMicros   int64 `json:"cpu_micros"` // of processor time since its start
}

// Usage is the resource use of a space; -1 if the host does not report it.
type Usage struct {
	Load
	DiskBytes int64 `json:"disk_bytes"`
}

// Report is a tier's findings about its host.
type Report struct {
	Tier    string        `json:"tier"`
	OK      bool          `json:"ok"`       // spaces can be made, with every bound enforced
	Limited bool          `json:"limited"`  // spaces can be made with best_effort only
	Start   time.Duration `json:"start_ns"` // of the probe's space, to its first byte of output
	Checks  []Check       `json:"checks"`
	Offer   *Offer        `json:"offer,omitempty"` // the contents of its spaces; nil if the tier could not be prepared
}

// Check is one thing that was tried.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`          // what the check found
	Mend   string `json:"mend,omitempty"`  // how to mend it, a command where there is one
	Bound  string `json:"bound,omitempty"` // the limit that cannot be enforced without it
}

// Entry describes a file or folder of a space.
type Entry struct {
	Path     string    `json:"path"` // relative, with slashes
	Type     string    `json:"type"` // file, directory, symlink or other
	Size     int64     `json:"size_bytes"`
	Mode     string    `json:"mode"` // octal permission bits: 0644
	Modified time.Time `json:"modified_at"`
	Target   string    `json:"target,omitempty"`   // of a symlink, as it stands there
	Withheld bool      `json:"withheld,omitempty"` // it is kept from code; only people see it
}

// The modes that a file can be written with from outside.
const (
	ModePlain      = "0644"
	ModeExecutable = "0755"
)

// CheckFileMode refuses an invalid mode for a file that is written from outside. Empty is valid: a new file then is plain.
func CheckFileMode(mode string) error {
	switch mode {
	case "", ModePlain, ModeExecutable:
		return nil
	}
	return fault.New(fault.Invalid, "invalid_mode",
		"a file of a space is written with the mode %s, or %s where it is to be executed; %.16q is neither", ModePlain, ModeExecutable, mode)
}

// Edit replaces the first occurrence of one text by another.
type Edit struct {
	Old string `json:"oldContent"`
	New string `json:"newContent"`
}

// Files are the files of one space, seen from outside. No path leaves the space's directory: not by `..`, by a symbolic or hard link, by a
// device, or by a race with the code that runs inside. The permit decides the effect. The driver checks content against its hash.
type Files interface {
	// Read opens the file of a file.read permit for reading; at most MaxBytes of the action, if set, else a fault file_too_large.
	Read(ctx context.Context, p policy.Permit) (File, error)
	// List returns the entries of the directory of a file.list permit in order of their paths, at most limit of them, recursively if asked.
	List(ctx context.Context, p policy.Permit, recursive bool, limit int) ([]Entry, error)
	// Write makes the file of a file.create permit with its content, atomically, and its parent folders. Without Overwrite an existing file is
	// a fault file_exists. The file gets the Mode of the action. If that is empty, it gets 0644, plus the execute bits of a file that it
	// replaces.
	Write(ctx context.Context, p policy.Permit, content io.Reader) (Entry, error)
	// Edit applies the edits of a file.edit permit, whose Content is the digest of their canonical JSON, in order: all or none.
	Edit(ctx context.Context, p policy.Permit, edits []Edit) (Entry, error)
	// Delete removes the file of a file.delete permit; a directory is a fault not_a_file.
	Delete(ctx context.Context, p policy.Permit) error
	// Archive writes the folder of a file.archive permit as a zip file to w. It leaves out the entries whose path may rejects; a nil may
	// leaves none out. Paths are relative to the space's files.
	Archive(ctx context.Context, p policy.Permit, w io.Writer, may func(path string) bool) error
	// Watch begins to watch the folder of a file.list permit, recursively if asked. A folder with more than MaxWatchEntries entries, or with
	// folders nested deeper than MaxWatchDepth, is a fault watch_too_large.
	Watch(ctx context.Context, p policy.Permit, recursive bool) (Watch, error)
}

// File is an open file of a space.
type File interface {
	io.ReadSeekCloser
	Entry() Entry
}

// EditsDigest is the Content of a file.edit action.
func EditsDigest(edits []Edit) (event.Digest, error) {
	return digestJSON(edits)
}
