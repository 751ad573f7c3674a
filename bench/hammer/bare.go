package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"agentbox/bench/yardstick"
)

// serveBare is the least that a server over HTTP can do for a message: it reads the JSON, writes one row in a transaction of its own, and
// answers with an id. It checks no caller and has no other request. It says where it listens, and serves until it is
// killed.
func serveBare(ctx context.Context, url string, connections int) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.MaxConns = int32(connections)
	rows, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	defer rows.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	hash := strings.Repeat("h", 32)
	var last atomic.Int64
	http.HandleFunc("POST /rows", func(w http.ResponseWriter, r *http.Request) {
		var sent struct {
			Content string `json:"content_md"`
		}
		n := last.Add(1)
		err := json.NewDecoder(r.Body).Decode(&sent)
		if err == nil {
			_, err = rows.Exec(r.Context(),
				`INSERT INTO events (stream, version, type, at, prev, hash, body) VALUES ($1, $2, 'message.created', $3, $4, $5, $6)`, n%64, n,
				time.Now().UnixMicro(), hash, hash, sent.Content)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(map[string]int64{"message_id": n})
	})
	fmt.Println(listener.Addr())
	return http.Serve(listener, nil)
}

// bareHTTP measures how fast that server accepts rows of the same size. The server is a process of its own; the clients that drive the
// daemon drive it too.
func bareHTTP(ctx context.Context, server *yardstick.Postgres, name string, clients, size int, long time.Duration) (_ figures, err error) {
	url, err := server.Database(ctx, name)
	if err != nil {
		return figures{}, err
	}
	if err := makeTable(ctx, url); err != nil {
		return figures{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return figures{}, err
	}
	cmd := exec.Command(self, "-serve-bare", url, "-writers", strconv.Itoa(clients)) // it has a connection for each
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	said, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return figures{}, err
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		return figures{}, fmt.Errorf("the bare server did not start: %w", err)
	}
	content := strings.Repeat("o", size)
	return writeRows(ctx, clients, long, func(int) func() error {
		c := newClient(strings.TrimSpace(address), "")
		return func() error {
			return c.do(ctx, http.MethodPost, "/rows", "", map[string]string{"content_md": content}, nil)
		}
	})
}
