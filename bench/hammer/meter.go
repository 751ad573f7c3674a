package main

import (
	"slices"
	"sync"
	"time"
)

// meter gathers how long things took.
type meter struct {
	mu   sync.Mutex // guards took
	took map[string][]time.Duration
}

func (m *meter) add(what string, took []time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.took == nil {
		m.took = map[string][]time.Duration{}
	}
	m.took[what] = append(m.took[what], took...)
}

// figures sum up how long things took that were done within some time.
type figures struct {
	Count int     `json:"count"`
	Rate  float64 `json:"per_second"`
	P50   float64 `json:"p50_ms"`
	P99   float64 `json:"p99_ms"`
}

func summarize(took []time.Duration, seconds float64) figures {
	if len(took) == 0 || seconds <= 0 {
		return figures{}
	}
	sorted := slices.Sorted(slices.Values(took))
	milliseconds := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return figures{
		Count: len(sorted), Rate: float64(len(sorted)) / seconds, P50: milliseconds(sorted[len(sorted)/2]),
		P99: milliseconds(sorted[len(sorted)*99/100]),
	}
}
