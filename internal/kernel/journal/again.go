package journal

import "errors"

// Tries is how often a change is decided again because another change came first.
const Tries = 16

// Again repeats a change of documents while it conflicts with another one, at most Tries times. The change reads the documents each time.
func Again(change func() error) error {
	for try := 1; ; try++ {
		if err := change(); err == nil || !errors.Is(err, ErrConflict) || try == Tries {
			return err
		}
	}
}

// Lost reports whether somebody else was first: with the documents, or with the idempotency key.
func Lost(err error) bool { return errors.Is(err, ErrConflict) || errors.Is(err, ErrKeyConflict) }
