package yardstick

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	accounts "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNoPostgres says that the programs of PostgreSQL are not on this machine.
var ErrNoPostgres = errors.New("PostgreSQL is missing: install postgresql")

// Table is the table of events that a bare server of PostgreSQL takes: as those of SQLite are.
const Table = `CREATE TABLE events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream bigint NOT NULL, version bigint NOT NULL,
	type text NOT NULL, at bigint NOT NULL, prev bytea NOT NULL, hash bytea NOT NULL, body bytea NOT NULL, UNIQUE (stream, version))`

// Postgres is a server of PostgreSQL in a folder of its own, which only a socket in that folder leads to, with the settings that it comes
// with; it commits synchronously. It ends with the process that started it, however that ends.
type Postgres struct {
	Dir string // where its socket lies, and everything else of it

	programs string
	owner    *syscall.SysProcAttr
	server   *exec.Cmd
}

// StartPostgres makes and starts a server that takes so many connections, or returns ErrNoPostgres.
func StartPostgres(ctx context.Context, connections int) (*Postgres, error) {
	programs := postgresPrograms()
	if programs == "" {
		return nil, ErrNoPostgres
	}
	dir, err := os.MkdirTemp("", "agentbox-bench-postgres-") // the path of a socket may have a hundred bytes
	if err != nil {
		return nil, err
	}
	p := &Postgres{Dir: dir, programs: programs, owner: &syscall.SysProcAttr{}}
	if err := p.start(ctx, connections); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, connections int) error {
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		nobody, err := accounts.Lookup("nobody")
		if err != nil {
			return err
		}
		uid, errUID := strconv.Atoi(nobody.Uid)
		gid, errGID := strconv.Atoi(nobody.Gid)
		if err := errors.Join(errUID, errGID, os.Chown(p.Dir, uid, gid)); err != nil {
			return err
		}
		p.owner.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	files := filepath.Join(p.Dir, "db")
	if out, err := p.Command(ctx, "initdb", "--pgdata", files, "--auth", "trust", "--username", "bench", "--encoding", "UTF8",
		"--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	log, err := os.Create(filepath.Join(p.Dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p.server = p.Command(context.WithoutCancel(ctx), "postgres", "-D", files, "-c", "listen_addresses=", "-c", "unix_socket_directories="+
		p.Dir,
		"-c", "max_connections="+strconv.Itoa(connections+16), "-c", "synchronous_commit=on", "-c", "fsync=on")
	p.server.Stdout, p.server.Stderr = log, log
	// which it takes for a fast end
	p.server.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner.Credential, Setpgid: true, Pdeathsig: syscall.SIGINT}
	if err := p.server.Start(); err != nil {
		return err
	}
	turn := time.NewTicker(20 * time.Millisecond)
	defer turn.Stop()
	for start := time.Now(); ; {
		conn, err := pgx.Connect(ctx, p.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		if time.Since(start) > time.Minute || ctx.Err() != nil {
			said, _ := os.ReadFile(log.Name())
			return fmt.Errorf("PostgreSQL does not take connections: %w\n%s", err, said)
		}
		<-turn.C
	}
}

// Command is one of PostgreSQL's programs, in the folder of the server and as its user.
func (p *Postgres) Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(p.programs, program), args...)
	cmd.Dir, cmd.SysProcAttr = p.Dir, p.owner
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + p.Dir}
	return cmd
}

// PID is its process, which starts all its others.
func (p *Postgres) PID() int { return p.server.Process.Pid }

// URL leads to one of its databases; "postgres" is there from the start.
func (p *Postgres) URL(database string) string {
	return "postgres://bench@/" + database + "?host=" + p.Dir
}

// Database makes a database and returns its URL.
func (p *Postgres) Database(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	return p.URL(name), errors.Join(err, conn.Close(ctx))
}

// Close ends the server and removes its folder.
func (p *Postgres) Close() (err error) {
	if p.server != nil && p.server.Process != nil {
		err = p.server.Process.Signal(syscall.SIGINT)
		if ended := p.server.Wait(); err == nil {
			err = ended
		}
	}
	return errors.Join(err, os.RemoveAll(p.Dir))
}

// postgresPrograms is the folder of the newest server's programs, "" where there is none.
func postgresPrograms() string {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian puts them, off the PATH
	if err != nil || len(found) == 0 {
		program, err := exec.LookPath("initdb")
		if err != nil {
			return ""
		}
		return filepath.Dir(program)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for other texts
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) }))
}
