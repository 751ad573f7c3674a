// Package cli is the command line: a client of the HTTP API for a person at a terminal or a script.
package cli

//go:generate go test -count=1 -run ^TestTheReferenceIsCurrent$ . -update

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// Host is what the app gives the command line: the surroundings of the process, and the functions that work without the API.
type Host struct {
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(string) string
	Isset    func(string) bool                  // the variable is set, be it empty; nil means that none is set and empty
	Terminal bool                               // Out is a terminal
	Asks     bool                               // In is a terminal
	Width    int                                // characters of a line of Out; 0 where nobody reads it
	Screen   func() (width, height int)         // of the terminal, as it is now
	Keys     func() (restore func(), err error) // has In give each key as it is pressed, and nothing after a moment without one
	// as Keys, and Ctrl-C is a key like others; errors.ErrUnsupported where the system edits lines itself
	Edit    func() (restore func(), err error)
	Clock   event.Clock
	Entropy io.Reader // for marks that nobody foresees
	Version string

	Example []byte // the operations of the demo

	// Up runs a daemon until ctx ends, and says once where it serves.
	Up func(ctx context.Context, d Daemon, ready func(addr string, cold bool)) error
	// Engine executes the runs that a daemon hands out, until ctx ends, or once there is none.
	Engine func(ctx context.Context, desk client.Desk, e Engine) error
	// ModelContext serves the Model Context Protocol over a pair of streams until the client ends it, or ctx does.
	ModelContext func(ctx context.Context, c ModelContext, in io.ReadCloser, out io.WriteCloser) error
	// Doctor probes what the host can isolate.
	Doctor func(ctx context.Context, d Daemon) ([]space.Report, error)
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

// Place is where a local daemon keeps what it has.
type Place struct {
	DataDir string
	Store   string // address of the database that the log lies in; "" for a file in the data directory
	Shared  string // folder with what the daemons of a database share; "" for the data directory, of one that has it alone
}

// Engine is the configuration of an engine outside of the daemon.
type Engine struct {
	Daemon  string // address where it waits
	Hands   int    // runs that it works on at the same time
	Once    bool   // it ends when there is nothing to claim
	Verbose bool
	JSONLog bool // what it tells is written as JSON
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

// commands are all commands, by the group and in the order in which help lists them.
var commands = []struct {
	id, title string
	makes     []func(*invocation) *cobra.Command
}{
	{"start", "Start here:", []func(*invocation) *cobra.Command{up, demo, doctor, snippets}},
	{"work", "Spaces and runs:", []func(*invocation) *cobra.Command{
		spaces, files, shell, execute, contexts, runs, timelineCommand, approvals, artifacts, topCommand, engine, wasiCommands, modelContext,
	}},
	{"agents", "Agents:", []func(*invocation) *cobra.Command{blueprints}},
	{"policy", "Policy and safety:", []func(*invocation) *cobra.Command{policies, actionTypes, killSwitch, tokens, labels, incidents}},
	{"people", "People, agents and talk:", []func(*invocation) *cobra.Command{
		principals, agents, engines, keys, login, logout, passphrase, bootstrap, rooms, threads, messages, searchCommand,
	}},
	{"operate", "Log and operation:", []func(*invocation) *cobra.Command{
		events, audit, workspaces, nodes, backups, restore, exportWorkspace, importWorkspace, collect, version,
	}},
}

// Main is Run for a whole process. Help lists commands in the order above, which cobra knows for the whole process only.
func Main(ctx context.Context, host Host, args []string) int {
	cobra.EnableCommandSorting = false
	return Run(ctx, host, args)
}

// Run executes the command line and returns the exit code.
func Run(ctx context.Context, host Host, args []string) int {
	i := &invocation{Host: host}
	root := i.root()
	shells(root)
	helps(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if _, silent := errors.AsType[*ended](err); err != nil && !silent {
		i.json = i.json || asksForJSON(args) // a wrong flag may keep the rest from being read
		complain(host.Err, i.printer(host.Err), stopped(ctx, i.unknownKey(err)))
	}
	return exitCode(err)
}

// stopped says in words what ended because the person at the terminal wanted it, and said nothing of its own.
func stopped(ctx context.Context, err error) error {
	if _, said := asFault(err); said || ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	return fault.New(fault.Unavailable, codeInterrupted, "interrupted")
}

// unknownKey says where a key came from that the daemon refuses; the daemon cannot know.
func (i *invocation) unknownKey(err error) error {
	if f, ok := asFault(err); ok && f.Code == "unauthenticated" && i.keyFrom != "" {
		return fault.New(f.Kind, f.Code, "the daemon does not know the key from %s", oneLine(i.keyFrom, 200)).
			With("without AGENTBOX_KEY and --key-file the session of agentbox login is used, and where there is none, the local owner's key")
	}
	return err
}

func asksForJSON(args []string) bool {
	for _, a := range args {
		if a == "--json" {
			return true
		}
	}
	return false
}

// invocation is one command line with its global flags.
type invocation struct {
	Host
	data, url, key string
	store, shared  string
	json           bool
	keyFrom        string                                  // where the API key was found
	lines          *bufio.Reader                           // of In, once something was read
	answers        func(prompt string) (string, error)     // reads an answer where a terminal is read key by key
	asking         func(a policy.Approval) policy.Approval // what a session shows of a question about what it has sent; nil for all of it
}

// root makes the command tree.
func (i *invocation) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "agentbox",
		Short: "Run AI agents that do real work without having to be trusted",
		Long: "Agentbox runs the code of AI agents in isolated spaces. A policy decides on each step and asks people where it says so.\n" +
			"An append-only log records everything and can prove it. Start the daemon with `agentbox up`, or watch `agentbox demo`.",
		SilenceErrors: true, SilenceUsage: true, Version: i.Version,
		Args:              onlyCommands,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cmp.Or(i.refuseEmpty(cmd), refuseLimit(cmd)) },
	}
	root.SetVersionTemplate("agentbox {{.Version}}\n")
	root.SetIn(i.In)
	root.SetOut(i.Out)
	root.SetErr(i.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%s: %s", within(cmd), err).With("see: " + cmd.CommandPath() + " --help")
	})
	flags := root.PersistentFlags()
	flags.BoolVar(&i.json, "json", false, "answer in JSON")
	flags.StringVar(&i.data, "data", "", "data directory of the local daemon (AGENTBOX_HOME; default ~/.agentbox)")
	flags.StringVar(&i.store, "store", "",
		"database of the log, as in postgres://user@host/database (AGENTBOX_STORE; default: a file in the data directory)")
	flags.StringVar(&i.shared, "shared", "", "folder that all daemons of one database share (AGENTBOX_SHARED; default: the data directory)")
	flags.StringVar(&i.url, "url", "", "address of the daemon (AGENTBOX_URL; default: the local daemon)")
	flags.StringVar(&i.key, "key-file", "", "file with the API key (AGENTBOX_KEY holds a key itself; default: the key of the local owner)")
	for _, g := range commands {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
		for _, make := range g.makes {
			c := make(i)
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.SetHelpCommandGroupID("start")
	root.SetCompletionCommandGroupID("operate")
	i.completed(root)
	wrapArgs(root)
	return root
}

// wrapArgs says what a command takes where cobra finds a wrong number of arguments.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return refuseNothing(cmd, args)
			}
			if _, said := asFault(err); said {
				return err
			}
			_, takes, _ := strings.Cut(cmd.Use, " ")
			return usage("%s takes %s, and %s given", within(cmd), first(takes, "no arguments"), map[bool]string{true: "1 argument was",
				false: fmt.Sprintf("%d arguments were", len(args))}[len(args) == 1]).With("see: " + cmd.CommandPath() + " --help")
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// group makes a command that only has others below it.
func group(use, short string, subs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: onlyCommands, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	c.AddCommand(subs...)
	return c
}

