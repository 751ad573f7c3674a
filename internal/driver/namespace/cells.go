//go:build linux

package namespace

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // for the sizes of pictures
	_ "image/png"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/spaceinit"
)

// Interpreter contexts. Each has a process of its own in the space, which runs one cell after the other and lives until the space does not.
// A program of Agentbox's runs in it. It gets cells and sends their displayed values in messages on descriptors of its own. Code of a cell
// runs in the same process, so a message is believed no more than the output of the cell.

//go:embed cells/cell.py
var pythonCells string

//go:embed cells/cell.js
var javascriptCells string

// The folder of the programs in a space, below its root, and the bounds of their messages.
const (
	cellFolder      = "run/agentbox"
	maxInterpreters = 16       // of one space at a time
	maxMessage      = 24 << 20 // bytes of one message: more than all forms of the values of a cell
	maxValues       = 1000     // messages of one cell about values; more end the interpreter
	trailing        = time.Second
	engineCells     = "agentbox: "
)

// cellFiles are the programs in a space.
func cellFiles() []spaceinit.File {
	return []spaceinit.File{{Path: cellFolder + "/cell.py", Content: pythonCells}, {Path: cellFolder + "/cell.js", Content: javascriptCells}}
}

// interpreter is the process of a context.
type interpreter struct {
	running *spaceinit.Process
	busy    sync.Mutex // held by the cell under way
	kill    context.CancelFunc
	token   string        // names the process in the file of the context
	ended   chan struct{} // closed when no process of it is left
	exit    spaceinit.Exit
	err     error // why it could not be followed to its end; set before ended is closed
	cells   int   // begun; under busy

	mu   sync.Mutex
	cell *cell // under way, nil for none
}

// cell is a piece of code that runs.
type cell struct {
	pieces chan piece    // unbuffered: a cell takes output no faster than its caller does
	over   chan struct{} // closed when nobody waits for the cell any more
}

type piece struct {
	channel spaceinit.Channel
	bytes   []byte
}

// request is a message to the program in the space.
type request struct {
	Code   string            `json:"code"`
	File   string            `json:"file,omitempty"`
	Cwd    string            `json:"cwd"`
	Env    map[string]string `json:"env"`
	Marker string            `json:"marker"` // it writes this behind the output of the cell
	Token  string            `json:"token"`  // what names the process in the file of the context
}

// message is a message of the program in the space.
type message struct {
	Kind    string            `json:"kind"` // shown, end or stale
	Code    int               `json:"code"`
	Value   int               `json:"value"`
	Result  bool              `json:"result"`
	Type    string            `json:"type"`
	Forms   map[string]string `json:"forms"`
	Rows    int               `json:"rows"`
	Columns int               `json:"columns"`
}

// cellOf returns the cell that the command of an action is; false for every other command.
func cellOf(a policy.Action) (space.Cell, bool) {
	if len(a.Argv) != 3 || a.Argv[1] != "-c" || !slices.Contains([]string{"sh", "bash"}, path.Base(a.Argv[0])) {
		return space.Cell{}, false
	}
	return space.ReadCell(a.Argv[2], a.Env)
}

// runCell runs a cell in the process of its context, which begins with the first one.
func (s *instance) runCell(ctx context.Context, c space.Cell, a policy.Action, out space.Output) (space.Exit, error) {
	x, err := s.command(a)
	if err != nil {
		return space.Exit{}, err
	}
	for {
		i, err := s.interpreter(c, x)
		if err != nil {
			return space.Exit{}, err
		}
		exit, stale, err := s.inContext(ctx, i, c, a, x, out)
		if !stale {
			return exit, err
		}
	}
}

// interpreter returns the process of a context, and starts it if there is none.
func (s *instance) interpreter(c space.Cell, x spaceinit.Exec) (*interpreter, error) {
	key := c.Language + " " + c.Context
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.contexts[key]; i != nil {
		return i, nil
	}
	if len(s.contexts) >= maxInterpreters {
		return nil, fault.New(fault.Exhausted, "contexts_too_many", "%d interpreter contexts of the space have a process; delete one of them",
			maxInterpreters)
	}
	x.Argv = []string{"/usr/bin/python3", "/" + cellFolder + "/cell.py", c.Context}
	if c.Language == space.JavaScript {
		x.Argv = []string{"/usr/bin/node", "--no-warnings", "--expose-internals", "/" + cellFolder + "/cell.js", c.Context}
	}
	x.Cwd, x.Stdin, x.Frames = workdir, true, true
	x.Env = withoutCell(x.Env)
	running, err := s.client.Start(x)
	if err != nil {
		return nil, s.refusal(err)
	}
	ctx, kill := context.WithCancel(context.Background())
	token := fmt.Sprintf("%s %020d", s.spec.ID, s.tier.clock.Now().UnixNano())
	i := &interpreter{running: running, kill: kill, token: token, ended: make(chan struct{})}
	if s.contexts == nil {
		s.contexts = map[string]*interpreter{}
	}
	s.contexts[key] = i
	leave := s.watch.join(func(string) { kill() }) // what its threads write between the cells counts too
	go func() {
		i.exit, i.err = running.Wait(ctx, nil, i.deliver)
		kill()
		s.mu.Lock()
		if s.contexts[key] == i {
			delete(s.contexts, key)
		}
		s.mu.Unlock()
		close(i.ended)
		leave()
	}()
	return i, nil
}

