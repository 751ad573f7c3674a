package e2b

import (
	"iter"
	"sync"
)

// MaxRemembered bounds each table. A forgotten entry is found again or counted anew.
const MaxRemembered = 10_000

// table remembers a bounded number of entries. It may be used from several goroutines.
type table[K comparable, V any] struct {
	mu      sync.Mutex
	entries map[K]V
}

func newTable[K comparable, V any]() *table[K, V] { return &table[K, V]{entries: map[K]V{}} }

func (t *table[K, V]) put(key K, value V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) >= MaxRemembered {
		clear(t.entries)
	}
	t.entries[key] = value
}

func (t *table[K, V]) get(key K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	value, ok := t.entries[key]
	return value, ok
}

func (t *table[K, V]) remove(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.entries, key)
}

// all yields the entries in no order. The loop must not use the table.
func (t *table[K, V]) all() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		t.mu.Lock()
		defer t.mu.Unlock()
		for key, value := range t.entries {
			if !yield(key, value) {
				return
			}
		}
	}
}
