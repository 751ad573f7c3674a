//go:build !portable

package disk_test

const portable = false
