package spaceinit

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	for i, body := range []string{"", "x", strings.Repeat("y", MaxReply)} {
		if err := w.Write(KindData, uint32(i), []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	r := NewReader(&b, MaxReply)
	for i, want := range []string{"", "x", strings.Repeat("y", MaxReply)} {
		f, err := r.Next()
		if err != nil || f.Kind != KindData || f.ID != uint32(i) || string(f.Body) != want {
			t.Errorf("frame %d: got kind %d, id %d, %d bytes, %v", i, f.Kind, f.ID, len(f.Body), err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: got %v, want EOF", err)
	}
}

func TestFrameTooLarge(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.Write(KindData, 1, make([]byte, MaxReply+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := NewReader(&b, MaxReply).Next(); !errors.Is(err, ErrProtocol) {
		t.Errorf("read: got %v, want a breach of the protocol", err)
	}
	if err := w.Write(KindExec, 1, make([]byte, MaxRequest+1)); err == nil {
		t.Error("a frame larger than every bound was written")
	}
	if _, err := NewReader(strings.NewReader("\x04\x00\x00\x00\x10\x01\x00\x00\x00xy"), MaxReply).Next(); !errors.Is(err,
		io.ErrUnexpectedEOF) {
		t.Errorf("a frame that breaks off: got %v, want an unexpected end", err)
	}
}

func TestMessages(t *testing.T) {
	x := Exec{Argv: []string{"a", "", "b\x00"}, Env: []string{"A=1"}, Cwd: "/workspace", Stdin: true}
	if got, err := DecodeExec(x.Encode()); err != nil || cmp.Diff(got, x) != "" {
		t.Errorf("command: got %+v, %v, want %+v", got, err, x)
	}
	x.Frames = true
	if got, err := DecodeExec(x.Encode()); err != nil || !got.Frames {
		t.Errorf("a command with messages: got %+v, %v", got, err)
	}
	x.Stdin = false
	if _, err := DecodeExec(x.Encode()); err == nil {
		t.Error("messages without an input are taken")
	}
	x.Stdin, x.Frames = true, false
	if _, err := DecodeExec(Exec{Cwd: "/"}.Encode()); err == nil {
		t.Error("a command without a program was read")
	}
	x.Terminal = &Size{Cols: 80, Rows: 65535}
	if got, err := DecodeExec(x.Encode()); err != nil || cmp.Diff(got, x) != "" {
		t.Errorf("command in a terminal: got %+v, %v, want %+v", got, err, x)
	}
	for _, size := range []Size{{}, {Cols: 1}, {Rows: 1}} {
		if _, err := DecodeResize(EncodeResize(size)); !errors.Is(err, ErrProtocol) {
			t.Errorf("size %+v: got %v, want a breach", size, err)
		}
	}
	if s, err := DecodeResize(EncodeResize(Size{132, 43})); err != nil || s != (Size{132, 43}) {
		t.Errorf("size: got %+v, %v", s, err)
	}
	for number, want := range map[uint8]bool{0: false, 1: true, LastSignal: true, LastSignal + 1: false} {
		if got, err := DecodeSignal(EncodeSignal(number)); (err == nil) != want || err == nil && got != number {
			t.Errorf("signal %d: got %d, %v", number, got, err)
		}
	}
	r := Ready{Version: 7, Landlock: 4, Missing: []string{"x"}}
	if got, err := DecodeReady(r.Encode()); err != nil || cmp.Diff(got, r) != "" {
		t.Errorf("greeting: got %+v, %v, want %+v", got, err, r)
	}
	e := Exit{Code: 137, Signal: 9, Killed: true}
	if got, err := DecodeExit(e.Encode()); err != nil || got != e {
		t.Errorf("exit: got %+v, %v, want %+v", got, err, e)
	}
	s := &Setup{
		Hostname: "h", Scratch: "/tmp", Dirs: []string{"a"}, Files: []File{{"f", "c"}}, Links: []Link{{"l", "t"}},
		Mounts:  []Mount{{Source: "/usr", FD: -1, Target: "usr", Attr: 3, Option: "o"}, {FD: 4, Type: "proc", Target: "proc", File: true}},
		Folders: []string{"tmp/home"}, Masks: []string{"proc/x"}, Rlimits: []Rlimit{{7, 1 << 40}}, Writable: []string{"/w"},
		Landlock: true, Namespace: true, Filter: []byte{1, 2},
	}
	if got, err := DecodeSetup(s.Encode()); err != nil || cmp.Diff(got, s) != "" {
		t.Errorf("setup: got %+v, %v, want %+v", got, err, s)
	}
	if d, err := DecodeKill(EncodeKill(Grace)); err != nil || d != 2*time.Second {
		t.Errorf("kill: got %v, %v", d, err)
	}
	for _, n := range []int{0, Window} {
		if c, got, err := DecodeCredit(EncodeCredit(Stderr, n)); err != nil || c != Stderr || got != n {
			t.Errorf("credit of %d: got %d, %d, %v", n, c, got, err)
		}
	}
	if _, _, err := DecodeCredit(EncodeCredit(Stdout, Window+1)); !errors.Is(err, ErrProtocol) {
		t.Errorf("credit for more than a window: got %v", err)
	}
	if _, _, err := DecodeData(append([]byte{1}, make([]byte, MaxData+1)...)); !errors.Is(err, ErrProtocol) {
		t.Errorf("more data than a frame holds: got %v", err)
	}
}

// FuzzDecode reads hostile bodies: none panics, none that is read differs from what it is written as again.
func FuzzDecode(f *testing.F) {
	for _, seed := range [][]byte{
		Exec{Argv: []string{"sh"}, Env: []string{"A=b"}, Cwd: "/"}.Encode(), Ready{Version: 1}.Encode(), Exit{Code: 1}.Encode(),
		(&Setup{Mounts: []Mount{{Target: "x"}}}).Encode(), EncodeCredit(Stdout, 5), EncodeKill(0), {}, {0xff, 0xff, 0xff, 0xff},
		{1, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f}, EncodeSignal(9), EncodeResize(Size{80, 24}),
		Exec{Argv: []string{"sh"}, Cwd: "/", Terminal: &Size{80, 24}}.Encode(),
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if x, err := DecodeExec(body); err == nil && !bytes.Equal(x.Encode(), body) {
			t.Errorf("command: %q is read as %+v", body, x)
		}
		if r, err := DecodeReady(body); err == nil && !bytes.Equal(r.Encode(), body) {
			t.Errorf("greeting: %q is read as %+v", body, r)
		}
		if e, err := DecodeExit(body); err == nil && !bytes.Equal(e.Encode(), body) {
			t.Errorf("exit: %q is read as %+v", body, e)
		}
		if s, err := DecodeSetup(body); err == nil && !bytes.Equal(s.Encode(), body) {
			t.Errorf("setup: %q is read as %+v", body, s)
		}
		if c, n, err := DecodeCredit(body); err == nil && !bytes.Equal(EncodeCredit(c, n), body) {
			t.Errorf("credit: %q is read as %d, %d", body, c, n)
		}
		if n, err := DecodeSignal(body); err == nil && !bytes.Equal(EncodeSignal(n), body) {
			t.Errorf("signal: %q is read as %d", body, n)
		}
		if s, err := DecodeResize(body); err == nil && !bytes.Equal(EncodeResize(s), body) {
			t.Errorf("size: %q is read as %+v", body, s)
		}
		if c, data, err := DecodeData(body); err == nil && (c > Stderr || len(data) != len(body)-1) {
			t.Errorf("data: %q is read as %d, %q", body, c, data)
		}
	})
}
