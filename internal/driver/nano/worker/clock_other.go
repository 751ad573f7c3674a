//go:build !unix

package worker

import "time"

// processorTime counts the time of the execution, which takes one processor at most, where the host is not asked.
func (p *pace) processorTime() time.Duration { return p.wall.elapsed() }
