package agents

import (
	"slices"

	"agentbox/internal/domain/model"
	"agentbox/internal/domain/tool"
)

// inherit narrows the tools, the time and the budgets of a sub-agent to those of the agents above it.
func (s *session) inherit() error {
	of := s.mission.Lineage
	if of == nil {
		return nil
	}
	s.tools = slices.DeleteFunc(slices.Clone(s.tools), func(t tool.Tool) bool {
		return t.Name != readResult && !slices.Contains(of.Tools, t.Name) || t.Name == tool.Spawn && of.Below < 1
	})
	s.def.Limits.Seconds = min(s.def.Limits.Seconds, max(of.Left, 1))
	for _, bounded := range of.Above {
		limits := model.Limits{Tokens: bounded.Tokens}
		if bounded.Cost != "" {
			var err error
			if limits.Cost, err = model.ParseAmount(bounded.Cost); err != nil {
				return err
			}
		}
		s.above = append(s.above, model.Above{Run: bounded.Run, Limits: limits})
	}
	return nil
}
