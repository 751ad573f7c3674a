package httpapi_test

import (
	"archive/zip"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentbox/internal/app"
	"agentbox/internal/domain/id"
	"agentbox/internal/surface/httpapi/wire"
)

// busyRates let a test ask as often as it likes.
func busyRates(c *app.Config) {
	c.Rates = wire.DefaultRates()
	c.Rates.Spaces, c.Rates.Runs, c.Rates.Files, c.Rates.Claims, c.Rates.General = 1_000_000, 1_000_000, 1_000_000, 1_000_000, 1_000_000
}

// zipped packs entries: a name that ends in @ is a link to its content.
func zipped(t *testing.T, entries ...[2]string) []byte {
	t.Helper()
	var raw bytes.Buffer
	w := zip.NewWriter(&raw)
	for _, e := range entries {
		h := &zip.FileHeader{Name: strings.TrimSuffix(e[0], "@"), Method: zip.Deflate}
		if h.SetMode(0o644); h.Name != e[0] {
			h.SetMode(os.ModeSymlink | 0o777)
		}
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, e[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return raw.Bytes()
}

// TestThreat33ArchivesOverTheAPI sends archives from which no space may be made; each is refused with its reason, nothing of it is left,
// and one that is in order can be made behind it. That what is refused is not held in memory is shown where archives are unpacked.
func TestThreat33ArchivesOverTheAPI(t *testing.T) {
	d := startDaemon(t, busyRates)
	zeros := strings.Repeat("\x00", 16<<20)
	many := make([][2]string, 50_001)
	for i := range many {
		many[i][0] = fmt.Sprint(i)
	}
	inner := zipped(t, [2]string{"zeros", zeros})
	for _, c := range []struct {
		name    string
		archive []byte
		status  int
		code    string
	}{
		{"a bomb", zipped(t, [2]string{"zeros", zeros}), 413, "archive_too_large"},
		{"too many entries", zipped(t, many...), 413, "archive_too_large"},
		{"a name that leads up", zipped(t, [2]string{"a/../../f", "x"}), 400, "archive_invalid"},
		{"an absolute name", zipped(t, [2]string{"/etc/cron.d/f", "x"}), 400, "archive_invalid"},
		{"a link out", zipped(t, [2]string{"l@", "/etc/passwd"}), 400, "archive_invalid"},
		{"a link up", zipped(t, [2]string{"l@", "../../.."}), 400, "archive_invalid"},
		{"through a link", zipped(t, [2]string{"real/f", "x"}, [2]string{"l@", "real"}, [2]string{"l/g", "x"}), 400, "archive_invalid"},
		{"the same name twice", zipped(t, [2]string{"f", "x"}, [2]string{"f", "y"}), 400, "archive_invalid"},
		{"a name nested too deep", zipped(t, [2]string{strings.Repeat("d/", 200) + "f", "x"}), 400, "archive_invalid"},
		{"cut off", zipped(t, [2]string{"f", strings.Repeat("abc", 1000)})[:60], 400, "archive_invalid"},
		{"no archive", []byte("no archive at all"), 400, "archive_invalid"},
		// An archive within an archive is a file like any other: nobody unpacks it.
		{"a bomb in an archive", zipped(t, [2]string{"inner.zip", string(inner)}), 201, `"status":"ready"`},
		{"in order", zipped(t, [2]string{"a/f", "x"}), 201, `"status":"ready"`},
	} {
		body, err := json.Marshal(map[string]any{"from": map[string]string{"archive": base64.StdEncoding.EncodeToString(c.archive)}})
		if err != nil {
			t.Fatal(err)
		}
		if status, _, got := d.keyed(t, "POST", "/v1/spaces", "application/json", "", string(body)); status != c.status || !strings.Contains(got,
			c.code) {
			t.Errorf("%s: %d %.300s, want %d %s", c.name, status, got, c.status, c.code)
		}
	}
	for _, wrong := range []string{"@@@@", "YQ", "YQ=", "Y\\nQ=="} { // what is not base64 is none of an archive
		if status, _, got := d.keyed(t, "POST", "/v1/spaces", "application/json", "", `{"from":{"archive":"`+wrong+`"}}`); status != 400 {
			t.Errorf("%q as base64: %d %s", wrong, status, got)
		}
	}
	left, err := filepath.Glob(filepath.Join(d.app.Config.DataDir, "spaces", "spc_*"))
	if err != nil || len(left) != 2 {
		t.Errorf("%d spaces have files (%v), want the two that were made", len(left), err)
	}
}

// TestThreat33MultipartBodiesThatLie uploads bodies with false statements about themselves. A part that is in order is taken, another one
// is refused with its reason, and nothing appears outside of the folder.
func TestThreat33MultipartBodiesThatLie(t *testing.T) {
	d := startDaemon(t, busyRates)
	var made struct {
		ID string `json:"id"`
	}
	d.succeed(t, "POST", "/v1/spaces", `{}`, &made)
	part := func(disposition, text string) string {
		return "--cut\r\nContent-Disposition: " + disposition + "\r\n\r\n" + text + "\r\n"
	}
	file := func(name string) string { return part(`form-data; name="f"; filename="`+name+`"`, "x") }
	const end = "--cut--\r\n"
	many := ""
	for i := range 101 {
		many += file(fmt.Sprint("many/", i))
	}
	for _, c := range []struct {
		name, media, body string
		status            int
		says              string
	}{
		{"in order", "", file("ok") + end, 201, `"ok":true`},
		{"a name that leads up", "", file("../up") + end, 200, "invalid_path"},
		{"an absolute name", "", file("/etc/passwd") + end, 200, "invalid_path"},
		{"a name with a NUL", "", file("a\x00b") + end, 400, ""},
		{"a name with a backslash", "", file(`..\\up`) + end, 200, "invalid_path"},
		{"an encoded name that leads up", "", part(`form-data; name="f"; filename*=UTF-8''..%2f..%2fup`, "x") + end, 200, "invalid_path"},
		{"two names", "", part(`form-data; name="f"; filename="ok"; filename="../up"`, "x") + end, 400, "invalid_part"},
		{"no name", "", part(`form-data; name="f"`, "x") + end, 400, "invalid_part"},
		{"an empty name", "", part(`form-data; name="f"; filename=""`, "x") + end, 400, "invalid_part"},
		{"no disposition", "", "--cut\r\n\r\nx\r\n" + end, 400, "invalid_part"},
		{"the same file twice", "", file("twice") + file("twice") + end, 200, "file_exists"},
		{"no end", "", file("ok2") + "--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"half\"\r\n\r\nhalf of it", 400,
			"body_unreadable"},
		{"no part", "", end, 400, "missing_body"},
		{"no body", "", "", 400, "missing_body"},
		{"another boundary", "multipart/form-data; boundary=other", file("ok3") + end, 400, "missing_body"},
		{"no boundary", "multipart/form-data", file("ok4") + end, 415, "unsupported_media_type"},
		{"no multipart", "application/json", `{}`, 415, "unsupported_media_type"},
		{"a header without end", "", "--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"long\"\r\nX: " + strings.Repeat("a",
			11<<20) + "\r\n\r\nx\r\n" + end, 400, "body_unreadable"},
		{"too many parts", "", many + end, 429, "too_many_files"},
		{"compressed in its words only", "",
			"--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"plain\"\r\nContent-Transfer-Encoding: base64\r\n\r\neA==\r\n" + end,
			201, `"size_bytes":4`},
	} {
		media := c.media
		if media == "" {
			media = "multipart/form-data; boundary=cut"
		}
		status, _, got := d.keyed(t, "POST", "/v1/spaces/"+made.ID+"/files?path=in", media, "", c.body)
		if status != c.status || !strings.Contains(got, c.says) {
			t.Errorf("%s: %d %.300s, want %d %s", c.name, status, got, c.status, c.says)
		}
	}
	// A length that is more than what comes: the sender goes away, and half a file is none.
	conn, err := net.Dial("tcp", strings.TrimPrefix(d.address, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /v1/spaces/%s/files HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: "+
		"multipart/form-data; boundary=cut\r\nContent-Length: 1000000\r\n\r\n%s",
		made.ID, d.keys[""], file("whole")+"--cut\r\nContent-Disposition: form-data; name=\"f\"; filename=\"half\"\r\n\r\nhalf of it")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err = errors.Join(err, conn.Close()); err != nil || !strings.Contains(string(answer), "body_unreadable") {
		t.Errorf("a body that is cut off: %v %s", err, answer)
	}
	names := d.listing(t, made.ID)
	if strings.Contains(names, "half") || strings.Contains(names, "up\n") || !strings.Contains(names, "whole\n") || strings.Contains(names,
		"in/long") {
		t.Errorf("the space holds\n%s", names)
	}
	outside, err := filepath.Glob(filepath.Join(d.app.Config.DataDir, "spaces", made.ID, "*"))
	if err != nil || len(outside) != 3 { // files, snapshots and staging
		t.Errorf("beside the files there is %v, %v", outside, err)
	}
}

// listing returns the names of all files of a space, one per line.
func (d *daemon) listing(t *testing.T, space string) string {
	t.Helper()
	var found struct {
		Entries []struct {
			Path string `json:"path"`
		} `json:"entries"`
	}
	d.succeed(t, "GET", "/v1/spaces/"+space+"/files?recursive=true", "", &found)
	var b strings.Builder
	for _, e := range found.Entries {
		b.WriteString(e.Path + "\n")
	}
	return b.String()
}

// TestThreat18PathsSwappedDuringRequests lets a command in a space swap a folder with a link to a folder of the host, as fast as it can,
// while the API reads, writes, lists, packs and deletes under that name. In every order, nothing of the host is read or changed.
func TestThreat18PathsSwappedDuringRequests(t *testing.T) {
	d := startDaemon(t, busyRates)
	host := t.TempDir()
	for dir := host; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) { // nothing but the daemon's care is in the way
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	secret := map[string]string{"f": "SECRET of the host", "victim": "SECRET that stays"}
	for name, text := range secret {
		if err := os.WriteFile(filepath.Join(host, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var made struct {
		ID string `json:"id"`
	}
	d.succeed(t, "POST", "/v1/spaces", `{"policy":"permissive"}`, &made)
	// The policy reads commands, not programs. This tests the effects of a program on paths.
	program := "mkdir real; echo inside > real/f; ln -s " + host + " link; i=0\n" +
		"aside() { i=$((i+1)); mv -T d aside-$i; }\n" + // what a request has made meanwhile
		"while :; do mv -T real d && mv -T d real || aside; mv -T link d && mv -T d link || aside; done 2>/dev/null\n"
	if status, _, got := d.keyed(t, "PUT", "/v1/spaces/"+made.ID+"/files/swap.sh", "application/octet-stream", "", program); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
	body := `{"protocolVersion":"1.0","wait":0,"operations":[{"type":"shell","command":"bash swap.sh","timeout":300000}]}`
	var run struct {
		ID string `json:"runId"`
	}
	d.succeed(t, "POST", "/v1/spaces/"+made.ID+"/runs", body, &run)
	files := "/v1/spaces/" + made.ID + "/files"
	inside, refused := 0, 0
	for i := 0; inside < 25 || refused < 25; i++ { // until both have won often enough
		if doc, err := d.app.Runs.History.Find(t.Context(), id.DefaultWorkspace, id.Run(run.ID)); err != nil || doc.Status.Ended() {
			t.Fatalf("the swapping ended: %+v, %v", doc, err)
		}
		for _, ask := range []struct{ method, path, body string }{
			{"GET", files + "/d/f", ""}, {"PUT", files + "/d/new", "new"}, {"PUT", files + "/d/deep/er", "new"}, {"DELETE", files + "/d/victim", ""},
			{"GET", files + "?path=d", ""}, {"GET", files + "?recursive=true", ""}, {"GET", files + "/archive?path=d", ""},
			{"GET", files + "/archive", ""},
		} {
			status, _, got := d.swapped(t, ask.method, ask.path, ask.body)
			if strings.Contains(got, "SECRET") || strings.Contains(got, "victim\"") && status == 200 {
				t.Fatalf("%s %s: %d %s", ask.method, ask.path, status, got)
			}
			if status >= 500 {
				t.Errorf("%s %s: %d %s", ask.method, ask.path, status, got)
			}
			if ask.path == files+"/d/f" {
				if status == 200 {
					inside++
				} else {
					refused++
				}
			}
		}
		if t.Failed() {
			break
		}
		if i == 0 { // the command may not have begun to swap
			inside, refused = 0, 0
		}
	}
	d.succeed(t, "POST", "/v1/spaces/"+made.ID+"/runs/"+run.ID+"/cancel", "", nil)
	if _, err := d.app.Runs.History.Wait(t.Context(), id.DefaultWorkspace, id.Run(run.ID)); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(host)
	if err != nil || len(left) != len(secret) {
		t.Errorf("the folder of the host holds %v, %v", left, err)
	}
	for name, text := range secret {
		if got, err := os.ReadFile(filepath.Join(host, name)); err != nil || string(got) != text {
			t.Errorf("%s of the host: %q, %v", name, got, err)
		}
	}
}

// swapped asks about files that are moved meanwhile; a zip file that could not be finished has no end, and what it holds is unpacked.
func (d *daemon) swapped(t *testing.T, method, path, body string) (int, string, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, d.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.keys[""])
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, _ := io.ReadAll(resp.Body) // one that is cut off is judged by what came
	if archive, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw))); err == nil {
		for _, f := range archive.File {
			content, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(content)
			if err != nil {
				t.Fatal(err)
			}
			if err := content.Close(); err != nil {
				t.Fatal(err)
			}
			if f.Mode()&os.ModeSymlink == 0 { // where a link points is not a secret of the host: the space has written it
				raw = append(raw, text...)
			}
		}
	}
	return resp.StatusCode, "", string(raw)
}
