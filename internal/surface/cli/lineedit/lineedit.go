// Package lineedit reads lines that a person edits at a terminal, with a history of their own.
package lineedit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	xterm "golang.org/x/term"

	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// ErrDropped means that the person does not want the line.
var ErrDropped = errors.New("dropped")

// ErrOver means that nobody wants the line any more.
var ErrOver = errors.New("nobody wants the line any more")

// Editor reads lines at a terminal. Make it with Open; one goroutine calls its methods.
type Editor struct {
	*xterm.Terminal
	Keys *term.Typed
	Past *History

	i   *cmdline.Invocation
	tab Tab
}

// begin makes the terminal that the editor uses. A terminal that has met the key Ctrl-D meets it again at every further line.
func (e *Editor) begin() {
	e.Terminal = xterm.NewTerminal(e.Keys, "")
	e.History, e.AutoCompleteCallback = e.Past, e.tab
}

// Tab completes the typed text when the person presses the key, as the callback of an xterm terminal does.
type Tab func(line string, pos int, key rune) (newLine string, newPos int, ok bool)

// Open begins to edit lines, with the history of a name. The caller ends it with done, which leaves the terminal as it was. The editor is
// nil where the input or the output is not a terminal, or the system edits lines itself.
func Open(ctx context.Context, i *cmdline.Invocation, name string, tab Tab) (e *Editor, done func(), err error) {
	if i.JSON || !i.Terminal || !i.Asks || i.Edit == nil {
		return nil, func() {}, nil
	}
	restore, err := i.Edit()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, func() {}, nil
	}
	if err != nil {
		return nil, nil, cmdline.NoKeys(err)
	}
	e = &Editor{i: i}
	if e.Past, err = OpenHistory(File(i, name)); err != nil {
		cmdline.Complain(i.Err, i.Printer(i.Err), err)
	}
	ctx, stop := context.WithCancel(ctx)
	e.Keys = &term.Typed{Out: i.Out, Pieces: make(chan []byte)}
	var pumping sync.WaitGroup
	pumping.Go(func() { e.Keys.Pump(ctx, i.In) })
	e.tab = tab
	e.begin()
	e.SetBracketedPasteMode(true)
	i.Answers, i.Aside = e.Line, e.aside
	return e, func() {
		e.SetBracketedPasteMode(false)
		stop()
		for range e.Keys.Pieces { // it may be giving one
		}
		pumping.Wait()
		restore()
		if e.Past.wrong != nil {
			cmdline.Complain(i.Err, i.Printer(i.Err), e.Past.wrong)
		}
	}, nil
}

// aside takes the keys that wait for the next line. They were pressed before the question that is shown now, so they do not answer it.
func (e *Editor) aside() (back func()) {
	before := e.Keys.Take()
	return func() { e.Keys.Unread(before) }
}

// Line reads a line that a person edits. It returns ErrDropped where they interrupt it, ErrOver where Keys.Over ends
// it, and io.EOF where they leave.
func (e *Editor) Line(prompt string) (string, error) {
	line, _, err := e.Pasted(prompt)
	return line, err
}

// Pasted is Line, and reports whether the whole line was pasted, so that more of the same text may follow.
func (e *Editor) Pasted(prompt string) (line string, pasted bool, err error) {
	width, height := e.i.Screen()
	_ = e.SetSize(width, height) // it has no way to fail before something is drawn
	e.SetPrompt(prompt)
	e.Keys.Broken, e.Keys.Ended = false, false
	line, err = e.ReadLine()
	if errors.Is(err, xterm.ErrPasteIndicator) {
		err, pasted = nil, true
	}
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(e.i.Out)
		e.begin()
	}
	switch {
	case err == nil && e.Keys.Broken:
		err = ErrDropped
	case err == nil && e.Keys.Ended:
		err = ErrOver
	}
	return line, pasted, err
}
