// Package replaycmd has the commands that write transcripts of runs, take them in and replay them.
package replaycmd

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/codecmd"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// replay is one replay.
type replay struct {
	i        *cmdline.Invocation
	into     string
	keep     bool
	empty    bool
	env      []string
	recorded run.Transcript
	start    start
	notes    []string // what keeps the replay from being the same from the beginning
}

// start says with which files a replay began.
type start struct {
	// snapshot: of the run's own space; transcript: those that it carries; empty: none; space: those of the space that was named
	From     string       `json:"from"`
	Snapshot event.Digest `json:"snapshot_sha256,omitzero"`
	Exact    bool         `json:"exact"` // they are, by their hash, those that the run began with
}

// RunReplay executes a recorded run again.
func RunReplay(i *cmdline.Invocation) *cobra.Command {
	r := replay{i: i}
	c := &cobra.Command{
		Use: "replay RUN|TRANSCRIPT.jsonl", Short: "Execute a recorded run again and name the first difference", Args: cobra.ExactArgs(1),
		Long: "Replay makes a space like the one of the run, under the same policy and with the files that the run began with (a fork of its " +
			"space where\n" +
			"that is here and keeps the snapshot, else the files that the transcript carries), executes the same operations there, gives the " +
			"answers that people gave, and compares what was\n" +
			"decided and what came out with the record, operation by operation. Times, durations and ids differ in every run and are not " +
			"compared.\n" +
			"What ran in nano is given its seed and its clock again, in a nano space, and is compared to the unit of gas, and by what it left of " +
			"the files.\n" +
			"It exits with 0 when nothing differs and with 1 when something does. The space is removed afterwards.",
		Example: "  agentbox runs replay run_...\n  agentbox runs replay run.jsonl --env TOKEN=... --keep",
	}
	f := c.Flags()
	f.StringVar(&r.into, "space", "", "replay in this space instead of a new one")
	f.BoolVar(&r.keep, "keep", false, "keep the new space")
	f.BoolVar(&r.empty, "empty", false, "begin without files, whatever the run began with")
	f.StringArrayVar(&r.env, "env", nil, "NAME=VALUE for a variable whose value was redacted; repeatable")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		if r.recorded, err = recorded(cmd.Context(), i, api, args[0]); err != nil {
			return err
		}
		return r.run(cmd.Context(), api)
	}
	return c
}

// recorded reads a transcript from a file, or from the daemon where there is no file of that name.
func recorded(ctx context.Context, i *cmdline.Invocation, api *client.Client, name string) (run.Transcript, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(name, "run_") {
		_, told, err := fetchTranscript(ctx, api, id.Run(name), nil, false)
		return told, err
	}
	if err != nil {
		return run.Transcript{}, cmdline.Unreadable(err, name)
	}
	defer f.Close()
	return run.ReadTranscript(f)
}

// replayed is the outcome of a replay in JSON.
type replayed struct {
	Recorded   id.Run          `json:"recorded_run_id"`
	Run        id.Run          `json:"run_id"`
	Space      id.Space        `json:"space_id"`
	Start      start           `json:"start"`
	Engines    *engineChange   `json:"engine_changed,omitempty"` // then gas may differ though the work is the same
	Same       bool            `json:"same"`
	Gas        int64           `json:"gas,omitempty"` // of the recorded run, where it was counted
	Compared   int             `json:"operations_compared"`
	Divergence *run.Divergence `json:"first_divergence,omitempty"`
	Notes      []string        `json:"notes"`
}

// engineChange says that what gas depends on is not what it was.
type engineChange struct {
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
}

// changed returns the first change of the engine between two lists of outcomes.
func changed(recorded, told []run.Outcome) *engineChange {
	now := map[int]string{}
	for _, o := range told {
		now[o.Index] = o.Result.Engine
	}
	for _, o := range recorded {
		if was, is := o.Result.Engine, now[o.Index]; was != "" && is != "" && was != is {
			return &engineChange{was, is}
		}
	}
	return nil
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
	shown, err := follow.Execute(ctx, r.i, api, in, q, follow.Execution{Answer: r.answer})
	if err != nil {
		return err
	}
	if !shown.Status.Ended() { // it asks what was not asked: the rest is not wanted
		if _, err := api.CancelRun(ctx, shown.ID, "the replay has diverged"); err != nil {
			return err
		}
	}
	_, told, err := fetchTranscript(ctx, api, shown.ID, nil, false)
	if err != nil {
		return err
	}
	gas := int64(0)
	for n := range r.recorded.Outcomes {
		o := &r.recorded.Outcomes[n]
		if gas += o.Result.Gas; !r.start.Exact {
			o.Snapshot = event.Digest{} // what began otherwise ends otherwise
		}
	}
	d := run.Compare(r.recorded.Outcomes, told.Outcomes)
	if index, approval := shown.Pending(); approval != "" && (d == nil || d.Index >= index) {
		o := shown.Operations[index]
		d = &run.Divergence{Index: index, Operation: o.ID, Field: "decision", Recorded: r.decided(index), Replayed: "require_approval"}
	}
	for _, o := range r.recorded.Outcomes {
		if o.Forgotten {
			r.notes = append(r.notes, "the result of operation "+o.ID+" was redacted and cannot be compared")
		}
	}
	out := replayed{Recorded: r.recorded.Header.Run.ID, Run: shown.ID, Space: in, Start: r.start, Engines: changed(r.recorded.Outcomes,
		told.Outcomes), Same: d == nil, Gas: gas, Compared: len(r.recorded.Outcomes), Divergence: d, Notes: append([]string{}, r.notes...)}
	if err := r.i.Show(out, func(p *term.Printer) { writeReplayed(p, out, r.recorded, told) }); err != nil {
		return err
	}
	if d != nil {
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	}
	return nil
}

