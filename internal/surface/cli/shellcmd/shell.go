// Package shellcmd is the interactive shell of a space.
package shellcmd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/syntax"

	"agentbox/internal/client"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/run"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/follow"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

// Shell is the command that opens a session in a space.
func Shell(i *cmdline.Invocation) *cobra.Command {
	return &cobra.Command{
		Use: "shell SPACE", Short: "Open a shell in a space", Args: cobra.ExactArgs(1), ValidArgsFunction: i.CompleteSpaces,
		Long: "Shell runs one line after the other in a space, each as a run that policy decides on and the log records. The working folder, " +
			"exported variables and $? go on from line\n" +
			"to line; other variables, functions and options of the shell do not. Tab completes commands and files of the space, the arrows bring " +
			"back lines (a line that begins with a\n" +
			"space is not kept), Ctrl-C ends the running command or drops the typed text, Ctrl-D and exit end the session. If policy asks a " +
			"person, and you may answer, the shell asks you.\n" +
			"If the input is not a terminal, the shell runs its lines and exits with the code of the last one. With --json it writes the result " +
			"of each line as one object on a line.",
		Example: "  agentbox shell weather\n  echo 'cd src && ls' | agentbox shell spc_...",
		RunE: func(cmd *cobra.Command, args []string) error {
			api, err := i.Connect(cmd.Context())
			if err != nil {
				return err
			}
			named, err := i.Named(cmd.Context(), api, args[0])
			if err != nil {
				return err
			}
			in, err := api.Space(cmd.Context(), named)
			if err != nil {
				return err
			}
			s := session{i: i, api: api, space: in, wait: follow.Patience(i, "the lines")}
			return s.run(cmd.Context())
		},
	}
}

// session is a shell in a space.
type session struct {
	i        *cmdline.Invocation
	api      *client.Client
	space    space.Space
	carried  carried
	programs []string // nil before they were asked for
	last     int      // exit code of the last line
	wait     func(context.Context, *client.Later) error

	editor *lineedit.Editor // nil where the input is not a terminal
	keys   *term.Typed
	past   *lineedit.History
}

// run reads lines and runs them until they end.
func (s *session) run(ctx context.Context) error {
	read, done, err := s.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := s.begin(ctx); err != nil {
		return err
	}
	for {
		line, err := s.read(read)
		switch {
		case errors.Is(err, lineedit.ErrDropped):
			s.last = cmdline.ExitInterrupted
			continue
		case errors.Is(err, io.EOF) && s.editor != nil:
			s.last = cmdline.ExitOK // a person has left
			return ctx.Err()
		case errors.Is(err, io.EOF):
			if s.last != cmdline.ExitOK {
				return &cmdline.Ended{Code: s.last}
			}
			return ctx.Err()
		case err != nil:
			return err
		}
		if code, leaves := s.leaves(line); leaves {
			if code != cmdline.ExitOK {
				return &cmdline.Ended{Code: code}
			}
			return nil
		}
		if err := s.line(ctx, line); err != nil {
			return err
		}
	}
}

// leaves reports whether a line ends the session, and the exit code. That is the code in the line. If nobody types, it is otherwise the
// code of the last line.
func (s *session) leaves(line string) (code int, leaves bool) {
	words := strings.Fields(line)
	if len(words) == 0 || len(words) > 2 || words[0] != "exit" && words[0] != "logout" {
		return 0, false
	}
	if len(words) == 2 {
		code, err := strconv.ParseUint(words[1], 10, 8)
		return int(code), err == nil
	}
	if s.editor == nil {
		return s.last, true
	}
	return cmdline.ExitOK, true
}

// open prepares the input: a function that reads one line behind a prompt, and one that leaves the terminal as it was.
func (s *session) open(ctx context.Context) (read func(prompt string) (string, error), done func(), err error) {
	editor, done, err := lineedit.Open(ctx, s.i, "shell_history", s.tab(ctx))
	if err != nil {
		return nil, nil, err
	}
	if editor == nil {
		return s.lines(), done, nil
	}
	s.editor, s.keys, s.past = editor, editor.Keys, editor.Past
	return editor.Line, done, nil
}

