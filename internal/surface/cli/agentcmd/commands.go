package agentcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentbox/internal/client"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/model"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/lineedit"
	"agentbox/internal/surface/cli/term"
)

// dropped reports whether a person dropped a question instead of answering it.
func dropped(err error) bool { return errors.Is(err, lineedit.ErrDropped) }

// command is an instruction for the chat and not for the agent.
type command struct {
	name, takes, does string
	atOnce            bool // also while the agent works; others wait until it is done
	do                func(c *chat, ctx context.Context, rest string) error
}

// commandList returns the commands, in the order of help.
func commandList() []command {
	return []command{
		{"/help", "", "list these commands", true, (*chat).help},
		{"/model", "[NAME]", "show the models, or have another one answer", false, (*chat).chooseModel},
		{"/tools", "", "unfold the tool calls of the last task", true, (*chat).unfold},
		{"/files", "", "list the files of the space", true, (*chat).files},
		{"/attach", "PATH", "attach a picture or a text of this machine to the next message", true, (*chat).attach},
		{"/cost", "", "show what the conversation has cost", true, (*chat).cost},
		{"/rewind", "[N]", "take the last N tasks back (default 1), and what they did to files", false, (*chat).rewind},
		{"/fork", "", "go on in a copy of the space, beside this conversation", false, (*chat).fork},
		{"/stop", "", "stop what runs; at a terminal Ctrl-C does, too", false, (*chat).idle},
		{"/steer", "TEXT", "tell the agent something while it works; at a terminal every line does", false, (*chat).idle},
		{"/quit", "", "leave; the conversation is kept", false, func(*chat, context.Context, string) error { return nil }},
	}
}

func commandNamed(word string) (command, bool) {
	if word == "/exit" {
		word = "/quit"
	}
	for _, c := range commandList() {
		if c.name == word {
			return c, true
		}
	}
	return command{}, false
}

func (c *chat) help(context.Context, string) error {
	for _, k := range commandList() {
		c.err.Line("  %s %s", term.PadRight(strings.TrimSpace(k.name+" "+k.takes), 16), k.does)
	}
	c.err.Line("  %s %s", term.PadRight("@PATH", 16), "attach a picture or a text of this machine")
	return nil
}

func (c *chat) idle(context.Context, string) error {
	c.err.Line("nothing runs")
	return nil
}

// chooseModel lists the models, or chooses the one that answers from now on.
func (c *chat) chooseModel(ctx context.Context, name string) error {
	if name != "" {
		m, err := c.api.Model(ctx, name)
		if err != nil {
			return err
		}
		c.model = m.Name
		c.err.Line("%s answers from now on", term.Plain(m.Name))
		return nil
	}
	all, err := c.api.Models(ctx)
	if err != nil {
		return err
	}
	answers := c.model
	if answers == "" {
		b, err := c.api.Blueprint(ctx, c.blueprint, c.version)
		if err != nil {
			return err
		}
		if c.version == 0 || c.version == b.Version { // of an older version the list does not say it
			answers = b.Summary.Model
		}
	}
	for _, m := range all.Models {
		mark := " "
		if m.Name == answers {
			mark = "*"
		}
		c.err.Line("%s %s  %s", mark, term.Plain(m.Name), c.err.Paint(term.Faint, term.Plain(m.Model)))
	}
	switch {
	case answers == "":
		c.err.Line("%s", c.err.Paint(term.Faint, "the model of the blueprint answers"))
	case c.model == "":
		c.err.Line("%s", c.err.Paint(term.Faint, "* answers, as the blueprint says; choose another one: /model NAME"))
	default:
		c.err.Line("%s", c.err.Paint(term.Faint, "* answers, as you chose"))
	}
	return nil
}

// unfold prints the tool calls of the last task with their results.
func (c *chat) unfold(context.Context, string) error {
	if len(c.tools) == 0 {
		c.err.Line("no tool was called for the last task")
		return nil
	}
	width := 200
	if c.err.Width > 0 {
		width = max(40, 2*c.err.Width-50)
	}
	for _, t := range c.tools {
		short := shortArguments(t.arguments, width)
		if t.arguments == "" {
			short = term.OneLine(t.summary, width)
		}
		c.err.Line("%s", c.err.Paint(term.Cyan, "▸ "+term.OneLine(t.kind, 40))+" "+short)
		if t.result == nil {
			c.err.Line("  no result came")
			continue
		}
		c.err.Line("  %s", resultWords(c.err, *t.result))
		for _, text := range []*string{t.result.Content, t.result.Stdout, t.result.Stderr} {
			if text != nil {
				for line := range strings.Lines(*text) {
					c.err.Line("  │ %s", term.Plain(strings.TrimRight(line, "\r\n")))
				}
			}
		}
		if len(t.result.Omitted) > 0 {
			c.err.Line("  %s", c.err.Paint(term.Faint, "left out, because it is long: "+term.OneLine(strings.Join(t.result.Omitted, ", "), 100)))
		}
	}
	return nil
}

