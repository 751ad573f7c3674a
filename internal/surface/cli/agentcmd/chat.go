package agentcmd

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/run"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

// Chat is the command that talks with an agent.
func Chat(i *cmdline.Invocation) *cobra.Command {
	var space, resume string
	c := &chat{i: i}
	cmd := &cobra.Command{
		Use: "chat [BLUEPRINT]", Short: "Talk with an agent that works in a space", Args: cobra.MaximumNArgs(1),
		Long: "Chat gives an agent one task after the other; each goes on the conversation. BLUEPRINT is the name of a registered one, or a " +
			"file. It\nmay be left out where there is only one. The agent works in a new space as the blueprint says, unless --space names one.\n" +
			"Answers come as they are written, each tool call is a line, and where policy asks a person, you are asked. A line that\nyou type " +
			"while the agent works goes to it. Ctrl-C stops what runs or drops what is typed, Ctrl-D and /quit leave. A line that\nends with a " +
			"backslash goes on in the next one. @PATH attaches a picture or the text of a file of this machine, and so does a line\nthat is " +
			"nothing but a path. /help lists the commands.\n" +
			"Every task is a run of its own: nothing is lost when this command, the daemon or the machine ends. --resume goes on.\n" +
			"Where the input is not a terminal, each line is a task. /stop and /steer act at once; other lines wait until the agent is done.",
		Example: "  agentbox chat\n  agentbox chat reporter --space notes\n  agentbox chat --resume run_...\n" +
			"  echo 'sum up notes.md' | agentbox chat reporter --space notes",
	}
	cmd.Flags().StringVar(&space, "space", "", "the space in which the agent works")
	cmd.Flags().StringVar(&c.model, "model", "", "the model that answers (default: that of the blueprint)")
	cmd.Flags().StringVar(&resume, "resume", "", "go on the conversation of this run")
	cmd.Flags().BoolVar(&c.ask, "ask", false, "ask here what a person has to decide, also where the input is not a terminal")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		var err error
		if c.api, err = i.Connect(ctx); err != nil {
			return err
		}
		if c.space, err = i.Named(ctx, c.api, space); err != nil {
			return err
		}
		c.out, c.err = i.Printer(i.Out), i.Printer(i.Err)
		c.err.JSON = false
		switch {
		case resume != "" && len(args) > 0:
			return cmdline.Usage("name a blueprint or --resume, not both")
		case resume == "":
			if c.blueprint, err = chosen(ctx, i, c.api, args); err != nil {
				return err
			}
		}
		return c.run(ctx, id.Run(resume))
	}
	return cmd
}

// chosen returns the blueprint that is named, or the only one.
func chosen(ctx context.Context, i *cmdline.Invocation, api *client.Client, args []string) (string, error) {
	if len(args) > 0 {
		name, err := registered(ctx, i, api, args[0])
		if err == nil {
			_, err = api.Blueprint(ctx, name, 0)
			err = cmdline.UnknownBlueprint(ctx, api, name, err)
		}
		return name, err
	}
	l, err := api.Blueprints(ctx, false, client.Page{Limit: 20})
	if err != nil {
		return "", err
	}
	names := make([]string, 0, len(l.Blueprints))
	for _, b := range l.Blueprints {
		names = append(names, b.Name)
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.NotFound, "blueprint_not_found", "no agent is defined yet").
			With("write one: agentbox blueprint init helper.yaml; pin what it refers to: agentbox blueprint lock helper.yaml\n" +
				"then talk with it: agentbox chat helper.yaml")
	case 1:
		return names[0], nil
	}
	return "", cmdline.Usage("name the agent to talk with: %s", term.OneLine(strings.Join(names, ", "), 300))
}

// chat is a conversation with an agent.
type chat struct {
	i        *cmdline.Invocation
	api      *client.Client
	out, err *term.Printer // answers, and all the rest
	ask      bool

	editor     *lineedit.Editor // nil where the input is not a terminal
	interrupts chan struct{}
	typing     chan struct{} // the person has pressed keys while the agent works
	unwatch    func()        // ends the watch of the keys; nil while there is none
	lines      <-chan string // of an input that is not a terminal; closed at its end
	held       []string      // lines that came while the agent worked
	later      []string      // messages that the agent at work did not get; they are sent when it is done
	leaving    bool          // the person wants to leave when the agent is done
	hinted     bool          // they were told how to stop the agent
	silent     bool          // they were told that the daemon does not answer
	late       bool          // a question that they saw was answered elsewhere: a line that answers it is no message
	sending    sending       // the task to which the daemon has not answered yet

	blueprint string
	version   int // of the blueprint; 0 for the newest
	model     string
	space     id.Space            // "" before the first task
	spaces    map[id.Run]id.Space // of the runs
	thread    id.Thread
	room      id.Room
	runs      []id.Run // of the conversation, the oldest first
	dropped   []id.Run // tasks that failed before their first turn, since the chat began
	undone    []id.Run // tasks that were taken back since then
	tools     []*toolLine
	waiting   []string // paths of files that belong to the next message
	failed    bool     // the last task
}

