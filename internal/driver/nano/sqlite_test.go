package nano

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/space/spacetest"
	"agentbox/internal/driver/nano/sqlite"
	"agentbox/internal/userland/bound"
)

// haveSQLite skips a test where this build holds no sqlite3, but not in CI.
func haveSQLite(t *testing.T) {
	t.Helper()
	if _, err := sqlite.Key(); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
}

const shopSQL = "create table shop(id integer primary key, name text, price real, note blob);" +
	"insert into shop values(1,'tea',2.5,null),(2,'c,o\"ffee',3,x'00ff'),(3,'it''s','4e3',''),(4,'Zürich',-1,'a\nb');" +
	"create view dear as select * from shop where price > 2.6; create index by_name on shop(name);"

// sqliteCases print the same here as in Debian's sqlite3. Each begins with the file s.db.
var sqliteCases = []string{
	`sqlite3 s.db "select * from shop"`,
	`sqlite3 -header s.db "select id, name from shop"`,
	`sqlite3 -csv s.db "select id, name, price from shop"`,
	`sqlite3 -csv -header s.db "select id, name from shop where id < 3"`,
	`sqlite3 -json s.db "select id, name, price from shop"`,
	`sqlite3 -line s.db "select id, price from shop"`,
	`sqlite3 -column -header s.db "select id, price from shop"`,
	`sqlite3 -list -separator ' ; ' s.db "select id, price from shop"`,
	`sqlite3 -nullvalue NIL s.db "select note from shop where id = 1"`,
	`sqlite3 -tabs s.db "select id, price from shop"`,
	`sqlite3 -quote s.db "select id, price, note from shop where id < 3"`,
	`sqlite3 -html s.db "select id, price from shop"`,
	`sqlite3 -ascii s.db "select id, price from shop" | od -c`,
	`sqlite3 -noheader s.db "select 1"`,
	`sqlite3 s.db .tables`,
	`sqlite3 s.db .schema`,
	`sqlite3 s.db '.schema shop'`,
	`sqlite3 s.db .indexes`,
	`sqlite3 s.db '.dump shop'`,
	`sqlite3 s.db .dump | sqlite3 t.db; sqlite3 t.db "select count(*), sum(id) from shop"`,
	`printf '.headers on\n.mode csv\nselect id, price from shop;\n' | sqlite3 s.db`,
	`printf '.mode json\nselect id from shop where id=2;\n' | sqlite3 s.db`,
	`printf '.mode insert x\nselect id, price from shop;\n' | sqlite3 s.db`,
	`printf '.mode list\n.separator "|" "\\n"\nselect 1,2;\n' | sqlite3`,
	`printf 'a,b\n1,x\n2,"y z"\n' >i.csv; sqlite3 s.db '.import --csv i.csv imported' 'select a, b from imported'`,
	`printf '5|six\n' >i.txt; sqlite3 :memory: 'create table t(a,b)' '.import i.txt t' 'select b, a from t'`,
	`sqlite3 s.db '.output o.txt' 'select 7'; cat o.txt`,
	`sqlite3 s.db '.once o.txt' 'select 8' 'select 9'; cat o.txt`,
	`echo 'select 1+1;' >q.sql; sqlite3 s.db '.read q.sql'; sqlite3 s.db <q.sql`,
	`sqlite3 :memory: "select 1; select 2"`,
	`sqlite3 :memory: "create table t(a); insert into t values(1),(2); select sum(a) from t; select changes()"`,
	`sqlite3 :memory: "with recursive n(x) as (select 1 union all select x+1 from n where x < 50) select sum(x) from n"`,
	`sqlite3 :memory: "select json_extract('{\"a\":[1,2]}', '$.a[1]'), json_group_array(1)"`,
	`sqlite3 :memory: "select date('2024-02-29', '+1 year'), strftime('%Y', 0, 'unixepoch')"`,
	`sqlite3 :memory: "select upper('abc'), round(2.345, 2), printf('%05d', 42), hex('z'), typeof(1.0)"`,
	`sqlite3 :memory: "create virtual table f using fts5(a); insert into f values('the fox'); select a from f where f match 'fox'"`,
	`sqlite3 :memory: "select row_number() over (order by 1), sqrt(16), 7/2, 7%3, 'a'||'b'"`,
	`sqlite3 s.db "begin; delete from shop; rollback; select count(*) from shop"`,
	`sqlite3 s.db "update shop set price = 9 where id = 1"; sqlite3 s.db "select price from shop where id = 1"`,
	`sqlite3 s.db "attach 'u.db' as u; create table u.t as select id from shop"; sqlite3 u.db "select * from t"`,
	`sqlite3 s.db "vacuum into 'v.db'"; sqlite3 v.db "select count(*) from shop"`,
	`sqlite3 s.db '.backup b.db'; sqlite3 b.db 'pragma integrity_check'`,
	`sqlite3 s.db "select nothing" 2>/dev/null; echo $?`,
	`sqlite3 s.db "insert into shop values(1,2,3,4)" 2>/dev/null; echo $?`,
	`printf 'select 1;\nselect nope;\nselect 2;\n' | sqlite3 -bail s.db 2>/dev/null; echo $?`,
	`printf 'select 1;\nselect nope;\nselect 2;\n' | sqlite3 s.db 2>/dev/null; echo $?`,
	`sqlite3 -readonly s.db "delete from shop" 2>/dev/null; echo $?`,
	`mkdir d; cd d; sqlite3 ../s.db "select count(*) from shop"; sqlite3 e.db "create table t(a)"; ls`,
	`sqlite3 :memory: "select writefile('w.txt', 'hello'), readfile('w.txt') is not null"; cat w.txt`,
	`echo 'not a database at all, and long enough to be read as one' >n.db; sqlite3 n.db .tables 2>/dev/null; echo $?`,
	`sqlite3 none/x.db "select 1" 2>/dev/null; echo $?`,
}

