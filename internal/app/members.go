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
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/node"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/keyring"
	"agentbox/internal/host"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/service/nodes"
	"agentbox/internal/service/spaces"
)

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
func (a *App) theNode(ids *id.Source) (id.Node, error) {
	raw, err := readSmall(a.path(nodeFile))
	if errors.Is(err, fs.ErrNotExist) {
		n := id.New[id.Node](ids)
		if err := trees.Replace(a.path(nodeFile), []byte(n+"\n"), 0o600); err != nil {
			return "", unwritable(err, a.Config.DataDir)
		}
		return n, nil
	}
	if err != nil {
		return "", unwritable(err, a.Config.DataDir)
	}
	n, err := id.Parse[id.Node](strings.TrimSpace(string(raw)))
	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "data_invalid", "%s does not say which node the data directory is", a.path(nodeFile)).
			With("put it back from a backup: the spaces of this daemon bear its name")
	}
	return n, nil
}

// advertised is where the other members reach this one.
func (a *App) advertised() string {
	switch {
	case a.Config.Advertise != "":
		return strings.TrimSuffix(a.Config.Advertise, "/")
	case a.serving != "":
		return "http://" + a.serving
	}
	return "http://" + a.Config.Listen
}

// hosts are the names by which a request may call this daemon, besides those of its loopback address.
func (c Config) hosts() []string {
	if u, err := url.Parse(c.Advertise); err == nil && u.Hostname() != "" {
		return []string{u.Hostname()}
	}
	return nil
}

// joins opens the folder that members share.
func (a *App) joins() (err error) {
	if a.shared, err = claimTogether(a.Config.Shared); err != nil {
		return err
	}
	keys, err := keyring.OpenShared(a.Config.keys(), rand.Reader, a.clock.Now)
	a.keys = keys
	return err
}

// shareSecrets sees to it that the secrets lie in the folder that members share, and the proofs. One member after the other does, so that
// what the first one brings, or makes, the others find.
func (a *App) shareSecrets(ctx context.Context) error {
	if a.member == nil {
		return nil
	}
	giveBack, err := a.member.Together.Exclusive(ctx, "secrets of the members")
	if err != nil {
		return err
	}
	defer giveBack()
	for name, code := range map[string]string{authFile: "auth_key_invalid", claimsFile: "claim_key_invalid", permitFile: "permit_key_invalid",
		bootstrapFile: "bootstrap_key_invalid"} {
		if err := a.bring(name, func() error { return copySecret(a.path(name), a.Config.shared(name)) }); err != nil {
			return err
		}
		if _, err := a.secret(name, code); err != nil {
			return err
		}
	}
	if a.Config.SigningKey == "" {
		// The proofs go with the key that has signed them, and are there before it.
		if err := a.bring(signingFile, a.bringProofs); err != nil {
			return err
		}
	}
	signed, err := trees.Open(a.Config.shared(proofsDir), a.clock).Workspaces(ctx)
	if err == nil {
		_, err = signingKey(a.Config, len(signed) > 0, rand.Reader)
	}
	return err
}

