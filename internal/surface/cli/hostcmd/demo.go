package hostcmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/auditcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// Demo does the main job from beginning to end, with a daemon of its own.
func Demo(i *cmdline.Invocation) *cobra.Command {
	var (
		d showcase
	)
	c := &cobra.Command{
		Use: "demo", Short: "Run the main job from start to end, with a daemon of its own", Args: cobra.NoArgs,
		Long: "Demo starts a daemon with a fresh data directory, makes a space, puts a real data set into it and runs the operations of\n" +
			"examples/weather-report: two programs that work, a command that policy refuses, one that a person is asked about. Then an\n" +
			"agent gets a task (examples/weather-agent). Its model plays a cassette, or is a live one that --model names. It ends with the\n" +
			"artifacts and the proof that the log is intact.",
	}
	flags(&d.daemon, c)
	c.Flags().BoolVar(&d.ask, "ask", false, "ask here what a person has to decide; without it the demo answers yes")
	c.Flags().BoolVar(&d.keep, "keep", false, "keep the data directory")
	c.Flags().StringVar(&d.dataset, "dataset", "", "seattle-weather.csv (default: where scripts/fetch-dataset puts it)")
	c.Flags().StringVar(&d.out, "out", "agentbox-demo", "folder for the artifacts")
	c.Flags().StringVar(&d.model, "model", "", "a live model for the agent: one of z.ai, or openai:NAME or anthropic:NAME; its key is read "+
		"from ZAI_API_KEY, OPENAI_API_KEY or ANTHROPIC_API_KEY")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		d.i, d.p = i, i.Printer(i.Out)
		return d.run(cmd.Context())
	}
	return c
}

// showcase is one run of the demo.
type showcase struct {
	i            *cmdline.Invocation
	p            *term.Printer
	daemon       cmdline.Daemon
	ask, keep    bool
	dataset, out string
	model        string // a live one; "" for the cassette
	space        space.Space
	files        []string
	shown        client.RunShown
	agent        client.RunShown
	proofs       []cmdline.Proof
}

// showcased is the demo's answer in JSON.
type showcased struct {
	Space     id.Space        `json:"space_id"`
	Run       client.RunShown `json:"run"`
	Agent     client.RunShown `json:"agent_run"`
	Artifacts []string        `json:"artifacts"`
	Audit     []cmdline.Proof `json:"audit"`
	Data      string          `json:"data,omitempty"`
}

func (d *showcase) run(ctx context.Context) (err error) {
	if d.dataset == "" {
		d.dataset = filepath.Join(cmdline.First(d.i.Getenv("AGENTBOX_CACHE"), filepath.Join(d.i.Getenv("HOME"), ".cache", "agentbox")),
			"datasets",
			"seattle-weather.csv")
	}
	if _, err := os.Stat(d.dataset); err != nil {
		return cmdline.Unreadable(err, d.dataset).With("fetch it with scripts/fetch-dataset, or name it with --dataset")
	}
	if err := root(&d.daemon); err != nil {
		return err
	}
	if d.daemon.DataDir, err = os.MkdirTemp("", "agentbox-demo-"); err != nil {
		return fault.Wrap(err, fault.Unavailable, "no_data_directory", "a fresh data directory cannot be made")
	}
	if !d.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(d.daemon.DataDir)) }()
	}
	d.daemon.Listen = "127.0.0.1:0"

	serving, stop := context.WithCancel(ctx)
	ready, stopped := make(chan string, 1), make(chan error, 1)
	go func() { stopped <- d.i.Up(serving, d.daemon, func(addr string, _ bool) { ready <- addr }) }()
	defer func() {
		stop()
		if ended := <-stopped; err == nil {
			err = ended
		}
	}()
	select {
	case addr := <-ready:
		return d.play(ctx, addr)
	case err := <-stopped:
		stopped <- nil
		return err
	}
}

// play does the job as a client of the daemon that serves on addr.
func (d *showcase) play(ctx context.Context, addr string) error {
	begun := d.i.Clock.Now()
	key, err := cmdline.OwnerKey(d.daemon.DataDir)
	if err != nil {
		return err
	}
	api := client.New("http://"+addr, key)
	d.chapter("A daemon serves on http://" + addr + ", its data in " + d.daemon.DataDir)
	if err := d.prepare(ctx, api); err != nil {
		return err
	}
	d.chapter("The agent's operations")
	if err := d.operate(ctx, api); err != nil {
		return err
	}
	d.chapter("The timeline")
	if !d.p.JSON {
		runview.WriteRun(d.p, d.i, d.shown)
	}
	d.chapter("An agent gets a task")
	if err := d.task(ctx, api); err != nil {
		return err
	}
	if err := d.collect(ctx, api); err != nil {
		return err
	}
	if d.proofs, err = d.i.Audit.Verify(ctx, cmdline.AuditQuery{Place: d.daemon.Place, SnapshotBytes: 1 << 30}); err != nil {
		return err
	}
	d.chapter("The proof")
	valid := len(d.proofs) > 0
	for _, proof := range d.proofs {
		valid = valid && proof.Valid
		if !d.p.JSON {
			auditcmd.WriteProof(d.p, proof)
		}
	}
	if d.keep {
		d.p.Line("\nthe data directory stays: agentbox up --data %s", d.daemon.DataDir)
	}
	d.p.Line("%s", d.p.Paint(term.Faint, "\ndone in "+term.Duration(d.i.Clock.Now().Sub(begun))))
	if d.p.JSON {
		answer := showcased{Space: d.space.ID, Run: d.shown, Agent: d.agent, Artifacts: d.files, Audit: d.proofs}
		if d.keep {
			answer.Data = d.daemon.DataDir
		}
		if err := d.p.Object(answer); err != nil {
			return err
		}
	}
	if !valid {
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	}
	if d.agent.Status != run.Succeeded {
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	}
	return follow.Verdict(d.shown, false)
}

