package mcpserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"agentbox/internal/client"
	"agentbox/internal/domain/run"
)

// api answers requests of a client in this program.
type api func(w http.ResponseWriter, r *http.Request)

func (a api) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// TestTheSpacesOfASession makes as many spaces as a session may, and one more. A space that was not made does not count.
func TestTheSpacesOfASession(t *testing.T) {
	made, full := 0, false
	s := &session{Config: Config{Logger: quiet(), API: client.Through(api(func(w http.ResponseWriter, _ *http.Request) {
		if full {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		made++
		fmt.Fprintf(w, `{"id":"spc_%d"}`, made)
	}), "k")}}
	for n := range maxSpaces {
		full = n == 5
		if _, err := s.create(t.Context(), client.SpaceRequest{}); (err != nil) != full {
			t.Fatalf("space %d: %v", n, err)
		}
	}
	full = false
	if _, err := s.create(t.Context(), client.SpaceRequest{}); err != nil || made != maxSpaces {
		t.Errorf("the last one that fits: %v, of %d", err, made)
	}
	if _, err := s.create(t.Context(), client.SpaceRequest{}); err == nil || !strings.Contains(err.Error(), "64 spaces") || made != maxSpaces {
		t.Errorf("one more: %v, of %d", err, made)
	}
}

// TestTheSizeOfAPicture gives a picture of the largest size to a model, and refuses one byte more.
func TestTheSizeOfAPicture(t *testing.T) {
	for size, fits := range map[int]bool{maxPicture: true, maxPicture + 1: false} {
		s := &session{Config: Config{Logger: quiet(), API: client.Through(api(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/content") {
				_, _ = w.Write(bytes.Repeat([]byte{1}, size))
				return
			}
			_, _ = io.WriteString(w, `{"artifact_id":"art_1","mime_type":"image/png"}`)
		}), "k")}}
		got, _, err := s.artifact(t.Context(), "art_1")
		if err != nil || got.IsError == fits {
			t.Fatalf("%d bytes: %+v, %v", size, got, err)
		}
		if picture, ok := got.Content[0].(*mcp.ImageContent); ok != fits || fits && len(picture.Data) != size {
			t.Errorf("%d bytes: got %T", size, got.Content[0])
		}
	}
}

// TestTheLengthOfAnAnswer shows an output of the largest length whole, and of a longer one what is left out.
func TestTheLengthOfAnAnswer(t *testing.T) {
	s := &session{Config: Config{Logger: quiet()}}
	for length, whole := range map[int]bool{maxText: true, maxText + 1: false} {
		printed := strings.Repeat("x", length)
		got, data, err := s.tell(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{}}, "spc_1",
			run.Events{RunID: "run_1", Status: "completed", Events: []run.Result{{Type: "shell", Stdout: &printed}}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		text := got.Content[0].(*mcp.TextContent).Text
		if (text == printed) != whole || strings.Contains(text, "left out") == whole || strings.Contains(string(raw), "left out") == whole {
			t.Errorf("%d characters: got %d, whole: %v", length, len(text), text == printed)
		}
	}
}

// TestTheSessionsOverHTTP begins as many sessions as live at the same time, and one more. One that ended makes room.
func TestTheSessionsOverHTTP(t *testing.T) {
	w := NewWeb(Config{Logger: quiet(), Version: "test"}, http.NotFoundHandler())
	r := httptest.NewRequest(http.MethodPost, Path, nil)
	r.Header.Set("Authorization", "Bearer k")
	var last *mcp.ServerSession
	for n := range maxSessions {
		server := w.session(r)
		if server == nil {
			t.Fatalf("session %d does not begin", n)
		}
		here, _ := mcp.NewInMemoryTransports()
		connected, err := server.Connect(t.Context(), here, nil)
		if err != nil {
			t.Fatal(err)
		}
		if last = connected; n < maxSessions-1 {
			t.Cleanup(func() { _ = connected.Close() })
		}
	}
	if w.session(r) != nil {
		t.Error("one session more begins")
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if w.session(r) == nil {
		t.Error("a session that ended makes no room")
	}
}
