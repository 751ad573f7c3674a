package nano

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"agentbox/internal/driver/nano/sqlite"
	"agentbox/internal/driver/nano/wasm"
)

// openSQLite loads the program sqlite3. It has no image: each instance begins as its module does.
func (g *guests) openSQLite(ctx context.Context, make bool) error {
	key, err := sqlite.Key()
	if err != nil { // this build has none: its command is not there
		return nil
	}
	at := g.keptAt("sqlite", key)
	prepared := &wasm.Prepared{}
	module, missing := os.ReadFile(string(at) + moduleFile)
	if errors.Is(missing, fs.ErrNotExist) && !make {
		g.table["sqlite3"] = notReady(sqliteName)
		return nil
	}
	if missing == nil {
		missing = prepared.UnmarshalBinary(module)
	}
	if missing != nil { // or damaged
		if module, err = sqlite.Module(); err != nil {
			return err
		}
		if prepared, err = wasm.Prepare(module); err != nil {
			return err
		}
	}
	if g.sqlite, err = sqlite.New(ctx, g.engine, prepared); err != nil {
		return err
	}
	switch {
	case missing == nil:
		err = shareCode(string(at) + codeFile)
	case make:
		// of the guests that are there, its code is the largest
		if module, err = prepared.MarshalBinary(); err == nil {
			err = errors.Join(keepCode(g.cache, string(at)+codeFile), keep(string(at)+moduleFile, module))
		}
	}
	if err != nil {
		return fmt.Errorf("keep SQLite: %w", err)
	}
	if make && g.kept != nil {
		g.kept(sqliteName)
	}
	g.table.Add(g.sqlite.Programs())
	g.version += fmt.Sprintf(", sqlite %.8x", g.sqlite.Hash())
	return nil
}