func (d *showcase) chapter(title string) { d.p.Line("\n%s", d.p.Paint(term.Bold, title)) }

// prepare makes the space and puts the data set into it.
func (d *showcase) prepare(ctx context.Context, api *client.Client) error {
	q := client.SpaceRequest{Name: "weather", Policy: "standard", Runtime: space.RuntimeHeavy, TTLSeconds: int64(time.Hour / time.Second)}
	create := func(name string) (space.Space, error) {
		q.Name = name
		return api.CreateSpace(ctx, q)
	}
	made, err := cmdline.UnlessTaken(q.Name, create)
	if fault.CodeOf(err) == "bound_not_enforceable" {
		q.BestEffort = true
		made, err = cmdline.UnlessTaken("weather", create)
	}
	if err != nil {
		return err
	}
	d.space = made
	d.p.Line("space %s: tier %s, policy %s, no network", made.ID, made.Tier, made.Policy)
	if len(made.Unenforced) > 0 {
		d.p.Line("%s", d.p.Paint(term.Yellow, "this machine cannot enforce "+strings.Join(made.Unenforced, ", ")+
			"; the demo goes on. See: agentbox doctor"))
	}
	content, err := os.ReadFile(d.dataset)
	if err != nil {
		return cmdline.Unreadable(err, d.dataset)
	}
	entry, err := api.WriteFile(ctx, made.ID, "data/seattle-weather.csv", bytes.NewReader(content), int64(len(content)), true, "")
	if err != nil {
		return err
	}
	d.p.Line("%s: %s, %d days of weather", entry.Path, term.Bytesize(entry.Size), bytes.Count(content, []byte("\n"))-1)
	return nil
}

// operate runs the example.
func (d *showcase) operate(ctx context.Context, api *client.Client) error {
	m, err := client.ParseMessage(d.i.Example)
	if err != nil {
		return err
	}
	q := client.RunRequest{Message: m, Title: "weather report"}
	e := follow.Execution{Stream: !d.p.JSON, Answer: d.i.Answer}
	if !d.ask {
		e.Answer = d.yes
	}
	d.shown, err = follow.Execute(ctx, d.i, api, d.space.ID, q, e)
	return err
}

// yes shows a question, and answers it for the person who watches.
func (d *showcase) yes(ctx context.Context, api *client.Client, approval id.Approval) (bool, error) {
	a, err := api.Approval(ctx, approval)
	if err != nil {
		return false, err
	}
	if !d.p.JSON {
		d.p.Line("")
		cmdline.WriteQuestion(d.p, a)
		d.p.Line("%s\n", d.p.Paint(term.Yellow, "the demo answers yes, through the API; --ask lets you answer"))
	}
	_, err = api.Decide(ctx, approval, client.Answer{Decision: "approve", Reason: "the demo's own answer"})
	return err == nil, err
}

// collect copies what the run made out of the space.
func (d *showcase) collect(ctx context.Context, api *client.Client) error {
	d.chapter("The artifacts")
	if d.shown.Status != run.Succeeded {
		d.p.Line("the run %s; its files are not collected", runview.Stands(d.shown.Status))
		return nil
	}
	names := []string{"report.md", "out/weather.svg", "out/summary.json"}
	if d.agent.Status == run.Succeeded {
		names = append(names, "agent/report.md", "agent/chart.svg")
	}
	for _, name := range names {
		target := filepath.Join(d.out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", target)
		}
		content, err := api.ReadFile(ctx, d.space.ID, name)
		if err != nil {
			return err
		}
		size, err := cmdline.Save(target, content, true)
		_ = content.Close()
		if err != nil {
			return err
		}
		abs, err := cmdline.Absolute(target)
		if err != nil {
			return err
		}
		d.files = append(d.files, abs)
		d.p.Line("%s  %s", abs, d.p.Paint(term.Faint, term.Bytesize(size)))
	}
	return nil
}
