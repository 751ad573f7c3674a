package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TestTopOnATerminal watches a real daemon on a pseudo-terminal: what is drawn fits, also after a resize, and however it ends, the
// terminal is as it was before.
func TestTopOnATerminal(t *testing.T) {
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}}
	c.start()
	for _, name := range []string{"first", "second", "third"} {
		c.post("/v1/spaces", `{"name":"`+name+`","runtime":"heavy","best_effort":true}`)
	}
	for _, end := range []struct {
		name string
		how  func(*terminal)
	}{
		{"q", func(x *terminal) { x.press("q") }},
		{"ctrl-c", func(x *terminal) { x.press("\x03") }},
		{"ctrl-z is no end", func(x *terminal) { x.press("\x1a"); x.next(); x.press("q") }},
		{"a signal", func(x *terminal) { x.check(x.cmd.Process.Signal(syscall.SIGTERM)) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			x := openTerminal(t, 80, 24, "top", "--data", c.dir, "--interval", "200ms")
			drawn := x.until(80, 24, "agentbox top", "SPACE", "third", "second", "first")
			if newest := slices.IndexFunc(drawn, func(line string) bool { return strings.HasPrefix(line, "third") }); newest != 4 {
				t.Errorf("the newest space is on line %d, want 4:\n%s", newest, strings.Join(drawn, "\n"))
			}
			if during := x.mode(); during.Lflag&(unix.ICANON|unix.ECHO) != 0 {
				t.Error("keys are shown, or wait for the end of a line, while top runs")
			}
			end.how(x)
			x.ended()
		})
	}
	t.Run("resize and keys", func(t *testing.T) {
		x := openTerminal(t, 80, 24, "top", "--data", c.dir, "--interval", "200ms")
		x.until(80, 24, "first")
		x.resize(30, 6)
		drawn := x.until(30, 6, "third", "second")
		if len(drawn) != 6 || strings.Contains(strings.Join(drawn, "\n"), "first") {
			t.Errorf("a screen of 6 lines has %d:\n%s", len(drawn), strings.Join(drawn, "\n"))
		}
		x.press("\x1b[B")
		x.until(30, 6, "second", "first")
		x.press("n")
		x.until(30, 6, "first", "second")
		x.resize(120, 40)
		x.until(120, 40, "OPERATION", "first", "second", "third")
		c.kill()
		x.until(120, 40, "does not answer", "first") // what was seen last stays, and above it why there is nothing newer
		x.press("q")
		x.ended()
	})
}

// terminal is a pseudo-terminal on which a program runs.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	master *os.File
	before *unix.Termios
	output <-chan string // closed when nobody has the terminal open any more
	seen   string        // all of it
	drawn  int           // how much of seen was looked at
}

// openTerminal starts agentbox with arguments on a terminal of its own, which it controls as a shell's child does.
func openTerminal(t *testing.T, width, height uint16, args ...string) *terminal {
	t.Helper()
	x := &terminal{t: t}
	var err error
	x.master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	x.check(err)
	t.Cleanup(func() { _ = x.master.Close() })
	fd := int(x.master.Fd())
	x.check(unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	x.check(err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	x.check(err)
	x.resize(width, height)
	x.before = x.mode()
	x.cmd = exec.Command("agentbox", args...)
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	x.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	x.check(startBound(x.cmd))
	t.Cleanup(func() { _ = x.cmd.Process.Kill() })
	x.check(slave.Close())
	output := make(chan string)
	x.output = output
	go func() {
		defer close(output)
		buffer := make([]byte, 4096)
		for {
			n, err := x.master.Read(buffer)
			if err != nil {
				return
			}
			select {
			case output <- string(buffer[:n]):
			case <-t.Context().Done():
				return
			}
		}
	}()
	return x
}

func (x *terminal) check(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// mode is how the terminal treats what is typed and shown.
func (x *terminal) mode() *unix.Termios {
	x.t.Helper()
	now, err := unix.IoctlGetTermios(int(x.master.Fd()), unix.TCGETS)
	x.check(err)
	return now
}

func (x *terminal) resize(width, height uint16) {
	x.t.Helper()
	x.check(unix.IoctlSetWinsize(int(x.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: width, Row: height}))
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	_, err := x.master.WriteString(keys)
	x.check(err)
}

// The beginning and the end of a screen, what is between its lines, and colours.
const home, rest = "\x1b[H", "\x1b[J"

var ornaments = regexp.MustCompile(`\x1b\[([0-9;]*m|K)|\r`)

// next returns the lines of the next screen that is drawn.
func (x *terminal) next() []string {
	x.t.Helper()
	for {
		if _, after, ok := strings.Cut(x.seen[x.drawn:], home); ok {
			if screen, _, ok := strings.Cut(after, rest); ok {
				x.drawn = len(x.seen) - len(after) + len(screen)
				return strings.Split(ornaments.ReplaceAllString(screen, ""), "\n")
			}
		}
		more, ok := <-x.output
		if !ok {
			x.t.Fatalf("it ended after %q", x.seen)
		}
		x.seen += more
	}
}

// screens is how many screens are looked at for one that has what is wanted.
const screens = 300

// until returns the first screen of at most that size on which the words stand one behind the other.
func (x *terminal) until(width, height int, words ...string) []string {
	x.t.Helper()
	var lines []string
	for range screens {
		lines = x.next()
		wide := slices.ContainsFunc(lines, func(line string) bool { return utf8.RuneCountInString(line) > width })
		if rest := strings.Join(lines, "\n"); !wide && len(lines) <= height && follow(rest, words) {
			return lines
		}
	}
	x.t.Fatalf("none of %d screens of %dx%d has %q; the last one:\n%s", screens, width, height, words, strings.Join(lines, "\n"))
	return nil
}

func follow(text string, words []string) bool {
	for _, word := range words {
		_, after, ok := strings.Cut(text, word)
		if !ok {
			return false
		}
		text = after
	}
	return true
}

// ended waits for the end of the program and compares the terminal with what it was.
func (x *terminal) ended() {
	x.t.Helper()
	for more := range x.output {
		x.seen += more
	}
	if err := x.cmd.Wait(); err != nil {
		x.t.Errorf("it ended with %v", err)
	}
	const begins, ends = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
	if !strings.HasPrefix(x.seen, begins) || !strings.HasSuffix(x.seen, ends) || strings.Count(x.seen, "?1049") != 2 {
		x.t.Errorf("its screen is not put away: it began with %.40q and ended with %q", x.seen, x.seen[max(0, len(x.seen)-40):])
	}
	if now := x.mode(); *now != *x.before {
		x.t.Errorf("the terminal is left as %+v, it was %+v", *now, *x.before)
	}
}
