// Package modelcmd are the commands about models.
package modelcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// Models are the commands about models.
func Models(i *cmdline.Invocation) *cobra.Command {
	c := cmdline.Group("model", "Keep models: add, test and record them, set keys, see what they cost", list(i), show(i), add(i), remove(i),
		test(i), key(i), record(i), usage(i))
	c.Aliases = []string{"models"}
	c.Example = "  agentbox model key set zai < key.txt\n  agentbox model add glm --model glm-4.6 --key zai\n  agentbox model test glm\n" +
		"  agentbox model usage"
	return c
}

func list(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the models of the workspace", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := api.Models(cmd.Context())
			if err != nil {
				return err
			}
			return i.Show(all, func(p *term.Printer) {
				rows := make([][]term.Cell, len(all.Models))
				for n, m := range all.Models {
					rows[n] = []term.Cell{term.Text(m.Name), term.Text(m.Model), term.Text(m.Speaks()), term.Text(m.BaseURL), term.Text(m.Key),
						term.Text(price(m, all.Currency)), term.Text(m.Source)}
				}
				p.Table("The workspace has no models. Add one: agentbox model add NAME --model MODEL", []string{"name", "model", "speaks",
					"endpoint", "key", "price in/out", "from"}, rows)
				if all.Problem != "" {
					p.Line("%s", p.Paint(term.Red, term.Plain(all.Problem)))
				}
			})
		},
	}
}

func price(m client.ShownModel, currency string) string {
	if m.Price == nil {
		return "unknown"
	}
	return strings.TrimSpace(m.Price.Input.String() + "/" + m.Price.Output.String() + " " + currency)
}

func show(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "show NAME", Short: "Show a model", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			m, err := api.Model(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return i.Show(m, func(p *term.Printer) { fields(p, m) })
		},
	}
}

func fields(p *term.Printer, m client.ShownModel) {
	p.Fields("name", m.Name, "model", m.Model, "provider", m.Provider, "dialect", m.Dialect, "endpoint", m.BaseURL, "key", m.Key,
		"price in/out", price(m, ""), "records into", m.Record, "hash", m.Hash.String(), "from", m.Source)
}

func add(i *cmdline.Invocation) *cobra.Command {
	var spec client.ModelSpec
	var classes []string
	var replace bool
	c := &cobra.Command{
		Use: "add NAME --model MODEL", Short: "Add a model, or replace one", Args: cobra.ExactArgs(1),
		Long: "Add puts a model into the catalogue. Without --provider, --dialect and --url it is one of z.ai; with --url alone its dialect " +
			"is generic.\n" +
			"--replace replaces the whole entry of a name, so write all flags. Blueprints that name it have to be locked and registered again.\n" +
			"The key is named, never written here: set it with agentbox model key set.",
		Example: "  agentbox model add glm --model glm-4.6 --key zai\n" +
			"  agentbox model add sonnet --provider anthropic --model claude-sonnet-4-5 --key anthropic\n" +
			"  agentbox model add local --dialect ollama --url http://127.0.0.1:11434/v1 --model qwen3 --private\n" +
			"  agentbox model add played --provider scripted --url weather --model weather",
	}
	f := c.Flags()
	f.StringVar(&spec.Model, "model", "", "the model, as the endpoint calls it")
	f.StringVar(&spec.Provider, "provider", "", "openai, anthropic or scripted")
	f.StringVar(&spec.Dialect, "dialect", "", "of openai: "+strings.Join(model.Dialects(), ", "))
	f.StringVar(&spec.BaseURL, "url", "", "the endpoint, or the name of a cassette")
	f.StringVar(&spec.Key, "key", "", "the name of the key")
	f.BoolVar(&spec.AllowPrivate, "private", false, "permit a private address, and http")
	f.IntVar(&spec.Context, "context", 0, "the size of its window in tokens")
	f.IntVar(&spec.MaxOutput, "max-output", 0, "the longest answer in tokens")
	f.BoolVar(&spec.NoTools, "no-tools", false, "it knows no tool calls: agents call tools in plain text")
	f.BoolVar(&spec.Images, "images", false, "it takes pictures; models of anthropic and of the dialect openai do without this")
	f.BoolVar(&replace, "replace", false, "replace the entry of this name")
	f.StringSliceVar(&classes, "class", nil, "task classes for which it answers where no route does")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if spec.Model == "" {
			return cmdline.Usage("name the model with --model, as the endpoint calls it")
		}
		for _, class := range classes {
			spec.Classes = append(spec.Classes, model.TaskClass(class))
		}
		if spec.BaseURL != "" && spec.Provider == "" && spec.Dialect == "" {
			spec.Dialect = "generic"
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		before, err := api.Model(cmd.Context(), args[0])
		if !replace {
			if err == nil {
				return fault.New(fault.Conflict, "model_exists", "there is a model %s already: %s at %s", term.Plain(args[0]),
					term.Plain(before.Model), term.Plain(before.BaseURL)).
					With("replace all of its entry: --replace, with every flag that it needs\n" +
						again(cmd.Context(), api, args[0]))
			}
			if fault.KindOf(err) != fault.NotFound && fault.KindOf(err) != fault.Invalid {
				return err
			}
		}
		m, err := api.PutModel(cmd.Context(), args[0], spec)
		if err != nil {
			return withFlag(err)
		}
		return i.Show(m, func(p *term.Printer) {
			fields(p, m)
			if before.Name != "" && before.Hash != m.Hash {
				p.Line("%s", p.Paint(term.Yellow, again(cmd.Context(), api, args[0])))
			}
		})
	}
	return c
}

