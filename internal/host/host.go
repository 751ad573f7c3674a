// Package host is what the program asks of an operating system that each one names in its own way: locks of files, processes, terminals,
// and what an error of it means.
package host

// How is a kind of file lock. A lock ends with the descriptor that holds it, or with the process.
type How uint8

// Shared is held together with others, Exclusive alone; with NoWait a lock that is taken is ErrLocked at once.
const (
	Shared How = 1 << iota
	Exclusive
	NoWait
)
