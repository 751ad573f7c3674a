//go:build !race

package main

// detector is the flag with which the daemon is built.
const detector = "-race=false"
