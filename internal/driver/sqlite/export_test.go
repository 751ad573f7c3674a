package sqlite

import "context"

// FlushedAtOnce is the number of events that the tables lag behind at most, between two groups.
const FlushedAtOnce = flushedAtOnce

// Flush brings the tables up to the log.
func (j *Journal) Flush() error {
	return j.do(&request{ctx: context.Background(), task: func(context.Context) error { return nil }})
}
