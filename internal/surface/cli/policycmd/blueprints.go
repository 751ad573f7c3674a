package policycmd

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Blueprints are the commands about the definitions of agents.
func Blueprints(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("blueprint", "Define agents: check, pin, register and compare blueprints", blueprintInit(i), blueprintValidate(i),
		blueprintLock(i), blueprintVerify(i), blueprintDiff(i), blueprintRegister(i), blueprintList(i), blueprintShow(i), blueprintRemove(i))
	c.Aliases = []string{"blueprints"}
	c.Example = "  agentbox blueprint init reporter.yaml\n  agentbox blueprint validate reporter.yaml\n" +
		"  agentbox blueprint lock reporter.yaml\n  agentbox blueprint register reporter.yaml"
	return c
}

// firstBlueprint is the blueprint that init writes. NAME is replaced.
const firstBlueprint = `# The definition of an agent. Every key is described by: agentbox blueprint validate --keys
api_version: 1
name: NAME
description: does what it is told in a space of its own
adapter:
  kind: internal            # the daemon's own loop
models:
  default: main             # the name of a model
instructions: |
  You work in an isolated space. Say in a sentence what you are about to do, do it with the tools,
  check the result, and end with a short answer. Put results for the person into out/: only the files
  there are kept when you are done.
policy: standard            # restrictive, standard or permissive
artifacts: ["out/**"]       # files of the space that a run keeps when it ends
limits:
  steps: 50                 # requests to the model
  seconds: 900
`

func blueprintInit(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{
		Use: "init FILE", Short: "Write a blueprint to begin with", Args: cobra.ExactArgs(1),
		Example: "  agentbox blueprint init reporter.yaml",
	}
	c.RunE = func(_ *cobra.Command, args []string) error {
		name := strings.TrimSuffix(strings.TrimSuffix(args[0][strings.LastIndexByte(args[0], '/')+1:], ".yaml"), ".yml")
		if problem := blueprint.NameField().Text(name); problem != "" {
			return cmdline.Usage("the name of the file becomes the blueprint's name, and %q %s", term.OneLine(name, 100), problem)
		}
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			return fault.New(fault.Conflict, "file_exists", "%s is there already; name another file", term.OneLine(args[0], 200))
		}
		if err != nil {
			return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(args[0], 200))
		}
		_, err = f.WriteString(strings.Replace(firstBlueprint, "NAME", name, 1))
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return i.Show(map[string]string{"file": args[0], "name": name}, func(p *term.Printer) {
			p.Line("%s is written. Next: agentbox blueprint validate %s", term.Plain(args[0]), cmdline.Word(args[0]))
		})
	}
	return c
}

// readBlueprint reads the text of a blueprint from a file, or from standard input for -.
func readBlueprint(i *cmdline.Invocation, file string) (string, error) {
	var in io.Reader = i.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return "", fault.Wrap(err, fault.NotFound, "file_unreadable", "%s cannot be read", term.OneLine(file, 200))
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, blueprint.MaxBytes+1))
	if err == nil && len(text) > blueprint.MaxBytes {
		err = fault.New(fault.Invalid, "blueprint_invalid", "the blueprint has more than %d bytes, which is the limit", blueprint.MaxBytes)
	}
	return string(text), err
}

// problemLine is a problem as one line.
func problemLine(file string, b blueprint.Problem) string {
	place := file
	if b.Line > 0 {
		place += ":" + strconv.Itoa(b.Line) + ":" + strconv.Itoa(b.Column)
	}
	what := b.Message
	if b.Path != "" && !strings.Contains(what, "has no key") {
		what = b.Path + " " + what
	}
	return place + ": " + what
}

func blueprintValidate(i *cmdline.Invocation) *cobra.Command {
	var keys bool
	c := &cobra.Command{
		Use: "validate [FILE]", Short: "Check a blueprint, and say what is wrong with line and column", Args: cobra.MaximumNArgs(1),
		Long: "Validate says everything that is wrong in a blueprint at once. It ends with 2 if something is. With --keys it lists every key " +
			"that a blueprint can have; with --keys --json it writes the JSON Schema, for editors.",
	}
	c.Flags().BoolVar(&keys, "keys", false, "list every key that a blueprint can have")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if keys {
			return blueprintKeys(i)
		}
		if len(args) == 0 {
			return cmdline.Usage("name the file of the blueprint, or - for standard input")
		}
		api, _, checked, err := checkBlueprint(i, cmd, args[0])
		if err != nil {
			return err
		}
		var hints []string
		if !i.JSON {
			hints = cmdline.MissingHints(cmd.Context(), api, checked.Drift)
		}
		err = i.Show(checked, func(p *term.Printer) {
			for _, b := range checked.Problems {
				p.Line("%s", term.Plain(problemLine(args[0], b)))
			}
			if checked.Valid {
				p.Line("%s is a blueprint: %s", term.Plain(args[0]), checked.Name)
				p.Fields("hash", checked.Hash, "not pinned", references(checked.Unpinned))
				writeAdvice(p, args[0], checked.Drift, hints)
			}
		})
		if err == nil && !checked.Valid {
			err = &cmdline.Ended{Code: cmdline.ExitInvalid}
		}
		return err
	}
	return c
}

