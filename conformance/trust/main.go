// Command trust lets a stranger check the promises of Agentbox against their own installation.
//
// It uses the tools of a stranger: the HTTP API, the released program, and stock libraries for canonical JSON, signed notes and Merkle
// trees. Of Agentbox's own code it uses only the disk that remembers (internal/testkit/platter). On the live installation it works in its
// own space and removes it afterwards. Destructive checks run against daemons that it starts from the same program, in a folder of its own.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// The exit codes.
const (
	exitHeld        = 0   // every requested property was shown
	exitBroken      = 1   // at least one was not
	exitUsage       = 2   // nothing was tried
	exitInterrupted = 130 // a person interrupted it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// options are the options of the command line.
type options struct {
	url, data, key, bin, temp, only string
	json, failFast                  bool
	moments, kills, tries           int
	seed                            uint64

	over http.RoundTripper // what requests go over
}

func run(ctx context.Context, args []string, out, progress io.Writer) int {
	o, err := parse(args, progress)
	if errors.Is(err, flag.ErrHelp) {
		return exitHeld
	}
	if err != nil {
		fmt.Fprintln(progress, "trust:", err)
		return exitUsage
	}
	return examine(ctx, o, out, progress)
}

// examine does what the options say, and returns the exit code.
func examine(ctx context.Context, o options, out, progress io.Writer) int {
	x, err := prepare(ctx, o, progress)
	if err != nil {
		fmt.Fprintln(progress, "trust:", err)
		return exitUsage
	}
	results, err := x.all(ctx, o.only)
	if err = errors.Join(err, x.close()); err != nil {
		fmt.Fprintln(progress, "trust:", err)
	}
	if writeErr := report(out, results, errors.Is(err, errInterrupted), o.json); writeErr != nil {
		fmt.Fprintln(progress, "trust:", writeErr)
		return exitUsage
	}
	for _, r := range results {
		if !r.Held {
			return exitBroken
		}
	}
	if errors.Is(err, errInterrupted) {
		return exitInterrupted
	}
	if err != nil || len(results) == 0 {
		return exitBroken
	}
	return exitHeld
}

func parse(args []string, complaints io.Writer) (options, error) {
	o := options{over: &http.Transport{MaxIdleConnsPerHost: racers}}
	f := flag.NewFlagSet("trust", flag.ContinueOnError)
	f.SetOutput(complaints)
	f.Usage = func() {
		fmt.Fprintln(complaints,
			"usage: go run ./conformance/trust [--url URL] --data DIR [--key KEY|FILE] [--agentbox PROGRAM] [--only P-Bind,...] [--json]")
		f.PrintDefaults()
	}
	home, _ := os.UserHomeDir()
	f.StringVar(&o.data, "data", filepath.Join(home, ".agentbox"), "data directory of the installation; it is only read")
	f.StringVar(&o.url, "url", "", "address of the daemon (default: the one that daemon.json in the data directory names)")
	f.StringVar(&o.key, "key", "", "API key of an owner, or a file that holds it (default: owner.key in the data directory)")
	f.StringVar(&o.bin, "agentbox", "agentbox", "the released program")
	f.StringVar(&o.temp, "temp", "", "folder for copies and daemons of its own (default: the system's)")
	f.StringVar(&o.only, "only", "", "properties to check, with commas between them (default: all)")
	f.BoolVar(&o.json, "json", false, "write the results as JSON")
	f.IntVar(&o.moments, "moments", 24,
		"P-Crash: at how many of the moments of a traced daemon the power fails; 0 means at each, which takes hours")
	f.IntVar(&o.kills, "kills", 8, "P-Once and P-Crash: how often a daemon that works is killed")
	f.IntVar(&o.tries, "tries", 3, "P-Verify: at how many places each kind of change is made")
	f.BoolVar(&o.failFast, "fail-fast", false, "stop at the first trial that fails")
	f.Uint64Var(&o.seed, "seed", 1, "what chance begins with")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("%q is not a flag; --help lists them", f.Arg(0))
	case o.moments < 0 || o.kills < 1 || o.tries < 1:
		return o, errors.New("--moments is 0 or more, --kills and --tries are 1 or more")
	}
	return o, nil
}

// prepare finds the parts of the installation and makes a folder for everything that this program makes.
func prepare(ctx context.Context, o options, progress io.Writer) (*examiner, error) {
	bin, err := exec.LookPath(o.bin)
	if err != nil {
		return nil, fmt.Errorf("find the program: %w; name it with --agentbox", err)
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return nil, err
	}
	live, err := locate(o.data, o.url, o.key, o.over)
	if err != nil {
		return nil, err
	}
	if err := live.ready(ctx); err != nil {
		return nil, fmt.Errorf("the daemon at %s: %w", live.url, err)
	}
	dir, err := os.MkdirTemp(o.temp, "agentbox-trust-")
	if err != nil {
		return nil, err
	}
	return &examiner{
		options: o, bin: bin, live: live, dir: dir, progress: progress, began: time.Now(),
		name: "trust-" + filepath.Base(dir)[strings.LastIndex(filepath.Base(dir), "-")+1:],
	}, nil
}
