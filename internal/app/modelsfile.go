package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"agentbox/internal/domain/event"
	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/id"
	"agentbox/internal/service/models"
)

// version is how a file stood when it was looked at; the zero version is that of a file that is not there.
type version struct {
	there bool
	size  int64
	at    time.Time
}

// versionOf looks at a file.
func versionOf(path string) (version, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return version{}, nil
	}
	if err != nil {
		return version{}, fault.Wrap(err, fault.Unavailable, "file_unreadable", "%s cannot be read", filepath.Base(path))
	}
	return version{true, info.Size(), info.ModTime()}, nil
}

// modelsWatch reads the file of models again when people change it. A file that cannot be used changes nothing: what was read before holds.
type modelsWatch struct {
	app   *App
	taken version // which was read the last time
	used  bool    // that one is used
	seen  version // at the last step

	mu      sync.Mutex // guards problem
	problem string     // why the present file is not used; "" if it is
}

// load reads the file for the first time. A file that cannot be used ends the start of the daemon.
func (w *modelsWatch) load(ctx context.Context) (err error) {
	if w.taken, err = versionOf(w.app.path(modelsFile)); err != nil {
		return err
	}
	w.seen, w.used = w.taken, true
	if err = w.app.loadModels(ctx); err != nil {
		err = fault.Wrap(err, fault.KindOf(err), fault.CodeOf(err), "the file %s cannot be used", w.app.path(modelsFile))
	}
	return err
}

// step reads a changed file once it stands still between two steps: nobody is writing it any more. A file that is gone for one step only
// is one that an editor replaces.
func (w *modelsWatch) step(ctx context.Context) {
	now, err := versionOf(w.app.path(modelsFile))
	if err == nil {
		still := now == w.seen
		w.seen = now
		if !still {
			return
		}
		if now == w.taken {
			if w.used { // it could not be looked at for a while, or another file was there
				w.say("")
			}
			return
		}
		err = w.app.loadModels(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	kind := fault.KindOf(err)
	if passes := kind == fault.Internal || kind == fault.Unavailable || kind == fault.Waiting; err == nil || !passes { // else it is read again
		w.taken, w.used = now, err == nil
	}
	w.tell(err)
}

// tell notes whether the file can be used, and writes a line about each change of that.
func (w *modelsWatch) tell(err error) {
	said := ""
	if err != nil {
		said = fmt.Sprintf("%s cannot be used, and what was read of it before holds: %s", modelsFile, problemOf(err))
	}
	before := w.say(said)
	switch {
	case err == nil:
		w.app.logger.Info("the file of models was read again", "code", "models_file_read")
	case said != before:
		w.app.logger.Warn("the file of models cannot be used, and what was read of it before holds", "code", "models_file_unused", "error", err)
	}
}

// say keeps why the present file is not used, and returns what was kept before.
func (w *modelsWatch) say(problem string) (before string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.problem = w.problem, problem
	return before
}

// of returns why the file of models is not used, for people of the workspace to which it belongs; "" if it is used.
func (w *modelsWatch) of(ws id.Workspace) string {
	if ws != id.DefaultWorkspace {
		return ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// problemOf returns the message of an error about a file.
func problemOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return f.Msg
	}
	return "the daemon's log says why"
}

// loadModels makes the catalogue of the default workspace that of the file of models. Without a file, and without one before, nothing
// changes.
func (a *App) loadModels(ctx context.Context) error {
	raw, err := written(a.path(modelsFile))
	if err != nil {
		return err
	}
	return a.Models.Load(ctx, event.Origin{Principal: a.Owner}, id.DefaultWorkspace, raw)
}

// FileProblems returns what is wrong with the files about models in a data directory, without a daemon.
func FileProblems(c Config) []string {
	var list []string
	for _, file := range []struct {
		name string
		read func([]byte) error
	}{{modelsFile, models.CheckFile}, {pricesFile, func(raw []byte) error { _, err := models.ReadPrices(raw); return err }}} {
		raw, err := written(filepath.Join(c.DataDir, file.name))
		if err == nil {
			err = file.read(raw)
		}
		if err != nil {
			list = append(list, file.name+" cannot be used: "+problemOf(err))
		}
	}
	return list
}
