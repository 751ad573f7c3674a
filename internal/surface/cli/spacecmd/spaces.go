// Package spacecmd has the commands about spaces, their files and snapshots, and artifacts.
package spacecmd

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/policycmd"
	"agentbox/internal/surface/cli/term"
)

// Spaces are the commands about spaces.
func Spaces(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("space", "Create, list and remove spaces: the isolated places where code runs",
		spaceCreate(i), spaceList(i), spaceShow(i), spaceExtend(i), spacePause(i), spaceResume(i), spacePorts(i), spacePreview(i),
		spaceSet(i), spaceRemove(i), spaceWatch(i),
		spaceSnapshots(i), spaceDiff(i), spaceRewind(i), spaceFork(i), spacePromote(i), spaceRoute(i), spacePolicy(i))
	c.Aliases = []string{"spaces"}
	return c
}

func spaceCreate(i *cmdline.Invocation) *cobra.Command {
	var (
		q                            client.SpaceRequest
		env, metadata                []string
		ttl, overrides, from         string
		memory, disk, file, out, tmp string
		cpu                          float64
		pids, openFiles              int64
	)
	c := &cobra.Command{
		Use: "create [NAME]", Short: "Create a space", Args: cobra.MaximumNArgs(1),
		Example: "  agentbox space create weather\n  agentbox space create tests --policy restrictive --memory 256MiB --ttl 1h --env CI=true " +
			"--from ./src.tar.gz",
	}
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) > 0 {
			q.Name = args[0]
		}
		if q.Env, q.Metadata, q.TTLSeconds, err = settings(env, metadata, ttl); err != nil {
			return err
		}
		limits := client.SpaceLimits{CPUMillis: int64(cpu * 1000), Pids: pids, OpenFiles: openFiles}
		for _, b := range []struct {
			text string
			into *int64
		}{{memory, &limits.MemoryBytes}, {disk, &limits.DiskBytes}, {file, &limits.FileBytes}, {out, &limits.OutputBytes},
			{tmp, &limits.TmpBytes}} {
			if b.text == "" {
				continue
			}
			if *b.into, err = cmdline.ParseSize(b.text); err != nil {
				return err
			}
		}
		if limits != (client.SpaceLimits{}) {
			q.Limits = &limits
		}
		if overrides != "" {
			if q.PolicyOverrides, err = os.ReadFile(overrides); err != nil {
				return cmdline.Unreadable(err, overrides)
			}
			if !json.Valid(q.PolicyOverrides) {
				return cmdline.Usage("%s is not JSON", overrides)
			}
		}
		if q.From, err = seed(from); err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		made, err := api.CreateSpace(cmd.Context(), q)
		if err != nil {
			return err
		}
		return i.Show(made, func(p *term.Printer) {
			p.Line("%s", made.ID)
			withheldIn(cmd.Context(), i, api, made)
			policycmd.WriteWarnings(i.Printer(i.Err), made.Warnings)
			for _, bound := range made.Unenforced {
				cmdline.Complain(i.Err, i.Printer(i.Err), fault.New(fault.Unavailable, "not_enforced", "this host does not enforce %s", bound))
			}
		})
	}
	f := c.Flags()
	f.StringVar(&q.Policy, "policy", "", "policy preset: restrictive, standard or permissive (default standard)")
	f.StringVar(&overrides, "overrides", "", "file with sections, as JSON, that replace those of the preset")
	f.StringVar(&q.Description, "description", "", "what it is for")
	f.StringVar(&q.Runtime, "runtime", "",
		"what its code runs in: auto, heavy or a tier's name (default auto: nano until a command needs more)")
	f.StringVar(&q.Tier, "tier", "", "the older name of --runtime")
	f.StringVar(&ttl, "ttl", "", "how long it lives, for example 90m or 7d (default 12h)")
	f.StringArrayVar(&env, "env", nil, "NAME=VALUE in the environment of every command; repeatable")
	f.StringArrayVar(&metadata, "metadata", nil, "NAME=VALUE for your own notes; repeatable")
	f.StringVar(&from, "from", "", "what its files begin with: a zip, tar or tar.gz file, or a folder that the daemon's configuration allows")
	f.StringVar(&memory, "memory", "", "memory of all its processes, for example 512MiB")
	f.Float64Var(&cpu, "cpus", 0, "cores, for example 1.5")
	f.Int64Var(&pids, "pids", 0, "processes and threads at once")
	f.StringVar(&disk, "disk", "", "bytes of its files")
	f.StringVar(&file, "file-size", "", "bytes of one file")
	f.StringVar(&out, "output", "", "bytes that one command may print")
	f.StringVar(&tmp, "tmp", "", "bytes of its private /tmp")
	f.Int64Var(&openFiles, "open-files", 0, "open files of one process")
	f.BoolVar(&q.BestEffort, "best-effort", false, "accept a host that cannot enforce every limit")
	return c
}

