package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// runExport writes the transcript of a run.
func runExport(i *invocation) *cobra.Command {
	var (
		file, format, redact string
		force                bool
	)
	c := &cobra.Command{
		Use: "export RUN", Short: "Write a run's transcript: what was asked, decided and done", Args: cobra.ExactArgs(1),
		Long: "Export writes a transcript as JSON Lines, which `agentbox runs replay` replays here or elsewhere, or as Markdown to be read.\n" +
			"What is redacted leaves its hash, so that a replay can still be compared; of environment variables only the names stay.",
		Example: "  agentbox runs export run_... -o run.jsonl\n  agentbox runs export run_... --format md --redact env,output",
	}
	f := c.Flags()
	f.StringVarP(&file, "output", "o", "-", "file to write; - is standard output")
	f.BoolVarP(&force, "force", "f", false, "replace the file if it exists")
	f.StringVar(&format, "format", "jsonl", "jsonl or md")
	f.StringVar(&redact, "redact", run.RedactEnv, "what is taken out: "+strings.Join(run.Redactions(), ", ")+", separated by commas, or none")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		if format != "jsonl" && format != "md" {
			return usage("there is no format %q; it is jsonl or md", oneLine(format, 20))
		}
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		var classes []string
		if redact != "none" {
			classes = strings.Split(redact, ",")
		}
		raw, told, err := fetchTranscript(cmd.Context(), api, id.Run(args[0]), classes)
		if err != nil {
			return err
		}
		if format == "md" {
			raw = []byte(markdown(told))
		}
		if err := i.emit(file, force, func(w io.Writer) error {
			_, err := w.Write(raw)
			return err
		}); err != nil || file == "-" {
			return err
		}
		return i.show(exported{Run: told.Header.Run.ID, File: file, Bytes: len(raw), Redacted: told.Header.Redacted}, func(p *printer) {
			p.line("%s: %s, %d operations, redacted: %s", oneLine(file, 0), bytesize(int64(len(raw))), len(told.Asked), first(strings.Join(told.Header.Redacted, ", "), "nothing"))
		})
	}
	return c
}

// exported says in JSON what was written.
type exported struct {
	Run      id.Run   `json:"run_id"`
	File     string   `json:"file"`
	Bytes    int      `json:"size_bytes"`
	Redacted []string `json:"redacted"`
}

// fetchTranscript reads a transcript from the daemon and makes sure that it is whole.
func fetchTranscript(ctx context.Context, api *client.Client, r id.Run, redact []string) ([]byte, run.Transcript, error) {
	body, err := api.Transcript(ctx, r, redact)
	if err != nil {
		return nil, run.Transcript{}, err
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return nil, run.Transcript{}, fault.Wrap(err, fault.Unavailable, "transcript_cut", "the daemon broke the transcript off; try again")
	}
	told, err := run.ReadTranscript(bytes.NewReader(raw))
	return raw, told, err
}

// emit writes what write has to say to standard output, or to a file that appears as a whole or not at all.
func (i *invocation) emit(file string, force bool, write func(io.Writer) error) error {
	if file == "-" {
		return write(i.Out)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	_, err := save(file, &b, force)
	return err
}

// replay is one replay.
type replay struct {
	i        *invocation
	into     string
	keep     bool
	env      []string
	recorded run.Transcript
	notes    []string // what keeps the replay from being the same from the beginning
}

// runReplay executes a recorded run again.
func runReplay(i *invocation) *cobra.Command {
	r := replay{i: i}
	c := &cobra.Command{
		Use: "replay RUN|TRANSCRIPT.jsonl", Short: "Execute a recorded run again and name the first difference", Args: cobra.ExactArgs(1),
		Long: "Replay makes a space like the one of the run, executes the same operations there, gives the answers that people gave, and compares what was\n" +
			"decided and what came out with the record, operation by operation. Times, durations and ids differ in every run and are not compared.\n" +
			"It exits with 0 when nothing differs and with 1 when something does. The space is removed afterwards.",
		Example: "  agentbox runs replay run_...\n  agentbox runs replay run.jsonl --env TOKEN=... --keep",
	}
	f := c.Flags()
	f.StringVar(&r.into, "space", "", "replay in this space instead of a new one")
	f.BoolVar(&r.keep, "keep", false, "keep the new space")
	f.StringArrayVar(&r.env, "env", nil, "NAME=VALUE for a variable whose value was redacted; repeatable")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.connect(cmd.Context())
		if err != nil {
			return err
		}
		if r.recorded, err = i.recorded(cmd.Context(), api, args[0]); err != nil {
			return err
		}
		return r.run(cmd.Context(), api)
	}
	return c
}

