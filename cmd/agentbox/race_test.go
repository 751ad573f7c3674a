//go:build race

package main_test

// detector is the flag with which the daemon is built: where the tests look for races, so does it, and one ends it.
const detector = "-race"
