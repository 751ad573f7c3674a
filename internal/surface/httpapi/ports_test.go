package httpapi_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentbox/internal/app"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/testkit"
	"agentbox/internal/testkit/wall"
)

// portServer is a program that serves on two ports as a hostile or a clumsy one would: it echoes what it got, streams, is slow, dies in the
// middle, and answers with headers that reach beyond its page.
const portServer = `
import asyncio, base64, hashlib, json
seen = []
async def head(r):
    raw = await r.readuntil(b"\r\n\r\n")
    lines = raw.decode("latin1").split("\r\n")
    return lines[0].split(" "), [l.split(": ", 1) for l in lines[1:] if l]
async def answer(r, w):
    try:
        (method, path, _), headers = await head(r)
    except Exception:
        return w.close()
    get = {k.lower(): v for k, v in headers}
    seen.append(path)
    if path == "/hasty":
        w.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhasty"); await w.drain(); await r.read(); return w.close()
    body = b""
    if "content-length" in get: body = await r.readexactly(int(get["content-length"]))
    if get.get("transfer-encoding") == "chunked":
        while (n := int(await r.readline(), 16)): body += await r.readexactly(n); await r.readexactly(2)
        await r.readline()
    def say(status, extra, text): w.write(("HTTP/1.1 %s\r\n%s\r\n" % (status, extra)).encode("latin1") + text)
    if path.startswith("/echo"):
        text = json.dumps({"method": method, "path": path, "headers": headers, "body": body.decode()}).encode()
        say("200 OK", "Content-Type: application/json\r\nContent-Length: %d\r\n" % len(text), text)
    elif path == "/seen":
        text = json.dumps(seen).encode()
        say("200 OK", "Content-Length: %d\r\n" % len(text), text)
    elif path == "/names":
        say("200 OK", "X Y: 1\r\nX-Good: 1\r\nX-Agentbox-Own: 1\r\nContent-Length: 0\r\n", b"")
    elif path == "/mixed":
        say("200 OK", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", b"2\r\nok\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nforged")
    elif path == "/twice":
        say("200 OK", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"0\r\n\r\n")
    elif path == "/big":
        say("200 OK", "Content-Length: %d\r\n" % (100 << 20), b"")
        for i in range(100): w.write(b"b" * (1 << 20)); await w.drain()
    elif path == "/headers":
        say("200 OK", "Set-Cookie: a=1; Domain=localhost; Path=/\r\nSet-Cookie: agentbox_preview=stolen\r\nClear-Site-Data: *\r\n"
            "Strict-Transport-Security: max-age=9\r\nAlt-Svc: h3\r\nContent-Security-Policy: img-src 'none'\r\n"
            "Connection: X-Hop\r\nX-Hop: 1\r\n"
            "Content-Length: 2\r\n", b"ok" + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
    elif path == "/move":
        say("302 Found", "Location: http://localhost:8080/echo?x=1\r\nContent-Length: 0\r\n", b"")
    elif path == "/events":
        say("200 OK", "Content-Type: text/event-stream\r\n", b"")
        for i in range(3):
            w.write(b"data: %d\n\n" % i); await w.drain(); await r.read(0)
        await asyncio.Event().wait()
    elif path == "/half":
        say("200 OK", "Content-Length: 100\r\n", b"half")
    elif path == "/huge":
        say("200 OK", "X-Huge: " + "h" * (70 << 10) + "\r\nContent-Length: 0\r\n", b"")
    elif path == "/talk":
        w.write(b"SSH-2.0-nothing\r\n")
    elif path == "/silent":
        await asyncio.Event().wait()
    elif path == "/early":
        w.write(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"); say("200 OK", "Content-Length: 4\r\n", b"late")
    elif path == "/switch":
        say("101 Switching Protocols", "Upgrade: other\r\nConnection: Upgrade\r\n", b"")
    elif path == "/ws":
        key = base64.b64encode(hashlib.sha1((get["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()
        say("101 Switching Protocols", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n" % key, b"")
        while (b := await r.read(4096)): w.write(b); await w.drain()
    else:
        say("404 Not Found", "Content-Length: 0\r\n", b"")
    try: await w.drain()
    except Exception: pass
    w.close()
async def main():
    await asyncio.start_server(answer, "127.0.0.1", 8080)
    print("listening", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
`