// recorded reads a transcript from a file, or from the daemon where there is no file of that name.
func (i *invocation) recorded(ctx context.Context, api *client.Client, name string) (run.Transcript, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "run_") {
		_, told, err := fetchTranscript(ctx, api, id.Run(name), nil)
		return told, err
	}
	if err != nil {
		return run.Transcript{}, unreadable(err, name)
	}
	defer f.Close()
	return run.ReadTranscript(f)
}

// replayed is the outcome of a replay in JSON.
type replayed struct {
	Recorded   id.Run          `json:"recorded_run_id"`
	Run        id.Run          `json:"run_id"`
	Space      id.Space        `json:"space_id"`
	Same       bool            `json:"same"`
	Compared   int             `json:"operations_compared"`
	Divergence *run.Divergence `json:"first_divergence,omitempty"`
	Notes      []string        `json:"notes"`
}

// run replays and says what came out.
func (r *replay) run(ctx context.Context, api *client.Client) error {
	q, err := r.request()
	if err != nil {
		return err
	}
	in, remove, err := r.place(ctx, api)
	if err != nil {
		return err
	}
	defer remove()
	shown, err := r.i.execute(ctx, api, in, q, execution{answer: r.answer})
	if err != nil {
		return err
	}
	if !shown.Status.Ended() { // it asks what was not asked: the rest is not wanted
		if _, err := api.CancelRun(ctx, shown.ID, "the replay has diverged"); err != nil {
			return err
		}
	}
	_, told, err := fetchTranscript(ctx, api, shown.ID, nil)
	if err != nil {
		return err
	}
	d := run.Compare(r.recorded.Outcomes, told.Outcomes)
	if index, approval := shown.Pending(); approval != "" && (d == nil || d.Index >= index) {
		o := shown.Operations[index]
		d = &run.Divergence{Index: index, Operation: o.ID, Field: "decision", Recorded: r.decided(index), Replayed: "require_approval"}
	}
	out := replayed{Recorded: r.recorded.Header.Run.ID, Run: shown.ID, Space: in, Same: d == nil, Compared: len(r.recorded.Outcomes), Divergence: d, Notes: append([]string{}, r.notes...)}
	if err := r.i.show(out, func(p *printer) { p.replayed(out, r.recorded, told) }); err != nil {
		return err
	}
	if d != nil {
		return &ended{ExitInternal}
	}
	return nil
}

func (r *replay) decided(index int) string {
	for _, o := range r.recorded.Outcomes {
		if o.Index == index {
			return first(o.Decision, "none")
		}
	}
	return "none"
}

// request makes the operations message again. What was recorded up to the last outcome is replayed; what came after was never done.
func (r *replay) request() (client.RunRequest, error) {
	given := map[string]string{}
	for _, pair := range r.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return client.RunRequest{}, usage("--env %s is not NAME=VALUE", oneLine(pair, 60))
		}
		given[name] = value
	}
	t := &r.recorded
	if t.Header.Run.Redacted {
		return client.RunRequest{}, fault.New(fault.Conflict, "run_redacted", "data of the run %s were redacted, so that it cannot be done again", t.Header.Run.ID).
			With("agentbox audit redactions says by whom and why")
	}
	if len(t.Outcomes) == 0 {
		return client.RunRequest{}, fault.New(fault.Conflict, "nothing_to_replay", "no operation of the run %s has an outcome yet", t.Header.Run.ID)
	}
	count := t.Outcomes[len(t.Outcomes)-1].Index + 1
	var ops []run.Operation
	var files []string
	for _, a := range t.Asked[:count] {
		for name := range a.Removed {
			variable, isEnv := strings.CutPrefix(name, "env.")
			value, ok := given[variable]
			if !isEnv {
				return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted", "operation %s cannot be executed again: its %s was redacted", a.Operation.ID, name).
					With("export the run again with --redact env")
			}
			if !ok {
				return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted", "operation %s needs the variable %s, whose value was redacted", a.Operation.ID, variable).
					With("give it with --env " + variable + "=VALUE")
			}
			a.Operation.Env[variable] = value
		}
		if a.Operation.Context {
			files = append(files, a.Operation.Path)
			continue
		}
		ops = append(ops, a.Operation)
	}
	for name := range t.Header.Place.Env {
		if value, ok := given[name]; ok {
			t.Header.Place.Env[name] = value
		} else if slices.Contains(t.Header.Redacted, run.RedactEnv) {
			return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted", "the space needs the variable %s, whose value was redacted", name).
				With("give it with --env " + name + "=VALUE")
		}
	}
	raw, err := json.Marshal(ops)
	if err != nil {
		return client.RunRequest{}, err
	}
	q := client.RunRequest{Message: client.Message{ProtocolVersion: json.RawMessage(`"` + run.Protocol + `"`), Operations: raw}, Title: "replay of " + string(t.Header.Run.ID)}
	if len(files) > 0 {
		q.Context = &client.RunContext{Files: files}
	}
	return q, nil
}

