package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"agentbox/internal/app/localengine"
	"agentbox/internal/domain/errand"
	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/run"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/disk/trees"
	claims "agentbox/internal/kernel/claim"
	"agentbox/internal/service/engines"
	"agentbox/internal/service/runner"
)

// The engines of a daemon.
const (
	EngineEmbedded = "embedded" // the daemon executes runs of operations itself
	EngineExternal = "external" // others do
)

// Engine executes the runs that another daemon hands out, so many at the same time, until ctx ends, or with once until there is none.
func Engine(ctx context.Context, claims errand.Claims, records errand.Records, clock event.Clock, logger *slog.Logger, hands int,
	once bool) error {
	return (&runner.Runner{Claims: claims, Records: records, Clock: clock, Logger: logger, Hands: hands, Once: once}).Run(ctx)
}

// claimsFile holds the secret of the claim tokens, mode 0600. If it is lost, engines claim their runs anew; the log decides everything
// else.
const claimsFile = "claims.key"

// permitFile holds the seed of the key that signs the permits of engines, mode 0600. If it is lost, the existing permits are invalid. The
// daemon then refuses a report with such a permit until the engine sends it without one.
const permitFile = "permit.key"

// dispatch wires what hands runs out to engines.
func (a *App) dispatch(ids *id.Source, blobs *disk.Blobs, asked policy.Gate) error {
	tokens, err := a.claimTokens()
	if err != nil {
		return err
	}
	seed, err := a.secret(permitFile, "permit_key_invalid")
	if err != nil {
		return err
	}
	seal, err := policy.NewSeal(seed)
	if err != nil {
		return err
	}
	a.Engines = engines.New(engines.Parts{
		Log: a.counted, Docs: a.Log, Blobs: blobs, MaxContent: a.Config.ContentQuota, Gate: asked, Tokens: tokens, ClaimTime: a.Config.ClaimTime,
		Seal: seal, Place: a.place, Clock: a.clock, IDs: ids, Logger: a.logger, Together: a.together.member != nil,
		Keep: func(ctx context.Context, origin event.Origin, doc run.Run) ([]event.Draft, *run.Gathered) {
			return a.engine.Keep(ctx, origin, doc)
		},
	})
	return nil
}

// localEngine makes the engine within the daemon, after the services that it uses.
func (a *App) localEngine() *localengine.Engine {
	return localengine.New(localengine.Parts{
		Log: a.counted, Docs: a.Log, Gate: a.Gate, Identity: a.Identity, Spaces: a.Spaces, Runs: a.Runs, Engines: a.Engines, Rooms: a.Rooms,
		Search: a.Search, Labels: a.Labels, Blueprints: a.Blueprints, Models: a.Models, Pages: a.Pages, Servers: a.Servers, Clock: a.clock,
		Logger: a.logger, Floating: a.Config.Floating, Shares: a.together.member != nil,
	})
}

// place refuses a room that is not there, and a thread of another one.
func (a *App) place(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error {
	if _, err := a.Rooms.Room(ctx, ws, in); err != nil || thread == "" {
		return err
	}
	doc, err := a.Rooms.Thread(ctx, ws, thread)
	if err == nil && doc.Room != in {
		err = room.ErrNoThread
	}
	return err
}

// named is place for what need not be in a room or a thread.
func (a *App) named(ctx context.Context, ws id.Workspace, in id.Room, thread id.Thread) error {
	switch {
	case in != "":
		return a.place(ctx, ws, in, thread)
	case thread != "":
		_, err := a.Rooms.Thread(ctx, ws, thread)
		return err
	}
	return nil
}

// claimTokens reads the secret of claim tokens, and makes it at the first start.
func (a *App) claimTokens() (claims.Tokens, error) {
	secret, err := a.secret(claimsFile, "claim_key_invalid")
	if err != nil {
		return claims.Tokens{}, err
	}
	return claims.NewTokens(secret)
}

// authFile holds the secret under which the tokens of engines and of sessions are sealed, 0600. Where it is lost, all of them have to be
// made anew.
const authFile = "auth.key"

// bootstrapFile holds the token by which the owner of a workspace is given a passphrase, 0600.
const bootstrapFile = "bootstrap.key"

// secret reads a secret of the daemon, and makes it at the first start.
func (a *App) secret(file, code string) ([]byte, error) {
	path := a.Config.shared(file)
	raw, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		secret, err := claims.NewSecret(rand.Reader)
		if err != nil {
			return nil, err
		}
		if err := trees.Replace(path, []byte(hex.EncodeToString(secret)+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("keep the secret %s: %w", file, err)
		}
		return secret, nil
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, code, "the secret in %s cannot be read", file)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fault.Wrap(err, fault.Denied, "key_exposed", "%s can be read by other users", path).With("mend it with: chmod 600 " + path)
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(raw)))
	if err == nil && len(secret) < 32 {
		err = errors.New("it is too short")
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, code, "the secret in %s cannot be read", file)
	}
	return secret, nil
}
