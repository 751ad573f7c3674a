package spaces

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/leak"
	"agentbox/internal/domain/policy"
	"agentbox/internal/domain/room"
	"agentbox/internal/domain/space"
	"agentbox/internal/kernel/journal"
	"agentbox/internal/kernel/projection"
)

// Creation makes spaces: new ones, and forks of others.
type Creation struct {
	Parts
	acts      policy.Client
	tiers     Tiers
	catalog   *Catalog
	ownership *Ownership
	names     *names
	uids      *uids
	living    *Living
	withheld  *withheld
	variables *Variables
	snapshots *Snapshots
	ending    *Ending

	creating sync.Mutex // held while the spaces of a workspace are counted
}

// Request asks for a space. Zero fields take the defaults.
type Request struct {
	Workspace   id.Workspace
	Room        id.Room
	Name        string
	Description string
	Preset      string // restrictive, standard or permissive; standard by default
	Overrides   json.RawMessage
	Bundle      *policy.Bundle // instead of a preset: the policy as it is
	Runtime     string         // auto by default
	Tier        string         // the older name of Runtime
	Env         map[string]string
	Metadata    map[string]string
	TTL         time.Duration
	Limits      space.Limits // a zero bound takes the default
	BestEffort  bool
	PauseAtEnd  bool // at the end of its time it is paused, not destroyed
	Folder      string
	Archive     io.ReadSeeker // read once
	ArchiveHash event.Digest
	Key         string // idempotency key; "" for none

	fork   string // the request, if the space is a fork: the other space and the name of its snapshot
	from   space.Seed
	parent space.Space // the other space
}

// Create makes a space, fills and starts it. If a step fails after the creation was recorded, Create destroys the space again.
func (c *Creation) Create(ctx context.Context, origin event.Origin, q Request) (space.Space, error) {
	if err := c.complete(&q); err != nil {
		return space.Space{}, err
	}
	if err := c.roomIsThere(ctx, q.Workspace, q.Room); err != nil {
		return space.Space{}, err
	}
	if _, err := c.tiers.begins(q.Runtime, ""); err != nil {
		return space.Space{}, err
	}
	// Under every policy, a caller who may not make a space leaves no policy in the log either.
	early := policy.Action{Type: policy.SpaceCreate, Workspace: q.Workspace, Room: q.Room, Principal: origin.Principal, Token: origin.Token}
	if err := c.acts.Early(ctx, origin, early); err != nil {
		return space.Space{}, err
	}
	bundle, err := c.pin(ctx, origin, q)
	if err != nil {
		return space.Space{}, err
	}
	tier, err := c.tiers.begins(q.Runtime, bundle.Limits.Weakest)
	if err != nil {
		return space.Space{}, err
	}
	return c.create(ctx, origin, q, cmp.Or(q.Runtime, space.RuntimeAuto), tier, bundle.Hash)
}

// roomIsThere refuses a room that does not exist.
func (c *Creation) roomIsThere(ctx context.Context, ws id.Workspace, r id.Room) error {
	if r == DefaultRoom {
		return nil
	}
	_, err := c.Docs.Document(ctx, ws, room.Projection, string(r))
	if errors.Is(err, projection.ErrNotFound) {
		return room.ErrNoRoom
	}
	return err
}

// pin records the policy of a space and returns it.
func (c *Creation) pin(ctx context.Context, origin event.Origin, q Request) (policy.Bundle, error) {
	if q.Bundle != nil {
		return *q.Bundle, c.Library.PinBundle(ctx, origin, q.Workspace, *q.Bundle)
	}
	return c.Library.Pin(ctx, origin, q.Workspace, q.Preset, q.Overrides)
}

