// Package codecmd has the commands that run code: snippets and the cells of contexts.
package codecmd

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/spacecmd"
	"agentbox/internal/surface/cli/term"
)

// Hidden are variables that decide how a command runs, and that the command itself does not see.
var Hidden = []string{SeedVariable, ClockVariable}

// language is a language of snippets: the name of its file, and the program that runs it in every tier.
type language struct {
	names         []string // its names, with the endings of its files
	file, program string   // without a program it is one itself
}

// languages are all of them.
var languages = []language{
	{[]string{"python", "py", "python3"}, "snippet.py", "python3"},
	{[]string{"js", "javascript", "node", "mjs", "cjs"}, "snippet.js", "node"},
	{[]string{"ts", "typescript", "bun", "mts", "tsx"}, "snippet.ts", "bun"},
	{[]string{"bash", "sh"}, "snippet.sh", "bash"},
	{[]string{"wasm"}, "snippet.wasm", ""},
}

// Bounds of a snippet.
const (
	maxSnippet  = 32 << 20       // bytes
	snippetLife = 24 * time.Hour // after which its space goes in any case, should nobody be left to remove it
)

// snippet is one program that runs in a space of its own.
type snippet struct {
	i        *cmdline.Invocation
	language string
	code     string
	q        client.SpaceRequest
	keep     bool
	in, out  []string
	force    bool
	env      []string
	timeout  string
	seed     string
	clock    string
}

// Snippets is the command that runs a snippet.
func Snippets(i *cmdline.Invocation) *cobra.Command {
	s := snippet{i: i}
	c := &cobra.Command{
		Use: "exec [FILE] [ARG...]", Short: "Run a snippet in a new space, which is removed afterwards", Args: cobra.ArbitraryArgs,
		Long: "Exec makes a space, runs a program in it, and removes the space. The program comes from a file, from standard input (-), or " +
			"from\nthe command line (--code). Its output appears as it comes, and its exit code is that of the command. Messages of Agentbox " +
			"go to\nstandard error. The arguments of the program follow --.\n" +
			"Policy decides on the program as on everything else. If policy asks a person, the command shows the question, and the program\n" +
			"waits for the answer.",
		Example: "  echo 'print(6*7)' | agentbox exec -r python -\n  agentbox exec -r js -c 'console.log(process.argv.slice(2))' -- one two\n" +
			"  agentbox exec report.py --file data.csv --out report.md\n  agentbox exec -r bash -c 'date' --runtime nano --seed 7 --json",
	}
	f := c.Flags()
	f.StringVarP(&s.language, "language", "r", "",
		"language of the program: python, js, ts, bash or wasm (default: by its name or its first line)")
	f.StringVarP(&s.code, "code", "c", "", "the program itself")
	f.StringVar(&s.q.Runtime, "runtime", "", "what it runs in: auto, heavy or a tier's name (default auto: nano until it needs more)")
	f.StringVar(&s.q.Policy, "policy", "", "policy preset: restrictive, standard or permissive (default standard)")
	f.BoolVar(&s.keep, "keep", false, "keep the space, and print its id on standard error")
	f.StringArrayVar(&s.in, "file", nil, "HOST[:PATH]: a file or folder of this machine that it finds under PATH; repeatable")
	f.StringArrayVar(&s.out, "out", nil, "PATH[:HOST]: a file that it leaves, copied to HOST on this machine; repeatable")
	f.BoolVarP(&s.force, "force", "f", false, "let --out replace files of this machine")
	f.StringArrayVar(&s.env, "env", nil, "NAME=VALUE in its environment; repeatable")
	f.StringVar(&s.timeout, "timeout", "", "how long it may run, for example 90s (default 30s, or what policy allows)")
	f.StringVar(&s.seed, "seed", "", "a text that seeds the random numbers of the nano tier; its clock then begins at "+seededClock+
		", so that each execution is the same")
	f.StringVar(&s.clock, "clock", "", "where the clock of the nano tier begins, as in 2026-01-02T15:04:05Z (default: now)")
	f.BoolVar(&s.q.BestEffort, "best-effort", false, "accept a host that cannot enforce every limit")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("seed") && s.seed == "" {
			return cmdline.Usage("--seed is empty; give any text, or leave it out")
		}
		from, args := "", args
		if !cmd.Flags().Changed("code") {
			if dash := cmd.ArgsLenAtDash(); len(args) == 0 || dash == 0 {
				if i.Asks {
					return cmdline.Usage("name a FILE, or give the program with --code").With("see: agentbox exec --help")
				}
				from = "-"
			} else {
				from, args = args[0], args[1:]
			}
		}
		return s.run(cmd.Context(), from, args)
	}
	return c
}

