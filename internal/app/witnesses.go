package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/driver/disk/trees"
	"agentbox/internal/driver/witness"
	"agentbox/internal/kernel/merkle"
	"agentbox/internal/service/audit"
)

// witnessPeriod is how often a daemon brings its checkpoints to its configured witnesses.
const witnessPeriod = time.Minute

func isAddress(where string) bool {
	return strings.HasPrefix(where, "http://") || strings.HasPrefix(where, "https://")
}

// folderOf returns the folder in which a folder witness keeps the checkpoints of one installation.
func folderOf(dir string, key merkle.PublicKey) *trees.Store {
	return trees.Open(filepath.Join(dir, strings.ReplaceAll(key.Name(), "/", "-")), Clock{})
}

// visit brings the last checkpoint of every workspace to a witness: a folder that is there, or an http address.
func visit(ctx context.Context, p *audit.Prover, workspaces []id.Workspace, where string) (visits []audit.Visit, err error) {
	bring := func(ws id.Workspace) (audit.Visit, error) {
		return p.VisitStore(ctx, ws, where, folderOf(where, p.PublicKey()))
	}
	if isAddress(where) {
		client, err := witness.New(where)
		if err != nil {
			return nil, err
		}
		bring = func(ws id.Workspace) (audit.Visit, error) { return p.VisitWitness(ctx, ws, where, client) }
	} else if info, err := os.Stat(where); err != nil || !info.IsDir() {
		return nil, fault.New(fault.NotFound, "witness_not_found", "%s is not a folder; create it, or connect the drive that holds it", where)
	}
	for _, ws := range workspaces {
		v, err := bring(ws)
		if err != nil {
			return visits, err
		}
		visits = append(visits, v)
	}
	return visits, nil
}

// Visit brings the last checkpoints of a data directory to a witness, once it has checked that they continue the witness's own.
func (p *Proofs) Visit(ctx context.Context, where string) (visits []audit.Visit, err error) {
	err = p.prover(ctx, func(prover *audit.Prover) error {
		workspaces, err := p.Trees.Workspaces(ctx)
		if err == nil && len(workspaces) == 0 {
			err = merkle.ErrNone
		}
		if err == nil {
			visits, err = visit(ctx, prover, workspaces, where)
		}
		return err
	})
	return visits, err
}

// witness brings checkpoints to the configured witnesses about once a minute. Their answers are in the daemon's log.
func (up *upkeep) witness(ctx context.Context) error {
	every(up.app.clock, ctx.Done(), witnessPeriod, func(now time.Time) {
		workspaces, err := up.proofs.Workspaces(ctx)
		if err != nil {
			up.app.logger.Error("bring checkpoints to witnesses", "code", "witnesses_not_visited", "error", err)
			return
		}
		for n, where := range up.app.Config.Witnesses {
			_, err := visit(ctx, up.app.Prover, workspaces, where)
			if ctx.Err() != nil {
				return
			}
			up.app.metrics.Visited(n+1, now, err)
			if err != nil {
				up.app.logger.Error("bring checkpoints to a witness", "code", "witness_not_visited", "witness", where, "error", err)
			}
		}
	})
	return nil
}

// Holders reads the checkpoints that others hold of a data directory: a folder or an address of a witness, or a file with a checkpoint.
func (p *Proofs) Holders(ctx context.Context, against []string) (holders []Holder, err error) {
	if len(against) > 0 && p.Key == "" {
		return nil, fault.New(fault.Invalid, "public_key_missing", "a checkpoint is verified with a public key; name it with --public-key")
	}
	for _, where := range against {
		h := Holder{Name: where, Checkpoints: map[id.Workspace]audit.Held{}}
		switch info, err := os.Stat(where); {
		case isAddress(where):
			if err := p.ask(ctx, where, &h); err != nil {
				return nil, err
			}
		case err != nil:
			return nil, fault.Wrap(err, fault.NotFound, "witness_not_found", "%s cannot be read", where)
		case info.IsDir():
			store := folderOf(where, p.Key)
			workspaces, err := store.Workspaces(ctx)
			if err != nil {
				return nil, err
			}
			for _, ws := range workspaces {
				signed, err := store.Checkpoint(ctx, ws)
				if err != nil {
					return nil, err
				}
				h.Checkpoints[ws] = audit.HeldNote(where, signed, ws, p.Key, store)
			}
		default:
			signed, err := readCheckpoint(where)
			if err != nil {
				return nil, err
			}
			c, err := merkle.Peek(signed)
			if err != nil {
				return nil, err
			}
			ws, err := c.Workspace()
			if err != nil {
				return nil, fault.Wrap(err, fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: its origin names no workspace")
			}
			h.Checkpoints[ws] = audit.HeldNote(where, signed, ws, p.Key, nil)
		}
		if len(h.Checkpoints) == 0 {
			return nil, fault.New(fault.NotFound, "witness_knows_nothing", "%s holds no checkpoint of %s", where, p.Key.Name()).
				With("either nothing was brought there yet, or this data directory has another key than it had: name the key that you know with " +
					"--public-key")
		}
		holders = append(holders, h)
	}
	return holders, nil
}

func readCheckpoint(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > merkle.MaxCheckpointBytes {
		return nil, fault.New(fault.Invalid, "checkpoint_invalid", "the checkpoint is not valid: it has more than %d bytes",
			merkle.MaxCheckpointBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Wrap(err, fault.NotFound, "witness_not_found", "%s cannot be read", path)
	}
	return raw, nil
}

// ask asks a witness at an address for every workspace that the data directory tells of.
func (p *Proofs) ask(ctx context.Context, where string, h *Holder) error {
	client, err := witness.New(where)
	if err != nil {
		return err
	}
	workspaces, err := p.workspaces(ctx)
	if err != nil {
		return err
	}
	for _, ws := range workspaces {
		signed, err := client.Latest(ctx, merkle.OriginOf(p.Key.Name(), ws))
		if errors.Is(err, merkle.ErrNone) {
			continue
		}
		if err != nil {
			return err
		}
		h.Checkpoints[ws] = audit.HeldNote(where, signed, ws, p.Key, nil)
	}
	return nil
}

// ServeWitness runs a witness of the installations with the given public keys until ctx ends. It keeps its own key and the checkpoints in
// dir, and tells ready where it serves, and by which key its signatures are verified.
func ServeWitness(ctx context.Context, dir, listen string, keys []string, logger *slog.Logger, ready func(address,
	publicKey string)) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the folder of the witness: %w", err)
	}
	private, err := signingKey(Config{DataDir: dir}, false, rand.Reader)
	if err != nil {
		return err
	}
	cosigner, err := merkle.NewCosigner(private, Clock{}.Now)
	if err != nil {
		return err
	}
	logs := make([]witness.Log, len(keys))
	for i, text := range keys {
		key, err := merkle.ParsePublicKey(text)
		if err != nil {
			return err
		}
		logs[i] = witness.Log{Key: key, Kept: folderOf(dir, key)}
	}
	listener, err := net.Listen("tcp", listen)
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "listen_invalid", "the witness cannot listen on %s", listen)
	}
	server := &http.Server{
		Handler: witness.NewHandler(logs, cosigner, logger), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	ready(listener.Addr().String(), cosigner.PublicKey())
	select {
	case err = <-served:
		return err
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err = server.Shutdown(closing)
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
