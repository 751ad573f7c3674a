// Package hostcmd has the commands about the daemon and its data: up, doctor, demo, workspaces, nodes, backups and modules.
package hostcmd

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Up runs a daemon in the foreground.
func Up(i *cmdline.Invocation) *cobra.Command {
	var d cmdline.Daemon
	var format string
	var quota, keepFor string
	c := &cobra.Command{
		Use: "up", Short: "Start the daemon in the foreground; Ctrl-C stops it", Args: cobra.NoArgs,
		Long: "Up serves the HTTP API on a loopback address. The data directory, made on the first start, holds the log, the files of the " +
			"spaces and\n" +
			"owner.key, with which the other commands find and use the daemon by themselves. After a crash it goes on where it was.",
		Example: "  agentbox up\n  agentbox up --data ./state --listen 127.0.0.1:0",
	}
	flags(&d, c)
	c.Flags().StringVar(&d.Listen, "listen", "", "host:port on a loopback address; port 0 takes a free one (default 127.0.0.1:7433)")
	c.Flags().StringVar(&d.Advertise, "advertise", "",
		"address where the other daemons of a database reach this one, as in https://a.example (default: http and the listen address)")
	c.Flags().StringArrayVar(&d.Sources, "allow-from", nil, "folder of this machine from which spaces may be filled; repeatable")
	c.Flags().StringVar(&d.Runtimes, "runtime-rules", "",
		"file with the rules of which commands need a heavier tier than nano (default: those of this program)")
	c.Flags().BoolVar(&d.Shadow, "shadow", false,
		"record what the policies of spaces would refuse, and let it pass; actions outside (policy evaluate) are held all the same")
	c.Flags().BoolVar(&d.Floating, "floating-pins", false,
		"run agents also when a pin of their blueprint is missing or does not fit; for work on a blueprint")
	c.Flags().StringVar(&d.Engine, "engine", "embedded",
		"who executes runs of operations that wait for an engine: embedded (the daemon) or external (other programs)")
	c.Flags().IntVar(&d.EffectsPerHour, "effects-per-hour", 0,
		"how many effects one principal may cause within an hour; 0 means without limit")
	c.Flags().StringVar(&quota, "content-quota", "",
		"how much content the log of a workspace may name, for example 200G; 0 means without limit (default 64 GiB)")
	c.Flags().IntVar(&d.KeepSnapshots, "keep-snapshots", 0, "how many snapshots of a space gc keeps; 0 means as many as fit")
	c.Flags().StringVar(&keepFor, "keep-snapshots-for", "",
		"how long gc keeps snapshots, for example 30d; the newest stays (default: without limit)")
	c.Flags().DurationVar(&d.ApprovalTime, "approval-time", 0,
		"time after which a question that nobody answered expires, from 1s to 168h (default 24h)")
	c.Flags().DurationVar(&d.ClaimTime, "claim-time", 0,
		"time after which another engine may claim the run of a silent one, from 1s to 1h (default 30s)")
	c.Flags().StringVar(&d.SigningKey, "signing-key", "",
		"file of the key that signs checkpoints (default: signing.key in the data directory)")
	c.Flags().StringArrayVar(&d.Retention, "retention", nil,
		"TYPE=TIME: how long the data of events of a type are kept before they are redacted, for example run.*=30d; repeatable "+
			"(default: for good)")
	c.Flags().StringArrayVar(&d.Rates, "rate", nil,
		"NAME=NUMBER: requests that one principal may make in a minute, up to 1000000. NAME is spaces, runs, files, claims, general or "+
			"failures; streams counts those open at once; owner is for the spaces, runs and files of an owner; repeatable (default: "+
			"spaces=10 runs=60 files=300 claims=1000 general=1000 failures=60 streams=32 owner=1000)")
	c.Flags().StringArrayVar(&d.Witnesses, "witness", nil,
		"folder or http address of a witness, which gets the checkpoints each minute; repeatable")
	c.Flags().StringVar(&d.Traces, "traces", "",
		"address of an OTLP/HTTP collector that gets the traces, for example http://127.0.0.1:4318 (default: "+
			"OTEL_EXPORTER_OTLP_ENDPOINT, else none)")
	c.Flags().BoolVarP(&d.Verbose, "verbose", "v", false, "log every request")
	c.Flags().StringVar(&format, "log-format", "text", "how the daemon's own log is written to standard error: text or json")
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		d.JSONLog = format == "json"
		defer func() {
			if err != nil && d.JSONLog { // it is a line of what is written to standard error
				i.JSON = true
			}
		}()
		if d.Place, err = i.Place(); err != nil {
			return err
		}
		if err := root(&d); err != nil {
			return err
		}
		for _, flag := range []string{"approval-time", "claim-time"} {
			if cmd.Flags().Changed(flag) && cmd.Flags().Lookup(flag).Value.String() == "0s" {
				return cmdline.Usage("--%s 0s: name a time, or leave the flag out", flag)
			}
		}
		if d.Engine != "embedded" && d.Engine != "external" {
			return cmdline.Usage("--engine %s: write embedded or external", term.OneLine(d.Engine, 40))
		}
		if format != "text" && format != "json" {
			return cmdline.Usage("--log-format %s: write text or json", term.OneLine(format, 40))
		}
		if err := keep(&d, quota, keepFor); err != nil {
			return err
		}
		if d.SigningKey != "" {
			if d.SigningKey, err = cmdline.Absolute(d.SigningKey); err != nil {
				return err
			}
		}
		if d.Runtimes != "" {
			if d.Runtimes, err = cmdline.Absolute(d.Runtimes); err != nil {
				return err
			}
		}
		for n, where := range d.Witnesses {
			if d.Witnesses[n], err = auditcmd.Witnessed(where); err != nil {
				return err
			}
		}
		for n, folder := range d.Sources {
			if d.Sources[n], err = cmdline.Absolute(folder); err != nil {
				return err
			}
		}
		told := func() {} // waits for the line that is being written
		defer func() { told() }()
		return i.Up(cmd.Context(), d, func(addr string, cold bool) {
			_ = i.Show(map[string]any{"url": "http://" + addr, "data": d.DataDir, "shadow": d.Shadow,
				"floating_pins": d.Floating, "cold": cold}, func(p *term.Printer) {
				p.Line("%s serves on %s", p.Paint(term.Bold, "agentbox "+i.Version), p.Paint(term.Cyan, "http://"+addr))
				p.Fields("data", d.DataDir, "key", d.DataDir+"/owner.key (the other commands find it by themselves)", "API", "http://"+addr+"/v1/docs")
				if d.Shadow {
					p.Line("%s", p.Paint(term.Yellow,
						"shadow mode: what the policies of spaces would refuse is recorded and done all the same; actions outside are held"))
				}
				if d.Floating {
					p.Line("%s", p.Paint(term.Yellow, "floating pins: agents run also when a pin of their blueprint is missing or does not fit"))
				}
				if cold {
					p.Line("%s", "it compiles Python and JavaScript for this machine, once, in the background; until that is done, commands that need "+
						"one wait and say so")
				}
				p.Line("%s", p.Paint(term.Faint, "next, in another terminal: agentbox space create; end the daemon with Ctrl-C"))
			})
			told = tellOfStop(cmd.Context(), i, d.JSONLog)
		})
	}
	return c
}

