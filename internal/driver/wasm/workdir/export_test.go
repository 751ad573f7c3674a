package workdir

// Bound sets how long a listing may be.
func (f *Folder) Bound(bytes int) { f.most = bytes }
