//go:build !unix

package nano

import (
	"io/fs"
	"os"
	"time"
)

// mapped returns the content of a file that nobody changes, only to be read.
func mapped(name string) ([]byte, error) { return os.ReadFile(name) }

// lastRead is unknown here. A file that is removed too early is made again.
func lastRead(string) time.Time { return time.Time{} }

// foreignOwner is not known here: rights are no bits of a file.
func foreignOwner(fs.FileInfo) bool { return false }