// tellOfStop says that the daemon stops when ctx ends. The function that it returns waits until the line is written, so that nothing is
// written beside it.
func tellOfStop(ctx context.Context, i *cmdline.Invocation, inJSON bool) (told func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		if inJSON {
			slog.New(slog.NewJSONHandler(i.Err, nil)).Info("the daemon stops: it ends what runs; the next start goes on with what waits",
				"code", "daemon_stops")
			return
		}
		i.Printer(i.Err).Line("agentbox: the daemon stops: it ends what runs; the next start goes on with what waits")
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}

func flags(d *cmdline.Daemon, c *cobra.Command) {
	c.Flags().StringVar(&d.RootFS, "rootfs", "",
		"folder that is the read-only root of the spaces, or host for this machine's own programs (default: the one made by make rootfs, else "+
			"host)")
}

// keep reads how much is kept.
func keep(d *cmdline.Daemon, quota, keepFor string) (err error) {
	if quota != "" {
		if d.ContentQuota, err = cmdline.ParseSize(quota); err != nil {
			return err
		}
		if d.ContentQuota == 0 {
			d.ContentQuota = -1
		}
	}
	if keepFor != "" {
		if d.KeepSnapshotsFor, err = cmdline.ParseSpan(keepFor); err != nil {
			return err
		}
		if d.KeepSnapshotsFor%time.Second != 0 {
			return cmdline.Usage("--keep-snapshots-for %s: write whole seconds", term.OneLine(keepFor, 40))
		}
	}
	return nil
}