// maxArchive is the largest archive that a space can start from over the API.
const maxArchive = 20 << 20

// seed reads the seed of a space: it sends an archive, and names a folder to the daemon.
func seed(from string) (*client.SpaceSeed, error) {
	if from == "" {
		return nil, nil
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, cmdline.Unreadable(err, from)
	}
	if info.IsDir() {
		abs, err := cmdline.Absolute(from)
		return &client.SpaceSeed{Path: abs}, err
	}
	if info.Size() > maxArchive {
		return nil, fault.New(fault.Exhausted, "archive_too_large", "%s has %s; an archive may have %s", from, term.Bytesize(info.Size()),
			term.Bytesize(maxArchive)).
			With("make the space first, then use: agentbox files put")
	}
	archive, err := os.ReadFile(from)
	if err != nil {
		return nil, cmdline.Unreadable(err, from)
	}
	return &client.SpaceSeed{Archive: archive}, nil
}

func spaceList(i *cmdline.Invocation) *cobra.Command {
	var status string
	c := &cobra.Command{Use: "list", Aliases: []string{"ls"}, Short: "List the spaces that live, the newest first", Args: cobra.NoArgs}
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		found, err := cmdline.All(func(cursor string) ([]space.Space, string, error) {
			page, err := api.Spaces(cmd.Context(), client.SpaceFilter{Status: status, Page: client.Page{Cursor: cursor, Limit: 100}})
			return page.Spaces, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("spaces", found, "", func(p *term.Printer) {
			now := i.Clock.Now()
			rows := make([][]term.Cell, len(found))
			for n, s := range found {
				rows[n] = []term.Cell{term.Text(string(s.ID)), term.Text(string(s.Status)), term.Text(s.Tier), term.Text(s.Policy),
					{Text: term.Ahead(now, s.ExpiresAt), Colour: term.Faint},
					term.Text(s.Name)}
			}
			heads := []string{"space", "status", "tier", "policy", "expires", "name"}
			if p.Width > 0 && p.Width < 100 { // a person looks for the name; space show has the tier
				heads = slices.Delete(heads, 2, 3)
				for n := range rows {
					rows[n] = slices.Delete(rows[n], 2, 3)
				}
			}
			p.Table("There are no spaces; make one with: agentbox space create", heads, rows)
		})
	}
	c.Flags().StringVar(&status, "status", "", "only those: creating, ready, running, paused or destroyed")
	return c
}

// onSpace makes a command about one space that shows it afterwards.
func onSpace(i *cmdline.Invocation, use, short string, do func(ctx context.Context, api *client.Client, s id.Space) (space.Space,
	error)) *cobra.Command {
	return &cobra.Command{
		Use: use + " SPACE", Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			named, err := i.Named(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			s, err := do(cmd.Context(), api, named)
			if err != nil {
				return err
			}
			return i.Show(s, func(p *term.Printer) {
				writeSpace(p, i, s)
				policycmd.WriteWarnings(i.Printer(i.Err), s.Warnings)
			})
		},
	}
}

func writeSpace(p *term.Printer, i *cmdline.Invocation, s space.Space) {
	now := i.Clock.Now()
	l := s.Limits
	paused := ""
	if s.Status == space.Paused {
		paused = "a run waits for a person: agentbox approvals"
	}
	if s.Pause != nil {
		paused = term.Ago(now, s.Pause.At) + " by " + string(s.Pause.By)
		if s.Pause.Reason != "" {
			paused += ": " + s.Pause.Reason
		}
	}
	p.Fields(
		"space", string(s.ID), "name", s.Name, "description", s.Description, "status", string(s.Status), "reason", s.Reason,
		"paused", paused,
		"fork of", string(s.ForkedFrom), "tier", s.Tier, "runtime", s.Runtime, "policy", s.Policy, "bundle", s.Bundle.String(), "room",
		string(s.Room),
		"made", term.Ago(now, s.CreatedAt)+" by "+string(s.CreatedBy), "expires", term.Ahead(now, s.ExpiresAt),
		"limits", strings.Join([]string{
			term.Bytesize(l.MemoryBytes) + " memory", cores(l.CPUMillis), term.Trimmed(float64(l.Pids)) +
				" processes",
			term.Bytesize(l.DiskBytes) + " files", term.Bytesize(l.FileBytes) + " a file", term.Bytesize(l.OutputBytes) + " output",
		}, ", "),
		"not enforced", strings.Join(s.Unenforced, ", "), "environment", term.Assignments(s.Env), "metadata", term.Assignments(s.Metadata),
	)
}

// cores returns a number of processors in words.
func cores(millis int64) string {
	if millis == 1000 {
		return "1 core"
	}
	return term.Trimmed(float64(millis)/1000) + " cores"
}

func spaceShow(i *cmdline.Invocation) *cobra.Command {
	return onSpace(i, "show", "Show a space", func(ctx context.Context, api *client.Client, s id.Space) (space.Space, error) {
		return api.Space(ctx, s)
	})
}

func spaceExtend(i *cmdline.Invocation) *cobra.Command {
	var by string
	c := onSpace(i, "extend", "Set how long a space lives, from now on", func(ctx context.Context, api *client.Client,
		s id.Space) (space.Space, error) {
		d, err := cmdline.ParseSpan(by)
		if err != nil {
			return space.Space{}, err
		}
		return api.ExtendSpace(ctx, s, d)
	})
	c.Flags().StringVar(&by, "for", "12h", "how long from now, for example 90m or 7d")
	return c
}

func spaceSet(i *cmdline.Invocation) *cobra.Command {
	var (
		name, description string
		env, metadata     []string
	)
	var c *cobra.Command
	c = onSpace(i, "set", "Change a space's name, description, environment or metadata", func(ctx context.Context, api *client.Client,
		s id.Space) (space.Space, error) {
		var change client.SpaceChange
		var err error
		if c.Flags().Changed("name") {
			change.Name = &name
		}
		if c.Flags().Changed("description") {
			change.Description = &description
		}
		if change.Env, err = replaced(c, "env", env); err != nil {
			return space.Space{}, err
		}
		if change.Metadata, err = replaced(c, "metadata", metadata); err != nil {
			return space.Space{}, err
		}
		if change == (client.SpaceChange{}) {
			return space.Space{}, cmdline.Usage("nothing to change; name a flag: --name, --description, --env or --metadata")
		}
		return api.UpdateSpace(ctx, s, change)
	})
	f := c.Flags()
	f.StringVar(&name, "name", "", "its name")
	f.StringVar(&description, "description", "", "what it is for")
	f.StringArrayVar(&env, "env", nil, "NAME=VALUE, replaces the whole environment; repeatable; an empty one removes it")
	f.StringArrayVar(&metadata, "metadata", nil, "NAME=VALUE, replaces all metadata; repeatable; an empty one removes it")
	return c
}

// replaced reads a map that replaces another as a whole; a single empty value empties it.
func replaced(c *cobra.Command, flag string, values []string) (*map[string]string, error) {
	if !c.Flags().Changed(flag) {
		return nil, nil
	}
	if len(values) == 1 && values[0] == "" {
		return &map[string]string{}, nil
	}
	m, err := cmdline.Pairs(flag, values)
	return &m, err
}

func spacePolicy(i *cmdline.Invocation) *cobra.Command {
	var t policycmd.Trial
	c := onSpace(i, "policy", "Pin another policy to a space", func(ctx context.Context, api *client.Client, s id.Space) (space.Space, error) {
		q, err := t.Request()
		if err != nil {
			return space.Space{}, err
		}
		if q.Policy == "" && q.YAML == "" && q.Cedar == "" {
			return space.Space{}, cmdline.Usage("name the policy: --policy or --file; `agentbox policy show %s` shows the present one", s)
		}
		return api.SetSpacePolicy(ctx, s, client.PolicyChoice{Policy: q.Policy, YAML: q.YAML, Cedar: q.Cedar})
	})
	c.Long = "The policy judges all later actions in the space, and the daemon moves files that it withholds out of the view of code. " +
		"If it withholds other files than the\n" +
		"policy before, the interpreter contexts of the space end. It takes an operator. While a run is under way, or waits for a person, the " +
		"daemon refuses the change."
	c.Example = "  agentbox space policy spc_... --policy permissive\n  agentbox space policy spc_... --file work.yaml"
	c.Flags().StringVar(&t.Preset, "policy", "", "preset: restrictive, standard or permissive")
	c.Flags().StringVar(&t.Rules, "file", "", "policy of a file: the short form (.yaml) or Cedar (.cedar)")
	return c
}

func spacePromote(i *cmdline.Invocation) *cobra.Command {
	var to, reason string
	c := onSpace(i, "promote", "Run a space's code in a heavier tier from now on", func(ctx context.Context, api *client.Client,
		s id.Space) (space.Space, error) {
		return api.PromoteSpace(ctx, s, to, reason)
	})
	c.Long = "Its files, its environment and its limits stay; what lies in its /tmp goes. It never goes back.\nA space with the runtime " +
		"auto is promoted by itself when a command needs it."
	c.Flags().StringVar(&to, "to", "", "the tier, for example namespace (default: the strongest)")
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	return c
}

func spacePause(i *cmdline.Invocation) *cobra.Command {
	var reason string
	var onRun bool
	c := onSpace(i, "pause", "Stop the processes of a space until it is resumed", func(ctx context.Context, api *client.Client,
		s id.Space) (space.Space, error) {
		return api.PauseSpace(ctx, s, reason, onRun)
	})
	c.Long = "Its processes use no processor time, the time limits of its commands stop, and its files can be read. A run that is sent " +
		"to it waits.\nThe end of its life does not move. If the daemon ends, the processes end too; the space keeps its files."
	c.Flags().StringVar(&reason, "reason", "", "why; it stands in the log")
	c.Flags().BoolVar(&onRun, "resume-on-run", false, "a run that is sent to the space resumes it")
	return c
}

func spaceResume(i *cmdline.Invocation) *cobra.Command {
	var ttl string
	c := onSpace(i, "resume", "Let a paused space go on", func(ctx context.Context, api *client.Client, s id.Space) (space.Space, error) {
		var d time.Duration
		if ttl != "" {
			var err error
			if d, err = cmdline.ParseSpan(ttl); err != nil {
				return space.Space{}, err
			}
		}
		return api.ResumeSpace(ctx, s, d)
	})
	c.Flags().StringVar(&ttl, "ttl", "", "how long it lives from now, for example 2h (default: the end of its life stays)")
	return c
}

func spaceRoute(i *cmdline.Invocation) *cobra.Command {
	var cwd string
	c := &cobra.Command{
		Use: "route SPACE -- COMMAND...", Short: "Show in which tier a command would run, and why", Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: i.CompleteSpaces,
		Long:              "It reads the command and the files that it names, and runs nothing.",
		Example:           "  agentbox space route weather -- 'python3 report.py | sort'",
	}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		line, err := commandLine(args[1:])
		if err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		named, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		found, err := api.RouteCommand(cmd.Context(), named, line, cwd)
		if err != nil {
			return err
		}
		return i.Show(found, func(p *term.Printer) {
			p.Line("%s", found.To)
			for _, n := range found.Needs {
				p.Line("%s %s", p.Paint(term.Faint, "needs"), term.OneLine(n.Lack().String(), 200))
			}
			if found.To != found.Tier {
				p.Line("%s", p.Paint(term.Faint, "the space is promoted from "+found.Tier+" before it runs"))
			} else if len(found.Needs) > 0 {
				p.Line("%s", p.Paint(term.Faint, "the space stays in "+found.Tier+"; its runtime is "+found.Runtime))
			}
		})
	}
	c.Flags().StringVar(&cwd, "cwd", "", "where it would run, relative to the space's files")
	return c
}

