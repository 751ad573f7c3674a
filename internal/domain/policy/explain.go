package policy

// Explanation is a decision with everything that led to it; nothing is done and nothing recorded for it.
type Explanation struct {
	Decision Decision `json:"decision"`
	Request  Stored   `json:"request,omitempty"` // the action's canonical bytes
	Shown    string   `json:"shown,omitempty"`   // the question that a person would see, as Render writes it
	Parts    []Part   `json:"parts"`             // the single judgements, in order; the strictest decides
	Limits   Limits   `json:"limits"`

	PathRules []PathRule `json:"path_rules,omitempty"` // the rules that protect paths, each a wall or a guard
	Warnings  []string   `json:"warnings,omitempty"`   // parts of the policy without the effect that a reader may expect
}

// Part is the judgement of one simple command, of one file, or of the whole.
type Part struct {
	What     string   `json:"what"` // escaped
	Outcome  Outcome  `json:"decision"`
	Policies []string `json:"policies,omitempty"`
	Reason   string   `json:"reason,omitempty"`
	Traits   []string `json:"traits,omitempty"`
}
