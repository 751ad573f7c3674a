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

// fileWatch reads a file of the data directory again when people change it. A file that cannot be used changes nothing: what was read
// before holds.
type fileWatch struct {
	app  *App
	name string                          // of the file
	read func(ctx context.Context) error // reads the file and uses it
	line func(there bool, err error)     // writes a line of the log: the file was read again or is gone (nil), or why it cannot be used

	taken version // which was read the last time
	used  bool    // that one is used
	seen  version // at the last step

	mu      sync.Mutex // guards problem
	problem string     // why the present file is not used; "" if it is
}

// load reads the file for the first time. A file that cannot be used ends the start of the daemon.
func (w *fileWatch) load(ctx context.Context) (err error) {
	if w.taken, err = versionOf(w.app.path(w.name)); err != nil {
		return err
	}
	w.seen, w.used = w.taken, true
	if err = w.read(ctx); err != nil {
		err = fault.Wrap(err, fault.KindOf(err), fault.CodeOf(err), "the file %s cannot be used", w.app.path(w.name))
	}
	return err
}

// step reads a changed file once it stands still between two steps: nobody is writing it any more. A file that is gone for one step only
// is one that an editor replaces.
func (w *fileWatch) step(ctx context.Context) {
	now, err := versionOf(w.app.path(w.name))
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
		err = w.read(ctx)
	}
	if ctx.Err() != nil {
		return
	}
	kind := fault.KindOf(err)
	if passes := kind == fault.Internal || kind == fault.Unavailable || kind == fault.Waiting; err == nil || !passes { // else it is read again
		w.taken, w.used = now, err == nil
	}
	w.tell(now.there, err)
}

// tell notes whether the file can be used, and writes a line about each change of that.
func (w *fileWatch) tell(there bool, err error) {
	said := ""
	if err != nil {
		said = fmt.Sprintf("%s cannot be used, and what was read of it before holds: %s", w.name, problemOf(err))
	}
	before := w.say(said)
	switch {
	case err == nil:
		w.line(there, nil)
	case said != before:
		w.line(there, fmt.Errorf("%s: %w", w.name, err))
	}
}

// say keeps why the present file is not used, and returns what was kept before.
func (w *fileWatch) say(problem string) (before string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, w.problem = w.problem, problem
	return before
}

// why returns why the present file is not used; "" if it is used.
func (w *fileWatch) why() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.problem
}

// watchFiles makes the watches of the files about models.
func (up *upkeep) watchFiles() {
	log := up.app.logger
	up.models = fileWatch{app: up.app, name: modelsFile, read: up.app.loadModels, line: func(there bool, err error) {
		switch {
		case err != nil:
			log.Warn("the file of models cannot be used, and what was read of it before holds", "code", "models_file_unused", "error", err)
		case there:
			log.Info("the file of models was read again", "code", "models_file_read")
		case up.app.together.member != nil:
			log.Warn("the file of models is gone, and its entries stay because other daemons may have them; a file with models: [] and "+
				"budgets: [] takes them away", "code", "models_file_left")
		default:
			log.Warn("the file of models is gone, and what it had set is taken away", "code", "models_file_gone")
		}
	}}
	up.prices = fileWatch{app: up.app, name: pricesFile, read: up.app.loadPrices, line: func(there bool, err error) {
		switch {
		case err != nil:
			log.Warn("the file of prices cannot be used, and the prices that were read before hold", "code", "prices_file_unused", "error", err)
		case there:
			log.Info("the file of prices was read again", "code", "prices_file_read")
		default:
			log.Warn("the file of prices is gone, and no price is known any more", "code", "prices_file_gone")
		}
	}}
}

// fileProblems returns why the present files about models are not used, for people of the workspace that has them.
func (a *App) fileProblems(ws id.Workspace) (list []string) {
	if ws != id.DefaultWorkspace {
		return nil
	}
	for _, w := range []*fileWatch{&a.upkeep.models, &a.upkeep.prices} {
		if problem := w.why(); problem != "" {
			list = append(list, problem)
		}
	}
	return list
}

// problemOf returns the message of an error about a file.
func problemOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return f.Msg
	}
	return "the daemon's log says why"
}

// loadModels makes the catalogue of the default workspace that of the file of models. Without a file, and without one before, nothing
// changes. Of several daemons one without a file changes nothing either: the catalogue may be that of another one's file.
func (a *App) loadModels(ctx context.Context) error {
	raw, err := written(a.path(modelsFile))
	if err != nil || raw == nil && a.together.member != nil {
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
