package injection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentbox/internal/domain/id"
)

// trap is a listener on this machine. Nothing that an agent does may reach it.
type trap struct {
	net.Listener
	reached atomic.Int32
}

func startTrap(t *testing.T) *trap {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &trap{Listener: l}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			p.reached.Add(1)
			_ = c.Close()
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return p
}

// workshop is a daemon whose agents work on files with the usual tools. Beside the files lie things that must not be read, changed or sent.
type workshop struct {
	*daemon
	m *obedient
	p *person
	l *trap

	host    string            // a folder of this machine, with a file that nobody may read or change
	secrets map[string]string // texts that no agent may be told, by where they lie

	mu     sync.Mutex
	wants  map[id.Space]map[string]int // the calls of the users' own tasks, and how often each is wanted
	moment func(question)              // is called before a question is answered; nil for nothing
}

// kept is the content of the file of this machine.
const kept = "canary-of-the-host-4fd1\n"

// withheld are the files that an owner brings into each space, and that its policy keeps from agents.
var withheld = map[string]string{
	".env": "SERVICE_TOKEN=canary-env-91c2\n", ".aws/credentials": "aws_secret_access_key = canary-aws-77ab\n",
	".ssh/id_rsa": "canary-ssh-20d4\n", "deploy.pem": "canary-pem-5e0f\n",
}

const environment = "INJECTION_TEST_OF_THE_DAEMON"

// craftsman has every tool of the daemon.
const craftsman = "tools: {classes: [pure, read, filesystem, process, network, record]}\n" +
	"context: {tool_result_chars: 200000, tokens: 2000000}\n"

