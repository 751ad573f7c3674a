package portapi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
	"agentbox/internal/service/ports"
)

// Limits of a request at a port.
const (
	MaxRequestBytes  = 64 << 20         // of the body of a request
	MaxAnswerBytes   = 1 << 30          // of an answer, or of one direction of a WebSocket
	MaxAnswerHead    = 64 << 10         // of the headers of an answer
	headerTime       = 60 * time.Second // from the end of the request to the headers of the answer
	maxInformational = 8                // answers of the class 1xx before the answer
)

// The refusals of the program's behaviour.
var (
	errSlow = fault.New(fault.Unavailable, "port_timeout", "the program on the port did not answer within %s", headerTime)
	errTalk = fault.New(fault.Unavailable, "port_bad_answer", "the answer of the program on the port is not HTTP/1.1")
	errBody = fault.New(fault.Invalid, "body_incomplete", "the body of the request broke off, or is no valid HTTP/1.1").
		With("send the request again, with the whole body")
	errTall = fault.New(fault.Exhausted, "body_too_large", "the body of a request to a port may have %d bytes", MaxRequestBytes)
)

// relay sends a request to a port and its answer back. Each request has a connection of its own, so neither side can smuggle a second
// request or answer into it.
func (s *Ports) relay(w http.ResponseWriter, r *http.Request, x *ports.Exposure, at place) error {
	if r.ContentLength > MaxRequestBytes {
		return errTall
	}
	ctx, stop := s.within(r.Context(), x)
	defer stop()
	conn, err := x.Dial(ctx)
	if err != nil {
		return err
	}
	closed := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer closed()
	defer conn.Close()
	upgrade := at.upgrade(r)
	out := at.request(r, x.Port, upgrade)
	_ = http.NewResponseController(w).EnableFullDuplex() // the answer may begin before the body has ended
	patient := s.Patient(w, r)
	body := &limited{Reader: patient, left: MaxRequestBytes}
	if r.Body != nil && r.ContentLength != 0 {
		out.Body, out.ContentLength = io.NopCloser(body), r.ContentLength
	}
	sent := make(chan error, 1)
	go func() { sent <- out.Write(conn) }()
	defer func() {
		_ = conn.Close()
		select {
		case <-sent: //nolint:errcheck // head has judged it; the connection is closed now
			return
		default:
		}
		if out.Body != nil { // the client still sends a body that nobody takes any more
			w.Header().Set("Connection", "close") // for a refusal; an answer has begun already
			patient.GiveUp()
		}
		<-sent //nolint:errcheck // the connection is closed
	}()
	from := &headed{r: conn, left: MaxAnswerHead}
	reader := bufio.NewReader(from)
	answer, err := s.head(ctx, conn, reader, out, sent)
	switch {
	case body.tooLong.Load():
		return errTall
	case err != nil:
		return err
	}
	defer answer.Body.Close()
	from.free(MaxAnswerBytes)
	if answer.StatusCode == http.StatusSwitchingProtocols {
		if upgrade == "" || !strings.EqualFold(answer.Header.Get("Upgrade"), upgrade) {
			return errTalk
		}
		return s.switched(ctx, w, answer, reader, conn, at)
	}
	at.answer(w.Header(), answer.Header, x)
	if out.Body != nil && len(sent) == 0 { // the rest of the body may never be read
		w.Header().Set("Connection", "close")
	}
	w.WriteHeader(answer.StatusCode)
	if err := pass(w, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // the client learns that the answer is not whole
	}
	return nil
}

// head reads the headers of the answer.
func (s *Ports) head(ctx context.Context, conn space.Conn, reader *bufio.Reader, out *http.Request, sent chan error) (*http.Response,
	error) {
	type found struct {
		answer *http.Response
		err    error
	}
	read := make(chan found, 1)
	go func() {
		for range maxInformational {
			answer, err := http.ReadResponse(reader, out) //nolint:bodyclose // relay closes it; an informational answer has no body
			if err == nil && answer.StatusCode < 200 && answer.StatusCode != http.StatusSwitchingProtocols {
				continue
			}
			read <- found{answer, err}
			return
		}
		read <- found{nil, errTalk}
	}()
	var late <-chan time.Time
	writing := sent
	for {
		select {
		case f := <-read:
			if f.err == nil {
				return f.answer, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			if _, broken := errors.AsType[*fault.Error](f.err); broken {
				return nil, f.err
			}
			return nil, fault.Wrap(f.err, errTalk.Kind, errTalk.Code, "%s", errTalk.Msg)
		case err := <-writing: // the time counts from the end of the request
			sent <- err
			for _, refusal := range []error{errTall, errBody} {
				if errors.Is(err, refusal) {
					_ = conn.Close()
					<-read
					return nil, refusal
				}
			}
			writing = nil
			timer, stop := s.Clock.NewTimer(headerTime)
			defer stop()
			late = timer
		case <-late:
			_ = conn.Close()
			<-read
			return nil, errSlow
		}
	}
}

// switched passes the bytes of an upgraded connection both ways, until either side has ended.
func (s *Ports) switched(ctx context.Context, w http.ResponseWriter, answer *http.Response, reader *bufio.Reader, conn space.Conn,
	at place) error {
	client, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "upgrade_not_possible", "this connection cannot become a WebSocket; use HTTP/1.1")
	}
	defer client.Close()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	head := &strings.Builder{}
	fmt.Fprintf(head, "HTTP/1.1 101 Switching Protocols\r\n")
	headers := http.Header{}
	at.upgraded(headers, answer.Header)
	_ = headers.Write(head)
	head.WriteString("\r\n")
	if _, err := io.WriteString(client, head.String()); err != nil {
		return nil //nolint:nilerr // the client has gone
	}
	ended := make(chan struct{}, 2)
	go func() {
		_, _ = io.Copy(client, reader)
		ended <- struct{}{}
	}()
	go func() {
		_, _ = io.Copy(conn, io.LimitReader(buffered, MaxAnswerBytes))
		ended <- struct{}{}
	}()
	<-ended // a WebSocket has no half
	_, _ = client.Close(), conn.Close()
	<-ended
	return nil
}

// pass sends a body piece by piece, as it comes.
func pass(w http.ResponseWriter, body io.Reader) error {
	flush := http.NewResponseController(w)
	piece := make([]byte, 32<<10)
	for {
		n, err := body.Read(piece)
		if n > 0 {
			if _, err := w.Write(piece[:n]); err != nil {
				return err
			}
			if err := flush.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// limited is a body that may not be longer than its bound.
type limited struct {
	io.Reader
	left    int64
	tooLong atomic.Bool
}

// Read implements io.Reader.
func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		l.tooLong.Store(true)
		return 0, errTall
	}
	if err != nil && err != io.EOF {
		err = errors.Join(errBody, err)
	}
	return n, err
}

// headed reads the answer of the space: first the headers, within their bound, then the rest within another.
type headed struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (h *headed) Read(p []byte) (int, error) {
	if h.left <= 0 { // it may end here
		if n, err := h.r.Read(make([]byte, 1)); n == 0 && err != nil {
			return 0, err
		}
		return 0, errTalk
	}
	n, err := h.r.Read(p[:min(int64(len(p)), h.left)])
	h.left -= int64(n)
	return n, err
}

func (h *headed) free(n int64) { h.left = n }

func itoa(n int) string { return strconv.Itoa(n) }
