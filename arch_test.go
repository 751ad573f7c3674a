package agentbox_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/testkit/arch"
)

var update = flag.Bool("update", false, "write the generated files")

// outside are the packages of the standard library that reach out of the program.
var outside = []string{"os", "os/**", "net", "net/http", "net/http/**", "net/rpc", "net/smtp", "syscall", "plugin", "unsafe", "database/**",
	"log"}

// floors is the table of allowed imports, one floor down or to the ground. A package belongs to the first row that fits. Suites, whose
// folders are named xtest, are bound like the package that they test.
var floors = []arch.Floor{
	{Name: "the root", Packages: []string{"."}},
	{Name: "id or fault", Packages: []string{"internal/domain/id", "internal/domain/fault"}, Refused: outside},
	{Name: "event", Packages: []string{"internal/domain/event"}, Imports: []string{"internal/domain/id"}, Refused: outside},
	{
		Name: "policy", Packages: []string{"internal/domain/policy"}, Refused: outside,
		Imports:    []string{"internal/domain/id", "internal/domain/fault", "internal/domain/event"},
		ThirdParty: []string{"github.com/gowebpki/jcs", "golang.org/x/text/unicode/norm"},
	},
	{
		Name: "space", Packages: []string{"internal/domain/space"}, Imports: cornerstones, Refused: outside,
		ThirdParty: []string{"golang.org/x/text/unicode/norm"},
	},
	{Name: "a domain package", Packages: []string{"internal/domain/*"}, Imports: cornerstones, Refused: outside},
	{
		Name: "a suite of a domain package", Packages: []string{"internal/domain/*/*"}, Imports: cornerstones, Own: true, Depth: 3,
		ThirdParty: forTests,
	},
	{
		Name: "kernel", Packages: []string{"internal/kernel/*"}, Imports: []string{"internal/domain/*"}, Own: true, Depth: 3, Refused: outside,
		ThirdParty: []string{"golang.org/x/mod/sumdb/**"},
	},
	{
		Name: "a suite of the kernel", Packages: []string{"internal/kernel/*/*"}, Imports: []string{"internal/domain/*", "internal/kernel/*"},
		Own: true, Depth: 3, ThirdParty: append([]string{"golang.org/x/mod/sumdb/**"}, forTests...),
	},
	{ // it reads a command line as a text, and opens nothing
		Name: "command", Packages: []string{"internal/command"}, Imports: []string{"internal/domain/*"},
		ThirdParty: []string{"mvdan.cc/sh/v3/syntax", "mvdan.cc/sh/v3/expand"}, Refused: outside,
	},
	{
		Name: "a service", Packages: []string{"internal/service/**"}, Own: true, Depth: 3,
		Imports: []string{"internal/domain/*", "internal/kernel/*", "internal/command"},
		ThirdParty: []string{"mvdan.cc/sh/v3/**", "go.yaml.in/yaml/v3", "golang.org/x/mod/sumdb/**", "golang.org/x/crypto/scrypt",
			"go.opentelemetry.io/**", "github.com/JohannesKaufmann/html-to-markdown/v2/**", "golang.org/x/net/html/**"},
		Refused: []string{"os", "os/**", "net", "net/http", "net/http/**", "syscall", "plugin", "unsafe", "database/**", "log"},
	},
	{Name: "the list of documents", Packages: []string{"internal/documents"}, Imports: []string{"internal/service/*", "internal/kernel/*"}},
	{Name: "host", Packages: []string{"internal/host"}, ThirdParty: []string{"golang.org/x/sys/**"}},
	{
		Name: "a driver", Packages: []string{"internal/driver/**"}, Own: true, Depth: 3, ThirdParty: []string{"**"},
		Imports: []string{"internal/domain/*", "internal/kernel/*", "internal/spaceinit/**", "internal/host", "internal/userland/**"},
	},
	{ // it knows no engine and no daemon: any Go program can use it as a library
		Name: "the userland", Packages: []string{"internal/userland/**"}, Imports: []string{"internal/domain/fault"}, Own: true, Depth: 2,
		ThirdParty: []string{"**"},
		Refused:    []string{"github.com/tetratelabs/wazero/**", "net", "net/**", "plugin", "database/**"},
	},
	{Name: "spaceinit", Packages: []string{"internal/spaceinit/**"}, Imports: cornerstones, Own: true, Depth: 2,
		ThirdParty: []string{"golang.org/x/sys/**"}},
	{Name: "client", Packages: []string{"internal/client"}, Imports: []string{"internal/domain/*"}},
	{
		Name: "httpapi", Packages: []string{"internal/surface/httpapi/**"}, Own: true, Depth: 3,
		Imports:    []string{"internal/service/**", "internal/domain/*", "internal/kernel/*", "web"},
		ThirdParty: []string{"github.com/danielgtaylor/huma/v2/**", "github.com/go-json-experiment/json/jsontext", "golang.org/x/time/rate"},
	},
	{ // it reaches the services by the API only, which its maker gives it
		Name: "e2b", Packages: []string{"internal/surface/e2b/**"}, Own: true, Depth: 3,
		Imports:    []string{"internal/domain/*"},
		Refused:    []string{"os", "os/**", "syscall", "plugin", "unsafe", "database/**", "log"},
		ThirdParty: []string{"github.com/bufbuild/protocompile/**", "google.golang.org/protobuf/**"},
	},
	{ // it translates, and asks by what its maker gives it
		Name: "wires", Packages: []string{"internal/surface/wires"}, Imports: []string{"internal/domain/*"},
		Refused: []string{"os", "os/**", "net", "syscall", "plugin", "unsafe", "database/**", "log"},
	},
	{
		Name: "cli or tui", Packages: []string{"internal/surface/cli/**", "internal/surface/tui/**"}, Own: true, Depth: 3,
		Imports: []string{"internal/client", "internal/domain/*", "internal/host"}, ThirdParty: []string{"**"},
	},
	{
		Name: "a server of another protocol", Packages: []string{"internal/surface/mcpserver"}, Own: true, Depth: 1,
		Imports: []string{"internal/client", "internal/domain/*"}, ThirdParty: []string{"**"},
	},
	{Name: "app", Packages: []string{"internal/app/**"}, Imports: []string{"internal/**", "web", "api", "examples/**"},
		ThirdParty: []string{"**"}},
	{Name: "testkit", Packages: []string{"internal/testkit/**"}, Imports: []string{"internal/**"}, ThirdParty: []string{"**"}},
	{Name: "the guest", Packages: []string{"cmd/agentbox-init"}, Imports: []string{"internal/spaceinit/**"},
		ThirdParty: []string{"golang.org/x/sys/**", "github.com/landlock-lsm/go-landlock/**"}},
	{
		Name: "a command", Packages: []string{"cmd/*"}, ThirdParty: []string{"golang.org/x/sys/unix"},
		Imports: []string{"internal/app", "internal/host", "internal/client", "internal/surface/cli/**", "internal/surface/tui",
			"internal/surface/mcpserver", "internal/domain/*", "examples/*"},
	},
	{ // it checks Agentbox as a stranger does, so that no mistake of ours can be on both sides
		Name: "a check from outside", Packages: []string{"conformance/**"}, Imports: []string{"internal/testkit/platter"},
		ThirdParty: []string{"github.com/gowebpki/jcs", "github.com/ncruces/go-sqlite3", "golang.org/x/mod/sumdb/**", "golang.org/x/sys/unix"},
	},
	{Name: "an embedded tree", Packages: []string{"web", "api", "examples/**"}},
}

