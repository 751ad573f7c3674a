package web_test

import (
	"net/netip"
	"strings"
	"testing"

	"agentbox/internal/domain/web"
)

// TestTheOneFormOfAnAddress cleans addresses, and refuses those that two programs could read differently.
func TestTheOneFormOfAnAddress(t *testing.T) {
	long := "http://a.example/" + strings.Repeat("x", web.MaxURL)
	for in, want := range map[string]string{
		"http://a.example": "http://a.example:80/", "https://A.Example./x?y=1#z": "https://a.example:443/x?y=1",
		"http://a.example:8080/a b": "", "http://user@a.example/": "", "http://a.example\\@b.example/": "", "//a.example/": "",
		"a.example": "", "ftp://a.example/": "", "file:///etc/passwd": "", "http://": "", "http://[::1]/": "", "http://127.1/": "",
		"http://2130706433/": "", "http://0x7f000001/": "", "http://0177.0.0.1/": "", "http://127.0.0.1:99/": "http://127.0.0.1:99/",
		"http://a.example:0/": "", "http://a.example:65536/": "", "http://b\u00fccher.example/": "", "http://a..example/": "",
		"http://a.example%2f.b.example/": "", "http://a.example:080/": "",
		long[:web.MaxURL]: strings.Replace(long[:web.MaxURL], "a.example", "a.example:80", 1), long[:web.MaxURL+1]: "",
	} {
		got, err := web.Clean(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%.60q: got %.60q, %v, want %.60q", in, got, err, want)
		}
		if again, _ := web.Clean(want); want != "" && len(want) <= web.MaxURL && again != want {
			t.Errorf("%.60q becomes %.60q when it is cleaned again", want, again)
		}
	}
}

func TestWhereARedirectLeads(t *testing.T) {
	for location, want := range map[string]string{
		"/y": "https://a.example:443/y", "//b.example/": "https://b.example:443/", "http://b.example/": "http://b.example:80/",
		"file:///etc/passwd": "", "javascript:1": "", "https://u:p@b.example/": "",
	} {
		if got, err := web.Next("https://a.example:443/x", location); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", location, got, err, want)
		}
	}
}

func TestWhichAddressesArePublic(t *testing.T) {
	for text, want := range map[string]bool{
		"93.184.216.34": true, "2606:2800:220:1::1": true, "8.8.8.8": true, "172.32.0.1": true, "100.128.0.1": true,
		"127.0.0.1": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "0.0.0.0": false,
		"0.1.2.3": false, "100.64.0.1": false, "224.0.0.1": false, "255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false,
		"192.0.2.1": false, "203.0.113.1": false, "::1": false, "::": false, "fe80::1": false, "fc00::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::ffff:8.8.8.8": true, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:0:7f00:1::": false,
		"2001:db8::1": false, "::127.0.0.1": false,
	} {
		if got := web.Public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
	if web.Public(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestWhatIsText(t *testing.T) {
	for media, want := range map[string]bool{
		"text/html": true, "text/csv": true, "application/json": true, "application/ld+json": true, "application/atom+xml": true,
		"image/png": false, "application/octet-stream": false, "application/zip": false, "": false, "application/pdf": false,
	} {
		if web.Textual(media) != want {
			t.Errorf("%q: got %t", media, !want)
		}
	}
}