// run reads tasks and gives them to the agent, until they end.
func (c *chat) run(ctx context.Context, resume id.Run) error {
	editor, done, err := lineedit.Open(ctx, c.i, "chat_history", nil)
	if err != nil {
		return err
	}
	defer done()
	if c.editor = editor; editor != nil {
		c.interrupts, c.typing, c.ask = make(chan struct{}, 1), make(chan struct{}, 1), true
	} else {
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		c.lines = readLines(ctx, c.i.In)
		c.i.Answers = func(prompt string) (string, error) {
			c.err.Line("%s", prompt)
			return c.next(ctx)
		}
	}
	if resume != "" {
		if err := c.resume(ctx, resume); err != nil {
			return err
		}
	}
	c.greet()
	for {
		text, err := c.message(ctx)
		switch {
		case errors.Is(err, lineedit.ErrDropped):
			continue
		case errors.Is(err, io.EOF):
			return c.leave(ctx)
		case err != nil:
			return err
		}
		quit, err := c.say(ctx, text)
		if unanswered(ctx, err) {
			c.failed = true
			err = c.regain(ctx, text, err)
		}
		if err != nil && !passing(err) {
			c.unsent()
			return err
		}
		if err != nil {
			c.failed = true
			cmdline.Complain(c.i.Err, c.err, err)
		}
		if quit {
			return c.leave(ctx)
		}
	}
}

// passing reports whether a conversation can continue after an error.
func passing(err error) bool {
	switch fault.KindOf(err) {
	case fault.Unavailable, fault.Internal:
		return false
	}
	_, is := cmdline.AsFault(err)
	return is
}

