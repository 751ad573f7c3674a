package access

import (
	"context"
	"errors"
	"io"
	"net/http"

	"agentbox/internal/domain/fault"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/service/spaces"
)

// Spool takes content whose hash and size are not known yet, at most max bytes of it, and gives it back with both. The caller closes it.
type Spool func(ctx context.Context, content io.Reader, max int64) (io.ReadSeekCloser, blob.Ref, error)

// RangeWriter holds back the plain text with which http.ServeContent refuses a range.
type RangeWriter struct {
	http.ResponseWriter
	Refused bool
}

// WriteHeader implements http.ResponseWriter.
func (w *RangeWriter) WriteHeader(status int) {
	if w.Refused = status == http.StatusRequestedRangeNotSatisfiable; !w.Refused {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements io.Writer.
func (w *RangeWriter) Write(p []byte) (int, error) {
	if w.Refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Body remembers its read error, because a writer of its content only reports that it could not store it.
type Body struct {
	io.Reader
	Broken error
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		b.Broken = err
	}
	return n, err
}

// The errors of bodies that are read piece by piece.
var (
	ErrNotMultipart   = fault.New(fault.Invalid, "unsupported_media_type", "files are uploaded as multipart/form-data")
	ErrBodyUnreadable = fault.New(fault.Invalid, "body_unreadable", "the body is malformed or incomplete")
	ErrUploadTooLarge = fault.New(fault.Exhausted, "body_too_large", "one upload may have %d bytes", int64(spaces.MaxUpload))
)

// Unreadable returns the error of a body that could not be read to its end.
func Unreadable(err error) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return ErrUploadTooLarge
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	return fault.Wrap(err, ErrBodyUnreadable.Kind, ErrBodyUnreadable.Code, "%s", ErrBodyUnreadable.Msg)
}
