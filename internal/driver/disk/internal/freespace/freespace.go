// Package freespace says how much room a disk has, and names the disk that has none.
package freespace

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"agentbox/internal/domain/fault"
	"agentbox/internal/domain/space"
)

// Refused is the fault of something that a disk had no room for: space.ErrDiskFull. It names the folder of the file that the error is
// about, and how many KiB are free there. Without a path in the error, it names the data directory. The caller's consequence ends the
// sentence.
func Refused(err error, follows string) error {
	folder, left := "the data directory", ""
	if at, ok := errors.AsType[*fs.PathError](err); ok && filepath.IsAbs(at.Path) {
		folder = filepath.Dir(at.Path)
		if bytes, known := Free(folder); known {
			left = fmt.Sprintf(": it has %d KiB free, which is too little for what is written", bytes>>10)
		}
	}
	return fault.Wrap(err, space.ErrDiskFull.Kind, space.ErrDiskFull.Code, "the disk that holds %s is full%s%s", folder, left, follows).
		With(space.ErrDiskFull.Suggestion)
}
