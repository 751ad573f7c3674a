package cmdline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agentbox/internal/domain/fault"
	"agentbox/internal/surface/cli/term"
)

// Progress returns a function that shows on a terminal how far a long work is, and one that clears the line.
func Progress(i *Invocation, word string) (tell func(files int, bytes int64), done func()) {
	if !i.Terminal || i.JSON {
		return func(int, int64) {}, func() {}
	}
	var last time.Time
	shown := false
	return func(files int, bytes int64) {
			if now := i.Clock.Now(); now.Sub(last) > 200*time.Millisecond {
				last, shown = now, true
				fmt.Fprintf(i.Err, "\r\x1b[K%s, %s %s", term.Count(files, "file"), term.Bytesize(bytes), word)
			}
		}, func() {
			if shown {
				fmt.Fprint(i.Err, "\r\x1b[K")
			}
		}
}

// Interrupted is the fault of content that ended too early.
func Interrupted(err error) error {
	if err == nil {
		return nil
	}
	return fault.Wrap(err, fault.Unavailable, "transfer_interrupted", "the upload of the file was incomplete")
}

// Savable says why save will not write a file of this machine, as far as that is seen before there is anything to write.
func Savable(target string, force bool) error {
	if err := vacant(target, force); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".agentbox-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(target, 200))
	}
	return nil
}

// vacant refuses the name of an existing file that must not be replaced.
func vacant(target string, force bool) error {
	info, err := os.Lstat(target)
	switch {
	case err != nil || force && info.Mode().IsRegular():
		return nil // writing the file reports a wrong folder
	case info.IsDir():
		return fault.New(fault.Conflict, "file_exists", "%s is a folder", term.OneLine(target, 200)).With("name a file in it")
	case !info.Mode().IsRegular():
		return fault.New(fault.Conflict, "file_exists", "%s exists already, and is not a regular file", term.OneLine(target,
			200)).With("name another file")
	}
	return fault.New(fault.Conflict, "file_exists", "%s exists already", term.OneLine(target,
		200)).With("name another file, or replace it with --force")
}

// Save writes a file of this machine as a whole or not at all, never through a link, and replaces one only when told to.
func Save(target string, content io.Reader, force bool) (int64, error) {
	if err := vacant(target, force); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".agentbox-*")
	if err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(target, 200))
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has moved to its place, or is of no use
	size, err := io.Copy(f, content)
	if err != nil {
		_ = f.Close()
		return 0, Interrupted(err)
	}
	if err := f.Close(); err != nil {
		return 0, fault.Wrap(err, fault.Invalid, "file_unwritable", "%s cannot be written", term.OneLine(target, 200))
	}
	if force {
		err = os.Rename(f.Name(), target)
	} else {
		err = os.Link(f.Name(), target) // fails where another has come first
	}
	if err != nil {
		return 0, fault.Wrap(err, fault.Conflict, "file_unwritable", "%s cannot be written", term.OneLine(target, 200))
	}
	return size, nil
}

// Unreadable makes the fault of a local file that cannot be read.
func Unreadable(err error, path string) *fault.Error {
	if of, ok := errors.AsType[*fs.PathError](err); ok && of.Path == path {
		err = of.Err // the sentence names the path
	}
	return fault.Wrap(err, fault.Invalid, "file_unreadable", "%s cannot be read", term.OneLine(path, 200))
}

// Emit writes what write has to say to standard output, or to a file that appears as a whole or not at all.
func Emit(i *Invocation, file string, force bool, write func(io.Writer) error) error {
	if file == "-" {
		return write(i.Out)
	}
	var b bytes.Buffer
	if err := write(&b); err != nil {
		return err
	}
	_, err := Save(file, &b, force)
	return err
}
