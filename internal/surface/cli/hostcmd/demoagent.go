package hostcmd

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/surface/cli/agentcmd"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/runview"
	"agentbox/internal/surface/cli/term"
)

// demoModel is the name under which the demo's blueprint knows its model.
const demoModel = "weather"

// task gives an agent a task in the space, and follows it to its report.
func (d *showcase) task(ctx context.Context, api *client.Client) error {
	if err := d.offerModel(ctx, api); err != nil {
		return err
	}
	locked, err := api.LockBlueprint(ctx, d.i.Agent.Blueprint)
	if err != nil {
		return err
	}
	entry, err := api.RegisterBlueprint(ctx, demoModel, locked.Text)
	if err != nil {
		return err
	}
	d.p.Line("%s, version %d of its blueprint, is asked:\n\n%s", entry.Name, entry.Version, strings.TrimSpace(d.i.Agent.Task)+"\n")
	made, err := api.RunBlueprint(ctx, demoModel, client.AgentTask{Task: d.i.Agent.Task, Space: d.space.ID})
	if err != nil {
		return err
	}
	told := *d.p
	if told.JSON { // the answer is one object
		told = *d.i.Printer(d.i.Err)
		told.JSON = false
	}
	answer := d.yes
	if d.ask {
		answer = d.i.Answer
	}
	if err := agentcmd.Follow(ctx, &told, api, made, func(ctx context.Context, approval id.Approval) error {
		done, err := answer(ctx, api, approval)
		if err == nil && !done {
			err = &cmdline.Ended{Code: cmdline.ExitWaiting}
		}
		return err
	}); err != nil {
		return err
	}
	if d.agent, err = api.Run(ctx, made.ID); err != nil {
		return err
	}
	var out struct {
		Report string `json:"report"`
	}
	if d.agent.Reported != nil {
		_ = json.Unmarshal(d.agent.Reported.Output, &out) // a run that failed has none
	}
	d.p.Line("\nthe agent's run %s: %s", runview.Stands(d.agent.Status), term.Plain(out.Report+d.agent.Error))
	return nil
}

// offerModel puts the agent's model into the catalogue: the cassette, or a live one with its key.
func (d *showcase) offerModel(ctx context.Context, api *client.Client) error {
	spec := client.ModelSpec{Provider: model.Scripted, BaseURL: demoModel, Model: "cassette"}
	if d.model == "" {
		folder := filepath.Join(d.daemon.DataDir, "cassettes")
		err := os.MkdirAll(folder, 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, demoModel+".jsonl"), d.i.Agent.Cassette, 0o600)
		}
		if err != nil {
			return fault.Wrap(err, fault.Unavailable, "cassette_unwritable", "the cassette of the demo cannot be written")
		}
		_, err = api.PutModel(ctx, demoModel, spec)
		return err
	}
	spec, variable, err := liveModel(d.model)
	if err != nil {
		return err
	}
	key := d.i.Getenv(variable)
	if key == "" {
		return cmdline.Usage("--model %s: put the key of the model into the variable %s", d.model, variable)
	}
	if err := api.SetModelKey(ctx, spec.Key, model.NewSecret(key)); err != nil {
		return err
	}
	_, err = api.PutModel(ctx, demoModel, spec)
	return err
}

// liveModel reads a model of a vendor, and returns the variable that holds its key.
func liveModel(name string) (spec client.ModelSpec, variable string, err error) {
	vendor, of, named := strings.Cut(name, ":")
	if !named {
		vendor, of = model.DialectZAI, name
	}
	spec = client.ModelSpec{Model: of, Key: "demo"}
	switch vendor {
	case model.DialectZAI:
		spec.Provider, spec.Dialect, variable = model.OpenAI, model.DialectZAI, "ZAI_API_KEY"
	case model.OpenAI:
		spec.Provider, spec.Dialect, variable = model.OpenAI, model.DialectOpenAI, "OPENAI_API_KEY"
	case model.Anthropic:
		spec.Provider, variable = model.Anthropic, "ANTHROPIC_API_KEY"
	}
	if variable == "" || of == "" {
		return spec, "", cmdline.Usage("--model %s: name a model of z.ai, or openai:NAME or anthropic:NAME", name)
	}
	return spec, variable, nil
}
