// Command bare is the yardstick of a daemon's start and idleness: a server of net/http that answers /readyz and, where a database is named,
// answers only after it has opened that with the driver and read the heads. It prints its address.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"

	"github.com/ncruces/go-sqlite3"
)

func main() {
	path := flag.String("db", "", "log that is opened first")
	flag.Parse()
	if err := run(*path); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	if path != "" {
		conn, err := sqlite3.Open(path)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.Exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; SELECT name, head FROM workspaces; SELECT max(no) FROM streams; ` +
			`SELECT max(no) FROM documents`); err != nil {
			return err
		}
	}
	http.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, nil)
}