// ported is a daemon with a space in which portServer listens on 8080.
type ported struct {
	*daemon
	t     *testing.T
	space string
	host  string // of the daemon
}

func startPorts(t *testing.T, policy string) *ported {
	t.Helper()
	p := &ported{daemon: startDaemon(t, func(c *app.Config) { c.Light = &testkit.Light{} }), t: t}
	p.host = strings.TrimPrefix(p.address, "http://")
	p.space = p.must(t, "POST", "/v1/spaces", `{"runtime":"heavy","best_effort":true`+policy+`}`, "id")
	p.put("server.py", portServer)
	p.must(t, "POST", "/v1/spaces/"+p.space+"/runs", `{"protocolVersion":"1.0","background":true,"operations":[`+
		`{"type":"shell","command":"python3 server.py"}]}`, "")
	for deadline := time.Now().Add(60 * time.Second); ; {
		_, raw := p.ask(t, "", "GET", "/v1/spaces/"+p.space+"/ports", "")
		if strings.Contains(string(raw), `"port":8080`) {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("nothing listens: %s", raw)
		}
	}
}

func (p *ported) put(name, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), "PUT", p.address+"/v1/spaces/"+p.space+"/files/"+name, strings.NewReader(text))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.keys[""])
	r.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		p.t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
}

// preview is an address of the port.
type preview struct {
	URL, Host, Token string
	PathURL          string    `json:"path_url"`
	ExpiresAt        time.Time `json:"expires_at"`
}

func (p *ported) preview(body string) (v preview) {
	p.t.Helper()
	status, raw := p.ask(p.t, "", "POST", "/v1/spaces/"+p.space+"/ports/8080/preview", body)
	if err := json.Unmarshal(raw, &v); err != nil || status != http.StatusOK {
		p.t.Fatalf("preview: %d %s", status, raw)
	}
	return v
}

// send sends a request to the daemon as it is; headers are name, value, name, value.
func (p *ported) send(method, host, path, body string, headers ...string) (*http.Response, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.address+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Host = host
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		p.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return resp, string(raw) + " BROKEN"
	}
	return resp, string(raw)
}

// echoed is what the program got.
type echoed struct {
	Method, Path, Body string
	Headers            [][2]string
}

func (e echoed) get(name string) string {
	for _, h := range e.Headers {
		if strings.EqualFold(h[0], name) {
			return h[1]
		}
	}
	return ""
}

func read(t *testing.T, text string) (e echoed) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return e
}