var (
	cornerstones = []string{"internal/domain/id", "internal/domain/fault", "internal/domain/event", "internal/domain/policy"}
	forTests     = []string{"github.com/google/go-cmp/**", "pgregory.net/rapid", "go.uber.org/goleak"}
)

// uses is what only some packages may mention.
var uses = []arch.Use{
	{
		Rule: "clock", Why: "time is an argument below the roof: take an event.Clock",
		Names: []string{"time.Now", "time.Since", "time.Until"},
		Allowed: []string{
			"internal/app/**", "cmd/**", "internal/testkit/**", "conformance/**",
			// they measure how long a process ran, on the monotonic clock
			"internal/driver/namespace/**", "internal/spaceinit/**", "internal/driver/nano/worker",
		},
	},
	{
		Rule: "clock", Why: "no timers but those of real I/O: take an event.Clock",
		Names: []string{"time.After", "time.AfterFunc", "time.NewTimer", "time.NewTicker", "time.Tick", "context.WithTimeout",
			"context.WithDeadline"},
		Allowed: []string{"internal/app/**", "cmd/**", "internal/testkit/**", "conformance/**", "internal/driver/**", "internal/spaceinit/**",
			"internal/client", "internal/surface/httpapi/**"},
	},
	{Rule: "clock", Why: "nothing waits by sleeping", Names: []string{"time.Sleep"}, Allowed: []string{"internal/testkit/**"}},
	{
		Rule: "chance", Why: "randomness is an argument below the roof: take an id.Source or an io.Reader",
		Names: []string{"crypto/rand.*", "math/rand.*", "math/rand/v2.*"},
		Allowed: []string{
			"internal/app/**", "cmd/**", "internal/testkit/**", "conformance/**",
			"internal/userland/bound", // what it draws is decided by the seed that it is given
		},
	},
	{
		Rule: "command", Why: "only who decides about a command line reads it: the gate and tiering", Names: []string{"internal/command.*"},
		Allowed: []string{"internal/service/gate/**", "internal/service/tiering"},
	},
	{
		Rule: "issue", Why: "only the gate makes permits", Names: []string{"internal/domain/policy.Issue"},
		Allowed: []string{"internal/service/gate"},
	},
}

