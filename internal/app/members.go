package app

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"agentbox/internal/app/datadir"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/domain/principal"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/driver/postgres"
	"agentbox/internal/host"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/nodes"
	"agentbox/internal/service/spaces"
)

// membership is this daemon's part among the daemons that work on the same log: it names itself, shares secrets and contents, leads, and
// sends on what belongs to another.
type membership struct {
	app    *App
	node   id.Node
	shared *datadir.Lock     // the folder that other daemons may want too; nil for none
	member *postgres.Journal // the log, of a daemon that works on it together with others; nil of one that is alone
	leads  atomic.Bool       // this member does what only one may
}

// nodeFile says which node a data directory is.
const nodeFile = "node"

// leaderFile is locked in the shared folder by the leading member. The database says who may lead. This lock says that the previous leader
// has stopped, even if it was cut off from the database and does not know it yet.
const leaderFile = "leader.lock"

// uidsOfNode is how many host uids a member has for its spaces, so that two on one host share none.
const uidsOfNode = 10_000

// together reports whether the daemon works on its log together with others.
func (c Config) together() bool { return c.inDatabase() && c.Shared != "" }

// theNode reads which node the data directory is, and decides it at the first start.
func (ms *membership) theNode(ids *id.Source) (id.Node, error) {
	n, err := readNode(ms.app.path(nodeFile))
	if err != nil || n != "" {
		return n, err
	}
	n = id.New[id.Node](ids)
	if err := trees.Replace(ms.app.path(nodeFile), []byte(n+"\n"), 0o600); err != nil {
		return "", datadir.Unwritable(err, ms.app.Config.DataDir)
	}
	return n, nil
}

// readNode reads which node a data directory is, from its file. Before the first start of a daemon there is none: it returns "".
func readNode(file string) (id.Node, error) {
	raw, err := readSmall(file)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", datadir.Unwritable(err, filepath.Dir(file))
	}
	n, err := id.Parse[id.Node](strings.TrimSpace(string(raw)))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "data_invalid", "%s does not say which node the data directory is", file).
			With("put it back from a backup: the spaces of this daemon bear its name")
	}
	return n, nil
}

// advertised is where the other members reach this one.
func (ms *membership) advertised() string {
	switch {
	case ms.app.Config.Advertise != "":
		return strings.TrimSuffix(ms.app.Config.Advertise, "/")
	case ms.app.serving != "":
		return "http://" + ms.app.serving
	}
	return "http://" + ms.app.Config.Listen
}

// hosts are the names by which a request may call this daemon, besides those of its loopback address.
func (c Config) hosts() []string {
	if u, err := url.Parse(c.Advertise); err == nil && u.Hostname() != "" {
		return []string{u.Hostname()}
	}
	return nil
}

// joins opens the folder that members share.
func (ms *membership) joins() (err error) {
	if ms.shared, err = datadir.AcquireShared(ms.app.Config.Shared); err != nil {
		return err
	}
	keys, err := keyring.OpenShared(ms.app.Config.keys(), rand.Reader, ms.app.clock.Now)
	ms.app.keys = keys
	return err
}

// secrets sees to it that the secrets lie in the folder that members share, and the proofs. One member after the other does, so that
// what the first one brings, or makes, the others find.
func (ms *membership) secrets(ctx context.Context) error {
	if ms.member == nil {
		return nil
	}
	release, err := ms.member.Together.Exclusive(ctx, "secrets of the members")
	if err != nil {
		return err
	}
	defer release()
	for name, code := range map[string]string{authFile: "auth_key_invalid", claimsFile: "claim_key_invalid", permitFile: "permit_key_invalid",
		bootstrapFile: "bootstrap_key_invalid"} {
		if err := ms.bring(name, func() error { return copySecret(ms.app.path(name), ms.app.Config.shared(name)) }); err != nil {
			return err
		}
		if _, err := ms.app.secret(name, code); err != nil {
			return err
		}
	}
	if ms.app.Config.SigningKey == "" {
		// The proofs go with the key that has signed them, and are there before it.
		if err := ms.bring(signingFile, ms.bringProofs); err != nil {
			return err
		}
	}
	signed, err := trees.Open(ms.app.Config.shared(proofsDir), ms.app.clock).Workspaces(ctx)
	if err == nil {
		_, err = signingKey(ms.app.Config, len(signed) > 0, rand.Reader)
	}
	return err
}

// bring has something brought from the data directory into the shared folder: from that of the first member, which may have worked alone
// before.
func (ms *membership) bring(name string, do func() error) error {
	if info, err := datadir.Regular(ms.app.Config.shared(name)); err != nil || info != nil {
		return err
	}
	if info, err := datadir.Regular(ms.app.path(name)); err != nil || info == nil {
		return err // it is made anew
	}
	if err := do(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "data_unwritable", "%s cannot be brought into the shared folder %s", name, ms.app.Config.Shared)
	}
	return nil
}

func copySecret(from, to string) error {
	raw, err := readSmall(from)
	if err != nil {
		return err
	}
	return trees.Replace(to, raw, 0o600)
}

