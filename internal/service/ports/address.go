package ports

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
)

// The refusals of an address.
var (
	// ErrUnsigned refuses an address that this daemon did not make, or that it made for another port.
	ErrUnsigned = fault.New(fault.Denied, "preview_invalid", "the address of the preview is not valid here").
			With("ask for a new one: agentbox space preview SPACE PORT")
	// ErrExpired refuses an address whose time is over.
	ErrExpired = fault.New(fault.Denied, "preview_expired", "the time of the preview's address is over").
			With("ask for a new one: agentbox space preview SPACE PORT")
	// ErrGone refuses an address whose port was closed.
	ErrGone = fault.New(fault.Denied, "preview_closed", "the port of the preview was closed, or the daemon was restarted").
		With("ask for a new one: agentbox space preview SPACE PORT")
)

// sign returns the secret part of the address of an open port: its id, the end of its time in nanoseconds of Unix time (base 36), and a
// signature over these, the space and the port.
func (s *Service) sign(x *Exposure) string {
	end := strconv.FormatInt(x.ExpiresAt.UnixNano(), 36)
	return string(x.ID) + "." + end + "." + s.signature(string(x.ID), end, x.Space, x.Port)
}

func (s *Service) signature(exposure, end string, sp id.Space, port int) string {
	mac := hmac.New(sha256.New, s.Key)
	mac.Write([]byte(strings.Join([]string{"agentbox preview", exposure, end, string(sp), strconv.Itoa(port)}, "\n")))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// Redeem returns the open port of an address by its secret part. It returns ErrUnsigned, ErrExpired or ErrGone, or the reason why the port
// cannot be used at the moment.
func (s *Service) Redeem(ctx context.Context, secret string) (*Exposure, error) {
	parts := strings.Split(secret, ".")
	if len(secret) > 200 || len(parts) != 3 {
		return nil, ErrUnsigned
	}
	end, err := strconv.ParseInt(parts[1], 36, 64)
	if err != nil {
		return nil, ErrUnsigned
	}
	s.mu.Lock()
	x := s.all[id.Exposure(parts[0])]
	s.mu.Unlock()
	if x == nil {
		// Without an open port there is no space and no port to verify the signature with. A forged address learns only that nothing is
		// open.
		if !s.Clock.Now().Before(time.Unix(0, end)) {
			return nil, ErrExpired
		}
		return nil, ErrGone
	}
	if !hmac.Equal([]byte(s.signature(parts[0], parts[1], x.Space, x.Port)), []byte(parts[2])) || x.How == space.PortByRequests {
		return nil, ErrUnsigned
	}
	if err := s.check(ctx, x); err != nil {
		if fault.CodeOf(err) == space.ErrPortClosed.Code {
			err = ErrGone
		}
		return nil, err
	}
	return x, nil
}