// TestPortWithAKey sends requests to a port with the key of the API.
func TestPortWithAKey(t *testing.T) {
	p := startPorts(t, "")
	at := "/v1/spaces/" + p.space + "/ports/8080/proxy"
	auth := []string{"Authorization", "Bearer " + p.keys[""]}
	resp, text := p.send("POST", p.host, at+"/echo/a%2Fb/?x=1&x=2", "hello", append(auth, "Cookie", "session=1", "X-Own", "kept",
		"Connection", "X-Drop", "X-Drop", "1", "X-Forwarded-For", "10.0.0.1")...)
	e := read(t, text)
	if resp.StatusCode != 200 || e.Method != "POST" || e.Path != "/echo/a%2Fb/?x=1&x=2" || e.Body != "hello" ||
		e.get("Host") != "localhost:8080" || e.get("X-Own") != "kept" {
		t.Errorf("%d %+v", resp.StatusCode, e)
	}
	for _, name := range []string{"Authorization", "Cookie", "X-Drop", "X-Forwarded-For"} {
		if e.get(name) != "" {
			t.Errorf("the program got %s: %q", name, e.get(name))
		}
	}
	for _, method := range []string{"GET", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"} {
		if resp, text := p.send(method, p.host, at+"/echo", "", auth...); resp.StatusCode != 200 || read(t, text).Method != method {
			t.Errorf("%s: %d %s", method, resp.StatusCode, text)
		}
	}
	resp, text = p.send("GET", p.host, at+"/headers", "", auth...)
	if text != "ok" || resp.Header.Get("Content-Security-Policy") != "default-src 'none'; frame-ancestors 'none'; sandbox" {
		t.Errorf("%q %v", text, resp.Header)
	}
	for _, name := range []string{"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Alt-Svc", "X-Hop"} {
		if v := resp.Header.Values(name); len(v) > 0 {
			t.Errorf("the answer has %s: %q", name, v)
		}
	}
	if resp, _ = p.send("GET", p.host, at+"/move", "", auth...); resp.Header.Get("Location") != at+"/echo?x=1" {
		t.Errorf("moved to %q", resp.Header.Get("Location"))
	}
	if resp, text = p.send("GET", p.host, at+"/early", "", auth...); resp.StatusCode != 200 || text != "late" {
		t.Errorf("after early hints: %d %q", resp.StatusCode, text)
	}
	if _, text = p.send("GET", p.host, at+"/half", "", auth...); text != "half BROKEN" {
		t.Errorf("an answer that breaks off: %q", text)
	}
	daemon := p.host[strings.LastIndex(p.host, ":")+1:]
	for _, c := range []struct {
		port, path string
		status     int
		code       string
	}{
		{"8080", "/huge", 502, "port_bad_answer"}, {"8080", "/talk", 502, "port_bad_answer"}, {"8080", "/switch", 502, "port_bad_answer"},
		{"8081", "/", 502, "port_not_listening"}, {daemon, "/v1/spaces", 502, "port_not_listening"},
		{"0", "/", 400, "invalid_port"}, {"65536", "/", 400, "invalid_port"}, {"+80", "/", 400, "invalid_port"}, {"x", "/", 400, "invalid_port"},
	} {
		resp, text := p.send("GET", p.host, "/v1/spaces/"+p.space+"/ports/"+c.port+"/proxy"+c.path, "", auth...)
		if resp.StatusCode != c.status || code([]byte(text)) != c.code {
			t.Errorf("port %s%s: got %d %s, want %d %s", c.port, c.path, resp.StatusCode, text, c.status, c.code)
		}
	}
	if resp, _ = p.send("GET", p.host, at+"/echo", ""); resp.StatusCode != 401 {
		t.Errorf("without a key: %d", resp.StatusCode)
	}
	if resp, text = p.send("GET", p.host, at+"/echo", "", "Authorization", "Bearer "+p.key(t, "other")); resp.StatusCode != 404 {
		t.Errorf("with the key of another workspace: %d %s", resp.StatusCode, text)
	}
	if resp, text = p.send("GET", p.host, at+"/echo", "", "Authorization", "Bearer "+p.key(t, "viewer-vera")); resp.StatusCode != 403 {
		t.Errorf("with the key of a viewer: %d %s", resp.StatusCode, text)
	}
}