// place returns the space in which is replayed, and what removes it.
func (r *replay) place(ctx context.Context, api *client.Client) (id.Space, func(), error) {
	if r.into != "" {
		in, err := r.i.named(ctx, api, r.into)
		return in, func() {}, err
	}
	was := r.recorded.Header.Place
	q := client.SpaceRequest{
		Name: "replay of " + string(r.recorded.Header.Run.ID), Policy: was.Policy, Tier: was.Tier, Env: was.Env, TTLSeconds: 3600, BestEffort: was.BestEffort,
		Metadata: map[string]string{"replay_of": string(r.recorded.Header.Run.ID)},
	}
	if err := json.Unmarshal(was.Limits, &q.Limits); err != nil {
		return "", nil, fault.Wrap(err, fault.Invalid, "transcript_invalid", "the transcript does not say which limits the space had")
	}
	made, err := api.CreateSpace(ctx, q)
	if err != nil {
		return "", nil, err
	}
	if made.Bundle != was.Bundle {
		r.notes = append(r.notes, "the policy "+was.Policy+" is not the one of the record: "+made.Bundle.String()+", not "+was.Bundle.String())
	}
	if r.keep {
		return made.ID, func() {}, nil
	}
	return made.ID, func() {
		if _, err := api.DestroySpace(context.WithoutCancel(ctx), made.ID); err != nil {
			r.i.printer(r.i.Err).line("the space %s could not be removed: %s", made.ID, err)
		}
	}, nil
}

// answer gives the answer that was given to the recorded run; a question that it never asked is left open.
func (r *replay) answer(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) {
	a, err := api.Approval(ctx, approval)
	if err != nil {
		return false, err
	}
	for _, o := range r.recorded.Outcomes {
		if o.ID != a.Operation || o.Answer == "" {
			continue
		}
		decision := "deny"
		if o.Answer == "approved" {
			decision = "approve"
		}
		_, err := api.Decide(ctx, approval, client.Answer{Decision: decision, Reason: "replay of " + string(r.recorded.Header.Run.ID) + ", where it was " + o.Answer})
		return err == nil, err
	}
	return false, nil
}

// replayed writes a replay for people.
func (p *printer) replayed(out replayed, recorded, told run.Transcript) {
	var rows [][]cell
	for n, want := range recorded.Outcomes {
		word, colour := "same", green
		switch {
		case out.Divergence != nil && want.Index == out.Divergence.Index:
			word, colour = "differs in "+out.Divergence.Field, red
		case out.Divergence != nil && want.Index > out.Divergence.Index:
			word, colour = "-", faint
		}
		o := recorded.Asked[want.Index].Operation
		var was, is string
		was, _ = said(want.Result)
		if n < len(told.Outcomes) {
			is, _ = said(told.Outcomes[n].Result)
		}
		rows = append(rows, []cell{text(want.ID), text(o.Type), {oneLine(was, 40), faint}, {oneLine(is, 40), faint}, {word, colour}})
	}
	p.table("Nothing was replayed.", []string{"operation", "", "recorded", "replayed", ""}, rows)
	for _, note := range out.Notes {
		p.line("%s %s", p.paint(yellow, "!"), wrapped(plain(note), p.width, 2))
	}
	d := out.Divergence
	if d == nil {
		p.line("\n%s: %d operations of %s gave the same in %s", p.paint(green, "same"), out.Compared, out.Recorded, out.Run)
		return
	}
	at := ""
	if d.Offset != nil {
		at = " at byte " + strconv.FormatInt(*d.Offset, 10)
	}
	p.line("\n%s: operation %s differs first, in %s%s", p.paint(red, "diverged"), p.paint(bold, plain(d.Operation)), d.Field, at)
	p.line("  recorded: %s", oneLine(d.Recorded, 0))
	p.line("  replayed: %s", oneLine(d.Replayed, 0))
}
