// Package untested has no tests.
package untested

// Not turns a truth around.
func Not(n *int) { *n = -*n }
