package e2b

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
)

// The folders under which the files of a space are known.
const (
	home      = "/home/user" // E2B's
	workspace = "/workspace" // Agentbox's
)

// locate returns a path relative to the space's files, or an absolute path outside them.
func locate(p string) (at string, inside bool) {
	switch {
	case p == "" || p == "~":
		return ".", true
	case strings.HasPrefix(p, "~/"):
		p = home + p[1:]
	case p[0] != '/':
		p = home + "/" + p
	}
	p = path.Clean(p)
	for _, root := range []string{home, workspace} {
		if p == root {
			return ".", true
		}
		if rest, ok := strings.CutPrefix(p, root+"/"); ok {
			return rest, true
		}
	}
	return p, false
}

// told is the absolute path that the caller meant.
func told(p string) string {
	at, inside := locate(p)
	if !inside || strings.HasPrefix(path.Clean(p), workspace) && p[0] == '/' {
		return path.Clean(p)
	}
	return path.Join(home, at)
}

// inCommand is how a command names a path.
func inCommand(p string) string {
	at, inside := locate(p)
	if inside {
		at = path.Join(workspace, at)
	}
	return quoted(at)
}

// fileURL is the address of a file of the sandbox in /v1.
func (c *caller) fileURL(at string) string {
	parts := strings.Split(at, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/v1/spaces/" + url.PathEscape(c.sandbox) + "/files/" + strings.Join(parts, "/")
}

// held is an entry of a space's files as /v1 tells it.
type held struct {
	Path     string    `json:"path"`
	Type     string    `json:"type"`
	Size     int64     `json:"size_bytes"`
	Mode     string    `json:"mode"`
	Modified time.Time `json:"modified_at"`
	Target   string    `json:"target"`
}

// entry is an entry as E2B tells it.
func (e held) entry(at string) map[string]any {
	kind, letter := "FILE_TYPE_FILE", "-"
	switch e.Type {
	case "directory":
		kind, letter = "FILE_TYPE_DIRECTORY", "d"
	case "symlink":
		kind, letter = "FILE_TYPE_SYMLINK", "l"
	}
	mode, err := strconv.ParseUint(cmp.Or(e.Mode, "0755"), 8, 32)
	if err != nil {
		mode = 0
	}
	out := map[string]any{
		"name": path.Base(at), "type": kind, "path": at, "size": strconv.FormatInt(e.Size, 10), "mode": mode, "permissions": letter + bits(mode),
		"owner": "user", "group": "user", "modifiedTime": stamp(e.Modified),
	}
	if e.Target != "" {
		out["symlinkTarget"] = e.Target
	}
	return out
}

// bits are the permissions of a file as letters.
func bits(mode uint64) string {
	out := []byte("rwxrwxrwx")
	for i := range out {
		if mode&(1<<(8-i)) == 0 {
			out[i] = '-'
		}
	}
	return string(out)
}

// fileSystem reads and writes the files of a sandbox: by /v1 in the space, and by commands outside it.
type fileSystem struct {
	api   api
	clock event.Clock
	ids   *id.Source
}

func (fs *fileSystem) routes(add func(pattern string, h handler)) {
	const calls = "POST /filesystem.Filesystem/"
	add(calls+"Stat", fs.stat)
	add(calls+"ListDir", fs.listDir)
	add(calls+"MakeDir", fs.makeDir)
	add(calls+"Move", fs.move)
	add(calls+"Remove", fs.remove)
	add("GET /files", fs.download)
	add("POST /files", fs.upload)
}

// look returns the entry of a path.
func (fs *fileSystem) look(ctx context.Context, c *caller, p string) (held, error) {
	at, inside := locate(p)
	if !inside {
		found, err := fs.outside(ctx, c, at, 0)
		if err != nil || len(found) == 0 {
			return held{}, cmp.Or(err, error(notFound("there is no file %.200q", p)))
		}
		return found[0], nil
	}
	if at == "." {
		return held{Path: ".", Type: "directory", Mode: "0755", Modified: fs.clock.Now()}, nil
	}
	entries, err := fs.entries(ctx, c, path.Dir(at), false)
	if e, ok := errors.AsType[*refusal](err); ok && (e.Word == "file_not_found" || e.Word == "not_a_directory") {
		return held{}, notFound("there is no file %.200q", p)
	}
	if err != nil {
		return held{}, err
	}
	i := slices.IndexFunc(entries, func(e held) bool { return e.Path == at })
	if i < 0 {
		return held{}, notFound("there is no file %.200q", p)
	}
	return entries[i], nil
}

// entries lists a folder of the space's files.
func (fs *fileSystem) entries(ctx context.Context, c *caller, at string, recursive bool) ([]held, error) {
	var listing struct {
		Entries []held `json:"entries"`
	}
	q := url.Values{"path": {at}, "recursive": {strconv.FormatBool(recursive)}}
	err := fs.api.ask(ctx, c, http.MethodGet, "/v1/spaces/"+url.PathEscape(c.sandbox)+"/files?"+q.Encode(), nil, &listing)
	return listing.Entries, err
}

// outside returns an entry outside the space's files, or with a depth those of a folder there, by a command in the space.
func (fs *fileSystem) outside(ctx context.Context, c *caller, at string, depth int) ([]held, error) {
	from := "0"
	if depth > 0 {
		from = "1"
	}
	out, err := fs.shell(ctx, c, "find "+quoted(at)+" -mindepth "+from+" -maxdepth "+strconv.Itoa(depth)+
		` -printf '%y\t%s\t%m\t%T@\t%l\t%p\n'`)
	if err != nil {
		return nil, err
	}
	found := []held{}
	for line := range strings.SplitSeq(strings.TrimSuffix(string(out), "\n"), "\n") {
		f := strings.SplitN(line, "\t", 6)
		if len(f) < 6 {
			continue
		}
		e := held{Path: f[5], Type: map[string]string{"d": "directory", "l": "symlink"}[f[0]], Mode: "0" + f[2], Target: f[4]}
		e.Size, _ = strconv.ParseInt(f[1], 10, 64)        // of find, which prints numbers
		seconds, _ := strconv.ParseFloat(f[3], 64)        // as above
		e.Modified = time.UnixMilli(int64(seconds * 1e3)) // find prints fractions of a second
		found = append(found, e)
	}
	return found, nil
}

// shell runs a command of the surface's own in the sandbox, judged and recorded as every command, and returns its output.
func (fs *fileSystem) shell(ctx context.Context, c *caller, line string) ([]byte, error) {
	var m struct {
		Run    string   `json:"runId"`
		Events []result `json:"events"`
	}
	err := fs.api.ask(ctx, c, http.MethodPost, "/v1/spaces/"+url.PathEscape(c.sandbox)+"/runs", map[string]any{"protocolVersion": "1.0",
		"operations": []any{operation(line, "", nil)}, "background": true, "wait_seconds": 60}, &m)
	if err != nil {
		return nil, err
	}
	if n := len(m.Events); n == 0 || m.Events[n-1].Type == "approvalRequired" { // nobody waits for the answer: it must not be done later
		_ = fs.api.ask(ctx, c, http.MethodPost, c.runURL(m.Run)+"/cancel", map[string]any{"reason": "the caller did not wait"}, nil)
	}
	if len(m.Events) == 0 {
		return nil, &refusal{Status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the sandbox is busy; try again"}
	}
	last := m.Events[len(m.Events)-1]
	if _, err := last.end(); err != nil {
		return nil, err
	}
	if last.ExitCode == nil || *last.ExitCode != 0 {
		said := ""
		if last.Stderr != nil {
			said = strings.TrimSpace(*last.Stderr)
		}
		if strings.Contains(said, "No such file") || strings.Contains(said, "no such file") {
			return nil, notFound("%s", said)
		}
		return nil, &refusal{Status: http.StatusInternalServerError, Code: "internal", Message: cmp.Or(said,
			"the command of the operation failed")}
	}
	if last.Stdout == nil {
		return nil, nil
	}
	return []byte(*last.Stdout), nil
}

type onePath struct {
	Path  string `json:"path"`
	Depth int    `json:"depth"`
}

func (fs *fileSystem) stat(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q onePath
	if err := read(r, &q); err != nil {
		return err
	}
	return fs.entryOf(w, r, c, q.Path)
}

func (fs *fileSystem) entryOf(w http.ResponseWriter, r *http.Request, c *caller, p string) error {
	e, err := fs.look(r.Context(), c, p)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"entry": e.entry(told(p))})
}

