package app

import (
	"strings"
	"testing"
)

// FuzzStoreAddress configures a daemon with any address of a store: it is refused or is one of a database, and no error repeats it, for
// it may hold a password.
func FuzzStoreAddress(f *testing.F) {
	f.Add("postgres://user:hunter2hunter2@host:5432/agentbox")
	f.Add("postgresql:///agentbox?host=/run")
	f.Add("mysql://user:hunter2hunter2@host")
	f.Add("host=a password=hunter2hunter2")
	f.Add("POSTGRES://x")
	f.Fuzz(func(t *testing.T, store string) {
		c := Default(t.TempDir())
		c.Store = store
		err := c.check()
		if (err == nil) != (store == "" || isDatabase(store)) || c.inDatabase() != (store != "") {
			t.Errorf("%q: %v, and it is a database: %t", store, err, isDatabase(store))
		}
		if err != nil && len(store) > 12 && strings.Contains(err.Error(), store) {
			t.Errorf("%q is repeated: %v", store, err)
		}
	})
}