// root makes the folder of the root absolute, unless it is the host's own.
func root(d *cmdline.Daemon) (err error) {
	if d.RootFS != "" && d.RootFS != "host" {
		d.RootFS, err = cmdline.Absolute(d.RootFS)
	}
	return err
}

// diagnosis is the JSON of the doctor's findings.
type diagnosis struct {
	OK    bool           `json:"ok"` // a space can be made in some tier
	Tiers []space.Report `json:"tiers"`

	Problems []string `json:"problems"` // of files that people write into the data directory
}

// Doctor shows which isolation tiers the host supports.
func Doctor(i *cmdline.Invocation) *cobra.Command {
	var d cmdline.Daemon
	c := &cobra.Command{
		Use: "doctor", Short: "Check what this machine can isolate, and how to fix what is missing", Args: cobra.NoArgs,
		Long: "Doctor starts a real space of every tier and tries each of its promises. It needs no daemon. It exits with 8 when no space can " +
			"be made.",
	}
	flags(&d, c)
	c.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if d.Place, err = i.Place(); err != nil {
			return err
		}
		if err := root(&d); err != nil {
			return err
		}
		reports, err := i.Doctor(cmd.Context(), d)
		if err != nil {
			return err
		}
		found := diagnosis{Tiers: reports, Problems: []string{}}
		if i.Problems != nil {
			found.Problems = append(found.Problems, i.Problems(d)...)
		}
		for _, r := range reports {
			found.OK = found.OK || r.OK || r.Limited
		}
		if err := i.Show(found, func(p *term.Printer) {
			for _, r := range reports {
				writeReport(p, r)
			}
			for _, problem := range found.Problems {
				p.Line("%s %s", p.Paint(term.Red, "✗"), term.Plain(problem))
			}
		}); err != nil {
			return err
		}
		if found.OK {
			return nil
		}
		return &cmdline.Ended{Code: cmdline.ExitUnavailable}
	}
	return c
}

// writeReport writes a tier's report about the host.
func writeReport(p *term.Printer, r space.Report) {
	status, colour := "no space can be made", term.Red
	switch {
	case r.OK:
		status, colour = "works, with every limit enforced", term.Green
	case r.Limited:
		status, colour = "works with --best-effort only: not every limit can be enforced", term.Yellow
	}
	p.Line("tier %s: %s", p.Paint(term.Bold, term.Plain(r.Tier)), p.Paint(colour, status))
	if r.Start > 0 {
		p.Line("  a space starts in %s", term.Duration(r.Start))
	}
	width := 0
	for _, c := range r.Checks {
		width = max(width, len([]rune(term.OneLine(c.Name, 0))))
	}
	for _, c := range r.Checks {
		mark := p.Paint(term.Green, "✓")
		if !c.OK {
			mark = p.Paint(term.Red, "✗")
		}
		p.Line("  %s %s  %s", mark, term.PadRight(term.OneLine(c.Name, 0), width), p.Paint(term.Faint, term.OneLine(c.Detail, 0)))
		if !c.OK && c.Mend != "" {
			p.Line("      mend: %s", term.Plain(c.Mend))
		}
	}
	if r.Offer != nil {
		writeOffer(p, *r.Offer)
	}
}

// notable are the programs that a person looks for in a tier; the others are counted.
var notable = []string{
	"bash", "python3", "pip", "uv", "node", "bun", "npm", "git", "gcc", "make", "jq", "rg", "sqlite3", "curl", "tar", "zip", "cargo", "go",
	"java", "ruby",
}

// writeOffer writes the programs and interpreters of a tier's spaces.
func writeOffer(p *term.Printer, o space.Offer) {
	reach := "none: what needs another host is refused"
	if o.Network {
		reach = "yes"
	}
	var programs []string
	for _, name := range notable {
		if o.Known() && o.Program(name) {
			programs = append(programs, name)
		}
	}
	p.Line("  has: network   %s", p.Paint(term.Faint, reach))
	p.Line("       programs  %s", p.Paint(term.Faint, fmt.Sprintf("%d, with %s", len(o.Programs), term.OneLine(strings.Join(programs, " "),
		0))))
	python := "its own library"
	switch {
	case len(o.Modules) == 0:
		python = "none"
	case len(o.Packages) > 0:
		python += fmt.Sprintf(" and %d packages: %s", len(o.Packages), term.OneLine(strings.Join(o.Packages, " "), 0))
	}
	p.Line("       python    %s", p.Paint(term.Faint, python))
}