// maxDepth is how deep a listing goes at most.
const maxDepth = 64

func (fs *fileSystem) listDir(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q onePath
	if err := read(r, &q); err != nil {
		return err
	}
	q.Depth = min(max(q.Depth, 1), maxDepth)
	all := []map[string]any{}
	at, inside := locate(q.Path)
	if !inside {
		found, err := fs.outside(r.Context(), c, at, q.Depth)
		if err != nil {
			return err
		}
		for _, e := range found {
			all = append(all, e.entry(e.Path))
		}
		return answer(w, http.StatusOK, map[string]any{"entries": all})
	}
	found, err := fs.entries(r.Context(), c, at, q.Depth > 1)
	if err != nil {
		return err
	}
	for _, e := range found {
		below := e.Path
		if at != "." {
			below = strings.TrimPrefix(e.Path, at+"/")
		}
		if strings.Count(below, "/") < q.Depth {
			all = append(all, e.entry(path.Join(told(q.Path), below)))
		}
	}
	return answer(w, http.StatusOK, map[string]any{"entries": all})
}

func (fs *fileSystem) makeDir(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q onePath
	if err := read(r, &q); err != nil {
		return err
	}
	if e, err := fs.look(r.Context(), c, q.Path); err == nil {
		if e.Type != "directory" {
			return invalid("%.200q is there and is not a folder", q.Path)
		}
		return &refusal{Status: http.StatusConflict, Code: "already_exists", Message: "the folder exists"}
	}
	if _, err := fs.shell(r.Context(), c, "mkdir -p -- "+inCommand(q.Path)); err != nil {
		return err
	}
	return fs.entryOf(w, r, c, q.Path)
}