// withoutCell returns an environment without the variable in which long code comes.
func withoutCell(env []string) []string {
	kept := make([]string, 0, len(env))
	for _, pair := range env {
		if !strings.HasPrefix(pair, space.CellVariable+"=") {
			kept = append(kept, pair)
		}
	}
	return kept
}

// deliver hands output to the running cell. Output between two cells belongs to none and is dropped.
func (i *interpreter) deliver(c spaceinit.Channel, data []byte) error {
	i.mu.Lock()
	now := i.cell
	i.mu.Unlock()
	if now == nil {
		return nil
	}
	select {
	case now.pieces <- piece{c, bytes.Clone(data)}:
	case <-now.over:
	}
	return nil
}

// EndContext ends the process of a context, if there is one. It returns when no process of it is left.
func (s *instance) EndContext(name, language string) {
	s.mu.Lock()
	i := s.contexts[language+" "+name]
	s.mu.Unlock()
	if i != nil {
		i.stop()
	}
}

func (i *interpreter) stop() {
	i.kill()
	<-i.ended
}

// inContext runs a cell in a process. Stale means that the process is not the context's any more, and has ended; the cell has not run.
func (s *instance) inContext(ctx context.Context, i *interpreter, c space.Cell, a policy.Action, x spaceinit.Exec, out space.Output) (
	exit space.Exit, stale bool, err error) {
	i.busy.Lock()
	defer i.busy.Unlock()
	select {
	case <-i.ended:
		return exit, true, nil
	default:
	}
	i.cells++
	now := &cell{pieces: make(chan piece), over: make(chan struct{})}
	i.mu.Lock()
	i.cell = now
	i.mu.Unlock()
	defer func() {
		i.mu.Lock()
		i.cell = nil
		i.mu.Unlock()
		close(now.over)
	}()
	f := &following{i: i, now: now, marker: fmt.Sprintf("\x00agentbox cell %d %s\x00", i.cells, a.Operation)}
	env := map[string]string{}
	for _, pair := range withoutCell(x.Env) {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	raw, err := json.Marshal(request{c.Code, c.File, path.Join(workdir, a.Cwd), env, f.marker, i.token})
	if err != nil {
		return exit, false, err
	}
	raw = append(binary.BigEndian.AppendUint32(nil, uint32(len(raw))), raw...)
	run := func(ctx context.Context, expire <-chan time.Time, out spaceinit.Output) (spaceinit.Exit, error) {
		return f.run(ctx, expire, raw, out)
	}
	exit, err = s.follow(ctx, s.begin(timeOf(a)), out, run)
	if exit.Displays = f.shown; err == nil {
		err = f.told(&exit, out)
	}
	return exit, f.stale, err
}

// following is a cell on its way to its end.
type following struct {
	i      *interpreter
	now    *cell
	marker string

	unread [2]held // of stdout and stderr
	frames []byte  // the beginning of a message
	values int
	shown  []space.Display
	end    *message
	stale  bool
	lost   bool // the process ended with the cell
	asked  bool // the cell was interrupted
}

// held is output that may be the beginning of the marker.
type held struct {
	bytes []byte
	over  bool // the marker has come
}

// run sends a cell and follows it to its end. An interrupt leaves the process alive; one that does not end the cell within the grace ends
// the process.
func (f *following) run(ctx context.Context, expire <-chan time.Time, raw []byte, out spaceinit.Output) (spaceinit.Exit, error) {
	sending, sent := context.WithCancel(ctx)
	defer sent()
	go func() {
		for len(raw) > 0 && sending.Err() == nil {
			n := min(len(raw), spaceinit.MaxData)
			if err := f.i.running.Send(sending, raw[:n], nil); err != nil {
				return // the process has ended, or the cell has
			}
			raw = raw[n:]
		}
	}()
	done, broken := ctx.Done(), error(nil)
	var grace, rest <-chan time.Time
	for f.end == nil || !f.unread[0].over || !f.unread[1].over {
		if f.end != nil && rest == nil {
			rest = time.After(trailing) // a cell that has closed its output marks no end of it
		}
		select {
		case p := <-f.now.pieces:
			if broken == nil {
				if broken = f.pass(p, out); broken != nil {
					f.i.kill()
				}
			}
		case <-expire:
			expire, f.asked, grace = nil, true, time.After(spaceinit.Grace)
			f.interrupt()
		case <-done:
			done, expire = nil, nil
			if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) && errorIs[overrun](cause) {
				f.i.kill()
				continue
			}
			f.asked, grace = true, time.After(spaceinit.Grace)
			f.interrupt()
		case <-grace:
			f.i.kill()
		case <-rest:
			return f.ended(out)
		case <-f.i.ended:
			f.lost = true
			if broken != nil || f.i.err != nil {
				return spaceinit.Exit{}, errors.Join(broken, f.i.err)
			}
			exit := f.i.exit
			exit.Killed = f.asked
			if err := f.flush(out); err != nil {
				return exit, err
			}
			return exit, nil
		}
	}
	return f.ended(out)
}

