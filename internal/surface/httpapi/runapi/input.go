package runapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/service/runs"
	"agentbox/internal/surface/httpapi/wire"
)

// inputWait is how long a request waits until the command of a background run has read the earlier input.
const inputWait = 5 * time.Second

// inputRequest is the input for the command of a background run: exactly one of its fields is set.
type inputRequest struct {
	Stdin  string        `json:"stdin,omitempty" maxLength:"87384" doc:"Bytes for its standard input, in base64; at most 65,536 of them"`
	PTY    string        `json:"pty,omitempty" maxLength:"87384" doc:"Bytes for its terminal, in base64; at most 65,536 of them"`
	Close  bool          `json:"close,omitempty" doc:"The end of its input; a terminal gets a Ctrl-D"`
	Signal string        `json:"signal,omitempty" enum:"SIGALRM,SIGCONT,SIGHUP,SIGINT,SIGKILL,SIGQUIT,SIGSTOP,SIGTERM,SIGTSTP,SIGUSR1,SIGUSR2,SIGWINCH" doc:"A signal for its processes; SIGKILL ends them all"`
	Resize *run.Terminal `json:"resize,omitempty" doc:"Another size of its terminal"`
}

// inputTaken is the answer to an accepted input.
type inputTaken struct {
	Run  id.Run `json:"run_id"`
	Size int    `json:"size_bytes" doc:"Bytes of input that the command was given"`
}

func (s *Runs) registerInput() {
	wire.Handle(s.Server, wire.Operation{
		ID: "give-input", Home: wire.AtRun, Needs: wire.Does(policy.RunStart, "run_id"), Method: http.MethodPost,
		Path: "/v1/runs/{run_id}/input", Tag: "runs",
		Summary: "Give the command of a background run input, a signal or a size of its terminal",
		Repeat:  wire.RepeatRecalled,
		Detail: "The body has one of its fields. The input is taken as a whole or not at all: 429 input_full says that the command has not " +
			"read what it was given before. Who may start a run in the space may give it input. What is recorded is the number of bytes " +
			"and, from 16 bytes on, their hash.",
	}, s.giveInput)
}

func (s *Runs) giveInput(ctx context.Context, c wire.Call, in *struct {
	Run  string `path:"run_id" doc:"The run"`
	Body inputRequest
}) (*struct{ Body inputTaken }, error) {
	g := runs.Given{Close: in.Body.Close, Signal: in.Body.Signal, Resize: in.Body.Resize}
	for _, field := range []struct {
		name, text string
		into       *[]byte
	}{{"stdin", in.Body.Stdin, &g.Stdin}, {"pty", in.Body.PTY, &g.PTY}} {
		raw, err := base64.StdEncoding.DecodeString(field.text)
		if err != nil {
			return nil, fault.New(fault.Invalid, "invalid_field", "%s is not base64", field.name)
		}
		*field.into = raw
	}
	taken := &struct{ Body inputTaken }{inputTaken{Run: id.Run(in.Run), Size: len(g.Stdin) + len(g.PTY)}}
	return wire.Once(c, func() (*struct{ Body inputTaken }, error) { return taken, nil }, func() (*struct{ Body inputTaken }, error) {
		limited, cancel := s.Within(ctx, inputWait, s.Stopping())
		defer cancel()
		return taken, s.runs.Input.Give(limited, c.Once(), c.Caller.Workspace, id.Run(in.Run), g)
	})
}
