package gate_test

import (
	"testing"

	"agentbox/internal/domain/policy"
)

const (
	allow = policy.Allow
	ask   = policy.RequireApproval
	deny  = policy.Deny
)

func TestPresetsOnCommands(t *testing.T) {
	h := build(t, nil)
	for _, c := range []struct {
		command                           string
		restrictive, standard, permissive policy.Outcome
	}{
		{"ls -la", deny, allow, allow},
		{"bun run report.ts", deny, allow, allow},
		{"python3 report.py && cat report.md | head -5", deny, allow, allow},
		{"echo hi", deny, allow, allow},
		{"echo hi > out.txt", deny, allow, allow},
		{"echo hi > .env", deny, allow, allow},
		{"echo hi > prod.key", deny, allow, allow},
		{"echo hi > .git/config", deny, deny, allow},
		{"cat .env", deny, allow, allow},
		{"cat server.pem", deny, allow, allow},
		{"cp .env.example .env && cat .env", deny, allow, allow},
		{"cat .git/config", deny, deny, allow},
		{"cat sub/dir/.env", deny, allow, allow},
		{"rm one.txt", deny, allow, allow},
		{"rm -r scratch", deny, ask, ask},
		{"mv scratch /tmp/gone", deny, ask, ask},
		{"mv scratch other", deny, allow, allow},
		{"rm -rf /", deny, deny, deny},
		{"rm *.tmp", deny, ask, ask},
		{"rm a b c d e f g h i j k l m n o p q r s t", deny, allow, allow},
		{"rm a b c d e f g h i j k l m n o p q r s t u", deny, ask, ask},
		{"find . -name '*.tmp' -delete", deny, ask, ask},
		{"npm install left-pad", deny, deny, allow},
		{"npm ci", deny, deny, allow},
		{"npm run build", deny, allow, allow},
		{"npx cowsay hi", deny, ask, allow},
		{"bun add left-pad", deny, deny, allow},
		{"pip install requests", deny, deny, allow},
		{"python3 -m pip install requests", deny, deny, allow},
		{"pip install --no-index ./six.whl", deny, ask, allow},
		{"npm install ./left-pad.tgz", deny, ask, allow},
		{"pip list", deny, allow, allow},
		{"ln -s /etc/passwd link", deny, allow, allow},
		{"cp /etc/passwd copy", deny, allow, allow},
		{"cp copy /etc/passwd", deny, deny, deny},
		{"cp -t /etc a b", deny, deny, deny},
		{"ln -s a /etc/b", deny, deny, deny},
		{"ln -s .env link", deny, allow, allow},
		{"sudo ls", deny, deny, deny},
		{"ls; sudo ls", deny, deny, deny},
		{"echo $(sudo ls)", deny, deny, deny},
		{"bash -c 'ls && sudo ls'", deny, deny, deny},
		{"ssh host", deny, deny, ask},
		{"mount /dev/sda /mnt", deny, deny, allow},
		{"curl https://example.com", deny, deny, allow},
		{"cat </dev/tcp/1.2.3.4/80", deny, deny, allow},
		{"chmod +x run.sh", deny, deny, ask},
		{"chown root x", deny, deny, ask},
		{"eval ls", deny, ask, ask},
		{"$CMD x", deny, ask, ask},
		{`p='1e rm -r victim'; sed "$p" f`, deny, ask, ask},
		{`sed -e "$y" f`, deny, ask, ask},
		{`echo "$y" | sed -f - f`, deny, ask, ask},
		{`p='BEGIN{system("id -un")}'; awk "$p" f`, deny, ask, ask},
		{`v=1.2; sed -i "s/x/$v/" f`, deny, allow, allow},
		{"PATH=/tmp:$PATH; ls", deny, ask, ask},
		{"LD_PRELOAD=./x.so ls", deny, ask, ask},
		{"alias ls='rm -rf'; ls", deny, ask, ask},
		{"./run.sh", deny, allow, allow},
		{"git status", deny, allow, allow},
		{"greet() { echo hi; }; greet", deny, allow, allow},
		{"sudo() { :; }; sudo ls", deny, deny, deny},
		{"ls() { rm -r x; }; ls", deny, ask, ask},
		{"source lib.sh", deny, ask, ask},
		{"bash <<'EOF'\nsudo ls\nEOF", deny, deny, deny},
		{"echo ls | bash", deny, ask, ask},
		{"for f in a b; do wc -l $f; done", deny, allow, allow},
		{"x=1", deny, allow, allow},
		{"", deny, allow, allow},
		{"echo hi > /etc/passwd", deny, deny, deny},
		{"echo hi > /tmp/x", deny, allow, allow},
		{"echo hi 2>/dev/null", deny, allow, allow},
		{"if [ -f x ]; then", deny, deny, deny},
	} {
		for preset, want := range map[string]policy.Outcome{"restrictive": c.restrictive, "standard": c.standard, "permissive": c.permissive} {
			a := h.shell(preset, c.command)
			if c.command == "" {
				a.Command = ""
			}
			r := h.judge(a)
			if r.Decision.Outcome != want {
				t.Errorf("%s %q: got %s (%s: %s), want %s", preset, c.command, r.Decision.Outcome, r.Decision.ReasonCode, r.Decision.Reason, want)
			}
			if r.Decision.ReasonCode == "" || r.Decision.Reason == "" {
				t.Errorf("%s %q: got no reason", preset, c.command)
			}
		}
	}
}
