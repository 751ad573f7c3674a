// Package weatherreport embeds the operations of the example, so that the demo runs wherever the program is.
package weatherreport

import _ "embed"

//go:generate go test -count=1 -run ^TestTheProgramsStandInTheOperations$ . -update

// Operations is the operations message of the example, protocol 1.0.
//
//go:embed ops.json
var Operations []byte