// create makes a space whose request is complete.
func (c *Creation) create(ctx context.Context, origin event.Origin, q Request, runtime string, tier space.Tier,
	bundle event.Digest) (space.Space, error) {
	s := id.New[id.Space](c.IDs)
	uid, err := c.uids.acquire(ctx, s)
	if err != nil {
		return space.Space{}, err
	}
	doc := space.Space{
		ID: s, Workspace: q.Workspace, Room: q.Room, Name: q.Name, Runtime: runtime, Tier: tier.Name(), Bundle: bundle, Limits: q.Limits,
		UID:  uid,
		Node: c.Node, CreatedBy: origin.Principal,
	}
	if doc.Name == "" {
		doc.Name = string(s)
	}
	permit, first, replayed, err := c.admit(ctx, origin, q, doc)
	if err != nil || replayed {
		c.uids.release(uid, s)
		if err != nil {
			return space.Space{}, err
		}
		return c.catalog.Space(ctx, q.Workspace, first)
	}
	if err := c.make(ctx, origin, q, doc, permit); err != nil {
		c.Logger.Warn("space could not be made", "code", "space_not_made", "space", s, "error", err)
		return space.Space{}, c.fail(context.WithoutCancel(ctx), origin, doc, err)
	}
	return c.catalog.Space(ctx, q.Workspace, s)
}

// admit counts the spaces of the workspace and records a new one, in one step, so that two requests cannot both be the last.
func (c *Creation) admit(ctx context.Context, origin event.Origin, q Request, doc space.Space) (permit policy.Permit, made id.Space,
	replayed bool, err error) {
	c.creating.Lock()
	defer c.creating.Unlock()
	release, err := c.ownership.exclusive(ctx, q.Workspace)
	if err != nil {
		return permit, "", false, err
	}
	defer release()
	key, err := c.key(ctx, q)
	if err != nil {
		return permit, "", false, err
	}
	if key != "" { // a repeat is answered whatever has become of the name and of the room for spaces since
		events, known, err := journal.Recall(ctx, c.Log, q.Workspace, key, q.digest())
		if err != nil {
			return permit, "", false, err
		}
		if known {
			made, err = createdBy(events)
			return permit, made, true, err
		}
	}
	if err := c.room(ctx, q.Workspace); err != nil {
		return permit, "", false, err
	}
	err = c.names.claim(ctx, q.Workspace, doc.ID, doc.Name, key, func(unique string) error {
		permit, made, replayed, err = c.record(ctx, origin, q, doc, key, unique)
		return err
	})
	return permit, made, replayed, err
}

// key returns the batch key of a request. A request whose space could not be made has not used up its key: the next one gets a new count.
func (c *Creation) key(ctx context.Context, q Request) (string, error) {
	if q.Key == "" {
		return "", nil
	}
	failed, err := c.Docs.Documents(ctx, projection.Query{
		Workspace: q.Workspace, Name: space.Projection, Index: projection.Index{Name: "failed_key", Value: q.Key}, Limit: 1000,
	})
	if err != nil || len(failed) == 0 {
		return "space:" + q.Key, err
	}
	return fmt.Sprintf("space:%s#%d", q.Key, len(failed)), nil
}

// createdBy returns the space that the events of a request created.
func createdBy(events []event.Event) (id.Space, error) {
	i := slices.IndexFunc(events, func(e event.Event) bool { return e.Type == space.EventCreated })
	if i < 0 {
		return "", fault.New(fault.Internal, "event_missing", "the log did not return the space's creation")
	}
	return id.Space(events[i].EntityID), nil
}

