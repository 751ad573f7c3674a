package command_test

import (
	"strings"
	"testing"

	"agentbox/internal/command"
)

// TestReadingSQLite reads what SQLite's shell opens, and whether it runs a program.
func TestReadingSQLite(t *testing.T) {
	const (
		inline = "<inline_code,interpreter>"
		runs   = "<inline_code,interpreter,unresolved>"
		doubt  = " | doubt:what sqlite3 runs is only known when it runs"
	)
	for _, c := range []struct{ script, want string }{
		{`sqlite3 a.db "select 1"`, inline + " | arg>a.db"},
		{`sqlite3 -json d/a.db .tables`, inline + " | arg>d/a.db"},
		{`sqlite3 -separator , a.db .tables`, inline + " | arg>a.db"},
		{`sqlite3 'file:a.db?mode=ro' 'select 1'`, inline + " | arg>a.db"},
		{`sqlite3 :memory: '.read x.sql'`, inline + " | arg<x.sql | unsealed:x.sql"},
		{`sqlite3 :memory: '.import --csv x.csv t'`, inline + " | arg<x.csv"},
		{`sqlite3 :memory: '.out f' 'select 1'`, inline + " | arg>f"},
		{`sqlite3 :memory: "attach 'b.db' as b"`, inline + " | arg>b.db"},
		{`sqlite3 :memory: "select readfile('s')"`, inline + " | arg<s"},
		{`sqlite3 :memory: "vacuum into 'c.db'"`, inline + " | arg>c.db"},
		{`sqlite3 a.db '.sh id'`, runs + " | arg>a.db" + doubt},
		{`sqlite3 a.db '.system id'`, runs + " | arg>a.db" + doubt},
		{`sqlite3 a.db '.load ./x'`, runs + " | arg>a.db" + doubt},
		{`sqlite3 :memory: '.import "|id" t'`, runs + doubt},
		{`sqlite3 :memory: '.output |id'`, runs + doubt},
		{`sqlite3 :memory: "select load_extension('x')"`, runs + doubt},
		{`sqlite3 :memory: "select writefile('a'||'b', 1)"`, runs + doubt},
		{`sqlite3 :memory: "attach (select f from t) as b"`, runs + doubt},
		{`sqlite3 -cmd '.shell id' a.db 'select 1'`, runs + " | arg>a.db" + doubt},
		{`sqlite3 a.db <x.sql`, "<interpreter,runs_file> | arg>a.db | arg<x.sql | <x.sql | unsealed:x.sql"},
		{`cat x | sqlite3 a.db`, "<interpreter,runs_file> | arg<x | arg>a.db | unsealed:the standard input of sqlite3"},
		{"sqlite3 a.db <<'X'\n.shell id\nX", runs + " | arg>a.db" + doubt},
		{`sqlite3 a.db "$q"`, "<interpreter,unresolved> | arg>a.db" + doubt},
	} {
		r, err := command.ReadScript(c.script, command.Bash, "")
		if err != nil {
			t.Fatalf("%s: %v", c.script, err)
		}
		// The facts about the command itself: its traits, files and doubts.
		if got := show(r); got[strings.Index(got, " <")+1:] != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.script, got, c.want)
		}
	}
}
