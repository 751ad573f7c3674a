package codecmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/spacecmd"
	"agentbox/internal/surface/cli/term"
)

// Contexts are the commands about interpreter contexts.
func Contexts(i *cmdline.Invocation) *cobra.Command {
	return cmdline.Group("context", "Run code in interpreters that keep their variables", contextList(i), contextRun(i), contextRemove(i))
}

func contextList(i *cmdline.Invocation) *cobra.Command {
	c := &cobra.Command{Use: "list SPACE", Aliases: []string{"ls"}, Short: "List the interpreter contexts of a space",
		Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteSpaces}
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		found, err := api.Contexts(cmd.Context(), in)
		if err != nil {
			return err
		}
		return i.List("contexts", found, "", func(p *term.Printer) {
			rows := make([][]term.Cell, len(found))
			for n, x := range found {
				rows[n] = []term.Cell{term.Text(x.Name), term.Text(x.Language), term.Text(strconv.FormatUint(x.Cells, 10)),
					term.Text(term.Bytesize(x.Size)),
					{Text: term.Ago(i.Clock.Now(), x.Modified), Colour: term.Faint}}
			}
			p.Table("There are no contexts.", []string{"context", "language", "cells", "size", "last cell"}, rows)
		})
	}
	return c
}

// cellRun is one cell that is run.
type cellRun struct {
	i     *cmdline.Invocation
	space id.Space
	name  string
	q     client.CellRequest
	to    string // folder of this machine for pictures
	force bool
}

func contextRun(i *cmdline.Invocation) *cobra.Command {
	r := cellRun{i: i}
	var (
		language, code, timeout string
		env                     []string
	)
	c := &cobra.Command{
		Use: "run SPACE CONTEXT [FILE]", Short: "Run code in an interpreter context of a space", Args: cobra.RangeArgs(2, 3),
		ValidArgsFunction: i.CompleteSpaces,
		Long: "Run sends code to an interpreter of a space that keeps what the code defines for the next time. The code comes from the command " +
			"line (--code), from a FILE of this\n" +
			"machine, or from standard input (-, and where nothing is named). The context is made by the first code that is run in it.\n" +
			"The output of the code appears as it comes, and then the value of its last expression. The command lists tables, pictures and the " +
			"like below, as artifacts of the run.",
		Example: "  agentbox context run lab c -r python -c 'x = 6'\n  agentbox context run lab c -r python -c 'x * 7'\n  agentbox context run " +
			"lab plot figure.py --save out",
	}
	f := c.Flags()
	f.StringVarP(&language, "language", "r", "", "python, js or ts (default: what the file's name says, or what the context is written in)")
	f.StringVarP(&code, "code", "c", "", "the code itself")
	f.StringVar(&r.q.Cwd, "cwd", "", "where it runs, below the space's files")
	f.StringArrayVar(&env, "env", nil, "NAME=VALUE in its environment, which the next code does not find; repeatable")
	f.StringVar(&timeout, "timeout", "", "how long it may run, for example 90s (default 30s, or what policy allows)")
	f.StringVar(&r.to, "save", "",
		"folder of this machine to which pictures are written that it shows, each run's in a folder of its own: DIR/RUN/CONTEXT-N.png")
	f.BoolVarP(&r.force, "force", "f", false, "let --save replace a file of the run that was changed")
	f.StringVar(&r.q.IdempotencyKey, "idempotency-key", "", "the same key and code run once, however often they are sent")
	c.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := space.ContextName(args[1]); err != nil {
			return err
		}
		r.name = args[1]
		from := "-"
		switch {
		case cmd.Flags().Changed("code") && len(args) > 2:
			return cmdline.Usage("the code stands on the command line or in a file; give one of them")
		case cmd.Flags().Changed("code"):
			from, r.q.Code = "", code
		case len(args) > 2:
			from = args[2]
		case i.Asks:
			return cmdline.Usage("name a FILE, or give the code with --code").With("see: agentbox context run --help")
		}
		if r.q.Env, err = cmdline.Pairs("env", env); err != nil {
			return err
		}
		if timeout != "" {
			d, err := cmdline.ParseSpan(timeout)
			if err != nil {
				return err
			}
			r.q.TimeoutMS = d.Milliseconds()
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if r.space, err = i.Named(cmd.Context(), api, args[0]); err != nil {
			return err
		}
		if from != "" {
			if r.q.Code, err = text(i, from); err != nil {
				return err
			}
		}
		if r.q.Code == "" {
			return cmdline.Usage("there is no code to run; give it with --code, in a FILE, or on standard input").With(
				"see: agentbox context run --help")
		}
		if r.q.Language, err = r.written(cmd.Context(), api, language, from); err != nil {
			return err
		}
		return r.run(cmd.Context(), api)
	}
	return c
}

