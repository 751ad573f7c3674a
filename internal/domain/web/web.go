// Package web defines what the daemon fetches from the web for agents: which addresses are public, and what a request may say.
package web

import (
	"context"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/policy"
)

// Bounds of a fetch.
const (
	MaxURL       = 4 << 10          // bytes
	MaxBody      = 1 << 20          // bytes after decompression; the rest is left out
	MaxRedirects = 5                // each is judged anew
	MaxTime      = 30 * time.Second // of each request, from the lookup of its host to the last byte
)

// The ways in which a fetch fails.
var (
	// ErrURL refuses an address that is none.
	ErrURL = fault.New(fault.Invalid, "invalid_url", "the address is not one of http or https, without a user, whose host is a name or an "+
		"IPv4 address, of at most %d bytes", MaxURL)
	// ErrMethod refuses every method except GET and HEAD.
	ErrMethod = fault.New(fault.Invalid, "invalid_method", "the method is GET or HEAD")
	// ErrPrivate means that the host has an address that is not public.
	ErrPrivate = fault.New(fault.Denied, "address_not_public", "the host has an address of a private network or of this machine").
			With("only a policy that names exactly this host and port, as localhost:8080, lets an agent fetch from there")
	// ErrFailed means that the host did not answer.
	ErrFailed = fault.New(fault.Conflict, "fetch_failed", "the host did not answer")
	// ErrMedia refuses an answer that is not text.
	ErrMedia = fault.New(fault.Conflict, "media_type_refused", "the answer is no text")
	// ErrRedirects refuses an answer that redirects too often.
	ErrRedirects = fault.New(fault.Conflict, "too_many_redirects", "the address redirects more than %d times", MaxRedirects)
)

// Request is one request, without redirects.
type Request struct {
	URL     string // as Clean returns it
	Method  string // GET or HEAD
	Private bool   // the host may have an address that is not public
}

// Action returns the type of the action that the gate judges.
func (r Request) Action() string {
	if r.Private {
		return policy.HTTPPrivate
	}
	return policy.HTTPFetch
}

// Answer is an answer to a request.
type Answer struct {
	Status   int
	Media    string // the media type, in small letters, without parameters
	Charset  string // "" for none
	Location string // of a redirect, as the host wrote it; "" for none
	Body     []byte
	Cut      bool // the body has more than MaxBody bytes, and Body is its beginning
}

// Fetcher sends requests. It redeems a permit for exactly this request. It dials only addresses that it has checked. It sends no
// credentials, follows no redirect and uses no proxy. Its errors are those of this package.
type Fetcher interface {
	Fetch(ctx context.Context, permit policy.Permit, r Request) (Answer, error)
}

// Clean returns an address in the one form in which it is judged and sent: scheme, host in small letters, port, path and query.
func Clean(text string) (string, error) {
	if len(text) > MaxURL || !printable(text) {
		return "", ErrURL
	}
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", ErrURL
	}
	host, port := strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if !policy.IsEndpoint(host+":"+port) || numeric(host) {
		return "", ErrURL
	}
	u.Host, u.Fragment, u.RawFragment = host+":"+port, "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	clean := u.String()
	if policy.Host(clean) != host {
		return "", ErrURL
	}
	return clean, nil
}

// Next returns the address to which a redirect leads.
func Next(from, location string) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", ErrURL
	}
	to, err := base.Parse(location)
	if err != nil {
		return "", ErrURL
	}
	return Clean(to.String())
}

// printable reports whether a text has only visible characters of ASCII.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' })
}

// numeric reports whether a host is a number in a form of which programs make different addresses, as 127.1 or 0x7f000001.
func numeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	return strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
}

// closed are the networks that are not public, besides those that netip knows.
var closed = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
}

// Public reports whether an address is one of the open internet. Of IPv6 only the global unicast addresses are, without those in which an
// IPv4 address is embedded: 6to4, Teredo and translated ones.
func Public(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsValid() || a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if a.Is4() {
		for _, p := range closed {
			if p.Contains(a) {
				return false
			}
		}
		return true
	}
	for _, p := range embedding {
		if p.Contains(a) {
			return false
		}
	}
	return open[0].Contains(a)
}

var (
	open      = []netip.Prefix{netip.MustParsePrefix("2000::/3")}
	embedding = []netip.Prefix{
		netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
		netip.MustParsePrefix("3fff::/20"),
	}
)

// Inward reports whether the name of a host already says that it is not public. It looks nothing up. An address that cannot be read is.
func Inward(at string) bool {
	u, err := url.Parse(at)
	if err != nil {
		return true
	}
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		return !Public(a)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".")
}

// Textual reports whether an answer of a media type is shown to a model.
func Textual(media string) bool {
	kind, sub, _ := strings.Cut(media, "/")
	switch {
	case kind == "text", strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml"):
		return true
	}
	switch media {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/x-ndjson", "application/yaml", "application/x-yaml", "application/toml", "application/sql":
		return true
	}
	return false
}

// Failed returns ErrFailed with its cause.
func Failed(cause string) error { return fault.New(ErrFailed.Kind, ErrFailed.Code, "%s", cause) }

// NoText returns ErrMedia with the media type.
func NoText(media string) error {
	return fault.New(ErrMedia.Kind, ErrMedia.Code, "the answer has the media type %.100q; only texts are shown", media)
}
