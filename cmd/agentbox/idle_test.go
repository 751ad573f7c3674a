package main_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// resident is how many bytes of memory a process has now.
func resident(t *testing.T, pid int) int64 {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("no VmRSS in %s", raw)
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// TestThreat32TenThousandClientsThatDoNothing opens so many connections, and as many event streams as one principal may have, of which
// nobody reads: the daemon stays as large as it was but for a bounded part, and goes on recording.
func TestThreat32TenThousandClientsThatDoNothing(t *testing.T) {
	const (
		clients = 10_000
		streams = 32
		mostRSS = 64 << 20 // more than before: 1,024 connections that wait, and what the streams hold; ten thousand would take 200 MiB
		mostFDs = 1_024 + 200
	)
	t.Setenv("GOGC", "50") // so that what is resident is about what lives
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: []string{"--rate",
		"general=1000000"}}
	c.start()
	room := c.post("/v1/rooms", `{"title":"hall"}`)["room_id"].(string)
	thread := c.post("/v1/rooms/"+room+"/threads", `{"title":"talk"}`)["thread_id"].(string)
	say := func() (slowest time.Duration) {
		t.Helper()
		for range 300 {
			began := time.Now()
			c.post("/v1/threads/"+thread+"/messages", `{"content_md":"`+strings.Repeat("word ", 60)+`"}`)
			slowest = max(slowest, time.Since(began))
		}
		return slowest
	}
	alone := say()
	before := resident(t, c.daemon.Process.Pid)
	host := strings.TrimPrefix(c.url, "http://")
	for n := range clients {
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatalf("client %d: %v", n, err)
		}
		defer conn.Close()
		if n%2 == 0 { // half of them have asked once
			if _, err := io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: "+host+"\r\n\r\n"); err != nil {
				t.Fatalf("client %d: %v", n, err)
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatalf("client %d: %v", n, err)
			}
		}
	}
	transport := &http.Transport{DisableKeepAlives: true, ReadBufferSize: 512}
	for n := range streams + 1 {
		r, err := http.NewRequestWithContext(t.Context(), "GET", c.url+"/v1/streams/rooms/"+room+"?from_seq=1", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+c.key)
		answer, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if want := map[bool]int{true: 200, false: 429}[n < streams]; answer.StatusCode != want {
			t.Fatalf("stream %d: %d, want %d", n+1, answer.StatusCode, want)
		}
	}
	beside := say()
	grown := resident(t, c.daemon.Process.Pid) - before
	t.Logf("the slowest of 300 messages took %s, beside the clients %s; the daemon has %d MiB and grew by %s", alone, beside, before>>20,
		fmt.Sprintf("%.1f MiB", float64(grown)/(1<<20)))
	descriptors, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(c.daemon.Process.Pid), "fd"))
	if err != nil || len(descriptors) > mostFDs {
		t.Errorf("it has %d files open, %v; want at most %d", len(descriptors), err, mostFDs)
	}
	if grown > mostRSS {
		t.Errorf("it grew by %d bytes, want at most %d", grown, mostRSS)
	}
	c.end()
	c.verify()
}
