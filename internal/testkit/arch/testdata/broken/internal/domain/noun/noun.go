// Package noun is a noun.
package noun

// Noun is one.
type Noun string
