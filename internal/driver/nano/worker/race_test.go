//go:build race

package worker_test

// raceDetector says that this test's program has the race detector in it.
const raceDetector = true
