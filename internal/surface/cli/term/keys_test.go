package term

import (
	"context"
	"errors"
	"io"
	"testing"
)

// TestTheInterruptingKeyIsSeenEverywhere types while a line is edited and while a command runs.
func TestTheInterruptingKeyIsSeenEverywhere(t *testing.T) {
	in, keyboard := io.Pipe()
	keys := &Typed{Pieces: make(chan []byte)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keys.Pump(ctx, in)
	}()
	press := func(text string) {
		if _, err := keyboard.Write([]byte(text)); err != nil {
			t.Error(err)
		}
	}
	read := func() string {
		buffer := make([]byte, 64)
		n, err := keys.Read(buffer)
		if err != nil {
			t.Fatal(err)
		}
		return string(buffer[:n])
	}
	press("one\rtwo\x03three")
	for _, want := range []string{"one\r", "two", "\x05\x15\r", "three"} {
		if got := read(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	over := make(chan struct{})
	close(over)
	keys.Over = over
	if got := read(); got != "\x05\x15\r" || !keys.Ended || keys.Over != nil {
		t.Errorf("a line that nobody wants: got %q, %+v", got, keys)
	}
	if !keys.Broken {
		t.Error("the line is not known as interrupted")
	}
	interrupted := make(chan struct{})
	unwatch := keys.Watch(func() { close(interrupted) }, nil)
	press("not wanted\r")
	press("nor this\x03next\r")
	<-interrupted
	unwatch()
	if got := read(); got != "next\r" {
		t.Errorf("got %q, want what was typed after the interruption", got)
	}
	typed := make(chan struct{}, 1)
	unwatch = keys.Watch(func() {}, func() {
		select {
		case typed <- struct{}{}:
		default:
		}
	})
	press("\r\n") // an empty line is no line
	press("first")
	<-typed
	unwatch()
	keys.Unread([]byte("before "))
	if got := string(keys.Take()); got != "before first" {
		t.Errorf("took %q, want %q", got, "before first")
	}
	keys.Unread([]byte("again\r"))
	if got := read(); got != "again\r" {
		t.Errorf("got %q, want what was put back", got)
	}
	stop()
	if err := errors.Join(keyboard.Close(), in.Close()); err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := keys.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v, want the end", err)
	}
}
