//go:build portable

package disk_test

// portable says that the tests run against what stands in for the Linux kernel elsewhere: no overlays, and mounts of the same file system
// are not told from folders.
const portable = true
