package spaces

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/space"
)

// withheld are the files of spaces that policy hides from code.
type withheld struct {
	catalog *Catalog
	living  *Living
	library policy.Library
	store   space.Store
}

// Which names one of two files with the same path: that of code, or the one that is withheld from code.
type Which int

// The files of one path.
const (
	Any  Which = iota // the one that code sees; to a person, the withheld one where there is no other
	Seen              // the one that code sees
	Held              // the withheld one, which only a person may ask for
)

// may refuses withheld files to callers who are not people.
func (w Which) may(origin event.Origin) error {
	if w == Held && !person(origin) {
		return fault.New(space.ErrWithheld.Kind, space.ErrWithheld.Code, "what is withheld from code is shown to people only").
			With("Ask a person for the one value that is needed, as a variable of the space's environment.")
	}
	return nil
}

// whichOf returns the file that an action is about.
func whichOf(a policy.Action) Which {
	if a.Method == space.MethodWithheld {
		return Held
	}
	return Seen
}

// person reports whether a person acts. Files that agents and services write belong to code, and withheld files are hidden from them too.
func person(origin event.Origin) bool { return origin.Principal.Kind() == id.User }

// absent reports whether an error says that code has no such file.
func absent(err error) bool {
	return errors.Is(err, space.ErrFileNotFound) || errors.Is(err, space.ErrWithheld) || errors.Is(err, space.ErrNotADirectory)
}

// either does something to the file that is meant.
func (f *Files) either(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string, which Which,
	do func(aside bool) error) error {
	if err := which.may(origin); err != nil {
		return err
	}
	err := do(which == Held)
	if which != Any || !absent(err) || !f.withheld.holds(ctx, origin, ws, s, path) {
		return err
	}
	return do(true)
}

// holds reports whether a space withholds something under a path. Only permitted callers learn it.
func (wh *withheld) holds(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string) bool {
	path, err := space.CleanPath(path)
	if err != nil || !person(origin) {
		return false
	}
	doc, err := wh.catalog.alive(ctx, ws, s)
	return err == nil && wh.store.Withholds(doc.ID, doc.UID, doc.Limits, path)
}

// rules returns the rules by which the policy of a space withholds files.
func (wh *withheld) rules(ctx context.Context, doc space.Space) (policy.Withhold, error) {
	bundle, err := wh.library.Bundle(ctx, doc.Workspace, doc.Bundle)
	if err != nil || bundle.Limits.Withhold == nil {
		return policy.Withhold{}, err
	}
	return *bundle.Limits.Withhold, nil
}

// stricter returns the rules of a fork, and whether they differ from those of the other space.
func (wh *withheld) stricter(ctx context.Context, parent space.Space, own policy.Withhold) (*policy.Withhold, bool, error) {
	other, err := wh.rules(ctx, parent)
	return &own, other.Digest() != own.Digest(), err
}

// broughtIn reports whether a file that is about to be written is withheld from code: a person writes it, under a name that policy
// withholds.
func (wh *withheld) broughtIn(ctx context.Context, origin event.Origin, ws id.Workspace, s id.Space, path string) (bool, error) {
	if !person(origin) {
		return false, nil
	}
	path, err := space.CleanFilePath(path)
	if err != nil {
		return false, err
	}
	doc, err := wh.catalog.alive(ctx, ws, s)
	if err != nil {
		return false, err
	}
	held, err := wh.rules(ctx, doc)
	_, match := held.Match(path)
	return match, err
}

// files returns the withheld files of a space.
func (wh *withheld) files(ctx context.Context, doc space.Space) (space.Files, error) {
	held, err := wh.rules(ctx, doc)
	if err != nil {
		return nil, err
	}
	return wh.store.Aside(doc.ID, doc.UID, doc.Limits, held)
}

// merged returns the entries of a folder with those that are withheld, in the order of their paths. A folder that both have is listed once.
func merged(seen, held []space.Entry) []space.Entry {
	folders := map[string]bool{}
	for _, e := range seen {
		folders[e.Path] = e.Type == "directory"
	}
	all := slices.Clone(seen)
	for _, e := range held {
		if e.Type != "directory" || !folders[e.Path] {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b space.Entry) int { return strings.Compare(a.Path, b.Path) })
	return all[:min(len(all), ListEntries)]
}

// sweep applies the path rules of a policy to a living space. It moves the files that they withhold out of the view of code. It moves all
// of them, because nobody can tell any more who made a file. If they differ from those of the space's own policy, its interpreter
// contexts end: see docs/RATIONALE.md, "Why does a stricter policy end interpreter contexts?". The caller has the files of the space
// (Seize). Its processes end first, so that none holds such a file open; they are started again when needed.
func (wh *withheld) sweep(ctx context.Context, doc space.Space, under policy.Bundle) (space.Swept, error) {
	held := cmp.Or(under.Limits.Withhold, &policy.Withhold{})
	_, other, err := wh.stricter(ctx, doc, *held)
	if err != nil {
		return space.Swept{}, err
	}
	l := wh.living.of(doc.ID)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.halt(); err != nil {
		return space.Swept{}, err
	}
	return wh.store.KeepAside(ctx, doc.ID, doc.UID, doc.Limits, *held, other)
}
