// Package notes reads the kernel's notes of changes in folders (inotify).
//
// Systems without it have no notes.
package notes

// Note is one thing that happened in a folder.
type Note struct {
	Folder int32  // the number that Add returned; -1 says that the kernel's queue was full and notes are lost
	Mask   uint32 // the bits of inotify
	Cookie uint32 // the two notes of one rename have the same
	Name   string // of the entry in the folder; "" for the folder itself
}
