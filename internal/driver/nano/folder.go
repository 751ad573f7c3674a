package nano

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"agentbox/internal/domain/space"
	"agentbox/internal/driver/nano/workdir"
	"agentbox/internal/driver/nano/worker"
	"agentbox/internal/userland/vfs"
)

// folder is a folder of a space as an execution asks for it. It is opened when it is touched first.
type folder struct {
	path  string
	uid   int
	bytes int64 // that it may hold
	open  *workdir.Folder

	measured    bool
	used, count int64 // when it was measured, which is once in an execution, however often a worker asks
}

var _ worker.Files = (*folder)(nil)

func (f *folder) get() (*workdir.Folder, error) {
	if f.open == nil {
		var err error
		if f.open, err = workdir.Open(f.path, 0, 0); err != nil {
			return nil, err
		}
	}
	return f.open, nil
}

func (f *folder) close() {
	if f.open != nil {
		_ = f.open.Close()
	}
}

// List implements vfs.Source.
func (f *folder) List(dir string) ([]vfs.Found, error) {
	d, err := f.get()
	if err != nil {
		return nil, err
	}
	return d.List(dir)
}

// Few implements worker.Files.
func (f *folder) Few(most int) (found []vfs.Found, ok bool) {
	d, err := f.get()
	if err != nil {
		return nil, false // the requester gets the reason
	}
	return d.Few(most)
}

// Read implements vfs.Source.
func (f *folder) Read(path string, p []byte, off int64) (int, error) {
	d, err := f.get()
	if err != nil {
		return 0, err
	}
	return d.Read(path, p, off)
}

// Room implements vfs.Source: it measures the present files.
func (f *folder) Room() (bytes, files int64, err error) {
	err = f.measure()
	return max(f.bytes-f.used, 0), max(space.MaxFiles(f.bytes)-f.count, 0), err
}

func (f *folder) measure() (err error) {
	if !f.measured {
		f.used, f.count, err = measure(context.Background(), f.path)
		f.measured = err == nil
	}
	return err
}

// Begin implements worker.Files.
func (f *folder) Begin() (worker.Changes, error) { return &changes{folder: f}, nil }

// changes are kept until they are all there.
type changes struct {
	folder *folder
	list   []vfs.Change
	bytes  int64          // of the files that are written
	stage  *workdir.Stage // of content that is too large for memory; nil before there is any
}

// maxInMemory is the largest content of a file that stays in memory until all changes are there. Larger content is written as it arrives.
const maxInMemory = 1 << 20

// errOverfull means that a worker sent more than fits. A correct worker finds that out before.
var errOverfull = errors.New("the worker tells of more files than fit into the space")

// Add implements worker.Changes.
func (c *changes) Add(x vfs.Change, content io.Reader) error {
	if x.Op == vfs.WriteFile {
		c.bytes += x.Size
	}
	if c.bytes > c.folder.bytes { // only what was there already, before the bound, may be more
		if err := c.folder.measure(); err != nil || c.bytes > c.folder.used {
			return errors.Join(errOverfull, err)
		}
	}
	var err error
	if of, ok := content.(interface{ Len() int64 }); ok { // who reads it has looked that it may be so much
		if of.Len() > maxInMemory {
			x.Held, err = c.hold(content)
		} else {
			whole := make([]byte, of.Len())
			_, err = io.ReadFull(content, whole)
			x.Content = [][]byte{whole}
		}
	} else {
		var whole []byte
		whole, err = io.ReadAll(content)
		x.Content = [][]byte{whole}
	}
	c.list = append(c.list, x)
	return err
}

// hold writes content beside the files of the space.
func (c *changes) hold(content io.Reader) (string, error) {
	if c.stage == nil {
		if err := c.folder.measure(); err != nil { // before there is something that is not a file of the space
			return "", err
		}
		d, err := c.folder.get()
		if err != nil {
			return "", err
		}
		if c.stage, err = d.Stage("", c.owner()); err != nil {
			return "", err
		}
	}
	return c.stage.Hold(content)
}

func (c *changes) owner() *workdir.Owner {
	if c.folder.uid == 0 {
		return nil
	}
	return &workdir.Owner{UID: c.folder.uid, GID: c.folder.uid}
}

// Commit implements worker.Changes.
func (c *changes) Commit() error {
	if s := c.stage; s != nil {
		c.stage = nil
		return s.Apply(c.list)
	}
	d, err := c.folder.get()
	if err != nil {
		return err
	}
	return d.Apply(c.list, "", c.owner())
}

// Abort implements worker.Changes.
func (c *changes) Abort() error {
	if c.stage == nil {
		return nil
	}
	s := c.stage
	c.stage = nil
	return s.Close()
}

// measure counts the bytes and the files of a folder. It follows no link.
func measure(ctx context.Context, path string) (bytes, files int64, err error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = root.Close() }()
	err = fs.WalkDir(root.FS(), ".", func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed meanwhile
		}
		if err != nil {
			return err
		}
		if files++; files%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if info, err := d.Info(); err == nil && d.Type().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, files, err
}
