package vfs_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"agentbox/internal/userland/bound"
	"agentbox/internal/userland/fiber"
	"agentbox/internal/userland/vfs"
)

// within runs main as the first fiber over an empty file system.
func within(l bound.Limits, main func(f *vfs.FS, g *fiber.Group)) *bound.Account {
	account := bound.New(l, [32]byte{}, began)
	fiber.Run(func(g *fiber.Group) { main(vfs.New(account, g), g) })
	return account
}

func TestAPipeCarriesEverythingInOrder(t *testing.T) {
	text := strings.Repeat("0123456789abcdef", 20_000)
	run := func() (string, int64) {
		var got strings.Builder
		account := within(limits, func(f *vfs.FS, g *fiber.Group) {
			r, w, err := f.Pipe()
			want(t, err, nil)
			g.Go(func() {
				for rest := text; rest != ""; {
					n, err := w.Write([]byte(rest[:min(len(rest), 7777)]))
					want(t, err, nil)
					rest = rest[n:]
				}
				want(t, w.Close(), nil)
			})
			g.Go(func() {
				n, err := io.CopyBuffer(&got, struct{ io.Reader }{r}, make([]byte, 5000))
				if int(n) != len(text) || err != nil {
					t.Errorf("got %d bytes, %v", n, err)
				}
				want(t, r.Close(), nil)
			})
		})
		return got.String(), account.Used()
	}
	out, gas := run()
	if out != text {
		t.Fatalf("got %d bytes, want %d", len(out), len(text))
	}
	if again, same := run(); again != out || same != gas {
		t.Fatalf("gas %d, then %d", gas, same)
	}
}

func TestAPipeWithoutReaderIsBroken(t *testing.T) {
	within(limits, func(f *vfs.FS, g *fiber.Group) {
		r, w, err := f.Pipe()
		want(t, err, nil)
		g.Go(func() { // it waits for room, until nobody will make any
			n, err := w.Write(make([]byte, 100_000))
			if n != 64<<10 || !errors.Is(err, vfs.EPIPE) {
				t.Errorf("got %d, %v", n, err)
			}
			_, err = w.Write([]byte("x"))
			want(t, err, vfs.EPIPE)
			if !w.Ended() {
				t.Error("it has not ended")
			}
			want(t, w.Close(), nil)
		})
		g.Yield()
		want(t, r.Close(), nil)
	})
}

func TestAPipeWithoutWriterIsAtItsEnd(t *testing.T) {
	within(limits, func(f *vfs.FS, g *fiber.Group) {
		r, w, err := f.Pipe()
		want(t, err, nil)
		twin := w.Dup()
		g.Go(func() {
			p := make([]byte, 10)
			n, err := r.Read(p)
			if string(p[:n]) != "last" || err != nil {
				t.Errorf("got %q, %v", p[:n], err)
			}
			_, err = r.Read(p)
			want(t, err, io.EOF)
		})
		_, err = w.Write([]byte("last"))
		want(t, err, nil)
		want(t, w.Close(), nil)
		g.Yield()
		want(t, twin.Close(), nil)
	})
}

func TestAPipeThatDoesNotWait(t *testing.T) {
	within(limits, func(f *vfs.FS, _ *fiber.Group) {
		r, w, err := f.Pipe()
		want(t, err, nil)
		r.SetFlags(vfs.NonBlock)
		w.SetFlags(vfs.NonBlock)
		_, err = r.Read(make([]byte, 1))
		want(t, err, vfs.EAGAIN)
		n, err := w.Write(make([]byte, 100_000))
		if n != 64<<10 || err != nil {
			t.Fatalf("got %d, %v", n, err)
		}
		_, err = w.Write([]byte("x"))
		want(t, err, vfs.EAGAIN)
		if bytes, read, write := r.Ready(); bytes != 64<<10 || !read || write {
			t.Fatalf("%d bytes, read %v, write %v", bytes, read, write)
		}
		_, err = r.Seek(0, io.SeekStart)
		want(t, err, vfs.ESPIPE)
		_, err = w.WriteAt([]byte("x"), 0)
		want(t, err, vfs.ESPIPE)
		_, err = r.Write([]byte("x"))
		want(t, err, vfs.EBADF)
		_, err = w.Read(make([]byte, 1))
		want(t, err, vfs.EBADF)
	})
}

