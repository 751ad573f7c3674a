//go:build linux

// Command hostile is an init that does not keep to its protocol. Behind its own bytes it carries those of the real init, whose part it plays
// as the launcher, and in every space that has no file called hostile. In one that has, the file's words say what it does to the daemon:
// one of starts as soon as it begins, or one of commands when it is asked to run one. Asked for `echo fine` it behaves.
package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentbox/internal/spaceinit"
)

const (
	connection = 3
	image      = 4
	patience   = 1 << 20 // frames of a flood, far more than any daemon takes
)

func main() {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil { // an init of a space whose /proc is not there yet
		program, err = io.ReadAll(io.NewSectionReader(os.NewFile(image, "image"), 0, 1<<30))
	}
	if err != nil || os.Args[0] == spaceinit.LauncherName {
		become(program)
	}
	setup := peek()
	word := hostility(setup)
	if word == "" {
		become(program)
	}
	conn := os.NewFile(connection, "connection")
	if start := starts[word]; start != nil {
		start(conn)
		wait()
	}
	i := &liar{conn: conn, r: spaceinit.NewReader(conn, spaceinit.MaxRequest), w: spaceinit.NewWriter(conn)}
	i.serve(commands[word])
}

// wait never returns.
func wait() {
	for {
		_ = unix.Pause()
	}
}

// become replaces this process by the real init, under the same name.
func become(program []byte) {
	size := binary.LittleEndian.Uint64(program[len(program)-8:])
	fd, err := unix.MemfdCreate("init", 0)
	if err != nil {
		os.Exit(3)
	}
	if _, err := unix.Write(fd, program[uint64(len(program))-8-size:len(program)-8]); err != nil {
		os.Exit(3)
	}
	argv, _ := syscall.SlicePtrFromStrings(os.Args)
	env, _ := syscall.SlicePtrFromStrings(os.Environ())
	none := new(byte)
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
		os.Exit(3)
	}
	_, _, e := unix.Syscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(none)), uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&env[0])), unix.AT_EMPTY_PATH, 0)
	os.Exit(int(e))
}

// peek reads the setup and leaves it in the connection, for the real init.
func peek() *spaceinit.Setup {
	buffer := make([]byte, 256<<10)
	n, _, err := unix.Recvfrom(connection, buffer, unix.MSG_PEEK)
	if err != nil {
		os.Exit(4)
	}
	f, err := spaceinit.NewReader(bytes.NewReader(buffer[:n]), spaceinit.MaxRequest).Next()
	if err != nil {
		os.Exit(4)
	}
	setup, err := spaceinit.DecodeSetup(f.Body)
	if err != nil {
		os.Exit(4)
	}
	return setup
}

// hostility reads the file hostile of the space.
func hostility(setup *spaceinit.Setup) string {
	for _, m := range setup.Mounts {
		if m.Target != "workspace" {
			continue
		}
		at := int(m.FD)
		name := "hostile"
		if at < 0 {
			at, name = unix.AT_FDCWD, m.Source+"/hostile"
		}
		fd, err := unix.Openat(at, name, unix.O_RDONLY, 0)
		if err != nil {
			return ""
		}
		word, err := io.ReadAll(os.NewFile(uintptr(fd), name))
		if err != nil {
			os.Exit(5)
		}
		return strings.TrimSpace(string(word))
	}
	return ""
}

// starts are what is done instead of setting the space up.
var starts = map[string]func(conn *os.File){
	"says nothing":      func(*os.File) {},
	"dies at once":      func(*os.File) { os.Exit(0) },
	"greets in garbage": func(c *os.File) { _, _ = c.Write(bytes.Repeat([]byte{0xa5}, 1<<16)) },
	"greets with a flood": func(c *os.File) {
		for range patience {
			if _, err := c.Write(bytes.Repeat([]byte{0xff}, 1<<16)); err != nil {
				return
			}
		}
	},
	"greets as another version": func(c *os.File) {
		_ = spaceinit.NewWriter(c).Write(spaceinit.KindReady, 0, spaceinit.Ready{Version: 99}.Encode())
	},
	"hangs up at once": func(c *os.File) { _ = c.Close() },
}

// liar talks to the daemon.
type liar struct {
	conn *os.File
	r    *spaceinit.Reader
	w    *spaceinit.Writer
}

func (l *liar) serve(misbehave func(l *liar, command uint32)) {
	if _, err := l.r.Next(); err != nil { // the setup, of which nothing is done
		os.Exit(0)
	}
	l.say(spaceinit.KindReady, 0, spaceinit.Ready{Version: spaceinit.Version, Landlock: 1}.Encode())
	for {
		f, err := l.r.Next()
		if err != nil {
			os.Exit(0)
		}
		if f.Kind != spaceinit.KindExec {
			continue
		}
		x, err := spaceinit.DecodeExec(f.Body)
		if err != nil {
			os.Exit(6)
		}
		if strings.Contains(strings.Join(x.Argv, " "), "echo fine") {
			l.say(spaceinit.KindStarted, f.ID, nil)
			l.data(f.ID, spaceinit.Stdout, []byte("fine\n"))
			l.exit(f.ID, spaceinit.Exit{})
			continue
		}
		misbehave(l, f.ID)
	}
}

func (l *liar) say(k spaceinit.Kind, id uint32, body []byte) {
	if l.w.Write(k, id, body) != nil {
		os.Exit(0)
	}
}

func (l *liar) data(id uint32, c spaceinit.Channel, b []byte) {
	l.say(spaceinit.KindData, id, append([]byte{byte(c)}, b...))
}

