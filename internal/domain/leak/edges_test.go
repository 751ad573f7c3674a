package leak_test

import (
	"fmt"
	"strings"
	"testing"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
)

// Which variables of an environment are secrets, at each edge: the length of a value, and the number of letters and digits in a part of it.
func TestTheEdgesOfAValue(t *testing.T) {
	for _, c := range []struct {
		name, value string
		secret      bool
	}{
		{"TOKEN", "word", true}, {"TOKEN", "wor", false}, {"TOKEN", "  word  ", true}, {"TOKEN", " wor ", false},
		{"x", "plain-words-ab12", false}, {"x", "plain-w-abcdef12", true}, {"x", "plain--abcdef12", false},
		{"x", "plain-words-abcde12", false}, {"x", "plain-words-abcdef1", false}, {"x", "plain-words-abcdefg1", false},
		{"x", "plain-words-123456ab", true}, {"x", "plain-words-1234567a", false}, {"x", "plain-words-12345678", false},
		{"x", "plain-words-abcdef00", true}, {"x", "plain-words-abcdef99", true}, {"x", "plain-words-abcdef:;", false},
		{"x", "plain words abcdef12", false}, {"x", "https://h/abcdef1234", false}, {"x", "/usr/lib/abcdef1234", false},
		{"x", "https://u:p@h/wordswords", true}, {"x", "a1b2.c3d4.e5f6.g7h8", false},
	} {
		want := c.value
		if c.secret {
			want = strings.Replace(c.value, strings.TrimSpace(c.value), leak.Redacted, 1)
		}
		if clean, found := leak.Values(map[string]string{c.name: c.value}).Text(c.value); clean != want || (len(found) == 1) != c.secret {
			t.Errorf("%s=%q became %q, %+v", c.name, c.value, clean, found)
		}
	}
}

// A value that holds another one is taken out as a whole, whatever the order of their names, and found values are counted up to a bound.
func TestLongerValuesComeFirst(t *testing.T) {
	for range 10 { // a map has no order
		known := leak.Values(map[string]string{"A_TOKEN": "hunter", "B_TOKEN": "hunter-two-long", "C_TOKEN": "two-long"},
			map[string]string{"D_TOKEN": "hunter"})
		if clean, found := known.Text("hunter-two-long, hunter, two-long"); clean != strings.Repeat(", "+leak.Redacted, 3)[2:] ||
			len(found) != 3 {
			t.Fatalf("got %q, %+v", clean, found)
		}
		text := strings.Repeat("hunter two-long ", leak.MaxMatches) + secret(t, leak.GitHubToken)
		if clean, found := known.Text(text); len(found) != leak.MaxMatches || strings.Contains(clean, "ghp") ||
			strings.Contains(clean, "hunter") || strings.Contains(clean, "two") {
			t.Fatalf("many: %d found, %.100s", len(found), clean)
		}
	}
	known := leak.Values(map[string]string{"TOKEN": "hunter"})
	if clean, found := known.Text("hunterhunter hunter"); clean != leak.Redacted+leak.Redacted+" "+leak.Redacted || len(found) != 3 {
		t.Errorf("side by side: %q, %+v", clean, found)
	}
	text := strings.Repeat("hunter ", leak.MaxMatches-1) + strings.Repeat(secret(t, leak.GitHubToken)+" ", 3)
	if clean, found := known.Text(text); len(found) != leak.MaxMatches || found[leak.MaxMatches-1].Rule != leak.GitHubToken ||
		strings.Contains(clean, "ghp") {
		t.Errorf("values and rules: %d found, %.100s", len(found), clean)
	}
}