// maxCell is how many bytes of code are read; the daemon takes less.
const maxCell = 1 << 20

// text reads a text from a file of this machine, or from standard input.
func text(i *cmdline.Invocation, from string) (string, error) {
	in := i.In
	if from != "-" {
		f, err := os.Open(from)
		if err != nil {
			return "", cmdline.Unreadable(err, from)
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxCell+1))
	if err != nil {
		return "", cmdline.Unreadable(err, from)
	}
	if len(raw) > maxCell {
		return "", fault.New(fault.Exhausted, "cell_too_large", "the code has more than %s",
			term.Bytesize(maxCell)).With("put it into a file of the space: agentbox files put")
	}
	return string(raw), nil
}

// cellLanguages are the languages of contexts by the words for them, the endings of files too.
var cellLanguages = map[string]string{
	"python": space.Python, "py": space.Python, "python3": space.Python,
	"js": space.JavaScript, "javascript": space.JavaScript, "node": space.JavaScript, "mjs": space.JavaScript, "ts": space.JavaScript,
	"typescript": space.JavaScript, "mts": space.JavaScript,
}

// written returns the language of the code: as was said, by its file's ending, or that of the context.
func (r *cellRun) written(ctx context.Context, api *client.Client, said, from string) (string, error) {
	if said != "" {
		if l, ok := cellLanguages[said]; ok {
			return l, nil
		}
		return "", cmdline.Usage("%q is not a language of contexts; it is python, js or ts", term.OneLine(said, 40))
	}
	if l, ok := cellLanguages[strings.TrimPrefix(filepath.Ext(from), ".")]; ok {
		return l, nil
	}
	found, err := api.Contexts(ctx, r.space)
	if err != nil {
		return "", err
	}
	found = slices.DeleteFunc(found, func(c space.Context) bool { return c.Name != r.name })
	if len(found) == 1 {
		return found[0].Language, nil
	}
	if len(found) > 1 {
		return "", cmdline.Usage("there is a context %s in more than one language; say which with -r: python, js or ts", r.name)
	}
	return "", cmdline.Usage("there is no context %s yet; say what its code is written in: -r python, js or ts", r.name)
}

// cellRan is the result of a cell, in JSON.
type cellRan struct {
	Stdout     string      `json:"stdout"`
	Stderr     string      `json:"stderr"`
	Code       int         `json:"exit_code"`
	TimedOut   bool        `json:"timed_out"`
	Limit      string      `json:"limit,omitempty"` // the bound that ended it
	DurationMS int64       `json:"duration_ms"`
	Gas        int64       `json:"gas,omitempty"`   // the gas that it used
	Seed       string      `json:"seed,omitempty"`  // what decided its chance
	Clock      *time.Time  `json:"clock,omitempty"` // where its clock began
	Displays   []displayed `json:"displays"`        // the values that it has shown
	Context    string      `json:"context"`
	Language   string      `json:"language"`
	Space      id.Space    `json:"space_id"`
	Run        id.Run      `json:"run_id"`
}

// displayed is a form of a value, and the file of this machine to which it was written.
type displayed struct {
	run.Display
	File string `json:"file,omitempty"`
}

