package worker

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentbox/internal/domain/space"
	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/vfs"
)

// counted are files that count what is asked of them.
type counted struct {
	mu        sync.Mutex
	found     []vfs.Found
	held      int64 // bytes of changes
	committed int
}

func (c *counted) List(dir string) ([]vfs.Found, error) {
	if dir != "." && !strings.HasPrefix(dir, "d") {
		return nil, vfs.ENOENT
	}
	return c.found, nil
}

func (c *counted) Read(string, []byte, int64) (int, error) { return 0, io.EOF }
func (c *counted) Room() (int64, int64, error)             { return 1 << 20, 100, nil }
func (c *counted) Few(int) ([]vfs.Found, bool)             { return nil, false }
func (c *counted) Begin() (Changes, error)                 { return c, nil }
func (c *counted) Abort() error                            { return nil }

func (c *counted) Add(_ vfs.Change, content io.Reader) error {
	n, err := io.Copy(io.Discard, content)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held += n
	return err
}

func (c *counted) Commit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.committed++
	return nil
}

// voice returns a process without a program: the test decides its messages, and nobody reads the messages to it.
func voice(said io.Reader) *process {
	return &process{command: &exec.Cmd{Process: &os.Process{Pid: -1}}, out: bufio.NewReaderSize(said, 64<<10), w: bufio.NewWriter(io.Discard),
		words: &lastWords{}}
}

// hear has a talk hear what a worker says.
func hear(said io.Reader, files *counted, limits bound.Limits) (Outcome, error) {
	printed := newPrinter(func(string, []byte) error { return nil }, limits.OutputBytes, 0)
	t := &talk{w: voice(said), files: []Files{files}, printed: printed, limits: limits}
	o, err := t.execute(context.Background(), []byte("order"), time.Hour)
	return o, errors.Join(err, printed.wait())
}

func framed(frames ...[]byte) []byte {
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	for _, f := range frames {
		_ = writeFrame(w, f[0], f[1:])
	}
	_ = w.Flush()
	return b.Bytes()
}

func frame(kind byte, payload []byte) []byte { return append([]byte{kind}, payload...) }

func smallLimits() bound.Limits {
	return bound.Limits{Gas: 1, Time: time.Hour, MemoryBytes: 4 << 20, OutputBytes: 1 << 10, FileBytes: 1 << 20, OpenFiles: 1, Depth: 1}
}

// endless repeats what it was given, up to a number of times at which a test has failed.
type endless struct {
	text []byte
	at   int
	left int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := copy(p, e.text[e.at:])
	if e.at += n; e.at == len(e.text) {
		e.at = 0
		e.left--
	}
	return n, nil
}

