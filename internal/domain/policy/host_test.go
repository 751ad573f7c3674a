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
		"https://user:pass@good.example/x":      "good.example",
		"ada@good.example":                      "good.example",
		"mailto:ada+x@good.example":             "good.example",
		"https://good.example@evil.example/x":   "evil.example",
		"https://evil.example?@good.example":    "evil.example",
		"https://evil.example#@good.example":    "evil.example",
		`https://evil.example\@good.example`:    "evil.example",
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
		"https://@good.example/x":               "good.example",
		":":                                     Unreadable,
		".":                                     Unreadable,
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
		"https://u:p@good.example:1/": "https://good.example:1",
		"https://[::1]/":              "",
	} {
		if got := place(target); got != want {
			t.Errorf("place(%q) = %q, want %q", target, got, want)
		}
	}
}