// run runs the cell and shows its result.
func (r *cellRun) run(ctx context.Context, api *client.Client) error {
	var stdout, stderr bytes.Buffer
	var toOut, toErr io.Writer = r.i.Out, r.i.Err
	var flush func()
	switch {
	case r.i.JSON:
		toOut, toErr = &stdout, &stderr
	case r.i.Terminal:
		out, complaints := &term.Screen{Out: r.i.Out}, &term.Screen{Out: r.i.Err}
		flush = func() {
			_ = out.Flush() // there is nowhere left to say it
			_ = complaints.Flush()
		}
		toOut, toErr = out, complaints
	}
	o := follow.Ordered{
		Api: api, Space: r.space,
		Output: func(channel string, data []byte) error {
			to := toOut
			if channel == client.FrameStderr {
				to = toErr
			}
			_, err := to.Write(data)
			return err
		},
		Asks: func(ctx context.Context, approval id.Approval) error {
			return follow.TellQuestion(ctx, r.i, api, approval)
		},
		Queued: func(ctx context.Context, run id.Run) func() {
			return follow.TellOfQueue(ctx, r.i, api, r.space, run, "")
		},
		Wait: follow.Patience(r.i, "the cells"),
	}
	result, of, err := o.Made(ctx, func() (run.Events, error) { return api.RunCell(ctx, r.space, r.name, r.q) })
	if flush != nil {
		flush()
	}
	if err != nil {
		return err
	}
	code := follow.Ending(r.i, result)
	shown, err := r.shown(ctx, api, of)
	if err != nil {
		return err
	}
	if r.i.JSON {
		said := cellRan{
			Stdout: strings.ToValidUTF8(stdout.String(), "\uFFFD"), Stderr: strings.ToValidUTF8(stderr.String(), "\uFFFD"), Code: code,
			Limit: result.Limit, Gas: result.Gas, Seed: result.Seed,
			Clock: result.Clock, Displays: shown, Context: r.name, Language: r.q.Language, Space: r.space, Run: of,
		}
		if result.DurationMS != nil {
			said.DurationMS = *result.DurationMS
		}
		said.TimedOut = result.TimedOut != nil && *result.TimedOut
		err = r.i.Printer(r.i.Out).Object(said)
	} else {
		r.tell(shown)
	}
	if err == nil && code != cmdline.ExitOK {
		err = &cmdline.Ended{Code: code}
	}
	return err
}

// shown returns what the cell of a run has shown, when its pictures have been written where they are wanted.
func (r *cellRun) shown(ctx context.Context, api *client.Client, of id.Run) ([]displayed, error) {
	all := []displayed{}
	told, err := api.Run(ctx, of)
	if err != nil {
		return all, err
	}
	for _, e := range told.Result.Events {
		for _, d := range e.Displays {
			one := displayed{Display: d}
			if ending, is := pictures[d.Media]; is && r.to != "" {
				dir := filepath.Join(r.to, string(of)) // so that what one run has shown is not in the way of the next
				if err := os.MkdirAll(dir, 0o755); err != nil {
					return all, fault.Wrap(err, fault.Invalid, "folder_unwritable", "the folder %s cannot be made", term.OneLine(dir, 200))
				}
				one.File = filepath.Join(dir, fmt.Sprintf("%s-%d.%s", r.name, d.Value, ending))
				if err := r.fetch(ctx, api, one); err != nil {
					return all, err
				}
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// pictures are the endings of the files of pictures.
var pictures = map[string]string{space.DisplayPNG: "png", space.DisplayJPEG: "jpg", space.DisplaySVG: "svg"}

// fetch writes the content of a display to its file, unless the file has it. A run that is repeated by its key has the same pictures.
func (r *cellRun) fetch(ctx context.Context, api *client.Client, d displayed) error {
	if raw, err := os.ReadFile(d.File); err == nil && event.DigestOf(raw) == d.Digest {
		return nil
	}
	content, err := api.ArtifactContent(ctx, d.Artifact)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = cmdline.Save(d.File, &spacecmd.Checked{Content: content, Hash: sha256.New(), Want: d.Digest}, r.force)
	return err
}

// tell lists what was shown beside texts, which were printed.
func (r *cellRun) tell(all []displayed) {
	p := r.i.Printer(r.i.Out)
	for _, d := range all {
		where := term.Plain(d.File)
		if d.File == "" {
			where = "agentbox artifact get " + string(d.Artifact)
		}
		runview.WriteDisplay(p, d.Display, where)
	}
}

func contextRemove(i *cmdline.Invocation) *cobra.Command {
	var language string
	c := &cobra.Command{
		Use: "rm SPACE CONTEXT", Short: "Delete an interpreter context of a space", Args: cobra.ExactArgs(2), ValidArgsFunction: i.CompleteSpaces,
		Long: "Rm deletes the file of a context. The next code that is run under its name begins anew; a rewind of the space brings it back.",
	}
	c.Flags().StringVarP(&language, "language", "r", "", "python or js, where there is one of the name in both")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if err := space.ContextName(args[1]); err != nil {
			return err
		}
		if language != "" {
			l, ok := cellLanguages[language]
			if !ok {
				return cmdline.Usage("%q is not a language of contexts; it is python, js or ts", term.OneLine(language, 40))
			}
			language = l
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		in, err := i.Named(cmd.Context(), api, args[0])
		if err != nil {
			return err
		}
		if err := api.DeleteContext(cmd.Context(), in, args[1], language); err != nil {
			return err
		}
		return i.Show(map[string]any{"space_id": in, "context": args[1], "deleted": true}, func(p *term.Printer) {
			p.Line("%s is deleted", term.OneLine(args[1], 100))
		})
	}
	return c
}