// TestSQLiteAgainstTheRealOne compares output and exit codes with Debian's sqlite3.
func TestSQLiteAgainstTheRealOne(t *testing.T) {
	haveSQLite(t)
	haveReal(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	setup := "cat >shop.sql <<'X'\n" + shopSQL + "\nX\nsqlite3 s.db <shop.sql"
	for _, script := range sqliteCases {
		script = "rm -rf ./*; " + setup + "\n" + script
		real := exec.CommandContext(t.Context(), "bash", "-c", script)
		real.Dir = t.TempDir()
		want, err := real.Output()
		if err != nil {
			t.Fatalf("%s: the real one: %v", script, err)
		}
		if r := h.Exec(t, s, spacetest.Shell(spec.ID, script)); r.Stdout != string(want) || r.Code != 0 {
			t.Errorf("%s:\n got %q, code %d, stderr %q\nwant %q", script, r.Stdout, r.Code, r.Stderr, want)
		}
	}
}

// TestSQLiteOpensADatabaseWithALog reads and changes a database in the journal mode WAL, which the real sqlite3 has made.
func TestSQLiteOpensADatabaseWithALog(t *testing.T) {
	haveSQLite(t)
	haveReal(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	name := filepath.Join(spec.Dir, "w.db")
	real := func(text string) string {
		out, err := exec.CommandContext(t.Context(), "sqlite3", name, text).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v, %s", text, err, out)
		}
		return string(out)
	}
	if got := real("pragma journal_mode=wal; create table t(a); insert into t values(5)"); got != "wal\n" {
		t.Fatalf("got %q", got)
	}
	r := h.Exec(t, s, spacetest.Shell(spec.ID,
		`sqlite3 w.db "insert into t values(6)"; sqlite3 w.db "select sum(a) from t; pragma journal_mode"; ls`))
	if r.Stdout != "11\nwal\nw.db\n" || r.Code != 0 {
		t.Errorf("got %+v", r)
	}
	if got := real("select sum(a) from t; pragma integrity_check"); got != "11\nok\n" {
		t.Errorf("the real one finds %q", got)
	}
}

// TestSQLiteStartsNothing tries the ways by which the shell of SQLite starts a program or loads code.
func TestSQLiteStartsNothing(t *testing.T) {
	haveSQLite(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	for _, text := range []string{".shell echo ran >ran", ".system echo ran >ran", ".output |cat >ran", ".once |cat >ran",
		".import '|echo ran >ran' t", ".read '|echo ran >ran'", ".load ./x", "select load_extension('./x')", "select edit('x', 'touch ran')"} {
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"sqlite3", ":memory:", text}, MS: 60_000})
		if r.Code == 0 || r.Stderr == "" {
			t.Errorf("%s: got %+v", text, r)
		}
		if _, err := os.Stat(filepath.Join(spec.Dir, "ran")); err == nil {
			t.Fatalf("%s: it ran", text)
		}
	}
}