// Known values are taken out of every text of JSON, and of nothing else of it.
func TestKnownValuesInJSON(t *testing.T) {
	known := leak.Values(map[string]string{"TOKEN": "hunter", "OTHER_KEY": "hunter-two"})
	for data, c := range map[string]struct {
		clean string
		where []string
	}{
		`{ "a" : "hunt", "n":9007199254740993 }`: {`{ "a" : "hunt", "n":9007199254740993 }`, nil},
		`{"b":["x","a hunter-two",{"c":"hunter hunter"}],"a":"<hunter>","n":9007199254740993,"hunter":null}`: {
			`{"a":"<[redacted]>","b":["x","a [redacted]",{"c":"[redacted] [redacted]"}],"hunter":null,"n":9007199254740993}`,
			[]string{".a", ".b[1]", ".b[2].c", ".b[2].c"}},
		`"hunter"`: {`"[redacted]"`, []string{""}},
		`{"a":`:    {`{"a":`, nil},
		``:         {``, nil},
	} {
		clean, found := known.Scan([]byte(data))
		if string(clean) != c.clean || len(found) != len(c.where) {
			t.Errorf("%s became %s, %+v", data, clean, found)
			continue
		}
		for i, m := range found {
			if m.Where != c.where[i] || m.Rule != leak.EnvValue || m.Preview != "********" {
				t.Errorf("%s: found %+v, want at %s", data, m, c.where[i])
			}
		}
	}
	many := `["` + strings.Repeat("hunter ", leak.MaxMatches) + `","` + strings.Repeat("hunter-two ", 3) + `"]`
	if clean, found := known.Scan([]byte(many)); len(found) != leak.MaxMatches || strings.Contains(string(clean), "hunter") {
		t.Errorf("many: %d found, %.100s", len(found), clean)
	}
	var none leak.Known
	if clean, found := none.Scan([]byte(`{"a":"hunter"}`)); string(clean) != `{"a":"hunter"}` || found != nil {
		t.Errorf("without values: %s, %+v", clean, found)
	}
}

// The event that tells of a secret says where it was and who found it, and holds nothing of it once it is redacted.
func TestWhatTellsOfASecret(t *testing.T) {
	const daemon, author = id.Principal("svc_00000000000000000000000000"), id.Principal("usr_00000000000000000000000000")
	next := func() id.Event { return "00000000-0000-7000-8000-000000000001" }
	draft := func(named id.Event) event.Draft {
		d := event.New("message.created", event.Origin{Principal: author, Correlation: "cor_1"}, "ws_dev", "room_1", map[string]string{
			"content_md": "use " + secret(t, leak.AWSKey)})
		d.ID, d.Thread, d.Run, d.Step = named, "thr_1", "run_1", "stp_1"
		return d
	}
	matches := []leak.Match{{Rule: leak.AWSKey, Where: ".content_md", Preview: "AKIA...x"}}
	for name, c := range map[string]struct {
		named id.Event
		by    id.Principal
		found []leak.Match // outside the data; nil for what is found in it
		taken bool
	}{
		"in the data": {"", daemon, nil, true}, "in the data, of its author": {"", "", nil, true},
		"in the data of a named one": {"00000000-0000-7000-8000-000000000009", daemon, nil, true},
		"outside":                    {"", daemon, matches, true}, "outside, and it stays": {"", "", matches, false},
		"outside, of a named one":     {"00000000-0000-7000-8000-000000000009", daemon, matches, false},
		"outside, more than are told": {"", daemon, append(make([]leak.Match, leak.MaxMatches), matches...), true},
	} {
		var marked, said event.Draft
		if d := draft(c.named); c.found != nil {
			marked, said = leak.Tell(d, c.by, next, c.found, c.taken)
		} else {
			marked, said, _ = leak.Clean(d, c.by, next)
		}
		want := c.named
		if want == "" {
			want = next()
		}
		redaction := event.RedactNone
		if c.taken {
			redaction = event.RedactPartial
		}
		if marked.ID != want || !marked.ContainsSecrets || marked.Redaction != redaction {
			t.Errorf("%s: marked %+v", name, marked.Header)
		}
		by, actor := author, event.Actor{Type: id.User, ID: string(author)}
		if c.by != "" {
			by, actor = c.by, event.Actor{Type: id.Service, ID: "dlp"}
		}
		if said.Principal != by || said.Actor != actor || said.Causation != want || said.EntityID != string(want) || said.Thread != "thr_1" ||
			said.Run != "run_1" || said.Step != "stp_1" || said.Correlation != "cor_1" {
			t.Errorf("%s: said %+v", name, said.Header)
		}
		told, err := event.Decode[leak.Detected](event.Event{Header: said.Header, Data: said.Data})
		if err != nil || told.Event != want || told.Type != "message.created" || len(told.Matches) != min(max(len(c.found), 1), leak.MaxMatches) {
			t.Errorf("%s: told %+v, %v", name, told, err)
		}
		remains, err := leak.Remains(event.Event{Header: said.Header, Data: said.Data})
		if rest, ok := remains.(leak.Detected); !ok || err != nil || rest.Event != want || rest.Type != "message.created" || rest.Matches != nil {
			t.Errorf("%s: there remains %+v, %v", name, remains, err)
		}
		if remains, err := leak.Remains(event.Event{Header: marked.Header, Data: marked.Data}); remains != nil || err != nil {
			t.Errorf("%s: of another event there remains %+v, %v", name, remains, err)
		}
		said.Data = []byte(`{`)
		if _, err := leak.Remains(event.Event{Header: said.Header, Data: said.Data}); err == nil {
			t.Errorf("%s: what cannot be read has remains", name)
		}
	}
	if named := leak.Named(matches, "files"); len(named) != 1 || named[0].Where != "files.content_md" || matches[0].Where != ".content_md" {
		t.Errorf("got %+v of %+v", named, matches)
	}
}

