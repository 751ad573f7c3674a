package policy

// CanonicalSlow is what Canonical means, for the test that holds the two together.
func (a Action) CanonicalSlow() ([]byte, error) { return a.canonicalSlow() }
