package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gowebpki/jcs"
)

// digestOf returns the digest of a value's canonical JSON (RFC 8785), as the API writes digests.
func digestOf(raw []byte) (string, error) {
	canonical, err := jcs.Transform(raw)
	if err != nil {
		return "", err
	}
	return sha(canonical), nil
}

func sha(raw []byte) string {
	sum := sha256.Sum256(raw)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// binding are the checks that an approval is for the bytes that the person saw.
type binding struct{ *examiner }

// bind checks P-Bind: the shown text is hashed, the hashed action runs, and an action that differs by one field is refused.
func (x binding) bind(ctx context.Context, r *result) error {
	space, err := x.own(ctx)
	if err != nil {
		return err
	}
	if err := x.boundFile(ctx, r, space); err != nil {
		return err
	}
	if err := x.boundCommand(ctx, r, space); err != nil {
		return err
	}
	return x.boundOnDisk(ctx, r)
}

// asked sends a request that policy asks about and returns its question.
func asked(a answer) (string, error) {
	if id := a.text("approval_id"); a.status == 409 && id != "" {
		return id, nil
	}
	return "", fmt.Errorf("a file below ask/ was to be asked about, and the answer is %w", a.refusal())
}

// boundFile approves one write of a file, then sends each request that differs from it in one field.
func (x binding) boundFile(ctx context.Context, r *result, space string) error {
	c, content := x.live, "the content that was approved, by "+x.name
	a, err := c.put(ctx, space, "ask/bound.txt", content)
	if err != nil {
		return err
	}
	id, err := asked(a)
	if err != nil {
		return err
	}
	q, err := c.question(ctx, id)
	if err != nil {
		return err
	}
	shown := r.try("the action that a question shows is the one that was asked for, and hashes to the digest that it shows")
	digest, err := digestOf(q.Request)
	if err != nil {
		return err
	}
	var action map[string]any
	if err := json.Unmarshal(q.Request, &action); err != nil {
		return err
	}
	for name, want := range map[string]string{"path": "ask/bound.txt", "content_sha256": sha([]byte(content)), "space_id": space,
		"size_bytes": fmt.Sprint(len(content))} {
		shown.tried(1)
		shown.want(at(action, name) == want, "the question says %s %q, asked was %q", name, at(action, name), want)
	}
	shown.tried(2)
	shown.want(digest == q.Digest, "the action hashes to %s, and the question says %s", digest, q.Digest)
	shown.want(strings.Contains(q.Text.What, q.Digest), "the text of the question does not show %s", q.Digest)
	shown.note("%s", q.Digest)
	if a, err = c.approve(ctx, id); err != nil || !a.ok() {
		return fmt.Errorf("approve: %w, %w", err, a.refusal())
	}

	others := r.try("with that approved, every request that differs by one thing is refused")
	flips := []struct {
		what         string
		method, path string
		content      string
		header       []string
	}{
		{what: "another path", path: "ask/bound.txu"},
		{what: "another letter case", path: "ask/Bound.txt"},
		{what: "a folder more", path: "ask/x/bound.txt"},
		{what: "reading", method: "GET"},
		{what: "deleting", method: "DELETE"},
		{what: "not replacing", header: []string{"If-None-Match", "*"}},
		{what: "no content", content: "\x00"},
		{what: "a byte more", content: content + "\n"},
		{what: "a byte less", content: content[:len(content)-1]},
	}
	for i := range content { // each byte of the content
		changed := []byte(content)
		changed[i] ^= 1
		flips = append(flips, flips[0])
		flips[len(flips)-1].what, flips[len(flips)-1].path, flips[len(flips)-1].content = fmt.Sprintf("byte %d", i), "", string(changed)
	}
	for _, f := range flips {
		method, path, body := "PUT", "/v1/spaces/"+space+"/files/ask/bound.txt", []byte(content)
		if f.method != "" {
			method, body = f.method, nil
		}
		if f.path != "" {
			path = "/v1/spaces/" + space + "/files/" + f.path
		}
		if f.content == "\x00" {
			body = []byte{}
		} else if f.content != "" {
			body = []byte(f.content)
		}
		var sent any
		if body != nil {
			sent = body
		}
		a, err := c.call(ctx, method, path, sent, f.header...)
		if err != nil {
			return err
		}
		others.tried(1)
		others.want(a.status == 409 && a.text("approval_id") != "" && a.text("approval_id") != id, "%s: %d %s, question %s", f.what, a.status,
			a.text("error"), a.text("approval_id"))
		if again := a.text("approval_id"); again != "" && again != id {
			if _, err := c.call(ctx, "POST", "/v1/approvals/"+again+"/decide", map[string]string{"decision": "deny",
				"reason": "asked by a check of trust"}); err != nil {
				return err
			}
		}
	}
	others.note("each has a question of its own")

	same := r.try("the very request goes through, once, and what is written is what was approved")
	same.tried(3)
	if a, err = c.put(ctx, space, "ask/bound.txt", content); err != nil {
		return err
	}
	same.want(a.ok() && a.text("sha256") == "" || a.text("sha256") == sha([]byte(content)), "the approved request: %d %s", a.status,
		a.text("error"))
	same.want(a.ok(), "the approved request: %d %s", a.status, a.text("error"))
	again, err := c.put(ctx, space, "ask/bound.txt", content)
	if err != nil {
		return err
	}
	same.want(again.status == 409 && again.text("approval_id") != id, "a second time: %d %s", again.status, again.text("error"))
	begun, err := c.log(ctx, 1, "event_types=file.begun,approval.used&space_id="+space)
	if err != nil {
		return err
	}
	uses := 0
	for _, e := range begun {
		if e.Type == "approval.used" && at(e.Data, "approval_id") == id {
			uses++
			same.want(at(e.Data, "action_sha256") == q.Digest, "the log says that %s was used for %s", id, at(e.Data, "action_sha256"))
		}
	}
	if uses == 0 { // the log may file it under the room only
		all, err := c.log(ctx, 1, "event_types=approval.used")
		if err != nil {
			return err
		}
		for _, e := range all {
			if at(e.Data, "approval_id") == id {
				uses++
				same.want(at(e.Data, "action_sha256") == q.Digest, "the log says that %s was used for %s", id, at(e.Data, "action_sha256"))
			}
		}
	}
	same.want(uses == 1, "the log has %d uses of the approval", uses)
	return nil
}

// boundCommand approves a command of a run. It compares the shown action with the one that ran, as the log has it.
func (x binding) boundCommand(ctx context.Context, r *result, space string) error {
	t := r.try("what a run executes are the bytes that the person saw")
	commands := []string{
		"printf 'a b\\tc' | tee -a bound-1", "echo \"$(echo quoted 'twice')\" | tee bound-2", "echo ünï | tee bound-3",
		"cat <<E | tee bound-4\ntwo\nlines\nE",
	}
	for _, command := range commands {
		run, err := x.live.run(ctx, space, 20, shell("bound", command))
		if err != nil {
			return err
		}
		if run.status != "awaiting_approval" || len(run.events) == 0 {
			return fmt.Errorf("the command %q was to be asked about: %.300s", command, run.raw.raw)
		}
		q, err := x.live.question(ctx, at(run.events[len(run.events)-1], "approvalId"))
		if err != nil {
			return err
		}
		var action struct {
			Command string   `json:"command"`
			Argv    []string `json:"argv"`
		}
		if err := json.Unmarshal(q.Request, &action); err != nil {
			return err
		}
		digest, err := digestOf(q.Request)
		if err != nil {
			return err
		}
		t.tried(1)
		t.want(digest == q.Digest, "the action of %q hashes to %s, and the question says %s", command, digest, q.Digest)
		t.want(action.Command == command && slices.Contains(action.Argv, command), "asked was %q, the question says %q and runs %q", command,
			action.Command, action.Argv)
		if a, err := x.live.approve(ctx, q.ID); err != nil || !a.ok() {
			return fmt.Errorf("approve: %w, %w", err, a.refusal())
		}
		if err := x.live.settled(ctx, run.id); err != nil {
			return err
		}
		events, err := x.live.log(ctx, 1, "run_id="+run.id)
		if err != nil {
			return err
		}
		invoked := 0
		for _, e := range events {
			if e.Type != "tool.invoked" {
				continue
			}
			invoked++
			raw, err := json.Marshal(e.Data["input"])
			if err != nil {
				return err
			}
			ran, err := digestOf(raw)
			if err != nil {
				return err
			}
			t.want(ran == q.Digest && at(e.Data, "action_sha256") == q.Digest, "%q: approved was %s, what ran hashes to %s and the log names %s",
				command, q.Digest, ran, at(e.Data, "action_sha256"))
		}
		t.want(invoked == 1, "%q began %d times", command, invoked)
	}
	t.note("the digests of question, intent and use are equal, computed here from the bytes")
	return nil
}

// together is how many spaces are made in one life of a daemon, which takes ten in a minute.
const together = 8

// boundOnDisk changes each field of actions where they are stored, on a daemon of its own, and asks for the actions.
func (x binding) boundOnDisk(ctx context.Context, r *result) error {
	t := r.try("an approved action of which any field was changed on the disk is refused")
	d, space, err := x.fresh(ctx)
	if err != nil {
		return err
	}
	var names []string
	a, err := d.put(ctx, space, "ask/probe", "content")
	if err != nil {
		return err
	}
	leaves, err := d.fields(ctx, a)
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		names = append(names, "file."+strings.Join(leaf, "."))
	}
	if d, err = x.flippedFiles(ctx, t, d, space, leaves); err != nil {
		return err
	}
	if a, err = d.must(ctx, "POST", "/v1/spaces/"+space+"/runs", map[string]any{"protocolVersion": "1.0", "wait": 20,
		"operations": []operation{shell("bound", "echo x | tee probe")}}); err != nil {
		return err
	}
	if leaves, err = d.fields(ctx, a); err != nil {
		return err
	}
	for _, leaf := range leaves {
		names = append(names, "command."+strings.Join(leaf, "."))
	}
	for group := range slices.Chunk(leaves, together) {
		if d, err = x.flippedCommands(ctx, t, d, group); err != nil {
			return err
		}
	}
	t.note("flipped: %s", strings.Join(names, ", "))
	return d.stop()
}

