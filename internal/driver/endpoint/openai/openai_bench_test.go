package openai_test

import (
	"bufio"
	"bytes"
	"net/http"
	"strings"
	"testing"

	"agentbox/internal/domain/model"
	"agentbox/internal/driver/endpoint/endpointtest"
)

// BenchmarkStream asks for a streamed answer of 200 pieces, by our adapter and, beside it, by a bare reader that counts lines.
func BenchmarkStream(b *testing.B) {
	events := make([]string, 0, 203)
	for range 200 {
		events = append(events, text("word "))
	}
	v := endpointtest.Serve(b, endpointtest.Say(sse(append(events, stop, used, done)...)))
	e, r := entry(v, "openai"), endpointtest.Hello()
	b.Run("adapter", func(b *testing.B) {
		d := driver(b)
		for b.Loop() {
			a, err := d.Stream(b.Context(), permit(b, e, r), model.Target{Entry: e}, r, nil)
			if err != nil || len(a.Text()) != 1000 {
				b.Fatal(a, err)
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			resp, err := http.Post(v.URL, "application/json", strings.NewReader(`{}`))
			if err != nil {
				b.Fatal(err)
			}
			n := 0
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if bytes.HasPrefix(lines.Bytes(), []byte("data: ")) {
					n++
				}
			}
			if err := resp.Body.Close(); err != nil || n != 203 {
				b.Fatal(n, err)
			}
		}
	})
}