// writeAdvice warns about what a valid blueprint names and is not there, with what mends it, and says what to do next.
func writeAdvice(p *term.Printer, file string, drift []blueprint.Drift, hints []string) {
	for _, d := range drift {
		if d.Now == "" {
			p.Line("%s", p.Paint(term.Yellow, "warning: "+term.Plain(d.Unfit())))
		}
	}
	for _, hint := range hints {
		p.Line("%s", term.Plain(hint))
	}
	switch {
	case file == "-" || len(hints) > 0:
	case len(drift) > 0:
		p.Line("Next: agentbox blueprint lock %s", cmdline.Word(file))
	default:
		p.Line("Next: agentbox blueprint register %s", cmdline.Word(file))
	}
}

func references(all []blueprint.Reference) string {
	names := make([]string, len(all))
	for n, r := range all {
		names[n] = r.String()
	}
	return strings.Join(names, ", ")
}

// blueprintKeys lists the keys of a blueprint.
func blueprintKeys(i *cmdline.Invocation) error {
	if i.JSON {
		schema, err := blueprint.Schema()
		if err == nil {
			_, err = i.Out.Write(append(schema, '\n'))
		}
		return err
	}
	return i.Show(nil, func(p *term.Printer) {
		var rows [][]term.Cell
		var list func(fields []blueprint.Field, prefix string)
		list = func(fields []blueprint.Field, prefix string) {
			for _, f := range fields {
				rows = append(rows, []term.Cell{term.Text(prefix + f.Name), term.Text(string(f.Type)), term.Text(f.Doc)})
				list(f.Fields, prefix+f.Name+".")
			}
		}
		list(blueprint.Fields(), "")
		p.Table("", []string{"key", "type", "what"}, rows)
	})
}

// checkBlueprint reads a file and has the daemon check it.
func checkBlueprint(i *cmdline.Invocation, cmd *cobra.Command, file string) (api *client.Client, text string,
	checked client.CheckedBlueprint, err error) {
	if text, err = readBlueprint(i, file); err != nil {
		return nil, "", checked, err
	}
	if api, err = i.Connect(cmd.Context()); err != nil {
		return nil, "", checked, err
	}
	checked, err = api.CheckBlueprint(cmd.Context(), text)
	return api, text, checked, err
}

func blueprintLock(i *cmdline.Invocation) *cobra.Command {
	var dry bool
	c := &cobra.Command{
		Use: "lock FILE", Short: "Pin everything that a blueprint refers to, and write the pins into its file", Args: cobra.ExactArgs(1),
		Long: "Lock asks the daemon for the content hash of the policy, the tools, the models and the blueprints of sub-agents\n" +
			"as they are now, and writes them as pins into the file. The rest of the file stays as it is.",
	}
	c.Flags().BoolVar(&dry, "print", false, "print the text with its pins, and leave the file")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		text, err := readBlueprint(i, args[0])
		if err != nil {
			return err
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		locked, err := api.LockBlueprint(cmd.Context(), text)
		if err != nil {
			return unlockable(cmd.Context(), api, args[0], text, err)
		}
		if dry || args[0] == "-" {
			return i.Show(locked, func(p *term.Printer) { p.Line("%s", strings.TrimSuffix(locked.Text, "\n")) })
		}
		if locked.Text != text {
			if err := os.WriteFile(args[0], []byte(locked.Text), 0o644); err != nil {
				return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(args[0], 200))
			}
		}
		return i.Show(locked, func(p *term.Printer) {
			p.Line("%s", map[bool]string{true: "the pins fit already", false: "the pins are written into " +
				term.Plain(args[0])}[locked.Text == text])
			p.Line("Next: agentbox blueprint register %s", cmdline.Word(args[0]))
		})
	}
	return c
}

