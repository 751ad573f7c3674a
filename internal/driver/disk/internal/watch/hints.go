package watch

// place is a name in a folder.
type place struct {
	in   *node
	name string
}

// found is where something happened.
type found struct {
	written  map[place]bool // every place where something happened; true if the content was written
	from, to map[place]bool // where an entry was renamed from and to
	shaken   bool           // the watched folder, or one on the way to it, may lie elsewhere
}
