package gate

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
		"ada@evil.example,eve@good.example":     unreadable,
		"ada@evil.example;eve@good.example":     unreadable,
		"<ada@evil.example> eve@good.example":   unreadable,
		"mailto:ada@good.example?cc=e@evil.org": unreadable,
		"ada@evil.example://@good.example":      unreadable,
		"https://good.example,evil.example":     unreadable,
		"https://good.example:80:evil":          unreadable,
		"https://good.example\t.evil.example":   unreadable,
		"https://goo\u0000d.example":            unreadable,
		"https://\uff11\uff12\uff17.0.0.1/":     unreadable,
		"https://[::1]/":                        unreadable,
		"//evil.example/x":                      unreadable,
		"https:///evil.example":                 unreadable,
		"https://@/":                            unreadable,
		":":                                     unreadable,
		".":                                     unreadable,
	} {
		if got := host(target); got != want {
			t.Errorf("host(%q) = %q, want %q", target, got, want)
		}
	}
}
