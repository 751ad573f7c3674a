// Package store is a contract. It has two sentences.
package store

import "broken/internal/domain/policy"

// Files touch the world.
type Files interface {
	Write(p policy.Permit) error
	Remove(name string) error
	Append(line string) error
}