// unlockable returns the error of a blueprint that cannot be pinned. If it names things that are not there, the error says which, and how
// to mend that.
func unlockable(ctx context.Context, api *client.Client, file, text string, err error) error {
	if fault.KindOf(err) != fault.NotFound {
		return err
	}
	checked, failed := api.CheckBlueprint(ctx, text)
	missing := slices.DeleteFunc(checked.Drift, func(d blueprint.Drift) bool { return d.Now != "" })
	if failed != nil || len(missing) == 0 {
		return err
	}
	return fault.New(fault.NotFound, fault.CodeOf(err), "%s cannot be pinned: %s", term.OneLine(file, 200), blueprint.Unfit(missing)).
		With(strings.Join(cmdline.MissingHints(ctx, api, missing), "\n"))
}

func blueprintVerify(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "verify FILE|NAME", Short: "Check that every pin of a blueprint fits what is there now", Args: cobra.ExactArgs(1),
		Long: "Verify names each reference whose pin is missing or does not fit what is there now, and ends with 3 if there is one. It reads\n" +
			"the file; where there is no such file, the blueprint that is registered under the name: NAME, or NAME@3 for its third version.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			text, err := blueprintText(i, cmd, api, args[0])
			if err != nil {
				return err
			}
			checked, err := api.CheckBlueprint(cmd.Context(), text)
			if err != nil {
				return err
			}
			err = i.Show(checked, func(p *term.Printer) {
				for _, b := range checked.Problems {
					p.Line("%s", term.Plain(problemLine(args[0], b)))
				}
				rows := make([][]term.Cell, len(checked.Drift))
				for n, d := range checked.Drift {
					rows[n] = []term.Cell{term.Text(d.String()), term.Text(shortHash(d.Pinned)), term.Text(shortHash(d.Now)), term.Text(d.Why())}
				}
				if checked.Valid {
					p.Table("Every pin fits.", []string{"reference", "pinned", "now", "why"}, rows)
				}
			})
			switch {
			case err != nil:
				return err
			case !checked.Valid:
				return &cmdline.Ended{Code: cmdline.ExitInvalid}
			case len(checked.Drift) > 0:
				return &cmdline.Ended{Code: cmdline.ExitConflict}
			}
			return nil
		},
	}
}

// shortHash is the beginning of a hash, enough to tell two apart at a glance.
func shortHash(hash string) string {
	if hash == "" {
		return "none"
	}
	return strings.TrimPrefix(hash, "sha256:")[:12]
}

func blueprintDiff(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "diff FROM TO", Short: "Compare two blueprints, value by value", Args: cobra.ExactArgs(2),
		Long:    "Diff compares two files, or versions of registered blueprints: NAME for the newest version, NAME@3 for the third.",
		Example: "  agentbox blueprint diff reporter@1 reporter.yaml",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			var texts [2]string
			for n, name := range args {
				if texts[n], err = blueprintText(i, cmd, api, name); err != nil {
					return err
				}
			}
			changes, err := api.CompareBlueprints(cmd.Context(), texts[0], texts[1])
			if err != nil {
				return err
			}
			return i.List("changes", changes.Changes, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(changes.Changes))
				for n, c := range changes.Changes {
					rows[n] = []term.Cell{term.Text(c.Path), term.Text(term.OneLine(c.From, 60)), term.Text(term.OneLine(c.To, 60))}
				}
				p.Table("They say the same.", []string{"key", "from", "to"}, rows)
			})
		},
	}
}

// blueprintText returns the text of a file, or of a version of a registered blueprint where there is no such file.
func blueprintText(i *cmdline.Invocation, cmd *cobra.Command, api *client.Client, name string) (string, error) {
	if _, err := os.Stat(name); err == nil || name == "-" || strings.ContainsAny(name, "./") {
		return readBlueprint(i, name)
	}
	name, number, numbered := strings.Cut(name, "@")
	version := 0
	if numbered {
		var err error
		if version, err = strconv.Atoi(number); err != nil || version < 1 {
			return "", cmdline.Usage("%q is not a version of a blueprint; write NAME@3", term.OneLine(number, 50))
		}
	}
	found, err := api.Blueprint(cmd.Context(), name, version)
	return found.Source.Text, cmdline.UnknownBlueprint(cmd.Context(), api, name, err)
}

