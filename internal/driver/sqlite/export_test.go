package sqlite

import "context"

// FlushedAtOnce is the number of events that the tables lag behind at most, between two groups.
const FlushedAtOnce = flushedAtOnce

// Flush brings the tables up to the log.
func (j *Journal) Flush() error {
	return j.do(&request{ctx: context.Background(), task: func(context.Context) error { return nil }})
}

// TryRoom reports whether there is the room that has to be free before a log is opened again, beside a log of that path.
func TryRoom(path string) error {
	return (&Journal{options: Options{Path: path}}).tryRoom()
}

// MendingRoom is that room, in bytes.
const MendingRoom = mendingRoom