// run reads the program, runs it and shows its result. An empty from means that the program stands on the command line.
func (s *snippet) run(ctx context.Context, from string, args []string) error {
	if from == "" && s.language == "" {
		return cmdline.Usage("say what the program is written in: -r python, js, ts or bash")
	}
	api, err := s.i.Connect(ctx)
	if err != nil {
		return err
	}
	program, err := s.program(from)
	if err != nil {
		return err
	}
	l, err := s.written(from, program)
	if err != nil {
		return err
	}
	if languages[l].program == "" && !bytes.HasPrefix(program, []byte("\x00asm")) {
		return cmdline.Usage("the program is not a WebAssembly module").With("say what it is written in with -r: python, js, ts, bash or wasm")
	}
	op, err := s.operation(l, args)
	if err != nil {
		return err
	}
	for _, f := range s.out {
		from, to := fromSpace(f)
		if _, err := space.CleanPath(from); err != nil {
			return err
		}
		if err := cmdline.Savable(to, s.force); err != nil {
			return err
		}
	}
	s.q.Name, s.q.Metadata = "exec", map[string]string{"made_for": "agentbox exec"}
	if !s.keep {
		s.q.TTLSeconds = int64(snippetLife / time.Second)
	}
	made, err := cmdline.UnlessTaken(s.q.Name, func(name string) (space.Space, error) { // several may run at once
		s.q.Name = name
		return api.CreateSpace(ctx, s.q)
	})
	if err != nil {
		return err
	}
	code, err := s.within(ctx, api, made, languages[l], program, op)
	if s.keep {
		s.i.Printer(s.i.Err).Line("the space %s is kept", made.ID)
	} else if _, removing := api.DestroySpace(context.WithoutCancel(ctx), made.ID); removing != nil && err == nil {
		err = removing
	}
	if err == nil && code != cmdline.ExitOK {
		err = &cmdline.Ended{Code: code}
	}
	return err
}

// program reads the program.
func (s *snippet) program(from string) ([]byte, error) {
	var in io.Reader
	switch from {
	case "":
		return []byte(s.code), nil
	case "-":
		in = s.i.In
	default:
		f, err := os.Open(from)
		if err != nil {
			return nil, cmdline.Unreadable(err, from).With("the program itself goes behind --code, or comes from standard input with -")
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxSnippet+1))
	if err != nil {
		return nil, cmdline.Unreadable(err, from)
	}
	if len(raw) > maxSnippet {
		return nil, fault.New(fault.Exhausted, "snippet_too_large", "the program has more than %s",
			term.Bytesize(maxSnippet)).With("make a space and put it there: agentbox files put")
	}
	return raw, nil
}

// written returns the index of the program's language. The flag decides, else the file's ending, else its first bytes.
func (s *snippet) written(from string, program []byte) (int, error) {
	say := s.language
	if say == "" {
		say = strings.TrimPrefix(filepath.Ext(from), ".")
	}
	if line, _, _ := bytes.Cut(program, []byte("\n")); say == "" && bytes.HasPrefix(line, []byte("#!")) {
		words := strings.Fields(string(line[2:]))
		for len(words) > 1 && (path.Base(words[0]) == "env" || strings.HasPrefix(words[0], "-")) {
			words = words[1:]
		}
		say = path.Base(strings.Join(words[:min(1, len(words))], ""))
	}
	if bytes.HasPrefix(program, []byte("\x00asm")) && s.language == "" {
		say = "wasm"
	}
	for n, l := range languages {
		if slices.Contains(l.names, say) {
			return n, nil
		}
	}
	if say == "" {
		return 0, cmdline.Usage("say what the program is written in: -r python, js, ts, bash or wasm")
	}
	return 0, cmdline.Usage("%q is not a language that is known here; it is python, js, ts, bash or wasm", term.OneLine(say,
		40)).With("name it with -r")
}