// withFlag names the flag of this command where a refusal names the field that it sets.
func withFlag(err error) error {
	if f, ok := cmdline.AsFault(err); ok && f.Suggestion == "" && strings.Contains(f.Msg, "allow_private") {
		return f.With("permit it: --private")
	}
	return err
}

// again says what is to be done with the blueprints that pin a model whose entry changes. It names those whose default model it is.
func again(ctx context.Context, api *client.Client, name string) string {
	said := "blueprints that pin it have to be locked and registered again"
	all, err := cmdline.Blueprints(ctx, api)
	if err != nil {
		return said // which ones is seen when they run
	}
	var them []string
	for _, b := range all {
		if b.Summary.Model == name {
			them = append(them, b.Name)
		}
	}
	if len(them) == 0 {
		return said
	}
	return said + "; among them: " + cmdline.Listed(them)
}

func remove(i *cmdline.Invocation) *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "rm NAME", Short: "Remove a model from the catalogue", Args: cobra.ExactArgs(1)}
	c.Flags().StringVar(&reason, "reason", "", "why, for the log")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if err := api.RemoveModel(cmd.Context(), args[0], reason); err != nil {
			return err
		}
		return i.Show(map[string]string{"name": args[0]}, func(p *term.Printer) { p.Line("%s is removed", term.Plain(args[0])) })
	}
	return c
}

func test(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "test NAME", Short: "Ask a model a few short questions, and say what it can do", Args: cobra.ExactArgs(1),
		Long: "Test tries streaming, tools, images, structured output, reasoning and caching. The questions cost what they cost.\n" +
			"It ends with 8 if the model does not answer, and says why.",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			out, err := api.TestModel(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			err = i.Show(out, func(p *term.Printer) {
				if !out.Reachable {
					p.Line("%s does not answer: %s", term.Plain(out.Model), term.Plain(out.Failure))
					return
				}
				rows := make([][]term.Cell, len(out.Capabilities))
				for n, c := range out.Capabilities {
					rows[n] = []term.Cell{term.Text(c.Name), term.Text(map[bool]string{true: "yes", false: "no"}[c.Works]), term.Text(c.Detail)}
				}
				p.Table("", []string{"capability", "works", "what was seen"}, rows)
				p.Line("The first piece came after %d ms. The test used %d tokens.", out.First, out.Usage.Tokens())
			})
			if err == nil && !out.Reachable {
				err = &cmdline.Ended{Code: cmdline.ExitUnavailable}
			}
			return err
		},
	}
}

func key(i *cmdline.Invocation) *cobra.Command {
	set := &cobra.Command{
		Use: "set NAME", Short: "Set a key from standard input", Args: cobra.ExactArgs(1), Example: "  agentbox model key set zai < key.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			raw, err := io.ReadAll(io.LimitReader(i.In, model.MaxKeyBytes+3))
			if err != nil {
				return err
			}
			value := strings.TrimRight(string(raw), "\r\n")
			if err := model.CheckSecret(value); err != nil {
				return err
			}
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := api.SetModelKey(cmd.Context(), args[0], model.NewSecret(value)); err != nil {
				return err
			}
			return i.Show(map[string]string{"name": args[0]}, func(p *term.Printer) { p.Line("the key %s is set", term.Plain(args[0])) })
		},
	}
	ls := &cobra.Command{
		Use: "ls", Short: "List the names of keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			all, err := api.Models(cmd.Context())
			if err != nil {
				return err
			}
			return i.List("keys", all.Keys, "", func(p *term.Printer) {
				rows := make([][]term.Cell, len(all.Keys))
				for n, k := range all.Keys {
					rows[n] = []term.Cell{term.Text(k.Name), term.Text(string(k.SetBy)), term.Text(k.SetAt.UTC().Format("2006-01-02 15:04"))}
				}
				p.Table("No key is set. Set one: agentbox model key set NAME", []string{"name", "set by", "set at (UTC)"}, rows)
			})
		},
	}
	rm := &cobra.Command{
		Use: "rm NAME", Short: "Destroy a key", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			if err := api.RemoveModelKey(cmd.Context(), args[0]); err != nil {
				return err
			}
			return i.Show(map[string]string{"name": args[0]}, func(p *term.Printer) { p.Line("the key %s is destroyed", term.Plain(args[0])) })
		},
	}
	return cmdline.Group("key", "Keep the keys of endpoints, by name", set, ls, rm)
}