func (fs *fileSystem) move(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q struct {
		From string `json:"source"`
		To   string `json:"destination"`
	}
	if err := read(r, &q); err != nil {
		return err
	}
	if _, err := fs.look(r.Context(), c, q.From); err != nil {
		return err
	}
	if e, err := fs.look(r.Context(), c, q.To); err == nil && e.Type == "directory" {
		return invalid("%.200q is a folder that is there", q.To)
	}
	to, _ := locate(q.To)
	line := "mv -- " + inCommand(q.From) + " " + inCommand(q.To)
	if dir := path.Dir(to); !there(dir) {
		line = "mkdir -p -- " + inCommand(path.Dir(told(q.To))) + " && " + line
	}
	if _, err := fs.shell(r.Context(), c, line); err != nil {
		return err
	}
	return fs.entryOf(w, r, c, q.To)
}

func (fs *fileSystem) remove(w http.ResponseWriter, r *http.Request, c *caller) error {
	var q onePath
	if err := read(r, &q); err != nil {
		return err
	}
	at, inside := locate(q.Path)
	if inside && at == "." {
		return invalid("the home folder of a sandbox cannot be removed")
	}
	e, err := fs.look(r.Context(), c, q.Path)
	switch {
	case err != nil:
	case inside && e.Type == "file":
		err = fs.api.ask(r.Context(), c, http.MethodDelete, c.fileURL(at), nil, nil)
	case inside && e.Type == "directory":
		err = fs.removeFolder(r.Context(), c, at)
	case e.Type == "directory":
		_, err = fs.shell(r.Context(), c, "rm -rf -- "+quoted(at))
	default:
		_, err = fs.shell(r.Context(), c, "rm -f -- "+inCommand(q.Path))
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{})
}

// removeFolder removes a folder of the space's files: each file by itself, as the gate judges the deletion of a file, and then the
// folders.
func (fs *fileSystem) removeFolder(ctx context.Context, c *caller, at string) error {
	found, err := fs.entries(ctx, c, at, true)
	if err != nil {
		return err
	}
	folders := []string{at}
	for _, e := range found {
		if e.Type == "directory" {
			folders = append(folders, e.Path)
			continue
		}
		if e.Type == "file" {
			err = fs.api.ask(ctx, c, http.MethodDelete, c.fileURL(e.Path), nil, nil)
		} else {
			_, err = fs.shell(ctx, c, "rm -f -- "+quoted(path.Join(workspace, e.Path)))
		}
		if err != nil {
			return err
		}
	}
	slices.Reverse(folders) // a listing has each folder before what is in it
	for part := range slices.Chunk(folders, maxRemoved) {
		line := "rmdir --"
		for _, f := range part {
			line += " " + quoted(path.Join(workspace, f))
		}
		if _, err := fs.shell(ctx, c, line); err != nil {
			return err
		}
	}
	return nil
}

// maxRemoved is how many folders one command removes.
const maxRemoved = 50

// passed hands an answer of /v1 on, and holds a problem back.
type passed struct {
	http.ResponseWriter
	status  int
	refused bytes.Buffer
	header  http.Header
}

func (p *passed) Header() http.Header { return p.header }

