// Package topcmd shows the running work, again and again.
package topcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"golang.org/x/text/width"

	"agentbox/internal/client"
	"agentbox/internal/domain/space"
	"agentbox/internal/surface/cli/cmdline"
	"agentbox/internal/surface/cli/term"
)

// The bounds of how often top looks.
const (
	leastTop = 200 * time.Millisecond
	mostTop  = time.Hour
)

// Top is the command that shows the running work.
func Top(i *cmdline.Invocation) *cobra.Command {
	var once bool
	var every time.Duration
	c := &cobra.Command{
		Use: "top", SuggestFor: []string{"ps", "stats", "status"}, Short: "Watch the spaces: runs, usage, open questions", Args: cobra.NoArgs,
		Long: "Top shows each space with its run, the operation that it is at, and what its processes use of the processor and of memory, and " +
			"above them how\n" +
			"many questions wait, how fast the gate decides and the log grows. Keys: q ends; c, m, p, n and t sort by processor, memory, tasks " +
			"(processes and threads), name and\n" +
			"time; r turns the order round; the arrows, space and b move through a list that is longer than the screen.\n" +
			"If the output is not a terminal, and with --once or --json, it writes one view, after one interval.",
		Example: "  agentbox top\n  agentbox top --once --interval 5s\n  agentbox top --json | jq '.spaces[] | select(.cpu_percent > 50)'",
	}
	c.Flags().BoolVar(&once, "once", false, "show it once, and end")
	c.Flags().DurationVar(&every, "interval", time.Second, "how often to look, 200ms to 1h; rates are those of one interval")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if every < leastTop || every > mostTop {
			return cmdline.Usage("--interval %s: name a time from %s to %s", every, leastTop, mostTop)
		}
		api, err := i.Connect(cmd.Context())
		if err != nil {
			return err
		}
		first, err := api.Top(cmd.Context())
		if err != nil {
			return err
		}
		if !once && !i.JSON && i.Terminal && i.Asks && i.Screen != nil {
			return watchTop(cmd.Context(), i, api, first, every)
		}
		if !pause(cmd.Context(), i, every) {
			return cmd.Context().Err()
		}
		now, err := api.Top(cmd.Context())
		if err != nil {
			return err
		}
		t := rated(first, now)
		return i.Show(t, func(p *term.Printer) {
			for _, line := range t.draw(p, order{}, 0, 0) {
				p.Line("%s", line)
			}
		})
	}
	return c
}

// pause waits, and reports whether ctx has not ended meanwhile.
func pause(ctx context.Context, i *cmdline.Invocation, d time.Duration) bool {
	over, stop := i.Clock.NewTimer(d)
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}

// topNow is one reading of the daemon's activity, with the rates since the reading before.
type topNow struct {
	client.Top
	Events    float64   `json:"events_per_second"`
	Decided   float64   `json:"decisions_per_second"`
	Appended  float64   `json:"appends_per_second"`
	Spaces    []topLine `json:"spaces"`
	Unreached string    `json:"-"` // why there is nothing newer
}

// topLine is a space and its rates.
type topLine struct {
	client.TopSpace
	Percent float64 `json:"cpu_percent"` // of one core; -1 where it is not known
}

// rated compares two looks. A daemon that was restarted between them counts anew.
func rated(before, now client.Top) topNow {
	seconds := now.At.Sub(before.At).Seconds()
	rate := func(was, is uint64) float64 {
		if seconds <= 0 || is < was {
			return 0
		}
		return float64(is-was) / seconds
	}
	t := topNow{
		Top: now, Events: rate(before.Head, now.Head), Decided: rate(before.Decisions, now.Decisions), Appended: rate(before.Appends,
			now.Appends),
		Spaces: make([]topLine, len(now.Spaces)),
	}
	was := map[string]*space.Load{}
	for _, s := range before.Spaces {
		was[string(s.ID)] = s.Load
	}
	for n, s := range now.Spaces {
		t.Spaces[n] = topLine{s, -1}
		if old := was[string(s.ID)]; old != nil && s.Load != nil && old.CPUMicros >= 0 && s.Load.CPUMicros >= old.CPUMicros && seconds > 0 {
			t.Spaces[n].Percent = float64(s.Load.CPUMicros-old.CPUMicros) / 1e4 / seconds
		}
	}
	return t
}

// order is how the spaces are sorted: by a key, the greatest first unless it is turned round.
type order struct {
	by     byte // one of c, m, p, n and t; 0 leaves them as they came, the newest first
	turned bool
}