// TestAFloodOfFramesIsBounded has a worker that is not ours any more tell without an end.
func TestAFloodOfFramesIsBounded(t *testing.T) {
	question := func(path string, more ...byte) []byte {
		e := encoder{}
		e.uint(0)
		e.string(path)
		return append(e.b, more...)
	}
	written := encodeChange(0, vfs.Change{Op: vfs.WriteFile, Path: "f", Size: 1 << 20, Content: [][]byte{make([]byte, piece)}})
	for _, x := range []struct {
		name string
		said [][]byte
		n    int
		want error
	}{
		{"changes", [][]byte{frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.MakeDir, Path: "d"}))}, 1 << 22, errHoard},
		{"changes with long paths", [][]byte{frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.Remove, Path: strings.Repeat("x", 1<<19)}))},
			1 << 12, errHoard},
		{"contents", [][]byte{frame(frameChange, written), frame(frameContent, make([]byte, piece))}, 1 << 12, errHoard},
		{"content of what has none", [][]byte{frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.MakeDir, Path: "d", Size: 1 << 20,
			Content: [][]byte{make([]byte, piece)}})),
			frame(frameContent, make([]byte, piece))}, 1 << 12, errWire},
		{"content that is larger than the file", [][]byte{frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.MakeLink, Path: "d",
			Content: [][]byte{make([]byte, 1<<30)}}))}, 1, errWire},
		{"a file that is too large", [][]byte{frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.WriteFile, Path: "d", Size: 1<<20 + 1}))}, 1,
			errWire},
		{"output", [][]byte{frame(frameOutput, append([]byte{1}, make([]byte, 100)...))}, 1 << 12, errFlood},
		{"a channel that is none", [][]byte{frame(frameOutput, []byte{3, 1})}, 1, errWire},
		{"another mount", [][]byte{frame(frameList, append([]byte{1}, question(".", 0)[1:]...))}, 1, errWire},
		{"a read before the beginning", [][]byte{frame(frameRead, question("f", 1, 1))}, 1, errWire},
		{"a read of too much", [][]byte{frame(frameRead, question("f", 0, 0xff, 0xff, 0xff, 0x7f))}, 1, errWire},
		{"a listing from behind its end", [][]byte{frame(frameList, question(".", 0xff, 0xff, 0xff, 0x7f))}, 1, errWire},
		{"a picture that is too large", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayPNG,
			Data: make([]byte, space.MaxDisplayBytes+1)}))}, 1, errWire},
		{"a value of another kind", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: "text/javascript"}))}, 1, errWire},
		{"a value of no number", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Media: space.DisplayText}))}, 1, errWire},
		{"values", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayText}))}, 1 << 20, errWire},
		{"pictures", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayPNG, Data: make([]byte, piece)})),
			frame(frameContent, make([]byte, piece))}, 1 << 10, errWire},
		{"a text that is none", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayJSON, Data: make([]byte,
			1)})), frame(frameContent, []byte{0xff}), frame(frameEnd, (&Outcome{}).encode())}, 1, errWire},
		{"a type that is not a text", [][]byte{
			frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Type: "\xff", Media: space.DisplayText})),
			frame(frameEnd, (&Outcome{}).encode())}, 1, errWire},
		{"a picture of nothing", [][]byte{frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayPNG, Data: make([]byte,
			9)})), frame(frameEnd, (&Outcome{}).encode())}, 1, errWire},
		{"a change before the end", [][]byte{frame(frameOutput, []byte{1, 'x'}), frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.MakeDir,
			Path: "d"}))}, 1, errWire},
		{"an end that is told twice", [][]byte{frame(frameEnded, nil)}, 2, errWire},
		{"output after the end", [][]byte{frame(frameEnded, nil), frame(frameOutput, []byte{1, 'x'})}, 1, errWire},
		{"a question after the end", [][]byte{frame(frameEnded, nil), frame(frameRoom, question(""))}, 1, errWire},
		{"ready again", [][]byte{frame(frameReady, nil)}, 1, errWire},
		{"content of nothing", [][]byte{frame(frameContent, []byte("x"))}, 1, errWire},
		{"a kind that is none", [][]byte{frame(200, nil)}, 1, errWire},
	} {
		files := &counted{}
		said := io.Reader(&endless{text: framed(x.said...), left: x.n})
		if first := x.said[0][0]; first == frameChange || first == frameDisplay {
			said = io.MultiReader(bytes.NewReader(framed(frame(frameEnded, nil))), said)
		}
		_, err := hear(said, files, smallLimits())
		if !errors.Is(err, x.want) {
			t.Errorf("%s: got %v, want %v", x.name, err, x.want)
		}
		if limit := 2*smallLimits().MemoryBytes + maxNames; files.held > limit || files.committed > 0 {
			t.Errorf("%s: %d bytes were taken, %d commits", x.name, files.held, files.committed)
		}
	}
}

