package transfer_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"iter"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/principal"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/workspace"
	"agentbox/internal/driver/cedar"
	"agentbox/internal/driver/memory"
	"agentbox/internal/kernel/blob"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/service/gate"
	"agentbox/internal/service/identity"
	"agentbox/internal/service/rooms"
	"agentbox/internal/service/spaces"
	"agentbox/internal/service/transfer"
)

// moved is the workspace that is imported in these tests.
const moved = id.Workspace("ws_moved")

// adopter adopts as the log does, unless it is broken.
type adopter struct {
	journal.Adopter
	before error // nothing is adopted, and the daemon is gone
}

// Adopt implements journal.Adopter.
func (a *adopter) Adopt(ctx context.Context, ws id.Workspace, chunks iter.Seq2[[]event.Event, error], keys iter.Seq2[[]journal.KeyUse,
	error]) (uint64, error) {
	if a.before != nil {
		return 0, a.before
	}
	return a.Adopter.Adopt(ctx, ws, chunks, keys)
}

// there is an installation that takes workspaces in.
type there struct {
	*testing.T
	*transfer.Importer
	log     *memory.Journal
	into    *adopter
	origin  event.Origin
	takenUp []id.Workspace
	failing error // of taking up
}

func install(t *testing.T) *there {
	t.Helper()
	ids := id.NewSource(time.Now, rand.Reader)
	s := journaltest.NewSetup()
	log, err := memory.NewJournal(append(append(gate.Definitions(), rooms.Definitions()...), spaces.Definition(), transfer.Definition()),
		s.Clock, ids, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	g, err := gate.New(gate.Parts{Log: log, Docs: log, Evaluator: cedar.New(), Clock: s.Clock, IDs: ids,
		System: "svc_00000000000000000000000000"})
	if err != nil {
		t.Fatal(err)
	}
	people := identity.New(identity.Parts{Log: log, Docs: log, Gate: g, Clock: s.Clock, IDs: ids, Entropy: rand.Reader})
	owner, err := people.Owner(t.Context(), id.DefaultWorkspace, "owner")
	if err != nil {
		t.Fatal(err)
	}
	h := &there{T: t, log: log, into: &adopter{Adopter: log}, origin: event.Origin{Principal: owner, Correlation: "cor_test"}}
	h.Importer = transfer.NewImporter(transfer.Parts{
		Log: log, Into: h.into, Docs: log, Contents: memory.NewBlobs(), Gate: g, System: "svc_00000000000000000000000000",
		TakeUp: func(_ context.Context, ws id.Workspace) error {
			h.takenUp = append(h.takenUp, ws)
			return h.failing
		},
	})
	return h
}

// parcel is a file of a workspace with a living space.
func parcel(t *testing.T) transfer.File {
	t.Helper()
	s := journaltest.NewSetup()
	log, err := memory.NewJournal(nil, s.Clock, id.NewSource(time.Now, rand.Reader), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	made := event.New(space.EventCreated, event.Origin{Principal: journaltest.User}, moved, "", space.Created{Space: "spc_1",
		Name: "a space"}).About(space.EntityType, "spc_1")
	if _, err := log.Append(t.Context(), event.Batch{Workspace: moved, Drafts: []event.Draft{made}}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if _, err := transfer.Write(t.Context(), &b, transfer.Source{Log: log, Contents: memory.NewBlobs()}, moved, time.Time{},
		"test"); err != nil {
		t.Fatal(err)
	}
	return fileOf(b.Bytes())
}

func fileOf(raw []byte) transfer.File {
	return transfer.File{Ref: blob.Ref{Digest: event.DigestOf(raw), Size: int64(len(raw))}, Content: bytes.NewReader(raw)}
}

func (h *there) take(file transfer.File, key string) (workspace.Import, error) {
	h.Helper()
	return h.Import(h.Context(), h.origin, id.DefaultWorkspace, file, key)
}

func (h *there) head(ws id.Workspace) uint64 {
	h.Helper()
	head, err := h.log.Head(h.Context(), ws)
	if err != nil {
		h.Fatal(err)
	}
	return head
}

func (h *there) count(typ string) int {
	h.Helper()
	found, err := h.log.Read(h.Context(), journal.Query{Workspace: id.DefaultWorkspace, Types: []string{typ}})
	if err != nil {
		h.Fatal(err)
	}
	return len(found)
}

// TestADaemonTakesAWorkspaceIn records what it does, ends its spaces, takes up its runs, and does it once for a key.
func TestADaemonTakesAWorkspaceIn(t *testing.T) {
	h, file := install(t), parcel(t)
	done, err := h.take(file, "k")
	if err != nil || done.Status != workspace.Imported || done.Workspace != moved || done.Events != 1 || done.Spaces != 1 ||
		done.File != file.Digest {
		t.Fatalf("got %+v, %v", done, err)
	}
	if h.head(moved) != 2 || len(h.takenUp) != 1 {
		t.Errorf("the log has %d events, %d workspaces were taken up", h.head(moved), len(h.takenUp))
	}
	before := h.head(id.DefaultWorkspace)
	if again, err := h.take(file, "k"); err != nil || again != done {
		t.Errorf("a repeat: %+v, %v; want %+v", again, err, done)
	}
	if h.head(id.DefaultWorkspace) != before {
		t.Error("a repeat recorded something")
	}
	other := fileOf([]byte("another file"))
	if _, err := h.take(other, "k"); !errors.Is(err, journal.ErrKeyConflict) {
		t.Errorf("the key with another file: %v", err)
	}
	if _, err := h.take(file, ""); !errors.Is(err, journal.ErrOccupied) {
		t.Errorf("without the key: %v", err)
	}
}

func TestADaemonRefusesAWorkspace(t *testing.T) {
	h, file := install(t), parcel(t)
	member := id.Principal("usr_01ARZ3NDEKTSV4RRFFQ69G5FAV")
	registered := event.New(principal.RegisteredType, h.origin, id.DefaultWorkspace, "", principal.Registered{Principal: member, Kind: id.User,
		Role: principal.Member, Name: "m"}).About(principal.Entity, string(member))
	if _, err := h.log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{registered}}); err != nil {
		t.Fatal(err)
	}
	signed := home(t, 1)
	if _, err := h.Import(t.Context(), h.origin, "ws_other", file, "k"); !errors.Is(err, transfer.ErrNotHere) {
		t.Errorf("for another workspace: %v", err)
	}
	if err := h.May(t.Context(), h.origin, "ws_other"); !errors.Is(err, transfer.ErrNotHere) {
		t.Errorf("may another workspace's: %v", err)
	}
	if err := h.May(t.Context(), event.Origin{Principal: member}, id.DefaultWorkspace); fault.CodeOf(err) != policy.ReasonNoPolicy {
		t.Errorf("may a member: %v", err)
	}
	if err := h.May(t.Context(), h.origin, id.DefaultWorkspace); err != nil {
		t.Errorf("may the owner: %v", err)
	}
	if _, err := h.Import(t.Context(), event.Origin{Principal: member}, id.DefaultWorkspace, file,
		"k"); fault.CodeOf(err) != policy.ReasonNoPolicy {
		t.Errorf("by a member: %v", err)
	}
	if h.count(policy.DeniedType) != 1 {
		t.Error("the refusal is not in the log")
	}
	file.Key = signed.PublicKey
	if _, err := h.take(file, "k"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("with a key that has signed nothing: %v", err)
	}
	if _, err := h.take(fileOf([]byte("a text")), "k"); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a text: %v", err)
	}
	if h.head(moved) != 0 || h.count(workspace.EventImportBegun) != 0 {
		t.Error("a refusal has begun something")
	}
	file = parcel(t)
	if _, err := h.take(file, "k"); err != nil { // under the key of what was refused
		t.Error(err)
	}
}