// within names a command below the program, or the program.
func within(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "agentbox ") }

// onlyCommands refuses a word that is no command, and names those that are near it.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = min(2, len(args[0])/2) // of two letters only one may be wrong
	near := cmd.SuggestionsFor(args[0])
	for n, name := range near {
		near[n] = cmd.CommandPath() + " " + name
	}
	hint := "see: " + cmd.CommandPath() + " --help"
	if len(near) > 0 {
		hint = "did you mean: " + strings.Join(near, ", ")
	}
	return usage("there is no command %s %s", cmd.CommandPath(), oneLine(args[0], 60)).With(hint)
}

// printer returns a printer for one of the process's streams.
func (i *invocation) printer(out io.Writer) *printer {
	return &printer{out: out, json: i.json, colour: i.Terminal && i.Getenv("NO_COLOR") == "" && i.Getenv("TERM") != "dumb", width: i.Width}
}

// show writes a value as JSON, or for people.
func (i *invocation) show(v any, people func(*printer)) error {
	p := i.printer(i.Out)
	if i.json {
		return p.object(v)
	}
	people(p)
	return nil
}

// list shows a list. Its JSON is the answer of the API: an object with the list under its name, and the cursor of the next page if there
// is one.
func (i *invocation) list(name string, entries any, next string, people func(*printer)) error {
	return i.show(listed{name, entries, next}, people)
}