// lines reads lines of an input that is not a terminal.
func (s *session) lines() func(string) (string, error) {
	s.i.Lines = bufio.NewReader(s.i.In)
	return func(string) (string, error) {
		line, err := s.i.ReadLine()
		return strings.TrimRight(line, "\r\n"), err
	}
}

// width is how many characters a line of the terminal has.
func (s *session) width() int {
	width, _ := s.i.Screen()
	return width
}

// tab completes the typed text when the person presses the key.
func (s *session) tab(ctx context.Context) func(line string, pos int, key rune) (string, int, bool) {
	return func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' || s.past.Mute {
			return "", 0, false
		}
		newLine, newPos, offers := s.complete(ctx, line, pos)
		if len(offers) > 0 {
			s.offer(offers)
		}
		return newLine, newPos, true
	}
}

// read reads lines until they are a whole command.
func (s *session) read(next func(prompt string) (string, error)) (string, error) {
	p := s.i.Printer(s.i.Out)
	prompt := p.Paint(term.Bold, term.OneLine(cmdline.First(s.space.Name, string(s.space.ID)), 30)) + ":" + p.Paint(term.Cyan,
		term.OneLine(cmdline.First(s.carried.folder, "~"),
			60)) + "$ "
	var whole strings.Builder
	for {
		line, err := next(prompt)
		if err != nil {
			if errors.Is(err, io.EOF) && strings.TrimSpace(whole.String()) != "" {
				s.say(cmdline.Usage("the last line is not complete: %s", term.OneLine(whole.String(), 200)))
				s.last = cmdline.ExitInvalid
			}
			return "", err
		}
		whole.WriteString(line + "\n")
		_, err = syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(whole.String()), "")
		if err != nil && !syntax.IsIncomplete(err) && bashOnly.MatchString(whole.String()) {
			err = nil // Bash may run it: the daemon reads more of Bash than the parser alone, and says what it cannot read
		}
		if err == nil && !continues(line) {
			if text := strings.TrimRight(whole.String(), "\n"); strings.TrimSpace(text) != "" {
				return text, nil
			}
			whole.Reset()
			continue
		}
		if err != nil && !syntax.IsIncomplete(err) {
			s.say(cmdline.Usage("the shell cannot read this: %s", err))
			s.last = cmdline.ExitInvalid
			whole.Reset()
			continue
		}
		prompt = "> "
	}
}

// bashOnly finds what Bash may run although the parser refuses it: several negations, "((" that opens subshells, operators behind $#.
var bashOnly = regexp.MustCompile(`!\s+!\s|\(\(|\$\{#[#%/]`)

// continues reports whether a line ends with a backslash that joins the next one to it.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// say shows an error, and the session goes on.
func (s *session) say(err error) { cmdline.Complain(s.i.Err, s.i.Printer(s.i.Err), err) }

