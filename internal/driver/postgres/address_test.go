package postgres

import (
	"strings"
	"testing"
)

// FuzzAddress reads addresses of databases: whatever one says, every connection has the settings that the log rests on, and what is
// refused is not repeated.
func FuzzAddress(f *testing.F) {
	f.Add("postgres://user:hunter2hunter2@host:5432/agentbox?pool_max_conns=3&sslmode=disable")
	f.Add("postgres://a@b/c?search_path=public&default_transaction_isolation=serializable&statement_timeout=1&enable_seqscan=on")
	f.Add("postgres://user:hunter2hunter2@host:x/")
	f.Add("postgresql:///c?host=/run&connect_timeout=0&pool_max_conns=0")
	f.Add("host=a user=b password=hunter2hunter2 port=1")
	f.Add("postgres://%zz")
	f.Fuzz(func(t *testing.T, address string) {
		if strings.Contains(address, "sslcert") || strings.Contains(address, "sslkey") || strings.Contains(address, "sslrootcert") ||
			strings.Contains(address, "passfile") || strings.Contains(address, "servicefile") {
			return // they name files of the host
		}
		config, err := configure(Options{Address: address}, 7)
		if err != nil {
			if err != error(ErrAddress) {
				t.Errorf("%q: %v", address, err)
			}
			return
		}
		for name, value := range settings {
			if got := config.ConnConfig.RuntimeParams[name]; got != value {
				t.Errorf("%q sets %s to %q, want %q", address, name, got, value)
			}
		}
		if config.AfterConnect == nil || config.ConnConfig.ConnectTimeout <= 0 || config.MaxConns < 1 {
			t.Errorf("%q: %d connections, %s to make one", address, config.MaxConns, config.ConnConfig.ConnectTimeout)
		}
	})
}