// readLines reads lines until the input or ctx ends. Its goroutine may stay blocked in a read of standard input until the process ends.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for from := bufio.NewReader(in); ; {
			line, err := from.ReadString('\n')
			if line != "" {
				select {
				case lines <- strings.TrimRight(line, "\r\n"):
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return lines
}

// next returns the next line of an input that is not a terminal.
func (c *chat) next(ctx context.Context) (string, error) {
	if len(c.held) > 0 {
		line := c.held[0]
		c.held = c.held[1:]
		return line, nil
	}
	select {
	case line, ok := <-c.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// greet prints the name of the agent at a terminal.
func (c *chat) greet() {
	if c.editor == nil {
		return
	}
	c.err.Line("%s", c.err.Paint(term.Faint, "You talk with "+term.Plain(c.blueprint)+". /help lists the commands, Ctrl-D leaves."))
}

// leave ends the command. It prints the command that continues the conversation.
func (c *chat) leave(ctx context.Context) error {
	if len(c.runs) > 0 {
		c.err.Line("%s", c.err.Paint(term.Faint, "go on: "+c.again(c.runs[len(c.runs)-1])))
	}
	if c.failed && c.editor == nil {
		return &cmdline.Ended{Code: cmdline.ExitInternal}
	}
	return ctx.Err()
}

// again returns the command that continues the conversation after a run. It names the space if another task would work in that of the run.
func (c *chat) again(r id.Run) string {
	command := "agentbox chat --resume " + string(r)
	if in := c.spaces[r]; c.space != "" && in != c.space {
		command += " --space " + string(c.space)
	}
	return command
}

// message returns the next message: one that waits to be sent, or one that the person types.
func (c *chat) message(ctx context.Context) (string, error) {
	if len(c.later) > 0 {
		text := c.later[0]
		c.later = c.later[1:]
		c.err.Line("%s", c.err.Paint(term.Faint, "> "+term.OneLine(text, 300)))
		return text, nil
	}
	if c.leaving {
		return "", io.EOF
	}
	for {
		text, err := c.read(ctx, c.out.Paint(term.Bold, term.OneLine(c.blueprint, 30))+"> ", false)
		if err != nil || !c.comesLate(text) {
			return text, err
		}
	}
}

// comesLate reports whether a line answers a question that was answered elsewhere while the person typed, and says so once.
func (c *chat) comesLate(line string) bool {
	late := c.late && cmdline.IsReply(line)
	if c.late = false; late {
		c.err.Line("%s", c.err.Paint(term.Faint, "(the question was answered already; type it again if it is for the agent)"))
	}
	return late
}

// read reads one message: a line, or several if a line ends with a backslash or was pasted. An empty line is a message only if blank is
// true.
func (c *chat) read(ctx context.Context, prompt string, blank bool) (string, error) {
	var whole []string
	for {
		line, pasted, err := "", false, error(nil)
		if c.editor != nil {
			line, pasted, err = c.editor.Pasted(prompt)
		} else {
			line, err = c.next(ctx)
		}
		if errors.Is(err, io.EOF) && len(whole) > 0 {
			err = nil
		}
		if err != nil {
			return "", err
		}
		rest, continues := strings.CutSuffix(line, "\\")
		whole = append(whole, rest)
		if continues || pasted {
			prompt = ". "
			continue
		}
		if text := strings.TrimSpace(strings.Join(whole, "\n")); text != "" || blank {
			return text, nil
		}
		whole = nil
	}
}

// say executes the message of a person: a command, or a task.
func (c *chat) say(ctx context.Context, text string) (quit bool, err error) {
	if strings.HasPrefix(text, "/") && !strings.Contains(text, "\n") {
		word, rest, _ := strings.Cut(text, " ")
		if command, ok := commandNamed(word); ok {
			return command.name == "/quit", command.do(c, ctx, strings.TrimSpace(rest))
		}
		if _, file := localFile(text); !file {
			return false, noCommand(word)
		}
	}
	task, pictures, err := c.attached(text)
	var made run.Run
	if err == nil {
		made, err = c.begin(ctx, task, pictures)
	}
	kept := c.waiting
	c.waiting = nil
	if err != nil {
		if unanswered(ctx, err) {
			c.waiting = kept
		} else if len(kept) > 0 {
			c.err.Line("the message was not sent, and nothing is attached to the next one")
		}
		return false, err
	}
	return false, c.attend(ctx, made)
}

// noCommand is the error for a word that looks like a command and is none.
func noCommand(word string) error {
	return cmdline.Usage("%s is no command; /help lists them", term.OneLine(word, 40))
}

// begin gives the agent a task.
func (c *chat) begin(ctx context.Context, task string, pictures []client.Picture) (run.Run, error) {
	t := client.AgentTask{Task: task, Pictures: pictures, Version: c.version, Model: c.model, Space: c.space, Room: c.room, Thread: c.thread}
	if len(c.runs) > 0 {
		t.After = c.runs[len(c.runs)-1]
	}
	t, err := c.once(t)
	if err != nil {
		return run.Run{}, err
	}
	made, err := c.api.RunBlueprint(ctx, c.blueprint, t)
	if err != nil && fault.KindOf(err) != fault.Unavailable {
		c.sending = sending{}
	}
	if err != nil {
		return made, named(ctx, c.api, c.blueprint, err)
	}
	if c.space == "" {
		shown, m, err := find(ctx, c.api, made.ID)
		if err != nil {
			return shown.Run, err
		}
		c.space = m.Space
	}
	c.sending = sending{}
	c.answers()
	c.runs, c.thread, c.room = append(c.runs, made.ID), made.Thread, made.Room
	c.worksIn(made.ID, c.space)
	return made, nil
}

// worksIn remembers the space of a run.
func (c *chat) worksIn(r id.Run, s id.Space) {
	if c.spaces == nil {
		c.spaces = map[id.Run]id.Space{}
	}
	c.spaces[r] = s
}

// resume continues the conversation of a run. It follows the run if that has not ended.
func (c *chat) resume(ctx context.Context, r id.Run) error {
	shown, m, err := find(ctx, c.api, r)
	if err != nil {
		return err
	}
	if m.Blueprint == "" {
		return errand.ErrForgotten
	}
	c.blueprint, c.version, c.thread, c.room = m.Blueprint, m.Edition, shown.Thread, shown.Room
	if c.model == "" {
		c.model = m.Model
	}
	if c.space == "" {
		c.space = m.Space
	}
	if c.space != m.Space { // a fork, or another space: the next task begins a thread in its room
		in, err := c.api.Space(ctx, c.space)
		if err != nil {
			return err
		}
		c.thread, c.room = "", in.Room
	}
	c.runs = []id.Run{r}
	c.worksIn(r, m.Space)
	const most = 1000 // runs of a conversation, as the loop has it
	for before := m.After; before != "" && len(c.runs) < most; {
		_, m, err := find(ctx, c.api, before)
		if err != nil {
			return err
		}
		c.worksIn(before, m.Space)
		c.runs, before = append([]id.Run{before}, c.runs...), m.After
	}
	c.err.Line("%s", c.err.Paint(term.Faint, "> "+term.OneLine(m.Task, 300)))
	return c.attend(ctx, shown.Run)
}
