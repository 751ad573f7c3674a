package leak_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"agentbox/internal/domain/leak"
)

// pem is a private key in PEM, made here so that none stands in the source.
func pem(kind string) string {
	return "-----BEGIN " + kind + "-----\n" + strings.Repeat(strings.Repeat("aB3dE6gH9k", 6)+"\n", 5) + "-----END " + kind + "-----"
}

func TestPrivateKeys(t *testing.T) {
	for _, kind := range []string{"PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY",
		"PGP PRIVATE KEY BLOCK"} {
		for name, text := range map[string]string{"whole": "a\n" + pem(kind) + "\nb", "cut off": "a\n" + pem(kind)[:200], "two": pem(kind) +
			"\nx\n" + pem(kind)} {
			clean, found := leak.Text(text)
			if len(found) == 0 || found[0].Rule != leak.PrivateKey || strings.Contains(clean, "aB3dE6gH9k") {
				t.Errorf("%s, %s: %q, %+v", kind, name, clean, found)
			}
		}
		if clean, found := leak.Scan(quote(t, map[string]string{"key": pem(kind)})); len(found) != 1 || strings.Contains(string(clean),
			"aB3dE6gH9k") {
			t.Errorf("%s in JSON: %s, %+v", kind, clean, found)
		}
	}
	for _, open := range []string{pem("PUBLIC KEY"), pem("CERTIFICATE"), "-----BEGIN a table-----"} {
		if clean, found := leak.Text(open); clean != open || len(found) > 0 {
			t.Errorf("%.30q: %+v", open, found)
		}
	}
}

func TestValuesOfAnEnvironment(t *testing.T) {
	secret := map[string]string{"API_KEY": "hunter", "x": "s3cr3tvalue-of-mine", "DB": "postgres://u:pw0rd@h/db", "aws_secret": "/AbC+d=fgh12",
		"MYTOK": "correct-horse-battery-77", "gh_tok": "plain-words", "DBPW": "open-sesame", "PGPASSWD": "swordfish", "ADMINPWD": "letmein",
		"AWS_CREDS": "two-words", "MYCRED": "one-word", "MYAPIKEY": "someword",
	}
	open := map[string]string{
		"PATH": "/usr/bin:/bin2", "NODE_ENV": "production", "PORT": "80808080", "HOME2": "/workspace/v2", "URL": "https://example.com/v1",
		"TOKEN": "abc", "SHORT": "ab12cd3",
		"KEY_FILE": "/etc/key1", "AUTHOR": "somebody", "STOKE": "firewood", "PWD": "/workspace/a1", "CREDIT": "someone-else",
		"KEYBOARD": "dvorak-de", "BUILD": "2026-01-01T00:00:00Z", "REGION": "eu-central-1-zone-2b",
		"RELEASE": "project-2026-report-final", "AGENTBOX_SEED": "a1b2c3d4e5f6g7h8", "LANG": "en_US.UTF-8"[:5],
	}
	known := leak.Values(secret, open)
	for name, value := range secret {
		clean, found := known.Text("a " + value + " b")
		if clean != "a "+leak.Redacted+" b" || len(found) != 1 || found[0].Rule != leak.EnvValue || strings.Contains(found[0].Preview,
			value[:4]) {
			t.Errorf("%s: %q, %+v", name, clean, found)
		}
	}
	for name, value := range open {
		if clean, found := known.Text("a " + value + " b"); clean != "a "+value+" b" || len(found) > 0 {
			t.Errorf("%s: %q, %+v", name, clean, found)
		}
	}
	for n, want := range map[int]int{leak.MaxMatches: leak.MaxMatches, leak.MaxMatches + 1: leak.MaxMatches} {
		if clean, found := known.Text(strings.Repeat("hunter ", n)); len(found) != want || strings.Contains(clean, "hunter") {
			t.Errorf("%d times: %d found, %q", n, len(found), clean)
		}
	}
}

// However a command's output is cut into pieces, a secret in it is not shown, and what is none comes as it was.
func TestStreams(t *testing.T) {
	env := map[string]string{"API_KEY": "hunter2hunter2", "OTHER": "x-sk-9value0f7mine"}
	known := leak.Values(env)
	chance := rand.New(rand.NewPCG(1, 2))
	pieces := func(text string) string {
		s := leak.NewStream(known)
		var out strings.Builder
		for len(text) > 0 {
			n := min(len(text), 1+chance.IntN(9))
			out.Write(s.Next([]byte(text[:n])))
			text = text[n:]
		}
		out.Write(s.Rest())
		return out.String()
	}
	hidden := slices.Sorted(maps.Values(secrets()))
	hidden = append(hidden, "hunter2hunter2", "x-sk-9value0f7mine", pem("RSA PRIVATE KEY"))
	for _, s := range hidden {
		for range 50 {
			got := pieces("before " + s + "\nafter, a hunter and a task-force\n")
			if strings.Contains(got, bare(s)) || strings.Contains(got, s[max(0, len(s)-20):]) || !strings.Contains(got, leak.Redacted) ||
				!strings.HasSuffix(got, "\nafter, a hunter and a task-force\n") {
				t.Fatalf("%.20q: %q", s, got)
			}
		}
	}
	for _, open := range []string{"plain text", "a\nb\r\nsk-\n", "no newline sk", "hunter2", strings.Repeat("-", 100) + "-----BEGIN",
		strings.Repeat("x\x00\xff", 50_000)} {
		if got := pieces(open); got != open {
			t.Errorf("%.30q became %.60q", open, got)
		}
	}
	// A possible beginning of a secret is held back, up to a bound.
	s := leak.NewStream(known)
	if got := s.Next([]byte("sk-" + strings.Repeat("a", leak.MaxHeld-3))); len(got) != 0 {
		t.Errorf("%d bytes are shown of what may go on", len(got))
	}
	if got := s.Next([]byte("a")); string(got) != leak.Redacted {
		t.Errorf("got %.40q past the bound", got)
	}
	if got := leak.NewStream(known).Next([]byte("50 % done ")); string(got) != "50 % done " {
		t.Errorf("what is not a beginning waits: %q", got)
	}
}
