package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/driver/disk"
	claims "agentbox/internal/kernel/claim"
	"agentbox/internal/service/dispatcher"
	"agentbox/internal/service/keeper"
)

// claimsFile holds the secret from which the tokens of claims are made, 0600. Where it is lost, engines claim anew what they have: nothing is
// known by it that the log does not decide.
const claimsFile = "claims.key"

// dispatch wires what hands runs out to engines.
func (a *App) dispatch(ids *id.Source, blobs *disk.Blobs, asked policy.Gate) error {
	tokens, err := a.claimTokens()
	if err != nil {
		return err
	}
	a.Hands = dispatcher.New(dispatcher.Parts{
		Log: a.counted, Docs: a.Log, Blobs: blobs, MaxContent: a.Config.ContentQuota, Gate: asked, Tokens: tokens, Place: place, Clock: a.clock, IDs: ids, Logger: a.logger,
	})
	return nil
}

// place knows the one room that every workspace has. It has no threads.
func place(_ context.Context, _ id.Workspace, room id.Room, thread id.Thread) error {
	switch {
	case room != keeper.DefaultRoom:
		return fault.New(fault.NotFound, "room_not_found", "there is no room %.64q in this workspace", room)
	case thread != "":
		return fault.New(fault.NotFound, "thread_not_found", "there is no thread %.64q in this room", thread)
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

// authFile holds the secret under which the tokens of engines and of sessions are sealed, 0600. Where it is lost, all of them have to be made anew.
const authFile = "auth.key"

// bootstrapFile holds the token by which the owner of a workspace is given a passphrase, 0600.
const bootstrapFile = "bootstrap.key"

// secret reads a secret of the daemon, and makes it at the first start.
func (a *App) secret(file, code string) ([]byte, error) {
	raw, err := readSmall(a.path(file))
	if errors.Is(err, fs.ErrNotExist) {
		secret, err := claims.NewSecret(rand.Reader)
		if err != nil {
			return nil, err
		}
		return secret, a.dir.put(file, []byte(hex.EncodeToString(secret)+"\n"))
	}
	if err != nil {
		return nil, fault.Wrap(err, fault.Unavailable, code, "the secret in %s cannot be read", file)
	}
	if info, err := os.Stat(a.path(file)); err != nil || info.Mode().Perm()&0o077 != 0 {
		return nil, fault.Wrap(err, fault.Denied, "key_exposed", "%s can be read by other users", a.path(file)).With("mend it with: chmod 600 " + a.path(file))
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