// Names that become one name stay apart, a character that is no letter of HTML stays one, and a repeated name is seen beside arrays and
// texts.
func TestNamesStayApart(t *testing.T) {
	one := secret(t, leak.GitHubToken)
	for data, want := range map[string]string{
		`{"` + one + `":1,"` + one + `x":2,"` + one + `y":3}`:     `{"[redacted]":1,"[redacted] 2":2,"[redacted] 3":3}`,
		`{"a":"<&>","b":"` + one + `"}`:                           `{"a":"<&>","b":"[redacted]"}`,
		`{"a":[1,{"b":"x"}],"b":"` + one + `"}`:                   `{"a":[1,{"b":"x"}],"b":"[redacted]"}`,
		`{"a":["x","x"],"c":"sk-","d":"x"}`:                       `{"a":["x","x"],"c":"sk-","d":"x"}`,
		`{"a":[],"a":"` + one + `","a":"sk-"}`:                    `{"a":"sk-"}`,
		`{"b":{"c":[["x"]]},"d":"b","e":"` + one + `","e":"sk-"}`: `{"b":{"c":[["x"]]},"d":"b","e":"sk-"}`,
	} {
		clean, found := leak.Scan([]byte(data))
		if string(clean) != want || (len(found) == 0) != (data == want) {
			t.Errorf("%s became %s, %+v, want %s", data, clean, found, want)
		}
	}
}

// A secret that is split over an array is taken out where it stands, and nothing beside it.
func TestOnlyThePiecesOfASecretAreTakenOut(t *testing.T) {
	one := secret(t, leak.GitHubToken)
	for i, c := range []struct{ list, want string }{
		{fmt.Sprintf(`["plain ",%q,%q," plain"]`, one[:10], one[10:]), `["plain ","[redacted]","[redacted]"," plain"]`},
		{fmt.Sprintf(`["plain ",1,%q,null,%q," plain","more"]`, one[:10], one[10:]),
			`["plain ",1,"[redacted]",null,"[redacted]"," plain","more"]`},
		{fmt.Sprintf(`["plain",%q]`, one[:10]), fmt.Sprintf(`["plain",%q]`, one[:10])},
	} {
		if clean, _ := leak.Scan([]byte(c.list)); string(clean) != c.want {
			t.Errorf("%d: %s became %s, want %s", i, c.list, clean, c.want)
		}
	}
}