var errNoSpace = fault.New(fault.Conflict, "no_space_yet", "there is no space yet; the first task makes it")

func (c *chat) files(ctx context.Context, _ string) error {
	if c.space == "" {
		return errNoSpace
	}
	l, err := c.api.Files(ctx, c.space, ".", true)
	if err != nil {
		return err
	}
	for _, e := range l.Entries {
		c.err.Line("  %s  %s", term.Pad(term.Bytesize(e.Size), 10), term.OneLine(e.Path, 200))
	}
	switch {
	case l.Truncated:
		c.err.Line("there are more: agentbox files ls %s", c.space)
	case len(l.Entries) == 0:
		c.err.Line("the space has no files")
	}
	return nil
}

// cost prints the use of models in the conversation, with the tasks that are no part of it any more.
func (c *chat) cost(ctx context.Context, _ string) error {
	counted := slices.Concat(c.runs, c.dropped, c.undone)
	all, currency, err := c.spent(ctx, counted)
	if err != nil {
		return err
	}
	if all.Requests == 0 {
		c.err.Line("no model was asked yet")
		return nil
	}
	c.err.Line("%s: %s", term.Count(len(counted), "task"), usedText(&all, currency))
	back, _, err := c.spent(ctx, c.undone)
	if err == nil && back.Requests > 0 {
		c.err.Line("  of it %s taken back: %s", term.Count(len(c.undone), "task"), usedText(&back, currency))
	}
	return err
}

// spent returns the use of models for tasks, with their sub-agents, and the currency of its cost.
func (c *chat) spent(ctx context.Context, tasks []id.Run) (all model.Used, currency string, err error) {
	for _, r := range tasks {
		used, err := c.api.ModelUsage(ctx, model.ScopeRun, "", r, 1)
		if err != nil {
			return all, currency, err
		}
		currency = used.Currency
		for _, u := range used.Usage {
			all.Requests, all.Unpriced = all.Requests+u.Requests, all.Unpriced+u.Unpriced
			all.Usage, all.Cost = all.Usage.Add(u.Usage), all.Cost.Plus(u.Cost)
		}
	}
	return all, currency, nil
}

// rewind undoes the last tasks: their messages, and their changes of the space's files.
func (c *chat) rewind(ctx context.Context, rest string) error {
	n := 1
	if rest != "" {
		var err error
		if n, err = strconv.Atoi(rest); err != nil || n < 1 {
			return cmdline.Usage("/rewind takes a number of tasks, from 1 on")
		}
	}
	if n > len(c.runs) {
		return cmdline.Usage("the conversation has %s", term.Count(len(c.runs), "task"))
	}
	keep := len(c.runs) - n
	var first, task id.Run // the first that changed something, and its task
	for _, r := range c.runs[keep:] {
		recorded, err := c.api.Steps(ctx, r)
		if err != nil {
			return err
		}
		for _, call := range recorded.Calls {
			if call.Child != "" && first == "" {
				first, task = call.Child, r
			}
		}
	}
	said := "; they did nothing to the files"
	switch {
	case first == "":
	case c.spaces[task] == c.space:
		if _, err := c.api.RewindSpace(ctx, c.space, string(first)); err != nil {
			return err
		}
		said = ", and the files are as they were before"
	default: // the task is from before the fork, whose own snapshots begin later: fork again, from the files before the task
		made, err := c.api.ForkSpace(ctx, c.spaces[task], client.ForkRequest{At: string(first), Description: "forked from a conversation"})
		if err != nil {
			return err
		}
		said = fmt.Sprintf(", from before the fork: you go on in %s,\na copy of the files as they were before; %s stays as it is", made.ID,
			c.space)
		c.space, c.thread, c.room = made.ID, "", made.Room
	}
	c.undone = append(c.undone, c.runs[keep:]...)
	c.runs, c.tools = c.runs[:keep], nil
	c.err.Line("%s taken back%s", term.Count(n, "task"), said)
	return nil
}

// fork continues in a copy of the space.
func (c *chat) fork(ctx context.Context, _ string) error {
	if c.space == "" || len(c.runs) == 0 {
		return errNoSpace
	}
	made, err := c.api.ForkSpace(ctx, c.space, client.ForkRequest{Description: "forked from a conversation"})
	if err != nil {
		return err
	}
	c.err.Line("you go on in %s; the other conversation:\n%s", made.ID, c.again(c.runs[len(c.runs)-1]))
	c.space, c.thread, c.room = made.ID, "", made.Room
	return nil
}

