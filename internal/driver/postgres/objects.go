package postgres

import (
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"agentbox/internal/domain/fault"
)

// Objects of the migrations that run code.
var (
	madeFunction = regexp.MustCompile(`(?s)CREATE FUNCTION (\w+)\(.*?AS \$\$(.*?)\$\$`)
	madeTrigger  = regexp.MustCompile(`CREATE TRIGGER (\w+) BEFORE ([A-Z ]+) ON (\w+) (FOR EACH ROW )?EXECUTE FUNCTION (\w+)\(\);`)
	madeAlways   = regexp.MustCompile(`ALTER TABLE (\w+) ENABLE ALWAYS TRIGGER (\w+);`)
)

// The bits of pg_trigger.tgtype.
var triggerBits = map[string]int16{"DELETE": 1 << 3, "UPDATE": 1 << 4, "TRUNCATE": 1 << 5, "INSERT": 1 << 2}

// ownCode returns the triggers and the functions that the migrations make, each with its definition.
func ownCode() (map[string]string, error) {
	own, enabled := map[string]string{}, map[string]string{}
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		raw, err := fs.ReadFile(migrations, name)
		if err != nil {
			return nil, err
		}
		text.Write(raw)
	}
	for _, m := range madeAlways.FindAllStringSubmatch(text.String(), -1) {
		enabled[m[1]+"."+m[2]] = "A"
	}
	for _, m := range madeFunction.FindAllStringSubmatch(text.String(), -1) {
		own["function "+m[1]] = m[2] // a later migration replaces that of an earlier one
	}
	for _, m := range madeTrigger.FindAllStringSubmatch(text.String(), -1) {
		bits := int16(1 << 1) // before
		for _, when := range strings.Split(m[2], " OR ") {
			bits |= triggerBits[when]
		}
		if m[4] != "" {
			bits |= 1
		}
		on := "O"
		if e := enabled[m[3]+"."+m[1]]; e != "" {
			on = e
		}
		own["trigger "+m[3]+"."+m[1]] = fmt.Sprintf("%d %s %s", bits, on, m[5])
	}
	return own, nil
}

// runsCode selects the objects that run code in the schema of the log: triggers, functions, rules and policies of rows.
const runsCode = `
SELECT 'trigger ' || c.relname || '.' || t.tgname, t.tgtype::text || ' ' || t.tgenabled::text || ' ' || p.proname ||
       CASE WHEN t.tgqual IS NULL AND t.tgnargs = 0 THEN '' ELSE ' with conditions' END
  FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_proc p ON p.oid = t.tgfoid
 WHERE NOT t.tgisinternal AND n.nspname = $1
UNION ALL SELECT 'function ' || p.proname, p.prosrc FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1
UNION ALL SELECT 'rule ' || tablename || '.' || rulename, '' FROM pg_rules WHERE schemaname = $1
UNION ALL SELECT 'view ' || viewname, '' FROM pg_views WHERE schemaname = $1
UNION ALL SELECT 'policy ' || tablename || '.' || policyname, '' FROM pg_policies WHERE schemaname = $1`

// foreign returns what in the schema of the log runs code and is not as the migrations make it, in order, each as a sentence.
func foreign(ctx context.Context, db querier) ([]string, error) {
	own, err := ownCode()
	if err != nil {
		return nil, fmt.Errorf("read the log's own schema: %w", err)
	}
	rows, err := db.Query(ctx, runsCode, schemaName)
	if err != nil {
		return nil, fmt.Errorf("read the schema of the log: %w", err)
	}
	defer rows.Close()
	var said []string
	for rows.Next() {
		var name, definition string
		if err := rows.Scan(&name, &definition); err != nil {
			return nil, err
		}
		switch want, known := own[name]; {
		case !known:
			said = append(said, fmt.Sprintf("the %s is not the log's", name))
		case want != definition:
			said = append(said, fmt.Sprintf("the %s is defined in another way than the log's", name))
		}
		delete(own, name)
	}
	for name := range own {
		said = append(said, fmt.Sprintf("the %s of the log is missing", name))
	}
	slices.Sort(said)
	return said, rows.Err()
}

// ownSchema refuses a database in whose schema something else runs code: a trigger would run in every commit.
func ownSchema(ctx context.Context, db querier) error {
	said, err := foreign(ctx, db)
	if err != nil || len(said) == 0 {
		return err
	}
	return fault.New(fault.Conflict, "log_schema_changed", "somebody changed the schema of the log: %s", strings.Join(said[:min(len(said), 5)],
		"; ")).
		With("keep a dump, run `agentbox audit verify`, and load a dump from before into another database")
}

// Foreign returns the triggers, functions, rules, views and row policies in the log's schema that differ from the program's own, each as a
// sentence. In a log of an earlier version, which the next daemon upgrades, it does not report missing ones.
func (j *Journal) Foreign(ctx context.Context) (said []string, err error) {
	err = j.db.reading(ctx, func(db querier) error {
		version, err := schemaOf(ctx, db)
		if err != nil {
			return err
		}
		if said, err = foreign(ctx, db); err == nil && version < schemaVersion {
			said = slices.DeleteFunc(said, func(s string) bool { return !strings.HasSuffix(s, "is not the log's") })
		}
		return err
	})
	return said, err
}
