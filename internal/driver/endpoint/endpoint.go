// Package endpoint speaks HTTP with endpoints of models.
//
// It says which addresses are dialled, how long an answer may take, and what a failure means.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"agentbox/internal/domain/model"
)

// The bounds of what an endpoint sends.
const (
	MaxEventBytes  = 4 << 20   // one event of a stream
	MaxAnswerBytes = 32 << 20  // one answer, with everything around it
	maxErrorBytes  = 64 << 10  // the body of an error
	maxDrain       = 256 << 10 // read after the end, so that the connection can be used again
	drainTime      = 2 * time.Second
	connectTime    = 20 * time.Second
	maxQuote       = 200 // bytes of the endpoint's own words in a failure
	maxCode        = 64  // bytes of the endpoint's own code of a failure

	MaxCalls = 256    // tool calls of one answer; the loop makes none of an answer with errand.MaxCalls or more
	MaxParts = 10_000 // blocks of one answer
)

// Client keeps the connections to endpoints. It reads no environment: no proxy, no key, no address comes from there.
type Client struct {
	public, private *http.Client
}

// New returns a client.
func New() *Client { return &Client{newClient(false), newClient(true)} }

// Close ends the connections that nobody uses.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

func newClient(private bool) *http.Client {
	dialer := &net.Dialer{Timeout: connectTime, Control: func(_, address string, _ syscall.RawConn) error {
		return dialled(address, private)
	}}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSHandshakeTimeout: connectTime, ForceAttemptHTTP2: true, DisableCompression: true,
			MaxIdleConnsPerHost: 16, MaxIdleConns: 64, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10,
		},
		// A redirect would carry the key and the request to a host that nobody has checked.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// errPrivate refuses an address that is not public, and one that is nobody's.
var errPrivate = errors.New("the name leads to a private address; an admin permits it with allow_private")

// dialled refuses an address after its name was resolved, so that no name can lead elsewhere later. Addresses of the link are never
// dialled: there answers the cloud that the host belongs to.
func dialled(address string, private bool) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	a := to.Addr().Unmap()
	if model.Public(a) || private && (a.IsLoopback() || a.IsPrivate() || shared(a)) {
		return nil
	}
	return errPrivate
}

// shared reports whether an address is of the range of carriers, which private networks over the internet use too.
func shared(a netip.Addr) bool { return netip.MustParsePrefix("100.64.0.0/10").Contains(a) }

// Request is one HTTP request to an endpoint.
type Request struct {
	Target model.Target
	URL    string
	Header map[string]string // beside those of JSON and of a stream
	Body   []byte
	// Refine corrects a failure of a status by reading the body. It may be nil.
	Refine func(f *model.Failure, status int, header http.Header, body []byte)
}

// errIdle and errTotal are the reasons for ending an answer.
var (
	errIdle  = errors.New("the endpoint sent nothing for too long")
	errTotal = errors.New("the answer took too long")
)

// Stream sends a request and gives the events of the answer to the function, one after the other, until that says done. Every error that
// comes from the endpoint is a *model.Failure. It returns io.ErrUnexpectedEOF in one if the stream ended before done.
func (c *Client) Stream(ctx context.Context, q Request, each func(Event) (done bool, err error)) (err error) {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	total := time.AfterFunc(q.Target.Entry.Total(), func() { cancel(errTotal) })
	idle := time.AfterFunc(q.Target.Entry.Idle(), func() { cancel(errIdle) })
	finish := func() {
		stop()
		total.Stop()
		idle.Stop()
	}
	req, err := http.NewRequestWithContext(inner, http.MethodPost, q.URL, bytes.NewReader(q.Body))
	if err != nil {
		finish()
		cancel(nil)
		return &model.Failure{Class: model.Final, Message: "the address of the endpoint cannot be used", Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("User-Agent", "agentbox")
	for name, value := range q.Header {
		req.Header.Set(name, value)
	}
	client := c.public
	if q.Target.Entry.AllowPrivate {
		client = c.private
	}
	resp, err := client.Do(req)
	if err != nil {
		finish()
		err = broken(ctx, inner, err, unreached(q.URL, err))
		cancel(nil)
		return err
	}
	body := &watched{Reader: io.LimitReader(resp.Body, MaxAnswerBytes), idle: idle, time: q.Target.Entry.Idle()}
	done := false
	defer func() {
		finish()
		if done { // the rest is nothing, or little, and belongs to a connection that goes on
			go drain(resp.Body, cancel)
			return
		}
		cancel(nil)
		_ = resp.Body.Close()
	}()
	if resp.StatusCode != http.StatusOK {
		raw, readErr := io.ReadAll(io.LimitReader(body, maxErrorBytes))
		done = readErr == nil
		return q.failed(resp.StatusCode, resp.Header, raw)
	}
	events := NewReader(body)
	if err := q.noStream(events, resp.Header); err != nil {
		return err
	}
	for {
		e, err := events.Next()
		if err != nil {
			return broken(ctx, inner, err, "the answer ended before its end")
		}
		if done, err = each(e); done || err != nil {
			return err
		}
	}
}

// drain reads on after the end of an answer, for a bounded time.
func drain(body io.ReadCloser, cancel context.CancelCauseFunc) {
	timer := time.AfterFunc(drainTime, func() { cancel(nil) })
	_, _ = io.Copy(io.Discard, io.LimitReader(body, maxDrain))
	_ = body.Close()
	timer.Stop()
	cancel(nil)
}

// watched starts the idle timer again with each piece that comes.
type watched struct {
	io.Reader
	idle *time.Timer
	time time.Duration
}

// Read reads a piece.
func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.idle.Reset(w.time)
	}
	return n, err
}