// TestAnImportThatACrashCutsOff is ended by the next daemon: nothing of it is there, or all of it; a repeat does what is left.
func TestAnImportThatACrashCutsOff(t *testing.T) {
	gone := errors.New("the daemon is gone")
	t.Run("before the log is adopted", func(t *testing.T) {
		h, file := install(t), parcel(t)
		h.into.before = gone
		if _, err := h.take(file, "k"); !errors.Is(err, gone) {
			t.Fatal(err)
		}
		if h.head(moved) != 0 || h.count(workspace.EventImportFailed) != 1 {
			t.Errorf("it left %d events", h.head(moved))
		}
		h.into.before = nil
		if done, err := h.take(file, "k"); err != nil || done.Status != workspace.Imported || h.head(moved) != 2 {
			t.Errorf("the same request again: %+v, %v", done, err)
		}
		if done, err := h.take(file, "k"); err != nil || done.Status != workspace.Imported {
			t.Errorf("and again: %+v, %v", done, err)
		}
	})
	for _, recovered := range []bool{true, false} { // by the next daemon, or by the request that is made again
		t.Run("behind it", func(t *testing.T) {
			h, file := install(t), parcel(t)
			h.failing = gone
			if _, err := h.take(file, "k"); !errors.Is(err, gone) {
				t.Fatal(err)
			}
			if h.head(moved) == 0 || h.count(workspace.EventImported) != 0 {
				t.Fatal("it has ended")
			}
			h.failing = nil
			if recovered {
				if err := h.Recover(t.Context()); err != nil || h.count(workspace.EventImported) != 1 {
					t.Fatalf("recover: %v", err)
				}
			}
			if done, err := h.take(file, "k"); err != nil || done.Status != workspace.Imported || h.count(workspace.EventImported) != 1 ||
				h.head(moved) != 2 {
				t.Errorf("the same request again: %+v, %v", done, err)
			}
		})
	}
	t.Run("with nothing recorded but its beginning", func(t *testing.T) {
		h, file := install(t), parcel(t)
		begun := event.New(workspace.EventImportBegun, h.origin, id.DefaultWorkspace, "", workspace.ImportBegun{Workspace: moved,
			File: file.Digest}).About(workspace.EntityType, string(moved))
		if _, err := h.log.Append(t.Context(), event.Batch{Workspace: id.DefaultWorkspace, Drafts: []event.Draft{begun}}); err != nil {
			t.Fatal(err)
		}
		if err := h.Recover(t.Context()); err != nil || h.count(workspace.EventImportFailed) != 1 {
			t.Fatalf("recover: %v", err)
		}
		if _, err := h.take(file, "k"); err != nil {
			t.Error(err)
		}
	})
}

// TestTheLimitOfAFile reads as many bytes as there are, and not one more than it may.
func TestTheLimitOfAFile(t *testing.T) {
	file, _ := write(t, home(t, 4))
	var size int64
	for _, e := range unpack(t, file) {
		size += 512 + (int64(len(e[1]))+511)/512*512
	}
	size += 1024 // the two blocks at the end
	for most, code := range map[int64]string{size: "", size - 1: transfer.ErrTooLarge.Code, 1: transfer.ErrTooLarge.Code, 0: ""} {
		log, blobs := empty(t)
		if _, err := transfer.Read(t.Context(), bytes.NewReader(file), transfer.Target{Log: log, Contents: blobs,
			Most: most}); fault.CodeOf(err) != code {
			t.Errorf("%d of %d bytes: %v, want %q", most, size, err, code)
		}
	}
	log, blobs := empty(t)
	if _, err := transfer.Read(t.Context(), bytes.NewReader(file), transfer.Target{Log: log, Contents: blobs,
		Only: "ws_another"}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("of another workspace: %v", err)
	}
}