// operation is the operation that runs the program.
func (s *snippet) operation(language int, args []string) (op run.Operation, err error) {
	l := languages[language]
	words := []string{l.program, l.file}
	if l.program == "" {
		words = []string{"./" + l.file}
	}
	for _, a := range args {
		quoted, err := syntax.Quote(a, syntax.LangBash)
		if err != nil {
			return op, cmdline.Usage("the argument %s cannot be passed on: %s", term.OneLine(a, 40), err)
		}
		words = append(words, quoted)
	}
	op = run.Operation{Type: run.OpShell, Command: strings.Join(words, " ")}
	if op.Env, err = cmdline.Pairs("env", s.env); err != nil {
		return op, err
	}
	if s.seed != "" {
		if op.Env == nil {
			op.Env = map[string]string{}
		}
		op.Env[SeedVariable] = s.seed
		op.Env[ClockVariable] = seededClock
	}
	if s.clock != "" {
		if _, err := time.Parse(time.RFC3339Nano, s.clock); err != nil {
			return op, cmdline.Usage("--clock %s: write a time as in 2026-01-02T15:04:05Z", term.OneLine(s.clock, 40))
		}
		if op.Env == nil {
			op.Env = map[string]string{}
		}
		op.Env[ClockVariable] = s.clock
	}
	if s.timeout != "" {
		d, err := cmdline.ParseSpan(s.timeout)
		if err != nil {
			return op, err
		}
		ms := d.Milliseconds()
		op.TimeoutMS = &ms
	}
	return op, op.Check()
}

// The variables of a command that decide its chance, and where its clock begins, where the tier has none of its own.
const (
	SeedVariable  = "AGENTBOX_SEED"
	ClockVariable = "AGENTBOX_CLOCK"
)

// seededClock is where the clock of a program begins whose chance is decided and whose clock is not.
const seededClock = "2026-01-01T00:00:00Z"

// within runs the program in its space and returns the exit code.
func (s *snippet) within(ctx context.Context, api *client.Client, in space.Space, l language, program []byte, op run.Operation) (int,
	error) {
	for _, bound := range in.Unenforced {
		cmdline.Complain(s.i.Err, s.i.Printer(s.i.Err), fault.New(fault.Unavailable, "not_enforced", "this host does not enforce %s", bound))
	}
	put := func(content io.Reader, size int64, to, mode string) error {
		if path.Clean(to) == l.file {
			return cmdline.Usage("%s is where the program itself lies; put the file elsewhere with --file HOST:PATH", l.file)
		}
		_, err := api.WriteFile(ctx, in.ID, to, content, size, true, mode)
		return err
	}
	for _, f := range s.in {
		from, to := fromHost(f)
		if err := spacecmd.Put(s.i, from, cmdline.First(to, filepath.Base(filepath.Clean(from))), put); err != nil {
			return 0, err
		}
	}
	mode := ""
	if l.program == "" { // it is executed itself
		mode = space.ModeExecutable
	}
	if _, err := api.WriteFile(ctx, in.ID, l.file, bytes.NewReader(program), int64(len(program)), false, mode); err != nil {
		return 0, err
	}
	said := executed{Space: in.ID, Files: []space.Difference{}}
	var stdout, stderr bytes.Buffer
	var toOut, toErr io.Writer = s.i.Out, s.i.Err
	switch {
	case s.i.JSON:
		toOut, toErr = &stdout, &stderr
	case s.i.Terminal:
		out, complaints := &term.Screen{Out: s.i.Out}, &term.Screen{Out: s.i.Err}
		defer out.Flush()        //nolint:errcheck // there is nowhere left to say it
		defer complaints.Flush() //nolint:errcheck // likewise
		toOut, toErr = out, complaints
	}
	o := follow.Ordered{
		Api: api, Space: in.ID, Title: "agentbox exec",
		Output: func(channel string, data []byte) error {
			to := toOut
			if channel == client.FrameStderr {
				to = toErr
			}
			_, err := to.Write(data)
			return err
		},
		Asks: func(ctx context.Context, approval id.Approval) error {
			return follow.TellQuestion(ctx, s.i, api, approval)
		},
		Queued: func(ctx context.Context, r id.Run) func() { return follow.TellOfQueue(ctx, s.i, api, in.ID, r, "") },
	}
	result, r, err := o.Do(ctx, op)
	if err != nil {
		return 0, err
	}
	code := follow.Ending(s.i, result)
	said.Stdout, said.Stderr, said.Code, said.Run = strings.ToValidUTF8(stdout.String(), "\uFFFD"), strings.ToValidUTF8(stderr.String(),
		"\uFFFD"), code, r
	said.tell(in, result)
	if text := s.undecided(said.Tier, result); text != "" {
		said.Undecided = text
		p := s.i.Printer(s.i.Err)
		p.JSON = false
		p.Line("%s", p.Paint(term.Yellow, text))
	}
	if changed, err := api.DiffSpace(ctx, in.ID, "", ""); err == nil { // a space without snapshots has nothing to compare
		said.Files = append(said.Files, changed.Differences...)
	}
	for _, f := range s.out {
		if err := s.fetch(ctx, api, in.ID, f); err != nil {
			cmdline.Complain(s.i.Err, s.i.Printer(s.i.Err), err)
			if code == cmdline.ExitOK {
				code = cmdline.ExitCode(err)
			}
		}
	}
	if s.i.JSON {
		return code, s.i.Printer(s.i.Out).Object(said)
	}
	return code, nil
}

