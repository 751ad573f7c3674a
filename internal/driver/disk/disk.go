// Package disk keeps bytes on the host's file system: the files of spaces, and content by its hash.
package disk

import (
	"errors"

	"agentbox/internal/domain/space"
)

var _ space.Files = (*Files)(nil)

// ignoring drops an error that does no harm.
func ignoring(err, harmless error) error {
	if errors.Is(err, harmless) {
		return nil
	}
	return err
}
