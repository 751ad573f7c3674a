//go:build !race

package main_test

// detector is the flag with which the daemon is built.
const detector = "-race=false"