// TestWhatAnExecutionShowsComesWithItsEnd has a worker tell of two forms of a value, one of them in more than one frame; what is dropped
// shows nothing.
func TestWhatAnExecutionShowsComesWithItsEnd(t *testing.T) {
	want := []space.Display{
		{Value: 1, Result: true, Type: "T", Media: space.DisplayText, Data: []byte("text")},
		{Value: 1, Result: true, Type: "T", Media: space.DisplayPNG, Data: bytes.Repeat([]byte("p"), piece+1), Rows: 1, Columns: 2, Width: 3,
			Height: 4},
	}
	var said bytes.Buffer
	s := &server{w: bufio.NewWriter(&said)}
	if err := s.send(frameEnded, nil, false); err != nil {
		t.Fatal(err)
	}
	for _, d := range want {
		if err := s.display(d); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.send(frameEnd, (&Outcome{Lacks: []space.Lack{{Kind: "module"}}}).encode(), true); err != nil {
		t.Fatal(err)
	}
	o, err := hear(bytes.NewReader(said.Bytes()), &counted{}, smallLimits())
	if diff := cmp.Diff(want, o.Displays); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	tk := &talk{w: voice(bytes.NewReader(said.Bytes())), files: []Files{&counted{}}, printed: newPrinter(nil, 1<<10, 1<<10),
		limits: smallLimits(), tentative: true}
	if o, err := tk.execute(t.Context(), []byte("order"), time.Hour); err != nil || !o.Dropped || len(o.Displays) > 0 {
		t.Errorf("what is dropped shows %d forms: %+v, %v", len(o.Displays), o.Dropped, err)
	}
}

// TestAStormOfListingsHoldsNoMore has a worker begin to list and never go on.
func TestAStormOfListingsHoldsNoMore(t *testing.T) {
	files := &counted{}
	for range 4000 {
		files.found = append(files.found, vfs.Found{Name: strings.Repeat("n", 200), Kind: vfs.Regular})
	}
	var said [][]byte
	for range 1000 {
		e := encoder{}
		e.uint(0)
		e.string("d" + strings.Repeat("x", len(said)))
		e.uint(0)
		said = append(said, frame(frameList, e.b))
	}
	tk := &talk{w: voice(bytes.NewReader(framed(said...))), files: []Files{files}, printed: newPrinter(nil, 0, 0), limits: smallLimits()}
	_, err := tk.execute(t.Context(), []byte("order"), time.Hour)
	if !errors.Is(err, ErrEnded) || len(tk.listing) > maxListings {
		t.Errorf("got %v and %d listings that were begun", err, len(tk.listing))
	}
}

// FuzzFrames hears whatever a worker may say: nothing of it is committed unless an execution has ended, and nothing panics.
func FuzzFrames(f *testing.F) {
	e := encoder{}
	e.uint(0)
	e.string(".")
	e.uint(0)
	ended := (&Outcome{Code: 1}).encode()
	f.Add(framed(frame(frameEnd, ended)))
	f.Add(framed(frame(frameOutput, []byte("\x01hi")), frame(frameList, e.b), frame(frameRead, append(e.b, 4)), frame(frameRoom,
		e.b[:len(e.b)-1]), frame(frameEnd, ended)))
	f.Add(framed(frame(frameEnded, nil), frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.WriteFile, Path: "../x", Size: 3, Mode: 0o7777,
		Content: [][]byte{[]byte("abc")}})), frame(frameContent, []byte("abc")), frame(frameEnd, ended)))
	f.Add(framed(frame(frameEnded, nil), frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.Put, Path: "/etc/passwd", Slot: 1 << 30,
		Target: "/", Modified: time.Unix(1<<40, 0)})), frame(frameEnd, ended)))
	f.Add(framed(frame(frameEnded, nil), frame(frameDisplay, encodeDisplay(space.Display{Value: 1, Media: space.DisplayText,
		Data: []byte("abc")})), frame(frameContent, []byte("abc")), frame(frameEnd, ended)))
	f.Fuzz(func(t *testing.T, said []byte) {
		files := &counted{found: []vfs.Found{{Name: "a", Kind: vfs.Regular}}}
		o, err := hear(bytes.NewReader(said), files, smallLimits())
		if err != nil && files.committed > 0 {
			t.Errorf("committed although %v", err)
		}
		if err == nil && (o.Code < 0 || o.Code > 255 || len(o.Refused) > maxWord || len(o.Lacks) > maxLacks || o.Gas < 0 || o.Memory < 0) {
			t.Errorf("got %+v", o)
		}
		if shown := o.Displays; len(shown) > 0 && !shown[len(shown)-1].Fits(shown[:len(shown)-1]) {
			t.Errorf("%d forms are shown", len(shown))
		}
		if files.held > 2*smallLimits().MemoryBytes+maxNames {
			t.Errorf("%d bytes were taken", files.held)
		}
		d := decoder{b: said}
		_ = d.strings()
		_, _ = decodeFound(said)
		_, _ = decodeOrder(said)
	})
}

