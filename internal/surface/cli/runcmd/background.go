package runcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/term"
)

// beside are the flags of a background run.
type beside struct {
	background, stdin, tty bool
	tag                    string
}

func (b *beside) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&b.background, "background", false,
		"run the command behind SPACE beside the other runs of the space, print the run's id and do not wait for it")
	f.BoolVar(&b.stdin, "stdin", false, "with --background: the command gets input while it runs; see agentbox runs attach")
	f.BoolVar(&b.tty, "tty", false, "with --background: the command runs in a terminal; see agentbox runs attach")
	f.StringVar(&b.tag, "tag", "", "with --background: your own name for it")
}

// args checks what stands behind the flags: a space, and a file of operations or the words of a command.
func (b *beside) args(cmd *cobra.Command, args []string) error {
	switch {
	case b.background && len(args) < 2:
		return cmdline.Usage("run --background needs a space and a command: agentbox run --background SPACE -- COMMAND")
	case b.background:
		return nil
	case b.stdin || b.tty || b.tag != "":
		return cmdline.Usage("--stdin, --tty and --tag are for a command that runs in the background: add --background")
	}
	return cobra.ExactArgs(2)(cmd, args)
}

// the size of a terminal that nobody looks at
const (
	unseenWidth  = 80
	unseenHeight = 24
)

// operation is the one operation of the run. One word is a line of the shell; several are a program and its arguments.
func (b *beside) operation(i *cmdline.Invocation, words []string) run.Operation {
	line := words[0]
	if len(words) > 1 {
		marked := make([]string, len(words))
		for n, w := range words {
			marked[n] = asWord(w)
		}
		line = strings.Join(marked, " ")
	}
	op := run.Operation{Type: run.OpShell, ID: "background", Command: line, Stdin: b.stdin && !b.tty, Tag: b.tag}
	if b.tty {
		op.PTY = size(i)
	}
	return op
}

// asWord writes any text as one word of the shell.
func asWord(s string) string {
	if w := cmdline.Word(s); w == s {
		return w
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// size is that of this terminal, or one that fits a terminal which nobody looks at.
func size(i *cmdline.Invocation) *run.Terminal {
	size := run.Terminal{Cols: unseenWidth, Rows: unseenHeight}
	if i.Terminal && i.Screen != nil {
		if width, height := i.Screen(); width > 0 && height > 0 {
			size = run.Terminal{Cols: min(width, run.MaxTerminalSide), Rows: min(height, run.MaxTerminalSide)}
		}
	}
	return &size
}

// start starts the background run and prints its id.
func (b *beside) start(ctx context.Context, i *cmdline.Invocation, q client.RunRequest, where string, words []string) error {
	api, err := i.Connect(ctx)
	if err != nil {
		return err
	}
	in, err := i.Named(ctx, api, where)
	if err != nil {
		return err
	}
	raw, err := json.Marshal([]run.Operation{b.operation(i, words)})
	if err != nil {
		return err
	}
	q.Message = client.Message{ProtocolVersion: json.RawMessage(`"` + run.Protocol + `"`), Operations: raw}
	q.Background = true
	begun, err := api.CreateRun(ctx, in, q)
	if err != nil {
		return err
	}
	return i.Show(begun, func(p *term.Printer) { p.Line("%s", begun.RunID) })
}

func runSignal(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "signal RUN SIGNAL", Short: "Send a signal to the command of a background run", Args: cobra.ExactArgs(2),
		Long:    "Signal sends a signal, such as SIGINT, SIGTERM or SIGHUP, to the processes of a background run. SIGKILL ends all of them.",
		Example: "  agentbox runs signal run_... SIGTERM",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			name := strings.ToUpper(args[1])
			if !strings.HasPrefix(name, "SIG") {
				name = "SIG" + name
			}
			return api.Give(cmd.Context(), id.Run(args[0]), client.Input{Signal: name})
		},
	}
}

func runAttach(i *cmdline.Invocation) *cobra.Command {
	quiet := false
	c := &cobra.Command{
		Use: "attach RUN", Short: "Show the output of a background run, and give it input", Args: cobra.ExactArgs(1),
		Long: "Attach shows the output of a background run from its beginning and gives its command what comes from standard input.\n" +
			"A command in a terminal gets each key as it is pressed, also Ctrl-C, and the size of this terminal; Ctrl-] leaves it.\n" +
			"Leaving does not end the run. Attach exits as the command does.",
		Example: "  agentbox runs attach run_...\n  generate | agentbox runs attach run_...\n  agentbox runs attach run_... --no-input",
	}
	c.Flags().BoolVar(&quiet, "no-input", false, "only show the output")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		r, err := api.Run(cmd.Context(), id.Run(args[0]))
		if err != nil {
			return err
		}
		if !r.Background {
			return fault.New(fault.Invalid, "run_takes_no_input", "the run is not a background run, and takes no input").
				With("watch it: agentbox runs watch " + string(r.ID))
		}
		return attach(cmd.Context(), i, api, r.Run, quiet)
	}
	return c
}

// leaveKey is the key that leaves a terminal: Ctrl-].
const leaveKey = 0x1d

// errLeft says that a person has left a run, which goes on.
var errLeft = errors.New("left")

