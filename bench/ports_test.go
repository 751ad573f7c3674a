package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentbox/internal/client"
	"agentbox/internal/domain/id"
)

// page is what the measured server answers.
var page = bytes.Repeat([]byte("page\n"), 800)

// pageServer is the same program in the space and on the host.
const pageServer = "exec python3 -m http.server %d --bind 127.0.0.1 >/dev/null 2>&1"

// BenchmarkPreview is a request for a page of a program in a space, through the address of a preview, beside the same request to the same
// program on the host.
func BenchmarkPreview(b *testing.B) {
	count := sized(2_000, 5)
	b.Run("ours", func(b *testing.B) {
		c := overAPI(b)
		s, err := c.CreateSpace(b.Context(), client.SpaceRequest{Runtime: "heavy", BestEffort: true})
		if err != nil {
			leaveOut(b, "the daemon makes no space with processes: "+err.Error())
		}
		_, err = c.WriteFile(b.Context(), s.ID, "page.txt", bytes.NewReader(page), int64(len(page)), true, "")
		must(b, err)
		m, err := client.ParseMessage([]byte(`{"protocolVersion":"1.0","operations":[{"type":"shell","command":` +
			strconv.Quote(fmt.Sprintf(pageServer, 8080)) + `}]}`))
		must(b, err)
		_, err = c.CreateRun(b.Context(), s.ID, client.RunRequest{Message: m, Background: true})
		must(b, err)
		v, err := c.PreviewPort(b.Context(), s.ID, 8080, time.Hour, false)
		must(b, err)
		requestPages(b, v.PathURL+"page.txt", count)
	})
	b.Run("yardstick", func(b *testing.B) {
		dir := b.TempDir()
		must(b, os.WriteFile(filepath.Join(dir, "page.txt"), page, 0o600))
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(b, err)
		port := l.Addr().(*net.TCPAddr).Port
		must(b, l.Close())
		cmd := exec.Command("sh", "-c", fmt.Sprintf(pageServer, port))
		cmd.Dir = dir
		must(b, cmd.Start())
		b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		requestPages(b, fmt.Sprintf("http://127.0.0.1:%d/page.txt", port), count)
	})
}

// requestPages waits until the page is there, and then measures so many requests for it.
func requestPages(b *testing.B, url string, count int) {
	b.Helper()
	browser := &http.Client{Transport: &http.Transport{}, Timeout: time.Minute}
	defer browser.CloseIdleConnections()
	get := func() error {
		answer, err := browser.Get(url)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if got, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusOK || !bytes.Equal(got, page) {
			return fmt.Errorf("%s: %d, %d bytes, %w", url, answer.StatusCode, len(got), err)
		}
		return nil
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		err := get()
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			b.Fatal(err)
		}
	}
	times := make([]time.Duration, count)
	for n := range times {
		began := time.Now()
		must(b, get())
		times[n] = time.Since(began)
	}
	reportTimes(b, times)
}

// BenchmarkWatch is how long it takes from the request that writes a file until a watcher reads its event, beside a file that is written on
// the host, and inotify.
func BenchmarkWatch(b *testing.B) {
	count := sized(1_000, 5)
	b.Run("ours", func(b *testing.B) {
		api := serveNano(b)
		s := api.space(b)
		told := watchedFolder(b, api.Client, s)
		times := make([]time.Duration, count)
		for n := range times {
			name := fmt.Sprintf("seen/%d.txt", n)
			began := time.Now()
			_, err := api.WriteFile(b.Context(), s, name, bytes.NewReader(page), int64(len(page)), true, "")
			must(b, err)
			for path := range told {
				if path == name {
					break
				}
			}
			times[n] = time.Since(began)
		}
		reportTimes(b, times)
	})
	b.Run("yardstick", func(b *testing.B) {
		dir := b.TempDir()
		in, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		must(b, err)
		defer unix.Close(in)
		_, err = unix.InotifyAddWatch(in, dir, unix.IN_CLOSE_WRITE)
		must(b, err)
		times := make([]time.Duration, count)
		buf := make([]byte, unsafe.Sizeof(unix.InotifyEvent{})+unix.NAME_MAX+1)
		for n := range times {
			began := time.Now()
			must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", n)), page, 0o600))
			if got, err := unix.Read(in, buf); err != nil || got == 0 {
				b.Fatal(got, err)
			}
			times[n] = time.Since(began)
		}
		reportTimes(b, times)
	})
}

// watchedFolder watches the folder seen of a space and returns the paths of what it is told.
func watchedFolder(b *testing.B, c *client.Client, s id.Space) <-chan string {
	b.Helper()
	_, err := c.WriteFile(b.Context(), s, "seen/first.txt", bytes.NewReader(page), int64(len(page)), true, "")
	must(b, err)
	ctx, stop := context.WithCancel(b.Context())
	told, begun, ended := make(chan string, 64), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer close(told)
		for e, err := range c.WatchFiles(ctx, s, "seen", false, func() { close(begun) }) {
			if err != nil {
				return
			}
			select {
			case told <- e.Path:
			case <-ctx.Done():
				return
			}
		}
	}()
	b.Cleanup(func() { stop(); <-ended })
	select {
	case <-begun:
	case <-ended:
		b.Fatal("the watch has ended")
	}
	return told
}