func (r *replay) decided(index int) string {
	for _, o := range r.recorded.Outcomes {
		if o.Index == index {
			return cmdline.First(o.Decision, "none")
		}
	}
	return "none"
}

// request makes the operations message again. It replays the operations up to the last recorded outcome; later ones never ran.
func (r *replay) request() (client.RunRequest, error) {
	given := map[string]string{}
	for _, pair := range r.env {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return client.RunRequest{}, cmdline.Usage("--env %s is not NAME=VALUE", term.OneLine(pair, 60))
		}
		given[name] = value
	}
	t := &r.recorded
	if t.Header.Run.Redacted {
		return client.RunRequest{}, fault.New(fault.Conflict, "run_redacted", "data of the run %s were redacted, so it cannot be repeated",
			t.Header.Run.ID).
			With("agentbox audit redactions says by whom and why")
	}
	if len(t.Outcomes) == 0 {
		return client.RunRequest{}, fault.New(fault.Conflict, "nothing_to_replay", "no operation of the run %s has an outcome yet",
			t.Header.Run.ID)
	}
	count := t.Outcomes[len(t.Outcomes)-1].Index + 1
	var ops []run.Operation
	var files []string
	again := map[int]run.Result{}
	for _, o := range t.Outcomes {
		if o.Exact() {
			again[o.Index] = o.Result
		}
	}
	for _, a := range t.Asked[:count] {
		was, exact := again[a.Index]
		for name := range a.Removed {
			variable, isEnv := strings.CutPrefix(name, "env.")
			value, ok := given[variable]
			if exact && isEnv && slices.Contains(codecmd.Hidden, variable) {
				continue // the result says what it was
			}
			if !isEnv {
				return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted",
					"operation %s cannot be executed again: its %s was redacted", a.Operation.ID, name).
					With("export the run again with --redact env")
			}
			if !ok {
				return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted",
					"operation %s needs the variable %s, whose value was redacted", a.Operation.ID, variable).
					With("give it with --env " + variable + "=VALUE")
			}
			a.Operation.Env[variable] = value
		}
		if a.Operation.Context {
			files = append(files, a.Operation.Path)
			continue
		}
		if exact {
			r.determine(&a.Operation, was)
		}
		ops = append(ops, a.Operation)
	}
	for name := range t.Header.Place.Env {
		if value, ok := given[name]; ok {
			t.Header.Place.Env[name] = value
		} else if slices.Contains(codecmd.Hidden, name) && len(again) > 0 {
			delete(t.Header.Place.Env, name) // each operation names its own
		} else if slices.Contains(t.Header.Redacted, run.RedactEnv) || policy.IsMask(t.Header.Place.Env[name]) {
			return client.RunRequest{}, fault.New(fault.Invalid, "transcript_redacted", "the space needs the variable %s, whose value was redacted",
				name).
				With("give it with --env " + name + "=VALUE")
		}
	}
	raw, err := json.Marshal(ops)
	if err != nil {
		return client.RunRequest{}, err
	}
	q := client.RunRequest{Message: client.Message{ProtocolVersion: json.RawMessage(`"` + run.Protocol + `"`), Operations: raw},
		Title: "replay of " + string(t.Header.Run.ID)}
	if len(files) > 0 {
		q.Context = &client.RunContext{Files: files}
	}
	return q, nil
}

// determine gives an operation the chance and the clock that it had.
func (r *replay) determine(op *run.Operation, was run.Result) {
	env := map[string]string{}
	maps.Copy(env, op.Env)
	env[codecmd.SeedVariable], env[codecmd.ClockVariable] = was.Seed, was.Clock.UTC().Format(time.RFC3339Nano)
	if len(env) > run.MaxEnv {
		r.notes = append(r.notes, "operation "+op.ID+" has so many variables that it cannot be given its seed and clock")
		return
	}
	op.Env = env
}