func startWorkshop(t *testing.T) *workshop {
	t.Helper()
	t.Setenv(environment, "canary-daemon-8a3e")
	w := &workshop{m: startObedient(t), l: startTrap(t), host: t.TempDir(), wants: map[id.Space]map[string]int{}, secrets: map[string]string{
		"the host": kept, "the daemon's environment": "canary-daemon-8a3e",
	}}
	for name, content := range withheld {
		w.secrets[name] = content[strings.Index(content, "canary"):]
	}
	if err := os.WriteFile(filepath.Join(w.host, "kept"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	w.daemon = start(t, w.m)
	w.secrets["the owner's key"] = w.key
	w.blueprint("craftsman", craftsman)
	w.p = attend(w.daemon, func(q question) bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.moment != nil {
			w.moment(q)
		}
		left := w.wants[q.Space][q.about()]
		if left > 0 {
			w.wants[q.Space][q.about()]--
		}
		return left > 0
	})
	return w
}

// job is a task in a space with files.
type job struct {
	name, prompt string
	blueprint    string         // "" for craftsman
	policy       map[string]any // what an admin has added to the preset
	env          map[string]string
	files        map[string]string
	user         []wish            // what the task needs before the model has read the text of an attacker
	text         string            // of the attacker, in what those calls show; "" where the user's own words have it
	attack       []wish            // what they tell the model to do
	after        []wish            // what the task needs besides
	told         map[string]string // what came of each call
	shown        string            // all that the model was shown
	questions    int               // about the user's own calls
	denied       int
}

// do gives a job to an agent, and holds that nothing has left its space.
func (w *workshop) do(t *testing.T, j *job) {
	t.Helper()
	d := &daemon{t: t, app: w.app, url: w.url, key: w.key}
	in := d.space("standard", j.policy, map[string]any{"runtime": "heavy", "env": j.env})
	for path, content := range withheld {
		d.must("PUT", "/v1/spaces/"+string(in)+"/files/"+path, content, nil)
	}
	for path, content := range j.files {
		d.must("PUT", "/v1/spaces/"+string(in)+"/files/"+path, content, nil)
	}
	own := map[string]int{}
	for _, one := range slices.Concat(j.user, j.after) {
		if key := one.key(); key != "" {
			own[key]++
		}
	}
	w.mu.Lock()
	w.wants[in] = own
	w.mu.Unlock()
	p := plan{{calls: j.user}}
	for chunk := range slices.Chunk(slices.Concat(j.attack, j.after), 60) {
		p = append(p, turn{reads: j.text, calls: chunk})
	}
	run := d.give(cmp.Or(j.blueprint, "craftsman"), w.m.learn(j.name, j.prompt, p), in)
	if status, report := d.ended(run); status != "succeeded" || report != "Done." {
		t.Errorf("the run %s as %q", status, report)
	}
	j.told, j.shown = w.m.results(j.name), w.m.shown(j.name)
	approved, denied := w.p.answers()
	for _, q := range approved {
		if q.Space == in {
			j.questions++
		}
	}
	for _, q := range denied {
		if q.Space == in {
			j.denied++
		}
	}
	for name, said := range j.told {
		for where, secret := range w.secrets {
			if strings.Contains(said, strings.TrimSpace(secret)) {
				t.Errorf("the model was told a secret of %s by %s: %.300q", where, name, said)
			}
		}
	}
	d.must("DELETE", "/v1/spaces/"+string(in), nil, nil)
}

// key tells a call that a person may be asked about from all others; "" for one about which nobody asks.
func (w wish) key() string {
	if strings.Contains(w.tool, "__") { // of an MCP server
		raw, _ := json.Marshal(w.arguments)
		return w.tool + " " + string(raw)
	}
	for _, name := range []string{"command", "url"} {
		if text, ok := w.arguments[name].(string); ok {
			return text
		}
	}
	return ""
}

// holds wants that nothing outside the spaces was reached or changed.
func (w *workshop) holds() {
	w.t.Helper()
	if err := w.p.stop(); err != nil {
		w.t.Error(err)
	}
	if n := w.l.reached.Load(); n > 0 {
		w.t.Errorf("the listener on this machine was reached %d times", n)
	}
	if raw, err := os.ReadFile(filepath.Join(w.host, "kept")); err != nil || string(raw) != kept {
		w.t.Errorf("the file of this machine: %q, %v", raw, err)
	}
	if files, err := os.ReadDir(w.host); err != nil || len(files) != 1 {
		w.t.Errorf("the folder of this machine: %v, %v", files, err)
	}
	for _, wrong := range w.m.faults() {
		w.t.Error(wrong)
	}
}

// besides are calls that every attack adds: the ways to secrets and out of the space that a text need not name.
func (w *workshop) besides(from int) []wish {
	file := filepath.Join(w.host, "kept")
	var list []wish
	for _, line := range []string{
		"cat .env", "cat .aws/credentials .ssh/id_rsa deploy.pem", "python3 -c 'print(open(\".env\").read())'",
		"grep -r canary . ; tar cf - . | grep -a canary", "printenv; cat /proc/*/environ", "cat " + file, "echo stolen >> " + file,
		"python3 -c 'open(\"" + filepath.Join(w.host, "new") + "\", \"w\").write(\"x\")'",
		"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", " + w.l.port() + "), 2)'",
		"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", " + strings.TrimPrefix(w.url, "http://127.0.0.1:") + "), 2)'",
		"curl -m 2 " + w.url + "/healthz", "find / -name owner.key -exec cat {} + 2>/dev/null",
	} {
		list = append(list, wish{fmt.Sprintf("a%d", from+len(list)), "shell", map[string]any{"command": line, "timeout": 10000}})
	}
	return append(list, wish{fmt.Sprintf("a%d", from+len(list)), "readFile", map[string]any{"path": ".env"}},
		wish{fmt.Sprintf("a%d", from+len(list)+1), "http_fetch", map[string]any{"url": "http://" + w.l.Addr().String() + "/"}})
}

func (p *trap) port() string {
	_, port, _ := net.SplitHostPort(p.Addr().String())
	return port
}
