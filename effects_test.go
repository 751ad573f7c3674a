package agentbox_test

import "agentbox/internal/testkit/arch"

// effects is what TestNoEffectWithoutAPermit proves: the functions that touch the world, and the few that need no permit for it.
var effects = arch.Effects{
	Permit:  "internal/domain/policy.Permit",
	From:    []string{"internal/domain/*", "internal/kernel/*", "internal/command", "internal/service/**", "internal/surface/httpapi/**"},
	Drivers: []string{"internal/driver/**", "internal/spaceinit/**"},
	Inner:   []string{"internal/driver/nano/*/**"},

	Sinks: []string{
		"os.*", "os/exec.*", "os/signal.*", "syscall.*", "net.*", "plugin.*", "database/sql.*", "io/ioutil.*",
		"(net/http.Client).*", "(net/http.Transport).*", "(net/http.Server).*",
		"net/http.Get", "net/http.Head", "net/http.Post", "net/http.PostForm", "net/http.ListenAndServe", "net/http.ListenAndServeTLS",
		"net/http.Serve", "net/http.ServeTLS", "net/http.ServeFile", "net/http.NewFileTransport", "(net/http.Dir).*",
		"path/filepath.Walk", "path/filepath.WalkDir", "path/filepath.Glob", "path/filepath.EvalSymlinks", "path/filepath.Abs",
	},
	Harmless: []string{
		"os.Getpid", "os.Getuid", "os.Geteuid", "os.Getgid", "os.Getegid", "os.Getpagesize", "os.IsNotExist", "os.IsExist", "os.IsPermission",
		"(os.PathError).*", "(os.SyscallError).*", "(os.LinkError).*", "os.NewSyscallError", "(os.File).Name", "(os.File).Fd", "(os.File).Close",
		"mvdan.cc/sh/v3/expand.BracesSeq", "mvdan.cc/sh/v3/expand.Format",
		"(os/exec.ExitError).*", "(os.ProcessState).*", "(syscall.Errno).*", "(syscall.Signal).*", "(syscall.WaitStatus).*",
		"net.ParseIP", "net.ParseCIDR", "net.SplitHostPort", "net.JoinHostPort", "(net.IP).*", "(net.IPNet).*", "(net.TCPAddr).*",
		"(net.OpError).*",
		"(golang.org/x/tools/go/packages.Error).*", // the text of an error
		"golang.org/x/sys/unix.ByteSliceToString", "golang.org/x/sys/unix.SignalName", "(golang.org/x/sys/unix.WaitStatus).*",
	},
	Pure: []string{
		"github.com/gowebpki/jcs", "github.com/cedar-policy/cedar-go/**", "mvdan.cc/sh/v3/syntax/**", "golang.org/x/mod/sumdb/note",
		"golang.org/x/mod/sumdb/tlog", "golang.org/x/time/rate", "golang.org/x/crypto/scrypt", "github.com/danielgtaylor/huma/v2/**",
		"go.yaml.in/yaml/**", "golang.org/x/text/unicode/norm",
		"github.com/go-json-experiment/json/jsontext",
		"github.com/prometheus/client_golang/**",                               // counts in memory, and reads the figures of its own process
		"google.golang.org/protobuf/**", "github.com/bufbuild/protocompile/**", // it compiles definitions that are part of the program
		"go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
		"github.com/JohannesKaufmann/html-to-markdown/v2/**", "github.com/JohannesKaufmann/dom", "golang.org/x/net/html/**",
		"github.com/google/go-cmp/**", "pgregory.net/rapid", "go.uber.org/goleak", "github.com/bmatcuk/doublestar/**",
	},

	// Persistence is what a permit itself rests on: without the log there is none. Stopping never waits for one.
	Allowed: map[string]string{
		"(*internal/surface/httpapi/wire.Server).Run":        "serves on the listener that the roof gave it, and stops",
		"(*internal/surface/httpapi/wire.document).Describe": "calls what operations left with it to describe themselves, and nothing else",

		"(internal/client.Desk).*": "how an engine outside asks a daemon, whose gate decides there; within a daemon the same contract is its " +
			"services",

		"internal/driver/disk/internal/freespace.*":      "reads how much room a disk has",
		"internal/driver/disk/internal/seal.*":           "the keys of what the disk driver keeps, and destroys where it forgets",
		"(*internal/driver/disk/internal/seal.Cipher).*": "goes on writing what the disk driver began",
		"(*internal/driver/disk/internal/seal.Reader).*": "goes on reading what the disk driver opened",
		"(*internal/driver/memory.Blobs).*":              "content in memory, which is swept through the same contract as that on disk",
		"internal/driver/disk.OpenBlobs":                 "opens the daemon's own folder when it starts",
		"internal/driver/disk.OpenSharedBlobs":           "opens the folder that daemons share when one of them starts",
		"(*internal/driver/disk.Blobs).*":                "content of the log",
		"internal/driver/disk/frames.Open":               "opens the daemon's own folder when it starts",
		"(*internal/driver/disk/frames.Store).*":         "output of runs, kept beside the log",

		"internal/driver/keyring.Open":         "opens the daemon's own folder when it starts",
		"internal/driver/keyring.OpenShared":   "opens the folder that daemons share when one of them starts",
		"internal/driver/keyring.OpenReadOnly": "opens the keys to verify the log",
		"internal/driver/keyring.Renew":        "plants the keys of a data directory that an operator restored",
		"internal/driver/keyring.Copy":         "an operator's own work on a data directory",
		"(*internal/driver/keyring.Keyring).*": "keys of the log's own content, kept beside it",

		"internal/driver/fts.Open": "opens the index of what documents hold when the daemon starts, and makes it anew where it cannot be " +
			"used",
		"(*internal/driver/fts.Index).*": "an index of what documents hold, which anybody could make from them",

		"internal/driver/sqlite.Open":            "opens the log when the daemon starts",
		"internal/driver/sqlite.OpenReadOnly":    "opens the log to verify it",
		"internal/driver/sqlite.Snapshot":        "copies the log for a backup, which an operator makes without a daemon",
		"(*internal/driver/sqlite.Journal).*":    "the log itself and the documents folded from it",
		"(*internal/driver/sqlite.redaction).*":  "takes data out of the log itself, which only a recorded redaction asks for",
		"(*internal/driver/sqlite.adoption).*":   "a workspace's log that is taken in as it is",
		"(*internal/driver/sqlite.ledger).*":     "the log as a batch sees it before it is recorded",
		"(internal/driver/sqlite.gathering).*":   "the file layer of the log",
		"(*internal/driver/sqlite.logFile).*":    "the file layer of the log",
		"internal/driver/postgres.Open":          "opens the log when the daemon starts",
		"internal/driver/postgres.OpenReadOnly":  "opens the log to verify it",
		"(*internal/driver/postgres.Journal).*":  "the log itself and the documents folded from it",
		"(*internal/driver/postgres.Members).*":  "says which daemons have the log, and who of them leads",
		"(*internal/driver/postgres.events).*":   "reads the log itself",
		"(*internal/driver/postgres.adoption).*": "a workspace's log that is taken in as it is",
		"(*internal/driver/postgres.ledger).*":   "the log as a batch sees it before it is recorded",
		"(*internal/driver/memory.Journal).*":    "the log in memory, which plans a batch through the same contract as the one on disk",

		"(*internal/driver/disk.watched).*": "goes on telling of a folder whose permit was redeemed; closing never waits for one",

		"internal/driver/disk/internal/notes.Open":       "asks the kernel to note what happens in folders that the disk driver opened",
		"(*internal/driver/disk/internal/notes.Notes).*": "adds, takes and reads such notes, and changes no file",
		"internal/driver/disk/internal/watch.New":        "begins to watch a folder whose permit the disk driver redeemed",
		"(*internal/driver/disk/internal/watch.Tree).*":  "goes on watching it",
		"(*internal/driver/disk.Spaces).Close":           "ends the watches of the daemon's snapshots when it stops",

		"(*internal/driver/disk/trees.Store).*": "the trees over the log and its checkpoints, kept beside it",
		"internal/driver/disk/trees.Replace":    "keeps a checkpoint, or the daemon's own key, in one step",
		"(*internal/driver/witness.Client).*": "brings a signed checkpoint to a witness that the operator named; nothing in it comes " +
			"from a caller",
		"(*internal/driver/witness.Handler).ServeHTTP": "keeps the checkpoints that are brought to a witness, which is a program of its own",

		"internal/driver/nano.Run":                "runs an operator's own module over folders that they name, without a daemon",
		"(*internal/driver/nano.hostInput).Read":  "reads what an operator gives to their module",
		"(internal/driver/nano.hostOutput).Write": "shows an operator what their module says",
		"internal/driver/nano.New":                "makes the daemon's own folder when it starts; workers start with the first space",
		"internal/driver/nano.Commands":           "names programs, and runs none",
		"internal/driver/nano.Offer":              "names programs and modules, and runs none",
		"internal/driver/nano.Prepare":            "compiles the interpreters of this build into the daemon's own folder",
		"internal/driver/nano.Serve":              "makes its process a worker, which executes what a tier asks for whose permits were redeemed",
		"internal/driver/nano.Worker":             "makes its process a worker, which executes what a tier asks for whose permits were redeemed",
		"(*internal/driver/nano.system).*":        "executes in a worker what a tier asks for whose permit was redeemed",
		"(*internal/driver/nano.foreign).*":       "executes in a worker what a tier asks for whose permit was redeemed",
		"(*internal/driver/nano.Tier).Probe":      "runs its own commands in a worker, in a folder of its own; nothing in it comes from a caller",
		"(*internal/driver/nano.Tier).Try":        "runs echo in a worker, in a folder of its own; nothing in it comes from a caller",
		"(*internal/driver/nano.Tier).Cold":       "looks whether the interpreters of this build lie in the daemon's own folder",
		"(*internal/driver/nano.Tier).Reap":       "removes the temporary files that an earlier daemon left",
		"(*internal/driver/nano.Tier).Close":      "ends every space; stopping never waits for a permit",
		"(*internal/driver/nano.instance).Close":  "ends a space; stopping never waits for a permit",
		"(*internal/driver/nano.instance).Usage":  "reads what a space uses",
		"(*internal/driver/nano.folder).*":        "answers a worker that executes a command whose permit was redeemed",
		"(*internal/driver/nano.changes).*":       "does what a command did whose permit was redeemed",

		"internal/driver/endpoint.New": "makes a client, which dials when an adapter beside it has redeemed a permit",
		"(*internal/driver/endpoint.Client).*": "sends for the adapters beside it, which redeem a permit for exactly this request first; " +
			"closing never waits for one",

		"internal/driver/endpoint/keys.Open":             "makes the daemon's own folder when it starts",
		"internal/driver/endpoint/keys.OpenGrants":       "makes the daemon's own folder when it starts",
		"(*internal/driver/endpoint/keys.Grants).Grant":  "reads the tokens of a login for the client that redeems a permit",
		"(*internal/driver/endpoint/keys.Grants).Renew":  "keeps what an issuer gave in exchange for a login whose permit was redeemed",
		"(*internal/driver/endpoint/keys.Grants).Forget": "destroys the tokens of a login; stopping never waits for a permit",
		"(*internal/driver/endpoint/keys.Store).Key":     "reads the key of a request whose permit the adapter redeems, and tells it to nobody",
		"(*internal/driver/fetch.Client).Dial":           "connects for who has redeemed a permit: the client of pages, and that of MCP servers",
		"internal/driver/mcpclient.New":                  "makes a client, which dials when a permit was redeemed",
		"(*internal/driver/mcpclient.session).RoundTrip": "sends for the SDK, to the one server whose permit was redeemed",
		"(internal/driver/mcpclient.short).RoundTrip":    "sends for the SDK, to the server and the issuer whose permits were redeemed",
		"(*internal/driver/mcpclient.guard).RoundTrip":   "sends for the SDK, to the server and the issuer whose permits were redeemed",
		"(*internal/driver/mcpclient.piped).*":           "goes on with the pipe to a process whose permit was redeemed",
		"(*internal/driver/mcpclient.ticket).*":          "renews a token at the issuer whose permit was redeemed",
		"(*internal/driver/mcpclient.session).Tools":     "asks a server for its tools over a session whose permit was redeemed",
		"(*internal/driver/mcpclient.session).Close":     "ends a session; stopping never waits for a permit",
		"(*internal/app/localengine.externalDesk).Open":  "answers programs of a space, and asks the gate for each request",

		"internal/driver/namespace.New": "looks at the host when the daemon starts",
		"(*internal/driver/namespace.Tier).Probe": "makes a space of its own, runs its own commands in it and removes it; nothing in it " +
			"comes from a caller",
		"(*internal/driver/namespace.Tier).Try": "makes a space of its own, runs echo in it and removes it; nothing in it comes from a " +
			"caller",
		"(*internal/driver/namespace.Tier).Reap":      "ends what an earlier daemon left; stopping never waits for a permit",
		"(*internal/driver/namespace.Tier).Close":     "ends every space; stopping never waits for a permit",
		"(*internal/driver/namespace.instance).Close": "ends a space; stopping never waits for a permit",
		"(*internal/driver/namespace.instance).Pause": "stops the processes of a space for a while; stopping never waits for a permit",
		"(*internal/driver/namespace.instance).Resume": "lets go on what a permit had begun; the gate has judged the change of the space " +
			"before",
		"(*internal/driver/namespace.process).*": "goes on with a command whose permit was redeemed; its action says how it gets input, and " +
			"the gate is asked about each",
		"(*internal/driver/namespace.door).*":    "goes on with a port whose permit was redeemed; closing never waits for one",
		"(*internal/driver/namespace.passage).*": "goes on with a connection to a port whose permit was redeemed",
		"(*internal/spaceinit.Conn).*":           "goes on with a connection to a port whose permit was redeemed",
		"(*internal/driver/namespace.instance).Inlet": "makes a port in the space that leads to the daemon, which asks the gate about each " +
			"request on it",
		"(*internal/driver/namespace.inlet).*":        "goes on with such a port; closing never waits for a permit",
		"(*internal/driver/namespace.inward).*":       "goes on with a connection that a program of the space opened to the daemon",
		"(*internal/spaceinit.Listener).*":            "speaks over the stream of an init that a permit started",
		"(*internal/driver/namespace.instance).Ports": "reads on which ports a space listens",
		"(*internal/spaceinit.Process).*":             "goes on with a command whose permit was redeemed",
		"(*internal/driver/telemetry.process).Wait":   "counts a command whose permit was redeemed",
		"(*internal/driver/namespace.instance).Usage": "reads what a space uses",
		"(*internal/driver/namespace.instance).Load":  "reads what a space uses",

		"internal/driver/telemetry.OpenTracer": "begins to tell traces to the collector that the operator named",
		"(*internal/driver/telemetry.Tracer).*": "tells spans to the collector that the operator named; no content is among what " +
			"it tells",
		"(*internal/driver/telemetry.Journal).*":              "the log itself, whose appends it counts",
		"(*internal/driver/telemetry.Gate).*":                 "asks the gate that it wraps, whose decisions it counts",
		"(*internal/driver/telemetry.Output).Append":          "output of runs, kept beside the log, which it counts",
		"(*internal/driver/telemetry.Store).Open":             "looks whether the folder is there; what it returns hands each permit on",
		"(*internal/driver/telemetry.counter).Write":          "goes on writing the archive that a permit began",
		"(*internal/driver/telemetry.stateCollector).Collect": "looks up for the metrics how long the log is and what is in it",
		"internal/spaceinit.Send":                             "speaks over the stream of an init that a permit started",
		"(*internal/spaceinit.Client).*":                      "speaks over the stream of an init that a permit started",
		"(*internal/spaceinit.Writer).Write":                  "speaks over the stream of an init that a permit started",

		"internal/spaceinit/inittest.*": "builds the init for tests",

		"internal/driver/disk.OpenSpaces": "makes the daemon's own folder when it starts, and removes what an earlier one left half " +
			"done",
		"(*internal/driver/disk.Spaces).Open":      "looks whether the folder is there; what it returns redeems a permit for each use",
		"(*internal/driver/disk.Spaces).History":   "looks whether the folder is there; what changes files in it redeems a permit for each use",
		"(*internal/driver/disk.Spaces).List":      "lists folders so that those which nobody keeps are removed",
		"(*internal/driver/disk.Spaces).Aside":     "looks whether the folder is there; what it returns redeems a permit for each use",
		"(*internal/driver/disk.Spaces).Withholds": "looks whether a withheld file is there, to tell a person where to look",
		"(*internal/driver/disk.Spaces).KeepAside": "takes files out of the view of code and ends interpreter contexts, which snapshots " +
			"still hold; it shows nothing",
		"(*internal/driver/disk.Spaces).Share": "gives the files of a space another place, in which they are what they were",
		"internal/driver/disk.Sharing":         "tries in a folder of its own what the host can do; nothing in it comes from a caller",
		"(*internal/driver/disk.Spaces).Sync":  "makes the daemon's own folders durable, and removes what a rewind left in them",
		"(*internal/driver/disk.History).Keep": "records what an operation left, as its result does, and finishes a rewind whose permit " +
			"was redeemed before a crash",
		"(*internal/driver/disk.History).Kept":       "reads what was recorded, and finishes a rewind as Keep does",
		"(*internal/driver/disk.History).Brought":    "reads what was recorded, and finishes a rewind as Keep does",
		"(*internal/driver/disk.History).Bearing":    "reads what was recorded, and finishes a rewind as Keep does",
		"(*internal/driver/disk.History).Purge":      "does what a redaction recorded whose permit was redeemed before it",
		"(*internal/driver/disk.History).Survey":     "reads what a sweep would free, and finishes a rewind as Keep does",
		"(*internal/driver/disk.Spaces).Remove":      "ends a space; stopping never waits for a permit",
		"internal/driver/disk/backup.*":              "an operator's own work on a data directory, which no service can reach",
		"(internal/driver/disk/backup.reader).Read":  "goes on reading what a backup or a restore opened",
		"(*internal/driver/disk/backup.source).Read": "goes on reading what a restore opened",
		// Go lets no package but those of the disk driver import these, and each function there that is exported to others is judged itself.
		"internal/driver/disk/internal/beneath.*":                    "the steps of what a permit began",
		"(internal/driver/disk/internal/beneath.contextReader).Read": "goes on reading what a permit opened",
		"(*internal/driver/disk/internal/snapshots.Past).*":          "the steps of what the disk driver began",
		"(*internal/driver/disk/internal/snapshots.sparse).Write":    "goes on writing what a permit began",
		"internal/driver/disk/internal/overlay.*":                    "the steps of what the disk driver began",
		"internal/driver/disk/internal/snapshots.LookAt":             "reads what the disk driver keeps, to verify it",
		"(*internal/driver/disk/internal/snapshots.Shelf).Hold":      "reads what the disk driver keeps, to verify it",
		"(*internal/driver/disk.Shelves).Shelf":                      "looks whether there are snapshots, to verify them",
		"internal/driver/disk/internal/snapshots.Look":               "looks at what the disk driver keeps",
		"internal/driver/disk/internal/seed.*":                       "fills a space whose making a permit began",
		"(internal/driver/disk/internal/seed.meter).Write":           "goes on writing what a permit began",
	},
}