// attach shows the output of a background run and gives it input until it ends, or until a person leaves it.
func attach(ctx context.Context, i *cmdline.Invocation, api *client.Client, r run.Run, quiet bool) error {
	within, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	if !quiet && !r.Status.Ended() && (r.Stdin || r.PTY != nil) {
		done, err := feed(within, i, api, r, leave)
		if err != nil {
			return err
		}
		defer done()
	}
	o := &follow.Ordered{Api: api, Space: r.Space, Output: func(channel string, data []byte) error {
		to := i.Out
		if channel == client.FrameStderr {
			to = i.Err
		}
		_, err := to.Write(data)
		return err
	}, Asks: func(ctx context.Context, approval id.Approval) error {
		return follow.TellQuestion(ctx, i, api, approval)
	}}
	result, err := o.Follow(within, r.ID)
	left := context.Cause(within)
	switch {
	case errors.Is(left, errLeft):
		return goesOn(i, r.ID)
	case ctx.Err() != nil:
		return fault.New(fault.Unavailable, cmdline.CodeInterrupted, "the run %s goes on", r.ID).With("end it with: agentbox runs cancel " +
			string(r.ID))
	case left != nil:
		return left
	case err != nil:
		return err
	}
	if code := follow.Ending(i, result); code != cmdline.ExitOK {
		return &cmdline.Ended{Code: code}
	}
	return nil
}

// goesOn says on standard error that a run goes on which a person has left.
func goesOn(i *cmdline.Invocation, r id.Run) error {
	p := i.Printer(i.Err)
	p.JSON = false
	p.Line("")
	p.Line("%s", p.Paint(term.Faint, "the run goes on; come back with: agentbox runs attach "+string(r)))
	return nil
}

// feed gives the command of a run what comes from standard input, in the background. It calls leave with what keeps it from going on.
func feed(ctx context.Context, i *cmdline.Invocation, api *client.Client, r run.Run, leave context.CancelCauseFunc) (done func(),
	err error) {
	if r.PTY == nil || i.JSON || !i.Terminal || !i.Asks || i.Edit == nil {
		// A read of standard input that is not a terminal cannot be given up, so that nobody waits for it.
		go func() {
			if err := pour(ctx, i, api, r); err != nil && ctx.Err() == nil {
				leave(err)
			}
		}()
		return func() {}, nil
	}
	restore, err := i.Edit()
	if errors.Is(err, errors.ErrUnsupported) {
		return func() {}, nil
	}
	if err != nil {
		return nil, cmdline.NoKeys(err)
	}
	within, stop := context.WithCancel(ctx)
	keys := &term.Typed{Out: i.Out, Pieces: make(chan []byte)}
	var feeding sync.WaitGroup
	feeding.Go(func() { keys.Pump(within, i.In) })
	feeding.Go(func() {
		if err := typeInto(within, i, api, r, keys.Pieces); err != nil && ctx.Err() == nil {
			leave(err)
		}
	})
	return func() {
		stop()
		feeding.Wait()
		restore()
	}, nil
}

// pour gives the bytes of standard input, and its end.
func pour(ctx context.Context, i *cmdline.Invocation, api *client.Client, r run.Run) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := i.In.Read(buffer)
		if n > 0 {
			if err := give(ctx, i, api, r, input(r, buffer[:n])); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return give(ctx, i, api, r, client.Input{Close: true})
		}
		if err != nil {
			return err
		}
	}
}

// typeInto gives each key as it is pressed, and the size of this terminal when that changes.
func typeInto(ctx context.Context, i *cmdline.Invocation, api *client.Client, r run.Run, keys <-chan []byte) error {
	var known run.Terminal
	look, stop := i.Clock.NewTimer(0)
	defer func() { stop() }()
	for {
		select {
		case <-look:
			if now := size(i); *now != known {
				known = *now
				if err := give(ctx, i, api, r, client.Input{Resize: now}); err != nil {
					return err
				}
			}
			look, stop = i.Clock.NewTimer(lookAtSize)
		case piece, ok := <-keys:
			if !ok {
				return nil
			}
			before, _, leaves := bytes.Cut(piece, []byte{leaveKey})
			if len(before) > 0 {
				if err := give(ctx, i, api, r, input(r, before)); err != nil {
					return err
				}
			}
			if leaves {
				return errLeft
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// lookAtSize is the interval between checks of the terminal's size.
const lookAtSize = 500 * time.Millisecond

// inputAgain is the delay before refused input is sent again to a command that does not read it.
const inputAgain = 100 * time.Millisecond

func input(r run.Run, data []byte) client.Input {
	if r.PTY != nil {
		return client.Input{PTY: data}
	}
	return client.Input{Stdin: data}
}

// give gives input for as long as the command does not read what it has, or waits for a person. The end of the run is not an error: its
// output tells it.
func give(ctx context.Context, i *cmdline.Invocation, api *client.Client, r run.Run, in client.Input) error {
	for {
		err := api.Give(ctx, r.ID, in)
		switch fault.CodeOf(err) {
		case "input_full", "run_not_started":
		case "run_already_ended", "input_closed":
			return nil
		default:
			return err
		}
		again, stop := i.Clock.NewTimer(inputAgain)
		select {
		case <-again:
			stop()
		case <-ctx.Done():
			stop()
			return nil
		}
	}
}
