package main_test

import (
	"archive/tar"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// marker is the secret in each withheld file.
const marker = "hunter2-7f3c9"

// attempts are commands that would show, change, move or link .env if they could reach it.
var attempts = []string{
	// opened by its name
	"cat .env", "cat ./.env", "cat ././/.env", "cat $PWD/.env", "cat /workspace/.env", "head -c 99 .env", "tail -n 1 .env", "tac .env",
	"nl .env", "cat < .env", "while read l; do echo $l; done < .env",
	"cat a/b/.env", "cat a/../.env", "cat deep/prod.key", "cat x.key/inner.txt", "cat UPPER.ENV", "cat .env*", "cat .e??", "cat .[e]nv",
	"cat *.ENV", "cat */*.key", "cat x.key/*",
	"base64 .env", "od -c .env", "xxd .env", "strings .env", "sha256sum .env && cat .env", "rev .env | rev", "dd if=.env 2>/dev/null",
	"sed -n p .env", "awk '{print}' .env", "sort .env", "cut -c1- .env", "paste .env",
	// under another name
	"cat link", "cat hard.txt", "cat chain", "readlink link; cat $(readlink link)", "cat -- \"$(realpath .env)\"", "ln .env mine && cat mine",
	"ln -s .env mine2; cat mine2", "mv .env moved; cat moved", "cp .env copied; cat copied",
	"cp -r . /tmp/all; cat /tmp/all/.env", "cp -a . ../tmp/all2; grep -r hunter2 /tmp/all2",
	// searched, listed and packed
	"grep -r hunter2 .", "grep -rn hunter2 /workspace", "find . -name '.env' -exec cat {} +", "find / -name '.env' -exec cat {} + 2>/dev/null",
	"find . -iname '*.env' | xargs cat", "find . -newer link -type f | xargs cat",
	"find .. -size -9 -name '*.key' -exec cat {} \\; 2>/dev/null", "tar cf - . | strings", "tar cf - .env | strings",
	"tar czf all.tgz . && tar xzOf all.tgz", "zip -qr all.zip . && unzip -p all.zip", "gzip -c .env | gzip -dc",
	"diff -r . /tmp", "cat $(ls -A)", "for f in $(ls -A); do cat \"$f\"; done", "cat ../*/.env", "cat /*/.env", "ls -laR; cat */.env",
	// by way of the process and the kernel
	"cat /proc/self/cwd/.env", "cat /proc/$$/cwd/.env", "cat /proc/1/cwd/.env", "cat /proc/self/root/workspace/.env",
	"cat /proc/1/root/workspace/.env", "cat /proc/self/fd/*/.env", "cat /dev/fd/3/.env 3<.",
	"for d in /proc/[0-9]*; do cat $d/cwd/.env $d/root/workspace/.env; done",
	`python3 -c 'import glob; [print(open(f).read()) for end in ("/.env", "/../.env", "/../withheld/files/.env") for at in ("cwd", "root", ` +
		`"root/workspace") for f in glob.glob("/proc/*/" + at + end)]'`, "cat " +
		"/proc/self/mountinfo /proc/self/maps; cat .env",
	`python3 -c 'for l in open("/proc/self/mountinfo"):
    for at in l.split()[3:5]:
        for up in ("/../withheld/files/.env", "/withheld/files/.env", "/.env"):
            try: print(open(at + up).read())
            except OSError: pass'`,
	"cat ../withheld/files/.env", "cat withheld/files/.env", "cat ../../withheld/files/.env", "cat /workspace/../withheld/files/.env",
	"cd ..; cat withheld/files/.env; cat workspace/.env",
	// written, emptied and removed
	"echo x >> .env; cat .env", "truncate -s 0 .env; cat .env", "rm -f .env; cat .env", "touch -r .env y; cat .env",
	"chmod 777 .env; cat .env", "mkdir x.key; cat x.key/inner.txt", "mv deep deeper; cat deeper/prod.key",
	"rm -rf deep; mkdir deep; cat deep/prod.key",
	// Python
	`python3 -c 'print(open(".env").read())'`, `python3 -c 'import os; print(os.read(os.open(".env", os.O_RDONLY), 99))'`,
	`python3 -c 'import pathlib; print(pathlib.Path(".env").read_text())'`,
	`python3 -c 'import mmap; f = open(".env", "r+b"); print(mmap.mmap(f.fileno(), 0)[:])'`,
	`python3 -c 'import os; os.rename(".env", "r"); print(open("r").read())'`,
	`python3 -c 'import os; os.link(".env", "l1"); print(open("l1").read())'`,
	`python3 -c 'import os; d = os.open(".", 0); print(os.read(os.open(".env", 0, dir_fd=d), 99))'`,
	`python3 -c 'import os; [print(open(os.path.join(d, f), errors="replace").read()) for d, _, fs in os.walk(".") for f in fs if ` +
		`os.path.exists(os.path.join(d, f))]'`,
	`python3 -c 'import glob; [print(open(f).read()) for f in glob.glob("**/.*env", recursive=True)]'`,
	`python3 -c 'import shutil; shutil.copytree(".", "/tmp/tree", symlinks=False, ignore_dangling_symlinks=True); ` +
		`print(open("/tmp/tree/.env").read())'`,
	`python3 -c 'import tarfile, io; b = io.BytesIO(); t = tarfile.open(fileobj=b, mode="w"); t.add("."); t.close(); print(b.getvalue())'`,
	`python3 -c 'import zipfile; z = zipfile.ZipFile("p.zip", "w"); z.write(".env"); z.close(); print(zipfile.ZipFile("p.zip").read(".env"))'`,
	`python3 -c 'import subprocess; print(subprocess.run(["cat", ".env"], capture_output=True).stdout)'`,
	`python3 -c 'import os; os.system("cat .env")'`,
	`python3 -c 'import ctypes; c = ctypes.CDLL(None); b = ctypes.create_string_buffer(99); fd = c.open(b".env", 0); c.read(fd, b, 99); ` +
		`print(b.value)'`,
	`python3 -c 'import os; print([e.name for e in os.scandir(".")]); print(open(".env").read())'`,
	`python3 -c 'import os; os.symlink("/workspace/.env", "s9"); print(open("s9").read())'`,
	// JavaScript
	`node -e 'console.log(require("fs").readFileSync(".env", "utf8"))'`,
	`node -e 'console.log(require("fs").readdirSync(".", {recursive: true}).join()); require("fs").renameSync(".env", "j"); ` +
		`console.log(require("fs").readFileSync("j", "utf8"))'`,
	`node -e 'const fs = require("fs"); fs.linkSync(".env", "jl"); console.log(fs.readFileSync("jl", "utf8"))'`,
	`node -e 'const fs = require("fs"); fs.cpSync(".", "/tmp/js", {recursive: true}); console.log(fs.readFileSync("/tmp/js/.env", "utf8"))'`,
	`node -e 'import("fs/promises").then(f => f.readFile(".env", "utf8")).then(console.log)'`,
	`node -e 'const fs = require("fs"); const fd = fs.openSync(".env", "r+"); const b = Buffer.alloc(99); fs.readSync(fd, b); ` +
		`console.log(b.toString())'`,
	// a race: names come and go while somebody reads
	`mkdir r; for i in $(seq 200); do mv r .env 2>/dev/null; cat .env; mv .env r 2>/dev/null; done; rmdir r`,
	`python3 -c '
import os
os.mkdir("ra")
for i in range(2000):
    try:
        os.rename("ra", ".env"); os.rename(".env", "ra"); print(open(".env").read())
    except OSError: pass
os.rmdir("ra")'`,
	`(for i in $(seq 300); do ln -sfn .env z; ln -sfn link z; done) & for i in $(seq 300); do cat z; done 2>/dev/null; wait; rm -f z`,
}

// shows reports whether a text tells the secret, in one of the forms in which the attempts print.
func shows(text string) bool {
	for _, form := range []string{marker, base64.StdEncoding.EncodeToString([]byte("TOKEN=" + marker))[:16],
		hex.EncodeToString([]byte(marker)), strings.Join(strings.Split(marker, ""), "   ")} {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// project is what a person brings in.
func project(t *testing.T) string {
	t.Helper()
	var raw bytes.Buffer
	w := tar.NewWriter(&raw)
	for _, e := range []struct {
		name, text string
		kind       byte
	}{
		{".env", "TOKEN=" + marker + "\n", tar.TypeReg}, {"link", ".env", tar.TypeSymlink}, {"chain", "link", tar.TypeSymlink},
		{"hard.txt", ".env", tar.TypeLink},
		{"a/b/.env", marker, tar.TypeReg}, {"deep/prod.key", marker, tar.TypeReg}, {"deep/readme", "plain", tar.TypeReg}, {"x.key/inner.txt",
			marker, tar.TypeReg}, {"UPPER.ENV", marker, tar.TypeReg},
		{".env.example", "TOKEN=\n", tar.TypeReg}, {"lib/site-packages/certifi/cacert.pem", "public", tar.TypeReg},
		{"lib/site-packages/pkg/tests/test.key", "test key", tar.TypeReg},
	} {
		h := &tar.Header{Name: e.name, Typeflag: e.kind, Mode: 0o644}
		if e.kind == tar.TypeReg {
			h.Size = int64(len(e.text))
		} else {
			h.Linkname = e.text
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if e.kind == tar.TypeReg {
			_, _ = io.WriteString(w, e.text)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(raw.Bytes())
}

// within makes a space with the project.
func (c *victim) within(runtime, withhold string) map[string]any {
	return c.post("/v1/spaces",
		fmt.Sprintf(`{"runtime":%q,"best_effort":true,"policy":"permissive","policy_overrides":{"ask":{"commands":[],"traits":[]},"limits":{"command_ms":60000}%s},"from":{"archive":%q}}`,
			runtime, withhold, project(c.t)))
}

// tries sends commands to a space in one run and returns what each printed.
func (c *victim) tries(in string, commands ...string) []string {
	c.t.Helper()
	said := make([]string, 0, len(commands))
	for len(commands) > 0 {
		n := min(len(commands), 50)
		var ops []map[string]any
		for k, command := range commands[:n] {
			ops = append(ops, map[string]any{"type": "shell", "id": fmt.Sprint("op", k), "command": command, "timeout": 30000})
		}
		body, _ := json.Marshal(map[string]any{"protocolVersion": "1.0", "operations": ops, "wait": 300})
		answer := c.post("/v1/spaces/"+in+"/runs", string(body))
		byID := map[string]string{}
		for _, e := range c.results(answer) {
			text, _ := json.Marshal(e)
			byID[fmt.Sprint(e["operationId"])] += string(text)
			if e["type"] == "policyDenied" {
				c.t.Errorf("the gate refused, so nothing was tried: %s", text)
			}
		}
		for k := range n {
			said = append(said, byID[fmt.Sprint("op", k)])
		}
		commands = commands[n:]
	}
	return said
}

// results returns the events of a run that has ended.
func (c *victim) results(answer map[string]any) (all []map[string]any) {
	c.t.Helper()
	id := fmt.Sprint(answer["runId"])
	alive(c.t, c.daemon.Process.Pid, "the run to end", func() bool {
		_, answer, _ = c.call("GET", "/v1/runs/"+id, "")
		return answer["ended_at"] != nil || answer["status"] == "awaiting_approval" || answer["error"] != nil
	})
	message, _ := answer["result"].(map[string]any)
	events, _ := message["events"].([]any)
	for _, e := range events {
		all = append(all, e.(map[string]any))
	}
	if len(all) == 0 {
		c.t.Fatalf("the run tells nothing: %v", answer)
	}
	return all
}

// file reads a file over the API.
func (c *victim) file(path, key string) (int, string) {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.url+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// TestThreatWithheldFilesAreOutOfReach tries every way to a withheld file, in each tier. That the ways are ways at all is seen in a space
// whose policy withholds nothing.
func TestThreatWithheldFilesAreOutOfReach(t *testing.T) {
	t.Setenv("AGENTBOX_CACHE", cache())
	c := &victim{t: t, bin: "agentbox", dir: filepath.Join(t.TempDir(), "data"), seen: map[string]string{}, flags: []string{"--rate",
		"spaces=1000", "--rate", "runs=1000", "--rate", "files=10000"}}
	c.start()
	for _, tier := range []string{"nano", "namespace"} {
		t.Run(tier, func(t *testing.T) {
			ways := 0
			for rest := attempts; len(rest) > 0; rest = rest[min(len(rest), 6):] { // what one takes away the next ones find again
				open := c.within(tier, `,"withhold":{"paths":[]}`)["id"].(string)
				for _, said := range c.tries(open, rest[:min(len(rest), 6)]...) {
					if shows(said) {
						ways++
					}
				}
			}
			if ways < 60 {
				t.Errorf("only %d of %d attempts reach a file that is not withheld", ways, len(attempts))
			}
			made := c.within(tier, `,"withhold":{"paths":["*.env","*.key"],"except":["site-packages/**"]}`)
			in := made["id"].(string)
			if made["withheld_files"] != float64(6) {
				t.Errorf("%v files are withheld, want 6", made["withheld_files"])
			}
			for k, said := range c.tries(in, attempts...) {
				if shows(said) {
					t.Errorf("%q shows it: %.400s", attempts[k], said)
				}
			}
			for _, path := range []string{".env", "a/b/.env", "deep/prod.key", "x.key/inner.txt", "UPPER.ENV", "hard.txt"} {
				want := marker
				if path == ".env" || path == "hard.txt" {
					want = "TOKEN=" + marker + "\n"
				}
				if status, got := c.file("/v1/spaces/"+in+"/files/"+path+"?withheld=true", c.key); status != 200 || got != want {
					t.Errorf("%s is %d %q now, want %q", path, status, got, want)
				}
			}
			fresh := c.within(tier, `,"withhold":{"paths":["*.env","*.key"],"except":["site-packages/**"]}`)["id"].(string)
			for k, said := range c.tries(fresh, "cp .env.example .env && cat .env",
				"cat lib/site-packages/certifi/cacert.pem lib/site-packages/pkg/tests/test.key", "echo mine > my.key && cat my.key") {
				if want := []string{"TOKEN=", "publictest key", "mine"}[k]; !strings.Contains(said, want) {
					t.Errorf("got %s, want %q in it", said, want)
				}
			}
			if tier == "namespace" { // nano has no git
				said := c.tries(fresh, "git init -q . && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm first && git log "+
					"--oneline --stat && git checkout -q -b other && git status")
				if !strings.Contains(said[0], "first") || !strings.Contains(said[0], "On branch other") || strings.Contains(said[0], "prod.key") {
					t.Errorf("git says %s", said[0])
				}
			}
			c.operationsOn(t, fresh)
		})
	}
}

// operationsOn has operations of a run try what code does not see.
func (c *victim) operationsOn(t *testing.T, in string) {
	t.Helper()
	answer := c.post("/v1/spaces/"+in+"/runs", `{"protocolVersion":"1.0","wait":60,"operations":[
		{"type":"readFile","id":"1","path":"deep/prod.key"},{"type":"readFile","id":"2","path":"hard.txt"},
		{"type":"editFile","id":"3","path":"deep/prod.key","edits":[{"oldContent":"hunter2","newContent":"x"}]},
		{"type":"deleteFile","id":"4","path":"deep/prod.key"},{"type":"readFile","id":"5","path":"link"},
		{"type":"createFile","id":"6","path":"deep/prod.key","content":"code's own"},{"type":"readFile","id":"7","path":"deep/prod.key"}]}`)
	for _, e := range c.results(answer) {
		text, _ := json.Marshal(e)
		id := fmt.Sprint(e["operationId"])
		if shows(string(text)) {
			t.Errorf("it is shown: %s", text)
		}
		if id >= "1" && id <= "4" && !strings.Contains(string(text), "file_withheld") {
			t.Errorf("got %s, want file_withheld", text)
		}
		if id == "7" && !strings.Contains(string(text), "code's own") {
			t.Errorf("got %s, want the file that code made", text)
		}
	}
	if _, got := c.file("/v1/spaces/"+in+"/files/deep/prod.key", c.key); got != "code's own" {
		t.Errorf("a person is given %q, want the file of code where there are two", got)
	}
	if _, got := c.file("/v1/spaces/"+in+"/files/deep/prod.key?withheld=true", c.key); got != marker {
		t.Errorf("a person who asks for the withheld one is given %q", got)
	}
}