// maxAttached is the most bytes of an attached text.
const maxAttached = 128 << 10

// attachments matches words that name a file: @ and a path without spaces.
var attachments = regexp.MustCompile(`(^|\s)@(\S+)`)

// localFile returns the path of a line that holds only the path of a regular file, and whether it is one.
func localFile(line string) (string, bool) {
	path := strings.TrimSpace(line)
	if n := len(path); n > 1 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] { // as terminals paste names with spaces
		path = path[1 : n-1]
	}
	if !filepath.IsAbs(path) && !strings.HasPrefix(path, "./") && !strings.HasPrefix(path, "~/") {
		return "", false
	}
	info, err := os.Stat(expanded(path))
	return path, err == nil && info.Mode().IsRegular()
}

// expanded returns a path with the home folder in place of ~.
func expanded(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// pathsIn returns the paths of the files that a message names.
func pathsIn(text string) (paths []string) {
	for line := range strings.Lines(text) {
		if path, is := localFile(line); is {
			paths = append(paths, path)
			continue
		}
		for _, m := range attachments.FindAllStringSubmatch(line, -1) {
			if _, err := os.Stat(expanded(m[2])); err == nil || strings.ContainsAny(m[2], "./") { // else it is a name, such as @anna
				paths = append(paths, m[2])
			}
		}
	}
	return paths
}

// attached returns a message with the texts of the files that belong to it, and its pictures: those that it names, and those of /attach.
func (c *chat) attached(text string) (string, []client.Picture, error) {
	whole := text
	var pictures []client.Picture
	for _, path := range slices.Concat(c.waiting, pathsIn(text)) {
		raw, err := readFile(path)
		if err != nil {
			return "", nil, err
		}
		name := filepath.Base(path)
		if model.MediaOf(raw) != "" {
			whole += fmt.Sprintf("\n\n[the picture %s]", name)
			pictures = append(pictures, client.Picture{Name: name, Data: raw})
		} else {
			whole += fmt.Sprintf("\n\n[the file %s]\n%s\n[the end of %s]", name, strings.TrimRight(string(raw), "\n"), name)
		}
		c.err.Line("%s", c.err.Paint(term.Faint, fmt.Sprintf("attached: %s (%s)", term.OneLine(path, 200), term.Bytesize(int64(len(raw))))))
	}
	switch {
	case len(whole) > errand.MaxTask:
		return "", nil, cmdline.Usage("a message with its files has at most %d bytes, and this has %d; "+
			"put long files into the space: agentbox files put", errand.MaxTask, len(whole))
	case len(pictures) > model.MaxImages:
		return "", nil, cmdline.Usage("a message has at most %d pictures, and this has %d", model.MaxImages, len(pictures))
	}
	return whole, pictures, nil
}

// attach keeps the path of a file for the next message.
func (c *chat) attach(_ context.Context, path string) error {
	if n := len(path); n > 1 && (path[0] == '\'' || path[0] == '"') && path[n-1] == path[0] {
		path = path[1 : n-1]
	}
	if path == "" {
		return cmdline.Usage("name the file: /attach PATH")
	}
	if _, err := readFile(path); errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.NotFound, "file_unreadable", "nothing is attached: this machine has no file %s", term.OneLine(path, 200)).
			With("name a file by its path from the folder in which the chat was started; the agent reads the files of its space by itself")
	} else if err != nil {
		return err
	}
	c.waiting = append(c.waiting, path)
	c.err.Line("%s goes with the next message", term.OneLine(path, 200))
	return nil
}

// readFile reads a file that is a picture or a text.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(expanded(path))
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "file_unreadable", "%s cannot be attached: it cannot be read", term.OneLine(path, 200)).
			With("write @ only before the path of a file of this machine")
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, cmdline.Usage("%s cannot be attached: it is not a file", term.OneLine(path, 200))
	}
	raw, err := io.ReadAll(io.LimitReader(f, model.MaxImage+1))
	picture := model.MediaOf(raw) != ""
	switch {
	case err != nil:
		return nil, err
	case picture && len(raw) > model.MaxImage:
		return nil, cmdline.Usage("%s cannot be attached: a picture has at most %d bytes; put it into the space: agentbox files put",
			term.OneLine(path, 200), model.MaxImage)
	case picture:
	case len(raw) > maxAttached:
		return nil, cmdline.Usage("%s cannot be attached: it has more than %d bytes; put it into the space: agentbox files put",
			term.OneLine(path, 200), maxAttached)
	case !utf8.Valid(raw) || strings.ContainsRune(string(raw), 0):
		return nil, cmdline.Usage("%s cannot be attached: it is neither a text nor a PNG, JPEG, GIF or WebP; "+
			"put it into the space: agentbox files put", term.OneLine(path, 200))
	}
	return raw, nil
}