// record puts space.created into the log, under a key that must be new, and returns the permit to make it. A repeat of an earlier request
// returns the space of that one.
func (c *Creation) record(ctx context.Context, origin event.Origin, q Request, doc space.Space, key, unique string) (permit policy.Permit,
	made id.Space, replayed bool, err error) {
	action := actionOn(policy.SpaceCreate, origin, doc)
	action.Content, action.Target = q.ArchiveHash, q.Folder
	if q.fork != "" {
		action.Type, action.Content, action.Target = policy.SpaceFork, q.from.Snapshot, string(q.from.Space)
	}
	ruling, err := c.acts.Allow(ctx, origin, action)
	if err != nil {
		return permit, "", false, err
	}
	env, secrets, err := c.variables.seal(q.Workspace, space.Space{}, q.Env)
	if err != nil {
		return permit, "", false, err
	}
	now := c.Clock.Now().UTC()
	if q.from.Space != "" {
		origin.Follows = event.Subject{Type: space.EntityType, ID: string(q.from.Space)}
	}
	batch := event.Batch{Workspace: q.Workspace, Drafts: []event.Draft{draftOf(space.EventCreated, origin, doc, space.Created{
		Space: doc.ID, Name: doc.Name, Description: q.Description, Runtime: doc.Runtime, Tier: doc.Tier, Policy: q.Preset, Bundle: doc.Bundle,
		Env: env, Secrets: secrets,
		Metadata: q.Metadata, Limits: doc.Limits, BestEffort: q.BestEffort, UID: doc.UID, Node: doc.Node, ExpiresAt: now.Add(q.TTL), Key: q.Key,
		ForkedFrom: q.from.Space, ForkedAt: q.from.Snapshot, PauseAtEnd: q.PauseAtEnd,
	})}}
	batch.Drafts[0].IdempotencyKey = unique
	if key != "" {
		batch.Key, batch.Digest = key, q.digest()
	}
	permit, receipt, err := c.Gate.Begin(ctx, ruling, "", batch)
	if err != nil {
		return permit, "", false, err
	}
	made, err = createdBy(receipt.Events)
	return permit, made, receipt.Replayed, err
}

// make does what space.created announced: first the files, then the processes. The folders of an empty space are made while the start of
// the processes is recorded. The first snapshot is made while the processes start. So the caller waits for the longer of two steps, not for
// both.
func (c *Creation) make(ctx context.Context, origin event.Origin, q Request, doc space.Space, permit policy.Permit) error {
	held, err := c.withheld.rules(ctx, doc)
	if err != nil {
		return err
	}
	seed := space.Seed{Folder: q.Folder, Archive: q.Archive, Withhold: &held}
	if q.fork != "" {
		seed = q.from
		if seed.Withhold, seed.Strict, err = c.withheld.stricter(ctx, q.parent, held); err != nil {
			return err
		}
		if err := c.share(ctx, q.parent); err != nil {
			return err
		}
	}
	may := func(space.Space) (policy.Permit, error) { return c.living.mayStart(ctx, origin.Correlation, doc) }
	var beside sync.WaitGroup
	defer beside.Wait()                                     // nothing of it is left when the space is given up
	if q.fork == "" && q.Folder == "" && q.Archive == nil { // else the files may be refused, and nothing is about to be started
		var start policy.Permit
		var refused error
		decided, record := make(chan struct{}), may
		beside.Go(func() {
			defer close(decided)
			start, refused = record(doc)
		})
		may = func(space.Space) (policy.Permit, error) {
			<-decided
			return start, refused
		}
	}
	sown, err := c.Store.Create(ctx, permit, doc.UID, doc.Limits, seed)
	if err != nil {
		return err
	}
	var first space.Kept
	keeping := make(chan struct{})
	beside.Go(func() {
		defer close(keeping)
		first = kept(c.living.Keep(ctx, doc))
	})
	instance, err := c.living.instance(ctx, doc, may)
	if err != nil {
		return err
	}
	<-keeping
	drafts := []event.Draft{
		draftOf(space.EventReady, origin, doc, space.Made{Space: doc.ID, Unenforced: instance.Unenforced(), Seeded: sown.Files,
			Withheld: sown.Withheld, Kept: first}),
	}
	if q.fork != "" {
		parent := space.Space{ID: q.from.Space, Workspace: q.Workspace, Room: q.Room}
		forked := draftOf(space.EventForked, origin, parent, space.Forked{Space: parent.ID, Fork: doc.ID, At: q.from.Snapshot})
		forked.Follows = event.Subject{Type: space.EntityType, ID: string(doc.ID)}
		drafts = append(drafts, forked)
	}
	_, err = c.Log.Append(ctx, event.Batch{Workspace: q.Workspace, Drafts: drafts})
	return err
}

