// Package disk keeps bytes on the host's file system: the files of spaces, and content by its hash.
package disk

import "agentbox/internal/domain/space"

var _ space.Files = (*Files)(nil)