// TestPreviewAtItsHost opens the address of a port as a browser does.
func TestPreviewAtItsHost(t *testing.T) {
	p := startPorts(t, "")
	v := p.preview(`{"ttl_seconds":3600}`)
	u, err := url.Parse(v.URL)
	if err != nil || u.Host != v.Host || !strings.HasPrefix(v.Host, "8080-spc-") || !strings.Contains(v.Host, ".localhost:") {
		t.Fatalf("%+v, %v", v, err)
	}
	resp, _ := p.send("GET", v.Host, "/echo?a=1&"+u.RawQuery, "")
	if resp.StatusCode != 303 || resp.Header.Get("Location") != "/echo?a=1" || len(resp.Cookies()) != 1 {
		t.Fatalf("the first request: %d %v", resp.StatusCode, resp.Header)
	}
	c := resp.Cookies()[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Domain != "" || c.Path != "/" {
		t.Errorf("the cookie is %v", c)
	}
	cookie := c.Name + "=" + c.Value
	_, text := p.send("GET", v.Host, "/echo?a=1", "", "Cookie", "own=2; "+cookie, "Origin", "http://"+v.Host, "Authorization", "Basic own",
		"Referer", "http://"+v.Host+"/x")
	e := read(t, text)
	for name, want := range map[string]string{"Cookie": "own=2", "Origin": "http://localhost:8080", "Authorization": "Basic own",
		"Referer": "http://localhost:8080/x", "X-Forwarded-Host": v.Host} {
		if e.get(name) != want {
			t.Errorf("the program got %s %q, want %q", name, e.get(name), want)
		}
	}
	_, text = p.send("GET", v.Host, "/echo", "", "Cookie", cookie, "Authorization", "Bearer "+p.keys[""])
	if read(t, text).get("Authorization") != "" {
		t.Error("the program got a key of the daemon")
	}
	resp, _ = p.send("GET", v.Host, "/headers", "", "Cookie", cookie)
	if got := resp.Header.Values("Set-Cookie"); len(got) != 1 || got[0] != "a=1; Path=/" {
		t.Errorf("the cookies of the program: %q", got)
	}
	if csp := strings.Join(resp.Header.Values("Content-Security-Policy"), "|"); !strings.Contains(csp, "default-src 'self'") ||
		!strings.Contains(csp, "img-src 'none'") {
		t.Errorf("the page may %s", csp)
	}
	if resp, _ = p.send("GET", v.Host, "/move", "", "Cookie", cookie); resp.Header.Get("Location") != "/echo?x=1" {
		t.Errorf("moved to %q", resp.Header.Get("Location"))
	}
	// Its path is the program's, also where the API has an operation.
	if resp, text = p.send("GET", v.Host, "/v1/spaces", "", "Cookie", cookie, "Authorization", "Bearer "+p.keys[""]); resp.StatusCode != 404 ||
		text != "" {
		t.Errorf("the API at the host of a preview: %d %q", resp.StatusCode, text)
	}
	if resp, text = p.send("GET", v.Host, "/echo", "", "X-Preview-Token", v.Token); resp.StatusCode != 200 {
		t.Errorf("with the header: %d %s", resp.StatusCode, text)
	}
	other := strings.Replace(v.Host, "8080-", "8081-", 1)
	forged := v.Token[:len(v.Token)-2] + "AA"
	for name, c := range map[string]struct {
		host, token string
		status      int
		code        string
	}{
		"no secret":           {v.Host, "", 401, "unauthenticated"},
		"a forged signature":  {v.Host, forged, 403, "preview_invalid"},
		"for another port":    {other, v.Token, 403, "preview_invalid"},
		"no form":             {v.Host, "x", 403, "preview_invalid"},
		"of another daemon":   {v.Host, "xps_01M7YNAYM0SMK245AEDNVB5CNW.zzzzzzzzzzzz.AAAA", 403, "preview_closed"},
		"whose time is over":  {v.Host, "xps_01M7YNAYM0SMK245AEDNVB5CNW.1.AAAA", 403, "preview_expired"},
		"no port in the host": {"evil.localhost", v.Token, 404, "preview_not_found"},
		"DNS rebinding":       {"evil.example", v.Token, 421, "misdirected_request"},
	} {
		resp, text := p.send("GET", c.host, "/echo", "", "X-Preview-Token", c.token)
		if resp.StatusCode != c.status || code([]byte(text)) != c.code {
			t.Errorf("%s: got %d %s, want %d %s", name, resp.StatusCode, text, c.status, c.code)
		}
	}
	resp, text = p.send("POST", v.Host, "/echo", "", "Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors")
	if resp.StatusCode != 403 {
		t.Errorf("a page of another site: %d %s", resp.StatusCode, text)
	}
	resp, text = p.send("GET", p.host, "/v1/spaces", "", "Authorization", "Bearer "+p.keys[""], "Origin", "http://"+v.Host)
	if resp.StatusCode != 403 {
		t.Errorf("a page of a preview at the API: %d %s", resp.StatusCode, text)
	}
}

// TestPreviewBelowAPath opens the address of a port below the host of the daemon.
func TestPreviewBelowAPath(t *testing.T) {
	p := startPorts(t, "")
	v := p.preview(`{"external":true}`)
	path := strings.TrimPrefix(v.PathURL, p.address)
	resp, text := p.send("GET", p.host, path+"echo?q=%20", "", "Cookie", "console=1")
	if e := read(t, text); e.Path != "/echo?q=%20" || e.get("Cookie") != "" || strings.Contains(text, v.Token) {
		t.Errorf("the program got %s", text)
	}
	if csp := resp.Header.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "sandbox ") || strings.Contains(csp, "same-origin") {
		t.Errorf("the page has an origin: %q", csp)
	}
	if resp, _ = p.send("GET", p.host, path+"headers", ""); len(resp.Header.Values("Set-Cookie")) > 0 {
		t.Errorf("the page sets cookies of the daemon: %v", resp.Header)
	}
	if resp, _ = p.send("GET", "evil.example", path+"echo", ""); resp.StatusCode != 421 {
		t.Errorf("another host: %d", resp.StatusCode)
	}
	// The refusal comes before the body is read, so that a client that sends the body first may lose it.
	c, err := net.Dial("tcp", p.host)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "POST %secho HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", path, p.host, 64<<20+1); err != nil {
		t.Fatal(err)
	}
	if resp, err = http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != 413 {
		t.Errorf("a body that is too long: %v, %v", resp, err)
	}
}