func (l *liar) exit(id uint32, x spaceinit.Exit) { l.say(spaceinit.KindExit, id, x.Encode()) }

// credit reads frames until the daemon has taken some output, and says how much; what else it asks for is not heard.
func (l *liar) credit() int {
	for {
		f, err := l.r.Next()
		if err != nil {
			os.Exit(0)
		}
		if f.Kind == spaceinit.KindCredit {
			_, n, _ := spaceinit.DecodeCredit(f.Body)
			return n
		}
	}
}

// killed waits until the daemon asks for the end of a command.
func (l *liar) killed() {
	for {
		f, err := l.r.Next()
		if err != nil {
			os.Exit(0)
		}
		if f.Kind == spaceinit.KindKill {
			return
		}
	}
}

var noise = bytes.Repeat([]byte("x"), spaceinit.MaxData)

// commands are what is done when a command is asked for.
var commands = map[string]func(l *liar, id uint32){
	"names another command": func(l *liar, id uint32) { l.exit(id+7, spaceinit.Exit{}) },
	"ends it twice": func(l *liar, id uint32) {
		l.exit(id, spaceinit.Exit{Code: 3})
		l.exit(id, spaceinit.Exit{Code: 0})
	},
	"sends a frame too large": func(l *liar, id uint32) { l.data(id, spaceinit.Stdout, make([]byte, spaceinit.MaxReply)) },
	"claims a frame of 4 GiB": func(l *liar, id uint32) { _, _ = l.conn.Write([]byte{0xff, 0xff, 0xff, 0xff, 16, 1, 0, 0, 0}) },
	"sends half a frame and dies": func(l *liar, id uint32) {
		_, _ = l.conn.Write([]byte{100, 0, 0, 0, byte(spaceinit.KindData), byte(id)})
		os.Exit(0)
	},
	"sends garbage": func(l *liar, id uint32) { _, _ = l.conn.Write(bytes.Repeat([]byte{0x5a, 0xc3, 0x01}, 1<<14)) },
	"floods": func(l *liar, id uint32) {
		for range patience {
			l.data(id, spaceinit.Stdout, noise)
		}
	},
	"floods after the end": func(l *liar, id uint32) {
		l.exit(id, spaceinit.Exit{Code: 3})
		for range patience {
			l.data(id, spaceinit.Stdout, noise)
		}
	},
	"floods with empty credit": func(l *liar, id uint32) {
		for range patience {
			l.say(spaceinit.KindCredit, id, spaceinit.EncodeCredit(spaceinit.Stdin, 0))
		}
	},
	"floods with single bytes": func(l *liar, id uint32) {
		for n := range 1 << 16 {
			l.data(id, spaceinit.Stdout+spaceinit.Channel(n%2), []byte("x"))
		}
		l.exit(id, spaceinit.Exit{Code: 3})
	},
	"never stops printing": func(l *liar, id uint32) {
		room := spaceinit.Window
		for {
			for room >= len(noise) {
				l.data(id, spaceinit.Stdout, noise)
				room -= len(noise)
			}
			room += l.credit()
		}
	},
	"says nothing of it":   func(*liar, uint32) {},
	"does not even listen": func(*liar, uint32) { wait() },
	"prints and dies":      func(l *liar, id uint32) { l.data(id, spaceinit.Stdout, []byte("begun\n")); os.Exit(0) },
	"prints and hangs up": func(l *liar, id uint32) {
		l.data(id, spaceinit.Stdout, []byte("begun\n"))
		_ = unix.Shutdown(connection, unix.SHUT_RDWR)
		wait()
	},
	"starts it twice":             func(l *liar, id uint32) { l.say(spaceinit.KindStarted, id, nil); l.say(spaceinit.KindStarted, id, nil) },
	"answers what nobody asked":   func(l *liar, id uint32) { l.say(spaceinit.KindPong, 0, nil) },
	"claims to be its input":      func(l *liar, id uint32) { l.data(id, spaceinit.Stdin, []byte("x")) },
	"ends it by an unknown death": func(l *liar, id uint32) { l.exit(id, spaceinit.Exit{Signal: 65}) },
	"starts what it has refused": func(l *liar, id uint32) {
		l.say(spaceinit.KindRefused, id, []byte("\x1b[31mno\x00"))
		l.say(spaceinit.KindStarted, id, nil)
	},
	"answers after it was killed": func(l *liar, id uint32) {
		l.data(id, spaceinit.Stdout, []byte("begun\n"))
		l.killed()
		l.data(id, spaceinit.Stdout, []byte("late\n"))
		l.exit(id, spaceinit.Exit{Code: 137, Signal: 9, Killed: true})
	},
	"prints and is not to be killed": func(l *liar, id uint32) {
		l.data(id, spaceinit.Stdout, []byte("begun\n"))
		for {
			l.killed()
		}
	},
	"hands descriptors over": func(l *liar, id uint32) {
		var pipe [2]int
		if unix.Pipe(pipe[:]) != nil {
			os.Exit(7)
		}
		var frame bytes.Buffer
		_ = spaceinit.NewWriter(&frame).Write(spaceinit.KindExit, id, spaceinit.Exit{Code: 3}.Encode())
		for i := range frame.Bytes() { // with each byte
			if unix.Sendmsg(connection, frame.Bytes()[i:i+1], unix.UnixRights(pipe[0], pipe[1], pipe[0], pipe[1]), nil, 0) != nil {
				os.Exit(0)
			}
		}
	},
}
