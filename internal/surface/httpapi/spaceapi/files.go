package spaceapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"path"
	"strconv"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/spaces"
	"agentbox/internal/surface/httpapi/access"
	"agentbox/internal/surface/httpapi/wire"
)

// Limits of files over the API.
const (
	maxUploadFiles = 100
	maxTagBytes    = 64 << 20 // the ETag of a larger file has its size and time instead of its content
)

// FilePath names a file of a space.
type FilePath struct {
	Space string `path:"space_id" doc:"The space"`
	Path  string `path:"path" doc:"Relative to the space's files; may hold slashes"`
}

// withheldPath names a file of a space, of which there may be two.
type withheldPath struct {
	FilePath
	Withheld bool `query:"withheld" doc:"The file that is withheld from code, also where code has one of that name. People only"`
}

// which says which file a request means.
func which(withheld bool) spaces.Which {
	if withheld {
		return spaces.Held
	}
	return spaces.Any
}

type listing struct {
	Path      string        `json:"path"`
	Entries   []space.Entry `json:"entries" nullable:"false"`
	Truncated bool          `json:"truncated" doc:"There are more entries than one listing holds; list the folders one by one"`
}

// Files are the operations for files of spaces.
type Files struct {
	access.Part
	gate   *gate.Gate
	spaces *spaces.Service
	spool  access.Spool
}

// NewFiles returns the operations for files of spaces.
func NewFiles(p access.Part, gate *gate.Gate, spaces *spaces.Service, spool access.Spool) *Files {
	return &Files{p, gate, spaces, spool}
}

// Register adds the operations to the server.
func (s *Files) Register() {
	wire.Handle(s.Server, wire.Operation{ID: "list-files", Home: wire.AtSpace, Needs: wire.Does(policy.FileList, "space_id"),
		Method: http.MethodGet, Path: "/v1/spaces/{space_id}/files", Tag: "files", Summary: "List files", Rate: wire.RateFiles}, s.listFiles)
	wire.Stream[struct {
		SpacePath
		Path      string         `query:"path" doc:"The folder into which the files go; the top by default"`
		Overwrite bool           `query:"overwrite" doc:"Replace files that exist"`
		Mode      string         `query:"mode" enum:"0644,0755" doc:"Of the files that are written; 0755 can be executed. Without it a file has 0644, and keeps what of one that it replaces could be executed"`
		RawBody   multipart.Form `contentType:"multipart/form-data"`
	}](s.Server, wire.Operation{
		ID: "upload-files", Home: wire.AtSpace, Needs: wire.Does(policy.FileCreate, "space_id").PastLabels(), Method: http.MethodPost,
		Path: "/v1/spaces/{space_id}/files", Tag: "files", Summary: "Upload files", Rate: wire.RateFiles,
		Repeat:  wire.RepeatByService,
		Answers: map[int]any{http.StatusCreated: uploaded{}, http.StatusOK: uploaded{}},
		Detail: "One part per file; its filename is the file's path below `path`. Each file is taken or refused by itself: 201 when all were " +
			"taken, 200 when some were not. " +
			"At most 100 files.",
	}, s.uploadFiles)
	wire.Stream[struct {
		SpacePath
		Path     string `query:"path" doc:"The folder; the top by default"`
		Withheld bool   `query:"withheld" doc:"The files that are withheld from code, instead of those that code sees. People only"`
	}](s.Server, wire.Operation{
		ID: "archive-files", Home: wire.AtSpace, Needs: wire.Does(policy.FileArchive, "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/files/archive", Tag: "files", Summary: "Download a folder as a zip file",
		Rate: wire.RateFiles, Media: "application/zip",
		Detail: "Symbolic links are not followed. Files that are withheld from code are left out. A file named archive at the top is read " +
			"under the path %2e/archive.",
	}, s.archiveFiles)
	wire.Stream[withheldPath](s.Server, wire.Operation{
		ID: "read-file", Home: wire.AtSpace, Needs: wire.Does(policy.FileRead, "space_id"), Method: http.MethodGet,
		Path: "/v1/spaces/{space_id}/files/{path}", Tag: "files", Summary: "Read a file", Rate: wire.RateFiles,
		Media: "application/octet-stream",
		Detail: "Takes Range, If-None-Match and If-Range. The ETag is the content's SHA-256. It is the file that code sees; a person gets the " +
			"withheld one where code has none of that name.",
	}, s.readFile)
	wire.Stream[struct {
		FilePath
		Overwrite bool   `query:"overwrite" default:"true" doc:"Replace a file that exists"`
		Mode      string `query:"mode" enum:"0644,0755" doc:"Of the file; 0755 can be executed. Without it a file has 0644, and keeps what of one that it replaces could be executed"`
		NoneMatch string `header:"If-None-Match" enum:"*" doc:"With * an existing file is not replaced"`
		RawBody   []byte `contentType:"application/octet-stream"`
	}](s.Server, wire.Operation{
		ID: "write-file", Home: wire.AtSpace, Needs: wire.Does(policy.FileCreate, "space_id").PastLabels(), Method: http.MethodPut,
		Path: "/v1/spaces/{space_id}/files/{path}", Tag: "files", Summary: "Write a file", Rate: wire.RateFiles,
		Answers: map[int]any{http.StatusOK: space.Entry{}},
		Detail: "The file appears as a whole or not at all; folders are made. What a person writes under a name that the policy withholds is " +
			"kept from code; the answer then says withheld.",
	}, s.writeFile)
	wire.Handle(s.Server, wire.Operation{
		ID: "delete-file", Home: wire.AtSpace, Needs: wire.Does(policy.FileDelete, "space_id").PastLabels(), Method: http.MethodDelete,
		Path: "/v1/spaces/{space_id}/files/{path}", Tag: "files", Summary: "Delete a file", Rate: wire.RateFiles,
		Status: http.StatusNoContent,
	}, func(ctx context.Context, c wire.Call, in *withheldPath) (*struct{}, error) {
		err := s.spaces.Files.Delete(ctx, c.Once(), c.Caller.Workspace, id.Space(in.Space), in.Path, which(in.Withheld))
		return nil, err
	})
}

func (s *Files) listFiles(ctx context.Context, c wire.Call, in *struct {
	SpacePath
	Path      string `query:"path" doc:"The folder; the top by default"`
	Recursive bool   `query:"recursive" doc:"Also what is in its folders"`
}) (*struct{ Body listing }, error) {
	folder := in.Path
	if folder == "" {
		folder = "."
	}
	entries, err := s.spaces.Files.List(ctx, c.Origin(), c.Caller.Workspace, id.Space(in.Space), folder, in.Recursive)
	if entries == nil {
		entries = []space.Entry{}
	}
	return &struct{ Body listing }{listing{folder, entries, len(entries) >= spaces.ListEntries}}, err
}

func (s *Files) readFile(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	withheld, err := wire.Boolean(r, "withheld", false)
	if err != nil {
		return err
	}
	file, err := s.spaces.Files.Read(r.Context(), c.Origin(), c.Caller.Workspace, id.Space(r.PathValue("space_id")),
		r.PathValue("path"), which(withheld))
	if err != nil {
		return err
	}
	defer file.Close()
	entry := file.Entry()
	tag, err := entityTag(file, entry)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("ETag", tag)
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base(entry.Path)}))
	ranged := &access.RangeWriter{ResponseWriter: w}
	http.ServeContent(ranged, r, "", entry.Modified, file)
	if ranged.Refused {
		return fault.New(fault.Invalid, "range_not_satisfiable", "the file has %d bytes; the range %.64q lies beyond them", entry.Size,
			r.Header.Get("Range"))
	}
	return nil
}