// literals are fields that nobody may leave out.
var literals = []arch.Literal{{
	Rule: "token", Type: "internal/domain/policy.Action", Has: "Principal", Wants: "Token", Mention: "(internal/domain/policy.Gate).Judge",
	Why: "who acts may do so under a capability token; take it from the origin",
}}

// bulk is how large a type and a package may be. The lists of larger ones only get shorter: a new type is not put there, it is split.
var bulk = arch.Bulk{
	Methods: 40,
	Types: map[string]string{
		"internal/client.Client":         "the API: one method for each operation",
		"internal/driver/nano/wasi.call": "a table: one method for each system call of WASI",
		"internal/userland/awk.parser":   "a parser by descent: one method for each rule of the grammar",
	},
	Lines: 6_000,
	// a program of the userland is one package of many small tools
	Free: []string{"internal/userland/**"},
}

// shared are names that several packages have. Nobody imports two of one name together.
var shared = map[string]string{
	"frames": "frames of live output: of their file in the disk driver, of their writer in runs",
	"keys":   "the keys of an endpoint of models, and the keys of cryptography that QuickJS makes",
	"sqlite": "the store of the log, and the program sqlite3 of nano spaces: both wrap SQLite",
}

// banned are words that say nothing, or that have another name here.
var banned = map[string]string{
	"manager": "say what it does",
	"helper":  "say what it does",
	"util":    "say what it does",
	"utils":   "say what it does",
	"common":  "say what it has in common",
	"base":    "say what it is",
	"impl":    "name it by what it wraps",
	"lease":   "the word is claim",
}

// compiled are constructors of what never changes afterwards.
var compiled = []string{"regexp.MustCompile", "strings.NewReplacer", "html/template.Must", "text/template.Must",
	"encoding/base32.NewEncoding", "(encoding/base32.Encoding).WithPadding"}

// TestArchitecture holds the module to the shape that docs/ARCHITECTURE.md draws.
func TestArchitecture(t *testing.T) {
	module := load(t)
	sizes, err := arch.Sizes(module, 600, 140)
	if err != nil {
		t.Fatal(err)
	}
	sleeps, err := arch.Sleeps(module)
	if err != nil {
		t.Fatal(err)
	}
	links, err := arch.Links(module, []string{"internal/domain/**", "internal/kernel/**", "internal/service/**"}, []string{"internal/app/**"})
	if err != nil {
		t.Fatal(err)
	}
	large, err := bulk.Check(module)
	if err != nil {
		t.Fatal(err)
	}
	for name, found := range map[string][]arch.Finding{
		"bulk":       large,
		"imports":    arch.Imports(module, floors),
		"sizes":      sizes,
		"sleeps":     sleeps,
		"links":      links,
		"comments":   arch.Comments(module),
		"globals":    except("internal/testkit/", arch.Globals(module, compiled)), // testkit counts what it made across the tests of a process
		"names":      arch.Names(module, banned),
		"twins":      arch.Twins(module, shared),
		"uses":       arch.Uses(module, uses),
		"literals":   arch.Literals(module, literals),
		"goroutines": arch.Goroutines(module, []string{"internal/domain/**"}),
	} {
		t.Run(name, func(t *testing.T) { report(t, found) })
	}
}

// TestNoEffectWithoutAPermit proves that services and surfaces have no way to the world but through a driver that redeems a permit.
func TestNoEffectWithoutAPermit(t *testing.T) {
	report(t, effects.Check(load(t)))
}

func load(t *testing.T) *arch.Module {
	t.Helper()
	module, err := arch.Load(".")
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// except leaves out the findings in a folder.
func except(folder string, found []arch.Finding) []arch.Finding {
	return slices.DeleteFunc(found, func(f arch.Finding) bool { return strings.HasPrefix(f.At, folder) })
}

func report(t *testing.T, found []arch.Finding) {
	t.Helper()
	for _, f := range found {
		t.Error(f)
	}
}

// TestPictureOfTheImports compares docs/IMPORTS.md with the imports that it draws; -update draws them anew.
func TestPictureOfTheImports(t *testing.T) {
	const file, begin, end = "docs/IMPORTS.md", "<!-- generated by make generate: begin -->\n", "<!-- end -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no place for the picture: it stands between the lines %q and %q", file, begin, end)
	}
	want := fmt.Sprintf("%s%s%s%s%s", before, begin, arch.Picture(load(t), floors), end, after)
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(text) != want {
		t.Errorf("%s draws other imports than there are; run make generate", file)
	}
}
