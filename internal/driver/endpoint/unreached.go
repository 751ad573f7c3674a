package endpoint

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"

	"agentbox/internal/domain/policy"
)

// addressOf returns the host and the port of an address of HTTP.
func addressOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "the endpoint"
	}
	return net.JoinHostPort(policy.Escape(u.Hostname()), cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme]))
}

// unreached says in plain words why a server gave no answer.
func unreached(address string, err error) string {
	at := addressOf(address)
	var name *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, http.ErrSchemeMismatch):
		return at + " answers http, and base_url says https"
	case errors.As(err, &name) && name.IsNotFound:
		return fmt.Sprintf("%s cannot be reached: the name %s has no address", at, policy.Escape(name.Name))
	case errors.As(err, &name):
		return fmt.Sprintf("%s cannot be reached: the address of the name %s cannot be looked up", at, policy.Escape(name.Name))
	case errors.Is(err, syscall.ECONNREFUSED):
		return at + " cannot be reached: no server listens there (connection refused); is it running?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return at + " cannot be reached: this host has no route to it"
	case certificate(err) != "":
		return at + certificate(err)
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return at + " ended the connection before it answered"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("%s cannot be reached: it took no connection within %s", at, connectTime)
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return at + " cannot be reached: the connection cannot be opened"
	}
	return "the connection to " + at + " broke before it answered"
}

// certificate says what is wrong with the certificate of a server; "" if the error is another one. It repeats nothing that the certificate
// says.
func certificate(err error) string {
	var unknown x509.UnknownAuthorityError
	var other x509.HostnameError
	var invalid x509.CertificateInvalidError
	var wrong *tls.CertificateVerificationError
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &unknown):
		return " has a certificate of an authority that this host does not trust"
	case errors.As(err, &other):
		return " has a certificate for another name"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return " has a certificate that is out of date"
	case errors.As(err, &invalid), errors.As(err, &wrong):
		return " has a certificate that is not valid"
	case errors.As(err, &header):
		return " does not speak TLS, and base_url says https"
	}
	return ""
}

// refusal returns the message of a refused key and of a missing model, and what to do about it. Both are "" for another status.
func (q Request) refusal(status int) (message, advice string) {
	e := q.Target.Entry
	switch {
	case status == http.StatusUnauthorized && e.Key == "":
		return fmt.Sprintf("the endpoint %s wants a key, and the entry %s names none", addressOf(q.URL), e.Name),
			fmt.Sprintf("name one in models.yaml, or write the entry anew with all of its flags: "+
				"agentbox model add %s --model MODEL --key KEY --replace", e.Name)
	case status == http.StatusUnauthorized:
		return fmt.Sprintf("the endpoint %s refused the key %s", addressOf(q.URL), e.Key),
			"set another one: agentbox model key set " + e.Key
	case status == http.StatusNotFound:
		return fmt.Sprintf("the endpoint has no model %s, or nothing at %s", policy.Escape(e.Model), policy.Escape(q.URL)),
			fmt.Sprintf("correct the entry %s, then try: agentbox model test %s", e.Name, e.Name)
	}
	return "", ""
}
