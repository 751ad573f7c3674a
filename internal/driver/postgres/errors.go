package postgres

import (
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Errors of the SQL function advance; see the tables.
const (
	codeMoved      = "AGB01"
	codeSuperseded = "AGB02"
	codeDeposed    = "AGB04"
	codeRemoved    = "AGB05"
)

// codeOf returns the SQLSTATE that the server answered with, "" for an error that is not the server's.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// lost reports whether the connection was lost or could not be made, so that another one may be tried.
func lost(err error) bool {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.SeverityUnlocalized == "FATAL" || e.SeverityUnlocalized == "PANIC" || strings.HasPrefix(e.Code, "08") ||
			strings.HasPrefix(e.Code, "57P")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err) ||
		strings.Contains(err.Error(), "conn closed") || strings.Contains(err.Error(), "closed pool")
}

// full reports whether the server has run out of something, or takes no writes now.
func full(err error) bool {
	code := codeOf(err)
	return strings.HasPrefix(code, "53") || strings.HasPrefix(code, "58") || code == "25006" || code == "55006"
}

// refused reports whether the server has said that the transaction failed: it is certain that nothing of it was committed. Any other error
// behind the sending of a commit leaves that open.
func refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.SeverityUnlocalized == "ERROR"
}