// runtime returns what the replay has to run in: nano where all that is exact ran there and nothing ran elsewhere, "" where nothing is
// exact.
func (r *replay) runtime() string {
	exact, other := false, false
	for _, o := range r.recorded.Outcomes {
		exact = exact || o.Exact()
		other = other || o.Result.Type == run.OpShell && !o.Exact()
	}
	switch {
	case !exact:
		return ""
	case other:
		return space.RuntimeAuto
	}
	return nanoTier
}

// nanoTier is the tier in which what is done is exact.
const nanoTier = "nano"

// place returns the space in which is replayed, and what removes it.
func (r *replay) place(ctx context.Context, api *client.Client) (id.Space, func(), error) {
	if r.into != "" {
		in, err := r.i.Named(ctx, api, r.into)
		r.start = start{From: "space"}
		return in, func() {}, err
	}
	made, err := r.make(ctx, api)
	if err != nil {
		return "", nil, err
	}
	remove := func() {
		if _, err := api.DestroySpace(context.WithoutCancel(ctx), made.ID); err != nil {
			r.i.Printer(r.i.Err).Line("the space %s could not be removed: %s", made.ID, err)
		}
	}
	if err := r.begun(ctx, api, made); err != nil {
		remove()
		return "", nil, err
	}
	if was := r.recorded.Header.Place; made.Bundle != was.Bundle {
		r.notes = append(r.notes, "the policy "+was.Policy+" is not the one of the record: "+made.Bundle.String()+", not "+was.Bundle.String())
	}
	if r.keep {
		remove = func() {}
	}
	return made.ID, remove, nil
}

// replayTTL is how long a space for a replay lives if nothing removes it before, in seconds.
const replayTTL = 3600

// make makes a space like the recorded one: a fork of it where it is here and keeps what its files were, else a new one.
func (r *replay) make(ctx context.Context, api *client.Client) (space.Space, error) {
	was, began := r.recorded.Header.Place, r.recorded.Header.Start
	name, metadata := "replay of "+string(r.recorded.Header.Run.ID), map[string]string{"replay_of": string(r.recorded.Header.Run.ID)}
	runtime := r.runtime()
	if began != nil && !r.empty {
		made, err := cmdline.UnlessTaken(name, func(name string) (space.Space, error) {
			return api.ForkSpace(ctx, was.ID, client.ForkRequest{At: began.Root.Hex(), Name: name, Env: was.Env, Metadata: metadata,
				TTLSeconds: replayTTL})
		})
		switch {
		case err == nil && made.Bundle == was.Bundle && (runtime == "" || made.Tier == nanoTier):
			r.start.From = "snapshot"
			return made, nil
		case err == nil: // another space that has the same name elsewhere, or one that has been promoted since
			if _, err := api.DestroySpace(ctx, made.ID); err != nil {
				return made, err
			}
			if _, told, err := fetchTranscript(ctx, api, r.recorded.Header.Run.ID, nil, true); err == nil && len(r.recorded.Files) == 0 &&
				runtime != "" {
				r.recorded.Files, r.recorded.Omitted = told.Files, told.Omitted
			}
		case fault.KindOf(err) != fault.NotFound && fault.CodeOf(err) != "space_destroyed":
			return made, err
		}
	}
	q := client.SpaceRequest{
		Name: name, Policy: was.Policy, Tier: was.Tier, Env: was.Env, TTLSeconds: replayTTL, BestEffort: was.BestEffort, Metadata: metadata,
	}
	if runtime != "" {
		q.Tier, q.Runtime = "", runtime
	}
	if was.Text != nil {
		q.Policy, q.PolicyBundle = "", was.Text
	}
	if err := json.Unmarshal(was.Limits, &q.Limits); err != nil {
		return space.Space{}, fault.Wrap(err, fault.Invalid, "transcript_invalid", "the transcript does not say which limits the space had")
	}
	r.start.From = "empty"
	switch files := r.recorded.Files; {
	case r.empty:
	case len(files) > 0:
		r.start.From, q.From = "transcript", &client.SpaceSeed{Archive: files}
	case began == nil:
		r.notes = append(r.notes, "the record does not say which files the run began with; the replay began with none")
	case began.Files > 0:
		return space.Space{}, fault.New(fault.Conflict, "start_missing",
			"the run began with %d files, which are not here: its space is gone or keeps them no longer, and the transcript does not carry them",
			began.Files).
			With("export it where it was executed with --files, name a space that has them with --space, or begin without them with --empty")
	}
	return cmdline.UnlessTaken(q.Name, func(name string) (space.Space, error) {
		q.Name = name
		return api.CreateSpace(ctx, q)
	})
}