func (o order) sort(lines []topLine, now time.Time) {
	load := func(l topLine) space.Load {
		if l.Load == nil {
			return space.Load{MemoryBytes: -1, Pids: -1}
		}
		return *l.Load
	}
	since := func(l topLine) time.Duration {
		if l.Run == nil {
			return -1
		}
		return now.Sub(l.Run.Since)
	}
	slices.SortStableFunc(lines, func(a, b topLine) int {
		way := 0
		switch o.by {
		case 'c':
			way = cmp.Compare(b.Percent, a.Percent)
		case 'm':
			way = cmp.Compare(load(b).MemoryBytes, load(a).MemoryBytes)
		case 'p':
			way = cmp.Compare(load(b).Pids, load(a).Pids)
		case 'n':
			way = cmp.Compare(a.Name, b.Name)
		case 't':
			way = cmp.Compare(since(b), since(a))
		}
		if o.turned {
			way = -way
		}
		return way
	})
}

// heading is how many lines stand above the spaces.
const heading = 4

// footer says which keys there are; it is the last line of the screen.
const footer = "q ends   sort by: c processor, m memory, p tasks, n name, t time   r turns round   arrows, space, b move"

// footing is how many lines the footer takes: none on a screen that has hardly room for the spaces.
func footing(height int) int {
	if height < heading+6 {
		return 0
	}
	return 1
}

// draw writes the running work as lines of at most p.width columns; at most height of them, unless that is 0, from the space number skip
// on.
func (t topNow) draw(p *term.Printer, o order, skip, height int) []string {
	lines := slices.Clone(t.Spaces)
	o.sort(lines, t.At)
	running, waiting := 0, 0
	for _, l := range lines {
		switch l.Status {
		case space.Running:
			running++
		case space.Paused:
			waiting++
		}
	}
	out := []string{
		fit(fmt.Sprintf("agentbox top  %s  spaces %d, %d running, %d paused  log %d", t.At.Local().Format("15:04:05"), len(lines), running,
			waiting, t.Head), p.Width),
		fit(fmt.Sprintf("%.1f events/s  %.1f appends/s  %.1f decisions/s", t.Events, t.Appended, t.Decided), p.Width),
		p.Paint(t.notice(p.Width)),
	}
	heads := []string{"SPACE", "STATE", "CPU%", "MEMORY", "OF", "TASKS", "AT", "FOR", "OPERATION"}
	rows := [][]string{heads}
	for _, l := range lines {
		rows = append(rows, l.row(t.At))
	}
	widths := make([]int, len(heads))
	for _, row := range rows {
		for n, text := range row {
			widths[n] = max(widths[n], columns(text))
		}
	}
	for n, row := range rows {
		if n > 0 && n <= skip {
			continue
		}
		var b strings.Builder
		for m, text := range row {
			space := strings.Repeat(" ", widths[m]-columns(text))
			if numeric := m >= 2 && m <= 5; numeric {
				b.WriteString(space + text + "  ")
			} else {
				b.WriteString(text + space + "  ")
			}
		}
		line, colour := fit(strings.TrimRight(b.String(), " "), p.Width), ""
		switch {
		case n == 0:
			colour = term.Faint
		case lines[n-1].Status == space.Paused:
			colour = term.Yellow
		case lines[n-1].Status == space.Running:
			colour = term.Green
		}
		out = append(out, p.Paint(colour, line))
	}
	if height > 0 && len(out) > height {
		out = out[:height]
	}
	return out
}

// notice returns the most important message for a person, with its colour.
func (t topNow) notice(width int) (colour, text string) {
	switch {
	case t.Unreached != "":
		return term.Red, fit(term.OneLine(t.Unreached, 0), width)
	case t.Thrown:
		return term.Red, fit("the kill switch is thrown: only reading, and what is only recorded, is permitted", width)
	case t.Waiting == 1:
		return term.Yellow, fit("1 question waits for a person: agentbox approvals", width)
	case t.Waiting > 0:
		return term.Yellow, fit(fmt.Sprintf("%d questions wait for a person: agentbox approvals", t.Waiting), width)
	}
	return "", ""
}

// row are the cells of a space.
func (l topLine) row(now time.Time) []string {
	row := []string{fit(term.OneLine(cmdline.First(l.Name, string(l.ID)), 0), 24), string(l.Status), "-", "-", term.Bytesize(l.Memory), "-",
		"-", "-", ""}
	if l.Percent >= 0 {
		row[2] = fmt.Sprintf("%.1f", l.Percent)
	}
	if l.Load != nil && l.Load.MemoryBytes >= 0 {
		row[3] = term.Bytesize(l.Load.MemoryBytes)
	}
	if l.Load != nil && l.Load.Pids >= 0 {
		row[5] = fmt.Sprint(l.Load.Pids)
	}
	if r := l.Run; r != nil {
		row[6], row[7] = fmt.Sprintf("%d/%d", r.Number, r.Of), term.Duration(max(0, now.Sub(r.Since)))
		row[8] = term.OneLine(strings.TrimSpace(r.Operation+" "+r.Summary), 0)
	}
	return row
}

