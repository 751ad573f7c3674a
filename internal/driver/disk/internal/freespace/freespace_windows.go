package freespace

import "golang.org/x/sys/windows"

// Free returns how many bytes may still be written to the disk of a folder.
func Free(dir string) (bytes uint64, ok bool) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, false
	}
	if err := windows.GetDiskFreeSpaceEx(path, &bytes, nil, nil); err != nil {
		return 0, false
	}
	return bytes, true
}