func blueprintRegister(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "register FILE", Short: "Register a blueprint, or a new version of it", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, text, checked, err := checkBlueprint(i, cmd, args[0])
			if err != nil {
				return err
			}
			if !checked.Valid {
				lines := make([]string, len(checked.Problems))
				for n, b := range checked.Problems {
					lines[n] = problemLine(args[0], b)
				}
				return fault.New(fault.Invalid, "blueprint_invalid", "%s", term.Plain(strings.Join(lines, "\n")))
			}
			made, err := api.RegisterBlueprint(cmd.Context(), checked.Name, text)
			if err != nil {
				return err
			}
			return i.Show(made, func(p *term.Printer) {
				p.Line("%s is registered, version %d", made.Name, made.Version)
				if made.Unpinned > 0 {
					p.Line("%s not pinned: agentbox blueprint lock %s", map[bool]string{true: "1 reference is",
						false: strconv.Itoa(made.Unpinned) + " references are"}[made.Unpinned == 1], cmdline.Word(args[0]))
				} else if made.Summary.Adapter != blueprint.Remote {
					p.Line("Next: agentbox agent run %s TASK", made.Name)
				}
			})
		},
	}
}

func blueprintList(i *cmdline.Invocation) *cobra.Command {
	var removed bool
	c := &cobra.Command{Use: "ls", Aliases: []string{"list"}, Short: "List the blueprints of the workspace", Args: cobra.NoArgs}
	c.Flags().BoolVar(&removed, "removed", false, "the removed ones, too")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		floating := false
		found, err := cmdline.All(func(cursor string) ([]blueprint.Entry, string, error) {
			page, err := api.Blueprints(cmd.Context(), removed, client.Page{Cursor: cursor, Limit: 100})
			floating = page.Floating
			return page.Blueprints, page.Next, err
		})
		if err != nil {
			return err
		}
		return i.List("blueprints", found, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, b := range found {
				state := ""
				if !b.Living() {
					state = "removed"
				} else if b.Unpinned > 0 {
					state = "not pinned"
				}
				rows[n] = []term.Cell{term.Text(b.Name), term.Text(strconv.Itoa(b.Version)), term.Text(b.Summary.Adapter),
					term.Text(b.Summary.Model), term.Text(b.Summary.Policy),
					term.Text(state), {Text: term.Ago(i.Clock.Now(), b.Changed), Colour: term.Faint}, term.Text(b.Summary.Description)}
			}
			p.Table("This workspace has no blueprints; `agentbox blueprint init FILE` writes one.", []string{"blueprint", "version", "adapter",
				"model", "policy", "state", "changed", "what"}, rows)
			if floating {
				p.Line("%s", p.Paint(term.Yellow, "floating pins: agents run also when a pin is missing or does not fit (agentbox up --floating-pins)"))
			}
		})
	}
	return c
}

func blueprintShow(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME[@VERSION]", Short: "Show a registered blueprint and its versions", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, number, numbered := strings.Cut(args[0], "@")
			version, err := strconv.Atoi(number)
			if numbered && (err != nil || version < 1) {
				return cmdline.Usage("%q is not a version of a blueprint; write NAME@3", term.OneLine(number, 50))
			}
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			b, err := api.Blueprint(cmd.Context(), name, version)
			if err != nil {
				return cmdline.UnknownBlueprint(cmd.Context(), api, name, err)
			}
			return i.Show(b, func(p *term.Printer) {
				state := ""
				if !b.Living() {
					state = "removed " + term.Ago(i.Clock.Now(), b.Changed) + " by " + string(b.ChangedBy)
				}
				p.Line("%s  %s", p.Paint(term.Bold, b.Name), term.Plain(b.Summary.Description))
				p.Fields("version", strconv.Itoa(b.Source.Version)+" of "+strconv.Itoa(b.Version), "state", state, "reason", b.Reason,
					"locked", b.Source.Locked.String(), "changed", term.Ago(i.Clock.Now(), b.Changed)+" by "+string(b.ChangedBy))
				p.Line("")
				p.Line("%s", term.Plain(strings.TrimSuffix(b.Source.Text, "\n")))
			})
		},
	}
}

func blueprintRemove(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "rm NAME", Aliases: []string{"remove"}, Short: "Take a blueprint out of the index", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := api.RemoveBlueprint(cmd.Context(), args[0], reason); err != nil {
				return cmdline.UnknownBlueprint(cmd.Context(), api, args[0], err)
			}
			return i.Show(map[string]string{"removed": args[0]}, func(p *term.Printer) { p.Line("%s is removed", term.Plain(args[0])) })
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}
