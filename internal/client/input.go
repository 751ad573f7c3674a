package client

import (
	"context"
	"encoding/base64"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
)

// Input is the input for the command of a background run: exactly one field is set.
type Input struct {
	Stdin  []byte        // bytes for its standard input, at most 65,536
	PTY    []byte        // bytes for its terminal, at most 65,536
	Close  bool          // the end of its input
	Signal string        // a signal, such as SIGINT
	Resize *run.Terminal // another size of its terminal
}

// Give gives the command of a background run input. A refusal of kind Exhausted and code input_full means that it has not read what it was
// given before; then nothing was given.
func (c *Client) Give(ctx context.Context, r id.Run, in Input) error {
	body := struct {
		Stdin  string        `json:"stdin,omitempty"`
		PTY    string        `json:"pty,omitempty"`
		Close  bool          `json:"close,omitempty"`
		Signal string        `json:"signal,omitempty"`
		Resize *run.Terminal `json:"resize,omitempty"`
	}{base64.StdEncoding.EncodeToString(in.Stdin), base64.StdEncoding.EncodeToString(in.PTY), in.Close, in.Signal, in.Resize}
	return c.post(ctx, join("/v1/runs/", escape(string(r)), "/input"), body, nil)
}
