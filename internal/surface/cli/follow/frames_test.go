package follow

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"testing"

	"agentbox/internal/client"
	"agentbox/internal/surface/cli/term"
	"agentbox/internal/surface/cli/termtest"
)

var _ = flag.Bool("update", false, "write the golden files")

// TestOutputComesInPieces puts characters together that were cut, ends lines that have no end, and obeys nothing.
func TestOutputComesInPieces(t *testing.T) {
	got := termtest.Drawn(80, func(p *term.Printer) {
		w := &watch{p: p}
		frame := func(n uint64, kind string, data []byte) {
			o := client.Output{Data: base64.StdEncoding.EncodeToString(data), Encoding: "base64"}
			raw, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := w.frame(client.Frame{N: n, Kind: kind, Data: raw}); err != nil {
				t.Fatal(err)
			}
		}
		euro := []byte("€")
		frame(1, "stdout", append([]byte("one "), euro[0]))
		frame(2, "stdout", euro[1:2])
		frame(3, "stdout", append(euro[2:], "\ntwo\r\n10%\r20%\r"...))
		frame(4, "stderr", []byte("bad \xff \x1b[1A no end"))
		frame(5, "stdout", euro[:2])
		if _, _, err := w.frame(client.Frame{N: 6, Kind: "event",
			Data: json.RawMessage(`{"type":"shell","success":false,"exitCode":1}`)}); err != nil {
			t.Fatal(err)
		}
	})
	termtest.Golden(t, "output", got)
}

// TestFramesThatCannotBeRead are errors, not silence.
func TestFramesThatCannotBeRead(t *testing.T) {
	for _, f := range []client.Frame{
		{Kind: "event", Data: json.RawMessage(`[]`)}, {Kind: "operation", Data: json.RawMessage(`1`)}, {Kind: "stdout",
			Data: json.RawMessage(`""`)},
		{Kind: "stdout", Data: json.RawMessage(`{"data":"%","encoding":"base64"}`)},
	} {
		w := &watch{p: &term.Printer{Out: &bytes.Buffer{}}}
		if _, _, err := w.frame(f); err == nil {
			t.Errorf("%s %s: got no error", f.Kind, f.Data)
		}
	}
}
