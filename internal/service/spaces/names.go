package spaces

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// names gives spaces their names, each of which only one living space of a workspace has.
type names struct {
	catalog *Catalog
	log     journal.Journal
	docs    projection.Reader
}

// maxNamed is how many living spaces of one name are checked. Only old data have more than one.
const maxNamed = 20

// claims is how often a name may be claimed and given up again since a space with it was destroyed.
const claims = 1_000

// nameIndex is the index entry for the name of a living space. It holds a hash, for an old name may have any bytes.
func nameIndex(name string) projection.Index {
	return projection.Index{Name: "name", Value: event.DigestOf([]byte(space.NameKey(name))).Hex()}
}

// claim records drafts, one of which gives a space a name. It uses a key that must be new in the log, so that of two concurrent claims of a
// name one is refused. A name is free again when its space is destroyed or gets another name. So the key names the newest space that has
// the name, or had it when it was destroyed. The key also counts, from 0, the claims since then. Every claim tries the lowest number first,
// and checks before each try whether the name is free. So no claim misses a space with that name.
func (na *names) claim(ctx context.Context, ws id.Workspace, own id.Space, name, batchKey string, record func(key string) error) error {
	if name == "" || name == string(own) {
		return record("") // an identifier is unique by itself
	}
	before := ""
	for n := 0; n < claims; n++ {
		since, err := na.unclaimed(ctx, ws, own, name)
		if err != nil {
			return err
		}
		if since != before {
			before, n = since, 0
		}
		err = record("space_name:" + event.DigestOf([]byte(space.NameKey(name)+"\n"+since)).Hex() + "#" + strconv.Itoa(n))
		if !errors.Is(err, journal.ErrKeyConflict) {
			return err
		}
		if _, used, lookErr := na.log.Used(ctx, ws, batchKey); batchKey != "" && (used || lookErr != nil) {
			return errors.Join(lookErr, err) // it is the key of the request that was used before, for something else
		}
	}
	return fault.New(fault.Exhausted, "space_name_worn", "the name %.64q was given too often; choose another one", name)
}

// unclaimed returns the newest space that has had a name, "" for none; where a living one has it that is not the caller's own, it is
// space.ErrNameTaken, with a name that is free.
func (na *names) unclaimed(ctx context.Context, ws id.Workspace, own id.Space, name string) (since string, err error) {
	q := projection.Query{Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "named", Value: nameIndex(name).Value},
		Newest: true, Limit: 1}
	newest, err := na.docs.Documents(ctx, q)
	if err != nil {
		return "", err
	}
	if len(newest) > 0 {
		since = newest[0].Key
	}
	found, err := na.catalog.bearers(ctx, ws, name)
	if err != nil || !slices.ContainsFunc(found, func(s space.Space) bool { return s.ID != own }) {
		return since, err
	}
	free, err := na.free(ctx, ws, name)
	if err != nil {
		return "", err
	}
	return "", fault.New(space.ErrNameTaken.Kind, space.ErrNameTaken.Code, "a living space of this workspace has the name %.64q", name).
		With(fmt.Sprintf("use that space, or choose another name, for example %s", free))
}

// free returns a name similar to the taken one that no living space has now.
func (na *names) free(ctx context.Context, ws id.Workspace, name string) (string, error) {
	runes := []rune(name)
	for n := 2; ; n++ {
		tail := "-" + strconv.Itoa(n)
		other := string(runes[:min(len(runes), space.MaxName-len(tail))]) + tail
		found, err := na.catalog.bearers(ctx, ws, other)
		if err != nil || len(found) == 0 || n == maxNamed {
			return other, err
		}
	}
}