// columns is how many columns of a terminal a text takes that holds no control characters.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += runeColumns(r)
	}
	return n
}

func runeColumns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// fit cuts a text to a number of columns; 0 is without limit.
func fit(s string, most int) string {
	if most <= 0 || columns(s) <= most {
		return s
	}
	n := 0
	for at, r := range s {
		if n += runeColumns(r); n >= most {
			return s[:at] + "…"
		}
	}
	return s
}

// The screen of its own that top draws on: no cursor, no line that goes on in the next.
const (
	screenOn  = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	screenOff = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// watchTop shows the running work until the person presses q or ctx ends.
func watchTop(ctx context.Context, i *cmdline.Invocation, api *client.Client, last client.Top, every time.Duration) error {
	restore, err := i.Keys()
	if err != nil {
		return cmdline.NoKeys(err).With("agentbox top --once")
	}
	ctx, stop := context.WithCancel(ctx)
	keys := make(chan byte)
	var reading sync.WaitGroup
	reading.Go(func() { readKeys(ctx, i.In, keys) })
	fmt.Fprint(i.Out, screenOn)
	defer func() {
		stop()
		reading.Wait()
		fmt.Fprint(i.Out, screenOff)
		restore()
	}()
	view := topView{now: rated(last, last)}
	draw := func() (height int) { // on the screen as it is now, for it may have been resized
		width, height := i.Screen()
		p := i.Printer(i.Out)
		p.Width = width
		view.show(p, height)
		return height
	}
	for {
		height := draw()
		due, cancel := i.Clock.NewTimer(every)
		for waiting := true; waiting; {
			select {
			case <-due:
				waiting = false
				next, err := api.Top(ctx)
				if err != nil {
					view.now.Unreached = err.Error()
					break
				}
				view.now, last = rated(last, next), next
			case key := <-keys:
				if view.press(key, height-heading-footing(height)) {
					cancel()
					return nil
				}
				height = draw()
			case <-ctx.Done():
				cancel()
				return nil
			}
		}
		cancel()
	}
}

// topView is the state of the screen.
type topView struct {
	now   topNow
	order order
	skip  int
}

func (v *topView) show(p *term.Printer, height int) {
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := v.now.draw(p, v.order, v.skip, height-footing(height))
	if footing(height) > 0 {
		for len(lines) < height-1 {
			lines = append(lines, "")
		}
		lines = append(lines, p.Paint(term.Faint, fit(footer, p.Width)))
	}
	for n, line := range lines {
		b.WriteString(line + "\x1b[K")
		if n < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[J")
	fmt.Fprint(p.Out, b.String())
}

// press obeys a key, and reports whether it ends the program. The last byte of an arrow's sequence stands for it.
func (v *topView) press(key byte, page int) (quit bool) {
	most := max(0, len(v.now.Spaces)-max(1, page))
	switch key {
	case 'q', 'Q', 3, 4:
		return true
	case 'c', 'm', 'p', 'n', 't':
		v.order.by, v.skip = key, 0
	case 'r':
		v.order.turned = !v.order.turned
	case keyUp, 'k':
		v.skip = max(0, v.skip-1)
	case keyDown, 'j':
		v.skip = min(most, v.skip+1)
	case ' ':
		v.skip = min(most, v.skip+max(1, page))
	case 'b':
		v.skip = max(0, v.skip-max(1, page))
	}
	return false
}

// The arrows, as the last bytes of their sequences; keys that are no letters of their own.
const (
	keyUp   = 0x80 + 'A'
	keyDown = 0x80 + 'B'
)

// readKeys tells the keys that are pressed until ctx ends. The terminal answers a read after a moment, whether or not something was
// pressed.
func readKeys(ctx context.Context, in io.Reader, keys chan<- byte) {
	buffer := make([]byte, 16)
	for ctx.Err() == nil {
		n, err := in.Read(buffer)
		if err != nil && err != io.EOF {
			return
		}
		for _, key := range pressed(buffer[:n]) {
			select {
			case keys <- key:
			case <-ctx.Done():
				return
			}
		}
	}
}

// pressed takes apart what a terminal sent: arrows are sequences of three bytes.
func pressed(sent []byte) []byte {
	var keys []byte
	for n := 0; n < len(sent); n++ {
		if sent[n] == 0x1b && n+2 < len(sent) && (sent[n+1] == '[' || sent[n+1] == 'O') {
			keys = append(keys, 0x80+sent[n+2])
			n += 2
			continue
		}
		keys = append(keys, sent[n])
	}
	return keys
}