func record(i *cmdline.Invocation) *cobra.Command {
	var off bool
	c := &cobra.Command{
		Use: "record NAME [CASSETTE]", Short: "Write what a model is asked and answers into a cassette", Args: cobra.RangeArgs(1, 2),
		Long: "Record writes each further request that a model answers, and the answer, into the file\n" +
			"cassettes/CASSETTE.jsonl of the data directory. A model of the provider scripted plays it.\n" +
			"The file holds what is said in plain text. --off ends it.",
		Example: "  agentbox model record glm weather\n  agentbox model record glm --off",
	}
	c.Flags().BoolVar(&off, "off", false, "record no more")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if off == (len(args) == 2) {
			return cmdline.Usage("name the cassette, or --off to record no more")
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		m, err := api.Model(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		spec := client.SpecOf(m.Entry)
		spec.Record = ""
		if !off {
			spec.Record = args[1]
		}
		if m, err = api.PutModel(cmd.Context(), args[0], spec); err != nil {
			return err
		}
		return i.Show(m, func(p *term.Printer) {
			if off {
				p.Line("%s is recorded no more", term.Plain(m.Name))
				return
			}
			p.Line("what %s is asked and answers is written into the cassette %s", term.Plain(m.Name), term.Plain(m.Record))
		})
	}
	return c
}

func usage(i *cmdline.Invocation) *cobra.Command {
	var scope, day, run string
	var limit int
	c := &cobra.Command{
		Use: "usage", Aliases: []string{"cost"}, Short: "Show what models were used for, and what that cost", Args: cobra.NoArgs,
		Example: "  agentbox model usage\n  agentbox model usage --by agent --day 2026-11-28\n  agentbox model usage --run run_...",
	}
	f := c.Flags()
	f.StringVar(&scope, "by", model.ScopeWorkspace, "workspace, run, agent (the principal who gave agents their tasks), room or model")
	f.StringVar(&day, "day", "", "a day of UTC, such as 2026-11-28")
	f.StringVar(&run, "run", "", "this run only")
	f.IntVar(&limit, "limit", 100, "how many at most, 1 to 1000")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		out, err := api.ModelUsage(cmd.Context(), scope, day, id.Run(run), limit)
		if err != nil {
			return err
		}
		return i.List("usage", out.Usage, "", func(p *term.Printer) {
			called := map[string]string{}
			if scope == model.ScopeAgent {
				called = principals(cmd.Context(), api, out.Usage)
			}
			var bounds []model.Budget
			if all, err := api.Models(cmd.Context()); err == nil { // else the table says less
				bounds = all.Budgets
			}
			head := []string{"scope", "of", "day", "requests", "tokens", "cost", "reserved"}
			if slices.ContainsFunc(out.Usage, func(u model.Used) bool { return budgetOf(bounds, u, "") != "" }) {
				head = append(head, "budget of a day")
			}
			rows := make([][]term.Cell, len(out.Usage))
			for n, u := range out.Usage {
				cost := strings.TrimSpace(u.Cost.String() + " " + out.Currency)
				if u.Unpriced > 0 {
					cost += fmt.Sprintf(" and %d without a price", u.Unpriced)
				}
				rows[n] = []term.Cell{term.Text(u.Scope), term.Text(strings.TrimSpace(u.ID + " " + called[u.ID])), term.Text(u.Day),
					term.Text(fmt.Sprint(u.Requests)),
					term.Text(fmt.Sprint(u.Usage.Tokens())), term.Text(cost), term.Text(fmt.Sprint(u.Reserved.Tokens)),
					term.Text(budgetOf(bounds, u, out.Currency))}[:len(head)]
			}
			p.Table("No model was asked.", head, rows)
		})
	}
	return c
}

// budgetOf returns the budget that bounds some usage, in words; "" for none. The budget of one agent or room goes before that of each.
func budgetOf(budgets []model.Budget, u model.Used, currency string) string {
	var found model.Budget
	for _, b := range budgets {
		if b.Scope == u.Scope && (b.ID == u.ID || b.ID == "" && found.Scope == "") {
			found = b
		}
	}
	var words []string
	if found.Tokens > 0 {
		words = append(words, fmt.Sprintf("%d tokens", found.Tokens))
	}
	if found.Cost > 0 {
		words = append(words, strings.TrimSpace(found.Cost.String()+" "+currency))
	}
	return strings.Join(words, ", ")
}

// principals returns the names of the principals of some usage, by their ids. It leaves those out that it cannot read.
func principals(ctx context.Context, api *client.Client, of []model.Used) map[string]string {
	called := map[string]string{}
	for _, u := range of {
		if _, known := called[u.ID]; known {
			continue
		}
		called[u.ID] = ""
		if found, err := api.Principal(ctx, id.Principal(u.ID)); err == nil {
			called[u.ID] = found.Name
		}
	}
	return called
}
