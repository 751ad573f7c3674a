// Package peer belongs to somebody else.
package peer

// Send reaches out.
func Send(string) error { return nil }