// fail destroys a space that could not be made and returns the reason for the caller.
func (c *Creation) fail(ctx context.Context, origin event.Origin, doc space.Space, cause error) error {
	if err := c.ending.end(ctx, origin, doc, "failed"); err != nil {
		c.Logger.Error("remove a space that could not be made", "code", "space_not_removed", "space", doc.ID, "error", err)
	}
	return cause
}

// room refuses a space more than the workspace may have.
func (c *Creation) room(ctx context.Context, ws id.Workspace) error {
	q := projection.Query{Workspace: ws, Name: space.Projection, Index: projection.Index{Name: "living", Value: "true"}, Limit: 1000}
	for n := 0; ; {
		found, err := c.Docs.Documents(ctx, q)
		if err != nil {
			return err
		}
		if n += len(found); n >= c.MaxSpaces {
			return fault.New(fault.Exhausted, "quota_exceeded", "the workspace has %d spaces, the most it may have; remove one", c.MaxSpaces)
		}
		if len(found) < q.Limit {
			return nil
		}
		q.After = found[len(found)-1].Key
	}
}

// complete fills in defaults and refuses values beyond the limits.
func (c *Creation) complete(q *Request) error {
	switch {
	case q.Bundle != nil && (q.Preset != "" || q.Overrides != nil):
		return fault.New(fault.Invalid, "policy_ambiguous", "name one policy: a preset with overrides, or a bundle")
	case q.Bundle != nil && (q.Bundle.Name == "" || utf8.RuneCountInString(q.Bundle.Name) > MaxName):
		return invalid("the bundle's name has 1 to %d characters", MaxName)
	case q.Bundle != nil:
		q.Preset = q.Bundle.Name
	case q.Preset == "":
		q.Preset = "standard"
	}
	if err := q.asks(); err != nil {
		return err
	}
	if q.Room == "" {
		q.Room = DefaultRoom
	}
	if q.TTL == 0 {
		q.TTL = DefaultTTL
	}
	if err := checkTTL(q.TTL); err != nil {
		return err
	}
	if q.Folder != "" && q.Archive != nil {
		return invalid("a space begins with a folder or with an archive, not with both")
	}
	if q.Name != "" {
		if err := space.CheckName(q.Name); err != nil {
			return err
		}
	}
	if err := checkDescription(q.Description); err != nil {
		return err
	}
	if err := checkMaps(q.Env, q.Metadata); err != nil {
		return err
	}
	return c.bound(&q.Limits)
}

// DefaultRoom is the room of spaces that were put into no other.
const DefaultRoom = id.DefaultRoom

// leastLimits are the least limits with which a space can start. With less, it would fail as if the host were at fault.
func leastLimits() space.Limits {
	return space.Limits{MemoryBytes: 16 << 20, CPUMillis: 1, Pids: 1, DiskBytes: 1, FileBytes: 1 << 10, OutputBytes: 1 << 10, OpenFiles: 16,
		TmpBytes: 1}
}

func (c *Creation) bound(l *space.Limits) error {
	d, most, least := space.DefaultLimits(), c.MaxLimits, leastLimits()
	for _, b := range []struct {
		name                      string
		value                     *int64
		standard, lowest, highest int64
	}{
		{"memory_bytes", &l.MemoryBytes, d.MemoryBytes, least.MemoryBytes, most.MemoryBytes}, {"cpu_millis", &l.CPUMillis, d.CPUMillis,
			least.CPUMillis, most.CPUMillis},
		{"pids", &l.Pids, d.Pids, least.Pids, most.Pids}, {"disk_bytes", &l.DiskBytes, d.DiskBytes, least.DiskBytes, most.DiskBytes},
		{"file_bytes", &l.FileBytes, d.FileBytes, least.FileBytes, most.FileBytes}, {"output_bytes", &l.OutputBytes, d.OutputBytes,
			least.OutputBytes, most.OutputBytes},
		{"open_files", &l.OpenFiles, d.OpenFiles, least.OpenFiles, most.OpenFiles}, {"tmp_bytes", &l.TmpBytes, d.TmpBytes, least.TmpBytes,
			most.TmpBytes},
	} {
		if *b.value == 0 {
			*b.value = min(b.standard, b.highest)
		}
		if *b.value < b.lowest || *b.value > b.highest {
			return invalid("limits.%s is %d; it may be %d to %d", b.name, *b.value, b.lowest, b.highest)
		}
	}
	return nil
}

func checkTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return invalid("a space lives %d to %d seconds; %d were asked for", int64(MinTTL.Seconds()), int64(MaxTTL.Seconds()),
			int64(ttl.Seconds()))
	}
	return nil
}

func checkDescription(description string) error {
	if n := utf8.RuneCountInString(description); n > MaxDescription {
		return invalid("description has %d characters; at most %d are allowed", n, MaxDescription)
	}
	return nil
}

func checkMaps(env, metadata map[string]string) error {
	if err := checkMap("env", env, MaxEnv, MaxEnvBytes); err != nil {
		return err
	}
	for name := range env {
		if strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "" || name == "" || name[0] >= '0' &&
			name[0] <= '9' {
			return invalid("env has a variable %.64q; names are letters, digits and _, and do not begin with a digit", name)
		}
		if _, found := leak.Text(name); len(found) > 0 {
			return invalid("the name of a variable of env looks like a secret, and names are recorded as they are; choose another one")
		}
	}
	return checkMap("metadata", metadata, MaxMetadata, MaxMetaBytes)
}

func checkMap(what string, m map[string]string, entries, size int) error {
	if len(m) > entries {
		return invalid("%s has %d entries; at most %d are allowed", what, len(m), entries)
	}
	total := 0
	for name, value := range m {
		if strings.ContainsRune(name+value, 0) || !utf8.ValidString(name+value) {
			return invalid("%s has an entry %.64q that is not text", what, name)
		}
		total += len(name) + len(value)
	}
	if total > size {
		return invalid("%s holds %d bytes; at most %d are allowed", what, total, size)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "validation_failed", format, args...)
}

// digest names the request for its idempotency key.
func (q Request) digest() event.Digest {
	raw, _ := json.Marshal(struct {
		Room, Name, Description, Preset, Tier, Folder string
		Overrides                                     json.RawMessage
		Env, Metadata                                 map[string]string
		TTL                                           time.Duration
		Limits                                        space.Limits
		BestEffort                                    bool
		Archive                                       event.Digest
		Fork                                          string         `json:",omitempty"`
		Bundle                                        *policy.Bundle `json:",omitempty"`
		PauseAtEnd                                    bool           `json:",omitempty"`
	}{string(q.Room), q.Name, q.Description, q.Preset, q.Tier, q.Folder, q.Overrides, q.Env, q.Metadata, q.TTL, q.Limits, q.BestEffort,
		q.ArchiveHash, q.fork, q.Bundle, q.PauseAtEnd})
	return event.DigestOf(raw)
}

// Definition folds the documents of spaces.
func Definition() projection.Definition {
	keys := func(e event.Event) []string {
		if !space.Touches(e) {
			return nil
		}
		return []string{e.EntityID}
	}
	fold := func(s space.Space, _ string, e event.Event) (space.Space, error) { return space.Evolve(s, e) }
	return projection.Define(space.Projection, 5, keys, fold, func(s space.Space) []projection.Index {
		name := nameIndex(s.Name)
		found := []projection.Index{{Name: "status", Value: string(s.Status)}, {Name: "named", Value: name.Value}}
		if s.Status != space.Destroyed {
			found = append(found, projection.Index{Name: "living", Value: "true"}, name)
		} else if s.Reason == "failed" && s.Key != "" {
			found = append(found, projection.Index{Name: "failed_key", Value: s.Key})
		}
		return found
	}).Leads(space.EntityType, func(e event.Event) bool { return e.Run != "" })
}
