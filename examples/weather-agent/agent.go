// Package weatheragent embeds the agent of the demo, so that the demo runs wherever the program is.
package weatheragent

import _ "embed"

// Blueprint is the agent's definition.
//
//go:embed weather.yaml
var Blueprint string

// Task is what the agent is asked.
//
//go:embed task.md
var Task string

// Cassette is what a model answered, for a demo without a key. TestTheCassetteOfTheWeatherAgent of internal/app makes it of answers.json.
//
//go:embed cassette.jsonl
var Cassette []byte
