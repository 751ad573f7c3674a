package transfer_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/sumdb/note"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/transfer"
)

const ws = journaltest.Workspace

// home is a workspace of n notes in two streams and of a run that names a content, with a checkpoint that was signed before its last event.
func home(t *testing.T, n int) transfer.Source {
	t.Helper()
	log, blobs := empty(t)
	stored, err := blobs.Put(t.Context(), strings.NewReader("the operations"), 100)
	if err != nil {
		t.Fatal(err)
	}
	named := event.New(run.EventCreated, event.Origin{Principal: journaltest.User}, ws, journaltest.Room, run.Created{Run: "run_1",
		Input: run.Input{Digest: stored.Digest, Size: stored.Size}}).In("run_1", "")
	gone := event.New(run.EventCreated, event.Origin{Principal: journaltest.User}, ws, journaltest.Room, run.Created{Run: "run_2",
		Input: run.Input{Digest: event.DigestOf([]byte("gone"))}}).In("run_2", "")
	drafts := []event.Draft{named, gone}
	for i := range n {
		drafts = append(drafts, journaltest.Draft(fmt.Sprintf("<note> %d & more\u2028", i)), journaltest.InRoom(journaltest.Room, "x"))
	}
	drafts[2].Display = []byte(`{"text":"<b>&\u2028"}`)
	for len(drafts) > 0 {
		k := min(len(drafts), journal.MaxBatch)
		b := journaltest.Batch(drafts[:k]...)
		b.Key = fmt.Sprint("key ", len(drafts))
		b.Digest = event.DigestOf([]byte(b.Key))
		if _, err := log.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		drafts = drafts[k:]
	}
	private, public, err := merkle.NewKey(&journaltest.Chance{})
	if err != nil {
		t.Fatal(err)
	}
	var edge merkle.Edge
	hashes, err := journal.Hashes(t.Context(), log, ws, 1, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range hashes {
		edge.Add(merkle.LeafHash(uint64(i)+1, h), nil)
	}
	signer, _, err := private.Signer()
	if err != nil {
		t.Fatal(err)
	}
	c := merkle.Checkpoint{Origin: merkle.OriginOf(public.Name(), ws), Size: edge.Size(), Root: edge.Root()}
	signed, err := note.Sign(&note.Note{Text: c.Text()}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return transfer.Source{Log: log, Contents: blobs, Checkpoint: string(signed), PublicKey: public}
}

func empty(t *testing.T) (*memory.Journal, blob.Store) {
	t.Helper()
	s := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, s.Clock, s.IDs, s.Entropy)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	return log, memory.NewBlobs()
}

func write(t *testing.T, from transfer.Source) ([]byte, transfer.Moved) {
	t.Helper()
	var b bytes.Buffer
	moved, err := transfer.Write(t.Context(), &b, from, ws, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), "test")
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), moved
}

// TestAWorkspaceMoves writes a workspace and takes it in: event by event the same, contents and proof too.
func TestAWorkspaceMoves(t *testing.T) {
	from := home(t, 1100) // events of more than one file
	file, wrote := write(t, from)
	log, blobs := empty(t)
	took, err := transfer.Read(t.Context(), bytes.NewReader(file), transfer.Target{Log: log, Contents: blobs, Key: from.PublicKey})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wrote, took); diff != "" || took.Events != 2202 || took.Contents != 1 || took.Missing != 1 || took.Keys != 3 ||
		took.Size != 4 {
		t.Errorf("-written +taken\n%s%+v", diff, took)
	}
	for seq := uint64(1); seq < 2202; seq += journal.MaxRead {
		q := journal.Query{Workspace: ws, From: seq, Limit: journal.MaxRead}
		was, err := from.Log.Read(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		is, err := log.Read(t.Context(), q)
		if diff := cmp.Diff(was, is); diff != "" || err != nil {
			t.Fatalf("%v -was +is\n%s", err, diff)
		}
	}
	if err := journaltest.CheckChains(t.Context(), log, ws); err != nil {
		t.Error(err)
	}
	was, err := from.Log.Keys(t.Context(), ws, "", journal.MaxBatch)
	if err != nil {
		t.Fatal(err)
	}
	if is, err := log.Keys(t.Context(), ws, "", journal.MaxBatch); err != nil || !slices.Equal(is, was) {
		t.Errorf("keys are %+v, %v; want %+v", is, err, was)
	}
	if c, err := blobs.Open(t.Context(), event.DigestOf([]byte("the operations"))); err != nil {
		t.Error(err)
	} else if raw, _ := io.ReadAll(c); string(raw) != "the operations" {
		t.Errorf("content: %q", raw)
	}
	if _, err := transfer.Read(t.Context(), bytes.NewReader(file), transfer.Target{Log: log, Contents: blobs}); !errors.Is(err,
		journal.ErrOccupied) {
		t.Errorf("a second time: %v", err)
	}
}

