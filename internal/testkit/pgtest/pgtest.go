// Package pgtest runs servers of PostgreSQL for tests: real ones, of the programs that Debian's package installs, each in a folder of its
// own.
package pgtest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	accounts "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"agentbox/internal/testkit/wall"
)

// User is who owns the databases of a server.
const User = "agentbox"

// Server is a server that only a socket in its folder and a port of the loopback interface lead to. It keeps what is committed on the
// disk, as PostgreSQL does where nobody told it otherwise.
type Server struct {
	t        testing.TB
	programs string
	dir      string // with the data in it, and the socket
	port     int
	owner    *syscall.SysProcAttr
	settings []string
	alive    *os.File // the server ends when this is closed, and so when this process does; nil where none runs
	ended    chan error
	made     atomic.Int64 // databases
}

// Start starts a server with further settings, each as "name=value", and stops it when the test ends. Where PostgreSQL is not installed
// the test is left out, and fails where CI is set.
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	return start(t, false, settings)
}

// StartOnDisk is Start of a server whose folder is among other temporary files and never in memory, for those who measure.
func StartOnDisk(t testing.TB, settings ...string) *Server {
	t.Helper()
	return start(t, true, settings)
}

func start(t testing.TB, disk bool, settings []string) *Server {
	t.Helper()
	s := &Server{t: t, programs: Programs(), settings: settings}
	if s.programs == "" {
		leaveOut(t, "PostgreSQL is missing: install the package postgresql")
	}
	dir, err := place(disk)
	s.must(err)
	s.dir = dir
	t.Cleanup(func() {
		s.Kill()
		s.must(os.RemoveAll(dir))
	})
	s.must(s.unprivileged())
	free, err := net.Listen("tcp", "127.0.0.1:0")
	s.must(err)
	s.port = free.Addr().(*net.TCPAddr).Port
	s.must(free.Close())
	s.must(s.fill())
	s.Restart()
	return s
}

func leaveOut(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// Programs is the folder of the newest server of PostgreSQL, "" where there is none: where Debian puts them, off the PATH, where
// pg_config says, or on the PATH.
func Programs() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) > 0 {
		version := func(path string) int {
			n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for what is not a number
			return n
		}
		return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
	}
	if dir, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		if dir := strings.TrimSpace(string(dir)); isFile(filepath.Join(dir, "initdb")) {
			return dir
		}
	}
	if program, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(program)
	}
	return ""
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// unprivileged makes the server run as nobody where the test runs as root, as whom PostgreSQL refuses to run.
func (s *Server) unprivileged() error {
	s.owner = &syscall.SysProcAttr{}
	if os.Geteuid() != 0 {
		return nil
	}
	nobody, err := accounts.Lookup("nobody")
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(nobody.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(nobody.Gid)
	if err != nil {
		return err
	}
	s.owner.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return os.Chown(s.dir, uid, gid)
}

func (s *Server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) data() string { return filepath.Join(s.dir, "db") }

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.programs, program), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.owner
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + s.dir}
	return cmd
}

func (s *Server) run(program string, args ...string) error {
	out, err := s.command(program, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", program, err, out)
	}
	return err
}

// Restart starts the server, which it ends before without warning if it runs. It returns when the server takes connections.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	args := []string{"-D", s.data(), "-c", "listen_addresses=127.0.0.1", "-p", strconv.Itoa(s.port), "-c", "unix_socket_directories=" + s.dir,
		"-c", "max_connections=200"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	said := &tail{}
	ends, alive, err := os.Pipe()
	s.must(err)
	server := s.command("postgres", args...)
	server.Args = append([]string{"sh", "-c", watched, server.Path}, server.Args...)
	if server.Path, err = exec.LookPath("sh"); err != nil {
		s.t.Fatal(err)
	}
	server.Stdout, server.Stderr, server.ExtraFiles = said, said, []*os.File{ends}
	s.must(errors.Join(server.Start(), ends.Close()))
	ended := make(chan error, 1)
	s.alive, s.ended = alive, ended
	go func() { ended <- server.Wait() }()
	for deadline := time.Now().Add(wall.Patience); ; {
		if s.run("pg_isready", "-h", s.dir, "-p", strconv.Itoa(s.port), "-t", "1") == nil {
			return
		}
		select {
		case err := <-ended:
			s.alive = nil
			s.t.Fatalf("PostgreSQL ended when it was started: %v\n%s", err, said)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("PostgreSQL takes no connections after %s\n%s", wall.Patience, said)
		}
	}
}

// Kill ends the server at once, as a crash would; its durable data are there after a restart.
func (s *Server) Kill() {
	s.t.Helper()
	if s.alive == nil {
		return
	}
	s.must(s.alive.Close())
	<-s.ended // with the exit code of a crash
	s.alive = nil
}

// watched runs a server until a descriptor is closed. A signal at the death of its parent would come at that of a thread.
const watched = `"$@" & server=$!; (read _; kill -QUIT $server) <&3 & exec 3<&-; wait $server`

// Database makes an empty database and returns its address, by way of the socket.
func (s *Server) Database() string {
	s.t.Helper()
	name := fmt.Sprintf("log%d", s.made.Add(1))
	s.must(s.run("createdb", "-h", s.dir, "-p", strconv.Itoa(s.port), "-U", User, name))
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=%d", User, name, s.dir, s.port)
}

// Dump returns everything that pg_dump tells of a database.
func (s *Server) Dump(address string) []byte {
	s.t.Helper()
	cmd := s.command("pg_dump", address)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("pg_dump: %v\n%s", err, said.Bytes())
	}
	return out.Bytes()
}

// Load runs what Dump returned in another database.
func (s *Server) Load(address string, dump []byte) {
	s.t.Helper()
	cmd := s.command("psql", "--quiet", "--set", "ON_ERROR_STOP=1", "--dbname", address)
	cmd.Stdin = bytes.NewReader(dump)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("psql: %v\n%s", err, out)
	}
}

// Files returns the folder of the server's data, as it lies on the disk.
func (s *Server) Files() string { return s.data() }

// tail keeps the end of what a program says.
type tail struct{ said []byte }

var _ io.Writer = (*tail)(nil)

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.said = append(t.said, p...)
	if over := len(t.said) - 16<<10; over > 0 {
		t.said = t.said[over:]
	}
	return len(p), nil
}

// String returns the written text.
func (t *tail) String() string { return string(t.said) }