// entityTag names the content of a file.
func entityTag(file io.ReadSeeker, entry space.Entry) (string, error) {
	if entry.Size > maxTagBytes {
		return `W/"` + strconv.FormatInt(entry.Size, 16) + "-" + strconv.FormatInt(entry.Modified.UnixNano(), 16) + `"`, nil
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxTagBytes+1)); err != nil {
		return "", err
	}
	_, err := file.Seek(0, io.SeekStart)
	return `"` + event.Digest(hash.Sum(nil)).String() + `"`, err
}

func (s *Files) writeFile(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	overwrite, err := wire.Boolean(r, "overwrite", true)
	if err != nil {
		return err
	}
	if r.Header.Get("If-Match") != "" {
		return fault.New(fault.Invalid, "precondition_not_supported", "If-Match is not supported; use If-None-Match: * to make a new file only")
	}
	switch r.Header.Get("If-None-Match") {
	case "":
	case "*":
		overwrite = false
	default:
		return fault.New(fault.Invalid, "precondition_not_supported", "of If-None-Match only * is supported here")
	}
	entry, tag, err := s.put(r.Context(), c, 0, id.Space(r.PathValue("space_id")), r.PathValue("path"), overwrite, r.URL.Query().Get("mode"),
		s.Patient(w, r), r.ContentLength)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", `"`+tag.String()+`"`)
	return wire.AnswerJSON(w, http.StatusOK, entry)
}