// Every beginning of a secret is suspicious, each with each of its letters and in every part of a text.
func TestEveryBeginningIsHeldBack(t *testing.T) {
	none := leak.Values()
	for _, begins := range []string{"sk-", "sk_live_", "rk_live_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "AKIA", "ASIA",
		"xoxb-", "xoxq-", "xapp-", "glpat-", "AIza", "npm_", "-----BEGIN ", "bearer ", "Bearer "} {
		for n := 1; n <= len(begins); n++ {
			s := leak.NewStream(none)
			if got := string(s.Next([]byte("word " + begins[:n]))); got != "word " {
				t.Errorf("%q: got %q", begins[:n], got)
			}
			if got := string(s.Next([]byte("\n"))) + string(s.Rest()); got != begins[:n]+"\n" {
				t.Errorf("%q went on as %q", begins[:n], got)
			}
		}
	}
	s := leak.NewStream(none)
	if got := string(s.Next([]byte("a xoxbz"))); got != "a xoxbz" {
		t.Errorf("what is not a beginning waits: %q", got)
	}
}

// A stream shows what is whole at once and without its secrets, also where it knows no values, and keeps what may go on behind a long
// text.
func TestAStreamShowsWhatIsWhole(t *testing.T) {
	one, long := secret(t, leak.GitHubToken), strings.Repeat("plain text ", leak.MaxHeld/8)
	for name, values := range map[string]map[string]string{"no values": {}, "a value": {"TOKEN": "moonlight-77"}} {
		s := leak.NewStream(leak.Values(values))
		if got := string(s.Next([]byte("a " + one + "\nb "))); got != "a "+leak.Redacted+"\nb " {
			t.Errorf("%s, a line: got %q", name, got)
		}
		if got := string(s.Next([]byte(pem("PRIVATE KEY") + "\nafter "))); got != leak.Redacted+"\nafter " {
			t.Errorf("%s, a key: got %q", name, got)
		}
		if got := string(s.Next([]byte(long + one[:12]))); got != long {
			t.Errorf("%s, a long text: got %d bytes of %d", name, len(got), len(long))
		}
		if got := string(s.Next([]byte(one[12:]+"\n"))) + string(s.Rest()); got != leak.Redacted+"\n" {
			t.Errorf("%s, what went on: got %q", name, got)
		}
	}
	s := leak.NewStream(leak.Values(map[string]string{"TOKEN": "moonlight-77"}))
	if got := string(s.Next([]byte("x moonlight-77"))); got != "x "+leak.Redacted {
		t.Errorf("a whole value: got %q", got)
	}
	if got := string(s.Next([]byte("x moonlight-7"))); got != "x " {
		t.Errorf("a part of a value: got %q", got)
	}
	if got := string(s.Rest()); got != "moonlight-7" {
		t.Errorf("the rest: got %q", got)
	}
}

// Values that overlap are held back together, and what lies whole before them is shown.
func TestValuesThatOverlapAreHeldBackTogether(t *testing.T) {
	known := leak.Values(map[string]string{"A_TOKEN": "aa11-bb22-cc33x", "B_TOKEN": "cc33x-dd44-ee55y", "C_TOKEN": "ee55y-ff66-gg77zz"})
	for _, c := range []struct{ piece, shown, rest string }{
		{"x aa11-bb22-cc33x-dd44-ee55y", "x ", leak.Redacted},
		{"a longer text before it, x aa11-bb22-cc33x-dd44-ee55y", "a longer text before it, x ", leak.Redacted},
		{"a longer text before it, x aa11-bb22-cc33x", "a longer text before it, x ", leak.Redacted},
		{"a longer text before aa11-bb22-cc33x sk-", "a longer text before " + leak.Redacted + " ", "sk-"},
		{"aa11-bb22-cc33x ee55y-ff66-gg77zz sk-", leak.Redacted + " " + leak.Redacted + " ", "sk-"},
		{"aa11-bb22-cc33x.", leak.Redacted + ".", ""},
	} {
		s := leak.NewStream(known)
		shown, rest := string(s.Next([]byte(c.piece))), string(s.Rest())
		if shown != c.shown || !strings.HasPrefix(rest, c.rest) || c.rest == "" && rest != "" || strings.Contains(rest, "aa11") ||
			strings.Contains(rest, "cc33x") {
			t.Errorf("%s: shown %q, then %q", c.piece, shown, rest)
		}
	}
}