// broken is the failure of a connection. An end that the caller asked for is the caller's own error.
func broken(ctx, inner context.Context, err error, what string) error {
	f := &model.Failure{Class: model.Retry, Message: what, Err: err}
	cause := context.Cause(inner)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(cause, errIdle), errors.Is(cause, errTotal):
		f.Message, f.Err, f.Code = cause.Error(), cause, "timeout"
	case errors.Is(err, errPrivate):
		f.Class, f.Message, f.Code = model.Final, errPrivate.Error(), "private_address"
	case errors.Is(err, ErrEventTooLarge):
		f.Class, f.Message, f.Code = model.Final, ErrEventTooLarge.Error(), "event_too_large"
	case errors.Is(err, io.EOF):
		f.Err = io.ErrUnexpectedEOF
	}
	return f
}

// noStream refuses an answer of status 200 that is not a stream: a page of a proxy, or an error as plain JSON.
func (q Request) noStream(events *Reader, header http.Header) error {
	head := events.peek()
	switch {
	case len(head) == 0:
		return nil // the reader tells how it ends
	case head[0] == '<':
		return &model.Failure{Class: model.Final, Status: http.StatusOK, Code: "not_a_stream",
			Message: "the endpoint answered with a page of HTML; is base_url right, and no proxy between?"}
	case head[0] == '{' || head[0] == '[':
		raw, _ := io.ReadAll(io.LimitReader(events.r, maxErrorBytes))
		f := q.failed(http.StatusOK, header, raw)
		if f.Code == "" {
			f.Code = "not_a_stream"
		}
		return f
	}
	return nil
}

// failed is the failure that a status and a body tell.
func (q Request) failed(status int, header http.Header, body []byte) *model.Failure {
	f := &model.Failure{Class: ClassOf(status), Status: status, Message: "the endpoint refused the request", After: after(header)}
	switch {
	case status == http.StatusOK:
		f.Class, f.Message = model.Final, "the endpoint answered without a stream"
	case status >= 300 && status < 400:
		f.Message = "the endpoint points to another address; set base_url to it"
	case status >= 500:
		f.Message = "the endpoint failed"
	case status == http.StatusTooManyRequests:
		f.Message = "the endpoint takes no more requests now"
	}
	refused, advice := q.refusal(status)
	f.Message = cmp.Or(refused, f.Message)
	if q.Refine != nil {
		q.Refine(f, status, header, body)
	}
	if f.Class == model.Final {
		f.Advice = advice
	}
	return f
}

// ClassOf returns the class of a status where nothing else is known.
func ClassOf(status int) model.Class {
	switch status {
	case http.StatusPaymentRequired:
		return model.Money
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly:
		return model.Retry
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return model.Busy
	}
	if status >= 500 {
		return model.Retry
	}
	return model.Final
}

// Name sets the code of a failure, if it is a word and not the key: it is shown, recorded and counted as it is.
func (q Request) Name(f *model.Failure, code string) {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-"
	key := q.Target.Key.Reveal()
	if code != "" && len(code) <= maxCode && strings.Trim(code, letters) == "" && (key == "" || !strings.Contains(code, key)) {
		f.Code = code
	}
}

// Quote adds the endpoint's own words to a failure: short, printable, on one line, and without the key.
func (q Request) Quote(f *model.Failure, words string) {
	if key := q.Target.Key.Reveal(); key != "" {
		words = strings.ReplaceAll(words, key, "[secret]")
	}
	words = strings.Join(strings.FieldsFunc(words, func(r rune) bool { return !unicode.IsPrint(r) || unicode.IsSpace(r) }), " ")
	if len(words) > maxQuote {
		words = strings.ToValidUTF8(words[:maxQuote], "") + "..."
	}
	if words != "" {
		f.Message += `: "` + words + `"`
	}
}

// overflows are the words by which servers without a code say that a request does not fit.
var overflows = [...]string{"context length", "context_length", "maximum context", "context window", "prompt is too long", "context size",
	"input is too long", "too many tokens in"}

// Overflows reports whether the words of an error say that the request does not fit into the window.
func Overflows(words string) bool {
	words = strings.ToLower(words)
	for _, o := range overflows {
		if strings.Contains(words, o) {
			return true
		}
	}
	return false
}

// after returns how long the endpoint asks to wait: seconds, or a date that is compared with the endpoint's own.
func after(header http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	text := header.Get("Retry-After")
	if s, err := strconv.ParseFloat(text, 64); err == nil {
		if s > 0 && s < 1e9 {
			return time.Duration(s * float64(time.Second))
		}
		return 0
	}
	until, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return 0
	}
	return max(until.Sub(now), 0)
}
