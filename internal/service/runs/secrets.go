package runs

import (
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
)

// hide removes the secrets from a result before it is recorded or shown, and returns them: those that the rules find, and the values of the
// environment of the space and of the command. The content of a file that was read does not change, because an agent may write it back. See
// docs/RATIONALE.md, "Where are secrets taken out of what is recorded?".
func (r *execution) hide(t *task, result *run.Result) (found []leak.Match) {
	known := leak.Values(t.env, t.op.Env)
	clean := func(name string, text *string) {
		var more []leak.Match
		*text, more = known.Text(*text)
		found = append(found, leak.Named(more, "result."+name)...)
	}
	for name, text := range map[string]*string{
		"command": &result.Command, "path": &result.Path, "error": &result.Error, "reason": &result.Reason, "suggestion": &result.Suggestion,
		"message": &result.Message,
	} {
		clean(name, text)
	}
	for name, text := range map[string]**string{"stdout": &result.Stdout, "stderr": &result.Stderr} {
		if *text != nil {
			kept := **text
			clean(name, &kept)
			*text = &kept
		}
	}
	if result.Details != nil {
		details, more := leak.Scan(*result.Details)
		result.Details, found = &details, append(found, leak.Named(more, "result.details")...)
	}
	t.shown = slices.Clone(t.shown)
	for i, d := range t.shown {
		if textual(d.Media) {
			text, more := known.Text(string(d.Data))
			if len(more) > 0 {
				t.shown[i].Data, found = []byte(text), append(found, leak.Named(more, "displays")...)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b leak.Match) int { return strings.Compare(a.Where, b.Where) })
	return found
}

// withFindings returns the drafts with the event that reports the secrets found beside the data of the first draft.
func (x *Service) withFindings(found []leak.Match, taken bool, drafts ...event.Draft) []event.Draft {
	if len(found) == 0 {
		return drafts
	}
	marked, said := leak.Tell(drafts[0], "", func() id.Event { return id.NewEvent(x.IDs) }, found, taken)
	drafts[0] = marked
	return append(drafts, said)
}

// variables returns the environment of a space as its commands get it, without masks.
func (x *shared) variables(s space.Space) (map[string]string, error) {
	if x.Variables == nil {
		return s.Env, nil
	}
	return x.Variables(s)
}
