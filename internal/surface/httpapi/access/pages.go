package access

import (
	"errors"
	"strconv"
	"strings"

	"agentbox/internal/domain/blueprint"
	"agentbox/internal/domain/id"
	"agentbox/internal/domain/policy"
)

// ActionTypeKey is the name of an action type in a cursor.
type ActionTypeKey string

// BlueprintKey is the name of a blueprint in a cursor, behind blueprintMark: any word could be the name alone.
type BlueprintKey string

const blueprintMark = "blueprint/"

// AfterBlueprint returns the key of a blueprint in a cursor.
func AfterBlueprint(name string) BlueprintKey { return BlueprintKey(blueprintMark + name) }

// Name returns the name of the blueprint; "" for the top of the list.
func (k BlueprintKey) Name() string { return strings.TrimPrefix(string(k), blueprintMark) }

// Page are the parameters of a list whose entries go by a T.
type Page[T ~string] struct {
	Limit  int       `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"How many at most"`
	Cursor Cursor[T] `query:"cursor" maxLength:"100" doc:"The next_cursor of the page before"`
}

// LongPage has the parameters of a list with larger pages.
type LongPage[T ~string] struct {
	Limit  int       `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"How many at most"`
	Cursor Cursor[T] `query:"cursor" maxLength:"100" doc:"The next_cursor of the page before"`
}

// Cursor says where a list continues: after the entry that it names, "" for the top. A cursor that names no entry of such a list is refused
// before the operation runs. Otherwise a client with a broken cursor would get the first page again and again.
type Cursor[T ~string] struct{ After T }

// UnmarshalText reads a cursor.
func (c *Cursor[T]) UnmarshalText(text []byte) error {
	sent := string(text)
	if sent == "" {
		return nil
	}
	c.After = T(sent)
	switch any(c.After).(type) {
	case LabelKey:
		if typ, of, ok := strings.Cut(sent, "/"); !ok || typ == "" || of == "" {
			return errNoCursor
		}
	case LogPlace:
		if _, err := strconv.ParseUint(sent, 10, 63); err != nil {
			return errNoCursor
		}
	case ActionTypeKey:
		if policy.Declarable(sent) != nil {
			return errNoCursor
		}
	case BlueprintKey:
		name, ok := strings.CutPrefix(sent, blueprintMark)
		if !ok || blueprint.NameField().Text(name) != "" {
			return errNoCursor
		}
	default:
		if _, err := id.Read[T](sent); err != nil {
			return errNoCursor
		}
	}
	return nil
}

// LabelKey is the sort key of a list of labels: the type of a resource, a stroke, and its identifier.
type LabelKey string

// LogPlace is the cursor of a list that is read from the log: a place in it.
type LogPlace string

// Number is the place as a number; 0 for none.
func (p LogPlace) Number() uint64 {
	n, _ := strconv.ParseUint(string(p), 10, 63) // it was read with its cursor
	return n
}

// errNoCursor is answered as invalid_cursor, whatever it says.
var errNoCursor = errors.New("no cursor of this list")

// Cut makes a page of a list that was read one entry further than the page has, and says where it goes on.
func Cut[T any](found []T, limit int, key func(T) string) (here []T, next string) {
	if len(found) <= limit {
		if found == nil {
			found = []T{}
		}
		return found, ""
	}
	return found[:limit], key(found[limit-1])
}
