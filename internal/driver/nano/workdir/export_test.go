package workdir

// Bound sets how long a listing may be.
func (f *Folder) Bound(bytes, names int) { f.most, f.names = bytes, names }