// TestSQLiteWithinItsBounds hits each bound of a space, and then opens the database again.
func TestSQLiteWithinItsBounds(t *testing.T) {
	haveSQLite(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, `sqlite3 b.db "create table t(a); insert into t values(1)"`)); r.Code != 0 {
		t.Fatalf("got %+v", r)
	}
	const endless = "with recursive n(x) as (select 1 union all select x+1 from n) "
	for _, x := range []struct {
		name, text, limit string
		ms                int64
	}{
		{"time", endless + "select sum(x) from n", "", 300},
		{"output", endless + "select x, 'a long line of text to print' from n", bound.Output, 60_000},
		{"memory", "create temp table m as " + endless + "select randomblob(100000) from n", bound.Memory, 60_000},
		{"file", "insert into t " + endless + "select zeroblob(100000) from n", "", 60_000},
	} {
		began := time.Now()
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, Argv: []string{"sqlite3", "b.db", x.text}, MS: x.ms})
		t.Logf("%s: code %d, limit %q, timed out %t, %.80q, after %s", x.name, r.Code, r.Limit, r.TimedOut, r.Stderr, time.Since(began))
		if r.Code == 0 || x.limit != "" && r.Limit != x.limit || x.name == "time" && !r.TimedOut {
			t.Errorf("%s: got code %d, limit %q, stderr %.200q", x.name, r.Code, r.Limit, r.Stderr)
		}
		again := h.Exec(t, s, spacetest.Shell(spec.ID, `sqlite3 b.db "select count(*), sum(a) from t; pragma integrity_check"`))
		if again.Stdout != "1|1\nok\n" {
			t.Errorf("%s: after it the database holds %+v", x.name, again)
		}
	}
}

// TestSQLiteOpensHostileFiles damages a database at many places. The shell always ends, and the worker lives.
func TestSQLiteOpensHostileFiles(t *testing.T) {
	haveSQLite(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "cat >x.sql <<'X'\n"+shopSQL+"\nX\nsqlite3 good.db <x.sql")); r.Code != 0 {
		t.Fatalf("got %+v", r)
	}
	good, err := os.ReadFile(filepath.Join(spec.Dir, "good.db"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		bad := append([]byte(nil), good...)
		for n := range 1 + i%7 {
			bad[(i*977+n*4099+16)%len(bad)] ^= byte(0x5b + i*n)
		}
		if i%9 == 0 {
			bad = bad[:len(bad)-i*13]
		}
		if err := os.WriteFile(filepath.Join(spec.Dir, "bad.db"), bad, 0o644); err != nil {
			t.Fatal(err)
		}
		r := h.Exec(t, s, spacetest.Shell(spec.ID,
			`sqlite3 bad.db .dump "pragma integrity_check" "delete from shop" >/dev/null 2>&1; echo alive`))
		if r.Stdout != "alive\n" || r.Code != 0 {
			t.Errorf("%d: got %+v", i, r)
		}
	}
}

// TestSQLiteDoesNotSeeWhatIsWithheld opens files that a space does not have.
func TestSQLiteDoesNotSeeWhatIsWithheld(t *testing.T) {
	haveSQLite(t)
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	outside := filepath.Join(t.TempDir(), "outside.db")
	if err := os.WriteFile(outside, []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(spec.Dir, "link.db")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{outside, "link.db", "../../../../../../.." + outside, "/etc/shadow"} {
		r := h.Exec(t, s, spacetest.Command{Space: spec.ID, MS: 60_000,
			Argv: []string{"sqlite3", ":memory:", "select coalesce(readfile('" + name + "'), 'nothing')"}})
		if strings.Contains(r.Stdout, "secret") || strings.TrimSpace(r.Stdout) != "nothing" {
			t.Errorf("%s: got %+v", name, r)
		}
	}
}

// haveReal skips a test where Debian's sqlite3 is not installed, but not in CI.
func haveReal(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sqlite3"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip("sqlite3 is not installed here: apt-get install sqlite3")
	}
}