// TestAStopThatComesLateHarmsNobody ends an execution's talk and stops it afterwards, in every order in which that can happen: the worker
// works for another one.
func TestAStopThatComesLateHarmsNobody(t *testing.T) {
	var told bytes.Buffer
	w := voice(bytes.NewReader(framed(frame(frameEnd, (&Outcome{}).encode()))))
	w.w = bufio.NewWriter(&told)
	tk := &talk{w: w, printed: newPrinter(nil, 0, 0), limits: smallLimits()}
	if _, err := tk.execute(t.Context(), []byte("order"), time.Hour); err != nil {
		t.Fatal(err)
	}
	told.Reset()
	tk.stop()
	tk.kill(&bound.Stopped{TimedOut: true})
	if told.Len() > 0 || tk.hang != nil || tk.killed != nil {
		t.Errorf("after its end it is told %q, killed: %v", told.Bytes(), tk.killed)
	}
	// A stop waits for the pipe while the execution ends.
	tk = &talk{w: w}
	w.mu.Lock()
	begun := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		close(begun)
		tk.stop()
		close(stopped)
	}()
	<-begun
	tk.leave()
	w.mu.Unlock()
	<-stopped
	if told.Len() > 0 {
		t.Errorf("after its end it is told %q", told.Bytes())
	}
}

// sinking are files whose disk takes its time for each piece of content.
type sinking struct {
	counted
	slow time.Duration
}

func (s *sinking) Begin() (Changes, error) { return s, nil }

func (s *sinking) Add(_ vfs.Change, content io.Reader) error {
	_, err := io.Copy(s, content)
	return err
}

func (s *sinking) Write(p []byte) (int, error) {
	<-time.After(s.slow)
	s.held += int64(len(p))
	return len(p), nil
}

// TestASlowDiskIsNotTheWorkersTime has a disk take longer for what has changed than a worker may take for telling it, and then a worker
// take as long.
func TestASlowDiskIsNotTheWorkersTime(t *testing.T) {
	const size = 4 * piece
	limits := smallLimits()
	written := [][]byte{frame(frameEnded, nil), frame(frameChange, encodeChange(0, vfs.Change{Op: vfs.WriteFile, Path: "f", Size: size,
		Content: [][]byte{make([]byte, size)}}))}
	for range size / piece {
		written = append(written, frame(frameContent, make([]byte, piece)))
	}
	said := framed(append(written, frame(frameEnd, (&Outcome{}).encode()))...)
	hearAll := func(files *sinking, said io.Reader) (Outcome, error) {
		printed := newPrinter(func(string, []byte) error { return nil }, limits.OutputBytes, 0)
		k := &talk{w: voice(said), files: []Files{files}, printed: printed, limits: limits}
		o, err := k.execute(context.Background(), []byte("order"), time.Hour)
		return o, errors.Join(err, printed.wait())
	}
	synctest.Test(t, func(t *testing.T) {
		files := &sinking{slow: telling}
		o, err := hearAll(files, bytes.NewReader(said))
		if err != nil || o.TimedOut || files.held != size || files.committed != 1 || o.Commit != 4*telling || o.Took != 0 {
			t.Errorf("a slow disk: got %+v, %v, with %d bytes and %d commits", o, err, files.held, files.committed)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		files := &sinking{slow: time.Second}
		o, err := hearAll(files, io.MultiReader(late{time.Minute}, bytes.NewReader(said)))
		if err != nil || o.Took != time.Minute || o.Commit != 4*time.Second {
			t.Errorf("a command of a minute: got %+v, %v", o, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		files := &sinking{}
		o, err := hearAll(files, io.MultiReader(bytes.NewReader(said[:len(said)/2]), late{telling + time.Second},
			bytes.NewReader(said[len(said)/2:])))
		if err != nil || !o.TimedOut || files.committed != 0 {
			t.Errorf("a slow worker: got %+v, %v, with %d commits", o, err, files.committed)
		}
	})
}

// late is nothing, after a time.
type late struct{ after time.Duration }

func (l late) Read([]byte) (int, error) {
	<-time.After(l.after)
	return 0, io.EOF
}
