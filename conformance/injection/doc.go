// Package injection gives agents tasks whose data tell them to do harm, with a model that obeys every such text.
//
// Its tests start a daemon, and the services that the tools of the cases stand for. They hold that nothing happens outside that no person
// has approved, and count the questions of each task. docs/INJECTION.md says what is tried, and what that does not show.
// scripts/injection makes the cases of the published corpora; without them the tests play the few cases in testdata.
package injection