// stream opens a connection to the host of a preview and sends the head of a request.
func (p *ported) stream(v preview, path string, headers string) (net.Conn, *bufio.Reader) {
	p.t.Helper()
	c, err := net.Dial("tcp", p.host)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(60 * time.Second))
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nX-Preview-Token: %s\r\n%s\r\n", path, v.Host, v.Token, headers)
	return c, bufio.NewReader(c)
}

// TestStreamsOfAPort passes a WebSocket and an event stream, and ends both with what they belong to.
func TestStreamsOfAPort(t *testing.T) {
	p := startPorts(t, "")
	in := "/v1/spaces/" + p.space
	const socket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	open := func(v preview) (*bufio.Reader, *bufio.Reader) {
		t.Helper()
		c, ws := p.stream(v, "/ws", socket)
		resp, err := http.ReadResponse(ws, nil)
		if err != nil || resp.StatusCode != 101 || resp.Header.Get("Sec-Websocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
			t.Fatalf("%v %v", resp, err)
		}
		fmt.Fprint(c, "to and fro")
		if got, err := ws.Peek(10); err != nil || string(got) != "to and fro" {
			t.Fatalf("%q %v", got, err)
		}
		_, _ = ws.Discard(10)
		_, sse := p.stream(v, "/events", "")
		if resp, err = http.ReadResponse(sse, nil); err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%v %v", resp, err)
		}
		lines := bufio.NewReader(resp.Body)
		for i := range 3 {
			if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintf("data: %d\n", i) {
				t.Fatalf("%q %v", line, err)
			}
			_, _ = lines.ReadString('\n')
		}
		return ws, lines
	}
	ends := map[string]func(v preview){
		"the pause":              func(preview) { p.must(t, "POST", in+"/pause", `{}`, "") },
		"the kill switch":        func(preview) { p.must(t, "PUT", "/v1/kill-switch", `{"on":true,"reason":"a test"}`, "") },
		"closing the port":       func(preview) { p.must(t, "DELETE", in+"/ports/8080", "", "") },
		"the end of the address": func(preview) {},
		"the end of the space":   func(preview) { p.must(t, "DELETE", in, "", "") },
	}
	reasons := map[string]string{"the kill switch": "kill_switch", "closing the port": "requested", "the end of the address": "expired",
		"the end of the space": "space_ended"}
	for _, name := range []string{"the pause", "closing the port", "the end of the address", "the kill switch", "the end of the space"} {
		body := `{}`
		if name == "the end of the address" {
			body = `{"ttl_seconds":10}`
		}
		if name == "the end of the space" { // its processes ended with the kill switch; the port of one that does not listen is open too
			v := p.preview(body)
			ends[name](v)
			if resp, _ := p.send("GET", p.host, strings.TrimPrefix(v.PathURL, p.address), ""); resp.StatusCode != 403 {
				t.Errorf("after %s: %d", name, resp.StatusCode)
			}
		} else {
			v := p.preview(body)
			ws, sse := open(v)
			ends[name](v)
			if got, err := ws.ReadByte(); err == nil {
				t.Errorf("after %s the WebSocket says %d", name, got)
			}
			if got, err := sse.ReadByte(); err == nil {
				t.Errorf("after %s the stream says %d", name, got)
			}
			resp, text := p.send("GET", v.Host, "/echo", "", "X-Preview-Token", v.Token)
			if resp.StatusCode < 400 {
				t.Errorf("after %s: %d %s", name, resp.StatusCode, text)
			}
		}
		switch name {
		case "the pause":
			p.must(t, "POST", in+"/resume", `{}`, "")
		case "the kill switch":
			p.closedWith(reasons[name])
			p.must(t, "PUT", "/v1/kill-switch", `{"on":false,"reason":"a test"}`, "")
		}
		if want := reasons[name]; want != "" && name != "the kill switch" {
			p.closedWith(want)
		}
	}
}

