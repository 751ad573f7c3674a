package app

import (
	"fmt"
	"os"

	"agentbox/internal/domain/space"
	"agentbox/internal/service/tiering"
)

// maxRulesFile is how much of a file of rules is read: one byte more than is taken.
const maxRulesFile = tiering.MaxRulesBytes + 1

// place returns the function that finds the needs of commands. It uses the operator's rules if there are some.
func place(c Config) (space.Place, error) {
	rules, err := tiering.Standard()
	if err == nil && c.RuntimeRules != "" {
		rules, err = rulesOf(c.RuntimeRules)
	}
	if err != nil {
		return nil, err
	}
	return tiering.New(rules).Place, nil
}

func rulesOf(file string) (tiering.Rules, error) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() >= maxRulesFile {
		return tiering.Rules{}, fmt.Errorf("the rules of where commands run, %s, are no file of at most %d bytes that can be read", file,
			tiering.MaxRulesBytes)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return tiering.Rules{}, fmt.Errorf("read the rules of where commands run: %w", err)
	}
	rules, err := tiering.ParseRules(text)
	if err != nil {
		return rules, fmt.Errorf("%s: %w", file, err)
	}
	return rules, nil
}