// begin learns where the space's files lie and what is exported there, if policy lets a shell say it unasked.
func (s *session) begin(ctx context.Context) error {
	s.carried = carried{top: "?"}
	op, m, err := s.carried.operation(":", s.i.Entropy)
	s.carried = carried{}
	if err != nil {
		return err
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.keys != nil {
		defer s.keys.Watch(cancel, nil)()
	}
	if !s.allowed(within, op) && within.Err() == nil {
		s.say(fault.New(fault.Denied, "not_read_back",
			"the policy of this space does not let a shell say at its end where it is: each line begins in the top folder, with no variables of "+
				"the one before"))
		return ctx.Err()
	}
	var printed []byte
	o := follow.Ordered{Api: s.api, Space: s.space.ID, Title: "agentbox shell", Asks: unasked, Queued: s.queued, Wait: s.wait,
		Output: func(channel string, data []byte) error {
			if channel == client.FrameStdout {
				printed = append(printed, data...)
			}
			return nil
		}}
	result, _, err := o.Do(within, op)
	if err != nil {
		return err
	}
	_, rest := m.split(printed)
	left, found := leaving{}, false
	if result.ExitCode != nil {
		left, found = m.read(rest, *result.ExitCode)
	}
	if !found {
		follow.Ending(s.i, result)
		s.say(fault.New(fault.Unavailable, "not_read_back",
			"the shell of this space does not say where it is: each line begins in the top folder, with no variables of the one before"))
		return nil
	}
	s.carried.learn(left)
	return nil
}

// queued names the reason why a run of the session waits, and how a person gives it up.
func (s *session) queued(ctx context.Context, r id.Run) (stop func()) {
	end := ""
	if s.editor != nil {
		end = "; Ctrl-C gives it up"
	}
	return follow.TellOfQueue(ctx, s.i, s.api, s.space.ID, r, end)
}

// unasked refuses to ask a person about a command that the session sent by itself.
func unasked(context.Context, id.Approval) error {
	return fault.New(fault.Waiting, "approval_required", "a person would have to decide on it")
}

// allowed reports whether policy allows an operation without asking.
func (s *session) allowed(ctx context.Context, op run.Operation) bool {
	raw, err := json.Marshal(op)
	if err != nil {
		return false
	}
	e, err := s.api.Explain(ctx, client.Trial{Space: s.space.ID, Operation: raw})
	return err == nil && e.Decision.Outcome == policy.Allow
}

// lineDone is the result of a line, in JSON.
type lineDone struct {
	Command string `json:"command"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Code    int    `json:"exit_code"`
	Folder  string `json:"folder,omitempty"`
	Run     id.Run `json:"run_id,omitempty"`
}

// line runs one line. Its error ends the session.
func (s *session) line(ctx context.Context, text string) error {
	op, m, err := s.carried.operation(text, s.i.Entropy)
	if err != nil {
		return err
	}
	if err := op.Check(); err != nil {
		s.last = cmdline.ExitInvalid
		s.say(err)
		return nil
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	a := attended{s: s, m: m, cancel: cancel, out: s.i.Out, err: s.i.Err}
	switch {
	case s.i.JSON:
		a.out, a.err = &a.stdout, &a.stderr
	case s.i.Terminal:
		a.screens = []*term.Screen{{Out: s.i.Out}, {Out: s.i.Err}}
		a.out, a.err = a.screens[0], a.screens[1]
	}
	a.watch()
	s.i.Asking = func(a policy.Approval) policy.Approval { return lineAsked(a, op.Command, text) }
	o := follow.Ordered{Api: s.api, Space: s.space.ID, Title: "agentbox shell", Output: a.output, Asks: a.asks, Wait: s.wait,
		Queued: s.queued}
	result, r, err := o.Do(within, op)
	a.leave()
	if err != nil {
		a.finish(nil)
		return s.broken(ctx, err)
	}
	s.last = follow.Ending(s.i, result)
	var left leaving
	found := false
	if result.ExitCode != nil {
		s.carried.code = *result.ExitCode
		left, found = m.read(a.held, *result.ExitCode)
	}
	if !found {
		a.finish(a.held)
		s.strayed(ctx, result, len(a.held) > 0)
	} else {
		a.finish(nil)
		for _, name := range s.carried.learn(left) {
			s.say(fault.New(fault.Exhausted, "variable_not_kept", "%s is not kept: a line may have %d exported variables of %s", term.OneLine(name,
				60),
				run.MaxEnv, term.Bytesize(run.MaxEnvBytes)))
		}
	}
	if s.i.JSON {
		return s.i.Printer(s.i.Out).Record(lineDone{
			Command: text, Stdout: strings.ToValidUTF8(a.stdout.String(), "\uFFFD"), Stderr: strings.ToValidUTF8(a.stderr.String(), "\uFFFD"),
			Code: s.last, Folder: s.carried.folder, Run: r,
		})
	}
	if s.editor != nil && s.last != cmdline.ExitOK && result.ExitCode != nil {
		p := s.i.Printer(s.i.Err)
		p.Line("%s", p.Paint(term.Faint, fmt.Sprintf("exit %d", s.last)))
	}
	return nil
}

// lineAsked is a question about a line without what the session adds to it, which is said instead.
func lineAsked(a policy.Approval, command, line string) policy.Approval {
	before, after, found := strings.Cut("\n"+command+"\n", "\n"+line+"\n")
	if !found || command == line {
		return a
	}
	added := map[string]bool{}
	for text := range strings.SplitSeq(before+"\n"+after, "\n") {
		added["  | "+policy.Escape(text)] = text != ""
	}
	for text := range strings.SplitSeq(line, "\n") {
		delete(added, "  | "+policy.Escape(text))
	}
	shown := slices.DeleteFunc(strings.Split(a.Question.What, "\n"), func(text string) bool { return added[text] })
	if len(shown) == strings.Count(a.Question.What, "\n")+1 {
		return a // it is not the command that was sent
	}
	a.Title = "run a command: " + term.OneLine(policy.Escape(line), 120)
	if strings.HasPrefix(shown[0], "run a command: ") {
		shown[0] = a.Title
	}
	a.Question.What = strings.TrimRight(strings.Join(shown, "\n"), "\n") +
		"\nand what the session adds, to read back the folder and the variables: agentbox approvals show " + string(a.ID)
	return a
}

// broken decides whether the session goes on after a line that did not run to its end.
func (s *session) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	s.last = cmdline.ExitCode(err)
	if s.last == cmdline.ExitInterrupted && s.editor != nil {
		fmt.Fprintln(s.i.Out, "^C")
		return nil
	}
	switch code := fault.CodeOf(err); {
	case code == "space_destroyed", code == "space_not_found", fault.KindOf(err) == fault.Denied && !cmdline.Refusals[code], s.editor == nil &&
		fault.KindOf(err) == fault.Unavailable:
		return err // nothing that follows could be run
	}
	s.say(err)
	return nil
}

// strayed says that a line left nothing for the next one, where that is no matter of course, and goes back to the top from a folder that
// is gone.
func (s *session) strayed(ctx context.Context, result run.Result, said bool) {
	if said {
		s.say(fault.New(fault.Conflict, "not_read_back",
			"the state that the line reported at its end is not trusted: the folder and the variables stay as they were"))
		return
	}
	inside, ok := s.carried.inside(s.carried.folder)
	if result.ExitCode != nil || !ok || inside == "." {
		return
	}
	if _, err := s.api.Files(ctx, s.space.ID, inside, false); fault.KindOf(err) == fault.NotFound {
		s.say(fault.New(fault.NotFound, "folder_gone", "%s is gone; the next line begins in %s", term.OneLine(s.carried.folder, 200),
			s.carried.top))
		s.carried.folder = s.carried.top
	}
}

// attended is a line while it runs.
type attended struct {
	s              *session
	m              mark
	cancel         func()
	stop           func() // ends the watching of the keys
	out, err       io.Writer
	screens        []*term.Screen
	stdout, stderr strings.Builder
	held           []byte // printed, and perhaps no output
}

// watch cancels the line when the person interrupts it.
func (a *attended) watch() {
	if a.s.editor != nil {
		a.stop = a.s.keys.Watch(a.cancel, nil)
	}
}

func (a *attended) leave() {
	if a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

// output shows the output of the line, without the report at its end.
func (a *attended) output(channel string, data []byte) error {
	if channel == client.FrameStderr {
		_, err := a.err.Write(data)
		return err
	}
	own, rest := a.m.split(append(a.held, data...))
	a.held = append([]byte(nil), rest...)
	_, err := a.out.Write(own)
	return err
}

// asks lets the person at the terminal decide, if they may. Otherwise it prints which decision the run waits for. The run goes on after
// the decision.
func (a *attended) asks(ctx context.Context, approval id.Approval) error {
	s := a.s
	if s.editor == nil {
		return follow.TellQuestion(ctx, s.i, s.api, approval)
	}
	a.leave()
	defer a.watch()
	s.past.Mute = true
	defer func() { s.past.Mute = false }()
	answered, err := s.i.Answer(ctx, s.api, approval)
	if errors.Is(err, lineedit.ErrDropped) {
		a.cancel()
		return nil
	}
	if err != nil {
		if fault.KindOf(err) != fault.Denied && fault.KindOf(err) != fault.Conflict {
			return err
		}
		s.say(err)
	}
	if !answered {
		p := s.i.Printer(s.i.Err)
		p.Line("%s", p.Paint(term.Yellow, "it waits until a person says: agentbox approvals approve "+string(approval)+
			", or deny; Ctrl-C gives it up"))
	}
	return nil
}

// finish writes the remaining output.
func (a *attended) finish(rest []byte) {
	_, _ = a.out.Write(rest) // who does not read any more misses nothing
	for _, on := range a.screens {
		_ = on.Flush()
		if on.Open && a.s.editor != nil {
			fmt.Fprintln(on.Out)
		}
	}
}