func TestWhoWaitsForNobodyIsTimedOut(t *testing.T) {
	account := within(limits, func(f *vfs.FS, _ *fiber.Group) {
		r, _, err := f.Pipe()
		want(t, err, nil)
		_, err = r.Read(make([]byte, 1))
		if stopped, ok := errors.AsType[*bound.Stopped](err); !ok || !stopped.TimedOut {
			t.Fatalf("got %v", err)
		}
	})
	if account.Check() == nil {
		t.Fatal("the execution goes on")
	}
}

// TestSleepersShareTheTime runs two stages that sleep: together they take as long as the longer one.
func TestSleepersShareTheTime(t *testing.T) {
	var said []string
	account := within(limits, func(f *vfs.FS, g *fiber.Group) {
		for name, d := range map[string]time.Duration{"b": 3 * time.Second, "a": time.Second, "c": 5 * time.Second} {
			g.Go(func() {
				want(t, f.Sleep(d), nil)
				said = append(said, name)
			})
		}
	})
	if got := strings.Join(said, ""); got != "abc" {
		t.Fatalf("they woke as %s", got)
	}
	if account.Slept() < 5*time.Second || account.Slept() > 5*time.Second+time.Millisecond {
		t.Fatalf("slept %s", account.Slept())
	}
	account = within(limits, func(f *vfs.FS, _ *fiber.Group) {
		err := f.Sleep(2 * limits.Time)
		if stopped, ok := errors.AsType[*bound.Stopped](err); !ok || !stopped.TimedOut {
			t.Fatalf("got %v", err)
		}
	})
	if account.Slept() != limits.Time {
		t.Fatalf("slept %s", account.Slept())
	}
}

func TestPollWaitsForTheFirst(t *testing.T) {
	account := within(limits, func(f *vfs.FS, g *fiber.Group) {
		r, w, err := f.Pipe()
		want(t, err, nil)
		g.Go(func() {
			want(t, f.Sleep(time.Second), nil)
			_, err := w.Write([]byte("x"))
			want(t, err, nil)
		})
		ready := func() bool { _, read, _ := r.Ready(); return read }
		want(t, f.Poll([]vfs.Wait{{Handle: r}}, f.Now().Add(500*time.Millisecond)), nil)
		if ready() {
			t.Error("it is ready before its time")
		}
		want(t, f.Poll([]vfs.Wait{{Handle: r}}, f.Now().Add(time.Minute)), nil)
		if !ready() {
			t.Error("it is not ready")
		}
		want(t, f.Poll([]vfs.Wait{{Handle: w, Write: true}}, time.Time{}), nil)
	})
	if account.Slept() > 1100*time.Millisecond {
		t.Fatalf("slept %s", account.Slept())
	}
	// Without fibers, time passes where somebody waits.
	f := vfs.New(bound.New(limits, [32]byte{}, began), nil)
	want(t, f.Sleep(time.Second), nil)
	if slept := f.Account().Slept(); slept < time.Second-time.Millisecond || slept > time.Second {
		t.Fatalf("slept %s", slept)
	}
}

// TestAStopEndsEveryStage stops an execution whose stages wait for each other.
func TestAStopEndsEveryStage(t *testing.T) {
	ended := 0
	within(limits, func(f *vfs.FS, g *fiber.Group) {
		r, w, err := f.Pipe()
		want(t, err, nil)
		g.Go(func() {
			for err == nil {
				_, err = w.Write(make([]byte, 1000))
			}
			ended++
		})
		g.Go(func() {
			var err error
			for err == nil {
				_, err = r.Read(make([]byte, 1000))
			}
			ended++
		})
		for range 5 {
			g.Yield()
		}
		f.Account().Stop(&bound.Stopped{Canceled: true})
	})
	if ended != 2 {
		t.Fatalf("%d stages ended, want 2", ended)
	}
}