// A secret that is split within its beginning is found, by each character that nobody sees, written as itself or escaped.
func TestASecretThatIsSplitInItsBeginning(t *testing.T) {
	one := secret(t, leak.GitHubToken)
	for _, c := range "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff" {
		split := one[:2] + string(c) + one[2:]
		if clean, found := leak.Text(split); len(found) != 1 || strings.Contains(clean, one[12:]) {
			t.Errorf("%U: %q, %+v", c, clean, found)
		}
		for _, data := range []string{string(quote(t, split)), fmt.Sprintf(`{"a":"%s\u%04x%s"}`, one[:2], c, one[2:]),
			fmt.Sprintf(`{"a":"%s\u%04X%s"}`, one[:2], c, one[2:])} {
			if clean, found := leak.Scan([]byte(data)); len(found) != 1 || strings.Contains(string(clean), one[12:]) {
				t.Errorf("%s: %s, %+v", data, clean, found)
			}
		}
	}
	for _, c := range []string{"\r", "\n", "\r\n", " \r\t", "\u200b\r\u200b"} { // the quick look finds a line break behind the beginning
		if clean, found := leak.Text(one[:12] + c + one[12:]); len(found) != 1 || strings.Contains(clean, one[12:]) {
			t.Errorf("%q: %q, %+v", c, clean, found)
		}
	}
	run := strings.Repeat("aB3dE6gH9k", 3)
	for _, begin := range []string{"bearer ", "BEARER ", "Bearer:", `bearer="`} {
		if clean, found := leak.Text(begin + run); len(found) != 1 || strings.Contains(clean, run) {
			t.Errorf("%s: %q, %+v", begin, clean, found)
		}
	}
	escaped := fmt.Sprintf(`{"a":"\u%04x%s"}`, one[0], one[1:])
	if clean, found := leak.Scan([]byte(escaped)); len(found) != 1 || strings.Contains(string(clean), one[12:]) {
		t.Errorf("%s: %s, %+v", escaped, clean, found)
	}
	for _, cut := range []string{`a\u`, `a\u1`, `a\u12`, `a\u123`, `a\u1234`, `\u1234`, `\u12345`,
		strings.Repeat("x", 43) + `\u123`, "BEGIN", "IN", "rr", "-_aINr"} {
		if clean, found := leak.Text(cut); clean != cut || len(found) != 0 {
			t.Errorf("%s: %s, %+v", cut, clean, found)
		}
	}
}

// A value that lies too deep is taken out where it may hold a secret, in arrays and in objects. Other deep values stay.
func TestWhatLiesTooDeep(t *testing.T) {
	one := secret(t, leak.GitHubToken)
	nested := func(v string, open, shut string, n int) string {
		return strings.Repeat(open, n) + v + strings.Repeat(shut, n)
	}
	for name, c := range map[string]struct{ open, shut string }{"arrays": {"[", "]"}, "objects": {`{"a":`, "}"}} {
		plain := nested(`"plain"`, c.open, c.shut, leak.MaxDepth+3)
		clean, found := leak.Scan([]byte(`{"b":` + plain + `,"c":"` + one + `"}`))
		if want := `{"b":` + plain + `,"c":"[redacted]"}`; string(clean) != want || len(found) != 1 {
			t.Errorf("%s: %s, %+v", name, clean, found)
		}
		clean, found = leak.Scan([]byte(nested(`"`+one+`"`, c.open, c.shut, leak.MaxDepth+3)))
		if len(found) != 1 || found[0].Rule != leak.Unscanned || strings.Contains(string(clean), one) {
			t.Errorf("%s, a secret: %s, %+v", name, clean, found)
		}
	}
}

