// Package other is a service.
package other

// Other is one.
type Other struct{}