// closedWith waits until the log says that a port was closed for a reason.
func (p *ported) closedWith(reason string) {
	p.t.Helper()
	for e, err := range journal.Tail(p.t.Context(), p.app.Log, journal.Query{Workspace: id.DefaultWorkspace, Types: []string{
		space.EventPortClosed}}) {
		if err != nil {
			p.t.Fatal(err)
		}
		d, err := event.Decode[space.PortClosed](e)
		if err != nil {
			p.t.Fatal(err)
		}
		if d.Reason == reason {
			if e.Causation == "" {
				p.t.Errorf("the event of %s has no cause", reason)
			}
			return
		}
	}
}

// TestPortIsJudged holds that a port opens as policy says: it asks, or refuses.
func TestPortIsJudged(t *testing.T) {
	p := startPorts(t, `,"policy_overrides":{"ask":{"actions":["port.expose"]}}`)
	at := "/v1/spaces/" + p.space + "/ports/8080/proxy/echo"
	status, raw := p.ask(t, "", "GET", at, "")
	var asked struct {
		Approval string `json:"approval_id"`
	}
	if err := json.Unmarshal(raw, &asked); err != nil || status < 400 || asked.Approval == "" {
		t.Fatalf("%d %s", status, raw)
	}
	p.decide(t, asked.Approval, `{"decision":"approve","reason":"a test"}`)
	for range 2 { // the second is a request at the port that is open
		if status, raw = p.ask(t, "", "GET", at, ""); status != 200 {
			t.Fatalf("after the approval: %d %s", status, raw)
		}
	}
	closed := p.must(t, "POST", "/v1/spaces", `{"runtime":"heavy","best_effort":true,"policy_overrides":{"deny":{"actions":["port.expose"]}}}`,
		"id")
	if status, raw = p.ask(t, "", "GET", "/v1/spaces/"+closed+"/ports/8080/proxy/", ""); status != 403 || code(raw) == "" {
		t.Errorf("under a policy that refuses: %d %s", status, raw)
	}
	nano := p.must(t, "POST", "/v1/spaces", `{"runtime":"nano"}`, "id")
	for _, path := range []string{"/ports", "/ports/8080/proxy/"} {
		if status, raw = p.ask(t, "", "GET", "/v1/spaces/"+nano+path, ""); status != 409 || code(raw) != "ports_not_here" {
			t.Errorf("%s of a nano space: %d %s", path, status, raw)
		}
	}
}

// TestPortOfE2B reaches a port by the host that the packages of E2B name, with the sandbox's token.
func TestPortOfE2B(t *testing.T) {
	p := startPorts(t, "")
	r, err := http.NewRequestWithContext(t.Context(), "POST", p.address+"/e2b/sandboxes/"+p.space+"/connect", strings.NewReader(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Api-Key", p.keys[""])
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var sandbox struct{ Domain, TrafficAccessToken string }
	if err := json.NewDecoder(resp.Body).Decode(&sandbox); err != nil || !strings.HasPrefix(sandbox.Domain, "localhost:") {
		t.Fatalf("%+v %v", sandbox, err)
	}
	host := "8080-" + p.space + "." + sandbox.Domain
	token := sandbox.TrafficAccessToken
	answer, text := p.send("POST", host, "/echo//a?b", "x", "E2b-Traffic-Access-Token", token, "Authorization", "Basic own")
	if answer.StatusCode == 200 {
		if e := read(t, text); e.Path != "/echo//a?b" || e.get("Authorization") != "Basic own" || strings.Contains(text, token) {
			t.Errorf("the program got %s", text)
		}
	} else {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	if answer, text = p.send("GET", host, "/echo", "", "E2b-Traffic-Access-Token", "agentbox_AAAA"); answer.StatusCode != 403 {
		t.Errorf("another token: %d %s", answer.StatusCode, text)
	}
}

// raw sends bytes to the daemon and returns everything that it answers until it closes the connection.
func (p *ported) raw(text string) string {
	p.t.Helper()
	c, err := net.Dial("tcp", p.host)
	if err != nil {
		p.t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(wall.Patience))
	if _, err := io.WriteString(c, text); err != nil {
		p.t.Fatal(err)
	}
	all, err := io.ReadAll(c)
	if err != nil && len(all) == 0 {
		p.t.Fatal(err)
	}
	return string(all)
}