// A text that is not JSON comes back unchanged, a text of too many secrets goes as a whole, and other secrets between its pieces hide none.
func TestTheEdgesOfAScan(t *testing.T) {
	one, other := secret(t, leak.GitHubToken), secret(t, leak.SlackToken)
	for _, data := range []string{`{"a":"` + one, `"` + one + `" 1`, `{"a":"` + one + `"}}`, one} {
		if clean, found := leak.Scan([]byte(data)); string(clean) != data || len(found) != 0 {
			t.Errorf("%s: %s, %+v", data, clean, found)
		}
	}
	if clean, found := leak.Text(strings.Repeat(one+" ", leak.MaxMatches+1)); clean != leak.Redacted || len(found) != 1 {
		t.Errorf("too many: %q, %+v", clean, found)
	}
	list := fmt.Sprintf(`[%q,%q,%q," plain"]`, one[:12], other, one[12:])
	if clean, _ := leak.Scan([]byte(list)); string(clean) != `["[redacted]","[redacted]","[redacted]"," plain"]` {
		t.Errorf("between its pieces: %s", clean)
	}
	list = fmt.Sprintf(`[%q,"[redacted]","[redacted]","[redacted]",%q]`, one[:12], one[12:])
	if clean, _ := leak.Scan([]byte(list)); strings.Contains(string(clean), one[12:]) {
		t.Errorf("between its pieces, taken out before: %s", clean)
	}
	key := "ASIA" + strings.ToUpper(strings.Repeat("aB3dE6gH", 2))
	if clean, found := leak.Text("key " + key); clean != "key "+leak.Redacted || len(found) != 1 {
		t.Errorf("a key for a while: %q, %+v", clean, found)
	}
}

// TestTheMaskOfAVariable holds that a mask is no secret: it is shown in the place of one. A text that only resembles a mask is no mask.
func TestTheMaskOfAVariable(t *testing.T) {
	mask := policy.Mask([]byte("thirty-two bytes of a keyed hash"))
	for name, c := range map[string]struct {
		value  string
		secret bool
	}{"a mask": {mask, false}, "a mask and more": {mask + "x", true}, "the value": {"swordfish-1234", true}} {
		clean, found := leak.Values(map[string]string{"API_KEY": c.value}).Text(c.value)
		if (clean != c.value) != c.secret || (len(found) > 0) != c.secret || leak.Variable("API_KEY", c.value) != c.secret {
			t.Errorf("%s: got %q, %+v, and as a variable %t, want secret: %t", name, clean, found, leak.Variable("API_KEY", c.value), c.secret)
		}
	}
}

// TestWhichVariablesAreSecret holds that a variable is secret by its name, by the look of its value, or by a secret within its value.
func TestWhichVariablesAreSecret(t *testing.T) {
	for name, c := range map[string]struct {
		name, value string
		secret      bool
	}{
		"a name that says so":      {"API_KEY", "hunter", true},
		"blanks around the value":  {"API_KEY", "\t hunter\n", true},
		"only blanks":              {"API_KEY", "        ", false},
		"a value that looks so":    {"X", "s3cr3tvalue-of-mine", true},
		"a key within a sentence":  {"NOTE", "use " + secret(t, leak.GitHubToken) + " for it", true},
		"a sentence":               {"NOTE", "use the other one for it", false},
		"a variable of the daemon": {"AGENTBOX_KEY", "hunter", false},
		"no value":                 {"API_KEY", "", false},
	} {
		if got := leak.Variable(c.name, c.value); got != c.secret {
			t.Errorf("%s: %s=%q: got %t, want %t", name, c.name, c.value, got, c.secret)
		}
	}
}
