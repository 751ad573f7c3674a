package cmdline

import (
	"context"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/term"
)

// Near returns the names that a person may have meant by a word: those that begin with it, and those that differ from it in two letters at
// most.
func Near(word string, names []string) []string {
	c := &cobra.Command{SuggestionsMinimumDistance: min(2, len(word)/2)}
	for _, name := range names {
		c.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return c.SuggestionsFor(word)
}

// mostNames is how many names a hint lists.
const mostNames = 10

// Listed joins names for a hint, ten of them at most.
func Listed(names []string) string {
	said := strings.Join(names[:min(len(names), mostNames)], ", ")
	if len(names) > mostNames {
		said += ", and more"
	}
	return said
}

// didYouMean says which names are near an unknown one, or else which names there are.
func didYouMean(word string, names []string) string {
	if near := Near(word, names); len(near) > 0 {
		return "did you mean: " + Listed(near)
	}
	return "there are: " + Listed(names)
}

// BlueprintFile returns the path of the file of this folder that bears the name of a blueprint; "" where there is none.
func BlueprintFile(name string) string {
	if blueprint.NameField().Text(name) != "" {
		return ""
	}
	for _, file := range []string{name + ".yaml", name + ".yml"} {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return ""
}

// Blueprints reads the registered blueprints, page by page.
func Blueprints(ctx context.Context, api *client.Client) ([]blueprint.Entry, error) {
	return All(func(cursor string) ([]blueprint.Entry, string, error) {
		page, err := api.Blueprints(ctx, false, client.Page{Cursor: cursor, Limit: 100})
		return page.Blueprints, page.Next, err
	})
}

func names(all []blueprint.Entry) []string {
	out := make([]string, len(all))
	for n, b := range all {
		out[n] = b.Name
	}
	return out
}

// UnknownBlueprint returns the error of a request that names a blueprint. If there is no such blueprint, it says which name was typed, and
// which one the person may have meant.
func UnknownBlueprint(ctx context.Context, api *client.Client, name string, err error) error {
	wrong := blueprint.NameField().Text(name)
	if fault.CodeOf(err) != blueprint.ErrNotFound.Code && (wrong == "" || fault.KindOf(err) != fault.Invalid) {
		return err
	}
	hint := []string{}
	all, listing := Blueprints(ctx, api)
	switch file := BlueprintFile(name); {
	case file != "":
		hint = append(hint, file+" is not registered: agentbox blueprint register "+file)
	case listing != nil:
	case len(all) == 0:
		hint = append(hint, "this workspace has no blueprints; write one: agentbox blueprint init FILE.yaml")
	default:
		hint = append(hint, didYouMean(name, names(all)))
	}
	if wrong != "" {
		hint = append(hint, "the name of a blueprint "+wrong)
	}
	return fault.New(fault.NotFound, blueprint.ErrNotFound.Code, "no blueprint has the name %q", term.OneLine(name, 100)).
		With(strings.Join(append(hint, "see: agentbox blueprint ls"), "\n"))
}

// MissingHints says how to mend references of a blueprint to things that are not there. It names the models and blueprints that a person
// may have meant, and the command that adds a model.
func MissingHints(ctx context.Context, api *client.Client, drift []blueprint.Drift) []string {
	var hints []string
	for _, d := range drift {
		if d.Now != "" {
			continue
		}
		switch d.Kind {
		case blueprint.ToModel:
			hints = append(hints, missingModel(ctx, api, d.Name))
		case blueprint.ToBlueprint:
			if all, err := Blueprints(ctx, api); err == nil && len(all) > 0 {
				hints = append(hints, d.Reference.String()+": "+didYouMean(d.Name, names(all)))
			}
		}
	}
	return hints
}

// missingModel says how to mend the name of a model that the workspace does not have.
func missingModel(ctx context.Context, api *client.Client, name string) string {
	all, err := api.Models(ctx)
	if err != nil {
		return "which models there are was not checked: " + err.Error()
	}
	add := "agentbox model add " + Word(name) + " --model MODEL"
	if len(all.Models) == 0 {
		return "this workspace has no models yet; add one: " + add
	}
	known := make([]string, len(all.Models))
	for n, m := range all.Models {
		known[n] = m.Name
	}
	return "models." + name + ": " + didYouMean(name, known) + "; or add it: " + add
}