func errorIs[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

func (f *following) interrupt() { _ = f.i.running.Signal(uint8(unix.SIGINT)) }

// ended is the exit of a cell whose process lives on.
func (f *following) ended(out spaceinit.Output) (spaceinit.Exit, error) {
	if f.end.Kind == "stale" {
		f.stale = true
		f.i.stop()
		return spaceinit.Exit{}, nil
	}
	if err := f.flush(out); err != nil {
		f.i.kill()
		return spaceinit.Exit{}, err
	}
	return spaceinit.Exit{Code: uint8(f.end.Code), Killed: f.asked}, nil
}

// flush passes on the held output.
func (f *following) flush(out spaceinit.Output) error {
	for n := range f.unread {
		if h := &f.unread[n]; !h.over && len(h.bytes) > 0 {
			if err := out(spaceinit.Channel(n+1), h.bytes); err != nil {
				return err
			}
			h.bytes = nil
		}
	}
	return nil
}

// pass passes output on up to the marker, and reads messages.
func (f *following) pass(p piece, out spaceinit.Output) error {
	if p.channel == spaceinit.Frames {
		return f.read(p.bytes)
	}
	h := &f.unread[p.channel-1]
	if h.over {
		return nil
	}
	h.bytes = append(h.bytes, p.bytes...)
	free := len(h.bytes)
	if at := bytes.Index(h.bytes, []byte(f.marker)); at >= 0 {
		h.over, free = true, at
	} else {
		for n := min(len(f.marker)-1, free); n > 0; n-- {
			if bytes.HasSuffix(h.bytes, []byte(f.marker[:n])) {
				free -= n
				break
			}
		}
	}
	if free == 0 {
		return nil
	}
	data := h.bytes[:free]
	h.bytes = bytes.Clone(h.bytes[free:])
	return out(p.channel, data)
}

// errForged ends an interpreter whose messages break the rules. Code of a cell has written them.
var errForged = fault.New(fault.Invalid, "context_messages_invalid",
	"the cell has written to the channel of its interpreter; the process of the context was ended, and the next cell begins a new one")

// read reads messages, which may be hostile.
func (f *following) read(data []byte) error {
	f.frames = append(f.frames, data...)
	for len(f.frames) >= 4 {
		size := int(binary.BigEndian.Uint32(f.frames))
		if size > maxMessage {
			return errForged
		}
		if len(f.frames) < 4+size {
			return nil
		}
		var m message
		if json.Unmarshal(f.frames[4:4+size], &m) != nil {
			return errForged
		}
		f.frames = f.frames[4+size:]
		switch {
		case f.end != nil, m.Kind == "shown" && f.values >= maxValues:
			return errForged
		case m.Kind == "shown":
			f.values++
			f.show(m)
		case m.Kind == "stale":
			f.end, f.unread[0].over, f.unread[1].over = &m, true, true
		case m.Kind == "end" && m.Code >= 0 && m.Code <= 255:
			f.end = &m
		default:
			return errForged
		}
	}
	return nil
}

// show adds the forms of a value that are well-formed and have room.
func (f *following) show(m message) {
	all := space.Display{Value: f.values, Result: m.Result, Type: strings.ToValidUTF8(m.Type[:min(len(m.Type), space.MaxDisplayType)], "")}
	for _, media := range space.DisplayMedia() {
		text, ok := m.Forms[media]
		if !ok {
			continue
		}
		d := all
		d.Media, d.Data = media, []byte(strings.ToValidUTF8(text, "\uFFFD"))
		switch media {
		case space.DisplayHTML:
			d.Rows, d.Columns = max(m.Rows, 0), max(m.Columns, 0)
		case space.DisplayPNG, space.DisplayJPEG:
			data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(text), ""))
			if err != nil {
				continue
			}
			size, kind, err := image.DecodeConfig(bytes.NewReader(data))
			if err != nil || "image/"+kind != media {
				continue // what says that it is a picture and is none has no such form
			}
			d.Data, d.Width, d.Height = data, size.Width, size.Height
		case space.DisplayJSON, space.DisplayChart:
			if !json.Valid(d.Data) {
				continue
			}
		}
		if d.Fits(f.shown) {
			f.shown = append(f.shown, d)
		}
	}
}

// told says on stderr whether the context lives on, if the cell did not end by itself.
func (f *following) told(exit *space.Exit, out space.Output) error {
	text := ""
	switch {
	case f.lost:
		text = "the process of the context has ended, and its variables with it; the next cell begins a new one"
	case f.asked:
		text = "the cell was interrupted; the context keeps its variables"
	default:
		return nil
	}
	return out("stderr", []byte(engineCells+text+"\n"))
}