func (p *passed) WriteHeader(status int) {
	if p.status != 0 {
		return
	}
	if p.status = status; status >= http.StatusBadRequest {
		return
	}
	for _, name := range []string{"Content-Type", "Content-Length", "Content-Range", "Accept-Ranges", "Etag", "Last-Modified",
		"Content-Disposition"} {
		if v := p.header.Get(name); v != "" {
			p.ResponseWriter.Header().Set(name, v)
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

func (p *passed) Write(raw []byte) (int, error) {
	if p.status == 0 {
		p.WriteHeader(http.StatusOK)
	}
	if p.status >= http.StatusBadRequest {
		return p.refused.Write(raw)
	}
	return p.ResponseWriter.Write(raw)
}

// ReadFrom copies the content; without it the embedded writer's would be used, also for a problem.
func (p *passed) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{p}, r)
}

func (fs *fileSystem) download(w http.ResponseWriter, r *http.Request, c *caller) error {
	p := r.URL.Query().Get("path")
	at, inside := locate(p)
	if !inside {
		out, err := fs.shell(r.Context(), c, "base64 -w0 < "+quoted(at))
		if err != nil {
			return err
		}
		raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(out)))
		if err != nil {
			return err
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write(raw) // the caller has gone; there is nobody left to tell
		return nil
	}
	in, err := c.inner(r.Context(), http.MethodGet, c.fileURL(at), nil)
	if err != nil {
		return err
	}
	for _, name := range []string{"Range", "If-Range", "If-None-Match"} {
		if v := r.Header.Get(name); v != "" {
			in.Header.Set(name, v)
		}
	}
	out := &passed{ResponseWriter: w, header: http.Header{}}
	fs.api.ServeHTTP(out, in)
	if out.status >= http.StatusBadRequest {
		return refusalOf(out.status, out.header, out.refused.Bytes())
	}
	return nil
}

func (fs *fileSystem) upload(w http.ResponseWriter, r *http.Request, c *caller) error {
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(body)
		if err != nil {
			return invalid("the body is not gzip")
		}
		body = unpacked
	}
	to := r.URL.Query().Get("path")
	kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")) // another type is content as it is
	written := []map[string]any{}
	if kind != "multipart/form-data" {
		if to == "" {
			return invalid("the query names no path")
		}
		if err := fs.write(r.Context(), c, to, body); err != nil {
			return err
		}
		return answer(w, http.StatusOK, append(written, wrote(to)))
	}
	parts := multipart.NewReader(body, params["boundary"])
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return invalid("the body is not a form: %v", err)
		}
		_, named, _ := mime.ParseMediaType(part.Header.Get("Content-Disposition")) // part.FileName would take the folders away
		name := cmp.Or(to, named["filename"])
		if name == "" {
			continue
		}
		if err := fs.write(r.Context(), c, name, part); err != nil {
			return err
		}
		written = append(written, wrote(name))
	}
	if len(written) == 0 {
		return invalid("the form has no file")
	}
	return answer(w, http.StatusOK, written)
}

func wrote(p string) map[string]any {
	return map[string]any{"name": path.Base(told(p)), "path": told(p), "type": "file"}
}

// write writes a file. One outside the space's files is written into them first, and a command copies it.
func (fs *fileSystem) write(ctx context.Context, c *caller, p string, content io.Reader) error {
	at, inside := locate(p)
	if !inside {
		held := ".e2b-upload-" + string(id.New[id.Request](fs.ids))
		if err := fs.store(ctx, c, held, content); err != nil {
			return err
		}
		line := "cat -- " + inCommand(held) + " > " + quoted(at)
		if dir := path.Dir(at); !there(dir) {
			line = "mkdir -p -- " + quoted(dir) + " && " + line
		}
		_, err := fs.shell(ctx, c, line)
		return cmp.Or(err, fs.api.ask(context.WithoutCancel(ctx), c, http.MethodDelete, c.fileURL(held), nil, nil))
	}
	return fs.store(ctx, c, at, content)
}

// there reports whether every space has a folder. A command that makes one would be judged as one that writes outside the space's files.
func there(dir string) bool {
	return dir == "." || dir == "/" || dir == "/tmp"
}

func (fs *fileSystem) store(ctx context.Context, c *caller, at string, content io.Reader) error {
	in, err := c.inner(ctx, http.MethodPut, c.fileURL(at), io.NopCloser(content))
	if err != nil {
		return err
	}
	in.ContentLength = -1
	in.Header.Set("Content-Type", "application/octet-stream")
	w := &buffered{header: http.Header{}}
	fs.api.ServeHTTP(w, in)
	if w.status < http.StatusMultipleChoices {
		return nil
	}
	err = refusalOf(w.status, w.header, w.Bytes())
	if e, ok := errors.AsType[*refusal](err); ok && (e.Word == "quota_exceeded" || e.Word == "disk_full") {
		e.Status = http.StatusInsufficientStorage
	}
	return err
}
