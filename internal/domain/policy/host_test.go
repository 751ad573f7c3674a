package policy

import "testing"

// TestThreat22OneHostIsReadInATarget gives targets in which a program that acts could read another host than a token was asked about.
func TestThreat22OneHostIsReadInATarget(t *testing.T) {
	for target, want := range map[string]string{
		"good.example":                          "good.example",
		"Good.Example.":                         "good.example",
		"good.example:8080":                     "good.example",
		"https://good.example":                  "good.example",
		"https://good.example:443/x?to=@evil":   "good.example",
		"https://user:pass@good.example/x":      Unreadable,
		"ada@good.example":                      "good.example",
		"mailto:ada+x@good.example":             "good.example",
		"https://good.example@evil.example/x":   Unreadable,
		"https://evil.example?@good.example":    "evil.example",
		"https://evil.example#@good.example":    "evil.example",
		`https://evil.example\@good.example`:    Unreadable,
		"https://evil.example/@good.example":    "evil.example",
		"ada@evil.example,eve@good.example":     Unreadable,
		"ada@evil.example;eve@good.example":     Unreadable,
		"<ada@evil.example> eve@good.example":   Unreadable,
		"mailto:ada@good.example?cc=e@evil.org": Unreadable,
		"ada@evil.example://@good.example":      Unreadable,
		"https://good.example,evil.example":     Unreadable,
		"https://good.example:80:evil":          Unreadable,
		"https://good.example\t.evil.example":   Unreadable,
		"https://goo\u0000d.example":            Unreadable,
		"https://\uff11\uff12\uff17.0.0.1/":     Unreadable,
		"https://[::1]/":                        Unreadable,
		"//evil.example/x":                      Unreadable,
		"https:///evil.example":                 Unreadable,
		"https://@/":                            Unreadable,
		"https://@good.example/x":               Unreadable,
		":":                                     Unreadable,
		".":                                     Unreadable,
		// A backslash: Python and curl go on to the @, browsers stop.
		`https://good.example:8443\@evil.example/`: Unreadable,
		`https://good.example\.evil.example/`:      Unreadable,
		`https:\\good.example/`:                    Unreadable,
		`https://good.example/\evil.example`:       Unreadable,
		`good.example\@evil.example`:               Unreadable,
		// Userinfo of a URL, in each form.
		"https://good.example:443@evil.example/": Unreadable,
		"https://a@good.example@evil.example/":   Unreadable,
		"https://good.example%40evil.example/":   Unreadable,
		"user:pass@good.example":                 Unreadable,
		// Characters that some programs drop.
		"https://good.example/\tx":           Unreadable,
		"ht\ttps://good.example/":            Unreadable,
		"https://good.example\n.evil.org/":   Unreadable,
		"https://good.example\r\nHost: evil": Unreadable,
		" https://good.example/":             Unreadable,
		"https://good.example /x":            Unreadable,
		"https://good.example/a b":           Unreadable,
		"https://good.example\u00a0/":        Unreadable,
		"https://good.example/\u2028x":       Unreadable,
		"https://good.example/\u0085":        Unreadable,
		"https://good.example/\x7f":          Unreadable,
		// Names in other letters, and encoded ones.
		"https://g\u043e\u043ed.example/":     Unreadable,
		"https://good\u3002example/":          Unreadable,
		"https://good.example\uff0fevil.org/": Unreadable,
		"https://good.example\u200b/":         Unreadable,
		"https://b\u00fccher.example/":        Unreadable,
		"https://xn--bcher-kva.example/":      "xn--bcher-kva.example",
		"https://XN--BCHER-KVA.example./":     "xn--bcher-kva.example",
		"https://good%2eexample/":             Unreadable,
		"https://good.example%00.evil.org/":   Unreadable,
		"https://%67ood.example/":             Unreadable,
		// Dots and colons at the edges.
		"https://good.example./x":     "good.example",
		"https://good.example../x":    Unreadable,
		"https://good..example/x":     Unreadable,
		"https://.good.example/x":     Unreadable,
		"good.example.:443":           "good.example",
		"https://good.example:/x":     "good.example",
		"https://good.example:+443/x": Unreadable,
		"good.example:":               Unreadable,
		"https:/evil.example/":        Unreadable,
		"https:evil.example":          Unreadable,
		"HTTP:2130706433":             Unreadable,
		"://evil.example/":            Unreadable,
		"https:////evil.example/":     Unreadable,
		"https://https://evil.org/":   "https",
		// Addresses: IPv6 is never read, and a number stays what is written.
		"https://[fe80::1%25eth0]/":       Unreadable,
		"https://[::ffff:127.0.0.1]:443/": Unreadable,
		"::1":                             Unreadable,
		"https://127.0.0.1:8080/":         "127.0.0.1",
		"https://2130706433/":             "2130706433",
		"https://0x7f.1/":                 "0x7f.1",
		"https://0177.0.0.1/":             "0177.0.0.1",
	} {
		if got := Host(target); got != want {
			t.Errorf("Host(%q) = %q, want %q", target, got, want)
		}
	}
}

// A place says the scheme and the port only where the target does, so that one place has one name.
func TestAPlaceSaysWhatTheTargetSays(t *testing.T) {
	for target, want := range map[string]string{
		"good.example":                "good.example",
		"Good.example:8080":           "good.example:8080",
		"HTTPS://Good.example/x?y":    "https://good.example",
		"https://good.example:443/x":  "https://good.example:443",
		"https://u:p@good.example:1/": "",
		"https://[::1]/":              "",

		`https://good.example:8443\@evil.example/`: "",
		"https://good.example/\t":                  "",
	} {
		if got := place(target); got != want {
			t.Errorf("place(%q) = %q, want %q", target, got, want)
		}
	}
}
