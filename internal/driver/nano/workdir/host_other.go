//go:build !unix

package workdir

import (
	"io/fs"
	"os"
)

const (
	nonblock       = 0
	canMoveBetween = false // the stage lies in the folder itself
	hasOwners      = false
)

func device(fs.FileInfo) uint64 { return 0 }

// inode knows of no second names here.
func inode(fs.FileInfo) (id uint64, links int) { return 0, 1 }

func rename(root *os.Root, from, to location) error {
	return root.Rename(from.path+"/"+from.name, to.path+"/"+to.name)
}

func link(root *os.Root, from, to location) error {
	return root.Link(from.path+"/"+from.name, to.path+"/"+to.name)
}
