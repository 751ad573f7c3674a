package model

// CanonicalSlow is what Canonical means, for the test that holds the two together.
func (r Request) CanonicalSlow() ([]byte, error) { return r.canonicalSlow() }