// unpack returns the entries of a file, and pack makes a file of entries.
func unpack(t *testing.T, file []byte) (entries [][2]string) {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return entries
		}
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, [2]string{h.Name, string(raw)})
	}
}

func pack(t *testing.T, entries [][2]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		if err := errors.Join(w.WriteHeader(&tar.Header{Name: e[0], Size: int64(len(e[1])), Mode: 0o600}), func() error {
			_, err := io.WriteString(w, e[1])
			return err
		}()); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestAChangedFileIsRefused changes, leaves out, moves and cuts: nothing of it becomes a workspace.
func TestAChangedFileIsRefused(t *testing.T) {
	from := home(t, 4)
	file, _ := write(t, from)
	whole := unpack(t, file)
	cases := map[string][]byte{"nothing": nil, "text": []byte("a text"), "no entries": pack(t, nil)}
	for n := range whole {
		cases["without "+whole[n][0]] = pack(t, append(append([][2]string{}, whole[:n]...), whole[n+1:]...))
		cases["cut before "+whole[n][0]] = pack(t, whole[:n])
		if n > 0 {
			moved := append([][2]string{}, whole...)
			moved[n-1], moved[n] = moved[n], moved[n-1]
			cases["moved up "+whole[n][0]] = pack(t, moved)
		}
		for at := 0; at < len(whole[n][1]); at += 1 + len(whole[n][1])/97 {
			changed := append([][2]string{}, whole...)
			raw := []byte(whole[n][1])
			raw[at] ^= 1
			changed[n][1] = string(raw)
			cases[fmt.Sprintf("byte %d of %s", at, whole[n][0])] = pack(t, changed)
		}
	}
	cases["more behind its end"] = pack(t, append(append([][2]string{}, whole...), [2]string{"more", ""}))
	newer := append([][2]string{}, whole...)
	newer[0][1] = strings.Replace(newer[0][1], "workspace/2", "workspace/3", 1)
	cases["a newer form"] = pack(t, newer)
	for n := 0; n < len(file); n += 1 + len(file)/50 {
		cases[fmt.Sprintf("cut at %d", n)] = file[:n]
	}
	for name, raw := range cases {
		log, blobs := empty(t)
		_, err := transfer.Read(t.Context(), bytes.NewReader(raw), transfer.Target{Log: log, Contents: blobs})
		if fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
		if head, err := log.Head(t.Context(), ws); err != nil || head != 0 {
			t.Errorf("%s: it left %d events, %v", name, head, err)
		}
	}
	_, other, err := merkle.NewKey(io.MultiReader(strings.NewReader("other"), &journaltest.Chance{}))
	if err != nil {
		t.Fatal(err)
	}
	log, blobs := empty(t)
	if _, err := transfer.Read(t.Context(), bytes.NewReader(file), transfer.Target{Log: log, Contents: blobs, Key: other}); err == nil {
		t.Error("it was taken for one that another key signed")
	}
}

// TestNoSuchWorkspace has nothing to write, and a context that ended writes nothing.
func TestNoSuchWorkspace(t *testing.T) {
	from := home(t, 1)
	if _, err := transfer.Write(t.Context(), io.Discard, from, "ws_none", time.Time{}, ""); fault.KindOf(err) != fault.NotFound {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transfer.Write(ctx, io.Discard, from, ws, time.Time{}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
}