// executed is the JSON of a snippet's result.
type executed struct {
	Stdout     string             `json:"stdout"`
	Stderr     string             `json:"stderr"`
	Code       int                `json:"exit_code"`
	TimedOut   bool               `json:"timed_out"`
	Limit      string             `json:"limit,omitempty"` // the bound that ended it
	DurationMS int64              `json:"duration_ms"`
	Tier       string             `json:"tier"`
	Gas        int64              `json:"gas,omitempty"`       // the gas that it used, where the tier counts it
	Seed       string             `json:"seed,omitempty"`      // what decided its chance
	Clock      *time.Time         `json:"clock,omitempty"`     // where its clock began
	Undecided  string             `json:"undecided,omitempty"` // what was to decide its chance or its clock, and does not in this tier
	Lacks      []run.Lack         `json:"lacks,omitempty"`     // the features that it wanted and the tier lacks
	Files      []space.Difference `json:"files"`               // that it changed
	Space      id.Space           `json:"space_id"`
	Run        id.Run             `json:"run_id"`
}

// tell takes over a result.
func (x *executed) tell(in space.Space, e run.Result) {
	x.Limit, x.Tier = e.Limit, cmdline.First(e.Tier, in.Tier)
	x.Gas, x.Seed, x.Clock, x.Lacks = e.Gas, e.Seed, e.Clock, e.Lacks
	if e.DurationMS != nil {
		x.DurationMS = *e.DurationMS
	}
	x.TimedOut = e.TimedOut != nil && *e.TimedOut
}

// undecided says what was to decide the program's chance or its clock and did not, since the tier in which it ran has its own; "" where
// all was heeded, or nothing was run.
func (s *snippet) undecided(tier string, e run.Result) string {
	var unheeded []string
	if s.seed != "" && e.Seed == "" {
		unheeded = append(unheeded, "--seed")
	}
	if s.clock != "" && e.Clock == nil {
		unheeded = append(unheeded, "--clock")
	}
	if len(unheeded) == 0 || e.Type != run.OpShell {
		return ""
	}
	decides := "decides"
	if len(unheeded) > 1 {
		decides = "decide"
	}
	return fmt.Sprintf("%s %s nothing: the program ran in the tier %s, which has a chance and a clock of its own; with --runtime nano it "+
		"runs where the flags are heeded, or not at all", strings.Join(unheeded, " and "), decides, tier)
}

// fetch copies a file that the program left to this machine.
func (s *snippet) fetch(ctx context.Context, api *client.Client, in id.Space, what string) error {
	from, to := fromSpace(what)
	content, err := api.ReadFile(ctx, in, from)
	if err != nil {
		return err
	}
	defer content.Close()
	size, err := cmdline.Save(to, content, s.force)
	if err == nil && s.i.Terminal && !s.i.JSON {
		fmt.Fprintf(s.i.Err, "%s  %s\n", term.Plain(to), term.Bytesize(size))
	}
	return err
}

// fromSpace takes PATH[:HOST] apart.
func fromSpace(text string) (from, to string) {
	from, to, _ = strings.Cut(text, ":")
	return from, cmdline.First(to, path.Base(from))
}

// fromHost takes HOST[:PATH] apart. The colon behind the letter of a drive is part of HOST.
func fromHost(text string) (from, to string) {
	if n := strings.LastIndexByte(text, ':'); n > 1 || n == 1 && !strings.HasPrefix(text[2:], `\`) && !strings.HasPrefix(text[2:], "/") {
		return text[:n], text[n+1:]
	}
	return text, ""
}
