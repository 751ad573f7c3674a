package pgtest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/testkit/pgtest"
)

// A server keeps what was committed when it is killed, and its databases are apart.
func TestServer(t *testing.T) {
	s := pgtest.Start(t)
	a, b := s.Database(), s.Database()
	ask(t, a, `CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)`)
	s.Restart()
	if got := ask(t, a, `SELECT n FROM kept`); got != "7" {
		t.Errorf("after a restart: %q, want 7", got)
	}
	if got := ask(t, b, `SELECT count(*) FROM pg_tables WHERE tablename = 'kept'`); got != "0" {
		t.Errorf("in the other database: %q, want 0", got)
	}
	if got := ask(t, a, `SHOW fsync`); got != "on" {
		t.Errorf("fsync is %q, want on", got)
	}
	s.Load(b, s.Dump(a))
	if got := ask(t, b, `SELECT n FROM kept`); got != "7" {
		t.Errorf("in the copy: %q, want 7", got)
	}
}

func ask(t *testing.T, address, sql string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(pgtest.Programs(), "psql"), "-qAtX", "-d", address, "-c", sql).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}