func (ms *membership) bringProofs() error {
	from, to := ms.app.path(proofsDir), ms.app.Config.shared(proofsDir)
	if _, err := os.Stat(from); err == nil {
		half := to + ".new"
		err := errors.Join(os.RemoveAll(half), os.CopyFS(half, os.DirFS(from)))
		if err == nil {
			err = os.Rename(half, to)
		}
		if err != nil {
			return err
		}
	}
	return copySecret(ms.app.path(signingFile), ms.app.Config.shared(signingFile))
}

// dropped removes redacted data from the index of this daemon, once there is one.
func (ms *membership) dropped(ctx context.Context) error {
	if library := ms.app.library.Load(); library != nil {
		return library.Through(ctx)
	}
	return nil
}

// members are the daemons of the log; of one that works alone it is the only one.
func (ms *membership) members() node.Members {
	if ms.member != nil {
		return ms.member.Together
	}
	return single{ms.app}
}

// single is the only daemon of a log.
type single struct{ a *App }

// Members implements node.Members.
func (s single) Members(context.Context) ([]node.Member, error) {
	return []node.Member{{Node: s.a.together.node, Address: s.a.together.advertised(), Since: s.a.began, Epoch: 1, Alive: true,
		Leads: true}}, nil
}

// Remove implements node.Members.
func (s single) Remove(_ context.Context, n id.Node) error {
	if n == s.a.together.node {
		return node.ErrAlive
	}
	return node.ErrNone
}

// wireNodes makes the services that know the nodes.
func (ms *membership) wireNodes() {
	ms.app.Nodes = nodes.New(nodes.Parts{
		Members: ms.members(), Gate: ms.app.Gate, System: principal.System, GiveUp: ms.app.Spaces.Ending.GiveUp,
	})
}

// shares answers the questions of the service of spaces about other daemons.
func (ms *membership) shares() spaces.Together {
	if ms.member == nil {
		return spaces.Together{}
	}
	return spaces.Together{Leads: ms.leads.Load, Exclusive: ms.member.Together.Exclusive}
}

// uids is where the host uids of this daemon's spaces begin.
func (ms *membership) uids() int {
	first := firstUID()
	if first != 0 && ms.member != nil {
		first += (ms.member.Together.Number() - 1) * uidsOfNode % (1<<31 - 1 - first - uidsOfNode)
	}
	return first
}

// openBlobs opens the contents of the log.
func (ms *membership) openBlobs(ctx context.Context) (*disk.Blobs, error) {
	if ms.member == nil {
		return disk.OpenBlobs(ctx, ms.app.Config.blobs(), ms.app.keys, rand.Reader)
	}
	return disk.OpenSharedBlobs(ctx, ms.app.Config.blobs(), string(ms.node), ms.app.keys, rand.Reader)
}

// recoverAlone puts in order what only one daemon of a log may.
func (ms *membership) recoverAlone(ctx context.Context) error {
	if err := ms.app.Transfer.Recover(ctx); err != nil {
		return err
	}
	if err := ms.app.Redaction.Recover(ctx); fault.CodeOf(err) == "redaction_open" {
		ms.app.logger.Warn("a redaction is not done yet", "code", "redaction_open", "error", err) // it is tried again
	} else if err != nil {
		return err
	}
	return ms.app.Nodes.Recover(ctx)
}

// lead does what only the leader may, whenever this daemon is the leader, until ctx ends.
func (ms *membership) lead(ctx context.Context) error {
	return ms.member.Together.Lead(ctx, func(ctx context.Context) error {
		err := ms.leadOnce(ctx)
		if errors.Is(err, journal.ErrClosed) && fault.CodeOf(err) != node.ErrRemoved.Code || ctx.Err() != nil {
			if err != nil {
				ms.app.logger.Warn("the leadership ends", "code", "leadership_lost", "error", err)
			}
			return nil
		}
		return err
	})
}

func (ms *membership) leadOnce(ctx context.Context) error {
	free, err := ms.takeLeadership(ctx)
	if err != nil || free == nil {
		return err
	}
	defer func() { _ = free.Close() }()
	if err := ms.app.Signer.Recover(ctx); err != nil {
		return err
	}
	ms.leads.Store(true)
	defer ms.leads.Store(false)
	if err := ms.recoverAlone(ctx); err != nil {
		return err
	}
	ms.app.logger.Info("this daemon leads", "code", "leadership_taken", "node", ms.node)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	for name, run := range ms.app.upkeep.alone() {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				stop(errors.Join(errors.New(name), err))
			}
		})
	}
	<-ctx.Done()
	parts.Wait()
	ms.app.upkeep.lastCheckpoint(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// takeLeadership waits until nobody else acts as the leader; nil where ctx ended before.
func (ms *membership) takeLeadership(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(ms.app.Config.Shared, leaderFile), os.O_CREATE|os.O_RDWR|host.NoFollow, 0o600)
	if err != nil {
		return nil, datadir.Unwritable(err, ms.app.Config.Shared)
	}
	for told := false; ; told = true {
		err := host.Lock(f, host.Exclusive|host.NoWait)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, host.ErrLocked) && !host.Interrupted(err) {
			return nil, errors.Join(datadir.Unwritable(err, ms.app.Config.Shared), f.Close())
		}
		if !told {
			ms.app.logger.Warn("the leader before this one has not stopped yet", "code", "leadership_awaited")
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, f.Close()
		}
	}
}
