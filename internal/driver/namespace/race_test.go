//go:build linux

package namespace_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
	"agentbox/internal/domain/space/filestest"
	"agentbox/internal/driver/disk"
	"agentbox/internal/driver/memory"
	"agentbox/internal/driver/namespace"
	"agentbox/internal/spaceinit/inittest"
)

type clock struct{}

func (clock) Now() time.Time { return time.Now() }

func (clock) NewTimer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

// canary is what lies outside.
const canary = "outside: nobody in a space may have this"

// TestEscapeByRace lets a program inside a space exchange a folder and a file with links that lead out, without a pause, while the host
// reads, writes, lists, archives and deletes by the same names. The host neither hands out what lies outside nor changes it.
func TestEscapeByRace(t *testing.T) {
	house, outside, swapping := race(t)
	inside, refused := 0, 0
	for range 200 {
		var seen bytes.Buffer
		for _, path := range []string{"folder/secret", "file"} {
			if text, err := house.Read(t, path); err == nil {
				seen.WriteString(text)
				inside++
			} else {
				refused++
			}
			_, _ = house.Edit(t, path, space.Edit{Old: "outside", New: "changed"})
		}
		_, _ = house.Write(t, "folder/new", "written", true)
		_, _ = house.Write(t, "file", "inside", true)
		_ = house.Delete(t, "folder/only-outside")
		_ = house.Files.Archive(t.Context(), house.Issue(filestest.Action(policy.FileArchive, "folder")), &seen, nil)
		names, _ := house.List(t, "folder", true, 100)
		fmt.Fprint(&seen, names)
		if strings.Contains(strings.ReplaceAll(seen.String(), "links that point outside", ""), "outside") {
			t.Fatalf("got %q from outside", seen.String())
		}
	}
	if inside == 0 || refused == 0 {
		t.Errorf("%d tries met the space's own files and %d a link, want some of both: else it was no race", inside, refused)
	}
	swapping()
	for name, want := range map[string]string{"secret": canary, "only-outside": canary, "new": ""} {
		if text, err := os.ReadFile(filepath.Join(outside, name)); string(text) != want || (err != nil) != (want == "") {
			t.Errorf("outside, %s: got %q, %v, want %q", name, text, err, want)
		}
	}
}

// race makes a space in which a program exchanges folder and file with links to outside until stop is called.
func race(t *testing.T) (house *filestest.House, outside string, stop func()) {
	t.Helper()
	outside = t.TempDir()
	for _, name := range []string{"secret", "only-outside"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(canary), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	subject := filestest.Subject{Issue: func(a policy.Action) policy.Permit {
		canonical, err := a.Canonical()
		if err != nil {
			panic(err)
		}
		return policy.Issue(canonical, nil)
	}}
	if os.Geteuid() == 0 {
		subject.UID = 765_432
	}
	store, err := disk.OpenSpaces(t.Context(), t.TempDir(), memory.NewKeys(rand.Reader), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	subject.Store = store
	house = filestest.NewHouse(t, subject)
	swapper, err := inittest.BuildPackage("agentbox/internal/driver/namespace/testdata/escape")
	if err != nil {
		t.Fatal(err)
	}
	house.Host(t, "swapper", string(swapper))
	house.Host(t, "folder/secret", "inside")
	house.Host(t, "file", "inside")
	house.Link(t, "folder link", outside)
	house.Link(t, "file link", filepath.Join(outside, "secret"))
	if err := os.Chmod(filepath.Join(house.Dir, "swapper"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := inittest.Build()
	if err != nil {
		t.Fatal(err)
	}
	tier, err := namespace.New(namespace.Options{
		Program: program, Root: namespace.HostRoot, Owner: fmt.Sprintf("race%d", os.Getpid()), Clock: clock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	limits := space.DefaultLimits()
	raw, err := json.Marshal(limits)
	if err != nil {
		t.Fatal(err)
	}
	start := policy.Action{Type: policy.SpaceStart, Workspace: id.DefaultWorkspace, Space: filestest.One, Limits: raw}
	living, err := tier.Create(t.Context(), subject.Issue(start),
		space.Spec{ID: filestest.One, Dir: house.Dir, UID: subject.UID, Limits: limits, BestEffort: os.Geteuid() != 0})
	if err != nil {
		t.Fatal(errors.Join(err, tier.Close()))
	}
	ctx, cancel := context.WithCancel(t.Context())
	begun, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		exec := policy.Action{
			Type: policy.ShellExec, Workspace: id.DefaultWorkspace, Space: filestest.One, TimeoutMS: 600_000,
			Argv: []string{"/workspace/swapper", "swap", "folder", "folder link", "file", "file link"},
		}
		exit, err := living.Exec(ctx, subject.Issue(exec), nil, func(string, []byte) error {
			close(begun)
			return nil
		})
		if err == nil && !exit.Canceled {
			err = fmt.Errorf("the swapper ended: %+v", exit)
		}
		ended <- err
	}()
	select {
	case <-begun:
	case err := <-ended:
		t.Fatal(errors.Join(err, tier.Close()))
	}
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			if err := errors.Join(<-ended, tier.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(stop)
	return house, outside, stop
}
