package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/journal/journaltest"
	"agentbox/internal/kernel/vault"
	"agentbox/internal/testkit/pgtest"
)

// The nodes of tests.
const (
	nodeA id.Node = "node_00000000000000000000000001"
	nodeB id.Node = "node_00000000000000000000000002"
	nodeC id.Node = "node_00000000000000000000000003"
)

// memberOf opens a log as a member, with keys of a folder that all share.
func memberOf(t *testing.T, address, keys string, n id.Node, dropped func(context.Context) error) *postgres.Journal {
	t.Helper()
	j, err := openMember(t.Context(), address, keys, n, dropped)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func openMember(ctx context.Context, address, keys string, n id.Node, dropped func(context.Context) error) (*postgres.Journal, error) {
	o := optionsAt(address, nil)
	o.Member = &postgres.Membership{Node: n, Address: "http://" + string(n), Dropped: dropped}
	o.Unlock = func() (vault.Keys, error) { return keyring.OpenShared(keys, rand.Reader, time.Now) }
	return postgres.Open(ctx, o)
}

func members(t *testing.T, j *postgres.Journal) map[id.Node]node.Member {
	t.Helper()
	found, err := j.Together.Members(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	by := map[id.Node]node.Member{}
	for _, m := range found {
		by[m.Node] = m
	}
	return by
}

// Members append to one log with shared keys. A daemon that wants the database exclusively waits for all members, and the members wait for
// it.
func TestMembersShareAReign(t *testing.T) {
	t.Parallel() // most of it is waiting for who gives up
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	ours, err := keyring.OpenShared(keys, rand.Reader, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	alone := optionsAt(address, ours)
	alone.Alone = true
	single, err := postgres.Open(t.Context(), alone)
	if err != nil {
		t.Fatal(err)
	}
	b := journaltest.Batch(journaltest.Draft("x").About("note", "n"))
	if _, err := single.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	waits, joined := make(chan struct{}), make(chan *postgres.Journal, 1)
	go func() {
		o := optionsAt(address, nil)
		o.Member = &postgres.Membership{Node: nodeA}
		o.Unlock = func() (vault.Keys, error) { return ours, nil }
		o.Waits = func() { close(waits) }
		j, err := postgres.Open(t.Context(), o)
		if err != nil {
			t.Error(err)
		}
		joined <- j
	}()
	<-waits
	if err := single.Close(); err != nil {
		t.Fatal(err)
	}
	a := <-joined
	second := memberOf(t, address, keys, nodeB, nil)
	for _, j := range []*postgres.Journal{a, second, a} {
		if _, err := j.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	// A member reads the events that the other one has acknowledged.
	if doc, err := second.Document(t.Context(), journaltest.Workspace, "notes", "n"); err != nil || doc.Version != 4 {
		t.Errorf("the document is at version %d, %v, want 4", doc.Version, err)
	}
	// Another daemon of the same node is refused.
	if j, err := openMember(t.Context(), address, keys, nodeB, nil); fault.CodeOf(err) != "node_in_use" {
		t.Errorf("a second daemon of a node: %v, want node_in_use", err)
		_ = j.Close()
	}
	refused := alone
	ctx, refuse := context.WithCancel(t.Context())
	refused.Waits = refuse
	if j, err := postgres.Open(ctx, refused); err == nil {
		t.Error("a daemon has the database for itself beside members")
		_ = j.Close()
	}
	if found := members(t, a); !found[nodeA].Alive || !found[nodeB].Alive || found[nodeB].Epoch != 2 || found[nodeB].Address != "http://"+
		string(nodeB) {
		t.Errorf("the members are %+v", found)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	for asked := 0; members(t, second)[nodeA].Alive; asked++ { // the server sees the end of a connection a moment later
		if asked == 10_000 {
			t.Fatal("who was closed is alive")
		}
	}
}

// A member whose connections are lost goes on under the same reign, for no other one has begun.
func TestAMemberComesBack(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	a, b := memberOf(t, address, keys, nodeA, nil), memberOf(t, address, keys, nodeB, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reigned := make(chan error, 1)
	go func() { reigned <- a.Reign(ctx) }()
	cut(t, address)
	for !members(t, b)[nodeA].Alive {
		if err := t.Context().Err(); err != nil {
			t.Fatal("the member did not come back")
		}
	}
	if _, err := a.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-reigned; err != nil {
		t.Error(err)
	}
}

// One of the members leads; when it ends, or loses its connection, the next one does.
func TestOneLeads(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	leads := make(chan id.Node)
	stops := map[id.Node]context.CancelFunc{}
	ended := map[id.Node]chan error{}
	var last *postgres.Journal
	for _, n := range []id.Node{nodeA, nodeB, nodeC} {
		j := memberOf(t, address, keys, n, nil)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		stops[n], ended[n], last = stop, make(chan error, 1), j
		go func() {
			ended[n] <- j.Together.Lead(ctx, func(ctx context.Context) error {
				leads <- n
				<-ctx.Done()
				return nil
			})
		}()
	}
	first := <-leads
	if found := members(t, last); !found[first].Leads {
		t.Errorf("%s leads and the members are %+v", first, found)
	}
	stops[first]()
	if err := <-ended[first]; err != nil {
		t.Error(err)
	}
	second := <-leads
	if second == first {
		t.Errorf("%s leads again", second)
	}
	cut(t, address)
	<-leads // the first leader
	n := 0
	for _, m := range members(t, last) {
		if m.Leads {
			n++
		}
	}
	if n > 1 {
		t.Errorf("%d lead", n)
	}
}

// A redaction is done when every member that lives has dropped the keys; one that does not say so keeps it open, and is named.
func TestARedactionWaitsForAllMembers(t *testing.T) {
	t.Parallel() // likewise
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	stuck := make(chan struct{})
	dropped := make(chan struct{}, 16)
	a := memberOf(t, address, keys, nodeA, nil)
	b := memberOf(t, address, keys, nodeB, func(ctx context.Context) error {
		dropped <- struct{}{}
		select {
		case <-stuck:
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	secret, err := a.Append(t.Context(), journaltest.Batch(journaltest.Draft("private").About("note", "n")))
	if err != nil {
		t.Fatal(err)
	}
	if found, err := b.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Limit: 1}); err != nil || len(found) != 1 ||
		found[0].Withheld != "" {
		t.Fatalf("before: %+v, %v", found, err)
	}
	if _, err := a.Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, secret.Events[0],
		"told to", nil))); err != nil {
		t.Fatal(err)
	}
	err = a.Redact(t.Context(), journaltest.Workspace, []uint64{1})
	if fault.CodeOf(err) != "redaction_open" {
		t.Fatalf("with a member that does not answer: %v, want redaction_open", err)
	}
	<-dropped
	if open, err := a.Unfinished(t.Context(), journaltest.Workspace); err != nil || len(open) != 1 {
		t.Errorf("unfinished are %v, %v, want one", open, err)
	}
	close(stuck)
	if err := a.Redact(t.Context(), journaltest.Workspace, []uint64{1}); err != nil {
		t.Errorf("once it has answered: %v", err)
	}
	if open, err := a.Unfinished(t.Context(), journaltest.Workspace); err != nil || len(open) != 0 {
		t.Errorf("unfinished are %v, %v, want none", open, err)
	}
	if found, err := b.Read(t.Context(), journal.Query{Workspace: journaltest.Workspace, Limit: 1}); err != nil || len(found) != 1 ||
		found[0].Withheld != event.Forgotten {
		t.Errorf("after: %+v, %v", found, err)
	}
	// One that has ended is waited for by nobody.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Append(t.Context(), journaltest.Batch(event.RedactionOf(event.Origin{Principal: journaltest.User}, secret.Events[0],
		"again", nil))); err != nil {
		t.Fatal(err)
	}
	if err := a.Redact(t.Context(), journaltest.Workspace, []uint64{1}); err != nil {
		t.Error(err)
	}
}

// A member is given up once it is dead, and comes back no more.
func TestAMemberIsGivenUp(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	a := memberOf(t, address, keys, nodeA, nil)
	b, err := openMember(t.Context(), address, keys, nodeB, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Together.Remove(t.Context(), nodeB); !errors.Is(err, node.ErrAlive) {
		t.Errorf("one that lives: %v, want %v", err, node.ErrAlive)
	}
	if err := a.Together.Remove(t.Context(), nodeC); !errors.Is(err, node.ErrNone) {
		t.Errorf("one that never was: %v, want %v", err, node.ErrNone)
	}
	// Its connections are cut, and it does not come back by itself, for nobody calls Reign: so it is held to be dead, and is not.
	cut(t, address)
	for n := 0; ; n++ {
		if err = a.Together.Remove(t.Context(), nodeB); !errors.Is(err, node.ErrAlive) {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := b.Append(t.Context(), journaltest.Batch(journaltest.Draft("x"))); !errors.Is(err, node.ErrRemoved) {
			t.Errorf("who was given up appends: %v, want %v", err, node.ErrRemoved)
		}
	}
	if err := b.Reign(t.Context()); !errors.Is(err, node.ErrRemoved) {
		t.Errorf("its membership ends with %v, want %v", err, node.ErrRemoved)
	}
	if err := b.Close(); err != nil && fault.CodeOf(err) == "" {
		t.Error(err)
	}
	if j, err := openMember(t.Context(), address, keys, nodeB, nil); !errors.Is(err, node.ErrRemoved) {
		t.Errorf("who was given up joins: %v, want %v", err, node.ErrRemoved)
		_ = j.Close()
	}
	if found := members(t, a); !found[nodeB].Removed || found[nodeA].Removed {
		t.Errorf("the members are %+v", found)
	}
}

// The meaning of a name belongs to one member at a time, whichever daemon asks.
func TestExclusive(t *testing.T) {
	address, keys := pgtest.Start(t).Database(), filepath.Join(t.TempDir(), "keys")
	a, b := memberOf(t, address, keys, nodeA, nil), memberOf(t, address, keys, nodeB, nil)
	release, err := a.Together.Exclusive(t.Context(), "spaces of ws_dev")
	if err != nil {
		t.Fatal(err)
	}
	other, err := b.Together.Exclusive(t.Context(), "spaces of ws_two")
	if err != nil {
		t.Fatal(err)
	}
	other()
	got := make(chan error, 1)
	go func() {
		mine, err := b.Together.Exclusive(t.Context(), "spaces of ws_dev")
		if err == nil {
			mine()
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("two have it at a time: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if err := <-got; err != nil {
		t.Error(err)
	}
}