// fields returns the paths to all fields of the action that an answer asks about.
func (c *caller) fields(ctx context.Context, a answer) ([][]string, error) {
	id := a.text("approval_id")
	for _, e := range items(a.body["events"]) {
		id = at(e, "approvalId")
	}
	q, err := c.question(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("the question of %.300s: %w", a.raw, err)
	}
	action, err := decoded(q.Request)
	return leavesOf(action, nil), err
}

// reborn stops a daemon, changes a field of each question on the disk and starts another.
func (x binding) reborn(ctx context.Context, d *daemon, questions []string, leaves [][]string) (*daemon, error) {
	if err := d.stop(); err != nil {
		return nil, err
	}
	if err := changed(d.data, func(db *database) error {
		for i, q := range questions {
			if err := db.document("approvals", q, func(doc map[string]any) { flip(doc["request"], leaves[i]) }); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	return x.up(ctx, d.data, nil)
}

// flippedFiles asks to write a file for each field, approves it, changes the field on the disk and sends the request again.
func (x binding) flippedFiles(ctx context.Context, t *trial, d *daemon, space string, leaves [][]string) (*daemon, error) {
	name := func(i int) string { return fmt.Sprint("ask/flipped-", i) }
	var questions []string
	for i := range leaves {
		a, err := d.put(ctx, space, name(i), "content")
		if err != nil {
			return nil, err
		}
		id, err := asked(a)
		if err != nil {
			return nil, err
		}
		if a, err := d.approve(ctx, id); err != nil || !a.ok() {
			return nil, fmt.Errorf("approve: %w, %w", err, a.refusal())
		}
		questions = append(questions, id)
	}
	d, err := x.reborn(ctx, d, questions, leaves)
	if err != nil {
		return nil, err
	}
	for i, leaf := range leaves {
		a, err := d.put(ctx, space, name(i), "content")
		if err != nil {
			return nil, err
		}
		t.tried(1)
		_, err = os.Stat(filepath.Join(d.data, "spaces", space, "files", name(i)))
		t.want(!a.ok() && errors.Is(err, os.ErrNotExist), "%s of a file was changed, and it was written (%d)", strings.Join(leaf, "."), a.status)
	}
	return d, nil
}

// flippedCommands asks for a command in a space for each field, changes the field on the disk and approves it.
func (x binding) flippedCommands(ctx context.Context, t *trial, d *daemon, leaves [][]string) (*daemon, error) {
	var spaces, questions, runs []string
	for i := range leaves {
		space, err := d.newSpace(ctx, "flipped "+strings.Join(leaves[i], "."))
		if err != nil {
			return nil, err
		}
		run, err := d.run(ctx, space, 20, shell("bound", "echo ran | tee flipped"))
		if err != nil {
			return nil, err
		}
		if run.status != "awaiting_approval" {
			return nil, fmt.Errorf("the command was to be asked about: %.300s", run.raw.raw)
		}
		spaces, runs = append(spaces, space), append(runs, run.id)
		questions = append(questions, at(run.events[len(run.events)-1], "approvalId"))
	}
	d, err := x.reborn(ctx, d, questions, leaves)
	if err != nil {
		return nil, err
	}
	for i, leaf := range leaves {
		if _, err := d.approve(ctx, questions[i]); err != nil { // it refuses at once, or when the command would begin
			return nil, err
		}
		if err := d.settled(ctx, runs[i]); err != nil {
			return nil, err
		}
		t.tried(1)
		_, err := os.Stat(filepath.Join(d.data, "spaces", spaces[i], "files", "flipped"))
		t.want(errors.Is(err, os.ErrNotExist), "%s of a command was changed, and it ran", strings.Join(leaf, "."))
	}
	return d, nil
}

// leavesOf returns the paths to all values of an object that are not objects or lists.
func leavesOf(value any, way []string) (all [][]string) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			all = append(all, leavesOf(v[name], append(slices.Clip(way), name))...)
		}
	case []any:
		for i := range v {
			all = append(all, leavesOf(v[i], append(slices.Clip(way), fmt.Sprint(i)))...)
		}
	default:
		return [][]string{way}
	}
	return all
}

// flip changes one value: the last letter of a text, a number by one, a truth value to the other.
func flip(value any, way []string) {
	changed := func(old any) any {
		switch v := old.(type) {
		case string:
			if v == "" {
				return "x"
			}
			return v[:len(v)-1] + string(v[len(v)-1]^1)
		case json.Number:
			n, _ := v.Int64()
			return n + 1
		case bool:
			return !v
		}
		return "x"
	}
	for len(way) > 0 {
		name, rest := way[0], way[1:]
		switch v := value.(type) {
		case map[string]any:
			if len(rest) == 0 {
				v[name] = changed(v[name])
			}
			value = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return
			}
			if len(rest) == 0 {
				v[i] = changed(v[i])
			}
			value = v[i]
		}
		way = rest
	}
}

// decoded reads JSON and keeps its numbers as they are.
func decoded(raw []byte) (value map[string]any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return value, d.Decode(&value)
}
