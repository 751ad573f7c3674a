// Package agentbox is the root of the module: it holds the tests of what the tree as a whole promises, and no program.
package agentbox

//go:generate go test -count=1 -run ^(TestPictureOfTheImports|TestEveryLineOfTheLogHasACode)$ . -update
//go:generate go test -count=1 -run Committed ./internal/surface/httpapi -update
