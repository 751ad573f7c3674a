// Package within is for its own driver alone.
package within

import "os"

// Remove touches the world for its driver.
func Remove(path string) error { return os.Remove(path) }
