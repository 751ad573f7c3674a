package beneath

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Empty removes everything in a folder of the daemon's own; one that is not there is empty.
func Empty(ctx context.Context, path string, entropy io.Reader) error {
	top, err := At(path)
	if err != nil {
		return ignoring(err, os.ErrNotExist)
	}
	defer top.Close()
	return EmptyDir(ctx, top, entropy)
}

// EmptyDir removes everything in a folder, however deep and wide it is, in constant memory and with three descriptors: a folder in a folder
// is first moved up to the top under a random name, so that there is never a second level to go down to. It follows no link, crosses no
// mount, and changes nothing but what it removes.
func EmptyDir(ctx context.Context, top *Folder, entropy io.Reader) error {
	for {
		names, err := someNames(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := emptyOne(ctx, top, name, entropy); err != nil {
				return fmt.Errorf("remove the files of a space: %w", err)
			}
		}
	}
}

// emptyOne removes one entry of top after moving the folders in it up.
func emptyOne(ctx context.Context, top *Folder, name string, entropy io.Reader) error {
	err := Unlink(top, name)
	if !errors.Is(err, syscall.EISDIR) && !errors.Is(err, syscall.EPERM) {
		return ignoring(err, syscall.ENOENT)
	}
	dir, err := openForRemoval(top, name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := someNames(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return Rmdir(top, name)
		}
		for _, inner := range names {
			if err := ctx.Err(); err != nil {
				return err
			}
			err := Unlink(dir, inner)
			if errors.Is(err, syscall.EISDIR) || errors.Is(err, syscall.EPERM) {
				err = moveUp(dir, inner, top, entropy)
			}
			if err := ignoring(err, syscall.ENOENT); err != nil {
				return err
			}
		}
	}
}

// openForRemoval opens a folder of which everything is to be removed. Root needs no permission for that, others need the owner's bits.
func openForRemoval(in *Folder, name string) (*Folder, error) {
	if os.Geteuid() != 0 {
		if err := permit(in, name); err != nil {
			return nil, err
		}
	}
	return Dir(in, name)
}

// moveUp moves a folder to the top. A caller that is not root needs the right to write into a folder to give it another parent.
func moveUp(dir *Folder, name string, top *Folder, entropy io.Reader) error {
	unique, err := RandomName(entropy)
	if err != nil {
		return err
	}
	move := func() error {
		return Move(dir, name, top, unique)
	}
	if err := move(); !errors.Is(err, syscall.EACCES) {
		return err
	}
	if err := permit(dir, name); err != nil {
		return err
	}
	return move()
}

// someNames returns up to batch names from the beginning of a folder.
func someNames(dir *Folder) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(batch)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func ignoring(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
