package e2b

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	binaryType       = "application/proto"
	binaryStreamType = "application/connect+proto"
)

//go:embed process.proto filesystem.proto
var definitions embed.FS

// transcoder lets a caller speak protobuf. The routes know JSON only: requests become JSON on their way in, and answers protobuf on their
// way out. Errors are JSON in both, as Connect has it.
type transcoder struct {
	once  sync.Once
	files linker.Files
	err   error
}

// serve answers a call, and transcodes it if its content type is that of protobuf.
func (t *transcoder) serve(h http.Handler, w http.ResponseWriter, r *http.Request) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !isCall(r.URL.Path) || kind != binaryType && kind != binaryStreamType {
		h.ServeHTTP(w, r)
		return
	}
	in, out, err := t.messages(r.URL.Path)
	if err != nil {
		refuse(w, r, err)
		return
	}
	r.Header = r.Header.Clone()
	if kind == binaryStreamType {
		r.Header.Set("Content-Type", streamType)
		r.Body = io.NopCloser(&framesIn{body: r.Body, message: in})
		h.ServeHTTP(&framesOut{ResponseWriter: w, message: out}, r)
		return
	}
	r.Header.Set("Content-Type", "application/json")
	r.Body, r.ContentLength = io.NopCloser(&messageIn{body: r.Body, message: in}), -1
	whole := &buffered{header: w.Header()}
	h.ServeHTTP(whole, r)
	raw := whole.Bytes()
	if whole.status == http.StatusOK {
		if raw, err = toBinary(out, raw); err != nil {
			refuse(w, r, err)
			return
		}
		w.Header().Set("Content-Type", binaryType)
	}
	w.WriteHeader(whole.status)
	_, _ = w.Write(raw) // the caller has gone; there is nobody left to tell
}

// messages returns what a call takes and what it answers; both nil for a call that there is not.
func (t *transcoder) messages(path string) (in, out protoreflect.MessageDescriptor, err error) {
	t.once.Do(func() {
		c := protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(name string) (io.ReadCloser, error) { return definitions.Open(name) },
		})}
		t.files, t.err = c.Compile(context.Background(), "process.proto", "filesystem.proto")
	})
	if t.err != nil {
		return nil, nil, t.err
	}
	name := protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", "."))
	for _, file := range t.files {
		if m, ok := file.FindDescriptorByName(name).(protoreflect.MethodDescriptor); ok {
			return m.Input(), m.Output(), nil
		}
	}
	return nil, nil, nil
}

// toJSON turns a message of protobuf into JSON. A message that is not known stays as it is: the call is refused before it is read.
func toJSON(message protoreflect.MessageDescriptor, raw []byte) ([]byte, error) {
	if message == nil {
		return raw, nil
	}
	m := dynamicpb.NewMessage(message)
	if err := proto.Unmarshal(raw, m); err != nil {
		return nil, err
	}
	return protojson.Marshal(m)
}

// toBinary turns a message of JSON into protobuf. It leaves fields out that the message does not have.
func toBinary(message protoreflect.MessageDescriptor, raw []byte) ([]byte, error) {
	if message == nil {
		return raw, nil
	}
	m := dynamicpb.NewMessage(message)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(raw, m); err != nil {
		return nil, err
	}
	return proto.Marshal(m)
}

// messageIn reads a client's message of protobuf as one of JSON. It reads nothing before the route does, and the route first asks who the
// caller is.
type messageIn struct {
	body    io.Reader
	message protoreflect.MessageDescriptor
	json    *bytes.Reader // nil before the first Read
}

func (m *messageIn) Read(p []byte) (int, error) {
	if m.json == nil {
		raw, err := io.ReadAll(io.LimitReader(m.body, maxRequest+1))
		if err == nil && len(raw) > maxRequest {
			err = fmt.Errorf("it has more than %d bytes", maxRequest)
		}
		if err == nil {
			raw, err = toJSON(m.message, raw)
		}
		if err != nil {
			return 0, fmt.Errorf("as protobuf: %w", err)
		}
		m.json = bytes.NewReader(raw)
	}
	return m.json.Read(p)
}

// framesIn reads a client's stream of protobuf as one of JSON.
type framesIn struct {
	body    io.Reader
	message protoreflect.MessageDescriptor
	left    []byte
}

func (f *framesIn) Read(p []byte) (int, error) {
	if len(f.left) == 0 {
		raw, err := nextFrame(f.body)
		if err == nil {
			raw, err = toJSON(f.message, raw)
		}
		if err != nil {
			return 0, err
		}
		f.left = framed(0, raw)
	}
	n := copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

// framesOut writes a stream of JSON as one of protobuf. Each Write holds one whole frame, as stream writes them.
type framesOut struct {
	http.ResponseWriter
	message protoreflect.MessageDescriptor
}

// Unwrap lets http.ResponseController flush the answer.
func (f *framesOut) Unwrap() http.ResponseWriter { return f.ResponseWriter }

func (f *framesOut) WriteHeader(status int) {
	if f.Header().Get("Content-Type") == streamType {
		f.Header().Set("Content-Type", binaryStreamType)
	}
	f.ResponseWriter.WriteHeader(status)
}

func (f *framesOut) Write(b []byte) (int, error) {
	if f.Header().Get("Content-Type") != binaryStreamType || len(b) < 5 || b[0] == endOfFrame {
		return f.ResponseWriter.Write(b)
	}
	raw, err := toBinary(f.message, b[5:])
	if err != nil {
		return 0, err
	}
	if _, err := f.ResponseWriter.Write(framed(0, raw)); err != nil {
		return 0, err
	}
	return len(b), nil
}

// framed returns a message of a stream with its head.
func framed(flag byte, raw []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flag}, uint32(len(raw))), raw...)
}