// put writes one file of a length, which is -1 if not known. It does not spool content that will be refused: the gate judges by the hash of
// the content, but the caller, the path and the size are known before. The n-th file of a request is identified by its path, its content,
// its mode and whether it replaces.
func (s *Files) put(ctx context.Context, c wire.Call, n int, sp id.Space, to string, overwrite bool, mode string, content io.Reader,
	length int64) (space.Entry, event.Digest, error) {
	if _, err := space.CleanFilePath(to); err != nil {
		return space.Entry{}, event.Digest{}, err
	}
	most, err := s.largest(ctx, c, sp)
	if err != nil {
		return space.Entry{}, event.Digest{}, err
	}
	tooLarge := fault.New(fault.Exhausted, space.ErrFileTooLarge.Code, "a file of this space may have %d bytes", most)
	if length > most {
		return space.Entry{}, event.Digest{}, tooLarge
	}
	if err := s.spaces.Files.RefuseWrite(ctx, c.Origin(), c.Caller.Workspace, sp, to, overwrite, mode, max(length, 0)); err != nil {
		return space.Entry{}, event.Digest{}, err
	}
	read := &access.Body{Reader: content}
	spooled, ref, err := s.spool(ctx, read, most)
	switch {
	case fault.CodeOf(err) == "content_too_large":
		err = tooLarge
	case err != nil && read.Broken != nil:
		err = access.Unreadable(read.Broken)
	}
	if err != nil {
		return space.Entry{}, event.Digest{}, err
	}
	defer spooled.Close()
	command := fmt.Appendf(nil, "%q %t %s", to, overwrite, ref.Digest)
	if mode != "" {
		command = append(command, " "+mode...)
	}
	origin := c.Part(n, event.DigestOf(command))
	entry, err := s.spaces.Files.Write(c.Lasting(ctx), origin, c.Caller.Workspace, sp, to, overwrite, mode, ref.Digest,
		ref.Size, spooled)
	return entry, ref.Digest, err
}

// largest is the most that a file of a space may have, by its policy and by its bounds.
func (s *Files) largest(ctx context.Context, c wire.Call, sp id.Space) (int64, error) {
	doc, err := s.spaces.Catalog.Space(ctx, c.Caller.Workspace, sp)
	if err != nil {
		return 0, err
	}
	bundle, err := s.gate.Bundles.Bundle(ctx, c.Caller.Workspace, doc.Bundle)
	return min(spaces.MaxUpload, bundle.Limits.FileBytes, doc.Limits.FileBytes), err
}

type uploaded struct {
	Files []uploadedFile `json:"files" nullable:"false"`
}

type uploadedFile struct {
	Path  string        `json:"path"`
	OK    bool          `json:"ok"`
	Entry *space.Entry  `json:"entry,omitempty"`
	Error *wire.Problem `json:"error,omitempty"`
}

func (s *Files) uploadFiles(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	overwrite, err := wire.Boolean(r, "overwrite", false)
	if err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, struct {
		io.Reader
		io.Closer
	}{s.Patient(w, r), r.Body}, spaces.MaxUpload)
	if _, err := s.spaces.Catalog.Space(r.Context(), c.Caller.Workspace, id.Space(r.PathValue("space_id"))); err != nil {
		return err
	}
	parts, err := r.MultipartReader()
	if err != nil {
		return access.ErrNotMultipart
	}
	out, status := uploaded{Files: []uploadedFile{}}, http.StatusCreated
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return access.Unreadable(err)
		}
		if len(out.Files) == maxUploadFiles {
			return fault.New(fault.Exhausted, "too_many_files", "one upload may hold %d files; the first %d were taken", maxUploadFiles,
				maxUploadFiles)
		}
		_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
		name := params["filename"]
		if err != nil || name == "" {
			return fault.New(fault.Invalid, "invalid_part", "each part is a file and has a filename, the path to which it is written")
		}
		if folder := r.URL.Query().Get("path"); folder != "" && folder != "." && !strings.HasPrefix(name, "/") {
			name = strings.TrimSuffix(folder, "/") + "/" + name
		}
		one := uploadedFile{Path: name}
		entry, _, err := s.put(r.Context(), c, len(out.Files), id.Space(r.PathValue("space_id")), name, overwrite, r.URL.Query().Get("mode"),
			part, -1)
		switch {
		case err == nil:
			one.OK, one.Entry = true, &entry
		case errors.Is(err, access.ErrBodyUnreadable), errors.Is(err, access.ErrUploadTooLarge): // nothing behind it can be read either
			return err
		case errors.Is(err, journal.ErrKeyConflict): // the request is another one than the first with this key
			return err
		default:
			one.Error, status = wire.ProblemOf(err, c.Request), http.StatusOK
			s.Note(c, one.Error, err)
		}
		out.Files = append(out.Files, one)
	}
	if len(out.Files) == 0 {
		return fault.New(fault.Invalid, "missing_body",
			"the upload holds no file; each part of a multipart body is one, and the boundary is the one of its header")
	}
	return wire.AnswerJSON(w, status, out)
}

func (s *Files) archiveFiles(w http.ResponseWriter, r *http.Request, c wire.Call) error {
	folder := r.URL.Query().Get("path")
	if folder == "" {
		folder = "."
	}
	withheld, err := wire.Boolean(r, "withheld", false)
	if err != nil {
		return err
	}
	write, err := s.spaces.Files.Archive(r.Context(), c.Origin(), c.Caller.Workspace, id.Space(r.PathValue("space_id")), folder,
		which(withheld))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": "files.zip"}))
	return write(w)
}
