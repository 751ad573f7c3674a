//go:build unix

package freespace

import "golang.org/x/sys/unix"

// Free returns how many bytes may still be written to the disk of a folder.
func Free(dir string) (bytes uint64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return uint64(st.Bavail) * uint64(st.Bsize), true
}