// begun notes with which files the replay begins, and whether they are the recorded ones.
func (r *replay) begun(ctx context.Context, api *client.Client, made space.Space) error {
	page, err := api.Snapshots(ctx, made.ID, client.Page{Limit: 1})
	if err != nil || len(page.Snapshots) == 0 {
		return err
	}
	r.start.Snapshot = page.Snapshots[0].Root
	began := r.recorded.Header.Start
	if began == nil {
		return nil
	}
	r.start.Exact = began.Root == r.start.Snapshot
	switch {
	case r.start.Exact:
	case r.recorded.Omitted > 0 && r.start.From == "transcript":
		r.notes = append(r.notes, strconv.Itoa(r.recorded.Omitted)+" of the files that the run began with are not in the transcript")
	default:
		r.notes = append(r.notes, "the files that the replay began with are not, name by name and bit by bit, those that the run began with")
	}
	return nil
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
		_, err := api.Decide(ctx, approval, client.Answer{Decision: decision, Reason: "replay of " + string(r.recorded.Header.Run.ID) +
			", where it was " + o.Answer})
		return err == nil, err
	}
	return false, nil
}

// writeReplayed writes a replay for people.
func writeReplayed(p *term.Printer, out replayed, recorded, told run.Transcript) {
	if e := out.Engines; e != nil {
		p.Line("%s %s", p.Paint(term.Yellow, "!"),
			term.Wrapped("what gas depends on has changed: it was "+term.Plain(e.Recorded)+", and is "+term.Plain(e.Replayed),
				p.Width, 2))
	}
	var rows [][]term.Cell
	for n, want := range recorded.Outcomes {
		word, colour := "same", term.Green
		switch {
		case out.Divergence != nil && want.Index == out.Divergence.Index:
			word, colour = "differs in "+out.Divergence.Field, term.Red
		case out.Divergence != nil && want.Index > out.Divergence.Index:
			word, colour = "-", term.Faint
		}
		o := recorded.Asked[want.Index].Operation
		var was, is string
		was, _ = runview.Said(want.Result)
		if n < len(told.Outcomes) {
			is, _ = runview.Said(told.Outcomes[n].Result)
		}
		rows = append(rows, []term.Cell{term.Text(want.ID), term.Text(o.Type), {Text: p.Cut(was, 40), Colour: term.Faint}, {Text: p.Cut(is, 40),
			Colour: term.Faint}, {Text: word, Colour: colour}})
	}
	p.Table("Nothing was replayed.", []string{"operation", "", "recorded", "replayed", ""}, rows)
	p.Line("%s", p.Paint(term.Faint, "began with "+out.Start.text()))
	for _, note := range out.Notes {
		p.Line("%s %s", p.Paint(term.Yellow, "!"), term.Wrapped(term.Plain(note), p.Width, 2))
	}
	d := out.Divergence
	if d == nil && out.Gas > 0 {
		p.Line("\n%s, %d gas: %s of %s gave the same in %s", p.Paint(term.Green, "equal"), out.Gas, term.Count(out.Compared, "operation"),
			out.Recorded,
			out.Run)
		return
	}
	if d == nil {
		p.Line("\n%s: %s of %s gave the same in %s", p.Paint(term.Green, "same"), term.Count(out.Compared, "operation"), out.Recorded, out.Run)
		return
	}
	p.Line("\n%s: operation %s differs first, in %s", p.Paint(term.Red, "diverged"), p.Paint(term.Bold, term.Plain(d.Operation)), where(d))
	p.Line("  recorded: %s", term.OneLine(d.Recorded, 0))
	p.Line("  replayed: %s", term.OneLine(d.Replayed, 0))
	if d.Gas != nil && d.Field != "gas" {
		p.Line("  gas: %d recorded, %d replayed", d.Gas.Recorded, d.Gas.Replayed)
	}
	if d.Text != nil {
		p.Line("  %s:", where(d.Text))
		p.Line("    recorded: %s", term.OneLine(d.Text.Recorded, 0))
		p.Line("    replayed: %s", term.OneLine(d.Text.Replayed, 0))
	}
}

// where says in which field a difference is, and at which byte of it.
func where(d *run.Divergence) string {
	if d.Offset == nil {
		return term.Plain(d.Field)
	}
	return term.Plain(d.Field) + " at byte " + strconv.FormatInt(*d.Offset, 10)
}

// text says with which files a replay began.
func (s start) text() string {
	words := map[string]string{
		"snapshot": "the snapshot that was taken before the run", "transcript": "the files that the transcript carries", "empty": "no files",
		"space": "the files of the space that was named",
	}[s.From]
	if !s.Snapshot.IsZero() {
		words += ", " + s.Snapshot.String()
	}
	return words
}