type listed struct {
	name    string
	entries any
	next    string
}

// MarshalJSON writes the list before its cursor, which is the identifier of an entry too.
func (l listed) MarshalJSON() ([]byte, error) {
	name, err := json.Marshal(l.name)
	entries, wrong := json.Marshal(l.entries)
	if err = errors.Join(err, wrong); err != nil || l.next == "" {
		return fmt.Appendf(nil, "{%s:%s}", name, entries), err
	}
	next, err := json.Marshal(l.next)
	return fmt.Appendf(nil, `{%s:%s,"next_cursor":%s}`, name, entries, next), err
}

// dataDir returns the data directory of the local daemon.
func (i *invocation) dataDir() (string, error) {
	if i.data != "" {
		return absolute(i.data)
	}
	if dir := i.Getenv("AGENTBOX_HOME"); dir != "" {
		return absolute(dir)
	}
	home := i.Getenv("HOME")
	if home == "" {
		return "", usage("the home directory is not known; name the data directory with --data")
	}
	return absolute(home + "/.agentbox")
}

// place returns where the local daemon keeps what it has.
func (i *invocation) place() (p Place, err error) {
	if p.DataDir, err = i.dataDir(); err != nil {
		return p, err
	}
	p.Store = first(i.store, i.Getenv("AGENTBOX_STORE"))
	if p.Shared = first(i.shared, i.Getenv("AGENTBOX_SHARED")); p.Shared != "" {
		p.Shared, err = absolute(p.Shared)
	}
	return p, err
}

// connect returns a client of the daemon that was named, else of the local one.
func (i *invocation) connect(ctx context.Context) (*client.Client, error) {
	if err := i.emptyVariable(); err != nil {
		return nil, err
	}
	address, key := first(i.url, i.Getenv("AGENTBOX_URL")), i.Getenv("AGENTBOX_KEY")
	i.keyFrom = "AGENTBOX_KEY"
	if i.key != "" {
		text, err := os.ReadFile(i.key)
		if err != nil {
			return nil, fault.Wrap(err, fault.Invalid, "key_file_unreadable", "the key file cannot be read")
		}
		if key, i.keyFrom = strings.TrimSpace(string(text)), i.key; key == "" { // whoever names a key does not mean the owner's
			return nil, fault.New(fault.Invalid, "key_file_empty", "the key file %s is empty", oneLine(i.key, 200)).
				With("write an API key into it, or leave --key-file out")
		}
	}
	named := address != ""
	if !named {
		var err error
		if address, err = i.address(ctx); err != nil {
			return nil, err
		}
	}
	if key == "" {
		var err error
		if key, err = i.bearer(ctx, address); err != nil {
			return nil, err
		}
		i.keyFrom = i.sessionFile()
	}
	if key == "" {
		dir, err := i.dataDir()
		if err != nil {
			return nil, err
		}
		if named {
			if err := i.localOnly(ctx, address, dir); err != nil {
				return nil, err
			}
		}
		if key, err = ownerKey(dir); err != nil {
			return nil, err
		}
		i.keyFrom = filepath.Join(dir, "owner.key")
	}
	return client.New(address, key), nil
}

// localOnly keeps the local owner's key from being sent to another daemon than the local one.
func (i *invocation) localOnly(ctx context.Context, address, dir string) error {
	found, err := i.serving(ctx, dir)
	if err != nil {
		return err
	}
	want, errA := url.Parse(address)
	have, errB := url.Parse(found.URL())
	if errA != nil || errB != nil || want.Host != have.Host {
		return fault.New(fault.Denied, "key_missing", "no key for %s; the local owner's key goes to %s only", oneLine(address, 80), found.URL()).
			With("set AGENTBOX_KEY or name a file with --key-file")
	}
	return nil
}

func first(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}

func asFault(err error) (*fault.Error, bool) { return errors.AsType[*fault.Error](err) }

// pairs reads NAME=VALUE arguments.
func pairs(flag string, values []string) (map[string]string, error) {
	if len(values) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, v := range values {
		name, value, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, usage("--%s %s: write NAME=VALUE", flag, oneLine(v, 60))
		}
		out[name] = value
	}
	return out, nil
}

// version says which program this is.
func version(i *invocation) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return i.show(map[string]string{"version": i.Version}, func(p *printer) { fmt.Fprintf(p.out, "agentbox %s\n", i.Version) })
		},
	}
}