// bring has something brought from the data directory into the shared folder: from that of the first member, which may have worked alone
// before.
func (a *App) bring(name string, do func() error) error {
	if info, err := regular(a.Config.shared(name)); err != nil || info != nil {
		return err
	}
	if info, err := regular(a.path(name)); err != nil || info == nil {
		return err // it is made anew
	}
	if err := do(); err != nil {
		return fault.Wrap(err, fault.Unavailable, "data_unwritable", "%s cannot be brought into the shared folder %s", name, a.Config.Shared)
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

func (a *App) bringProofs() error {
	from, to := a.path(proofsDir), a.Config.shared(proofsDir)
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
	return copySecret(a.path(signingFile), a.Config.shared(signingFile))
}

// dropped takes what was redacted out of the index of this daemon, once there is one.
func (a *App) dropped(ctx context.Context) error {
	if library := a.library.Load(); library != nil {
		return library.Through(ctx)
	}
	return nil
}

// members are the daemons of the log; of one that works alone it is the only one.
func (a *App) members() node.Members {
	if a.member != nil {
		return a.member.Together
	}
	return single{a}
}

// single is the only daemon of a log.
type single struct{ a *App }

// Members implements node.Members.
func (s single) Members(context.Context) ([]node.Member, error) {
	return []node.Member{{Node: s.a.node, Address: s.a.advertised(), Since: s.a.began, Epoch: 1, Alive: true, Leads: true}}, nil
}

// Remove implements node.Members.
func (s single) Remove(_ context.Context, n id.Node) error {
	if n == s.a.node {
		return node.ErrAlive
	}
	return node.ErrNone
}

// takeCensus wires what knows the nodes.
func (a *App) takeCensus() {
	a.Nodes = nodes.New(nodes.Parts{Members: a.members(), Gate: a.Gate, System: System, GiveUp: a.Spaces.Ending.GiveUp})
}

// shares is what the keeper needs to know of other daemons.
func (a *App) shares() spaces.Together {
	if a.member == nil {
		return spaces.Together{}
	}
	return spaces.Together{Leads: a.leads.Load, Exclusive: a.member.Together.Exclusive}
}

// uids is where the host uids of this daemon's spaces begin.
func (a *App) uids() int {
	first := firstUID()
	if first != 0 && a.member != nil {
		first += (a.member.Together.Number() - 1) * uidsOfNode % (1<<31 - 1 - first - uidsOfNode)
	}
	return first
}

// openBlobs opens the contents of the log.
func (a *App) openBlobs(ctx context.Context) (*disk.Blobs, error) {
	if a.member == nil {
		return disk.OpenBlobs(ctx, a.Config.blobs(), a.keys, rand.Reader)
	}
	return disk.OpenSharedBlobs(ctx, a.Config.blobs(), string(a.node), a.keys, rand.Reader)
}

// recoverAlone puts in order what only one daemon of a log may.
func (a *App) recoverAlone(ctx context.Context) error {
	if err := a.Transfer.Recover(ctx); err != nil {
		return err
	}
	if err := a.Redaction.Recover(ctx); fault.CodeOf(err) == "redaction_open" {
		a.logger.Warn("a redaction is not done yet", "code", "redaction_open", "error", err) // it is tried again
	} else if err != nil {
		return err
	}
	return a.Nodes.Recover(ctx)
}

// lead does what only the leader may, whenever this daemon is the leader, until ctx ends.
func (a *App) lead(ctx context.Context) error {
	return a.member.Together.Lead(ctx, func(ctx context.Context) error {
		err := a.leadOnce(ctx)
		if errors.Is(err, journal.ErrClosed) && fault.CodeOf(err) != node.ErrRemoved.Code || ctx.Err() != nil {
			if err != nil {
				a.logger.Warn("the leadership ends", "code", "leadership_lost", "error", err)
			}
			return nil
		}
		return err
	})
}

func (a *App) leadOnce(ctx context.Context) error {
	free, err := a.takeLeadership(ctx)
	if err != nil || free == nil {
		return err
	}
	defer func() { _ = free.Close() }()
	if err := a.Signer.Recover(ctx); err != nil {
		return err
	}
	a.leads.Store(true)
	defer a.leads.Store(false)
	if err := a.recoverAlone(ctx); err != nil {
		return err
	}
	a.logger.Info("this daemon leads", "code", "leadership_taken", "node", a.node)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var parts sync.WaitGroup
	for name, run := range a.alone() {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				stop(errors.Join(errors.New(name), err))
			}
		})
	}
	<-ctx.Done()
	parts.Wait()
	a.lastCheckpoint(ctx)
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil
}

// takeLeadership waits until nobody else acts as the leader; nil where ctx ended before.
func (a *App) takeLeadership(ctx context.Context) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(a.Config.Shared, leaderFile), os.O_CREATE|os.O_RDWR|host.NoFollow, 0o600)
	if err != nil {
		return nil, unwritable(err, a.Config.Shared)
	}
	for told := false; ; told = true {
		err := host.Lock(f, host.Exclusive|host.NoWait)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, host.ErrLocked) && !host.Interrupted(err) {
			return nil, errors.Join(unwritable(err, a.Config.Shared), f.Close())
		}
		if !told {
			a.logger.Warn("the leader before this one has not stopped yet", "code", "leadership_awaited")
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return nil, f.Close()
		}
	}
}