// commandLine is the text of a command: of one argument as it is, of several as the words that they are.
func commandLine(args []string) (string, error) {
	if len(args) == 1 {
		return args[0], nil
	}
	words := make([]string, len(args))
	for n, arg := range args {
		var err error
		if words[n], err = syntax.Quote(arg, syntax.LangBash); err != nil {
			return "", cmdline.Usage("the argument %s cannot be written for a shell", term.OneLine(arg, 60))
		}
	}
	return strings.Join(words, " "), nil
}

func spaceRemove(i *cmdline.Invocation) *cobra.Command {
	c := onSpace(i, "rm", "Destroy a space: its runs end, its files go, its history stays", func(ctx context.Context, api *client.Client,
		s id.Space) (space.Space, error) {
		return api.DestroySpace(ctx, s)
	})
	c.Aliases = []string{"destroy", "delete"}
	return c
}

// settings reads what a new space is given whatever its files begin as. Without a time to live the daemon's own is meant.
func settings(env, metadata []string, ttl string) (variables, labels map[string]string, seconds int64, err error) {
	if variables, err = cmdline.Pairs("env", env); err != nil {
		return nil, nil, 0, err
	}
	if labels, err = cmdline.Pairs("metadata", metadata); err != nil {
		return nil, nil, 0, err
	}
	if ttl != "" {
		d, err := cmdline.ParseSpan(ttl)
		if err != nil {
			return nil, nil, 0, err
		}
		seconds = int64(d.Seconds())
	}
	return variables, labels, seconds, nil
}
